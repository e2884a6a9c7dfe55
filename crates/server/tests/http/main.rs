//! The server over HTTP: malformed input, identities, responses and shutdown.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod bad_input;
mod cbor;
#[path = "../support/client.rs"]
mod client;
mod connections;
mod conversion;
mod documents;
mod heavy;
mod identity;
mod kinds;
mod managers;
mod metrics;
mod namespaces;
mod protobuf;
mod replaced;
mod security;
mod stopping;
mod storage;
mod support;
mod webhook;
mod websocket;
