//! Controllers: CRDs become served kinds, and terminating namespaces are emptied.

pub(crate) mod barrier;
pub(crate) mod crd;
pub(crate) mod namespaces;
