//! Servers on one etcd cluster, while servers, members, the leader or the whole cluster fail.

use std::sync::Arc;
use std::time::{Duration, Instant};

use scantling_store::{
    EtcdConfig, EtcdStore, Event, ListRequest, ReadAt, Revision, Store, StoreError, Watch, Write,
};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::linear;
use scantling_testkit::etcd::{EtcdCluster, Security};

const PREFIX: &str = "/registry/cluster/things/";

async fn create(store: &EtcdStore, name: &str) -> Revision {
    store
        .write(&format!("{PREFIX}{name}"), Write::Create { value: "x".into() })
        .await
        .unwrap()
        .revision
}

/// Creates a key, retrying until it succeeds: during an election, the outcome of a write is unknown.
async fn create_with_retries(store: &EtcdStore, name: &str) -> Revision {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        let create = Write::Create { value: "x".into() };
        match store.write(&format!("{PREFIX}{name}"), create).await {
            Ok(event) => return event.revision,
            Err(StoreError::AlreadyExists { current }) => return current.mod_revision,
            Err(StoreError::Unavailable { .. }) => assert!(Instant::now() < deadline),
            Err(other) => panic!("{other}"),
        }
    }
}

async fn next(watch: &mut Watch) -> Arc<Event> {
    tokio::time::timeout(Duration::from_secs(60), watch.next())
        .await
        .expect("an event should come")
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_sees_what_the_other_writes() {
    let Some(etcd) = EtcdCluster::start(1, Security::Plain) else {
        return;
    };
    let (one, two) = (etcd.connect().await, etcd.connect().await);
    let start = one.revision().await.unwrap();
    let mut watch = two.watch(PREFIX, start).await.unwrap();
    let first = create(&one, "a").await;
    assert_eq!(next(&mut watch).await.revision, first);
    // A read at a revision waits for it on any server.
    let second = create(&one, "b").await;
    let got = two
        .get(&format!("{PREFIX}b"), ReadAt::AtLeast(second))
        .await
        .unwrap();
    assert_eq!(got.unwrap().mod_revision, second);
    assert_eq!(next(&mut watch).await.revision, second);

    // One server stops, the other continues, and the restarted one resumes.
    drop(one);
    let third = create(&two, "c").await;
    let one = etcd.connect().await;
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
async fn servers_survive_a_crash_of_etcd() {
    let Some(mut etcd) = EtcdCluster::start(1, Security::Plain) else {
        return;
    };
    let (one, two) = (Arc::new(etcd.connect().await), etcd.connect().await);
    let start = one.revision().await.unwrap();
    let mut watches = [
        one.watch(PREFIX, start).await.unwrap(),
        two.watch(PREFIX, start).await.unwrap(),
    ];
    let first = create(&one, "0").await;
    let mut expected = vec![first];
    // Before etcd is killed, the other server has seen the write.
    let seen = two.get(&format!("{PREFIX}0"), ReadAt::AtLeast(first)).await;
    assert!(seen.unwrap().is_some());
    for round in 1..4 {
        etcd.kill(0);
        let cached = two.get(&format!("{PREFIX}0"), ReadAt::AtLeast(0)).await.unwrap();
        assert!(cached.is_some(), "what is in memory can be read without etcd");
        let writer = tokio::spawn({
            let one = Arc::clone(&one);
            async move { create_with_retries(&one, &format!("during-{round}")).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        etcd.resume(0);
        expected.push(writer.await.unwrap());
        expected.push(create_with_retries(&two, &format!("after-{round}")).await);
    }
    for watch in &mut watches {
        for revision in &expected {
            assert_eq!(next(watch).await.revision, *revision);
        }
        assert_eq!(watch.try_next().unwrap(), None);
    }
}

/// A proxy to a member, whose connections can be cut.
struct Proxy {
    address: String,
    whole: watch::Sender<bool>,
}

impl Proxy {
    async fn to(server: &str) -> Self {
        let server = server.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (whole, state) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (server, mut state) = (server.clone(), state.clone());
                tokio::spawn(async move {
                    if !*state.borrow_and_update() {
                        return;
                    }
                    let Ok(mut far) = TcpStream::connect(server).await else {
                        return;
                    };
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        _ = state.changed() => {}
                    }
                });
            }
        });
        Self { address, whole }
    }

    fn cut(&self) {
        self.whole.send_replace(false);
    }

    fn mend(&self) {
        self.whole.send_replace(true);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconnected_server_resumes_its_watch() {
    let Some(etcd) = EtcdCluster::start(1, Security::Plain) else {
        return;
    };
    let other = etcd.connect().await;
    let mut config = etcd.config();
    let wire = Proxy::to(&config.servers[0]).await;
    config.servers = vec![wire.address.clone()];
    let store = EtcdStore::connect(config).await.unwrap();
    let first = create(&other, "a").await;
    let mut watch = store.watch(PREFIX, first - 1).await.unwrap();
    assert_eq!(next(&mut watch).await.revision, first);
    wire.cut();
    let unheard = [create(&other, "b").await, create(&other, "c").await];
    assert_eq!(watch.try_next().unwrap(), None);
    wire.mend();
    for revision in unheard {
        assert_eq!(next(&mut watch).await.revision, revision);
    }
    assert_eq!(all(&store).await, all(&other).await);

    // etcd compacts events that this server has not seen. Its watch ends instead of skipping them.
    wire.cut();
    let unheard = [create(&other, "d").await, create(&other, "e").await];
    other.compact(unheard[1]).await.unwrap();
    wire.mend();
    let end = tokio::time::timeout(Duration::from_secs(60), watch.next()).await;
    match end.expect("the watch should end") {
        Err(StoreError::Compacted { oldest, .. }) => assert!(oldest >= unheard[1]),
        outcome => panic!("{outcome:?}"),
    }
    assert_eq!(all(&store).await, all(&other).await);
    let revision = store.revision().await.unwrap();
    let mut watch = store.watch(PREFIX, revision).await.unwrap();
    let last = create(&other, "f").await;
    assert_eq!(next(&mut watch).await.revision, last);
    for store in [&store, &other] {
        let old = store.get(&format!("{PREFIX}a"), ReadAt::Exact(first)).await;
        assert!(matches!(old, Err(StoreError::Compacted { .. })), "{old:?}");
        let old = store.watch(PREFIX, first).await;
        assert!(matches!(old, Err(StoreError::Compacted { .. })), "{old:?}");
    }
}

/// Lists the current keys of a server with their revisions.
async fn all(store: &EtcdStore) -> Vec<(String, Revision)> {
    let request = ListRequest {
        prefix: PREFIX.to_owned(),
        ..ListRequest::default()
    };
    let page = store.list(request).await.unwrap();
    let pairs = page.entries.iter();
    pairs
        .map(|entry| (entry.key.to_string(), entry.mod_revision))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutual_tls() {
    let Some(etcd) = EtcdCluster::start(1, Security::Mutual) else {
        return;
    };
    let store = etcd.connect().await;
    let first = create(&store, "a").await;
    let got = store.get(&format!("{PREFIX}a"), ReadAt::Latest).await.unwrap();
    assert_eq!(got.unwrap().mod_revision, first);
    // Without a scheme, the certificates select TLS.
    let mut bare = etcd.config();
    for server in &mut bare.servers {
        *server = server.strip_prefix("https://").unwrap().to_owned();
    }
    EtcdStore::connect(bare).await.unwrap();

    let without = |change: fn(&mut EtcdConfig)| {
        let mut config = etcd.config();
        config.timeout = Duration::from_secs(1);
        change(&mut config);
        config
    };
    let strangers = [
        (
            "an authority that is not ours",
            without(|c| c.ca_certificate = None),
            "certificate",
        ),
        ("no certificate", without(|c| c.client_identity = None), "etcd: "),
        (
            "a certificate that is none",
            without(|c| c.client_identity = Some((b"x".to_vec(), b"y".to_vec()))),
            "cannot be used",
        ),
    ];
    for (what, config, text) in strangers {
        let error = EtcdStore::connect(config).await.unwrap_err().to_string();
        assert!(error.contains(text), "{what}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_continue_through_changes_of_the_leader() {
    let Some(mut etcd) = EtcdCluster::start(3, Security::Plain) else {
        return;
    };
    let (one, two): (Arc<dyn Store>, Arc<dyn Store>) =
        (Arc::new(etcd.connect().await), Arc::new(etcd.connect().await));
    let leader = etcd.leader();
    linear::run(&[one, two], PREFIX, 6, 60, async {
        etcd.move_leader((leader + 1) % 3);
        tokio::time::sleep(Duration::from_millis(500)).await;
        let leader = etcd.leader();
        etcd.kill(leader);
        tokio::time::sleep(Duration::from_millis(1500)).await;
        etcd.resume(leader);
        etcd.leader();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_fail_over_from_a_hanging_member() {
    let Some(etcd) = EtcdCluster::start(3, Security::Plain) else {
        return;
    };
    let store = etcd.connect().await;
    let start = store.revision().await.unwrap();
    let mut watch = store.watch(PREFIX, start).await.unwrap();
    let mut expected = vec![create_with_retries(&store, "before").await];
    assert_eq!(next(&mut watch).await.revision, expected[0]);
    // A follower first, if the server uses one; then the leader, too.
    for member in 0..3 {
        etcd.pause(member);
        let revision = create_with_retries(&store, &format!("while-{member}-hangs")).await;
        assert_eq!(next(&mut watch).await.revision, revision);
        expected.push(revision);
        etcd.unpause(member);
        etcd.leader();
    }
    let found: Vec<_> = all(&store)
        .await
        .into_iter()
        .map(|(_, revision)| revision)
        .collect();
    assert_eq!(found, expected);
    assert_eq!(watch.try_next().unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_continue_while_the_leader_hangs() {
    let Some(etcd) = EtcdCluster::start(3, Security::Plain) else {
        return;
    };
    let (one, two): (Arc<dyn Store>, Arc<dyn Store>) =
        (Arc::new(etcd.connect().await), Arc::new(etcd.connect().await));
    linear::run(&[one, two], PREFIX, 6, 60, async {
        for _ in 0..2 {
            let leader = etcd.leader();
            etcd.pause(leader);
            // Long enough for the others to elect a leader; the suspended one learns of it later.
            tokio::time::sleep(Duration::from_millis(2500)).await;
            etcd.unpause(leader);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_loses_no_event_of_a_live_watch() {
    const WRITES: usize = 400;
    let Some(etcd) = EtcdCluster::start(1, Security::Plain) else {
        return;
    };
    let (one, two) = (Arc::new(etcd.connect().await), etcd.connect().await);
    let start = two.revision().await.unwrap();
    let mut watch = two.watch(PREFIX, start).await.unwrap();
    let writer = tokio::spawn({
        let one = Arc::clone(&one);
        async move {
            let mut written = Vec::new();
            for n in 0..WRITES {
                written.push(create(&one, &format!("{n:04}")).await);
                if n % 10 == 9 {
                    // Compacts all of it, regardless of what the servers have seen.
                    one.compact(written[n]).await.unwrap();
                }
            }
            written
        }
    });
    let mut seen = Vec::new();
    while seen.len() < WRITES {
        match tokio::time::timeout(Duration::from_secs(60), watch.next()).await {
            Ok(Ok(event)) => seen.push(event.revision),
            // A watch that fell behind: the client lists again and watches from there, as real clients do.
            Ok(Err(StoreError::Compacted { oldest, .. })) => {
                seen = all(&two)
                    .await
                    .into_iter()
                    .map(|(_, revision)| revision)
                    .collect();
                let from = seen.last().copied().unwrap_or(start);
                assert!(from >= oldest, "the list is older than what is known");
                watch = two.watch(PREFIX, from).await.unwrap();
            }
            outcome => panic!("{outcome:?}"),
        }
    }
    assert_eq!(seen, writer.await.unwrap());
    assert_eq!(watch.try_next().unwrap(), None);
    assert_eq!(all(&one).await, all(&two).await);
}
