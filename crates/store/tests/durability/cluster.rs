//! Two servers over one etcd; now one of them goes, now etcd itself.

use std::sync::Arc;
use std::time::Duration;

use scantling_store::{EtcdConfig, EtcdStore, Event, ReadAt, Revision, Store, Watch, Write};

use crate::etcd::Etcd;

const PREFIX: &str = "/registry/cluster/things/";

async fn connect(etcd: &Etcd) -> EtcdStore {
    let mut config = EtcdConfig::new(vec![etcd.address()]);
    config.patience = Duration::from_secs(30);
    EtcdStore::connect(config).await.unwrap()
}

async fn create(store: &EtcdStore, name: &str) -> Revision {
    store
        .write(&format!("{PREFIX}{name}"), Write::Create { value: "x".into() })
        .await
        .unwrap()
        .revision
}

async fn next(watch: &mut Watch) -> Arc<Event> {
    tokio::time::timeout(Duration::from_secs(30), watch.next())
        .await
        .expect("an event should come")
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_sees_what_the_other_writes() {
    let Some(etcd) = Etcd::start() else { return };
    let (one, two) = (connect(&etcd).await, connect(&etcd).await);
    let start = one.revision().await.unwrap();
    let mut watch = two.watch(PREFIX, start).await.unwrap();
    let first = create(&one, "a").await;
    assert_eq!(next(&mut watch).await.revision, first);
    // A read that wants a revision waits for it, on whichever server.
    let second = create(&one, "b").await;
    let got = two
        .get(&format!("{PREFIX}b"), ReadAt::AtLeast(second))
        .await
        .unwrap();
    assert_eq!(got.unwrap().mod_revision, second);
    assert_eq!(next(&mut watch).await.revision, second);

    // One goes; the other goes on; the one that comes back resumes where it was.
    drop(one);
    let third = create(&two, "c").await;
    let one = connect(&etcd).await;
    let mut resumed = one.watch(PREFIX, first).await.unwrap();
    assert_eq!(next(&mut resumed).await.revision, second);
    assert_eq!(next(&mut resumed).await.revision, third);
    let event = next(&mut watch).await;
    assert_eq!(event.revision, third);
    let expected = third;
    let gone = one
        .write(&format!("{PREFIX}c"), Write::Delete { expected })
        .await
        .unwrap();
    assert_eq!(*next(&mut watch).await, gone);
    assert_eq!(*next(&mut resumed).await, gone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_outlive_a_crash_of_etcd() {
    let Some(mut etcd) = Etcd::start() else { return };
    let (one, two) = (Arc::new(connect(&etcd).await), connect(&etcd).await);
    let start = one.revision().await.unwrap();
    let mut watches = [
        one.watch(PREFIX, start).await.unwrap(),
        two.watch(PREFIX, start).await.unwrap(),
    ];
    let mut expected = vec![create(&one, "0").await];
    for round in 1..4 {
        etcd.kill();
        let cached = two.get(&format!("{PREFIX}0"), ReadAt::AtLeast(0)).await.unwrap();
        assert!(cached.is_some(), "what is in memory can be read without etcd");
        let writer = tokio::spawn({
            let one = Arc::clone(&one);
            async move { create(&one, &format!("during-{round}")).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        etcd.resume();
        expected.push(writer.await.unwrap());
        expected.push(create(&two, &format!("after-{round}")).await);
    }
    for watch in &mut watches {
        for revision in &expected {
            assert_eq!(next(watch).await.revision, *revision);
        }
        assert_eq!(watch.try_next().unwrap(), None);
    }
}
