//! An attack as a row of a table: the preparation of the server, the requests, and the expected responses.

use crate::AttackError;
use crate::http::HttpRequest;
use crate::launch::{self, ProcessLimits};
use crate::server::{ServerProcess, Totals, Usage, run_limited};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The default number of connections that send requests in parallel: more than the server has connection
/// threads on a small machine.
const CONNECTIONS: usize = 3;

/// Builds requests. Called once per run, so that large bodies exist only while they are needed.
type Requests = Box<dyn Fn(Size) -> Vec<HttpRequest>>;
/// An attack that is more than requests and responses.
type Program = Box<dyn Fn(&Scene<'_>) -> Result<String, AttackError>>;

/// The size of an attack.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Size {
    /// Small, for busy machines and debug builds.
    Short,
    Full,
}

impl Size {
    /// Selects the value for this size.
    pub(crate) fn pick<T>(self, full: T, short: T) -> T {
        match self {
            Size::Full => full,
            Size::Short => short,
        }
    }

    /// The number, or a twentieth of it in short runs.
    pub(crate) fn scale(self, full: usize) -> usize {
        self.pick(full, full.div_ceil(20))
    }
}

/// The part of an attack that is measured.
pub(crate) enum Strike {
    /// Requests on one connection, in turn, repeated until the time is up. Each response must have one of the
    /// expected statuses.
    Requests(Requests),
    /// Anything else; the text says what was observed, an error what is wrong.
    Program(Program),
    /// The same without a server: the program starts what it needs.
    Offline(Program),
}

/// Requests before the measured part of an attack.
pub(crate) struct Preparation {
    pub(crate) make: Requests,
    /// True if the server may refuse it with 422; the attack is then a smaller one.
    pub(crate) may_be_refused: bool,
}

/// One attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// A short description of the request.
    pub(crate) request: &'static str,
    pub(crate) flags: &'static [&'static str],
    pub(crate) limits: ProcessLimits,
    pub(crate) prepare: Vec<Preparation>,
    pub(crate) strike: Strike,
    pub(crate) expect: &'static [u16],
    /// The number of connections. Each one sends all requests.
    pub(crate) connections: usize,
}

/// The environment of an attack.
pub(crate) struct Scene<'a> {
    /// The binary.
    pub(crate) program: &'a Path,
    /// Its own directory; the data directory is `data` in it.
    pub(crate) directory: &'a Path,
    pub(crate) size: Size,
    /// The time at which the attack must have ended.
    pub(crate) deadline: Instant,
    /// The minimum duration of the attack.
    pub(crate) window: Duration,
    pub(crate) server: Option<&'a ServerProcess>,
    /// The resource usage of the processes that this attack starts.
    pub(crate) totals: Totals,
}

impl<'a> Scene<'a> {
    pub(crate) fn server(&self) -> Result<&'a ServerProcess, AttackError> {
        self.server.ok_or_else(|| "this attack has no server".into())
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// The time left.
    pub(crate) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Starts a server on the data directory.
    pub(crate) fn start(&self, flags: &[&str]) -> Result<ServerProcess, AttackError> {
        ServerProcess::start(
            self.program,
            ProcessLimits::default(),
            self.directory,
            &self.data(),
            flags,
            &self.totals,
        )
    }

    /// Runs the program with other arguments to its end; returns its exit status, output and resource usage.
    pub(crate) fn command(
        &self,
        arguments: &[&str],
    ) -> Result<(Option<ExitStatus>, String, Usage), AttackError> {
        let mut command = launch::command(self.program, ProcessLimits::default())?;
        run_limited(command.args(arguments), self.left(), &self.totals)
    }

    /// Sleeps, but not beyond the deadline.
    pub(crate) fn sleep(&self, time: Duration) {
        std::thread::sleep(time.min(self.left()));
    }
}

impl Attack {
    fn new(name: &'static str, request: &'static str, strike: Strike) -> Attack {
        Attack {
            name,
            request,
            flags: &[],
            limits: ProcessLimits::default(),
            prepare: Vec::new(),
            strike,
            expect: &[200, 201],
            connections: CONNECTIONS,
        }
    }

    /// An attack that sends requests.
    pub(crate) fn requests(
        name: &'static str,
        request: &'static str,
        make: impl Fn(Size) -> Vec<HttpRequest> + 'static,
    ) -> Attack {
        Attack::new(name, request, Strike::Requests(Box::new(make)))
    }

    /// An attack that sends one request.
    pub(crate) fn one(
        name: &'static str,
        request: &'static str,
        make: impl Fn(Size) -> HttpRequest + 'static,
    ) -> Attack {
        Attack::requests(name, request, move |size| vec![make(size)])
    }

    /// An attack that does more than send requests.
    pub(crate) fn program(
        name: &'static str,
        request: &'static str,
        run: impl Fn(&Scene<'_>) -> Result<String, AttackError> + 'static,
    ) -> Attack {
        Attack::new(name, request, Strike::Program(Box::new(run)))
    }

    /// An attack that starts its processes itself.
    pub(crate) fn offline(
        name: &'static str,
        request: &'static str,
        run: impl Fn(&Scene<'_>) -> Result<String, AttackError> + 'static,
    ) -> Attack {
        Attack::new(name, request, Strike::Offline(Box::new(run)))
    }

    /// Flags of the server.
    pub(crate) fn flags(mut self, flags: &'static [&'static str]) -> Attack {
        self.flags = flags;
        self
    }

    /// Sets the limits of the server's process.
    pub(crate) fn limits(mut self, limits: ProcessLimits) -> Attack {
        self.limits = limits;
        self
    }

    /// Requests that prepare the attack; each must succeed.
    pub(crate) fn after(mut self, make: impl Fn(Size) -> Vec<HttpRequest> + 'static) -> Attack {
        self.prepare.push(Preparation {
            make: Box::new(make),
            may_be_refused: false,
        });
        self
    }

    /// One request that prepares the attack.
    pub(crate) fn after_one(self, make: impl Fn(Size) -> HttpRequest + 'static) -> Attack {
        self.after(move |size| vec![make(size)])
    }

    /// One request that prepares the attack, and may be refused.
    pub(crate) fn after_attempt(mut self, make: impl Fn(Size) -> HttpRequest + 'static) -> Attack {
        self.prepare.push(Preparation {
            make: Box::new(move |size| vec![make(size)]),
            may_be_refused: true,
        });
        self
    }

    /// The expected statuses.
    pub(crate) fn expect(mut self, statuses: &'static [u16]) -> Attack {
        self.expect = statuses;
        self
    }

    /// Sends from `n` connections in parallel.
    pub(crate) fn connections(mut self, n: usize) -> Attack {
        self.connections = n;
        self
    }
}
