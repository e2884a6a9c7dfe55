//! Compares the storage engines with etcd and with the disk alone.
//!
//! `store <directory> [part …]`: the directory to write to, and the parts to measure: `creates`, `stalls`,
//! `lists`, `watches`, `opening`, `memory`; all by default. `creates-16` measures one number of writers. etcd
//! is started on the same disk if it is installed. Tables are printed in Markdown.

mod creates;
mod limit;
mod opening;
mod reads;
mod stalls;

use std::path::{Path, PathBuf};

/// The allocator of the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The default size of a value.
const VALUE: usize = 1024;

const PARTS: [&str; 6] = ["opening", "memory", "creates", "stalls", "lists", "watches"];

async fn measure(part: &str, root: &Path) -> Result<(), Failure> {
    match part {
        "opening" => opening::opening(root),
        "memory" => opening::memory(root).await,
        "creates" => creates::creates(root, &creates::WRITERS).await,
        "stalls" => stalls::stalls(root).await,
        "lists" => reads::lists(root).await,
        "watches" => reads::watches().await,
        other => match other.strip_prefix("creates-").map(str::parse) {
            Some(Ok(writers)) => creates::creates(root, &[writers]).await,
            _ => Err(format!("there is no part `{other}`; the parts are {}", PARTS.join(", ")).into()),
        },
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => Err("usage: store <directory> [part …]".into()),
        // `opening` runs these in separate processes.
        ["--fill", directory, objects] => {
            opening::fill_and_crash(Path::new(directory), objects.parse()?).await
        }
        ["--open", directory] => opening::open(Path::new(directory)),
        [root, parts @ ..] => {
            let root = PathBuf::from(root);
            let parts = if parts.is_empty() { &PARTS } else { parts };
            for part in parts {
                measure(part, &root).await?;
            }
            Ok(())
        }
    }
}
