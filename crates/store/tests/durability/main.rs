//! Acknowledged writes survive crashes, failing disks, full disks and damaged files.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests fail by panicking, and say what they skip"
)]

mod backup;
mod cluster;
mod crash;
mod damage;
mod faults;
mod images;
#[path = "../support/linear.rs"]
mod linear;
mod power;

use std::collections::BTreeMap;
use std::path::Path;

use scantling_store::{
    EmbeddedConfig, EmbeddedStore, HistoryLimits, ListRequest, MaybeCompressed, Revision, Store,
};

/// A store with segments and checkpoints so small that a short test goes through many of them.
fn small(directory: &Path) -> EmbeddedConfig {
    let mut config = EmbeddedConfig::new(directory);
    config.segment_bytes = 64 << 10;
    config.checkpoint_bytes = 96 << 10;
    config.history = HistoryLimits {
        events: 20_000,
        ..HistoryLimits::default()
    };
    config
}

/// Returns all keys with their revisions and values.
async fn contents(store: &EmbeddedStore) -> BTreeMap<String, (Revision, MaybeCompressed)> {
    let all = ListRequest {
        prefix: "/".to_owned(),
        ..ListRequest::default()
    };
    let page = store.list(all).await.unwrap();
    page.entries
        .iter()
        .map(|entry| (entry.key.to_string(), (entry.mod_revision, entry.value.clone())))
        .collect()
}

/// Copies the files of a store. Files that background threads change during the copy are copied again.
fn copy_all(from: &Path) -> tempfile::TempDir {
    let files = || -> BTreeMap<_, _> {
        let files = std::fs::read_dir(from).unwrap().map(Result::unwrap);
        let changed = |file: &std::fs::DirEntry| file.metadata().and_then(|data| data.modified()).ok();
        files.map(|file| (file.file_name(), changed(&file))).collect()
    };
    loop {
        let to = tempfile::tempdir().unwrap();
        let before = files();
        let copied = before
            .keys()
            .all(|name| std::fs::copy(from.join(name), to.path().join(name)).is_ok());
        if copied && files() == before {
            return to;
        }
    }
}
