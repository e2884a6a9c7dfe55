//! Names of API groups and versions, and validation of names.

pub use scantling_notation::names::{
    dns1035_label, dns1123_label, dns1123_subdomain, label_key, label_value,
};

/// Splits an `apiVersion` into group and version; the core group is empty.
pub fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
