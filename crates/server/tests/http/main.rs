//! The server as HTTP clients meet it: what they may send, who they are, what they are told, and how it ends.

mod bad_input;
#[path = "../support/client.rs"]
mod client;
mod kinds;
mod managers;
mod metrics;
mod namespaces;
mod protobuf;
mod replaced;
mod security;
mod stopping;
mod support;
