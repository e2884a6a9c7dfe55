//! Kubernetes' protobuf encoding of API types.
//!
//! Messages follow from the table: fields by their numbers, pointers as optional fields, inlined structs as messages of
//! their own. As gogo's generated code does, scalars and structs are always written, empty or not, in the order of their
//! numbers.

mod envelope;
mod read;
mod wire;
mod write;

pub use envelope::{Envelope, is_enveloped, open, watch_event, wrap};
pub use wire::{boolean, bytes, double, length, number, string};

#[cfg(test)]
mod tests;
