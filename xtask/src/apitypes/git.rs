//! Reads files of a bare git repository.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A repository, by its git directory.
pub(super) struct Repository {
    git_dir: PathBuf,
}

impl Repository {
    pub(super) fn new(git_dir: &Path) -> Repository {
        Repository {
            git_dir: git_dir.to_path_buf(),
        }
    }

    fn git(&self, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(&self.git_dir).args(args);
        command
    }

    /// The texts of the selected files of a commit below some folders.
    pub(super) fn files(
        &self,
        commit: &str,
        folders: &[&str],
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, String>, String> {
        let files = self.bytes(commit, folders, is_wanted)?;
        let texts = files.into_iter().map(|(path, content)| {
            // Go sources are UTF-8, so nothing is lost.
            let text = String::from_utf8_lossy(&content).into_owned();
            (path, text)
        });
        Ok(texts.collect())
    }

    /// The contents of the selected files of a commit below some folders.
    pub(super) fn bytes(
        &self,
        commit: &str,
        folders: &[&str],
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let mut args = vec!["ls-tree", "-r", "--name-only", commit];
        args.extend(folders);
        let listed = self.git(&args).output().map_err(|e| format!("git: {e}"))?;
        if !listed.status.success() {
            return Err(String::from_utf8_lossy(&listed.stderr).into_owned());
        }
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let paths: Vec<String> = listed
            .lines()
            .filter(|path| is_wanted(path))
            .map(str::to_owned)
            .collect();
        let contents = self.contents(commit, &paths)?;
        Ok(paths.into_iter().zip(contents).collect())
    }

    fn contents(&self, commit: &str, paths: &[String]) -> Result<Vec<Vec<u8>>, String> {
        let mut child = self
            .git(&["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("git: {e}"))?;
        let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("git cat-file has no pipes".to_owned());
        };
        let requests: String = paths.iter().map(|path| format!("{commit}:{path}\n")).collect();
        // Both pipes are bounded, so writing everything before reading would deadlock.
        let writer = std::thread::spawn(move || stdin.write_all(requests.as_bytes()));
        let mut answer = Vec::new();
        stdout.read_to_end(&mut answer).map_err(|e| format!("git: {e}"))?;
        // After the read: the pipe is at its end, so the writer has finished or failed.
        let written = writer.join().map_err(|_| "the writer panicked".to_owned())?;
        written.map_err(|e| format!("git: {e}"))?;
        child.wait().map_err(|e| format!("git: {e}"))?;
        split_objects(&answer, paths)
    }
}

/// Splits the output of `git cat-file --batch`: per object a line `<id> <type> <size>`, the content, a line break.
fn split_objects(mut rest: &[u8], paths: &[String]) -> Result<Vec<Vec<u8>>, String> {
    let mut contents = Vec::new();
    for path in paths {
        let missing = || format!("git cat-file: no content for {path}");
        let end = rest.iter().position(|b| *b == b'\n').ok_or_else(missing)?;
        let (header, content) = rest.split_at(end);
        let header = String::from_utf8_lossy(header);
        let size: usize = header
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse().ok())
            .ok_or_else(missing)?;
        let content = content.get(1..=size).ok_or_else(missing)?;
        contents.push(content.to_vec());
        rest = rest.get(end + size + 2..).ok_or_else(missing)?;
    }
    Ok(contents)
}
