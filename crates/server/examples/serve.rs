//! An in-memory server for experiments: prints the path of its kubeconfig.
#![expect(clippy::print_stdout, reason = "an example")]

use scantling_server::{Config, Server};
use scantling_store::MemStore;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(scantling_value::Limits::SERVER_STACK)
        .build()?;
    runtime.block_on(async {
        let port = std::env::args().nth(1).and_then(|p| p.parse().ok()).unwrap_or(0);
        let config = Config {
            secure_port: port,
            admin_token: Some(scantling_server::Token("example".to_owned())),
            ..Config::default()
        };
        let server = Server::start(config, Arc::new(MemStore::default())).await?;
        println!("{}", server.address());
        tokio::signal::ctrl_c().await?;
        server.stop().await;
        Ok(())
    })
}
