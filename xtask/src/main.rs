//! The project's own automation: `cargo xtask <task>`.
fn main() {}
