//! Which files there are to read.

use crate::args::ReadLimits;
use crate::problem::Problem;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The endings of files that a directory is searched for.
const MANIFESTS: [&str; 3] = ["yaml", "yml", "json"];

/// A file, or what can be read only once: standard input, a pipe.
#[derive(Clone, Debug)]
pub(crate) struct InputSource {
    /// The name for messages.
    pub(crate) name: Arc<str>,
    from: SourceKind,
}

#[derive(Clone, Debug)]
enum SourceKind {
    File {
        path: PathBuf,
        /// The most bytes that it may have.
        limit: u64,
    },
    Memory(Arc<[u8]>),
}

impl InputSource {
    fn file(path: &Path, limits: ReadLimits) -> Self {
        InputSource {
            name: path.display().to_string().into(),
            from: SourceKind::File {
                path: path.to_owned(),
                limit: limits.max_input_bytes,
            },
        }
    }

    /// All bytes.
    pub(crate) fn read(&self) -> Result<Cow<'_, [u8]>, Problem> {
        match &self.from {
            SourceKind::Memory(bytes) => Ok(Cow::Borrowed(bytes)),
            SourceKind::File { path, limit } => match read(path, *limit) {
                Ok(bytes) => Ok(Cow::Owned(in_utf8(bytes))),
                Err(e) => Err(unreadable(path.display(), &e)),
            },
        }
    }

    /// The bytes, for those who want them one after the other.
    pub(crate) fn open(&self) -> Result<Box<dyn Read + Send + '_>, Problem> {
        match &self.from {
            SourceKind::Memory(bytes) => Ok(Box::new(&**bytes)),
            SourceKind::File { path, limit } => {
                opened(path, *limit).map_err(|e| unreadable(path.display(), &e))
            }
        }
    }

    /// The number of bytes, as far as it is known before they are read.
    pub(crate) fn size(&self) -> u64 {
        match &self.from {
            SourceKind::Memory(bytes) => bytes.len() as u64,
            SourceKind::File { path, .. } => std::fs::metadata(path).map_or(0, |m| m.len()),
        }
    }
}

/// An input that ends with an error if it is longer than it may be: it may be a device that never ends.
struct Limited<R> {
    input: R,
    left: u64,
    limit: u64,
}

impl<R> Limited<R> {
    fn new(input: R, limit: u64) -> Self {
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

/// All bytes of a file that has no more than it may have.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(open_limited(path, limit)?)
}

/// All bytes of an input. The buffer grows by steps: one that doubles would take far more than the limit.
fn read_all(mut input: impl Read) -> io::Result<Vec<u8>> {
    const STEP: usize = 16 << 20;
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        if before > 0 {
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
    if file.metadata()?.len() > limit {
        return Err(too_large(limit));
    }
    Ok(Limited::new(file, limit))
}

/// The bytes of a file. One in UTF-16, which is rare, is read as a whole.
fn opened(path: &Path, limit: u64) -> io::Result<Box<dyn Read + Send>> {
    let mut file = open_limited(path, limit)?;
    let mut mark = Vec::new();
    (&mut file).take(2).read_to_end(&mut mark)?;
    if byte_order(&mark).is_none() {
        return Ok(Box::new(Cursor::new(mark).chain(file)));
    }
    file.read_to_end(&mut mark)?;
    Ok(Box::new(Cursor::new(in_utf8(mark))))
}

/// How the bytes of a text in UTF-16 follow one another, by the mark before it.
fn byte_order(text: &[u8]) -> Option<fn([u8; 2]) -> u16> {
    match text {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    }
}

/// A text in UTF-8, whatever it was written in. What is no text stays as it is: whoever decodes it says so.
fn in_utf8(text: Vec<u8>) -> Vec<u8> {
    let Some(unit) = byte_order(&text) else {
        return text;
    };
    let (units, rest) = text.as_chunks::<2>();
    let units = units.iter().skip(1).map(|bytes| unit(*bytes));
    match char::decode_utf16(units).collect::<Result<String, _>>() {
        Ok(decoded) if rest.is_empty() => decoded.into_bytes(),
        _ => text,
    }
}

/// The problem with a file that cannot be read.
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

/// All files behind the given paths. Directories are searched for manifests, in the order of their names.
pub(crate) fn find(
    paths: impl IntoIterator<Item = impl AsRef<Path>>,
    limits: ReadLimits,
) -> (Vec<InputSource>, Vec<Problem>) {
    let (mut sources, mut problems) = (Vec::new(), Vec::new());
    let mut left = limits.max_input_files;
    for path in paths {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            match standard_input(limits.max_input_bytes) {
                Ok(source) => sources.push(source),
                Err(problem) => problems.push(problem),
            }
        } else if path.is_dir() {
            let before = (sources.len(), problems.len());
            search(path, limits, &mut left, &mut sources, &mut problems);
            if (sources.len(), problems.len()) == before {
                let what = format!("no manifests in {}", path.display());
                let hint = "files whose names end in .yaml, .yml or .json are read from directories";
                problems.push(Problem::plain(what).hint(hint));
            }
        } else {
            match given(path, limits) {
                Ok(source) => sources.push(source),
                Err(e) => problems.push(unreadable(path.display(), &e)),
            }
        }
    }
    (sources, problems)
}

/// A file that was named. What the shell puts in the place of `<(helm template .)` gives its bytes once.
fn given(path: &Path, limits: ReadLimits) -> io::Result<InputSource> {
    if std::fs::metadata(path)?.is_file() {
        return Ok(InputSource::file(path, limits));
    }
    let bytes = in_utf8(read(path, limits.max_input_bytes)?);
    Ok(InputSource {
        name: path.display().to_string().into(),
        from: SourceKind::Memory(bytes.into()),
    })
}

/// Standard input is there once, whatever it is asked for.
static TAKEN: AtomicBool = AtomicBool::new(false);

fn standard_input(limit: u64) -> Result<InputSource, Problem> {
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(Problem::usage("standard input (`-`) is named more than once"));
    }
    match read_all(Limited::new(io::stdin().lock(), limit)) {
        Ok(bytes) => Ok(InputSource {
            name: "<stdin>".into(),
            from: SourceKind::Memory(in_utf8(bytes).into()),
        }),
        Err(e) => Err(unreadable("standard input", &e)),
    }
}

/// Adds the manifests below a directory, as long as there are entries left to look at.
fn search(
    directory: &Path,
    limits: ReadLimits,
    left: &mut usize,
    sources: &mut Vec<InputSource>,
    problems: &mut Vec<Problem>,
) {
    let (entries, complete) = match candidates(directory, left) {
        Ok(found) => found,
        Err(e) => {
            problems.push(unreadable(directory.display(), &e));
            return;
        }
    };
    for (path, is_directory) in entries {
        if is_directory && *left > 0 {
            search(&path, limits, left, sources, problems);
        } else if !is_directory {
            sources.push(InputSource::file(&path, limits));
        }
    }
    if !complete {
        let what = format!(
            "cannot read {}: there are more than {} files and directories",
            directory.display(),
            limits.max_input_files
        );
        problems.push(Problem::plain(what).hint("raise the limit with --max-input-files"));
    }
}

/// The manifests and directories in a directory, in the order of their names, and whether these are all.
fn candidates(directory: &Path, left: &mut usize) -> io::Result<(Vec<(PathBuf, bool)>, bool)> {
    let (mut found, mut complete) = (Vec::new(), true);
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let Some(fewer) = left.checked_sub(1) else {
            complete = false;
            break;
        };
        *left = fewer;
        let (path, kind) = (entry.path(), entry.file_type()?);
        // Links to directories could lead in a circle. The reader reports a link that leads nowhere.
        if kind.is_dir() {
            found.push((path, true));
        } else if is_manifest(&path) && (kind.is_file() || kind.is_symlink() && !path.is_dir()) {
            found.push((path, false));
        }
    }
    found.sort();
    Ok((found, complete))
}

fn is_manifest(path: &Path) -> bool {
    let ending = path.extension().and_then(|e| e.to_str());
    ending.is_some_and(|e| MANIFESTS.contains(&e))
}
