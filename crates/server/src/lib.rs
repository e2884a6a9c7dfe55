//! A Kubernetes API server for custom resources.
//!
//! [`Server::start`] takes a [`Config`] and a store, listens, and serves until [`Server::stop`].
//!
//! The modules are layers, from the socket to the kinds:
//! - `http`: TLS, connections and their limits, WebSocket, response bodies.
//! - `auth`: authentication, impersonation, authorization.
//! - `api`, `request`: routing of a request to its handler.
//! - `rest`: the verbs, their options, watch streams, conversion by webhooks.
//! - `codec`: media types, JSON, YAML, CBOR, protobuf, stored text.
//! - `kinds`: kinds as data, their codecs and rules: custom resources, CRDs, built-in kinds.
//! - `openapi`, `discovery`, `tables`: API metadata.
//! - `controllers`: CRDs become served kinds, terminating namespaces are emptied.
//!
//! A test that wants a server of its own:
//!
//! ```
//! use scantling_server::{Config, Server};
//! use scantling_store::MemStore;
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = tokio::runtime::Builder::new_multi_thread()
//!     .enable_all()
//!     .thread_stack_size(scantling_value::Limits::SERVER_STACK)
//!     .build()?;
//! runtime.block_on(async {
//!     // Port 0 lets the system choose.
//!     let config = Config { secure_port: 0, ..Config::default() };
//!     let server = Server::start(config, Arc::new(MemStore::default())).await?;
//!     assert_ne!(server.address().port(), 0);
//!     server.stop().await;
//!     Ok(())
//! })
//! # }
//! ```

mod api;
mod auth;
mod codec;
mod config;
mod controllers;
mod discovery;
#[cfg(fuzzing)]
pub mod fuzzing;
mod http;
mod kinds;
mod metrics;
mod openapi;
mod request;
mod rest;
mod server;
mod status;
mod tables;

pub use config::{AuthorizationMode, Config, ConnectionLimits, Token};
pub use server::{Server, StartError};
