//! Backups: check, export, import.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use scantling_store::{
    BackupError, EmbeddedStore, ListRequest, MaybeCompressed, MemStore, ReadAt, Store, Write, export,
};

use crate::{contents, small};

async fn fill(store: &dyn Store) {
    for n in 0..50_u8 {
        let value = if n % 10 == 0 {
            MaybeCompressed::from(vec![0xff, n])
        } else {
            MaybeCompressed::from(format!("{{\"n\":{n}}}"))
        };
        let event = store
            .write(&format!("/registry/g/things/ns/{n}"), Write::Create { value })
            .await
            .unwrap();
        if n % 3 == 0 {
            let expected = event.revision;
            let key = event.key().to_string();
            store
                .write(
                    &key,
                    Write::Update {
                        value: "ü\n\"".into(),
                        expected,
                    },
                )
                .await
                .unwrap();
        }
        if n % 5 == 0 && n % 3 != 0 {
            store
                .write(
                    event.key(),
                    Write::Delete {
                        expected: event.revision,
                    },
                )
                .await
                .unwrap();
        }
    }
}

#[tokio::test]
async fn a_restored_store_is_the_same_store() {
    let [old, new] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let store = EmbeddedStore::open(small(old.path())).unwrap();
    fill(&store).await;
    let mut backup = Vec::new();
    let summary = export(&store, "/", &mut backup).await.unwrap();
    assert_eq!(summary.revision, store.revision().await.unwrap());
    let want = contents(&store).await;
    store.close().unwrap();
    let report = EmbeddedStore::check(old.path()).unwrap();
    assert_eq!(
        (report.revision, report.entries),
        (summary.revision, summary.entries)
    );

    assert_eq!(
        EmbeddedStore::restore(new.path(), backup.as_slice()).unwrap(),
        summary
    );
    assert_eq!(EmbeddedStore::check(new.path()).unwrap().entries, summary.entries);
    let store = EmbeddedStore::open(small(new.path())).unwrap();
    assert_eq!(contents(&store).await, want);
    assert_eq!(store.revision().await.unwrap(), summary.revision);
    let next = store
        .write("/registry/g/things/ns/new", Write::Create { value: "x".into() })
        .await
        .unwrap();
    assert_eq!(next.revision, summary.revision + 1);
    drop(store);
    assert!(
        EmbeddedStore::restore(new.path(), backup.as_slice()).is_err(),
        "nothing is overwritten"
    );
}

#[tokio::test]
async fn a_backup_that_was_changed_or_cut_is_refused() {
    let store = MemStore::default();
    fill(&store).await;
    let mut backup = Vec::new();
    export(&store, "/", &mut backup).await.unwrap();
    let text = String::from_utf8(backup).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    let dropped = [&lines[..5], &lines[6..]].concat().join("\n");
    let changed = text.replacen("{\\\"n\\\":4}", "{\\\"n\\\":5}", 1);
    assert_ne!(changed, text);
    for bad in ["", "{}", "hello", &cut, &dropped, &changed] {
        let directory = tempfile::tempdir().unwrap();
        let outcome = EmbeddedStore::restore(directory.path(), bad.as_bytes());
        assert!(
            matches!(outcome, Err(BackupError::Malformed { .. })),
            "{outcome:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_one_state_whatever_is_written_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(small(directory.path())).unwrap());
    fill(&*store).await;
    let (begun, mut writing) = tokio::sync::watch::channel(0);
    let writer = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            // Two keys that change one after the other: no state has the second change without the first.
            for n in 0..3_000 {
                for name in ["first", "second"] {
                    let value = format!("{n}").into();
                    let key = format!("/registry/g/pairs/ns/{n:05}-{name}");
                    store.write(&key, Write::Create { value }).await.unwrap();
                }
                begun.send_replace(n);
            }
        }
    });
    for round in 0..5 {
        let _ = writing.wait_for(|n| *n > round * 20).await;
        let mut backup = Vec::new();
        let summary = export(&*store, "/", &mut backup).await.unwrap();
        let restored = tempfile::tempdir().unwrap();
        EmbeddedStore::restore(restored.path(), backup.as_slice()).unwrap();
        let restored = EmbeddedStore::open(small(restored.path())).unwrap();
        let then = ListRequest {
            prefix: "/".to_owned(),
            at: ReadAt::Exact(summary.revision),
            ..ListRequest::default()
        };
        let then = store.list(then).await.unwrap();
        let found = contents(&restored).await;
        assert_eq!(found.len(), then.entries.len());
        for entry in &then.entries {
            let want = (entry.mod_revision, entry.value.clone());
            assert_eq!(found.get(&*entry.key), Some(&want));
        }
    }
    writer.abort();
}

/// Generates arbitrary keys and values.
fn arbitrary_entries() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let name = "[^/\\x00]{1,20}".prop_filter("names of directories", |name| name != "." && name != "..");
    let key = proptest::collection::vec(name, 1..4).prop_map(|names| format!("/{}", names.join("/")));
    let text = "\\PC{0,40}".prop_map(String::into_bytes);
    let value = prop_oneof![text, proptest::collection::vec(any::<u8>(), 0..40)];
    proptest::collection::btree_map(key, value, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_was_exported_comes_back(all in arbitrary_entries()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = MemStore::default();
            for (key, value) in &all {
                let value = value.clone().into();
                store.write(key, Write::Create { value }).await.unwrap();
            }
            let mut backup = Vec::new();
            export(&store, "/", &mut backup).await.unwrap();
            let directory = tempfile::tempdir().unwrap();
            EmbeddedStore::restore(directory.path(), backup.as_slice()).unwrap();
            let restored = EmbeddedStore::open(small(directory.path())).unwrap();
            let found = contents(&restored).await;
            let found: BTreeMap<_, _> = found.into_iter().map(|(key, (_, value))| (key, value.bytes().to_vec())).collect();
            assert_eq!(found, all);
            let mut again = Vec::new();
            export(&restored, "/", &mut again).await.unwrap();
            assert!(backup == again, "the second backup differs from the first");
        });
    }
}
