//! Files, archives and streams to read.

use crate::archive;
use crate::args::{ReadFlags, SchemaSource};
use crate::problem::Problem;
use crate::walk;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An input: a file, or the bytes of a stream or of the output of a tool.
#[derive(Clone, Debug)]
pub(crate) struct InputSource {
    /// The name for messages.
    pub(crate) name: Arc<str>,
    /// True if the user named the input itself, rather than a directory or an archive that contains it.
    pub(crate) named: bool,
    /// The namespace that a kustomization gives to the objects of the file.
    pub(crate) kustomize_namespace: Option<Arc<str>>,
    from: SourceKind,
}

#[derive(Clone, Debug)]
enum SourceKind {
    File {
        path: PathBuf,
        /// The size limit.
        limit: u64,
    },
    Memory(Arc<[u8]>),
}

impl InputSource {
    /// A file.
    pub(crate) fn file(path: &Path, named: bool, flags: &ReadFlags) -> Self {
        let name = path.display().to_string();
        InputSource {
            name: name.strip_prefix("./").unwrap_or(&name).into(),
            named,
            kustomize_namespace: None,
            from: SourceKind::File {
                path: path.to_owned(),
                limit: flags.max_input_bytes,
            },
        }
    }

    /// The content of a stream, of a member of an archive, or the output of a tool.
    pub(crate) fn memory(name: &str, named: bool, bytes: Vec<u8>) -> Self {
        InputSource {
            name: name.into(),
            named,
            kustomize_namespace: None,
            from: SourceKind::Memory(in_utf8(bytes).into()),
        }
    }

    /// Returns all bytes.
    pub(crate) fn read(&self) -> Result<Cow<'_, [u8]>, Problem> {
        match &self.from {
            SourceKind::Memory(bytes) => Ok(Cow::Borrowed(bytes)),
            SourceKind::File { path, limit } => match read(path, *limit) {
                Ok(bytes) => Ok(Cow::Owned(in_utf8(bytes))),
                Err(e) => Err(unreadable(path.display(), &e)),
            },
        }
    }

    /// Returns a reader of the bytes.
    pub(crate) fn open(&self) -> Result<Box<dyn Read + Send + '_>, Problem> {
        match &self.from {
            SourceKind::Memory(bytes) => Ok(Box::new(&**bytes)),
            SourceKind::File { path, limit } => {
                opened(path, *limit).map_err(|e| unreadable(path.display(), &e))
            }
        }
    }

    /// Returns the number of bytes, if known before reading.
    pub(crate) fn size(&self) -> u64 {
        match &self.from {
            SourceKind::Memory(bytes) => bytes.len() as u64,
            SourceKind::File { path, .. } => std::fs::metadata(path).map_or(0, |m| m.len()),
        }
    }
}

/// A reader that fails at a size limit: the input may be an endless device.
pub(crate) struct Limited<R> {
    input: R,
    left: u64,
    limit: u64,
}

impl<R> Limited<R> {
    pub(crate) fn new(input: R, limit: u64) -> Self {
        Limited {
            input,
            left: limit,
            limit,
        }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !out.is_empty() {
            // Another byte tells an input of exactly this size from a longer one.
            return match self.input.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(too_large(self.limit)),
            };
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let read = self.input.read(out.get_mut(..most).unwrap_or_default())?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

fn too_large(limit: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!("it is larger than {limit} bytes"),
    )
}

/// Reads a file, up to a size limit.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(open_limited(path, limit)?)
}

/// Reads an input. The buffer grows in steps: doubling could take far more than the limit.
pub(crate) fn read_all(mut input: impl Read) -> io::Result<Vec<u8>> {
    const STEP: usize = 16 << 20;
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        if before > 0 {
            // The first step is allocated by the read itself, so small files do not reserve a whole one.
            bytes.reserve_exact(STEP);
        }
        input.by_ref().take(STEP as u64).read_to_end(&mut bytes)?;
        if bytes.len() == before {
            return Ok(bytes);
        }
    }
}

fn open_limited(path: &Path, limit: u64) -> io::Result<Limited<File>> {
    let file = File::open(path)?;
    // A regular file states its size, so nothing of it is read in vain. Devices state zero.
    if file.metadata()?.len() > limit {
        return Err(too_large(limit));
    }
    Ok(Limited::new(file, limit))
}

/// Opens a file. UTF-16, which is rare, is read as a whole.
fn opened(path: &Path, limit: u64) -> io::Result<Box<dyn Read + Send>> {
    let mut file = open_limited(path, limit)?;
    let mut mark = Vec::new();
    (&mut file).take(2).read_to_end(&mut mark)?;
    // The bytes of the mark are read already, so they are put in front again.
    if byte_order(&mark).is_none() {
        return Ok(Box::new(Cursor::new(mark).chain(file)));
    }
    file.read_to_end(&mut mark)?;
    Ok(Box::new(Cursor::new(in_utf8(mark))))
}

/// Returns the byte order of a text in UTF-16, by its byte order mark.
fn byte_order(text: &[u8]) -> Option<fn([u8; 2]) -> u16> {
    match text {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    }
}

/// Converts UTF-16 to UTF-8. Anything else is returned unchanged; the decoder reports errors.
fn in_utf8(text: Vec<u8>) -> Vec<u8> {
    let Some(unit) = byte_order(&text) else {
        return text;
    };
    let (units, rest) = text.as_chunks::<2>();
    // The first unit is the mark itself.
    let units = units.iter().skip(1).map(|bytes| unit(*bytes));
    match char::decode_utf16(units).collect::<Result<String, _>>() {
        // Half a unit at the end means that the text is not UTF-16 after all.
        Ok(decoded) if rest.is_empty() => decoded.into_bytes(),
        _ => text,
    }
}

/// Returns the problem for a file that cannot be read.
pub(crate) fn unreadable(name: impl std::fmt::Display, error: &io::Error) -> Problem {
    let file = name.to_string().into();
    let problem =
        |why: &dyn std::fmt::Display| Problem::in_file(&file, None, format_args!("cannot read: {why}"));
    match error.kind() {
        io::ErrorKind::NotFound => problem(&"no such file or directory"),
        io::ErrorKind::FileTooLarge => problem(error).hint("raise the limit with --max-input-bytes"),
        _ => problem(error),
    }
}

/// Finds all files for the given paths. Directories are searched for manifests, archives are read.
pub(crate) fn find(
    paths: impl IntoIterator<Item = impl AsRef<Path>>,
    flags: &ReadFlags,
) -> (Vec<InputSource>, Vec<Problem>) {
    let mut finder = Finder::new(flags);
    for path in paths {
        finder.path(path.as_ref());
    }
    (finder.sources, finder.problems)
}

/// Finds all files for the given sources of CRDs.
pub(crate) fn find_schemas<'s>(
    schemas: impl IntoIterator<Item = &'s SchemaSource>,
    flags: &ReadFlags,
) -> (Vec<InputSource>, Vec<Problem>) {
    let mut finder = Finder::new(flags);
    for schema in schemas {
        match schema {
            SchemaSource::Path(path) => finder.path(path),
            SchemaSource::Git { revision, path } => finder.archive(archive::git(revision, path, flags)),
        }
    }
    (finder.sources, finder.problems)
}

struct Finder<'a> {
    flags: &'a ReadFlags,
    /// The number of files and directories that may still be visited.
    left: usize,
    sources: Vec<InputSource>,
    problems: Vec<Problem>,
}

impl<'a> Finder<'a> {
    fn new(flags: &'a ReadFlags) -> Self {
        Finder {
            flags,
            left: flags.max_input_files,
            sources: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Reads what a path of the command line names.
    fn path(&mut self, path: &Path) {
        if path.as_os_str() == "-" {
            match standard_input(self.flags.max_input_bytes) {
                Ok(source) => self.sources.push(source),
                Err(problem) => self.problems.push(problem),
            }
        } else if path.is_dir() {
            let found = walk::search(path, self.flags, &mut self.left);
            let is_empty = found.sources.is_empty() && found.problems.is_empty();
            self.sources.extend(found.sources);
            self.problems.extend(found.problems);
            if is_empty {
                let what = format!("no manifests in {}", path.display());
                let hint = "directories are searched for files that end in .yaml, .yml or .json; --no-ignore includes \
                            hidden and ignored files";
                self.problems.push(Problem::plain(what).hint(hint));
            }
        } else if archive::is_archive(path) {
            self.archive(archive::read(path, self.flags));
        } else {
            match given(path, self.flags) {
                Ok(source) => self.sources.push(source),
                Err(e) => self.problems.push(unreadable(path.display(), &e)),
            }
        }
    }

    fn archive(&mut self, found: Result<Vec<InputSource>, Problem>) {
        match found {
            Ok(sources) => self.sources.extend(sources),
            Err(problem) => self.problems.push(problem),
        }
    }
}

/// A file named by the user. A pipe, such as the shell's `<(helm template .)`, can be read only once.
fn given(path: &Path, flags: &ReadFlags) -> io::Result<InputSource> {
    // A regular file is opened when its turn comes, so memory is bounded.
    if std::fs::metadata(path)?.is_file() {
        return Ok(InputSource::file(path, true, flags));
    }
    let bytes = read(path, flags.max_input_bytes)?;
    Ok(InputSource::memory(&path.display().to_string(), true, bytes))
}

/// True once standard input has been read: it can be read only once.
static TAKEN: AtomicBool = AtomicBool::new(false);

fn standard_input(limit: u64) -> Result<InputSource, Problem> {
    // A second read would see an empty input, and silently validate nothing.
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(Problem::usage("standard input (`-`) is named more than once"));
    }
    match read_all(Limited::new(io::stdin().lock(), limit)) {
        Ok(bytes) => Ok(InputSource::memory("<stdin>", true, bytes)),
        Err(e) => Err(unreadable("standard input", &e)),
    }
}
