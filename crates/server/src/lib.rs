//! A Kubernetes API server for custom resources.
//!
//! [`Server::start`] takes a [`Config`] and a store, listens, and serves until [`Server::stop`]. The modules follow a
//! request on its way: `listen` (connections, TLS), `api` (who asks, what for), `request` and `options` (what is asked),
//! `body` (what is sent), `read`, `watch`, `write`, `patch`, `delete`, `scale` (what is done), `view`, `table`, `reply`
//! (what is answered), `status` (what went wrong). Kinds are data (`kind`); what is particular about one is its
//! `strategy` (`custom`, `definitions`, `builtin`). The `controller` turns definitions into kinds.

mod api;
mod auth;
mod body;
mod builtin;
mod config;
mod controller;
mod custom;
mod definitions;
mod delete;
mod discovery;
mod jsonpath;
mod kind;
mod listen;
mod managed;
mod media;
mod metrics;
mod namespaces;
mod openapi;
mod options;
mod order;
mod page;
mod patch;
mod protobuf;
mod read;
mod reply;
mod request;
mod scale;
mod selector;
mod server;
mod status;
mod strategy;
mod table;
mod tls;
mod view;
mod watch;
mod write;

pub use config::Config;
pub use server::{Server, StartError};
