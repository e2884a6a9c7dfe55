//! The tests of the contract.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use scantling_store::{
    Entry, EntryChange, Event, ListRequest, MAX_VALUE_BYTES, MaybeCompressed, Page, ReadAt, Revision, Store,
    StoreError, Watch, Write,
};

use crate::StoreFixture;
pub(crate) use crate::histories::{
    concurrent_histories_are_linearizable, random_histories_agree_with_the_model,
};

fn create(value: impl Into<MaybeCompressed>) -> Write {
    Write::Create { value: value.into() }
}

fn update(value: impl Into<MaybeCompressed>, expected: Revision) -> Write {
    Write::Update {
        value: value.into(),
        expected,
    }
}

fn delete(expected: Revision) -> Write {
    Write::Delete { expected }
}

async fn get(store: &dyn Store, key: &str) -> Option<Arc<Entry>> {
    store.get(key, ReadAt::Latest).await.unwrap()
}

async fn list(store: &dyn Store, prefix: &str, at: ReadAt) -> Result<Page, StoreError> {
    store
        .list(ListRequest {
            prefix: prefix.to_owned(),
            at,
            ..ListRequest::default()
        })
        .await
}

fn keys(page: &Page) -> Vec<&str> {
    page.entries.iter().map(|entry| &*entry.key).collect()
}

/// Returns the next event; fails after a timeout.
pub(crate) async fn next(watch: &mut Watch) -> Arc<Event> {
    let next = tokio::time::timeout(Duration::from_secs(20), watch.next());
    next.await.expect("an event should come").unwrap()
}

pub(crate) async fn create_then_read(fixture: &StoreFixture) {
    let (store, key) = (&*fixture.store, format!("{}g/things/ns/a", fixture.root));
    assert_eq!(get(store, &key).await, None);
    let before = store.revision().await.unwrap();
    assert!(before > 0, "zero means `any` to a Kubernetes client");

    let event = store.write(&key, create("one")).await.unwrap();
    assert!(event.revision > before);
    let EntryChange::Create { new } = &event.change else {
        panic!("{event:?}")
    };
    assert_eq!(
        (&*new.key, &*new.value.bytes(), new.version),
        (&*key, &b"one"[..], 1)
    );
    assert_eq!(
        (new.create_revision, new.mod_revision),
        (event.revision, event.revision)
    );
    assert!(store.revision().await.unwrap() >= event.revision);
    for at in [
        ReadAt::Latest,
        ReadAt::AtLeast(event.revision),
        ReadAt::Exact(event.revision),
    ] {
        assert_eq!(store.get(&key, at).await.unwrap().as_ref(), Some(new), "{at:?}");
    }
}

pub(crate) async fn failed_conditions_take_no_revision(fixture: &StoreFixture) {
    let (store, key) = (&*fixture.store, format!("{}g/things/ns/a", fixture.root));
    let missing = |result| matches!(result, Err(StoreError::NotFound { .. }));
    assert!(missing(store.write(&key, update("x", 1)).await));
    assert!(missing(store.write(&key, delete(1)).await));

    let one = store.write(&key, create("one")).await.unwrap().revision;
    let two = store.write(&key, update("two", one)).await.unwrap();
    let now = two.after().unwrap();
    match store.write(&key, create("x")).await {
        Err(StoreError::AlreadyExists { current }) => assert_eq!(&current, now),
        other => panic!("{other:?}"),
    }
    for write in [
        update("x", one),
        delete(one),
        update("x", 0),
        delete(two.revision + 1000),
    ] {
        match store.write(&key, write).await {
            Err(StoreError::Conflict { current, .. }) => assert_eq!(&current, now),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(get(store, &key).await.as_ref(), Some(now));
    let mut watch = store.watch(&fixture.root, one).await.unwrap();
    assert_eq!(*next(&mut watch).await, two);
    let three = store.write(&key, delete(two.revision)).await.unwrap();
    assert_eq!(*next(&mut watch).await, three, "refused writes are no events");
}

pub(crate) async fn create_update_delete_and_recreate(fixture: &StoreFixture) {
    let (store, key) = (&*fixture.store, format!("{}g/things/ns/a", fixture.root));
    let first = store.write(&key, create("1")).await.unwrap();
    let second = store.write(&key, update("2", first.revision)).await.unwrap();
    let EntryChange::Update { old, new } = &second.change else {
        panic!("{second:?}")
    };
    assert_eq!(Some(old), first.after());
    assert_eq!(
        (new.create_revision, new.mod_revision, new.version),
        (first.revision, second.revision, 2)
    );
    let gone = store.write(&key, delete(second.revision)).await.unwrap();
    assert_eq!(gone.change, EntryChange::Delete { old: Arc::clone(new) });
    assert_eq!(get(store, &key).await, None);
    let again = store.write(&key, create("")).await.unwrap();
    let EntryChange::Create { new } = &again.change else {
        panic!("{again:?}")
    };
    assert_eq!(
        (new.create_revision, new.version, new.value.len()),
        (again.revision, 1, 0)
    );
    assert!(
        first.revision < second.revision && second.revision < gone.revision && gone.revision < again.revision
    );
    assert_eq!(get(store, &key).await.as_ref(), Some(new));
}

pub(crate) async fn lists_are_in_byte_order_of_keys(fixture: &StoreFixture) {
    let (store, root) = (&*fixture.store, &fixture.root);
    let names = [
        "g/things/ns/b",
        "g/things/ns/a",
        "g/things/nsx/a",
        "g/things/ns-1/z",
        "g/thingsx/ns/a",
        "g/Z/ü/a",
    ];
    for name in names {
        store.write(&format!("{root}{name}"), create(name)).await.unwrap();
    }
    let mut all: Vec<String> = names.iter().map(|name| format!("{root}{name}")).collect();
    all.sort_unstable();
    assert_eq!(keys(&list(store, root, ReadAt::Latest).await.unwrap()), all);
    for (prefix, want) in [
        ("g/things/", 4),
        ("g/things/ns/", 2),
        ("g/things/ns", 4),
        ("g/things", 5),
        ("g/none/", 0),
        ("g/Z/ü/", 1),
    ] {
        let page = list(store, &format!("{root}{prefix}"), ReadAt::Latest)
            .await
            .unwrap();
        assert_eq!(page.entries.len(), want, "{prefix}");
        assert_eq!(page.remaining, 0);
    }
}

pub(crate) async fn pages_stay_at_one_state(fixture: &StoreFixture) {
    let (store, prefix) = (&*fixture.store, format!("{}g/things/", fixture.root));
    let mut revisions = Vec::new();
    for n in 0..25 {
        revisions.push(
            store
                .write(&format!("{prefix}ns/{n:02}"), create(format!("{n}")))
                .await
                .unwrap()
                .revision,
        );
    }
    let whole = list(store, &prefix, ReadAt::Latest).await.unwrap();
    let limit = NonZeroUsize::new(10);
    for known_remaining in [false, true] {
        let mut request = ListRequest {
            prefix: prefix.clone(),
            limit,
            ..ListRequest::default()
        };
        let mut entries = Vec::new();
        let mut remaining = Vec::new();
        loop {
            let page = store.list(request.clone()).await.unwrap();
            remaining.push(page.remaining);
            entries.extend(page.entries);
            if page.remaining == 0 {
                break;
            }
            request.at = ReadAt::Exact(page.revision);
            request.after = entries.last().map(|entry| entry.key.to_string());
            request.remaining = known_remaining.then_some(page.remaining);
            if !known_remaining && entries.len() == 10 {
                store
                    .write(&format!("{prefix}ns/10"), delete(revisions[10]))
                    .await
                    .unwrap();
                store
                    .write(&format!("{prefix}ns/11"), update("changed", revisions[11]))
                    .await
                    .unwrap();
                store
                    .write(&format!("{prefix}ns/12a"), create("new"))
                    .await
                    .unwrap();
            }
        }
        assert_eq!(remaining, [15, 5, 0]);
        if known_remaining {
            assert_eq!(
                entries,
                list(store, &prefix, ReadAt::Latest).await.unwrap().entries
            );
        } else {
            assert_eq!(entries, whole.entries);
        }
    }
    let after_the_end = ListRequest {
        prefix: prefix.clone(),
        after: Some(format!("{prefix}zz")),
        ..Default::default()
    };
    assert_eq!(store.list(after_the_end).await.unwrap().entries, []);
    let before_the_start = ListRequest {
        prefix: prefix.clone(),
        after: Some("/".to_owned()),
        ..Default::default()
    };
    assert_eq!(store.list(before_the_start).await.unwrap().entries.len(), 25);
}

pub(crate) async fn reads_at_past_revisions(fixture: &StoreFixture) {
    let (store, prefix) = (&*fixture.store, format!("{}g/things/ns/", fixture.root));
    let key = format!("{prefix}a");
    let one = store.write(&key, create("1")).await.unwrap().revision;
    let two = store.write(&key, update("2", one)).await.unwrap().revision;
    let other = store
        .write(&format!("{prefix}b"), create("b"))
        .await
        .unwrap()
        .revision;
    let gone = store.write(&key, delete(two)).await.unwrap().revision;
    for (at, value, names) in [
        (one, Some("1"), 1),
        (two, Some("2"), 1),
        (other, Some("2"), 2),
        (gone, None, 1),
    ] {
        let got = store.get(&key, ReadAt::Exact(at)).await.unwrap();
        assert_eq!(
            got.map(|entry| entry.value.clone()),
            value.map(MaybeCompressed::from),
            "at {at}"
        );
        let page = list(store, &prefix, ReadAt::Exact(at)).await.unwrap();
        assert_eq!((page.revision, page.entries.len()), (at, names), "at {at}");
        let page = list(store, &prefix, ReadAt::AtLeast(at)).await.unwrap();
        assert!(page.revision >= at);
    }
    assert_eq!(
        list(store, &prefix, ReadAt::AtLeast(gone))
            .await
            .unwrap()
            .entries
            .len(),
        1
    );
    assert!(list(store, &prefix, ReadAt::AtLeast(0)).await.is_ok());
}

pub(crate) async fn reads_at_future_revisions_fail(fixture: &StoreFixture) {
    let (store, prefix) = (&*fixture.store, format!("{}g/things/ns/", fixture.root));
    let far = store.revision().await.unwrap() + 1_000_000;
    let future = |error: StoreError| match error {
        StoreError::FutureRevision { requested, current } => assert!(requested == far && current < far),
        other => panic!("{other}"),
    };
    let key = format!("{prefix}a");
    // In parallel, because an engine may wait for a future revision.
    let [at_least, exact] = [ReadAt::AtLeast(far), ReadAt::Exact(far)];
    let (got, got_exact, listed, listed_exact, watched, compacted) = tokio::join!(
        store.get(&key, at_least),
        store.get(&key, exact),
        list(store, &prefix, at_least),
        list(store, &prefix, exact),
        store.watch(&prefix, far),
        store.compact(far),
    );
    let errors = [
        got.unwrap_err(),
        got_exact.unwrap_err(),
        listed.unwrap_err(),
        listed_exact.unwrap_err(),
        watched.unwrap_err(),
        compacted.unwrap_err(),
    ];
    errors.into_iter().for_each(future);
}

pub(crate) async fn compacted_revisions_cannot_be_read(fixture: &StoreFixture) {
    let (store, prefix) = (&*fixture.store, format!("{}g/things/ns/", fixture.root));
    let key = format!("{prefix}a");
    let one = store.write(&key, create("1")).await.unwrap().revision;
    let two = store.write(&key, update("2", one)).await.unwrap().revision;
    let three = store.write(&key, update("3", two)).await.unwrap().revision;
    let mut behind = store.watch(&prefix, one).await.unwrap();
    store.compact(two).await.unwrap();

    let compacted = |error: StoreError| match error {
        StoreError::Compacted { requested, oldest } => assert!(requested == one && oldest >= two),
        other => panic!("{other}"),
    };
    compacted(store.get(&key, ReadAt::Exact(one)).await.unwrap_err());
    compacted(list(store, &prefix, ReadAt::Exact(one)).await.unwrap_err());
    compacted(store.watch(&prefix, one).await.unwrap_err());
    compacted(store.compact(one).await.unwrap_err());
    // A watch opened before either has read its events in time, or ends with an error.
    match behind.next().await {
        Ok(event) => assert_eq!(event.revision, two),
        Err(error) => compacted(error),
    }

    assert_eq!(
        store
            .get(&key, ReadAt::Exact(two))
            .await
            .unwrap()
            .unwrap()
            .value
            .bytes(),
        "2"
    );
    assert_eq!(
        next(&mut store.watch(&prefix, two).await.unwrap()).await.revision,
        three
    );
    assert_eq!(get(store, &key).await.unwrap().value.bytes(), "3");
    store.write(&key, delete(three)).await.unwrap();
}

pub(crate) async fn a_watch_sees_each_write_once(fixture: &StoreFixture) {
    let (store, root) = (&*fixture.store, &fixture.root);
    let start = store.revision().await.unwrap();
    let prefixes = [
        "g/things/ns/",
        "g/things/",
        "g/things/ns/a",
        "g/other/",
        "",
        "g/thi",
    ];
    let mut watches = Vec::new();
    for prefix in prefixes {
        watches.push(store.watch(&format!("{root}{prefix}"), start).await.unwrap());
    }
    let mut events = Vec::new();
    for round in 0..5 {
        for name in [
            "g/things/ns/a",
            "g/things/ns/b",
            "g/things/x/a",
            "g/other/a",
            "names/a",
        ] {
            let key = format!("{root}{name}");
            let made = store.write(&key, create(format!("{round}"))).await.unwrap();
            let changed = store.write(&key, update("x", made.revision)).await.unwrap();
            let gone = store.write(&key, delete(changed.revision)).await.unwrap();
            events.extend([made, changed, gone]);
        }
    }
    for (prefix, watch) in prefixes.iter().zip(&mut watches) {
        let prefix = format!("{root}{prefix}");
        for want in events.iter().filter(|event| event.key().starts_with(&prefix)) {
            assert_eq!(*next(watch).await, *want, "{prefix}");
        }
        assert_eq!(watch.try_next().unwrap(), None, "{prefix}");
    }
}

pub(crate) async fn a_watch_resumes_at_any_revision(fixture: &StoreFixture) {
    let (store, prefix) = (&*fixture.store, format!("{}g/things/ns/", fixture.root));
    let mut revisions = vec![store.revision().await.unwrap()];
    for n in 0..600 {
        revisions.push(
            store
                .write(&format!("{prefix}{n}"), create("x"))
                .await
                .unwrap()
                .revision,
        );
    }
    for start in [0, 1, 300, 599, 600] {
        let mut watch = store.watch(&prefix, revisions[start]).await.unwrap();
        for want in &revisions[start + 1..] {
            assert_eq!(next(&mut watch).await.revision, *want);
        }
        assert_eq!(watch.try_next().unwrap(), None);
    }
}

pub(crate) async fn a_watch_reports_its_progress(fixture: &StoreFixture) {
    let (store, root) = (&*fixture.store, &fixture.root);
    let start = store.revision().await.unwrap();
    let mut watch = store.watch(&format!("{root}g/things/"), start).await.unwrap();
    let one = store
        .write(&format!("{root}g/things/a"), create("x"))
        .await
        .unwrap()
        .revision;
    let two = store
        .write(&format!("{root}g/things/b"), create("x"))
        .await
        .unwrap()
        .revision;
    assert!(watch.progress().unwrap() < one);
    assert_eq!(next(&mut watch).await.revision, one);
    let between = watch.progress().unwrap();
    assert!(between >= one.min(two - 1) && between < two);
    assert_eq!(next(&mut watch).await.revision, two);
    // Writes outside the prefix advance the progress, too, without an event.
    let elsewhere = store
        .write(&format!("{root}g/others/a"), create("x"))
        .await
        .unwrap()
        .revision;
    let mut witness = store.watch(&format!("{root}g/others/"), two).await.unwrap();
    assert_eq!(next(&mut witness).await.revision, elsewhere);
    assert!(watch.progress().unwrap() >= elsewhere);
    let three = store
        .write(&format!("{root}g/things/c"), create("x"))
        .await
        .unwrap()
        .revision;
    assert_eq!(next(&mut watch).await.revision, three);
}

pub(crate) async fn waiting_for_an_event_is_cancel_safe(fixture: &StoreFixture) {
    let (store, prefix) = (&*fixture.store, format!("{}g/things/ns/", fixture.root));
    let start = store.revision().await.unwrap();
    let mut watch = store.watch(&prefix, start).await.unwrap();
    assert!(
        tokio::time::timeout(Duration::from_millis(20), watch.next())
            .await
            .is_err()
    );
    let one = store.write(&format!("{prefix}a"), create("x")).await.unwrap();
    assert_eq!(*next(&mut watch).await, one);
    assert!(
        tokio::time::timeout(Duration::from_millis(20), watch.next())
            .await
            .is_err()
    );
    let two = store.write(&format!("{prefix}b"), create("x")).await.unwrap();
    assert_eq!(*next(&mut watch).await, two);
}

pub(crate) async fn unusual_keys_are_stored_or_refused(fixture: &StoreFixture) {
    let (store, prefix) = (&*fixture.store, format!("{}g/things/ns/", fixture.root));
    let long = "x".repeat(253);
    for name in [
        "a b",
        "ü",
        "%2F",
        "...",
        "\u{10ffff}",
        "\u{1}",
        "a\nb",
        "\"",
        "\\",
        "*",
        long.as_str(),
    ] {
        let key = format!("{prefix}{name}");
        let event = store.write(&key, create(name.to_owned())).await.unwrap();
        assert_eq!(
            get(store, &key).await.unwrap().value,
            *name.as_bytes(),
            "{name:?}"
        );
        assert_eq!(&**event.key(), key);
    }
    let before = list(store, &fixture.root, ReadAt::Latest).await.unwrap().entries;
    assert_eq!(before.len(), 11);
    let huge = format!("{prefix}{}", "x".repeat(5000));
    let refused = [
        "",
        "/",
        "a",
        "//",
        "/a//b",
        "/a/",
        "/a/../b",
        "/./a",
        "/a/..",
        "/a\0b",
        "a/b",
        huge.as_str(),
    ];
    for key in refused {
        let invalid = |error| matches!(error, StoreError::InvalidKey { .. });
        assert!(
            invalid(store.write(key, create("x")).await.unwrap_err()),
            "{key:?}"
        );
        assert!(
            invalid(store.get(key, ReadAt::Latest).await.unwrap_err()),
            "{key:?}"
        );
    }
    assert_eq!(
        list(store, &fixture.root, ReadAt::Latest).await.unwrap().entries,
        before
    );
}

pub(crate) async fn large_values_are_stored_or_refused(fixture: &StoreFixture) {
    let (store, key) = (&*fixture.store, format!("{}g/things/ns/a", fixture.root));
    let value: Bytes = (0..MAX_VALUE_BYTES - 64 * 1024)
        .map(|n| (n % 251) as u8)
        .collect::<Vec<_>>()
        .into();
    let revision = store.write(&key, create(value.clone())).await.unwrap().revision;
    let too_large = vec![b'x'; MAX_VALUE_BYTES + 1];
    for (key, write) in [
        (&key, update(too_large.clone(), revision)),
        (&format!("{key}2"), create(too_large.clone())),
    ] {
        match store.write(key, write).await {
            Err(StoreError::TooLarge { size, limit, .. }) => assert!(size > limit),
            other => panic!("{other:?}"),
        }
    }
    let all = list(store, &fixture.root, ReadAt::Latest).await.unwrap().entries;
    assert_eq!(all.len(), 1);
    assert!(all[0].value == *value, "the value came back changed");
    assert_eq!(all[0].mod_revision, revision);
}

pub(crate) async fn concurrent_updates_lose_nothing(fixture: &StoreFixture) {
    let key = format!("{}g/things/ns/counter", fixture.root);
    fixture.store.write(&key, create("0")).await.unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (store, key) = (Arc::clone(&fixture.store), key.clone());
            tokio::spawn(async move {
                let mut current = get(&*store, &key).await.unwrap();
                for _ in 0..20 {
                    current = loop {
                        let count: u64 = std::str::from_utf8(&current.value.bytes())
                            .unwrap()
                            .parse()
                            .unwrap();
                        match store
                            .write(&key, update((count + 1).to_string(), current.mod_revision))
                            .await
                        {
                            Ok(event) => break Arc::clone(event.after().unwrap()),
                            Err(StoreError::Conflict { current: now, .. }) => current = now,
                            Err(other) => panic!("{other}"),
                        }
                    };
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let last = get(&*fixture.store, &key).await.unwrap();
    assert_eq!((&*last.value.bytes(), last.version), (&b"160"[..], 161));
}

pub(crate) async fn concurrent_creates_are_all_seen(fixture: &StoreFixture) {
    let start = fixture.store.revision().await.unwrap();
    let mut watch = fixture.store.watch(&fixture.root, start).await.unwrap();
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let (store, root) = (Arc::clone(&fixture.store), fixture.root.clone());
            tokio::spawn(async move {
                let mut revisions = Vec::new();
                for n in 0..20 {
                    let key = format!("{root}g/things/ns-{task}/{n}");
                    let event = store.write(&key, create("x")).await.unwrap();
                    let page = list(&*store, &format!("{root}g/things/ns-{task}/"), ReadAt::Latest)
                        .await
                        .unwrap();
                    assert_eq!(page.entries.len(), n + 1, "a list sees what was acknowledged");
                    assert!(page.revision >= event.revision);
                    revisions.push(event.revision);
                }
                revisions
            })
        })
        .collect();
    let mut acknowledged = BTreeSet::new();
    for task in tasks {
        for revision in task.await.unwrap() {
            assert!(
                acknowledged.insert(revision),
                "revision {revision} was given twice"
            );
        }
    }
    assert_eq!(acknowledged.len(), 320);
    for want in acknowledged {
        assert_eq!(next(&mut watch).await.revision, want);
    }
}
