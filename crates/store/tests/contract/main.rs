//! One contract, every engine: each passes the same suite and agrees with the same model.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests fail by panicking, and say what they skip"
)]

mod model;
mod suite;
#[path = "../support/etcd.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use scantling_store::{EmbeddedConfig, EmbeddedStore, EtcdConfig, EtcdStore, MemStore, Store};

/// A store to test, the keys that are the test's own, and whatever must live as long as the store.
struct Fixture {
    store: Arc<dyn Store>,
    /// Ends with a slash.
    root: String,
    _guard: Box<dyn std::any::Any + Send + Sync>,
}

/// Runs the whole suite against the fixtures that an expression makes.
macro_rules! store_contract {
    ($engine:ident: $fixture:expr) => {
        store_contract!($engine: $fixture =>
            create_then_read,
            conditions_decide_and_take_no_revision,
            a_key_has_a_life,
            lists_are_in_byte_order_of_keys,
            pages_stay_at_one_state,
            the_past_can_be_read,
            the_future_cannot_be_read,
            compaction_ends_the_past,
            a_watch_sees_each_write_once,
            a_watch_resumes_anywhere,
            a_watch_tells_its_progress,
            a_wait_for_an_event_may_be_dropped,
            odd_keys_are_kept_or_refused,
            large_values_are_kept_or_refused,
            concurrent_updates_lose_nothing,
            concurrent_creates_are_all_seen,
            random_histories_agree_with_the_model,
        );
    };
    ($engine:ident: $fixture:expr => $($test:ident),* $(,)?) => {
        mod $engine {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let fixture: Option<Fixture> = $fixture.await;
                    let Some(fixture) = fixture else { return };
                    suite::$test(&fixture).await;
                }
            )*
        }
    };
}

async fn mem() -> Option<Fixture> {
    Some(Fixture {
        store: Arc::new(MemStore::default()),
        root: "/registry/".to_owned(),
        _guard: Box::new(()),
    })
}

store_contract!(mem: mem());

async fn embedded() -> Option<Fixture> {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(EmbeddedConfig::new(directory.path())).unwrap();
    Some(Fixture {
        store: Arc::new(store),
        root: "/registry/".to_owned(),
        _guard: Box::new(directory),
    })
}

store_contract!(embedded: embedded());

async fn etcd() -> Option<Fixture> {
    let server = support::Etcd::start()?;
    let mut config = EtcdConfig::new(vec![server.address()]);
    config.catch_up = Duration::from_millis(500);
    config.patience = Duration::from_secs(30);
    let store = EtcdStore::connect(config).await.unwrap();
    Some(Fixture {
        store: Arc::new(store),
        root: "/registry/".to_owned(),
        _guard: Box::new(server),
    })
}

store_contract!(etcd: etcd());
