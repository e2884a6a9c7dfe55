//! Authentication, authorization and impersonation.

pub(crate) mod authentication;
pub(crate) mod authorization;
pub(crate) mod impersonation;
pub(crate) mod service_accounts;
