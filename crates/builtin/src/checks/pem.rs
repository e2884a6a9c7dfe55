//! PEM as Go reads it.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// Go does not check the unused bits of the last character.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// A block of PEM.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) label: String,
    pub(crate) has_headers: bool,
    pub(crate) bytes: Vec<u8>,
}

/// The blocks of a text. Malformed blocks, and the text between blocks, are ignored.
pub(crate) fn blocks(text: &[u8]) -> Vec<Block> {
    // PEM is ASCII, so that other bytes cannot belong to a block.
    let text = String::from_utf8_lossy(text);
    let label = |line: &str, begin: &str| {
        let rest = line.trim_end().strip_prefix(begin)?;
        rest.strip_suffix("-----").map(str::to_owned)
    };
    let mut out = Vec::new();
    let mut open: Option<(Block, String)> = None;
    for line in text.lines() {
        if let Some(label) = label(line, "-----BEGIN ") {
            let block = Block {
                label,
                has_headers: false,
                bytes: Vec::new(),
            };
            open = Some((block, String::new()));
        } else if let Some(ended) = label(line, "-----END ") {
            let read = open.take().filter(|(block, _)| block.label == ended);
            let decoded = read.and_then(|(block, body)| {
                let bytes = BASE64.decode(body).ok()?;
                Some(Block { bytes, ..block })
            });
            out.extend(decoded);
        } else if let Some((block, body)) = &mut open {
            if body.is_empty() && line.contains(':') {
                block.has_headers = true;
            } else {
                body.extend(line.chars().filter(|c| !matches!(c, ' ' | '\t' | '\r')));
            }
        }
    }
    out
}
