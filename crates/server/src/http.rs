//! Transport: TLS, HTTP connections and their limits, WebSocket, and response bodies.

pub(crate) mod compute;
pub(crate) mod connection;
pub(crate) mod listen;
pub(crate) mod memory;
pub(crate) mod reply;
pub(crate) mod send;
pub(crate) mod tls;
pub(crate) mod transport;
pub(crate) mod websocket;
