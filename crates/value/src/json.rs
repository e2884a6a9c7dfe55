//! JSON decoding and encoding, as kube-apiserver does it.

mod fields;
mod locate;
mod parse;
mod raw;
mod swar;
mod write;

pub use fields::sort_findings;
pub(crate) use locate::locate_all;
pub(crate) use parse::push_coerced;
pub use raw::{RawJson, RawNumber, decode_raw};
pub use write::{Escape, write_key, write_plain_key};

use crate::{DecodeError, Decoded, Limits, Value};

/// Decodes one JSON document. The last occurrence of a repeated field wins.
pub fn decode(text: &[u8], limits: Limits) -> Result<Value, DecodeError> {
    let (value, _) = parse::parse(text, limits)?.in_range()?;
    Ok(value)
}

/// Decodes one JSON document whose numbers may be out of range: such numbers become infinity.
pub fn decode_any_range(text: &[u8], limits: Limits) -> Result<Value, DecodeError> {
    parse::parse(text, limits).map(|parsed| parsed.value)
}

/// Decodes one JSON document and lists repeated fields.
pub fn decode_strict(text: &[u8], limits: Limits) -> Result<Decoded, DecodeError> {
    let (value, duplicate_keys) = parse::parse(text, limits)?.in_range()?;
    // Repeated fields are rare, so their paths are found by a second, slower pass.
    let duplicates = match duplicate_keys {
        parse::DuplicateKeys::None => Vec::new(),
        parse::DuplicateKeys::Some => fields::duplicates(text),
    };
    Ok(Decoded { value, duplicates })
}
