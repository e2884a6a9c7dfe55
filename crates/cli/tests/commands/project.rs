//! A temporary directory with files, in which commands run.

use crate::program::fed;
use crate::time::without_time;
use std::path::PathBuf;
use std::process::Command;

pub(crate) struct Project {
    directory: tempfile::TempDir,
}

impl Project {
    /// Creates a directory with files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let project = Project {
            directory: tempfile::tempdir().unwrap(),
        };
        for (name, text) in files {
            project.write(name, text);
        }
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The program, run in a directory of the project.
    pub(crate) fn command(&self, directory: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scantling"));
        command.current_dir(self.path(directory));
        command
    }

    /// Runs a command. Returns its output, standard error last, and the exit code.
    pub(crate) fn run(&self, arguments: &str) -> (String, i32) {
        self.run_in("", arguments)
    }

    /// Runs a command in a directory of the project.
    pub(crate) fn run_in(&self, directory: &str, arguments: &str) -> (String, i32) {
        self.finish(self.command(directory).args(arguments.split_whitespace()))
    }

    /// Runs a command that was prepared.
    pub(crate) fn finish(&self, command: &mut Command) -> (String, i32) {
        let output = fed(command, "");
        let text = [output.stdout, output.stderr].concat();
        let text = without_time(&String::from_utf8(text).unwrap());
        let name = self.directory.path().display().to_string();
        (text.replace(&name, "DIR"), output.status.code().unwrap())
    }
}
