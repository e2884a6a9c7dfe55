//! Recent events, kept for watches and for reads at past revisions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::{Event, Revision, key};

/// Limits of the retained history. Events beyond any of the limits are compacted, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// The maximum number of events.
    pub events: usize,
    /// The maximum size of keys and values, old and new, in bytes.
    pub bytes: usize,
    /// The maximum age of an event, counted from when this process saw it.
    pub age: Duration,
}

impl Default for HistoryLimits {
    /// Five minutes, as kube-apiserver configures etcd, and at most 128 MiB.
    fn default() -> Self {
        Self {
            events: 100_000,
            bytes: 128 << 20,
            age: Duration::from_secs(300),
        }
    }
}

/// Events in order. Each has a sequence number, which is never reused.
#[derive(Debug, Default)]
pub(crate) struct EventRing {
    /// The sequence number of the front event.
    first: u64,
    events: VecDeque<Arc<Event>>,
}

impl EventRing {
    /// The sequence number of the first event after a revision.
    pub(crate) fn position_after(&self, revision: Revision) -> u64 {
        self.first + self.events.partition_point(|event| event.revision <= revision) as u64
    }

    /// The events from a sequence number on; `None` if the ring has dropped some of them.
    pub(crate) fn from(&self, sequence: u64) -> Option<impl Iterator<Item = &Arc<Event>>> {
        let skip = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        Some(self.events.iter().skip(skip))
    }

    fn pop(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        self.first += 1;
        Some(event)
    }

    /// Drops all events and skips one sequence number, so that watches at the end notice the gap, too.
    fn interrupt(&mut self) {
        self.first += self.events.len() as u64 + 1;
        self.events.clear();
    }
}

/// The events of one collection, and the signal for its watches.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) ring: EventRing,
    wake: watch::Sender<()>,
}

impl Topic {
    fn new() -> Self {
        Self {
            ring: EventRing::default(),
            wake: watch::Sender::new(()),
        }
    }

    /// Returns whether nothing refers to the ring: neither events nor the positions of watches.
    fn is_unused(&self) -> bool {
        self.ring.events.is_empty() && self.wake.is_closed()
    }
}

/// All events, and the events by collection, so that a watch never reads events of other collections.
#[derive(Debug)]
pub(crate) struct History {
    limits: HistoryLimits,
    all: Topic,
    /// The arrival time of each event in `all`.
    times: VecDeque<Instant>,
    topics: BTreeMap<Arc<str>, Topic>,
    /// The size of the events in bytes.
    bytes: usize,
    /// The newest compacted revision: the oldest at which a state can be rebuilt.
    compacted: Revision,
}

/// The size of an event in bytes, with an allowance for overhead.
fn weight(event: &Event) -> usize {
    let values = [event.after(), event.before()];
    values
        .into_iter()
        .flatten()
        .map(|entry| entry.value.memory_bytes() + 128)
        .sum::<usize>()
        + event.key().len()
        + 64
}

impl History {
    pub(crate) fn new(limits: HistoryLimits, compacted: Revision) -> Self {
        Self {
            limits,
            all: Topic::new(),
            times: VecDeque::new(),
            topics: BTreeMap::new(),
            bytes: 0,
            compacted,
        }
    }

    pub(crate) fn compacted(&self) -> Revision {
        self.compacted
    }

    /// Adds an event. [`History::wake`] wakes its watches once the batch is complete.
    pub(crate) fn push(&mut self, event: Arc<Event>, now: Instant) {
        self.bytes += weight(&event);
        let name = key::topic(event.key());
        // The entry API would allocate the name for every event.
        match self.topics.get_mut(name) {
            Some(topic) => topic.ring.events.push_back(Arc::clone(&event)),
            None => {
                let mut topic = Topic::new();
                let name = Arc::from(name);
                topic.ring.events.push_back(Arc::clone(&event));
                self.topics.insert(name, topic);
            }
        }
        self.all.ring.events.push_back(event);
        self.times.push_back(now);
    }

    /// Wakes the watches of the collections of these events.
    pub(crate) fn wake(&self, events: &[Arc<Event>]) {
        self.all.wake.send_replace(());
        // Each topic is woken once per batch, however many of its events the batch has.
        let mut names: Vec<&str> = events.iter().map(|event| key::topic(event.key())).collect();
        names.sort_unstable();
        names.dedup();
        for topic in names.into_iter().filter_map(|name| self.topics.get(name)) {
            topic.wake.send_replace(());
        }
    }

    /// Wakes all watches.
    pub(crate) fn wake_all(&self) {
        self.all.wake.send_replace(());
        for topic in self.topics.values() {
            topic.wake.send_replace(());
        }
    }

    /// Drops events beyond the limits.
    pub(crate) fn trim(&mut self, now: Instant) {
        // Arrival times ascend, so the expired events are the first ones.
        let expired = |time: &Instant| now.saturating_duration_since(*time) > self.limits.age;
        let mut drop = self.times.partition_point(expired);
        drop = drop.max(self.times.len().saturating_sub(self.limits.events));
        for _ in 0..drop {
            self.pop();
        }
        while self.bytes > self.limits.bytes && self.pop() {}
    }

    /// Drops the events up to a revision.
    pub(crate) fn compact(&mut self, revision: Revision) {
        while self
            .all
            .ring
            .events
            .front()
            .is_some_and(|event| event.revision <= revision)
        {
            self.pop();
        }
        self.compacted = self.compacted.max(revision);
    }

    fn pop(&mut self) -> bool {
        let Some(event) = self.all.ring.pop() else {
            return false;
        };
        self.times.pop_front();
        // Events are immutable, so this is the weight that was added.
        self.bytes -= weight(&event);
        self.compacted = event.revision;
        let name = key::topic(event.key());
        if let Some(topic) = self.topics.get_mut(name) {
            // INVARIANT: a topic holds its events in the order of `all`, so this one is its front.
            topic.ring.pop();
            if topic.is_unused() {
                self.topics.remove(name);
            }
        }
        true
    }

    /// Drops all events, because a new state replaces the current one and the events in between are unknown.
    pub(crate) fn restart(&mut self, compacted: Revision) {
        self.all.ring.interrupt();
        self.times.clear();
        self.bytes = 0;
        self.compacted = compacted;
        self.topics.retain(|_, topic| !topic.wake.is_closed());
        for topic in self.topics.values_mut() {
            topic.ring.interrupt();
        }
    }

    /// The events after a revision, newest first.
    pub(crate) fn newest_first(&self, after: Revision) -> impl Iterator<Item = &Arc<Event>> {
        self.all
            .ring
            .events
            .iter()
            .rev()
            .take_while(move |event| event.revision > after)
    }

    /// The topic that contains all keys with this prefix, if there is exactly one.
    pub(crate) fn topic_of_prefix(prefix: &str) -> Option<Arc<str>> {
        // With fewer slashes, the prefix may span several topics.
        (prefix.bytes().filter(|byte| *byte == b'/').count() >= 4).then(|| key::topic(prefix).into())
    }

    /// Subscribes to a topic, or to all events.
    pub(crate) fn subscribe(&mut self, topic: Option<&Arc<str>>) -> (&EventRing, watch::Receiver<()>) {
        let topic = match topic {
            None => &self.all,
            Some(name) => self.topics.entry(Arc::clone(name)).or_insert_with(Topic::new),
        };
        (&topic.ring, topic.wake.subscribe())
    }

    /// Removes a topic if it is unused. The caller has dropped its receiver.
    pub(crate) fn unsubscribe(&mut self, name: &str) {
        if self.topics.get(name).is_some_and(Topic::is_unused) {
            self.topics.remove(name);
        }
    }

    /// The ring of a topic, or of all events. A topic's ring exists while it has subscribers.
    pub(crate) fn ring(&self, topic: Option<&Arc<str>>) -> Option<&EventRing> {
        match topic {
            None => Some(&self.all.ring),
            Some(name) => self.topics.get(name).map(|topic| &topic.ring),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_without_events_and_watches_are_removed() {
        let mut history = History::new(HistoryLimits::default(), 0);
        let name: Arc<str> = "/registry/example.com/widgets/".into();
        let (_, first) = history.subscribe(Some(&name));
        let (_, second) = history.subscribe(Some(&name));
        drop(first);
        history.unsubscribe(&name);
        assert_eq!(history.topics.len(), 1, "a watch is left");
        // Two watches may drop their receivers before either unsubscribes.
        let (_, third) = history.subscribe(Some(&name));
        drop((second, third));
        history.unsubscribe(&name);
        assert!(history.topics.is_empty());
    }
}
