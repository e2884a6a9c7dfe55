//! Base64 as the OpenAPI format `byte` decodes it.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// kube-apiserver decodes this format with the URL-safe alphabet, although it encodes and validates the
/// standard one.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    // Go ignores unused bits at the end.
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Parses a value of the OpenAPI format `byte`; the error is the message.
pub fn parse(text: &str) -> Result<Vec<u8>, String> {
    // Go skips line breaks.
    let decoded = if text.contains(['\r', '\n']) {
        ENGINE.decode(text.replace(['\r', '\n'], ""))
    } else {
        ENGINE.decode(text)
    };
    decoded.map_err(|_| {
        format!(
            "illegal base64 data at input byte {}",
            first_illegal(text.as_bytes())
        )
    })
}

/// Returns the offset of the first error: the illegal byte, or the start of an incomplete group of four.
fn first_illegal(text: &[u8]) -> usize {
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let mut bytes = text
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, b)| !matches!(b, b'\r' | b'\n'));
    loop {
        for place in 0..4 {
            match bytes.next() {
                None => return text.len().saturating_sub(place),
                Some((_, b)) if is_digit(b) => {}
                Some((_, b'=')) if place == 3 => return bytes.next().map_or(text.len(), |(at, _)| at),
                Some((_, b'=')) if place == 2 => {
                    return match bytes.next() {
                        Some((_, b'=')) => bytes.next().map_or(text.len(), |(at, _)| at),
                        Some((at, _)) => at,
                        None => text.len(),
                    };
                }
                Some((at, _)) => return at,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn decodes_the_url_safe_alphabet() {
        assert_eq!(parse("aGVsbG8="), Ok(b"hello".to_vec()));
        assert_eq!(parse("aGVs\nbG8="), Ok(b"hello".to_vec()));
        assert_eq!(parse("_-__"), Ok(vec![0xff, 0xef, 0xff]));
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn errors_have_the_offset() {
        for (text, at) in [
            ("aGVs+w==", 4),
            ("aGVsbG8", 4),
            ("aGVsb", 4),
            ("a=", 1),
            ("aGVsbG8=x", 8),
            ("!", 0),
        ] {
            assert_eq!(
                parse(text),
                Err(format!("illegal base64 data at input byte {at}")),
                "{text}"
            );
        }
    }
}
