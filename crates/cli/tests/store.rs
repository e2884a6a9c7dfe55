//! `scantling store`: backup, restore, and errors.
#![expect(clippy::expect_used, reason = "a test may panic")]

use scantling_store::{EmbeddedConfig, EmbeddedStore, Store, Write};
use std::path::Path;
use std::process::Command;

/// Runs the CLI; returns its output and exit code.
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

/// A data directory with some objects, as a stopped server leaves it.
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

/// Without `--data-dir`, the command reads the directory that `serve` writes by default.
#[test]
fn the_default_is_the_directory_of_the_server() {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::rename(filled(1).path(), home.path().join("scantling")).expect("it is moved");
    let output = Command::new(env!("CARGO_BIN_EXE_scantling"))
        .args(["store", "check"])
        .env("XDG_DATA_HOME", home.path())
        .output()
        .expect("the program runs");
    assert!(output.stdout.starts_with(b"sound: 1 entries"), "{output:?}");
}

#[test]
fn backup_and_restore() {
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

    // Existing data is never overwritten.
    for data in [&old, &new] {
        let (text, code) = run(data.path(), "import", Some(&backup));
        assert!(code == 3 && text.contains("it holds a store already"), "{text}");
        assert_eq!(run(data.path(), "check", None).1, 0);
    }
}

#[test]
fn a_store_in_use_is_refused() {
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
fn damage_is_reported() {
    let data = filled(3);
    let store = data.path().join("store");
    let (backup, other) = (data.path().join("backup"), data.path().join("other"));
    run(data.path(), "export", Some(&backup));
    let state = store.join("state.redb");
    let bytes = std::fs::read(&state).expect("a state");

    // A truncated database, an empty one, and none.
    std::fs::write(&state, &bytes[..bytes.len() / 2]).expect("it is written");
    for (command, file) in [("check", None), ("export", Some(other.as_path()))] {
        let (text, code) = run(data.path(), command, file);
        assert!(code == 3 && text.contains("is damaged"), "{text}");
    }
    std::fs::write(&state, "").expect("it is written");
    let (text, code) = run(data.path(), "check", None);
    assert!(
        code == 3 && text.contains("is damaged at byte 0: it is empty"),
        "{text}"
    );
    std::fs::remove_file(&state).expect("it is removed");
    for (command, file) in [("check", None), ("import", Some(backup.as_path()))] {
        let (text, code) = run(data.path(), command, file);
        let said = "is damaged: it is missing, but there is a journal up to revision 4";
        assert!(code == 3 && text.contains(said), "{text}");
    }

    // A truncated backup is refused.
    let lines = std::fs::read_to_string(&backup).expect("a backup");
    let cut: String = lines.lines().take(3).map(|line| format!("{line}\n")).collect();
    std::fs::write(&backup, cut).expect("it is written");
    let empty = tempfile::tempdir().expect("a directory");
    let (text, code) = run(empty.path(), "import", Some(&backup));
    assert!(code == 3 && text.contains("ends too early"), "{text}");
    assert!(!empty.path().join("store").exists());
}

/// The permissions of a file.
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    let data = path.symlink_metadata().expect("it is there");
    data.permissions().mode() & 0o7777
}

#[test]
fn a_truncated_journal_is_reported_with_its_remedy() {
    let data = filled(200);
    let journal = data.path().join("store/journal-0000000000000001");
    let file = std::fs::File::options().write(true).open(&journal);
    file.and_then(|file| file.set_len(5000)).expect("it is cut");
    let (text, code) = run(data.path(), "check", None);
    let said = format!(
        "{} is damaged at byte 5000: it has been cut to 5000 bytes of 16777216; put back a copy",
        journal.display()
    );
    assert!(code == 3 && text.contains(&said), "{text}");
}

#[test]
fn damaged_pages_are_reported_on_one_line() {
    let data = filled(50);
    let state = data.path().join("store/state.redb");
    let bytes = std::fs::read(&state).expect("a state");
    for at in (0..bytes.len()).step_by(4096) {
        let mut damaged = bytes.clone();
        let end = bytes.len().min(at + 4096);
        damaged[at..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
        std::fs::write(&state, &damaged).expect("it is written");
        let (text, code) = run(data.path(), "check", None);
        // Unused pages may contain anything.
        assert!(code == 0 || code == 3, "page {at}: {text}");
        assert_eq!(text.lines().count(), 1, "page {at}: {text}");
        assert!(!text.contains("panicked"), "page {at}: {text}");
        let now = std::fs::read(&state).expect("a state");
        assert!(now == damaged, "page {at}: the file was changed");
        if at > 64 << 10 {
            break;
        }
    }
}

#[test]
fn a_check_changes_nothing() {
    let data = filled(3);
    let store = data.path().join("store");
    std::fs::remove_file(store.join("lock")).expect("it is removed");
    let names = || {
        let entries = std::fs::read_dir(&store).expect("a directory");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    };
    let before = names();
    let (text, code) = run(data.path(), "check", None);
    assert!(code == 0 && text.starts_with("sound"), "{text}");
    assert_eq!(run(data.path(), "export", Some(Path::new("/dev/null"))).1, 0);
    assert_eq!(names(), before);
}

#[test]
fn exports_and_stores_are_private() {
    let data = filled(3);
    let (backup, link) = (data.path().join("backup"), data.path().join("link"));
    std::fs::write(&backup, "readable").expect("it is written");
    run(data.path(), "export", Some(&backup));
    assert_eq!(mode(&backup), 0o600);
    std::os::unix::fs::symlink(&backup, &link).expect("a link");
    let (text, code) = run(data.path(), "export", Some(&link));
    assert!(code == 3 && text.contains("it is a symbolic link"), "{text}");
    let new = tempfile::tempdir().expect("a directory");
    run(new.path(), "import", Some(&backup));
    for data in [&data, &new] {
        let store = data.path().join("store");
        assert_eq!(mode(&store), 0o700);
        for entry in std::fs::read_dir(&store).expect("a directory") {
            let path = entry.expect("an entry").path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[test]
fn malformed_imports_are_located() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "line 1 of the backup is not as it was written: the backup ends too early"),
        (b"{\"format\":1,\"revision\":}\n", "line 1 of the backup is not as it was written: column 24: "),
        (b"{\"format\":9,\"revision\":1}\n", "format 9"),
        (b"{\"format\":1,\"revision\":18446744073709551615}\n", "out of range"),
        (b"{\"format\":1,\"revision\":5}\n\xff\n", "line 2 of the backup is not as it was written: column "),
        (
            b"{\"format\":1,\"revision\":5}\n{\"key\":\"/a\",\"create_revision\":2,\"mod_revision\":6,\"version\":1,\"value\":\"\"}\n",
            "line 2 of the backup is not as it was written: create revision 2, mod revision 6",
        ),
        (
            b"{\"format\":1,\"revision\":5}\n\
              {\"key\":\"/b\",\"create_revision\":2,\"mod_revision\":2,\"version\":1,\"value\":\"\"}\n\
              {\"key\":\"/b\",\"create_revision\":2,\"mod_revision\":2,\"version\":1,\"value\":\"\"}\n",
            "line 3 of the backup is not as it was written: its key does not come after the one before",
        ),
        (
            b"{\"format\":1,\"revision\":5}\n{\"entries\":0,\"crc32\":1}\n",
            "line 2 of the backup is not as it was written: what came before it has changed",
        ),
    ];
    let data = tempfile::tempdir().expect("a directory");
    let file = data.path().join("backup");
    for (bytes, said) in cases {
        std::fs::write(&file, bytes).expect("it is written");
        let (text, code) = run(data.path(), "import", Some(&file));
        assert!(code == 3 && text.contains(said), "{said}: {text}");
        assert!(!data.path().join("store").exists(), "{said}");
    }
    let (text, code) = run(data.path(), "import", Some(Path::new("/dev/zero")));
    assert!(
        code == 3 && text.contains("line 1 of the backup is not as it was written: it is longer than"),
        "{text}"
    );
}
