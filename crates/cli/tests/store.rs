//! `scantling store`: backups, moves, and what it says when they cannot be.
#![expect(clippy::expect_used, reason = "a test may panic")]

use scantling_store::{EmbeddedConfig, EmbeddedStore, Store, Write};
use std::path::Path;
use std::process::Command;

/// Runs the program; answers with both outputs and the exit code.
fn run(data: &Path, command: &str, file: Option<&Path>) -> (String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_scantling"))
        .args(["store", "--data-dir"])
        .arg(data)
        .arg(command)
        .args(file)
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (text.into_owned(), output.status.code().unwrap_or(-1))
}

/// A data directory with a store of some objects, left as a server leaves it.
fn filled(objects: usize) -> tempfile::TempDir {
    let data = tempfile::tempdir().expect("a directory");
    let store = open(data.path());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for n in 0..objects {
        let value = format!("{{\"n\":{n}}}").into();
        let key = format!("/registry/example.com/widgets/default/{n}");
        runtime
            .block_on(store.write(&key, Write::Create { value }))
            .expect("it is written");
    }
    store.close().expect("it is closed");
    data
}

fn open(data: &Path) -> EmbeddedStore {
    EmbeddedStore::open(EmbeddedConfig::new(data.join("store"))).expect("it opens")
}

#[test]
fn a_backup_becomes_the_same_store_elsewhere() {
    let (old, new) = (filled(20), tempfile::tempdir().expect("a directory"));
    let [backup, again] = ["backup", "again"].map(|name| old.path().join(name));
    let (text, code) = run(old.path(), "export", Some(&backup));
    assert_eq!((text.as_str(), code), ("exported 20 entries at revision 21\n", 0));
    let (text, code) = run(new.path(), "import", Some(&backup));
    assert_eq!((text.as_str(), code), ("imported 20 entries at revision 21\n", 0));
    let (text, code) = run(new.path(), "check", None);
    assert!(code == 0 && text.starts_with("sound: 20 entries"), "{text}");
    run(new.path(), "export", Some(&again));
    let read = |path| std::fs::read(path).expect("a backup");
    assert!(read(&backup) == read(&again));

    // What is there is never overwritten.
    for data in [&old, &new] {
        let (text, code) = run(data.path(), "import", Some(&backup));
        assert!(code == 3 && text.contains("it holds a store already"), "{text}");
        assert_eq!(run(data.path(), "check", None).1, 0);
    }
}

#[test]
fn a_store_in_use_is_left_alone() {
    let data = filled(3);
    let backup = data.path().join("backup");
    let store = open(data.path());
    let pid = std::process::id();
    let in_use =
        format!("is in use by another process (pid {pid}); stop it, or choose another data directory");
    for (command, file) in [("check", None), ("export", Some(backup.as_path()))] {
        let (text, code) = run(data.path(), command, file);
        assert!(code == 3 && text.contains(&in_use), "{text}");
    }
    assert!(!backup.exists());
    drop(store);
    assert_eq!(run(data.path(), "export", Some(&backup)).1, 0);
}

#[test]
fn damage_is_said() {
    let data = filled(3);
    let store = data.path().join("store");
    let (backup, other) = (data.path().join("backup"), data.path().join("other"));
    run(data.path(), "export", Some(&backup));
    let state = store.join("state.redb");
    let bytes = std::fs::read(&state).expect("a state");

    // A state that is cut short, one that is empty, and none.
    std::fs::write(&state, &bytes[..bytes.len() / 2]).expect("it is written");
    for (command, file) in [("check", None), ("export", Some(other.as_path()))] {
        let (text, code) = run(data.path(), command, file);
        assert!(code == 3 && text.contains("is damaged"), "{text}");
    }
    std::fs::write(&state, "").expect("it is written");
    let (text, code) = run(data.path(), "check", None);
    assert!(code == 3 && text.contains("is damaged: it is empty"), "{text}");
    std::fs::remove_file(&state).expect("it is removed");
    for (command, file) in [("check", None), ("import", Some(backup.as_path()))] {
        let (text, code) = run(data.path(), command, file);
        let said = "is damaged: there is a journal, but no state beside it";
        assert!(code == 3 && text.contains(said), "{text}");
    }

    // A backup that is cut short makes no store.
    let lines = std::fs::read_to_string(&backup).expect("a backup");
    let cut: String = lines.lines().take(3).map(|line| format!("{line}\n")).collect();
    std::fs::write(&backup, cut).expect("it is written");
    let empty = tempfile::tempdir().expect("a directory");
    let (text, code) = run(empty.path(), "import", Some(&backup));
    assert!(code == 3 && text.contains("ends too early"), "{text}");
    assert!(!empty.path().join("store").exists());
}
