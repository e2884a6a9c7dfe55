//! Files and directories that only their owner may access: they contain Secrets and private keys.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// The permissions of a new file.
pub const FILE_MODE: u32 = 0o600;
/// The permissions of a new directory.
pub const DIRECTORY_MODE: u32 = 0o700;
/// The permission bits of everyone but the owner.
const OTHERS: u32 = 0o077;

/// Creates a directory and its missing parents. Does not change an existing one.
pub fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(path)
}

/// Removes all permissions of everyone but the owner from a file or directory, and logs it. Skips symbolic
/// links. A failure is only a warning: the file may be shared on purpose.
pub fn restrict(path: &Path) {
    let data = match path.symlink_metadata() {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read file permissions");
            return;
        }
    };
    let mode = data.permissions().mode();
    if data.is_symlink() || mode & OTHERS == 0 {
        return;
    }
    match std::fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS)) {
        Ok(()) => tracing::warn!(
            path = %path.display(),
            from = format!("{:04o}", mode & 0o7777),
            to = format!("{:04o}", mode & 0o7777 & !OTHERS),
            "restricted file permissions to the owner"
        ),
        Err(error) => tracing::warn!(
            path = %path.display(),
            %error,
            "others may read this file, and its permissions cannot be changed"
        ),
    }
}

/// [Restricts](restrict) a directory and all files in it.
pub fn restrict_directory(path: &Path) -> io::Result<()> {
    restrict(path);
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            restrict(&entry.path());
        }
    }
    Ok(())
}

/// A file that is written under a temporary name in the same directory and renamed when complete.
///
/// Only the owner can read it at any time, even if it replaces a file that everyone can read.
#[derive(Debug)]
pub struct NewFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Creates the temporary file. Fails if the target is a symbolic link or not a regular file.
    pub fn create(path: &Path) -> io::Result<Self> {
        match path.symlink_metadata() {
            // Renaming over a link would replace the link and leave the file that it names unchanged.
            Ok(data) if data.is_symlink() => {
                return Err(refused("it is a symbolic link; name the file itself"));
            }
            Ok(data) if !data.is_file() => return Err(refused("it is not a regular file")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let name = path.file_name().ok_or_else(|| refused("it has no file name"))?;
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        // Renaming is atomic only within one file system.
        let file = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".tmp")
            .permissions(Permissions::from_mode(FILE_MODE))
            .tempfile_in(directory_of(path))?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// Renames the file and makes it durable.
    pub fn commit(self) -> io::Result<()> {
        // Without this, a crash after the rename could leave an empty file.
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        // Without this, a crash could undo the rename.
        flush_directory(directory_of(&self.path))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file that only its owner may read, atomically.
pub fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = NewFile::create(path)?;
    file.write_all(contents)?;
    file.commit()
}

/// The directory of a file.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        // The parent of a bare file name is empty.
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Flushes a directory, so that created and renamed files are durable.
pub(crate) fn flush_directory(path: &Path) -> io::Result<()> {
    File::open(path).and_then(|directory| directory.sync_all())
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o7777
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_file_is_private_before_it_has_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("export");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(mode(file.file.path()), 0o600);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), 0o600));
        assert_eq!(names(directory.path()), ["export"]);
    }

    #[test]
    fn an_abandoned_file_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        drop(NewFile::create(&directory.path().join("export")).unwrap());
        assert_eq!(names(directory.path()), [""; 0]);
    }

    #[test]
    fn links_and_directories_are_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target"), directory.path().join("link"));
        fs::write(&target, "kept").unwrap();
        symlink(&target, &link).unwrap();
        assert!(write(&link, b"new").is_err());
        assert!(write(directory.path(), b"new").is_err());
        assert_eq!(fs::read(&target).unwrap(), b"kept");
    }

    #[test]
    fn a_directory_is_restricted_with_its_files() {
        let directory = tempfile::tempdir().unwrap();
        let (outside, inside) = (directory.path().join("outside"), directory.path().join("inside"));
        create_directory(&inside.join("below")).unwrap();
        assert_eq!((mode(&inside), mode(&inside.join("below"))), (0o700, 0o700));
        for path in [&outside, &inside.join("file")] {
            fs::write(path, "x").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        symlink(&outside, inside.join("link")).unwrap();
        fs::set_permissions(&inside, Permissions::from_mode(0o755)).unwrap();
        restrict_directory(&inside).unwrap();
        assert_eq!(mode(&inside), 0o700);
        assert_eq!(mode(&inside.join("file")), 0o600);
        assert_eq!(mode(&outside), 0o644, "links are not followed");
    }
}
