//! Kubernetes and Go notations: parsers and formatters for values that are written as text.
//!
//! Each module owns one notation and reproduces the accepted syntax, the meaning and the error messages of the Go
//! library that kube-apiserver uses for it:
//!
//! - [`names`]: DNS labels and subdomains, label keys and values (`k8s.io/apimachinery/pkg/util/validation`).
//! - [`mod@format`]: named string formats of CEL's `format` library (`k8s.io/apiserver/pkg/cel/library`).
//! - [`quantity`]: resource quantities (`1.5Gi`) (`k8s.io/apimachinery/pkg/api/resource`).
//! - [`timestamp`]: RFC 3339 timestamps, dates, time zones (`time`).
//! - [`duration`]: durations (`1h30m`) (`time`).
//! - [`url`]: URLs and absolute paths (`net/url`).
//! - [`ip`]: IP addresses and CIDR ranges (`net/netip`).
//! - [`semver`]: semantic versions (`github.com/blang/semver`).
//! - [`regex`]: RE2 regular expressions (`regexp`).
//! - [`number`]: floating-point numbers (`strconv`).
//! - [`base64`]: the OpenAPI format `byte` (`encoding/base64`).
//!
//! The crate sits below CEL and the API types, which both read these notations.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-notation is pure"
)]

pub mod base64;
pub mod duration;
pub mod format;
pub mod ip;
pub mod names;
pub mod number;
pub mod quantity;
pub mod regex;
pub mod semver;
pub mod timestamp;
pub mod url;
