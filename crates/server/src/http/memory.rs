//! Memory budgets for clients: request bodies being received, and responses being sent.

use scantling_value::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory held for clients, with a separate budget per purpose: exhausting one does not affect the
/// others.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Incomplete request heads.
    pub(crate) heads: Budget,
    /// Bodies of requests.
    pub(crate) requests: Budget,
    /// Bodies of responses.
    pub(crate) responses: Budget,
    /// Events of watches.
    pub(crate) watches: Budget,
    /// Responses of conversion webhooks, and the converted objects of lists and watches.
    pub(crate) conversions: Budget,
}

impl Memory {
    pub(crate) fn new(limit: usize) -> Memory {
        Memory {
            // The shares add up to the limit.
            heads: Budget::new(limit / 8),
            requests: Budget::new(limit / 4),
            responses: Budget::new(limit / 4),
            watches: Budget::new(limit / 8),
            conversions: Budget::new(limit / 4),
        }
    }
}

/// The memory that a decoded value takes.
pub(crate) fn size_of_value(value: &Value) -> usize {
    let mut bytes = 0;
    // A list instead of recursion: values may be as deep as the limit of the decoder.
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        bytes += size_of::<Value>();
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => rest.extend(items),
            Value::Object(members) => {
                for (name, value) in members.entries() {
                    bytes += size_of_val(name) + name.len();
                    rest.push(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
        }
    }
    bytes
}

/// A number of bytes shared by all clients.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Counter>);

#[derive(Debug)]
struct Counter {
    limit: usize,
    used: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Budget {
        Budget(Arc::new(Counter {
            limit,
            used: AtomicUsize::new(0),
        }))
    }

    /// Reserves bytes until the charge is dropped; `None` if not enough are left.
    ///
    /// An unused budget admits any charge, so no single response is too large to be sent.
    pub(crate) fn charge(&self, bytes: usize) -> Option<Charge> {
        let mut charge = self.empty();
        charge.grow(bytes).then_some(charge)
    }

    /// A charge of no bytes.
    pub(crate) fn empty(&self) -> Charge {
        Charge {
            budget: self.clone(),
            bytes: 0,
        }
    }

    #[cfg(test)]
    fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }
}

/// Reserved bytes of a budget; dropping it releases them.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Budget,
    bytes: usize,
}

impl Charge {
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Reserves more bytes; returns whether they were available.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let Counter { limit, used } = &*self.budget.0;
        let grown = |taken: usize| {
            let total = taken.checked_add(bytes)?;
            // If all that is taken is this charge's own, no other request suffers from its growth.
            (total <= *limit || taken == self.bytes).then_some(total)
        };
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown);
        if taken.is_ok() {
            self.bytes += bytes;
        }
        taken.is_ok()
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.0.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_charges_are_bounded_and_released() {
        let budget = Budget::new(100);
        let mut first = budget.charge(60).expect("there is room");
        assert!(budget.charge(41).is_none());
        let second = budget.charge(40).expect("there is room");
        assert!(!first.grow(1));
        drop(second);
        assert!(first.grow(40));
        assert_eq!(budget.used(), 100);
        drop(first);
        assert_eq!(budget.used(), 0);
        let alone = budget.charge(1000);
        assert!(alone.is_some(), "a charge that is alone may exceed the budget");
        assert!(budget.charge(1).is_none());
    }
}
