//! The `continue` token of a list.

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use scantling_value::{Limits, Map, Value, json};

const FORM: &str = "meta.k8s.io/v1";

/// Go's base64, which ignores trailing bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    NO_PAD.with_decode_allow_trailing_bits(true),
);

/// The position of the next page: after a key, at a revision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Continue {
    /// `None` means the latest, for lists that continue after compaction.
    pub(crate) revision: Option<u64>,
    /// The last key of the page before, without the prefix of the list.
    pub(crate) after: String,
}

impl Continue {
    /// The token.
    pub(crate) fn encode(&self) -> String {
        let entries = [
            ("v", Value::from(FORM)),
            (
                "rv",
                // kube-apiserver's tokens have -1 for the latest revision; zero would be refused.
                Value::Int(self.revision.map_or(-1, |r| i64::try_from(r).unwrap_or(i64::MAX))),
            ),
            // The zero byte makes it the first possible key after the last one: tokens name where a range begins.
            ("start", format!("{}\0", self.after).into()),
        ];
        URL_SAFE_NO_PAD.encode(Value::Object(Map::from_iter(entries)).to_json())
    }

    /// Decodes a token, with kube-apiserver's errors.
    pub(crate) fn decode(token: &str) -> Result<Continue, String> {
        let invalid = |why: &dyn std::fmt::Display| format!("continue key is not valid: {why}");
        let bytes =
            decode_base64(token).map_err(|at| invalid(&format!("illegal base64 data at input byte {at}")))?;
        let token = json::decode(&bytes, Limits::SAFE).map_err(|e| invalid(&e))?;
        let text = |key| token.get_str(key);
        let version = text("v");
        if version != FORM {
            return Err(invalid(&format!(
                "server does not recognize this encoded version {version}"
            )));
        }
        let revision = token.get("rv").and_then(Value::as_int).unwrap_or(0);
        if revision == 0 {
            return Err(invalid(&format!(
                "incorrect encoded start resourceVersion (version {FORM})"
            )));
        }
        let start = text("start");
        if start.is_empty() {
            return Err(invalid(&format!("encoded start key empty (version {FORM})")));
        }
        // A key must not leave the prefix of the list.
        let clean = start
            .trim_start_matches('/')
            .split('/')
            .all(|s| !s.is_empty() && s != "." && s != "..");
        if !clean {
            return Err(invalid(&start));
        }
        let start = start.strip_prefix('/').unwrap_or(start);
        let after = start.strip_suffix('\0').unwrap_or(start).to_owned();
        // A negative revision stands for the latest.
        let revision = u64::try_from(revision).ok();
        Ok(Continue { revision, after })
    }
}

/// Decodes unpadded URL-safe base64; on failure, returns the position that Go reports.
fn decode_base64(token: &str) -> Result<Vec<u8>, usize> {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    LENIENT.decode(token).map_err(|e| match e {
        InvalidByte(at, _) | InvalidLastSymbol(at, _) => at,
        // A single trailing character encodes no byte.
        InvalidLength(_) => token.len().saturating_sub(1),
        InvalidPadding => token.find('=').unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continue_tokens() {
        let c = Continue {
            revision: Some(7),
            after: "default/a".to_owned(),
        };
        assert_eq!(Continue::decode(&c.encode()), Ok(c.clone()));
        let latest = Continue { revision: None, ..c };
        assert_eq!(Continue::decode(&latest.encode()), Ok(latest));
        let table = [
            (
                "!!!",
                "continue key is not valid: illegal base64 data at input byte 0",
            ),
            (
                "x",
                "continue key is not valid: illegal base64 data at input byte 0",
            ),
            (
                "bm90IGpzb24",
                "continue key is not valid: invalid character 'o' in literal null (expecting 'u')",
            ),
            (
                "e30",
                "continue key is not valid: server does not recognize this encoded version ",
            ),
        ];
        for (token, want) in table {
            assert_eq!(Continue::decode(token).unwrap_err(), want, "{token}");
        }
        let climbing = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}"#);
        assert_eq!(
            Continue::decode(&climbing).unwrap_err(),
            "continue key is not valid: ../x"
        );
    }
}
