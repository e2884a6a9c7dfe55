//! Servers on one etcd cluster; one is killed under load and restarted repeatedly.

use crate::kube_client::{define, widget, widgets};
use crate::server::Process;
use futures_util::StreamExt as _;
use kube::api::{DynamicObject, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use scantling_testkit::etcd::{EtcdCluster, Security};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The number of kills.
const KILLS: usize = 5;
/// The number of clients per server.
const CLIENTS: usize = 3;

fn start(etcd: &str) -> Process {
    let directory = tempfile::tempdir().expect("a directory");
    Process::start_with(&["--etcd-servers", etcd], &[], directory)
}

/// The requests of clients and their responses.
#[derive(Default)]
struct Told {
    asked: BTreeSet<String>,
    /// Created names with their versions.
    made: BTreeMap<String, u64>,
}

fn version(object: &DynamicObject) -> u64 {
    let text = object.resource_version().expect("a version");
    text.parse().expect("a number")
}

/// Creates objects until it is told to stop or the server is gone.
async fn create(api: Api<DynamicObject>, name: String, told: Arc<Mutex<Told>>, stop: Arc<AtomicBool>) {
    let told = || told.lock().unwrap_or_else(PoisonError::into_inner);
    for n in 0.. {
        let name = format!("{name}-{n}");
        told().asked.insert(name.clone());
        match api.create(&PostParams::default(), &widget(&name, 1)).await {
            Ok(made) => drop(told().made.insert(name, version(&made))),
            // The killed server may or may not have written it.
            Err(_) => return,
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Lists the objects through a server.
async fn listed(api: &Api<DynamicObject>) -> BTreeMap<String, u64> {
    let list = api.list(&ListParams::default()).await.expect("a list");
    list.iter().map(|w| (w.name_any(), version(w))).collect()
}

/// The names and versions that watches from a version on show. A watch that ends, because the client is slow,
/// is resumed, as clients do.
async fn watched(api: &Api<DynamicObject>, from: &str, count: usize) -> Vec<(String, u64)> {
    let mut seen: Vec<(String, u64)> = Vec::new();
    let watch = async {
        while seen.len() < count {
            let from = seen
                .last()
                .map_or(from.to_owned(), |(_, version)| version.to_string());
            let mut watch = Box::pin(api.watch(&WatchParams::default(), &from).await.expect("a watch"));
            while let Some(event) = watch.next().await {
                match event.expect("an event") {
                    WatchEvent::Added(w) => seen.push((w.name_any(), version(&w))),
                    WatchEvent::Bookmark(_) => {}
                    other => panic!("{other:?}"),
                }
                if seen.len() == count {
                    break;
                }
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(60), watch).await;
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_nothing() {
    let Some(etcd) = EtcdCluster::start(1, Security::Plain) else {
        return;
    };
    let address = etcd.config().servers.concat();
    let (mut mortal, steady) = (start(&address), start(&address));
    let steady_api = widgets(&steady.client().await);
    define(&steady.client().await).await;
    let empty = steady_api.list(&ListParams::default()).await.expect("a list");
    let from = empty.metadata.resource_version.expect("a version");
    let (told, stop) = (Arc::<Mutex<Told>>::default(), Arc::<AtomicBool>::default());
    let mut clients = Vec::new();
    let mut load = |api: &Api<DynamicObject>, server: &str| {
        for client in 0..CLIENTS {
            let name = format!("{server}-{client}");
            let work = create(api.clone(), name, Arc::clone(&told), Arc::clone(&stop));
            clients.push(tokio::spawn(work));
        }
    };
    load(&steady_api, "steady");
    let mut made_by_the_dead = 0;
    for life in 0..KILLS {
        let api = widgets(&mortal.client().await);
        // The CRD is served once the server has seen it.
        while api.list(&ListParams::default()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        load(&api, &format!("mortal-{life}"));
        tokio::time::sleep(Duration::from_millis(200 + 37 * life as u64)).await;
        mortal.kill();
        mortal = start(&address);
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let by_the_dead = told.made.keys().filter(|name| name.starts_with("mortal"));
        made_by_the_dead = by_the_dead.count();
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("it ends");
    }
    assert!(made_by_the_dead > KILLS, "the server was killed under load");

    let mortal_api = widgets(&mortal.client().await);
    let there = listed(&steady_api).await;
    assert_eq!(listed(&mortal_api).await, there, "both servers show the same");
    {
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, version) in &told.made {
            assert_eq!(there.get(name), Some(version), "{name} was acknowledged");
        }
        for name in there.keys() {
            assert!(told.asked.contains(name), "nobody asked for {name}");
        }
    }
    // A watch through either server from before the first object shows each once, in order.
    let mut expected: Vec<(String, u64)> = there.into_iter().collect();
    expected.sort_by_key(|(_, version)| *version);
    for api in [&steady_api, &mortal_api] {
        assert_eq!(watched(api, &from, expected.len()).await, expected);
    }
    eprintln!("{KILLS} kills, {} objects, all accounted for", expected.len());
}
