//! Decoding of CBOR, with the error texts of kube-apiserver's decoder.

use super::SELF_DESCRIBED;
use super::scan::Scanner;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ciborium_ll::{Header, simple};
use scantling_notation::timestamp::{self, CivilTime, Moment};
use scantling_value::{Map, Str, Value, go};
use std::collections::HashSet;

/// The tags of times: as text, and in seconds.
const TIME: u64 = 0;
const SECONDS: u64 = 1;

/// The reason why bytes cannot be decoded as an object.
#[derive(Debug, PartialEq)]
pub(crate) enum Fault {
    /// The kind of the object is unknown.
    Unreadable(String),
    /// An object of this version and kind contains something it cannot contain.
    Misfit {
        api_version: String,
        kind: String,
        why: String,
    },
}

/// Decodes an object or null.
pub(crate) fn decode_object(data: &[u8]) -> Result<Value, Fault> {
    let scanner = Scanner::new(data).map_err(Fault::Unreadable)?;
    let found = Reader(scanner).value(Later::Text);
    let why = match found {
        Ok(object @ (Value::Object(_) | Value::Null)) => return Ok(object),
        Ok(_) => String::new(),
        Err(why) => why,
    };
    // Only on failure, as in kube-apiserver: a body that decodes does not need this second pass.
    let (api_version, kind) = type_meta(data).map_err(Fault::Unreadable)?;
    Err(Fault::Misfit {
        api_version,
        kind,
        why,
    })
}

/// Decodes an object or null; it need not have a kind.
pub(crate) fn decode(data: &[u8]) -> Result<Value, String> {
    let mut reader = Reader(Scanner::new(data)?);
    let ty = reader.content_type();
    match reader.value(Later::Text)? {
        object @ (Value::Object(_) | Value::Null) => Ok(object),
        _ => Err(cannot(ty, "map[string]interface {}")),
    }
}

/// Returns the `apiVersion` and `kind` of an object.
fn type_meta(data: &[u8]) -> Result<(String, String), String> {
    let mut reader = Reader(Scanner::new(data)?);
    let (mut api_version, mut kind) = (String::new(), String::new());
    let (ty, head) = reader.untagged()?;
    let mut left = match head {
        Header::Map(left) => left,
        Header::Array(_) => {
            let hint = " (cannot decode CBOR array to struct without toarray option)";
            return Err(cannot(ty, "v1.TypeMeta") + hint);
        }
        Header::Simple(value) => return Err(unknown_simple(value, ty, "v1.TypeMeta")),
        _ => return Err(cannot(ty, "v1.TypeMeta")),
    };
    let mut seen = HashSet::new();
    while reader.0.has_more(&mut left) {
        // Keys that are not text are not fields.
        let Some(key) = reader.text_key()? else {
            reader.0.skip(0)?;
            continue;
        };
        let index = seen.len();
        let field = match &*key {
            "apiVersion" => &mut api_version,
            "kind" => &mut kind,
            _ => {
                reader.0.skip(0)?;
                check_new(&mut seen, key, index)?;
                continue;
            }
        };
        let ty = reader.content_type();
        match reader.value(Later::Text)? {
            Value::String(text) => *field = text.to_string(),
            Value::Null => {}
            _ => {
                return Err(format!(
                    "cbor: cannot unmarshal {ty} into Go struct field v1.TypeMeta.{key} of type string"
                ));
            }
        }
        check_new(&mut seen, key, index)?;
    }
    Ok((api_version, kind))
}

/// Rejects a duplicate key, given its index in the map.
fn check_new(seen: &mut HashSet<Str>, key: Str, index: usize) -> Result<(), String> {
    if seen.contains(&key) {
        let key = go::quote(&key);
        return Err(format!(
            "cbor: found duplicate map key {key} at map element index {index}"
        ));
    }
    seen.insert(key);
    Ok(())
}

fn cannot(found: &str, wanted: &str) -> String {
    format!("cbor: cannot unmarshal {found} into Go value of type {wanted}")
}

/// The error for a simple value in place of an object.
fn unknown_simple(value: u8, ty: &str, wanted: &str) -> String {
    match value {
        simple::FALSE | simple::TRUE => cannot(ty, wanted),
        _ => format!(
            "cbor: data item of cbor type {ty} is not accepted by protocol: simple value {value} is not recognized"
        ),
    }
}

/// The conversion of byte strings to text: unchanged, unless a tag names an encoding.
#[derive(Clone, Copy)]
enum Later {
    Text,
    Base64Url,
    Base64,
    Hex,
}

impl Later {
    fn of_tag(tag: u64) -> Option<Later> {
        match tag {
            21 => Some(Later::Base64Url),
            22 => Some(Later::Base64),
            23 => Some(Later::Hex),
            _ => None,
        }
    }

    fn decode(self, bytes: &[u8]) -> String {
        match self {
            // Values are text: other bytes become replacement characters, as clients see them.
            Later::Text => String::from_utf8_lossy(bytes).into_owned(),
            Later::Base64Url => URL_SAFE_NO_PAD.encode(bytes),
            Later::Base64 => STANDARD.encode(bytes),
            Later::Hex => go::hex(bytes),
        }
    }
}

/// A reader of well-formed CBOR.
struct Reader<'d>(Scanner<'d>);

impl Reader<'_> {
    /// The type of the next item without its tags, as errors name it.
    fn content_type(&self) -> &'static str {
        let found = Reader(self.0.clone()).untagged();
        found.map_or("", |(ty, _)| ty)
    }

    /// Reads the next head that is not a tag, and its type as errors name it.
    fn untagged(&mut self) -> Result<(&'static str, Header), String> {
        loop {
            let ty = self.0.next_type();
            match self.0.head()? {
                Header::Tag(_) => {}
                head => return Ok((ty, head)),
            }
        }
    }

    fn value(&mut self, later: Later) -> Result<Value, String> {
        let ty = self.0.next_type();
        let overflow = |n: i128| {
            let why = format!(" ({n} overflows Go's int64)");
            cannot(ty, "int64") + &why
        };
        Ok(match self.0.head()? {
            Header::Positive(n) => i64::try_from(n).map_err(|_| overflow(n.into()))?.into(),
            Header::Negative(n) => match i64::try_from(n) {
                Ok(n) => (!n).into(),
                Err(_) => return Err(overflow(-1 - i128::from(n))),
            },
            Header::Float(n) => Value::Float(n),
            Header::Simple(simple::NULL) => Value::Null,
            Header::Simple(simple::TRUE) => true.into(),
            Header::Simple(simple::FALSE) => false.into(),
            Header::Simple(value) => return Err(unknown_simple(value, ty, "")),
            Header::Bytes(length) => later.decode(&self.0.string(length, ty)?).into(),
            Header::Text(length) => utf8(&self.0.string(length, ty)?)?.into(),
            Header::Array(mut left) => {
                let mut items = Vec::new();
                while self.0.has_more(&mut left) {
                    items.push(self.value(later)?);
                }
                items.into()
            }
            Header::Map(left) => self.map(left, later)?.into(),
            Header::Tag(tag @ (TIME | SECONDS)) => self.time(tag)?.into(),
            Header::Tag(SELF_DESCRIBED) => self.value(later)?,
            Header::Tag(tag) => self.value(Later::of_tag(tag).unwrap_or(later))?,
            // No well-formed item begins like this.
            Header::Break => return Err("cbor: unexpected \"break\" code".to_owned()),
        })
    }

    fn map(&mut self, mut left: Option<usize>, later: Later) -> Result<Map, String> {
        let mut members = Vec::new();
        let mut seen = HashSet::new();
        while self.0.has_more(&mut left) {
            let before = Reader(self.0.clone());
            let key = self.text_key()?;
            let key = key.ok_or_else(|| cannot(before.content_type(), "string"))?;
            let value = self.value(later)?;
            // After the value: kube-apiserver's decoder reports an error in the value of a duplicate first.
            check_new(&mut seen, key.clone(), members.len())?;
            members.push((key, value));
        }
        Ok(Map::from_unsorted(members))
    }

    /// Reads the next key if it is text; null is the empty key.
    fn text_key(&mut self) -> Result<Option<Str>, String> {
        // A copy of the position: tags before a key are ignored, but a key of another type is skipped as a whole.
        let mut below = Reader(self.0.clone());
        let (ty, head) = below.untagged()?;
        let key = match head {
            Header::Text(length) => utf8(&below.0.string(length, ty)?)?,
            Header::Bytes(length) => Later::Text.decode(&below.0.string(length, ty)?).into(),
            Header::Simple(simple::NULL) => Str::default(),
            _ => {
                self.0.skip(0)?;
                return Ok(None);
            }
        };
        self.0 = below.0;
        Ok(Some(key))
    }

    /// Reads the item after the tag of a time, as RFC 3339 text.
    fn time(&mut self, tag: u64) -> Result<String, String> {
        let ty = self.0.next_type();
        let moment = match (tag, self.0.head()?) {
            (TIME, Header::Text(length)) => {
                let text = utf8(&self.0.string(length, ty)?)?;
                let read = timestamp::parse_rfc3339(&text);
                read.map_err(|why| format!("cbor: cannot set {text} for time.Time: {why}"))?
            }
            (SECONDS, Header::Positive(n)) => moment(i128::from(n), 0, ty)?,
            (SECONDS, Header::Negative(n)) => moment(-1 - i128::from(n), 0, ty)?,
            (SECONDS, Header::Float(n)) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "seconds are whole, and a fraction is small"
                )]
                let (seconds, nanos) = (n.trunc() as i128, (n.fract() * 1e9) as i64);
                moment(seconds, nanos, ty)?
            }
            _ => {
                let wanted = match tag {
                    TIME => "text string",
                    _ => "integer or floating-point number",
                };
                return Err(format!(
                    "cbor: tag number {tag} must be followed by {wanted}, got {ty}"
                ));
            }
        };
        if !(0..=9999).contains(&CivilTime::at(moment.seconds, moment.offset).year) {
            return Err(
                "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: Time.MarshalText: \
                 year outside of range [0,9999]"
                    .to_owned(),
            );
        }
        Ok(timestamp::format(moment))
    }
}

/// Formats a time given in seconds, and nanoseconds of the same sign.
fn moment(seconds: i128, nanos: i64, ty: &str) -> Result<Moment, String> {
    const SECOND: i64 = 1_000_000_000;
    let whole = i64::try_from(seconds).map_err(|_| {
        let why = format!(" ({seconds} overflows Go's int64)");
        cannot(ty, "time.Time") + &why
    })?;
    Ok(Moment {
        seconds: whole.saturating_add(nanos.div_euclid(SECOND)),
        // The remainder is below a second, so it fits.
        nanos: u32::try_from(nanos.rem_euclid(SECOND)).unwrap_or_default(),
        offset: 0,
    })
}

fn utf8(bytes: &[u8]) -> Result<Str, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "cbor: invalid UTF-8 string")?;
    Ok(text.into())
}
