//! The JSON value, strict decoding of JSON and YAML, field paths and field errors.
//!
//! Everything above this crate speaks in these nouns:
//! - [`Value`] and [`Map`]: a decoded document, with integers and floats kept apart as a Kubernetes API
//!   server keeps them, and keys in byte order, as it writes them.
//! - [`Path`]: where in a document, as a chain of frames on the stack; text only when there is an error.
//! - [`FieldError`]: what is wrong there, in the server's words.
//! - [`Finding`]: an unknown or duplicate field.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-value is pure"
)]

mod bounded;
pub mod deadline;
mod decode;
mod error;
mod finding;
pub mod go;
pub mod json;
mod map;
mod path;
mod position;
mod text_set;
mod value;
mod value_key;
pub mod yaml;

pub use bounded::{BoundedItem, BoundedList, ErrorList, FindingList, TextList};
pub use compact_str::CompactString as Str;
pub use deadline::{Deadline, DeadlineExceeded};
pub use decode::{DecodeError, Decoded, Limits};
pub use error::{BadValue, ErrorKind, FieldError, aggregate};
pub use finding::Finding;
pub use json::Escape;
pub use map::{Map, beginning, same_text};
pub use path::{Path, PathBuf, Segment};
pub use position::Position;
pub use text_set::TextSet;
pub use value::Value;
pub use value_key::ValueKey;
