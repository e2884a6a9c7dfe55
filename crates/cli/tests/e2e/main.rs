//! The server as a process, with real clients: the `kube` crate always, `kubectl` if it is installed.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod cluster;
mod kube_client;
mod kubectl;
mod process;
mod server;
