//! The server under load: a separate process, stopped by its id.

use crate::Failure;
use crate::client::Endpoint;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A running server.
pub struct Server {
    processes: Processes,
    pub endpoint: Endpoint,
    /// The time from the start of the process to the first success of `/readyz`.
    pub ready_after: Duration,
    /// True if the server's own metrics count requests.
    has_metrics: bool,
}

/// The processes of a server, killed when they are dropped.
pub struct Processes {
    children: Vec<Child>,
    /// Kept open, because the server may still print.
    output: Option<std::io::Lines<BufReader<ChildStdout>>>,
}

impl Processes {
    pub fn new() -> Processes {
        Processes {
            children: Vec::new(),
            output: None,
        }
    }

    pub fn push(&mut self, child: Child) {
        self.children.push(child);
    }

    /// Returns the sum of a figure of all processes.
    fn sum<T: std::iter::Sum>(&self, figure: impl Fn(u32) -> T) -> T {
        self.children.iter().map(|child| figure(child.id())).sum()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.children {
            // A process that has ended by itself needs no stop.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Callgrind, which counts the instructions of a process.
pub struct Profiler {
    /// The profile; the n-th dump has its number appended.
    output: PathBuf,
    dumps: AtomicUsize,
}

impl Profiler {
    pub fn new(directory: &Path) -> Profiler {
        Profiler {
            output: directory.join("callgrind"),
            dumps: AtomicUsize::new(0),
        }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("valgrind");
        command
            .arg("--tool=callgrind")
            .arg(format!("--callgrind-out-file={}", self.output.display()))
            .arg(program)
            // Without this setting, the program sets it and restarts itself, outside of the profiler.
            .env("MIMALLOC_PURGE_DELAY", "1");
        command
    }

    /// Writes the profile since the last dump, and returns its path.
    pub fn dump(&self, server: &Server) -> Result<PathBuf, Failure> {
        for child in &server.processes.children {
            let control = Command::new("callgrind_control")
                .args(["--dump", &child.id().to_string()])
                .output()?;
            if !control.status.success() {
                return Err(String::from_utf8_lossy(&control.stderr).into());
            }
        }
        let n = self.dumps.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(self.output.with_extension(n.to_string()))
    }

    /// The instructions of a profile.
    pub fn total(profile: &Path) -> Result<f64, Failure> {
        let text = std::fs::read_to_string(profile)?;
        let total = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
        Ok(total.ok_or("a profile without a total")?.trim().parse()?)
    }
}

impl Server {
    /// Starts a server on a free loopback port with durable storage in a directory, and waits until it is ready.
    pub async fn start(program: &Path, directory: &Path) -> Result<Server, Failure> {
        Server::start_under(None, program, directory).await
    }

    /// The same, under a profiler.
    pub async fn start_under(
        profiler: Option<&Profiler>,
        program: &Path,
        directory: &Path,
    ) -> Result<Server, Failure> {
        let kubeconfig = directory.join("bench.kubeconfig");
        let begin = Instant::now();
        let mut command =
            profiler.map_or_else(|| Command::new(program), |profiler| profiler.command(program));
        let mut process = command
            .args(["serve", "--bind-address", "127.0.0.1", "--secure-port", "0"])
            .arg("--data-dir")
            .arg(directory)
            .arg("--write-kubeconfig")
            .arg(&kubeconfig)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| {
                format!(
                    "{}: {e}; build it with `cargo build --release`",
                    program.display()
                )
            })?;
        let mut lines = BufReader::new(process.stdout.take().ok_or("no output")?).lines();
        let mut processes = Processes::new();
        processes.push(process);
        let address = loop {
            let line = lines.next().ok_or("the server ended before it was ready")??;
            if let Some(address) = line.strip_prefix("serving on https://") {
                break address.parse()?;
            }
        };
        let endpoint = Endpoint::from_kubeconfig(address, &std::fs::read_to_string(&kubeconfig)?)?;
        let ready = endpoint.get("/readyz");
        // Without a pause: the time until it is ready is measured.
        while endpoint.connect().await?.send(&ready).await?.status != 200 {}
        processes.output = Some(lines);
        Ok(Server {
            processes,
            endpoint,
            ready_after: begin.elapsed(),
            has_metrics: true,
        })
    }

    /// A server of other processes, whose metrics are not read.
    pub fn of_peer(processes: Processes, endpoint: Endpoint, ready_after: Duration) -> Server {
        Server {
            processes,
            endpoint,
            ready_after,
            has_metrics: false,
        }
    }

    /// The processor time used.
    pub fn cpu(&self) -> Duration {
        let ticks: u64 = self.processes.sum(|id| {
            // Fields 14 and 15 of the line, counted from the name in parentheses, in hundredths of a second.
            let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
            let times = fields.skip(11).take(2);
            times.filter_map(|t| t.parse::<u64>().ok()).sum::<u64>()
        });
        Duration::from_millis(ticks * 10)
    }

    /// The number of requests answered within 5 ms (the target at half rate, and a bucket of its metrics),
    /// and the total. Watches do not count.
    pub async fn answered(&self) -> Result<(f64, f64), Failure> {
        if !self.has_metrics {
            return Ok((0.0, 0.0));
        }
        let mut client = self.endpoint.connect().await?;
        let answer = client.send(&self.endpoint.get("/metrics")).await?.expect(200)?;
        let text = String::from_utf8_lossy(answer.body).into_owned();
        let sum = |name: &str, label: &str| -> f64 {
            text.lines()
                .filter_map(|line| {
                    line.strip_prefix("apiserver_request_duration_seconds_")?
                        .strip_prefix(name)
                })
                // Watches last until they are closed, so their durations say nothing.
                .filter(|line| line.contains(label) && !line.contains("\"WATCH\""))
                .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                .sum()
        };
        Ok((sum("bucket{", "le=\"0.005\""), sum("count{", "")))
    }

    /// The resident memory in megabytes.
    pub fn rss(&self) -> f64 {
        let kilobytes: f64 = self.processes.sum(|id| {
            let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"));
            let number = line.unwrap_or_default().trim().trim_end_matches(" kB");
            number.parse::<f64>().unwrap_or_default()
        });
        kilobytes / 1024.0
    }
}
