//! Load for the API server:
//! `server [--program FILE] [--corpus FILE] [--seconds N] [--kube-apiserver FILE [--etcd FILE]] [start] [objects]
//! [watch] [definitions] [deployments] [instructions]`; without a name, all parts but `instructions`, which needs
//! valgrind.
//!
//! The server is the release build of `scantling serve` with durable storage, on a free loopback port, over
//! TLS. The client shares the machine with it, so the rates are those of both together. The server's
//! processor time per request is printed as well, because it varies less on a busy machine.

mod child;
mod client;
mod corpus;
mod instructions;
mod load;
mod peer;
mod report;

use child::Server;
use corpus::{Definition, Subject, name};
use load::{Bound, Outcome, Pace, Work};
use peer::Peer;
use report::{Reference, figure, millis};
use scantling_value::{Limits, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The reason why a run failed.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The number of objects in the list.
const OBJECTS: usize = 10_000;
/// The size of an object in a response.
const OBJECT_BYTES: usize = 1_600;
/// The bytes that a patch of it adds to the journal, in whole blocks.
const PATCH_BYTES: usize = 8 << 10;
/// The number of writes that measure the disk alone: enough to include the slow ones, which take a hundred
/// times as long and occur once in a second or two.
const BARE_FLUSHES: usize = 10_000;
const CONNECTIONS: usize = 16;
/// The targets for creates and gets per second: ten and fifteen times those of a real server.
const CREATES_AIM: f64 = 5190.0;
const GETS_AIM: f64 = 30420.0;
const WATCHERS: usize = 1_000;
/// The number of rounds at half rate. The hypervisor sometimes takes a processor away for longer than a
/// hundredth of a round; the effect on the 99th percentile says nothing about the server.
const ROUNDS: usize = 15;
/// The number of CRDs when one more is added.
const MANY_DEFINITIONS: usize = 2_000;
/// The time after which freed memory is returned to the system.
const REST: Duration = Duration::from_secs(3);
/// The number of CRDs that the real server was measured with.
const SOME_DEFINITIONS: usize = 300;

struct Arguments {
    program: PathBuf,
    corpus: PathBuf,
    time: Duration,
    kube_apiserver: Option<PathBuf>,
    etcd: PathBuf,
    parts: Vec<String>,
}

impl Arguments {
    fn read() -> Result<Arguments, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut arguments = Arguments {
            program: root.join("target/release/scantling"),
            corpus: root.join("../shared/conformance/corpus/open.jsonl.gz"),
            time: Duration::from_secs(4),
            kube_apiserver: None,
            etcd: "etcd".into(),
            parts: Vec::new(),
        };
        let mut given = std::env::args().skip(1);
        while let Some(word) = given.next() {
            let mut value = || given.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--program" => arguments.program = value()?.into(),
                "--corpus" => arguments.corpus = value()?.into(),
                "--seconds" => arguments.time = Duration::from_secs(value()?.parse()?),
                "--kube-apiserver" => arguments.kube_apiserver = Some(value()?.into()),
                "--etcd" => arguments.etcd = value()?.into(),
                "start" | "objects" | "watch" | "definitions" | "deployments" | "instructions" => {
                    arguments.parts.push(word);
                }
                _ => return Err(format!("unknown argument {word}").into()),
            }
        }
        Ok(arguments)
    }

    fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|p| p == part)
    }
}

// One thread: the client shares the machine with the server, and must leave it the rest.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments = Arguments::read()?;
    let (definitions, subject) = corpus::definitions(&arguments.corpus)?;
    let average = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism()?;
    println!("{cores} cores, load average before the run {}", average.trim());
    if arguments.wants("start") {
        start(&arguments).await?;
    }
    if arguments.wants("objects") {
        objects(&arguments, &subject).await?;
    }
    if arguments.wants("watch") {
        watch(&arguments, &subject).await?;
    }
    if arguments.wants("definitions") {
        register(&arguments, &definitions).await?;
    }
    if arguments.wants("deployments") {
        deployments(&arguments).await?;
    }
    if arguments.parts.iter().any(|part| part == "instructions") {
        instructions::count(&arguments.program, &subject).await?;
    }
    Ok(())
}

/// Measures start-up time and idle memory.
async fn start(arguments: &Arguments) -> Result<(), Failure> {
    report::title("start");
    let directory = tempfile::tempdir()?;
    let server = Server::start(&arguments.program, directory.path()).await?;
    figure(
        "ready, the first start",
        millis(server.ready_after),
        "ms",
        Reference::NONE,
    );
    drop(server);
    let mut times = Vec::new();
    for _ in 0..5 {
        let server = Server::start(&arguments.program, directory.path()).await?;
        times.push(server.ready_after);
        // The memory is measured a moment after the start, when the server is idle.
        tokio::time::sleep(Duration::from_millis(300)).await;
        if times.len() == 5 {
            times.sort_unstable();
            figure(
                "ready, median of 5 starts",
                millis(times[2]),
                "ms",
                Reference::less(Some(2500.0), 50.0),
            );
            figure(
                "memory while idle",
                server.rss(),
                "MB",
                Reference::less(Some(305.0), 25.0),
            );
        }
    }
    Ok(())
}

/// Registers the CRD used for the load.
async fn register_subject(server: &Server, subject: &Subject) -> Result<(), Failure> {
    let body = subject.definition.document.to_json();
    let request = server
        .endpoint
        .sending("POST", DEFINITIONS, "application/json", body.as_bytes());
    server
        .endpoint
        .connect()
        .await?
        .send(&request)
        .await?
        .expect(201)?;
    Ok(())
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Creates of objects that have the wanted size in responses.
async fn creates(server: &Server, subject: &Subject) -> Result<Work, Failure> {
    let mut padding = 0;
    // Twice: the first create is made without padding, the second one checks the size with it.
    for _ in 0..2 {
        let path = format!("{}?dryRun=All", subject.path());
        let request = server.endpoint.sending(
            "POST",
            &path,
            "application/json",
            &subject.body(&name(0), padding),
        );
        let mut client = server.endpoint.connect().await?;
        let size = client.send(&request).await?.expect(201)?.body.len();
        padding = (padding + OBJECT_BYTES).saturating_sub(size);
    }
    let template = server.endpoint.sending(
        "POST",
        &subject.path(),
        "application/json",
        &subject.body(&name(0), padding),
    );
    Ok(named(template, 201))
}

/// Requests that differ only in the name.
fn named(template: Vec<u8>, status: u16) -> Work {
    // Names have a fixed length, so a request is a copy with a few bytes replaced.
    let places: Vec<usize> = memchr::memmem::find_iter(&template, name(0).as_bytes()).collect();
    let request = move |n: usize, out: &mut Vec<u8>| {
        out.extend_from_slice(&template);
        let name = name(n);
        for place in &places {
            out[*place..place + name.len()].copy_from_slice(name.as_bytes());
        }
    };
    Work {
        request: Arc::new(request),
        status,
    }
}

/// A load at half of some rate, in rounds.
struct Half<'a> {
    server: &'a Server,
    time: Duration,
    /// The name of the full rate.
    of: &'static str,
    /// The full rate in requests per second.
    full: f64,
    /// The number of the first request.
    first: usize,
    work: &'a Work,
}

impl Half<'_> {
    /// The same at half of the target rate, independent of the measured full rate.
    fn of_aim(self, rate: f64) -> Self {
        Half {
            of: "the aim",
            full: rate,
            ..self
        }
    }

    async fn run(self) -> Result<Outcome, Failure> {
        let pace = Pace::PerSecond(self.full / 2.0);
        let bound = Bound {
            requests: usize::MAX,
            time: self.time / 6,
        };
        let (mut rounds, mut first) = (Vec::new(), self.first);
        for _ in 0..ROUNDS {
            let round = load::run(self.server, CONNECTIONS, pace, bound, first, self.work).await?;
            first += round.requests;
            rounds.push(round);
        }
        let outcome = Outcome::together(&rounds);
        report::half(self.of, &rounds, &outcome);
        Ok(outcome)
    }

    /// The same for writes, with measurements of the disk alone before and after.
    async fn run_beside(self, disk: &mut bench_disk::Target) -> Result<Outcome, Failure> {
        let mut bare = disk.times(PATCH_BYTES, BARE_FLUSHES)?;
        let outcome = self.run().await?;
        bare.extend(disk.times(PATCH_BYTES, BARE_FLUSHES)?);
        report::beyond_disk(&outcome, &bare);
        Ok(outcome)
    }
}

/// Creates, gets, lists, patches and applies objects of one kind.
async fn objects(arguments: &Arguments, subject: &Subject) -> Result<(), Failure> {
    report::title(&format!(
        "objects of {OBJECT_BYTES} bytes, {CONNECTIONS} connections"
    ));
    let directory = tempfile::tempdir()?;
    let server = Server::start(&arguments.program, directory.path()).await?;
    register_subject(&server, subject).await?;
    let endpoint = &server.endpoint;
    let bound = Bound {
        requests: usize::MAX,
        time: arguments.time,
    };
    let half = |full: &Outcome, first, work| Half {
        server: &server,
        time: arguments.time,
        of: "the rate",
        full: full.rate(),
        first,
        work,
    };

    let work = creates(&server, subject).await?;
    let all = Bound {
        requests: OBJECTS,
        time: Duration::from_secs(120),
    };
    let created = load::run(&server, CONNECTIONS, Pace::Full, all, 0, &work).await?;
    report::load("create", &created, Reference::more(519.0, CREATES_AIM));

    let mut client = endpoint.connect().await?;
    let list = endpoint.get(&subject.path());
    let (mut times, mut size) = (Vec::new(), 0);
    // The processor time is that of all ten lists together.
    let cpu = server.cpu();
    for _ in 0..10 {
        let begin = Instant::now();
        size = client.send(&list).await?.expect(200)?.body.len();
        times.push(begin.elapsed());
    }
    let cpu = server.cpu().saturating_sub(cpu) / 10;
    let what = format!("list of {OBJECTS}, {:.1} MB: first", size as f64 / 1e6);
    figure(
        &what,
        times[0].as_secs_f64(),
        "s",
        Reference::less(Some(0.67), 0.134),
    );
    times.sort_unstable();
    figure(
        "  median of 10",
        times[5].as_secs_f64(),
        "s",
        Reference::less(Some(0.67), 0.134),
    );
    figure(
        "  server's processor time, each",
        millis(cpu),
        "ms",
        Reference::NONE,
    );

    // Gets access all objects in a scattered order.
    let template = endpoint.get(&format!("{}/{}", subject.path(), name(0)));
    let get = scattered(named(template, 200), OBJECTS);
    let outcome = load::run(&server, CONNECTIONS, Pace::Full, bound, 0, &get).await?;
    report::load("get", &outcome, Reference::more(2028.0, GETS_AIM));
    half(&outcome, 0, &get).run().await?;
    half(&outcome, 0, &get).of_aim(GETS_AIM).run().await?;

    let path = format!("{}/{}", subject.path(), name(0));
    let merge = |n: usize| format!(r#"{{"metadata":{{"annotations":{{"example.com/turn":"{n:010}"}}}}}}"#);
    let patch = turning(named(
        endpoint.sending(
            "PATCH",
            &path,
            "application/merge-patch+json",
            merge(0).as_bytes(),
        ),
        200,
    ));
    // The disk is measured before and after, because its speed varies with other load.
    let mut disk = bench_disk::Target::new(directory.path())?;
    let before = disk.times(PATCH_BYTES, BARE_FLUSHES)?;
    let outcome = load::run(&server, 1, Pace::Full, bound, 1, &patch).await?;
    let after = disk.times(PATCH_BYTES, BARE_FLUSHES)?;
    report::load(
        "merge patch, one connection",
        &outcome,
        Reference::more(190.0, 1900.0),
    );
    for (what, floor) in [
        ("  of it the disk: median of a bare flush before", before),
        ("    and after", after),
    ] {
        figure(what, millis(floor.quantile(0.5)), "ms", Reference::NONE);
    }
    // Numbers far apart: each load writes values that no other one has written.
    let outcome = load::run(&server, CONNECTIONS, Pace::Full, bound, 10_000_000, &patch).await?;
    report::load("merge patch", &outcome, Reference::NONE);
    half(&outcome, 20_000_000, &patch).run_beside(&mut disk).await?;

    let path = format!("{path}?fieldManager=bench-apply&force=true");
    let config = |n: usize| {
        let (name, labels) = (name(0), format!(r#"{{"turn":"{n:010}"}}"#));
        format!(
            r#"{{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{{"name":"{name}","labels":{labels}}},"spec":{{"weight":10}}}}"#
        )
    };
    let apply = turning(named(
        endpoint.sending(
            "PATCH",
            &path,
            "application/apply-patch+yaml",
            config(0).as_bytes(),
        ),
        200,
    ));
    let outcome = load::run(&server, CONNECTIONS, Pace::Full, bound, 30_000_000, &apply).await?;
    report::load("apply", &outcome, Reference::NONE);
    half(&outcome, 40_000_000, &apply).run_beside(&mut disk).await?;

    println!("  create once more");
    let more = half(&created, OBJECTS, &work).run_beside(&mut disk).await?;
    let first = OBJECTS + more.requests;
    half(&created, first, &work)
        .of_aim(CREATES_AIM)
        .run_beside(&mut disk)
        .await?;
    figure("memory after all this", server.rss(), "MB", Reference::NONE);
    Ok(())
}

/// Creates and gets Deployments, beside kube-apiserver if its program is given.
async fn deployments(arguments: &Arguments) -> Result<(), Failure> {
    report::title(&format!("Deployments, {CONNECTIONS} connections"));
    // One after the other, so that neither takes processor time from the other.
    let real = match &arguments.kube_apiserver {
        Some(program) => {
            let peer = Peer {
                kube_apiserver: program.clone(),
                etcd: arguments.etcd.clone(),
            };
            let directory = tempfile::tempdir()?;
            let server = peer.start(directory.path()).await?;
            Some(deployment_rates(&server, arguments.time).await?)
        }
        None => None,
    };
    let directory = tempfile::tempdir()?;
    let server = Server::start(&arguments.program, directory.path()).await?;
    let here = deployment_rates(&server, arguments.time).await?;
    let against = |real: Option<f64>, times: f64| match real {
        Some(rate) => Reference::more(rate, rate * times),
        None => Reference::NONE,
    };
    let rate = |rates: fn(&[Outcome; 2]) -> &Outcome| real.as_ref().map(|real| rates(real).rate());
    report::load("create", &here[0], against(rate(|r| &r[0]), 10.0));
    report::load("get", &here[1], against(rate(|r| &r[1]), 15.0));
    if let Some(real) = &real {
        for (what, outcome) in ["create", "get"].into_iter().zip(real) {
            let what = format!("processor time of the real server with etcd, {what}");
            figure(
                &what,
                outcome.cpu_each().as_secs_f64() * 1e6,
                "us",
                Reference::NONE,
            );
        }
    }
    figure("memory after all this", server.rss(), "MB", Reference::NONE);
    Ok(())
}

/// The loads of creates and of gets of Deployments.
async fn deployment_rates(server: &Server, time: Duration) -> Result<[Outcome; 2], Failure> {
    use corpus::DEPLOYMENTS as PATH;
    let endpoint = &server.endpoint;
    let create = endpoint.sending("POST", PATH, "application/json", &corpus::deployment()?);
    let create = named(create, 201);
    let bound = Bound {
        requests: OBJECTS,
        time,
    };
    let created = load::run(server, CONNECTIONS, Pace::Full, bound, 0, &create).await?;
    let get = named(endpoint.get(&format!("{PATH}/{}", name(0))), 200);
    let get = scattered(get, created.requests);
    let bound = Bound {
        requests: usize::MAX,
        time,
    };
    let got = load::run(server, CONNECTIONS, Pace::Full, bound, 0, &get).await?;
    Ok([created, got])
}

/// Spreads requests over all objects.
fn scattered(work: Work, objects: usize) -> Work {
    // Multiplying by a prime visits the objects in a scattered order.
    let request = move |n: usize, out: &mut Vec<u8>| (work.request)(n.wrapping_mul(7919) % objects, out);
    Work {
        request: Arc::new(request),
        status: work.status,
    }
}

/// Spreads requests over all objects with distinct content: ten digits after `turn":"`.
fn turning(work: Work) -> Work {
    let mark: &[u8] = b"turn\":\"";
    let mut sample = Vec::new();
    (work.request)(0, &mut sample);
    let place = memchr::memmem::find(&sample, mark).map_or(0, |at| at + mark.len());
    let request = move |n: usize, out: &mut Vec<u8>| {
        (work.request)(n.wrapping_mul(7919) % OBJECTS, out);
        out[place..place + 10].copy_from_slice(format!("{n:010}").as_bytes());
    };
    Work {
        request: Arc::new(request),
        status: work.status,
    }
}

/// Many watchers of one kind: each must see each event in order.
async fn watch(arguments: &Arguments, subject: &Subject) -> Result<(), Failure> {
    const ONE_BY_ONE: usize = 20;
    const AT_ONCE: usize = 64;
    report::title(&format!("{WATCHERS} watchers"));
    let directory = tempfile::tempdir()?;
    let server = Server::start(&arguments.program, directory.path()).await?;
    register_subject(&server, subject).await?;
    let work = creates(&server, subject).await?;
    let before = server.rss();
    let request = server.endpoint.get(&format!("{}?watch=true", subject.path()));
    let (saw, mut seen) = mpsc::unbounded_channel::<Result<usize, String>>();
    // All watches are open before the first write, so each has to see every event.
    for _ in 0..WATCHERS {
        let mut events = server.endpoint.connect().await?.watch(&request).await?;
        let saw = saw.clone();
        tokio::spawn(async move {
            for n in 0.. {
                let found = events.next().await.map_err(|e| e.to_string()).and_then(|line| {
                    let expected = format!(r#""name":"{}""#, name(n));
                    match memchr::memmem::find(&line, expected.as_bytes()) {
                        Some(_) => Ok(n),
                        None => Err(format!(
                            "event {n} is another: {}",
                            String::from_utf8_lossy(&line)
                        )),
                    }
                });
                let ended = found.is_err();
                if saw.send(found).is_err() || ended {
                    break;
                }
            }
        });
    }
    figure(
        "memory of a watcher, with its connection",
        (server.rss() - before) * 1e3 / WATCHERS as f64,
        "kB",
        Reference::NONE,
    );
    let mut client = server.endpoint.connect().await?;
    let mut buffer = Vec::new();
    let mut times = Vec::new();
    for n in 0..ONE_BY_ONE {
        buffer.clear();
        (work.request)(n, &mut buffer);
        let begin = Instant::now();
        client.send(&buffer).await?.expect(201)?;
        // The create counts only when every watcher has seen it.
        for _ in 0..WATCHERS {
            seen.recv().await.ok_or("no watcher is left")??;
        }
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    figure(
        "from a create to the last watcher, median",
        millis(times[ONE_BY_ONE / 2]),
        "ms",
        Reference::NONE,
    );
    let bound = Bound {
        requests: AT_ONCE,
        time: Duration::from_secs(60),
    };
    let cpu = server.cpu();
    let begin = Instant::now();
    // One connection, so that events come in the order of their names.
    load::run(&server, 1, Pace::Full, bound, ONE_BY_ONE, &work).await?;
    for _ in 0..WATCHERS * AT_ONCE {
        seen.recv().await.ok_or("no watcher is left")??;
    }
    let elapsed = begin.elapsed();
    let delivered = (WATCHERS * AT_ONCE) as f64;
    figure(
        &format!("{AT_ONCE} events at once, to the last watcher"),
        millis(elapsed),
        "ms",
        Reference::NONE,
    );
    figure(
        "  events delivered",
        delivered / elapsed.as_secs_f64(),
        "/s",
        Reference::NONE,
    );
    let cpu = server.cpu().saturating_sub(cpu).as_secs_f64() * 1e6;
    figure(
        "  server's processor time, each",
        cpu / delivered,
        "us",
        Reference::NONE,
    );
    Ok(())
}

/// Registers CRDs and waits until all are established and published.
async fn register_all(server: &Server, definitions: &[Definition]) -> Result<Duration, Failure> {
    let endpoint = &server.endpoint;
    // The requests are made beforehand, so that only the server is measured.
    let requests: Vec<Vec<u8>> = definitions
        .iter()
        .map(|d| {
            endpoint.sending(
                "POST",
                DEFINITIONS,
                "application/json",
                d.document.to_json().as_bytes(),
            )
        })
        .collect();
    let begin = Instant::now();
    let mut client = endpoint.connect().await?;
    for (request, definition) in requests.iter().zip(definitions) {
        let answer = client.send(request).await?.expect(201);
        answer.map_err(|e| format!("{}: {e}", definition.name))?;
    }
    let status: Vec<Vec<u8>> = definitions
        .iter()
        .map(|d| endpoint.get(&format!("{DEFINITIONS}/{}", d.name)))
        .collect();
    // From the last one: it is established last, so the others need few polls.
    for request in status.iter().rev() {
        while !is_established(client.send(request).await?.expect(200)?.body)? {}
    }
    let discovery = endpoint.accepting(
        "/apis",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    );
    // Both have to list it: discovery and OpenAPI are published separately.
    let documents = endpoint.get("/openapi/v3");
    loop {
        let groups = String::from_utf8_lossy(client.send(&discovery).await?.expect(200)?.body).into_owned();
        let index = String::from_utf8_lossy(client.send(&documents).await?.expect(200)?.body).into_owned();
        let display = |d: &Definition| {
            let plural = d.name.split('.').next().unwrap_or_default();
            groups.contains(&format!(r#""resource":"{plural}""#))
                && d.versions
                    .iter()
                    .all(|v| index.contains(&format!(r#""apis/{}/{v}""#, d.group)))
        };
        if definitions.iter().all(display) {
            return Ok(begin.elapsed());
        }
    }
}

fn is_established(body: &[u8]) -> Result<bool, Failure> {
    // Decoding a large CRD on each poll would take processor time from the server.
    // The status is the last member, after the schemas, which are skipped.
    const STATUS: &[u8] = br#","status":{"#;
    let Some(place) = memchr::memmem::rfind(body, STATUS) else {
        return Ok(false);
    };
    let status = body.trim_ascii_end().strip_suffix(b"}").unwrap_or_default();
    let status = status.get(place + STATUS.len() - 1..).unwrap_or_default();
    let status = json::decode(status, Limits::SERVER)?;
    let conditions = status
        .get("conditions")
        .and_then(Value::as_array)
        .unwrap_or_default();
    let text = |v: &Value, field: &str| {
        v.get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    Ok(conditions
        .iter()
        .any(|c| text(c, "type") == "Established" && text(c, "status") == "True"))
}

/// Measures the registration of many CRDs, and of one more.
async fn register(arguments: &Arguments, definitions: &[Definition]) -> Result<(), Failure> {
    report::title("definitions of the corpus, one connection");
    let directory = tempfile::tempdir()?;
    let server = Server::start(&arguments.program, directory.path()).await?;
    let (some, rest) = definitions.split_at(SOME_DEFINITIONS.min(definitions.len()));
    let (cpu, idle) = (server.cpu(), server.rss());
    let took = register_all(&server, some).await?;
    figure(
        &format!("{} definitions", some.len()),
        took.as_secs_f64(),
        "s",
        Reference::less(Some(34.0), 2.0),
    );
    figure(
        "  server's processor time",
        (server.cpu() - cpu).as_secs_f64(),
        "s",
        Reference::NONE,
    );
    figure(
        "  memory",
        server.rss(),
        "MB",
        Reference::less(Some(2200.0), 60.0),
    );
    tokio::time::sleep(REST).await;
    figure("    after a rest", server.rss(), "MB", Reference::NONE);
    let more = register_all(&server, rest).await?;
    figure(
        &format!("all {}", definitions.len()),
        (took + more).as_secs_f64(),
        "s",
        Reference::NONE,
    );
    figure("  memory", server.rss(), "MB", Reference::NONE);
    tokio::time::sleep(REST).await;
    figure("    after a rest", server.rss(), "MB", Reference::NONE);
    figure(
        "    of each definition",
        (server.rss() - idle) * 1e3 / definitions.len() as f64,
        "kB",
        Reference::NONE,
    );
    // Copies in other groups increase the number of CRDs to the wanted size.
    let copies: Vec<Definition> = definitions
        .iter()
        .cycle()
        .enumerate()
        .take(MANY_DEFINITIONS.saturating_sub(definitions.len()))
        .map(|(i, d)| d.in_group(&format!("copy{}.{}", i / definitions.len(), d.group)))
        // This annotation marks a CRD of a protected group, which a copy in another group is not.
        .filter(|d| !d.document.to_json().contains("api-approved"))
        .collect();
    let more = register_all(&server, &copies).await?;
    figure(
        &format!("{} more in other groups", copies.len()),
        more.as_secs_f64(),
        "s",
        Reference::NONE,
    );
    figure("  memory", server.rss(), "MB", Reference::NONE);
    let one = definitions[0].in_group("one-more.example.com");
    let took = register_all(&server, std::slice::from_ref(&one)).await?;
    figure(
        "one more, until it is in /openapi/v3",
        millis(took),
        "ms",
        Reference::less(None, 1000.0),
    );
    documents(&server, &one).await?;
    drop(server);
    let server = Server::start(&arguments.program, directory.path()).await?;
    figure(
        "ready with all of them",
        millis(server.ready_after),
        "ms",
        Reference::NONE,
    );
    figure("  memory", server.rss(), "MB", Reference::NONE);
    Ok(())
}

/// Measures the OpenAPI documents, at first and after one CRD has changed.
async fn documents(server: &Server, one: &Definition) -> Result<(), Failure> {
    let endpoint = &server.endpoint;
    let mut client = endpoint.connect().await?;
    let whole = endpoint.get("/openapi/v2");
    for what in ["/openapi/v2, the first time", "/openapi/v2, nothing changed"] {
        let begin = Instant::now();
        client.send(&whole).await?.expect(200)?;
        figure(what, millis(begin.elapsed()), "ms", Reference::NONE);
    }
    let path = format!("{DEFINITIONS}/{}", one.name);
    let change = br#"{"spec":{"names":{"shortNames":["bench"]}}}"#;
    let patch = endpoint.sending("PATCH", &path, "application/merge-patch+json", change);
    client.send(&patch).await?.expect(200)?;
    let begin = Instant::now();
    client.send(&whole).await?.expect(200)?;
    figure(
        "/openapi/v2, one definition changed",
        millis(begin.elapsed()),
        "ms",
        Reference::NONE,
    );
    for version in &one.versions {
        let document = endpoint.get(&format!("/openapi/v3/apis/{}/{version}", one.group));
        let begin = Instant::now();
        client.send(&document).await?.expect(200)?;
        figure(
            "its document of /openapi/v3",
            millis(begin.elapsed()),
            "ms",
            Reference::NONE,
        );
    }
    figure("  memory", server.rss(), "MB", Reference::NONE);
    Ok(())
}
