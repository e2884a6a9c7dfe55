//! Base64 as the OpenAPI format `byte` is read.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// A server reads the format with the alphabet for URLs, although it writes and validates the standard one.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Reads a value of the OpenAPI format `byte`; the error is the message.
pub fn parse(text: &str) -> Result<Vec<u8>, String> {
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

/// Where a text that is not Base64 stops being it: at the byte that cannot stand there, or at the start of the
/// group of four that is not complete.
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
    fn reads_the_alphabet_for_urls() {
        assert_eq!(parse("aGVsbG8="), Ok(b"hello".to_vec()));
        assert_eq!(parse("aGVs\nbG8="), Ok(b"hello".to_vec()));
        assert_eq!(parse("_-__"), Ok(vec![0xff, 0xef, 0xff]));
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn says_where_it_fails() {
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
