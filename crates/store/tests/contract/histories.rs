//! Random histories, sequential and concurrent.

use std::num::NonZeroUsize;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use scantling_store::{
    Entry, Event, ListRequest, MaybeCompressed, ReadAt, Revision, Store, StoreError, Write,
};

use crate::model::{StoreModel, WriteOutcome};
use crate::suite::next;
use crate::{StoreFixture, linear};

/// Concurrent histories of many clients are linearizable.
pub(crate) async fn concurrent_histories_are_linearizable(fixture: &StoreFixture) {
    for round in 0..3 {
        let prefix = format!("{}g/things/round-{round}/", fixture.root);
        linear::run(&[Arc::clone(&fixture.store)], &prefix, 8, 40, async {}).await;
    }
}

/// A step of a random history. Numbers choose among few keys, and among the revisions of a key.
#[derive(Debug, Clone)]
enum HistoryStep {
    Create { key: usize },
    Update { key: usize, stale: bool },
    Delete { key: usize, stale: bool },
    Compact { nth: usize },
    Check { nth: usize, limit: usize },
}

fn step() -> impl Strategy<Value = HistoryStep> {
    let key = 0..6_usize;
    let stale = proptest::bool::weighted(0.2);
    prop_oneof![
        4 => key.clone().prop_map(|key| HistoryStep::Create { key }),
        4 => (key.clone(), stale).prop_map(|(key, stale)| HistoryStep::Update { key, stale }),
        3 => (key, stale).prop_map(|(key, stale)| HistoryStep::Delete { key, stale }),
        1 => (0..100_usize).prop_map(|nth| HistoryStep::Compact { nth }),
        3 => (0..100_usize, 1..4_usize).prop_map(|(nth, limit)| HistoryStep::Check { nth, limit }),
    ]
}

pub(crate) async fn random_histories_agree_with_the_model(fixture: &StoreFixture) {
    let mut runner = TestRunner::new(Config::default());
    let histories = proptest::collection::vec(step(), 20..60);
    for case in 0..24 {
        let root = format!("{}case-{case}/", fixture.root);
        let steps = histories.new_tree(&mut runner).unwrap().current();
        replay(&*fixture.store, &root, &steps).await;
    }
}

async fn replay(store: &dyn Store, root: &str, steps: &[HistoryStep]) {
    let keys: Vec<String> = ["a/x", "a/y", "a/z", "ab/x", "b/x", "b"]
        .iter()
        .map(|name| format!("{root}{name}"))
        .collect();
    let mut model = StoreModel::default();
    let start = store.revision().await.unwrap();
    let mut compacted = start;
    let mut watch = store.watch(root, start).await.unwrap();
    let mut seen = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let (key, stale) = match step {
            HistoryStep::Create { key } => (*key, false),
            HistoryStep::Update { key, stale } | HistoryStep::Delete { key, stale } => (*key, *stale),
            HistoryStep::Compact { nth } => {
                let revision = model.revision(*nth).unwrap_or(start);
                // The watch reads first, because a compaction may overtake it.
                while seen.len() < model.events(root, start).len() {
                    seen.push(next(&mut watch).await);
                }
                match store.compact(revision).await {
                    Ok(()) => compacted = revision,
                    Err(StoreError::Compacted { .. }) => assert!(revision <= compacted),
                    Err(other) => panic!("{other}"),
                }
                continue;
            }
            HistoryStep::Check { nth, limit } => {
                check_reads(
                    store,
                    root,
                    &model,
                    model.revision(*nth).unwrap_or(start),
                    compacted,
                    *limit,
                )
                .await;
                continue;
            }
        };
        let at = model
            .state(Revision::MAX)
            .get(&keys[key])
            .map_or(1, |entry| entry.mod_revision);
        let expected = if stale { at - 1 } else { at };
        let value = MaybeCompressed::from(format!("{number}"));
        let write = match step {
            HistoryStep::Create { .. } => Write::Create { value },
            HistoryStep::Update { .. } => Write::Update { value, expected },
            _ => Write::Delete { expected },
        };
        let result = store.write(&keys[key], write.clone()).await;
        assert_eq!(
            WriteOutcome::from_result(&result),
            model.expect(&keys[key], &write),
            "step {number} of {steps:?}"
        );
        if let Ok(event) = result {
            model.record(event.revision, &keys[key], &write);
        }
    }
    let want = model.events(root, start);
    while seen.len() < want.len() {
        seen.push(next(&mut watch).await);
    }
    let got: Vec<_> = seen.iter().map(|event| flatten(event)).collect();
    assert_eq!(got, want, "{steps:?}");
    check_reads(store, root, &model, Revision::MAX, compacted, 2).await;
}

fn flatten(event: &Event) -> (Revision, String, Option<Entry>, Option<Entry>) {
    let owned = |entry: Option<&Arc<Entry>>| entry.map(|entry| Entry::clone(entry));
    (
        event.revision,
        event.key().to_string(),
        owned(event.before()),
        owned(event.after()),
    )
}

/// Compares all reads at one revision, and a watch from it, with the model.
async fn check_reads(
    store: &dyn Store,
    root: &str,
    model: &StoreModel,
    at: Revision,
    compacted: Revision,
    limit: usize,
) {
    let mut request = ListRequest {
        prefix: format!("{root}a"),
        limit: NonZeroUsize::new(limit),
        at: if at == Revision::MAX {
            ReadAt::Latest
        } else {
            ReadAt::Exact(at)
        },
        ..ListRequest::default()
    };
    let want: Vec<Entry> = model
        .state(at)
        .into_values()
        .filter(|entry| entry.key.starts_with(&request.prefix))
        .collect();
    let mut got = Vec::new();
    loop {
        let page = match store.list(request.clone()).await {
            Ok(page) => page,
            Err(StoreError::Compacted { .. }) => {
                assert!(at < compacted, "{at} is not older than {compacted}");
                return;
            }
            Err(other) => panic!("{other}"),
        };
        got.extend(page.entries.iter().map(|entry| Entry::clone(entry)));
        assert_eq!(page.remaining, (want.len() - got.len()) as u64);
        if page.remaining == 0 {
            break;
        }
        request.at = ReadAt::Exact(page.revision);
        request.after = got.last().map(|entry| entry.key.to_string());
    }
    assert_eq!(got, want);
    if at != Revision::MAX {
        let prefix = format!("{root}a/");
        let mut watch = store.watch(&prefix, at).await.unwrap();
        for want in model.events(&prefix, at) {
            let got = next(&mut watch).await;
            assert_eq!(flatten(&got), want);
        }
    }
}
