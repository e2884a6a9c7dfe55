//! JSON text: decoding as a Kubernetes API server decodes, writing as it writes.

mod fields;
mod locate;
mod parse;
mod raw;
mod swar;
mod write;

pub use fields::sort_findings;
pub(crate) use locate::locate;
pub(crate) use parse::push_coerced;
pub use raw::{RawJson, RawNumber, decode_raw};
pub use write::Escape;

use crate::{DecodeError, Decoded, Limits, Value};

/// Decodes one JSON document. Of fields that stand twice the last one counts.
pub fn decode(text: &[u8], limits: Limits) -> Result<Value, DecodeError> {
    let (value, _) = parse::parse(text, limits)?.in_range()?;
    Ok(value)
}

/// Decodes one JSON document whose numbers may be out of range: infinity stands in for those.
pub fn decode_any_range(text: &[u8], limits: Limits) -> Result<Value, DecodeError> {
    parse::parse(text, limits).map(|parsed| parsed.value)
}

/// Decodes one JSON document and lists the fields that stand twice.
pub fn decode_strict(text: &[u8], limits: Limits) -> Result<Decoded, DecodeError> {
    let (value, duplicate_keys) = parse::parse(text, limits)?.in_range()?;
    // Texts with duplicates are rare: their paths are found by a second, slower walk.
    let duplicates = match duplicate_keys {
        parse::DuplicateKeys::None => Vec::new(),
        parse::DuplicateKeys::Some => fields::duplicates(text),
    };
    Ok(Decoded { value, duplicates })
}
