//! Permits that clients take in turns.
//!
//! The next permit goes to the user who got one least recently, and among the requests of a user to the connection that
//! got one least recently. However many requests one client has waiting, another client's request is next.

use crate::auth::authentication::User;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;

/// The flow of a request, in the sense of priority and fairness: its user and connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowKey {
    /// `None` if the request has no user.
    pub(crate) user: Option<Arc<User>>,
    /// The id of the connection.
    pub(crate) connection: u64,
}

impl FlowKey {
    fn name(&self) -> &str {
        self.user.as_deref().map_or("", |user| &user.name)
    }
}

/// A number of permits.
#[derive(Debug)]
pub(super) struct Shares {
    /// The maximum number of permits of one user with several requests.
    max_per_user: u32,
    state: Mutex<SharesState>,
}

#[derive(Debug)]
struct SharesState {
    free: u32,
    /// In the order of their arrival.
    waiting: Vec<Waiting>,
    /// The users and connections that hold permits or wait.
    users: HashMap<String, ClientRecord>,
    connections: HashMap<u64, ClientRecord>,
    /// The number of permits granted so far.
    granted: u64,
}

#[derive(Debug)]
struct Waiting {
    flow: FlowKey,
    permits: u32,
    tell: oneshot::Sender<Permit>,
}

#[derive(Debug, Default)]
struct ClientRecord {
    /// The requests that hold permits or wait.
    requests: usize,
    held: u32,
    /// The number of the last grant.
    last: u64,
}

/// A request for permits.
#[derive(Debug)]
pub(super) struct Acquire {
    shares: Arc<Shares>,
    told: oneshot::Receiver<Permit>,
}

impl Future for Acquire {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Permit> {
        match ready!(Pin::new(&mut self.told).poll(cx)) {
            Ok(permit) => Poll::Ready(permit),
            // The queue keeps the sender until it grants the permits.
            Err(_) => Poll::Pending,
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        self.told.close();
        // Another request may have waited only for this one.
        self.shares.grant(self.shares.state());
    }
}

/// Permits held; dropping it gives them back.
#[derive(Debug)]
pub(super) struct Permit {
    shares: Arc<Shares>,
    flow: FlowKey,
    permits: u32,
}

impl Shares {
    pub(super) fn new(permits: u32, max_per_user: u32) -> Arc<Shares> {
        Arc::new(Shares {
            max_per_user,
            state: Mutex::new(SharesState {
                free: permits,
                waiting: Vec::new(),
                users: HashMap::new(),
                connections: HashMap::new(),
                granted: 0,
            }),
        })
    }

    /// Requests permits. They are granted when it is the flow's turn; dropping the result withdraws the request.
    pub(super) fn acquire(self: &Arc<Self>, flow: &FlowKey, permits: u32) -> Acquire {
        let (tell, told) = oneshot::channel();
        let mut state = self.state();
        state.count(flow);
        state.waiting.push(Waiting {
            flow: flow.clone(),
            permits,
            tell,
        });
        self.grant(state);
        Acquire {
            shares: Arc::clone(self),
            told,
        }
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> u32 {
        self.state().free
    }

    fn state(&self) -> MutexGuard<'_, SharesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grants free permits to waiting requests.
    fn grant(self: &Arc<Self>, mut state: MutexGuard<'_, SharesState>) {
        state.forget_withdrawn();
        let mut granted = Vec::new();
        while let Some(next) = state.next(self.max_per_user) {
            let permit = Permit {
                shares: Arc::clone(self),
                flow: next.flow,
                permits: next.permits,
            };
            granted.push((next.tell, permit));
        }
        // A permit that cannot be delivered is dropped by `send`, which locks the state again.
        drop(state);
        for (tell, permit) in granted {
            // If the request was withdrawn, dropping the permit passes it on.
            let _ = tell.send(permit);
        }
    }
}

impl SharesState {
    fn count(&mut self, flow: &FlowKey) {
        match self.users.get_mut(flow.name()) {
            Some(record) => record.requests += 1,
            None => {
                let first = ClientRecord {
                    requests: 1,
                    ..ClientRecord::default()
                };
                self.users.insert(flow.name().to_owned(), first);
            }
        }
        self.connections.entry(flow.connection).or_default().requests += 1;
    }

    fn forget_withdrawn(&mut self) {
        let is_withdrawn = |waiting: &mut Waiting| waiting.tell.is_closed();
        let withdrawn: Vec<_> = self.waiting.extract_if(.., is_withdrawn).collect();
        for waiting in withdrawn {
            self.uncount(&waiting.flow);
        }
    }

    /// Forgets a request that is over.
    fn uncount(&mut self, flow: &FlowKey) {
        let is_last = |record: &mut ClientRecord| {
            record.requests -= 1;
            record.requests == 0
        };
        if self.users.get_mut(flow.name()).is_some_and(is_last) {
            self.users.remove(flow.name());
        }
        if self.connections.get_mut(&flow.connection).is_some_and(is_last) {
            self.connections.remove(&flow.connection);
        }
    }

    /// Takes the request whose turn it is out of the queue, if there are permits for it. A large request is not
    /// overtaken by smaller ones of other clients, so that it is not put off forever.
    fn next(&mut self, max_per_user: u32) -> Option<Waiting> {
        let turn = |waiting: &Waiting| {
            let user = self.users.get(waiting.flow.name())?;
            let connection = self.connections.get(&waiting.flow.connection)?;
            // A user without permits always gets some, even for a request above the limit of one user.
            let has_room = user.held == 0 || user.held.saturating_add(waiting.permits) <= max_per_user;
            has_room.then_some((user.last, connection.last))
        };
        let waiting = self.waiting.iter().enumerate();
        let turns = waiting.filter_map(|(i, waiting)| Some((turn(waiting)?, i)));
        // The queue is searched linearly: it has at most as many entries as requests in flight.
        let (_, position) = turns.min()?;
        if self.waiting.get(position)?.permits > self.free {
            return None;
        }
        let next = self.waiting.remove(position);
        // A number instead of a time: two grants never compare as equal.
        self.granted += 1;
        self.free -= next.permits;
        if let Some(user) = self.users.get_mut(next.flow.name()) {
            user.held += next.permits;
            user.last = self.granted;
        }
        if let Some(connection) = self.connections.get_mut(&next.flow.connection) {
            connection.last = self.granted;
        }
        Some(next)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.shares.state();
        state.free += self.permits;
        if let Some(user) = state.users.get_mut(self.flow.name()) {
            user.held -= self.permits;
        }
        state.uncount(&self.flow);
        self.shares.grant(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Acquire {
        /// The permits, if they are granted.
        fn granted(&mut self) -> Option<Permit> {
            self.told.try_recv().ok()
        }
    }

    fn flow(user: &str, connection: u64) -> FlowKey {
        let user = User::authenticated(user.to_owned(), String::new(), Vec::new());
        FlowKey {
            user: Some(Arc::new(user)),
            connection,
        }
    }

    /// Requests one permit for each flow while it is taken; returns the order in which they get it.
    fn order(clients: &[(&str, u64)]) -> Vec<usize> {
        let shares = Shares::new(1, 1);
        let first = shares.acquire(&flow("first", 0), 1).granted().expect("free");
        let mut waiting: Vec<_> = clients
            .iter()
            .map(|(user, connection)| shares.acquire(&flow(user, *connection), 1))
            .collect();
        drop(first);
        let mut order = Vec::new();
        while order.len() < clients.len() {
            let told = waiting.iter_mut().enumerate();
            let mut now: Vec<_> = told.filter_map(|(i, told)| Some((i, told.granted()?))).collect();
            assert_eq!(now.len(), 1, "one permit");
            order.extend(now.drain(..).map(|(i, _permit)| i));
        }
        assert_eq!(shares.free(), 1);
        assert!(shares.state().users.is_empty() && shares.state().connections.is_empty());
        order
    }

    #[test]
    fn users_take_turns_and_so_do_their_connections() {
        let (a, b) = ("a", "b");
        assert_eq!(order(&[(a, 1), (a, 1), (a, 1), (b, 2)]), [0, 3, 1, 2]);
        assert_eq!(order(&[(a, 1), (a, 2), (a, 3), (b, 4), (b, 4)]), [0, 3, 1, 4, 2]);
        assert_eq!(order(&[(a, 1), (a, 1), (a, 1), (a, 2)]), [0, 3, 1, 2]);
    }

    #[test]
    fn a_user_leaves_permits_for_others() {
        let shares = Shares::new(8, 6);
        let (a, b) = (flow("a", 1), flow("b", 2));
        let _first = shares.acquire(&a, 3).granted().expect("free");
        let mut second = shares.acquire(&a, 4);
        assert!(second.granted().is_none(), "7 of 8 are too many for one user");
        let other = shares.acquire(&b, 5).granted().expect("the rest is for others");
        assert_eq!(shares.free(), 0);
        drop(other);
        let alone = shares.acquire(&b, 5).granted().expect("free again");
        drop((alone, second));
        let large = shares.acquire(&flow("c", 3), 8);
        assert_eq!(shares.free(), 5);
        drop(large);
    }

    #[test]
    fn large_requests_are_not_overtaken() {
        let shares = Shares::new(4, 4);
        let first = shares.acquire(&flow("a", 1), 2).granted().expect("free");
        let mut large = shares.acquire(&flow("b", 2), 4);
        let mut small = shares.acquire(&flow("c", 3), 1);
        assert!(large.granted().is_none() && small.granted().is_none());
        drop(first);
        let large = large.granted().expect("its turn");
        assert!(small.granted().is_none());
        drop(large);
        assert!(small.granted().is_some());
    }

    #[test]
    fn withdrawn_requests_pass_their_turn() {
        let shares = Shares::new(1, 1);
        let first = shares.acquire(&flow("a", 1), 1).granted().expect("free");
        let withdrawn = shares.acquire(&flow("b", 2), 1);
        let mut next = shares.acquire(&flow("c", 3), 1);
        drop(withdrawn);
        assert_eq!(shares.state().waiting.len(), 1);
        drop(first);
        assert!(next.granted().is_some());
        drop(next);
        assert_eq!(shares.free(), 1);
        let first = shares.acquire(&flow("a", 1), 1).granted().expect("free");
        let granted = shares.acquire(&flow("b", 2), 1);
        drop(first);
        drop(granted);
        assert_eq!(shares.free(), 1, "a permit that is not taken returns");
    }
}
