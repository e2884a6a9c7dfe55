//! Base64 encoding and decoding.

use crate::overload::{Library, Overload, Ty};
use crate::run::Run;
use crate::val::{Arena, EvalError, Res, Val};
use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Base64.
pub static ENCODERS: Library = Library {
    name: "encoders",
    overloads: &[
        Overload::global(
            "base64_decode_string",
            "base64.decode",
            &[Ty::String],
            Ty::Bytes,
            Run::Unary(decode),
        ),
        Overload::global(
            "base64_encode_bytes",
            "base64.encode",
            &[Ty::Bytes],
            Ty::String,
            Run::Unary(encode),
        ),
    ],
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

fn encode<'a>(arena: &'a Arena, bytes: Val<'a>) -> Res<'a> {
    arena.str(BASE64.encode(bytes.bytes()?))
}
