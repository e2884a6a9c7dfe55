//! The forms of names, which expressions know, too.

pub use scantling_notation::names::{
    dns1035_label, dns1123_label, dns1123_subdomain, label_key, label_value,
};

/// The group and the version of an `apiVersion`; the core group has no name.
pub fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
