//! Runs one attack, measures it, and judges it against the bounds.

use crate::AttackError;
use crate::http::{ATTACKER, HttpRequest, HttpResponse, RawConnection};
use crate::plan::{Attack, Scene, Size, Strike};
use crate::probe::{Probe, Waits};
use crate::server::{ServerProcess, Totals, Usage};
use crate::table::TableRow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The maximum 99th percentile of the second client's waits.
const MAX_P99: Duration = Duration::from_millis(50);
/// The maximum resident size of the server, in kilobytes.
const MAX_PEAK: u64 = 512 << 10;
/// The maximum size of an error body.
const MAX_ERROR_BYTES: usize = 4 << 20;
/// Statuses that are always acceptable, because several connections send in parallel: conflict, too many
/// requests, timeout.
const BUSY: &[u16] = &[409, 429, 504];
/// The server's request timeout: short, so that attacks that reach it end soon.
const REQUEST_TIMEOUT: &str = "10s";
/// The number of connections that prepare an attack.
const PREPARING: usize = 16;
/// The number of different requests that are sent regardless of time.
const AT_LEAST: usize = 10;
/// The time within which the server must respond again after an attack.
const RECOVERY: Duration = Duration::from_secs(5);

/// Settings of a run.
pub(crate) struct RunOptions {
    pub(crate) binary: PathBuf,
    pub(crate) size: Size,
    /// The time limit of one attack.
    pub(crate) limit: Duration,
}

pub(crate) enum AttackVerdict {
    Held,
    /// The bounds that were broken.
    Broken(Vec<String>),
}

/// The result of an attack.
pub(crate) struct AttackOutcome {
    used: Usage,
    waits: Waits,
    answer: String,
    pub(crate) verdict: AttackVerdict,
}

impl AttackOutcome {
    /// The row of the table in the documentation; a broken bound is bold.
    pub(crate) fn row(&self, attack: &Attack) -> TableRow {
        let answer = match &self.verdict {
            AttackVerdict::Held => self.answer.clone(),
            AttackVerdict::Broken(why) => format!("**{}**", why.join("; ").replace('\n', " ")),
        };
        TableRow {
            name: attack.name,
            request: attack.request,
            measured: [
                format!("{:.2}", self.used.cpu.as_secs_f64()),
                (self.used.peak / 1024).to_string(),
                millis(self.waits.p99(), &self.waits),
                millis(self.waits.longest(), &self.waits),
                answer.replace('|', "\\|"),
            ],
        }
    }

    /// The line of the report.
    pub(crate) fn line(&self, attack: &Attack) -> String {
        let cpu = self.used.cpu.as_secs_f64();
        let peak = self.used.peak / 1024;
        let (p99, longest) = (self.waits.p99().as_millis(), self.waits.longest().as_millis());
        let verdict = match &self.verdict {
            AttackVerdict::Held => "ok".to_owned(),
            AttackVerdict::Broken(why) => format!("BROKEN: {}", why.join("; ").replace('\n', " ")),
        };
        let (name, request, answer) = (attack.name, attack.request, &self.answer);
        format!(
            "{name:44} CPU {cpu:6.2} s  peak {peak:5} MB  p99 {p99:5} ms  longest {longest:6} ms  {answer:24} {verdict}  [{request}]"
        )
    }
}

/// A number of milliseconds, in groups of three digits; a dash if the attack has no second client.
fn millis(wait: Duration, waits: &Waits) -> String {
    if waits.count() == 0 {
        return "–".to_owned();
    }
    let digits = wait.as_millis().to_string();
    let head = digits.len() % 3;
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && i % 3 == head {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// Runs an attack on a server of its own.
pub(crate) fn run(attack: &Attack, options: &RunOptions) -> AttackOutcome {
    let mut outcome = AttackOutcome {
        used: Usage::default(),
        waits: Waits::default(),
        answer: String::new(),
        verdict: AttackVerdict::Held,
    };
    let mut broken = Vec::new();
    match measure(attack, options, &mut outcome) {
        Ok(answer) => outcome.answer = answer,
        Err(e) => broken.push(e.to_string()),
    }
    // Bounds are judged even after an error: a killed server has broken more than one.
    if outcome.used.peak > MAX_PEAK {
        broken.push(format!("peak over {} MB", MAX_PEAK / 1024));
    }
    // Short runs share the processors, so their waiting times say nothing.
    if options.size == Size::Full && outcome.waits.p99() >= MAX_P99 {
        broken.push(format!("p99 over {} ms", MAX_P99.as_millis()));
    }
    if outcome.waits.failures > 0 {
        broken.push(format!(
            "the second client failed {} of {} times: {}",
            outcome.waits.failures,
            outcome.waits.count(),
            outcome.waits.failure
        ));
    }
    if !broken.is_empty() {
        outcome.verdict = AttackVerdict::Broken(broken);
    }
    outcome
}

fn measure(
    attack: &Attack,
    options: &RunOptions,
    outcome: &mut AttackOutcome,
) -> Result<String, AttackError> {
    let directory = tempfile::Builder::new().prefix("scantling-attack-").tempdir()?;
    let window = options
        .size
        .pick(Duration::from_millis(1500), Duration::from_millis(100));
    let mut scene = Scene {
        program: &options.binary,
        directory: directory.path(),
        size: options.size,
        deadline: Instant::now() + options.limit,
        window,
        server: None,
        totals: Totals::default(),
    };
    if let Strike::Offline(program) = &attack.strike {
        let struck = program(&scene);
        outcome.used = scene.totals.lock().map(|used| *used).unwrap_or_default();
        return struck;
    }
    let mut flags = vec!["--request-timeout", REQUEST_TIMEOUT];
    flags.extend(attack.flags);
    let server = ServerProcess::start(
        &options.binary,
        attack.limits,
        directory.path(),
        &scene.data(),
        &flags,
        &scene.totals,
    )?;
    let prepared = prepare(attack, options, &server);
    // Taken before the result is judged, so that a failed preparation shows what it used.
    outcome.used = server.usage();
    prepared?;
    let requests: Vec<Vec<u8>> = match &attack.strike {
        Strike::Requests(make) => make(options.size)
            .iter()
            .map(|r| server.endpoint.bytes(r))
            .collect(),
        Strike::Program(_) | Strike::Offline(_) => Vec::new(),
    };
    // The preparation does not count towards the limit of the attack.
    scene.deadline = Instant::now() + options.limit;
    scene.server = Some(&server);
    let before = server.usage().cpu;
    // The second client starts before the attack, so that its first connection is not part of the measurement.
    let probe = Probe::start(&server.endpoint);
    if !probe.wait_until_ready() {
        return Err("the second client was not answered before the attack".into());
    }
    let struck = match &attack.strike {
        Strike::Requests(_) => send_requests(attack, &scene, &server, &requests),
        Strike::Program(program) | Strike::Offline(program) => program(&scene),
    };
    // The last request of the second client belongs to the measurement, however long it takes within the
    // limit.
    probe.stop();
    // After the deadline, the server has some time to answer what it has accepted.
    let end = scene.deadline.max(Instant::now()) + RECOVERY;
    while !probe.ended() && server.runs() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    let unanswered = !probe.ended();
    let ended = !server.runs();
    // One last sample of the resource usage.
    std::thread::sleep(Duration::from_millis(20));
    outcome.used = server.usage();
    outcome.used.cpu = outcome.used.cpu.saturating_sub(before);
    let killed = server.monitor.killed();
    // Some programs stop the server on purpose.
    let expected_end = matches!(attack.strike, Strike::Program(_));
    // The server ends here, so the second client cannot wait for it any longer.
    drop(server);
    outcome.waits = probe.finish();
    if killed {
        return Err("killed: the server took more than 3 GB".into());
    }
    if unanswered {
        return Err("the second client was not answered at all".into());
    }
    let text = struck?;
    if ended && !expected_end {
        return Err("the server ended".into());
    }
    Ok(text)
}

/// Sends the preparation of an attack. Its requests are independent of each other, so several connections
/// send them and the disk flushes them together.
fn prepare(attack: &Attack, options: &RunOptions, server: &ServerProcess) -> Result<(), AttackError> {
    for preparation in &attack.prepare {
        let right: &[u16] = if preparation.may_be_refused {
            &[201, 422]
        } else {
            &[200, 201, 202]
        };
        let requests = (preparation.make)(options.size);
        let deadline = Instant::now() + options.limit;
        let send = |requests: &[HttpRequest]| -> Result<(), AttackError> {
            let mut connection = server.endpoint.connect(ATTACKER, options.limit)?;
            for request in requests {
                let answered = connection
                    .ask(&server.endpoint.bytes(request), deadline)
                    .and_then(|answer| answer.expect(right));
                answered.map_err(|e| format!("preparation, {} {}: {e}", request.method, request.path))?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let parts = requests.chunks(requests.len().div_ceil(PREPARING).max(1));
            let threads: Vec<_> = parts.map(|part| scope.spawn(move || send(part))).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| "the preparation failed")?)
        })?;
    }
    Ok(())
}

/// Sends the requests from all connections until the time is up; returns the number of responses by status.
fn send_requests(
    attack: &Attack,
    scene: &Scene<'_>,
    server: &ServerProcess,
    requests: &[Vec<u8>],
) -> Result<String, AttackError> {
    let statuses: Mutex<BTreeMap<u16, usize>> = Mutex::default();
    let begin = Instant::now();
    let (send, receive) = mpsc::channel();
    let failed = std::thread::scope(|scope| {
        for _ in 0..attack.connections {
            let (send, statuses) = (send.clone(), &statuses);
            scope.spawn(move || {
                let done = repeat(scene, server, requests, begin, |answer| {
                    if let Ok(mut statuses) = statuses.lock() {
                        *statuses.entry(answer.status).or_default() += 1;
                    }
                    send.send(Ok(answer)).is_ok()
                });
                if let Err(e) = done {
                    let _ = send.send(Err(e));
                }
            });
        }
        // The loop over responses ends when the last connection drops its sender.
        drop(send);
        let mut failed = None;
        for answer in receive {
            let verdict = answer.and_then(|answer| judge(attack, &answer));
            // The first failure is reported; the others usually follow from it.
            failed = failed.or(verdict.err());
        }
        failed
    });
    if let Some(failed) = failed {
        return Err(failed);
    }
    let statuses = statuses.into_inner().unwrap_or_default();
    let counts: Vec<String> = statuses.iter().map(|(s, n)| format!("{n} × {s}")).collect();
    Ok(counts.join(", "))
}

/// Sends the requests in turn until the time is up.
fn repeat(
    scene: &Scene<'_>,
    server: &ServerProcess,
    requests: &[Vec<u8>],
    begin: Instant,
    mut tell: impl FnMut(HttpResponse) -> bool,
) -> Result<(), AttackError> {
    let mut connection: Option<RawConnection> = None;
    let mut sent = 0;
    loop {
        for request in requests {
            let answer = match connection.take() {
                None => None,
                Some(mut used) => {
                    let response = used.ask(request, scene.deadline);
                    connection = Some(used);
                    response.ok()
                }
            };
            // The server may close a connection after any response, for example after a body it did not read.
            let answer = match answer {
                Some(answer) => answer,
                None => {
                    let mut fresh = server.endpoint.connect(ATTACKER, scene.left())?;
                    let answer = fresh.ask(request, scene.deadline)?;
                    connection = Some(fresh);
                    answer
                }
            };
            sent += 1;
            // A slow attack still sends each of its requests once, or at least some of them.
            let enough = begin.elapsed() >= scene.window && sent >= requests.len().min(AT_LEAST);
            if !tell(answer) || enough {
                return Ok(());
            }
        }
    }
}

fn judge(attack: &Attack, answer: &HttpResponse) -> Result<(), AttackError> {
    if !attack.expect.contains(&answer.status) && !BUSY.contains(&answer.status) {
        let text: String = answer.body_text().chars().take(200).collect();
        return Err(format!("{} instead of {:?}: {text}", answer.status, attack.expect).into());
    }
    if answer.status >= 400 && answer.length > MAX_ERROR_BYTES {
        return Err(format!("an error of {} MB", answer.length >> 20).into());
    }
    Ok(())
}
