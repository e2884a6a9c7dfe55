//! Controllers: what the server does by itself.

pub(crate) mod barrier;
pub(crate) mod bootstrap;
mod client;
pub(crate) mod crd;
mod follow;
pub(crate) mod namespaces;
pub(crate) mod service_accounts;
pub(crate) mod service_addresses;
