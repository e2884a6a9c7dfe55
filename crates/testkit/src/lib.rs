//! Test support that several crates share.
//!
//! [`scenario`] reads the recorded scenarios of `conformance/`, [`replay`] runs them through an adapter and
//! keeps count, [`normalize`] removes values that differ between runs, and [`compare`] compares objects,
//! causes and texts. A crate's test is an adapter: it selects the steps that the crate can decide and returns
//! their results.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "test support fails by panicking and prints its counts"
)]

pub mod compare;
pub mod corpus;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod normalize;
pub mod patch;
pub mod replay;
pub mod resource_path;
pub mod scenario;

pub use replay::{KnownDifferences, Replay};
pub use resource_path::ResourcePath;
pub use scenario::{Scenario, ScenarioStep};
