//! The contract suite: every engine passes the same tests and agrees with the same model.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod histories;
#[path = "../support/linear.rs"]
mod linear;
mod model;
mod suite;

use std::sync::Arc;
use std::time::Duration;

use scantling_store::{EmbeddedConfig, EmbeddedStore, EtcdStore, MemStore, Store};

/// A store under test, the keys reserved for the test, and resources that must live as long as the store.
struct StoreFixture {
    store: Arc<dyn Store>,
    /// Ends with a slash.
    root: String,
    _guard: Box<dyn std::any::Any + Send + Sync>,
}

/// Runs the suite against the fixtures that an expression creates.
macro_rules! store_contract {
    ($engine:ident: $fixture:expr) => {
        store_contract!($engine: $fixture =>
            create_then_read,
            failed_conditions_take_no_revision,
            create_update_delete_and_recreate,
            lists_are_in_byte_order_of_keys,
            pages_stay_at_one_state,
            reads_at_past_revisions,
            reads_at_future_revisions_fail,
            compacted_revisions_cannot_be_read,
            a_watch_sees_each_write_once,
            a_watch_resumes_at_any_revision,
            a_watch_reports_its_progress,
            waiting_for_an_event_is_cancel_safe,
            unusual_keys_are_stored_or_refused,
            large_values_are_stored_or_refused,
            concurrent_updates_lose_nothing,
            concurrent_creates_are_all_seen,
            random_histories_agree_with_the_model,
            concurrent_histories_are_linearizable,
        );
    };
    ($engine:ident: $fixture:expr => $($test:ident),* $(,)?) => {
        mod $engine {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let fixture: Option<StoreFixture> = $fixture.await;
                    let Some(fixture) = fixture else { return };
                    suite::$test(&fixture).await;
                }
            )*
        }
    };
}

async fn mem() -> Option<StoreFixture> {
    Some(StoreFixture {
        store: Arc::new(MemStore::default()),
        root: "/registry/".to_owned(),
        _guard: Box::new(()),
    })
}

store_contract!(mem: mem());

async fn embedded() -> Option<StoreFixture> {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(EmbeddedConfig::new(directory.path())).unwrap();
    Some(StoreFixture {
        store: Arc::new(store),
        root: "/registry/".to_owned(),
        _guard: Box::new(directory),
    })
}

store_contract!(embedded: embedded());

async fn etcd() -> Option<StoreFixture> {
    let cluster = scantling_testkit::etcd::EtcdCluster::start(1, scantling_testkit::etcd::Security::Plain)?;
    let mut config = cluster.config();
    // Longer than any delay on a busy machine.
    config.catch_up = Duration::from_secs(15);
    let store = EtcdStore::connect(config).await.unwrap();
    Some(StoreFixture {
        store: Arc::new(store),
        root: "/registry/".to_owned(),
        _guard: Box::new(cluster),
    })
}

store_contract!(etcd: etcd());

/// The linearizability checker rejects wrong histories.
mod checker {
    use super::linear::{CallOutcome, NEVER, RecordedCall, StoreCall, check};

    fn operation(times: (u64, u64), call: StoreCall, outcome: CallOutcome) -> RecordedCall {
        RecordedCall {
            key: "/a".to_owned(),
            call,
            outcome,
            invoked: times.0,
            returned: times.1,
        }
    }

    /// Runs the checker on a history of reads.
    fn reads(found: &[((u64, u64), Option<u64>)]) {
        let read = |&(times, number)| operation(times, StoreCall::Get, CallOutcome::Found(number));
        check(found.iter().map(read).collect(), &[]);
    }

    #[test]
    fn accepts_a_linearizable_history() {
        reads(&[((1, 2), None), ((3, 4), None)]);
        let lost = operation((1, NEVER), StoreCall::Create { new: 7 }, CallOutcome::Unknown);
        check(vec![lost], &[]);
    }

    #[test]
    #[should_panic(expected = "no order explains")]
    fn rejects_a_value_that_was_never_written() {
        reads(&[((1, 2), Some(5))]);
    }

    #[test]
    #[should_panic(expected = "acknowledged, and not shown")]
    fn rejects_a_write_without_an_event() {
        let write = operation((1, 2), StoreCall::Create { new: 7 }, CallOutcome::Written(2));
        check(vec![write], &[]);
    }

    #[tokio::test]
    #[should_panic(expected = "no order explains")]
    async fn rejects_a_stale_read() {
        let (write, event) = created().await;
        let stale = operation((3, 4), StoreCall::Get, CallOutcome::Found(None));
        check(vec![write, stale], &[event]);
    }

    #[tokio::test]
    #[should_panic(expected = "no order explains")]
    async fn rejects_reads_that_go_back_in_time() {
        let (mut write, event) = created().await;
        write.returned = 9;
        let new = operation((3, 4), StoreCall::Get, CallOutcome::Found(Some(7)));
        let old = operation((5, 6), StoreCall::Get, CallOutcome::Found(None));
        check(vec![write, new, old], &[event]);
    }

    #[tokio::test]
    async fn accepts_reads_on_both_sides_of_a_slow_write() {
        let (mut write, event) = created().await;
        write.returned = 9;
        let old = operation((3, 4), StoreCall::Get, CallOutcome::Found(None));
        let new = operation((5, 6), StoreCall::Get, CallOutcome::Found(Some(7)));
        check(vec![write, old, new], &[event]);
    }

    /// Returns a successful create and its event.
    async fn created() -> (RecordedCall, std::sync::Arc<scantling_store::Event>) {
        use scantling_store::{MemStore, Store, Write};
        let value = super::linear::value(7).into();
        let event = MemStore::default()
            .write("/a", Write::Create { value })
            .await
            .unwrap();
        let outcome = CallOutcome::Written(event.revision);
        let write = operation((1, 2), StoreCall::Create { new: 7 }, outcome);
        (write, event.into())
    }
}
