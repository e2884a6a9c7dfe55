//! Base64 as Go decodes it.

use base64::Engine as _;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// The standard alphabet; unused trailing bits are ignored.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Decodes a text; the error is the offset that Go reports.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let bytes: Vec<u8> = text.bytes().filter(|b| !is_break(*b)).collect();
    ENGINE.decode(bytes).map_err(|_| illegal_offset(text))
}

/// Encodes bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// Re-encodes a text canonically.
pub(crate) fn canonical(text: &str) -> Result<String, usize> {
    decode(text).map(|bytes| encode(&bytes))
}

/// Line breaks are ignored.
fn is_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// The offset of the first error. An incomplete group is counted back from the end of the text, including
/// line breaks.
fn illegal_offset(text: &str) -> usize {
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    let mut rest = text.bytes().enumerate().filter(|(_, b)| !is_break(*b));
    let mut digits = 0;
    while let Some((at, byte)) = rest.next() {
        match byte {
            _ if is_digit(byte) => digits = (digits + 1) % 4,
            b'=' if digits == 2 => match rest.next() {
                Some((_, b'=')) => return rest.next().map_or(text.len(), |(after, _)| after),
                // Go reports the byte before the one that should be padding.
                Some((other, _)) => return other - 1,
                None => return text.len(),
            },
            b'=' if digits == 3 => return rest.next().map_or(text.len(), |(after, _)| after),
            _ => return at,
        }
    }
    text.len() - digits
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn base64_decodes_as_in_go() {
        for good in ["", "YQ==", "YR==", "YWI=\n", "\nYW\r\nI="] {
            assert!(canonical(good).is_ok(), "{good:?}");
        }
        assert_eq!(canonical("Y\nR==").as_deref(), Ok("YQ=="));
        for (text, at) in [
            ("YQ", 0),
            ("YQ=", 3),
            ("YQ==YQ==", 4),
            ("Y Q=", 1),
            ("YW\nI", 1),
            ("Y\nQ*=", 3),
            ("====", 0),
            ("YQ=a", 2),
            ("YWJj\nZ", 5),
            ("YWJjZA==x", 8),
            ("YWJjZA=x=", 6),
        ] {
            assert_eq!(canonical(text), Err(at), "{text:?}");
        }
    }
}
