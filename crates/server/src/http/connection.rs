//! Open connections: limits, idle timeouts and eviction.

mod io;
mod stream;

pub(crate) use io::ConnectionIo;
pub(crate) use stream::{StreamExecutor, StreamProgress};

use crate::auth::authentication::User;
use crate::config::ConnectionLimits;
use crate::metrics::{Closed, Metrics};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The maximum number of connections if the operator sets no limit and the system allows more.
const DEFAULT_MAX: usize = 8192;

/// The file descriptors that are reserved for the store, webhooks and the rest of the process.
const RESERVED_FILES: usize = 64;

/// The maximum number of connections, given the limit on open files.
fn default_max(open_files: u64) -> usize {
    let open_files = usize::try_from(open_files).unwrap_or(usize::MAX);
    let reserved = RESERVED_FILES.min(open_files / 2);
    (open_files - reserved).clamp(1, DEFAULT_MAX)
}

/// The address that connections are counted under. A host usually has a whole /64 of IPv6 addresses.
fn client_address(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        // `to_canonical` makes IPv4 clients of a dual-stack socket count by their IPv4 address.
        IpAddr::V6(ip) => {
            let network = u128::from(ip) & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        ip @ IpAddr::V4(_) => ip,
    }
}

/// All open connections of a server.
#[derive(Debug)]
pub(crate) struct Connections {
    max: usize,
    max_per_client: usize,
    limits: ConnectionLimits,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next_id: u64,
    open: BTreeMap<u64, Open>,
    /// Connections without an authenticated request, oldest first.
    unauthenticated: BTreeSet<u64>,
    clients: HashMap<IpAddr, ClientConnections>,
}

#[derive(Debug)]
struct Open {
    client: IpAddr,
    evicted: CancellationToken,
}

#[derive(Debug, Default)]
struct ClientConnections {
    open: usize,
    unauthenticated: BTreeSet<u64>,
}

impl Table {
    fn remove(&mut self, id: u64) -> Option<Open> {
        let open = self.open.remove(&id)?;
        self.unauthenticated.remove(&id);
        if let Some(client) = self.clients.get_mut(&open.client) {
            client.open -= 1;
            client.unauthenticated.remove(&id);
            if client.open == 0 {
                self.clients.remove(&open.client);
            }
        }
        Some(open)
    }
}

impl Connections {
    pub(crate) fn new(limits: &ConnectionLimits) -> Connections {
        // An unknown limit counts as none; `DEFAULT_MAX` still applies.
        let open_files = || rlimit::Resource::NOFILE.get_soft().unwrap_or(u64::MAX);
        let max = limits
            .max_connections
            .unwrap_or_else(|| default_max(open_files()));
        Connections {
            max,
            // One client address leaves room for others.
            max_per_client: limits.max_connections_per_client.unwrap_or(max.div_ceil(2)),
            limits: limits.clone(),
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a new connection, or returns `None` at the limit.
    ///
    /// At the limit, the oldest unauthenticated connection is evicted, so a client with many silent
    /// connections only displaces its own.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr, metrics: &Metrics) -> Option<Arc<Connection>> {
        let client = client_address(peer);
        let mut table = self.table();
        let of_client = table.clients.get(&client);
        // The limit of the client comes first, so that a client at its limit never displaces another one's connection.
        let victim = if of_client.is_some_and(|c| c.open >= self.max_per_client) {
            Some((
                Closed::ClientLimit,
                of_client.and_then(|c| c.unauthenticated.first().copied()),
            ))
        } else if table.open.len() >= self.max {
            Some((Closed::Limit, table.unauthenticated.first().copied()))
        } else {
            None
        };
        match victim {
            None => {}
            Some((_, Some(id))) => {
                metrics.closed(Closed::Evicted);
                // Removed at once: the evicted task ends later, and its place is given away now.
                if let Some(open) = table.remove(id) {
                    open.evicted.cancel();
                }
            }
            Some((limit, None)) => {
                metrics.closed(limit);
                return None;
            }
        }
        let id = table.next_id;
        table.next_id += 1;
        let evicted = CancellationToken::new();
        let open = Open {
            client,
            evicted: evicted.clone(),
        };
        table.open.insert(id, open);
        table.unauthenticated.insert(id);
        let of_client = table.clients.entry(client).or_default();
        of_client.open += 1;
        of_client.unauthenticated.insert(id);
        drop(table);
        Some(Arc::new(Connection {
            connections: Arc::clone(self),
            id,
            evicted,
            user: OnceLock::new(),
            authenticated: AtomicBool::new(false),
            started: Instant::now(),
            active: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            is_http2: AtomicBool::new(false),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(NEVER),
        }))
    }

    #[cfg(test)]
    fn open(&self) -> usize {
        self.table().open.len()
    }
}

/// No time: a value that no connection reaches.
const NEVER: u64 = u64::MAX;

/// An open connection. It counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    connections: Arc<Connections>,
    id: u64,
    evicted: CancellationToken,
    /// The user of the client certificate.
    user: OnceLock<Arc<User>>,
    authenticated: AtomicBool,
    started: Instant,
    /// The number of requests whose response has not ended.
    active: AtomicUsize,
    /// The number of requests that have begun.
    requests: AtomicU64,
    is_http2: AtomicBool,
    /// The end of the last response, in milliseconds since the start.
    idle_since: AtomicU64,
    /// The arrival of the first byte of an incomplete HTTP/1 head, in milliseconds since the start.
    head_since: AtomicU64,
}

impl Connection {
    /// Identifies the connection among all of the server.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The user of the client certificate.
    pub(crate) fn certificate_user(&self) -> Option<Arc<User>> {
        self.user.get().cloned()
    }

    /// Remembers the user of the client certificate.
    pub(crate) fn set_certificate_user(&self, user: Arc<User>) {
        let _ = self.user.set(user);
        self.mark_authenticated();
    }

    /// Exempts the connection from eviction, because it has authenticated.
    pub(crate) fn mark_authenticated(&self) {
        if self.authenticated.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut table = self.connections.table();
        table.unauthenticated.remove(&self.id);
        let client = table.open.get(&self.id).map(|open| open.client);
        if let Some(client) = client.and_then(|c| table.clients.get_mut(&c)) {
            client.unauthenticated.remove(&self.id);
        }
    }

    /// Counts a request until the result is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>, is_http2: bool) -> ActiveRequest {
        self.is_http2.store(is_http2, Ordering::Relaxed);
        self.active.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        // The head is complete; the next byte while no request runs begins another one.
        self.head_since.store(NEVER, Ordering::Relaxed);
        ActiveRequest(Arc::clone(self))
    }

    /// Waits until another connection evicts this one.
    pub(crate) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Waits until the client has been silent for too long, or has taken too long for a head.
    pub(crate) async fn expired(&self) {
        let limits = &self.connections.limits;
        // A deadline may come closer during the sleep: when the first byte of a head arrives.
        let tick = limits.read_header_timeout.min(limits.idle_timeout) / 2;
        loop {
            let now = Instant::now();
            let next = now + tick.max(Duration::from_millis(1));
            let wake = match self.deadline() {
                Some(deadline) if deadline <= now => return,
                Some(deadline) => deadline.min(next),
                None => next,
            };
            tokio::time::sleep_until(wake).await;
        }
    }

    /// The time by which the client must have sent a request; `None` while it waits for a response.
    fn deadline(&self) -> Option<Instant> {
        let limits = &self.connections.limits;
        if self.active.load(Ordering::Relaxed) > 0 {
            return None;
        }
        // Idle time is not granted before the first request, so that silent connections end early.
        if self.requests() == 0 {
            return Some(self.started + limits.read_header_timeout);
        }
        let at = |millis| self.started + Duration::from_millis(millis);
        Some(match self.head_since.load(Ordering::Relaxed) {
            NEVER => at(self.idle_since.load(Ordering::Relaxed)) + limits.idle_timeout,
            head_since => at(head_since) + limits.read_header_timeout,
        })
    }

    /// Records received bytes; returns whether they belong to the head of a request.
    fn received(&self) -> bool {
        // HTTP/2 frames are no heads, and bytes during a request belong to its body.
        if self.is_http2.load(Ordering::Relaxed) || self.active.load(Ordering::Relaxed) > 0 {
            return false;
        }
        if self.head_since.load(Ordering::Relaxed) == NEVER {
            self.head_since.store(self.age(), Ordering::Relaxed);
        }
        true
    }

    /// The number of requests that have begun.
    fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Milliseconds since the start.
    fn age(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(NEVER - 1)
    }

    /// The time after which a client that reads nothing is disconnected.
    pub(crate) fn write_timeout(&self) -> Duration {
        self.connections.limits.write_timeout
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Finds nothing after an eviction, which has removed the connection already.
        self.connections.table().remove(self.id);
    }
}

/// A request whose response has not ended.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<Connection>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        // Before the count falls: a deadline computed in between must not see an old end.
        self.0.idle_since.store(self.0.age(), Ordering::Relaxed);
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(max: usize, per_client: usize) -> Arc<Connections> {
        Arc::new(Connections::new(&ConnectionLimits {
            max_connections: Some(max),
            max_connections_per_client: Some(per_client),
            ..ConnectionLimits::default()
        }))
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn limits_follow_the_open_files() {
        let table = [
            (1, 1),
            (16, 8),
            (128, 64),
            (256, 192),
            (1024, 960),
            (u64::MAX, DEFAULT_MAX),
        ];
        for (files, max) in table {
            assert_eq!(default_max(files), max, "{files} files");
        }
    }

    #[test]
    fn clients_are_counted_by_address() {
        let table = [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ];
        for (peer, client) in table {
            assert_eq!(client_address(ip(peer)), ip(client));
        }
    }

    #[tokio::test]
    async fn unauthenticated_connections_are_evicted_first() {
        let (all, metrics) = (connections(3, 2), Metrics::new());
        let admit = |peer| all.admit(ip(peer), &metrics);
        let silent = admit("192.0.2.1").expect("there is room");
        let known = admit("192.0.2.1").expect("there is room");
        known.mark_authenticated();
        // A third connection of the same client evicts the silent one.
        let third = admit("192.0.2.1").expect("the silent one goes");
        silent.evicted().await;
        assert_eq!(all.open(), 2);
        third.mark_authenticated();
        assert!(admit("192.0.2.1").is_none(), "the client has as many as it may");
        let other = admit("192.0.2.2").expect("others have room");
        let newest = admit("192.0.2.3").expect("the silent one goes");
        other.evicted().await;
        newest.mark_authenticated();
        assert!(admit("192.0.2.4").is_none(), "all are known");
        drop(silent);
        drop(other);
        assert_eq!(all.open(), 3, "an evicted connection counts no longer");
        drop((known, third, newest));
        assert_eq!(all.open(), 0);
        assert!(all.table().clients.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn silent_connections_expire() {
        let all = connections(3, 3);
        let limits = ConnectionLimits::default();
        let connection = all
            .admit(ip("192.0.2.1"), &Metrics::new())
            .expect("there is room");
        let start = Instant::now();
        connection.expired().await;
        assert_eq!(start.elapsed(), limits.read_header_timeout, "the first request");
        let request = connection.begin_request(false);
        let long = tokio::time::timeout(Duration::from_secs(7200), connection.expired()).await;
        assert!(long.is_err(), "a response may take any time");
        drop(request);
        let start = Instant::now();
        connection.expired().await;
        assert_eq!(start.elapsed(), limits.idle_timeout);
        drop(connection.begin_request(false));
        let start = Instant::now();
        assert!(connection.received());
        connection.expired().await;
        assert_eq!(start.elapsed(), limits.read_header_timeout, "an unfinished head");
    }
}
