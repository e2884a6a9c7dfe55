//! Lists and watches.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scantling_store::{
    EmbeddedConfig, EmbeddedStore, ListRequest, MemStore, ReadAt, Revision, Store, StoreError, Write,
};

use crate::opening::write_many;
use crate::{Failure, VALUE};

/// Lists of 10 000 objects of 10 KB, whole and in pages.
pub(crate) async fn lists(root: &Path) -> Result<(), Failure> {
    const LISTS: u32 = 100;
    let directory = tempfile::tempdir_in(root)?;
    let store = Arc::new(EmbeddedStore::open(EmbeddedConfig::new(directory.path()))?);
    let prefix = "/registry/example.com/lists/";
    write_many(&store, 10_000, move |store, n| async move {
        let value = vec![b'x'; 10_000].into();
        store
            .write(&format!("{prefix}ns/{n:05}"), Write::Create { value })
            .await
    })
    .await?;
    let request = ListRequest {
        prefix: prefix.to_owned(),
        ..ListRequest::default()
    };
    let start = Instant::now();
    for _ in 0..LISTS {
        let page = store.list(request.clone()).await?;
        assert_eq!(page.entries.len(), 10_000);
    }
    let whole = start.elapsed() / LISTS;
    let start = Instant::now();
    for _ in 0..LISTS {
        let mut request = ListRequest {
            limit: NonZeroUsize::new(500),
            ..request.clone()
        };
        loop {
            let page = store.list(request.clone()).await?;
            // Pages of one list are read at one revision, as kube-apiserver does.
            request.at = ReadAt::Exact(page.revision);
            request.after = page.entries.last().map(|entry| entry.key.to_string());
            request.remaining = Some(page.remaining);
            if page.remaining == 0 {
                break;
            }
        }
    }
    let pages = start.elapsed() / LISTS;
    println!("\n## Lists of 10 000 objects of 10 KB\n\nwhole {whole:.3?}, in 20 pages {pages:.3?}");
    Ok(())
}

/// One writer, many watches: the time until all watches have seen all events.
pub(crate) async fn watches() -> Result<(), Failure> {
    println!(
        "\n## Watch fan-out\n\n| watches | events | took | events per second |\n| --- | --- | --- | --- |"
    );
    for (watches, events) in [(1, 100_000), (100, 10_000), (1000, 2_000)] {
        let took = fan_out(watches, events).await?;
        let rate = (watches * events) as f64 / took.as_secs_f64();
        println!("| {watches} | {events} | {took:.3?} | {rate:.0} |");
    }
    Ok(())
}

async fn fan_out(watches: u64, events: Revision) -> Result<Duration, Failure> {
    let store = Arc::new(MemStore::default());
    let start = store.revision().await?;
    let mut tasks = Vec::new();
    for _ in 0..watches {
        let mut watch = store.watch("/registry/example.com/widgets/", start).await?;
        tasks.push(tokio::spawn(async move {
            for _ in 0..events {
                watch.next().await?;
            }
            Ok::<_, StoreError>(())
        }));
    }
    let begin = Instant::now();
    for n in 0..events {
        let value = vec![b'x'; VALUE].into();
        let key = format!("/registry/example.com/widgets/ns/{n}");
        store.write(&key, Write::Create { value }).await?;
        // The watches run on the same threads, and the writer never waits by itself.
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await??;
    }
    Ok(begin.elapsed())
}
