//! Kubernetes' protobuf encoding of API types.
//!
//! The table defines the messages: fields by their numbers, pointers as optional fields, inlined structs as
//! nested messages. Like gogo's generated code, the encoder always writes scalars and structs, even empty
//! ones, in the order of their numbers.

mod envelope;
mod read;
mod wire;
mod write;

pub use envelope::{Envelope, begin_envelope, end_envelope, is_enveloped, open, watch_event, wrap};
pub use wire::{boolean, bytes, double, length, number, string};

#[cfg(test)]
mod tests;
