//! The server as a process, and the clients that people use: the `kube` crate always, `kubectl` where it is installed.

mod kube_client;
mod kubectl;
mod process;
mod server;
