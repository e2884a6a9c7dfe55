//! The server under attack: a separate process, measured from outside and stopped by its id.

use crate::AttackError;
use crate::http::Endpoint;
use crate::launch::{self, ProcessLimits};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A process that exceeds this size is killed, so that the machine survives a successful attack.
const KILL_ABOVE_KILOBYTES: u64 = 3 << 20;
/// The time between two samples of a process.
const SAMPLE: Duration = Duration::from_millis(10);
/// The time limit of a server's start.
const START: Duration = Duration::from_secs(60);

/// Resources that a process has used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    /// The largest resident size, in kilobytes.
    pub(crate) peak: u64,
}

/// The resource usage of all processes of an attack: the sum of their times, the maximum of their peaks.
pub(crate) type Totals = Arc<Mutex<Usage>>;

/// Samples a process until it ends; kills it if it grows too large.
pub(crate) struct Monitor {
    totals: Totals,
    cpu_millis: Arc<AtomicU64>,
    peak: Arc<AtomicU64>,
    killed: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    pub(crate) fn start(pid: u32, totals: &Totals) -> Monitor {
        let mut monitor = Monitor {
            totals: totals.clone(),
            cpu_millis: Arc::default(),
            peak: Arc::default(),
            killed: Arc::default(),
            stop: Arc::default(),
            thread: None,
        };
        let (cpu, peak) = (monitor.cpu_millis.clone(), monitor.peak.clone());
        let (killed, stop) = (monitor.killed.clone(), monitor.stop.clone());
        monitor.thread = Some(std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                if let Some(usage) = usage(pid) {
                    let millis = u64::try_from(usage.cpu.as_millis()).unwrap_or(u64::MAX);
                    cpu.fetch_max(millis, Ordering::Relaxed);
                    peak.fetch_max(usage.peak, Ordering::Relaxed);
                    if usage.peak > KILL_ABOVE_KILOBYTES {
                        killed.store(true, Ordering::Relaxed);
                        signal(pid, Signal::KILL);
                    }
                }
                std::thread::sleep(SAMPLE);
            }
        }));
        monitor
    }

    /// The last sample.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            cpu: Duration::from_millis(self.cpu_millis.load(Ordering::Relaxed)),
            peak: self.peak.load(Ordering::Relaxed),
        }
    }

    /// True if the process was killed for its size.
    pub(crate) fn killed(&self) -> bool {
        self.killed.load(Ordering::Relaxed)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let used = self.usage();
        if let Ok(mut totals) = self.totals.lock() {
            totals.cpu += used.cpu;
            totals.peak = totals.peak.max(used.peak);
        }
    }
}

/// A running server.
pub(crate) struct ServerProcess {
    process: Mutex<Child>,
    pid: u32,
    pub(crate) endpoint: Endpoint,
    pub(crate) monitor: Monitor,
    log: PathBuf,
}

impl ServerProcess {
    /// Starts a server on a free loopback port and waits until it serves.
    pub(crate) fn start(
        program: &Path,
        limits: ProcessLimits,
        directory: &Path,
        data: &Path,
        flags: &[&str],
        totals: &Totals,
    ) -> Result<ServerProcess, AttackError> {
        let mut command = launch::command(program, limits)?;
        let log = directory.join("server.log");
        let kubeconfig = directory.join("attack.kubeconfig");
        command
            // Port 0: several attacks may run at once.
            .args(["serve", "--bind-address", "127.0.0.1", "--secure-port", "0"])
            .arg("--data-dir")
            .arg(data)
            .arg("--write-kubeconfig")
            .arg(&kubeconfig)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log)?);
        let mut process = command
            .spawn()
            .map_err(|e| format!("cannot start {command:?}: {e}"))?;
        let pid = process.id();
        let monitor = Monitor::start(pid, totals);
        let output = process.stdout.take();
        // From here on, any failure stops the process.
        let mut server = ServerProcess {
            process: Mutex::new(process),
            pid,
            // Until the kubeconfig exists, the endpoint is a placeholder with the fields that the parser demands.
            endpoint: Endpoint::from_kubeconfig(
                ([127, 0, 0, 1], 0).into(),
                "certificate-authority-data:\ntoken: -",
            )?,
            monitor,
            log,
        };
        let mut lines = BufReader::new(output.ok_or("no output")?).lines();
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // Reads to the end, so that the server never blocks on its output.
            while let Some(Ok(line)) = lines.next() {
                // The receiver is gone once the server serves.
                let _ = send.send(line);
            }
        });
        let begin = Instant::now();
        let mut address = None;
        loop {
            let left = START.saturating_sub(begin.elapsed());
            let line = receive.recv_timeout(left).map_err(|_| {
                let log: String = server.log().lines().take(5).collect::<Vec<_>>().join(" / ");
                format!("the server does not serve: {log}")
            })?;
            if let Some(text) = line.strip_prefix("serving on https://") {
                address = Some(text.parse()?);
            }
            // The server prints the kubeconfig last, so it exists and is complete by then.
            if line.starts_with("kubeconfig: ") {
                break;
            }
        }
        let address = address.ok_or("the server names no address")?;
        server.endpoint = Endpoint::from_kubeconfig(address, &std::fs::read_to_string(&kubeconfig)?)?;
        Ok(server)
    }

    pub(crate) fn usage(&self) -> Usage {
        self.monitor.usage()
    }

    /// The log of the server.
    pub(crate) fn log(&self) -> String {
        std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, which: Signal) {
        signal(self.pid, which);
    }

    /// True while the process runs.
    pub(crate) fn runs(&self) -> bool {
        match self.process.lock() {
            Ok(mut process) => matches!(process.try_wait(), Ok(None)),
            Err(_) => false,
        }
    }

    /// The number of files that the process has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid)).map_or(0, Iterator::count)
    }

    /// Waits for its end, up to a limit.
    pub(crate) fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        while begin.elapsed() < limit {
            // A poisoned lock means that another thread has panicked; then the status is unknown.
            if let Ok(Some(status)) = self.process.lock().ok()?.try_wait() {
                return Some(status);
            }
            std::thread::sleep(SAMPLE);
        }
        None
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Ok(mut process) = self.process.lock() {
            // A process that has ended by itself needs no stop.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Sends a signal to one of our processes.
fn signal(pid: u32, which: Signal) {
    let id = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(id) = id {
        // The process may have ended.
        let _ = kill_process(id, which);
    }
}

/// Runs a program with a time limit; returns its output, exit status and resource usage.
pub(crate) fn run_limited(
    command: &mut Command,
    limit: Duration,
    totals: &Totals,
) -> Result<(Option<ExitStatus>, String, Usage), AttackError> {
    // A file instead of pipes: no thread has to read while the process runs.
    let output = tempfile::tempfile()?;
    command.stdout(output.try_clone()?).stderr(output.try_clone()?);
    let mut process = command
        .spawn()
        .map_err(|e| format!("cannot start {command:?}: {e}"))?;
    let monitor = Monitor::start(process.id(), totals);
    let begin = Instant::now();
    let status = loop {
        match process.try_wait()? {
            Some(status) => break Some(status),
            None if begin.elapsed() > limit => {
                let _ = process.kill();
                let _ = process.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    if monitor.killed() {
        return Err("killed: it took more than 3 GB".into());
    }
    let mut output = output;
    std::io::Seek::rewind(&mut output)?;
    let mut text = Vec::new();
    // A program under attack may print without end.
    std::io::Read::read_to_end(&mut std::io::Read::take(output, 1 << 20), &mut text)?;
    Ok((
        status,
        String::from_utf8_lossy(&text).into_owned(),
        monitor.usage(),
    ))
}

/// Reads the resource usage of a process from `/proc`.
fn usage(pid: u32) -> Option<Usage> {
    // Fields 14 and 15 of the line, counted from the name in parentheses, in hundredths of a second.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.rsplit(')').next()?.split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|t| t.parse::<u64>().ok())
        .sum();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(Usage {
        cpu: Duration::from_millis(ticks * 10),
        peak: peak.trim().trim_end_matches(" kB").parse().ok()?,
    })
}
