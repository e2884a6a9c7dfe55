//! Damaged, truncated and unbounded files; full and read-only disks; permissions of stored files.

use crate::AttackError;
use crate::cluster::{CONFIG_MAPS, post};
use crate::http::{ATTACKER, HttpRequest};
use crate::launch::{self, ProcessLimits};
use crate::plan::{Attack, Scene};
use crate::server::{ServerProcess, run_limited};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use rustix::process::Signal;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The number of objects in a store before it is damaged.
const OBJECTS: usize = 200;
/// The maximum peak memory of a command that reads endless input, in kilobytes.
const MAX_PEAK: u64 = 512 << 10;

/// Creates a store with objects and kills its server at once.
fn killed_store(scene: &Scene<'_>) -> Result<(), AttackError> {
    let server = scene.start(&[])?;
    fill(&server, scene, "c", OBJECTS)?;
    // No shutdown: only the journal has the last writes.
    server.signal(Signal::KILL);
    server
        .wait(Duration::from_secs(10))
        .ok_or("the server survives SIGKILL")?;
    Ok(())
}

fn fill(server: &ServerProcess, scene: &Scene<'_>, name: &str, n: usize) -> Result<(), AttackError> {
    let mut connection = server.endpoint.connect(ATTACKER, scene.left())?;
    for i in 0..n {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("{name}{i}")},
            "data": {"secret": "x".repeat(200)}});
        connection
            .ask(
                &server.endpoint.bytes(&post(CONFIG_MAPS, &object)),
                scene.deadline,
            )?
            .expect(&[201])?;
    }
    Ok(())
}

/// All files below a directory.
fn files(directory: &Path) -> Result<Vec<PathBuf>, AttackError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The files of the journal.
fn journal(scene: &Scene<'_>) -> Result<Vec<PathBuf>, AttackError> {
    let all = files(&scene.data())?;
    let found: Vec<PathBuf> = all
        .iter()
        .filter(|path| {
            path.to_string_lossy().contains("journal") && path.metadata().is_ok_and(|m| m.len() > 0)
        })
        .cloned()
        .collect();
    if found.is_empty() {
        return Err(format!("no journal among {all:?}").into());
    }
    Ok(found)
}

/// Damages a store and requires that the damage is detected: `store check` fails and the server does not
/// start, unless everything is still intact.
fn damaged(
    scene: &Scene<'_>,
    damage: impl Fn(&Scene<'_>) -> Result<(), AttackError>,
) -> Result<String, AttackError> {
    killed_store(scene)?;
    damage(scene)?;
    let data = scene.data();
    let data = data.to_str().ok_or("a path that is no text")?;
    let (status, text, _) = scene.command(&["store", "--data-dir", data, "check"])?;
    let sound = status.is_some_and(|s| s.success());
    no_panic(&text)?;
    let served = match scene.start(&[]) {
        // A server that refuses to start has detected the damage.
        Err(_) => None,
        Ok(server) => {
            // The first and the last object represent the others.
            let list = server
                .endpoint
                .ask(&HttpRequest::get(format!("{CONFIG_MAPS}?limit=1")), scene.left())?;
            let text = list.body_text();
            let last = server.endpoint.ask(
                &HttpRequest::get(format!("{CONFIG_MAPS}/c{}", OBJECTS - 1)),
                scene.left(),
            )?;
            Some(last.status == 200 && text.contains("\"c0\""))
        }
    };
    let first = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(60)
        .collect::<String>();
    // What was acknowledged must be readable, or the loss must be reported.
    match (sound, served) {
        (true, Some(true)) => Ok("nothing lost".to_owned()),
        (false, None) => Ok(format!("refused: {first}")),
        (false, Some(true)) => Ok(format!("check: {first}; nothing lost")),
        (true, None) => Err("`store check` finds nothing, and the server does not start".into()),
        (_, Some(false)) => {
            Err(format!("the server starts without what was acknowledged; check: {first}").into())
        }
    }
}

fn no_panic(text: &str) -> Result<(), AttackError> {
    if text.contains("panicked at") || text.contains("RUST_BACKTRACE") {
        return Err(format!(
            "a panic instead of an error: {}",
            text.lines().next().unwrap_or_default()
        )
        .into());
    }
    Ok(())
}

/// Resizes each file of the journal.
fn resize(scene: &Scene<'_>, length: impl Fn(u64) -> u64) -> Result<(), AttackError> {
    for path in journal(scene)? {
        let file = OpenOptions::new().write(true).open(path)?;
        let now = file.metadata()?.len();
        file.set_len(length(now))?;
    }
    Ok(())
}

/// Inverts bytes in the middle of files whose names contain a word.
fn invert(scene: &Scene<'_>, word: &str, from: u64, n: usize) -> Result<(), AttackError> {
    for path in files(&scene.data())?
        .iter()
        .filter(|p| p.to_string_lossy().contains(word))
    {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.metadata()?.len() < from {
            continue;
        }
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = vec![0; n];
        let n = file.read(&mut bytes)?;
        for byte in &mut bytes {
            *byte = !*byte;
        }
        file.seek(SeekFrom::Start(from))?;
        file.write_all(bytes.get(..n).unwrap_or_default())?;
    }
    Ok(())
}

/// Checks that everything that the server and `store export` write is private to its owner.
fn modes(scene: &Scene<'_>) -> Result<String, AttackError> {
    killed_store(scene)?;
    let data = scene.data();
    let export = scene.directory.join("export.jsonl");
    let words = [data.to_str(), export.to_str()];
    let [Some(data_text), Some(export_text)] = words else {
        return Err("a path that is no text".into());
    };
    let (status, text, _) = scene.command(&["store", "--data-dir", data_text, "export", export_text])?;
    if !status.is_some_and(|s| s.success()) {
        return Err(format!("the export failed: {text}").into());
    }
    let mut all = files(&data)?;
    all.extend([export, data.clone(), scene.directory.join("attack.kubeconfig")]);
    // `files` lists no directories, whose modes matter as well.
    all.extend(
        std::fs::read_dir(&data)?
            .filter_map(|e| e.ok().map(|e| e.path()))
            .filter(|p| p.is_dir()),
    );
    let open: Vec<String> = all
        .iter()
        .filter_map(|path| {
            let mode = path.metadata().ok()?.permissions().mode() & 0o777;
            // Certificates are public.
            let public = path.extension().is_some_and(|e| e == "crt");
            (mode & 0o077 != 0 && !public).then(|| {
                format!(
                    "{mode:o} {}",
                    path.file_name().unwrap_or_default().to_string_lossy()
                )
            })
        })
        .collect();
    if open.is_empty() {
        Ok(format!("{} files", all.len()))
    } else {
        Err(format!("others may read: {}", open.join(", ")).into())
    }
}

/// An in-memory file system, mounted until dropped.
struct Mount(PathBuf);

impl Mount {
    fn new(directory: &Path, options: &str) -> Result<Mount, AttackError> {
        // File systems can be mounted by root only, so the attack is skipped elsewhere.
        std::fs::create_dir_all(directory)?;
        let options = std::ffi::CString::new(options)?;
        mount(
            "tmpfs",
            directory,
            "tmpfs",
            MountFlags::NOSUID | MountFlags::NODEV,
            options.as_c_str(),
        )
        .map_err(|e| format!("cannot mount: {e}"))?;
        Ok(Mount(directory.to_path_buf()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Detached, because a process may still have files open in it.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// The outcome if file systems cannot be mounted.
const NO_MOUNT: &str = "skipped: file systems cannot be mounted here";

/// An incompressible text.
fn incompressible(n: usize) -> String {
    // A linear congruential generator: the content does not matter, as long as no compressor helps.
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + u8::try_from(state >> 58).unwrap_or(0))
    };
    (0..n)
        .map(|_| next())
        // A backslash would be escaped in JSON, which changes the length.
        .map(|c| if c == '\\' { 'x' } else { c })
        .collect()
}

/// Fills the disk: writes fail with an error, reads continue, `/readyz` fails, and the server recovers once
/// there is room.
fn full_disk(scene: &Scene<'_>) -> Result<String, AttackError> {
    let Ok(_mounted) = Mount::new(&scene.data(), "size=96m") else {
        return Ok(NO_MOUNT.to_owned());
    };
    let server = scene.start(&[])?;
    let ask = |request: &HttpRequest| server.endpoint.ask(request, scene.left());
    fill(&server, scene, "c", 5)?;
    let filler = scene.data().join("filler");
    let mut file = File::create(&filler)?;
    // In large steps first, then to the last block.
    while file.write_all(&[0; 64 << 10]).is_ok() {}
    while file.write_all(&[0; 512]).is_ok() {}
    drop(file);
    // The journal's current segment may still have room.
    let mut acknowledged = 5;
    let refused = loop {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{acknowledged}")},
            "data": {"a": incompressible(900_000)}});
        let answer = ask(&post(CONFIG_MAPS, &object))?;
        match answer.status {
            201 => acknowledged += 1,
            status => break status,
        }
        if acknowledged > 500 {
            return Err("the disk does not fill".into());
        }
    };
    if refused < 500 {
        return Err(format!("{refused} to a write on a full disk").into());
    }
    let (read, ready) = (
        ask(&HttpRequest::get(format!("{CONFIG_MAPS}/c0")))?.status,
        ask(&HttpRequest::get("/readyz"))?.status,
    );
    if read != 200 {
        return Err(format!("{read} to a read on a full disk").into());
    }
    if ready == 200 {
        return Err("/readyz is 200 while writes fail".into());
    }
    std::fs::remove_file(&filler)?;
    let begin = Instant::now();
    while ask(&HttpRequest::get("/readyz"))?.status != 200 {
        if begin.elapsed() > Duration::from_secs(20) {
            return Err("/readyz still fails when there is room again".into());
        }
        scene.sleep(Duration::from_millis(100));
    }
    let again = ask(&post(
        CONFIG_MAPS,
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "again"}}),
    ))?
    .status;
    if again != 201 {
        return Err(format!("{again} to a write when there is room again").into());
    }
    drop(server);
    // A restart proves that the refused write has not damaged the journal.
    let server = scene.start(&[])?;
    let last = HttpRequest::get(format!("{CONFIG_MAPS}/c{}", acknowledged - 1));
    server.endpoint.ask(&last, scene.left())?.expect(&[200])?;
    Ok(format!("{refused} when full, {acknowledged} writes kept"))
}

/// Runs `store check` on a read-only file system.
fn read_only(scene: &Scene<'_>) -> Result<String, AttackError> {
    let Ok(mounted) = Mount::new(&scene.data(), "size=256m") else {
        return Ok(NO_MOUNT.to_owned());
    };
    killed_store(scene)?;
    mount_remount(&mounted.0, MountFlags::RDONLY, "")?;
    let data = scene.data();
    let (status, text, _) = scene.command(&[
        "store",
        "--data-dir",
        data.to_str().ok_or("a path that is no text")?,
        "check",
    ])?;
    if status.is_some_and(|s| s.success()) {
        Ok(text.lines().next().unwrap_or_default().chars().take(60).collect())
    } else {
        Err(format!("`store check` fails: {text}").into())
    }
}

/// A command that reads endless input must report it in time and with bounded memory.
fn endless(scene: &Scene<'_>, arguments: &[&str]) -> Result<String, AttackError> {
    let (status, text, used) = scene.command(arguments)?;
    judge_endless(status, &text, used.peak)
}

fn judge_endless(
    status: Option<std::process::ExitStatus>,
    text: &str,
    peak: u64,
) -> Result<String, AttackError> {
    // Without a status, the time limit has ended it.
    let status = status.ok_or("it reads on and on")?;
    if peak > MAX_PEAK {
        return Err(format!("it took {} MB", peak >> 10).into());
    }
    if status.success() {
        return Err("it finds nothing wrong".into());
    }
    no_panic(text)?;
    if !text.contains("--") {
        return Err(format!("the message names no flag: {text}").into());
    }
    let code = status
        .code()
        .map_or_else(|| "a signal".to_owned(), |code| code.to_string());
    Ok(format!("exit {code}, {} MB", peak >> 10))
}

/// A pipe whose writer never stops.
fn fifo(scene: &Scene<'_>) -> Result<String, AttackError> {
    let path = scene.directory.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status()?;
    if !made.success() {
        return Err("mkfifo failed".into());
    }
    let to = path.clone();
    std::thread::spawn(move || {
        // Opening succeeds once the reader opens, too; writing ends with the reader.
        if let Ok(mut pipe) = OpenOptions::new().write(true).open(to) {
            while pipe.write_all(&[b' '; 64 << 10]).is_ok() {}
        }
    });
    let mut command = launch::command(scene.program, ProcessLimits::default())?;
    let (status, text, used) = run_limited(command.arg("validate").arg(&path), scene.left(), &scene.totals)?;
    judge_endless(status, &text, used.peak)
}

/// The kubeconfig of an in-memory server is removed when the server stops.
fn temporary_kubeconfig(scene: &Scene<'_>) -> Result<String, AttackError> {
    let mut command = launch::command(scene.program, ProcessLimits::default())?;
    command
        .args(["serve", "--in-memory", "--secure-port", "0"])
        .env("TMPDIR", scene.directory)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let mut process = command.spawn()?;
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(process.stdout.take().ok_or("no output")?));
    let path = lines.find_map(|line| line.ok()?.strip_prefix("kubeconfig: ").map(PathBuf::from));
    let there = path.as_ref().is_some_and(|path| path.exists());
    let mode = path
        .as_ref()
        .and_then(|p| p.metadata().ok())
        .map_or(0, |m| m.permissions().mode() & 0o777);
    let id = i32::try_from(process.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        let _ = rustix::process::kill_process(id, Signal::TERM);
    }
    let begin = Instant::now();
    while process.try_wait()?.is_none() {
        if begin.elapsed() > Duration::from_secs(20) {
            // SIGKILL after a while, so that a hanging server fails the attack and does not block the run.
            let _ = process.kill();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let path = path.ok_or("the server names no kubeconfig")?;
    if !there {
        return Err("there was no kubeconfig".into());
    }
    if mode & 0o077 != 0 {
        return Err(format!("others may read the kubeconfig: {mode:o}").into());
    }
    if path.exists() {
        return Err("the kubeconfig stays behind".into());
    }
    Ok("removed".to_owned())
}

/// Imports of endless files, or of files that claim to be.
fn import(
    scene: &Scene<'_>,
    make: impl Fn(&mut File) -> Result<(), AttackError>,
) -> Result<String, AttackError> {
    let path = scene.directory.join("import.jsonl");
    make(&mut File::create(&path)?)?;
    let (data, file) = (scene.data(), path);
    let (Some(data), Some(file)) = (data.to_str(), file.to_str()) else {
        return Err("a path that is no text".into());
    };
    let (status, text, used) = scene.command(&["store", "--data-dir", data, "import", file])?;
    let status = status.ok_or("it reads on and on")?;
    no_panic(&text)?;
    if status.success() {
        return Err("it was imported".into());
    }
    if used.peak > MAX_PEAK {
        return Err(format!("it took {} MB", used.peak >> 10).into());
    }
    Ok(format!("refused, {} MB", used.peak >> 10))
}

pub(crate) fn table() -> Vec<Attack> {
    vec![
        Attack::offline(
            "journal/truncated",
            "the journal ends after 5 000 bytes",
            |scene| damaged(scene, |scene| resize(scene, |_| 5_000)),
        ),
        Attack::offline(
            "journal/truncated-half",
            "the journal ends in its middle",
            |scene| damaged(scene, |scene| resize(scene, |n| n / 2)),
        ),
        Attack::offline(
            "journal/one-byte-short",
            "the journal lacks its last byte",
            |scene| damaged(scene, |scene| resize(scene, |n| n - 1)),
        ),
        Attack::offline("journal/empty", "the journal is empty", |scene| {
            damaged(scene, |scene| resize(scene, |_| 0))
        }),
        Attack::offline("journal/longer", "the journal has 4 096 more bytes", |scene| {
            damaged(scene, |scene| resize(scene, |n| n + 4_096))
        }),
        Attack::offline("journal/missing", "the journal is gone", |scene| {
            damaged(scene, |scene| {
                Ok(journal(scene)?.iter().try_for_each(std::fs::remove_file)?)
            })
        }),
        Attack::offline(
            "journal/inverted",
            "1 000 bytes of the journal are inverted",
            |scene| damaged(scene, |scene| invert(scene, "journal", 6_000, 1_000)),
        ),
        Attack::offline("journal/older", "the journal of an earlier time", |scene| {
            let server = scene.start(&[])?;
            fill(&server, scene, "early", 20)?;
            server.signal(Signal::KILL);
            server
                .wait(Duration::from_secs(10))
                .ok_or("the server survives SIGKILL")?;
            drop(server);
            let saved: Vec<(PathBuf, Vec<u8>)> = journal(scene)?
                .into_iter()
                .map(|path| std::fs::read(&path).map(|bytes| (path, bytes)))
                .collect::<Result<_, _>>()?;
            // A start and a clean shutdown checkpoint everything; later journals begin there.
            damaged(scene, |scene| {
                let server = scene.start(&[])?;
                server.signal(Signal::TERM);
                server
                    .wait(Duration::from_secs(20))
                    .ok_or("the server does not end")?;
                drop(server);
                for path in files(&scene.data())?
                    .iter()
                    .filter(|p| p.to_string_lossy().contains("journal"))
                {
                    std::fs::remove_file(path)?;
                }
                for (path, bytes) in &saved {
                    std::fs::write(path, bytes)?;
                }
                Ok(())
            })
        }),
        Attack::offline(
            "store/damaged-page",
            "64 kB of the database are inverted",
            |scene| damaged(scene, |scene| invert(scene, "redb", 4_096, 64 << 10)),
        ),
        Attack::offline(
            "store/damaged-header",
            "the head of the database is inverted",
            |scene| damaged(scene, |scene| invert(scene, "redb", 0, 512)),
        ),
        Attack::offline("store/modes", "the modes of all files", modes),
        Attack::offline(
            "store/read-only",
            "`store check` on a read-only file system",
            read_only,
        ),
        Attack::offline("store/full-disk", "a disk without room", full_disk),
        Attack::offline(
            "store/import-zeros",
            "an import of a sparse file of 4 GB",
            |scene| import(scene, |file| Ok(file.set_len(4 << 30)?)),
        ),
        Attack::offline(
            "store/import-deep",
            "an import of a line of 2 000 000 brackets",
            |scene| import(scene, |file| Ok(file.write_all(&vec![b'['; 2_000_000])?)),
        ),
        Attack::offline("cli/dev-zero", "validate /dev/zero", |scene| {
            endless(scene, &["validate", "/dev/zero"])
        }),
        Attack::offline("cli/dev-zero-definitions", "validate --crds /dev/zero", |scene| {
            endless(scene, &["validate", "--crds", "/dev/zero", "/dev/null"])
        }),
        Attack::offline("cli/lint-dev-zero", "lint /dev/zero", |scene| {
            endless(scene, &["lint", "/dev/zero"])
        }),
        Attack::offline("cli/sparse-file", "validate a sparse file of 4 GB", |scene| {
            let path = scene.directory.join("sparse.yaml");
            File::create(&path)?.set_len(4 << 30)?;
            endless(
                scene,
                &["validate", path.to_str().ok_or("a path that is no text")?],
            )
        }),
        Attack::offline("cli/fifo", "validate a pipe that never ends", fifo),
        Attack::offline(
            "cli/in-memory-kubeconfig",
            "the kubeconfig of serve --in-memory after its end",
            temporary_kubeconfig,
        ),
    ]
}
