//! JSON text.

mod write;

pub use write::Escape;
