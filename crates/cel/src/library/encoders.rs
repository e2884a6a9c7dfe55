//! Base64 encoding and decoding.

use crate::overload::{Library, overloads};
use crate::val::{Arena, EvalError, Res, Val};
use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Base64.
pub static ENCODERS: Library = Library {
    name: "encoders",
    overloads: overloads! {
        "base64_decode_string": global "base64.decode"(String) -> Bytes => Unary(decode);
        "base64_encode_bytes": global "base64.encode"(Bytes) -> String
            => Unary(|arena, bytes| arena.str(BASE64.encode(bytes.bytes()?)));
    },
    types: &[],
};

/// Padding is optional, and unused bits of the last character may be set.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

fn decode<'a>(arena: &'a Arena, text: Val<'a>) -> Res<'a> {
    // Line breaks are skipped.
    let text: Vec<u8> = text.str()?.bytes().filter(|b| !b"\r\n".contains(b)).collect();
    let bytes = BASE64.decode(&text).map_err(|e| {
        let at = match e {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            // An incomplete group of four is an error at its start.
            base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
        };
        EvalError::message(format!("illegal base64 data at input byte {at}"))
    })?;
    arena.bytes(bytes)
}
