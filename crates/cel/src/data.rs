//! The data types and notations that functions work on, free of the language itself: quantities, versions,
//! addresses, URLs, regular expressions, durations, timestamps, named formats and numbers, each with the meaning
//! and the error texts that a Kubernetes API server gives them.

pub mod base64;
pub mod duration;
pub mod format;
pub mod ip;
pub mod names;
pub mod number;
pub mod regex;
pub mod semver;
pub mod template;
pub mod url;

pub use scantling_notation::{quantity, timestamp};
