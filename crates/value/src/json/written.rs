//! Documents as they are written: members in their order and as often as they stand, numbers to the letter.

use super::parse::{Cursor, NumberForm};
use crate::{DecodeError, Limits, Map, Str, Value};

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(WrittenNumber),
    /// A text.
    Text(Str),
    /// A list.
    Array(Vec<Written>),
    /// An object; a name may stand more than once.
    Object(Vec<(Str, Written)>),
}

/// A number as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenNumber {
    /// Its letters.
    pub text: Str,
    /// Its value; infinity stands in for what is out of range.
    pub value: Value,
}

/// Reads a text that is known to be valid JSON.
pub fn decode_written(text: &[u8], limits: Limits) -> Result<Written, DecodeError> {
    value(&mut Cursor::new(text), limits.depth)
}

impl Written {
    /// The first number in it that is out of all range.
    pub fn out_of_range(&self) -> Option<&Str> {
        match self {
            Written::Number(n) if matches!(n.value, Value::Float(f) if f.is_infinite()) => Some(&n.text),
            Written::Array(items) => items.iter().find_map(Written::out_of_range),
            Written::Object(members) => members.iter().find_map(|(_, v)| v.out_of_range()),
            Written::Null | Written::Bool(_) | Written::Number(_) | Written::Text(_) => None,
        }
    }
}

impl From<Written> for Value {
    /// Of members that stand twice the last one counts.
    fn from(written: Written) -> Value {
        match written {
            Written::Null => Value::Null,
            Written::Bool(b) => Value::Bool(b),
            Written::Number(number) => number.value,
            Written::Text(s) => Value::String(s),
            Written::Array(items) => Value::Array(items.into_iter().map(Value::from).collect()),
            Written::Object(members) => {
                let members = members.into_iter().map(|(k, v)| (k, Value::from(v)));
                Value::Object(Map::from_unsorted(members.collect()))
            }
        }
    }
}

fn value(cursor: &mut Cursor<'_>, depth: usize) -> Result<Written, DecodeError> {
    let first = cursor.skip_space();
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
            Written::Object(members)
        }
        Some(b'[') => {
            cursor.advance();
            let mut items = Vec::new();
            while !closes(cursor, b']') {
                items.push(value(cursor, depth - 1)?);
            }
            Written::Array(items)
        }
        Some(b'"') => {
            cursor.advance();
            Written::Text(cursor.string()?)
        }
        Some(b't') => cursor.literal("true", Written::Bool(true))?,
        Some(b'f') => cursor.literal("false", Written::Bool(false))?,
        Some(b'n') => cursor.literal("null", Written::Null)?,
        _ => {
            let start = cursor.at();
            let form = cursor.number()?;
            let text = cursor.ascii(start);
            Written::Number(WrittenNumber {
                text: Str::new(text),
                value: number(text, form),
            })
        }
    })
}

/// Whether a list or an object ends here, and moves past its end; else to its next element, which a comma may precede.
fn closes(cursor: &mut Cursor<'_>, end: u8) -> bool {
    if cursor.skip_space() == Some(b',') {
        cursor.advance();
    }
    match cursor.skip_space() {
        Some(byte) if byte == end => {
            cursor.advance();
            true
        }
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
    fn everything_is_kept() {
        let text = r#" { "b" : [ 1.50, -0 , 1e400 ,true,null] , "a":{} ,"b":"\u00e9" } "#;
        let number = |text: &str, value| {
            Written::Number(WrittenNumber {
                text: Str::new(text),
                value,
            })
        };
        let list = vec![
            number("1.50", Value::Float(1.5)),
            number("-0", Value::Int(0)),
            number("1e400", Value::Float(f64::INFINITY)),
            Written::Bool(true),
            Written::Null,
        ];
        let want = Written::Object(vec![
            (Str::new("b"), Written::Array(list)),
            (Str::new("a"), Written::Object(Vec::new())),
            (Str::new("b"), Written::Text(Str::new("é"))),
        ]);
        let found = decode_written(text.as_bytes(), Limits::SAFE).unwrap();
        assert_eq!(found, want);
        assert_eq!(Value::from(found).to_json(), r#"{"a":{},"b":"é"}"#);
        let odd = decode_written(br#"{"a":[1,{"b":-1e999}]}"#, Limits::SAFE).unwrap();
        assert_eq!(odd.out_of_range().map(Str::as_str), Some("-1e999"));
        assert!(decode_written(b"[[[]]]", Limits { depth: 2 }).is_err());
    }
}
