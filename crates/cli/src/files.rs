//! Which files there are to read.

use crate::problem::Problem;
use std::borrow::Cow;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The endings of files that a directory is searched for.
const MANIFESTS: [&str; 3] = ["yaml", "yml", "json"];

/// A file, or what can be read only once: standard input, a pipe.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The name for messages.
    pub(crate) name: Arc<str>,
    from: From,
}

#[derive(Clone, Debug)]
enum From {
    File(PathBuf),
    Memory(Arc<[u8]>),
}

impl Source {
    fn file(path: &Path) -> Self {
        Source {
            name: path.display().to_string().into(),
            from: From::File(path.to_owned()),
        }
    }

    /// All bytes.
    pub(crate) fn read(&self) -> Result<Cow<'_, [u8]>, Problem> {
        match &self.from {
            From::Memory(bytes) => Ok(Cow::Borrowed(bytes)),
            From::File(path) => match std::fs::read(path) {
                Ok(bytes) => Ok(Cow::Owned(in_utf8(bytes))),
                Err(e) => Err(unreadable(path, &e)),
            },
        }
    }

    /// The bytes, for those who want them one after the other.
    pub(crate) fn open(&self) -> Result<Box<dyn Read + Send + '_>, Problem> {
        match &self.from {
            From::Memory(bytes) => Ok(Box::new(&**bytes)),
            From::File(path) => opened(path).map_err(|e| unreadable(path, &e)),
        }
    }

    /// The number of bytes, as far as it is known before they are read.
    pub(crate) fn size(&self) -> u64 {
        match &self.from {
            From::Memory(bytes) => bytes.len() as u64,
            From::File(path) => std::fs::metadata(path).map_or(0, |m| m.len()),
        }
    }
}

/// The bytes of a file. One in UTF-16, which is rare, is read as a whole.
fn opened(path: &Path) -> std::io::Result<Box<dyn Read + Send>> {
    let mut file = std::fs::File::open(path)?;
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

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    let what = format!("cannot read {}", path.display());
    match error.kind() {
        std::io::ErrorKind::NotFound => Problem::new(what, "there is no such file or directory"),
        _ => Problem::new(what, error),
    }
}

/// All files behind the given paths. Directories are searched for manifests, in the order of their names.
pub(crate) fn find(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> (Vec<Source>, Vec<Problem>) {
    let (mut sources, mut problems) = (Vec::new(), Vec::new());
    for path in paths {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            match standard_input() {
                Ok(source) => sources.push(source),
                Err(problem) => problems.push(problem),
            }
        } else if path.is_dir() {
            let before = sources.len();
            search(path, &mut sources, &mut problems);
            if sources.len() == before {
                let what = format!("no manifests in {}", path.display());
                let hint = "files whose names end in .yaml, .yml or .json are read from directories";
                problems.push(Problem::plain(what).hint(hint));
            }
        } else {
            match given(path) {
                Ok(source) => sources.push(source),
                Err(e) => problems.push(unreadable(path, &e)),
            }
        }
    }
    (sources, problems)
}

/// A file that was named. What the shell puts in the place of `<(helm template .)` gives its bytes once.
fn given(path: &Path) -> std::io::Result<Source> {
    if std::fs::metadata(path)?.is_file() {
        return Ok(Source::file(path));
    }
    let bytes = in_utf8(std::fs::read(path)?);
    Ok(Source {
        name: path.display().to_string().into(),
        from: From::Memory(bytes.into()),
    })
}

/// Standard input is there once, whatever it is asked for.
static TAKEN: AtomicBool = AtomicBool::new(false);

fn standard_input() -> Result<Source, Problem> {
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(Problem::usage("standard input (`-`) is named more than once"));
    }
    let mut bytes = Vec::new();
    match std::io::stdin().lock().read_to_end(&mut bytes) {
        Ok(_) => Ok(Source {
            name: "<stdin>".into(),
            from: From::Memory(in_utf8(bytes).into()),
        }),
        Err(e) => Err(Problem::new("cannot read standard input", e)),
    }
}

fn search(directory: &Path, sources: &mut Vec<Source>, problems: &mut Vec<Problem>) {
    let entries = std::fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(e) => {
            problems.push(unreadable(directory, &e));
            return;
        }
    };
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        // Links to directories could lead in a circle.
        if kind.is_dir() {
            search(&path, sources, problems);
        } else if is_manifest(&path) && (kind.is_file() || kind.is_symlink() && !path.is_dir()) {
            // A link that leads nowhere is told by whoever reads it.
            sources.push(Source::file(&path));
        }
    }
}

fn is_manifest(path: &Path) -> bool {
    let ending = path.extension().and_then(|e| e.to_str());
    ending.is_some_and(|e| MANIFESTS.contains(&e))
}
