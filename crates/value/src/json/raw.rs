//! JSON documents that keep what [`Value`] drops: the order of members, repeated members, and the digits of
//! numbers.

use super::parse::{Cursor, NumberForm};
use crate::{DecodeError, Limits, Map, Str, Value};

/// A JSON value that keeps the order of members, repeated members and the digits of numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum RawJson {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(RawNumber),
    /// A string.
    Text(Str),
    /// A list.
    Array(Vec<RawJson>),
    /// An object; a name may be repeated.
    Object(Vec<(Str, RawJson)>),
}

/// A number with its original digits.
#[derive(Clone, Debug, PartialEq)]
pub struct RawNumber {
    /// The digits as written.
    pub text: Str,
    /// The value; infinity if it is out of range.
    pub value: Value,
}

/// Decodes a text that is known to be valid JSON.
pub fn decode_raw(text: &[u8], limits: Limits) -> Result<RawJson, DecodeError> {
    value(&mut Cursor::new(text), limits.depth)
}

impl RawJson {
    /// Returns the first number that is out of range.
    pub fn out_of_range(&self) -> Option<&Str> {
        match self {
            RawJson::Number(n) if matches!(n.value, Value::Float(f) if f.is_infinite()) => Some(&n.text),
            RawJson::Array(items) => items.iter().find_map(RawJson::out_of_range),
            RawJson::Object(members) => members.iter().find_map(|(_, v)| v.out_of_range()),
            RawJson::Null | RawJson::Bool(_) | RawJson::Number(_) | RawJson::Text(_) => None,
        }
    }
}

impl From<RawJson> for Value {
    /// The last occurrence of a repeated member wins.
    fn from(written: RawJson) -> Value {
        match written {
            RawJson::Null => Value::Null,
            RawJson::Bool(b) => Value::Bool(b),
            RawJson::Number(number) => number.value,
            RawJson::Text(s) => Value::String(s),
            RawJson::Array(items) => Value::Array(items.into_iter().map(Value::from).collect()),
            RawJson::Object(members) => {
                let members = members.into_iter().map(|(k, v)| (k, Value::from(v)));
                Value::Object(Map::from_unsorted(members.collect()))
            }
        }
    }
}

fn value(cursor: &mut Cursor<'_>, depth: usize) -> Result<RawJson, DecodeError> {
    let first = cursor.skip_space();
    // This bounds the recursion.
    if depth == 0 {
        return Err(cursor.unexpected(first, "exceeded max depth"));
    }
    Ok(match first {
        Some(b'{') => {
            cursor.advance();
            let mut members = Vec::new();
            while !closes(cursor, b'}') {
                // The quote that opens the name.
                cursor.advance();
                let name = cursor.string()?;
                cursor.skip_space();
                cursor.advance();
                members.push((name, value(cursor, depth - 1)?));
            }
            RawJson::Object(members)
        }
        Some(b'[') => {
            cursor.advance();
            let mut items = Vec::new();
            while !closes(cursor, b']') {
                items.push(value(cursor, depth - 1)?);
            }
            RawJson::Array(items)
        }
        Some(b'"') => {
            cursor.advance();
            RawJson::Text(cursor.string()?)
        }
        Some(b't') => cursor.literal("true", RawJson::Bool(true))?,
        Some(b'f') => cursor.literal("false", RawJson::Bool(false))?,
        Some(b'n') => cursor.literal("null", RawJson::Null)?,
        _ => {
            let start = cursor.at();
            let form = cursor.number()?;
            let text = cursor.ascii(start);
            RawJson::Number(RawNumber {
                text: Str::new(text),
                value: number(text, form),
            })
        }
    })
}

/// If the list or object ends here, skips its end and returns true. Otherwise skips the comma before the next
/// element.
fn closes(cursor: &mut Cursor<'_>, end: u8) -> bool {
    if cursor.skip_space() == Some(b',') {
        cursor.advance();
    }
    match cursor.skip_space() {
        Some(byte) if byte == end => {
            cursor.advance();
            true
        }
        // The end of an invalid text must end the loop of the caller as well.
        found => found.is_none(),
    }
}

fn number(text: &str, form: NumberForm) -> Value {
    match (form, text.parse()) {
        (NumberForm::Integer, Ok(i)) => Value::Int(i),
        _ => Value::Float(text.parse().unwrap_or(f64::INFINITY)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_json_keeps_order_repeats_and_digits() {
        let text = r#" { "b" : [ 1.50, -0 , 1e400 ,true,null] , "a":{} ,"b":"\u00e9" } "#;
        let number = |text: &str, value| {
            RawJson::Number(RawNumber {
                text: Str::new(text),
                value,
            })
        };
        let list = vec![
            number("1.50", Value::Float(1.5)),
            number("-0", Value::Int(0)),
            number("1e400", Value::Float(f64::INFINITY)),
            RawJson::Bool(true),
            RawJson::Null,
        ];
        let want = RawJson::Object(vec![
            (Str::new("b"), RawJson::Array(list)),
            (Str::new("a"), RawJson::Object(Vec::new())),
            (Str::new("b"), RawJson::Text(Str::new("é"))),
        ]);
        let found = decode_raw(text.as_bytes(), Limits::SAFE).unwrap();
        assert_eq!(found, want);
        assert_eq!(Value::from(found).to_json(), r#"{"a":{},"b":"é"}"#);
        let odd = decode_raw(br#"{"a":[1,{"b":-1e999}]}"#, Limits::SAFE).unwrap();
        assert_eq!(odd.out_of_range().map(Str::as_str), Some("-1e999"));
        assert!(decode_raw(b"[[[]]]", Limits { depth: 2 }).is_err());
    }
}
