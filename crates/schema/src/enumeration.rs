//! `enum`: a set of allowed values.

use crate::structural::Json;
use scantling_value::{TextSet, Value, go};

/// The values of an enumeration, sorted by type: a list may have tens of thousands of values and be queried
/// as often.
#[derive(Debug, Default)]
pub(crate) struct EnumSet {
    texts: TextSet<Box<str>>,
    ints: Box<[i64]>,
    /// Floats, without negative zeros.
    floats: Box<[f64]>,
    /// Booleans, lists and objects.
    others: Box<[Json]>,
}

impl EnumSet {
    pub(crate) fn new(listed: &[Json]) -> Self {
        let (mut texts, mut ints, mut floats) = (Vec::new(), Vec::new(), Vec::new());
        let mut others: Vec<Json> = Vec::new();
        let mut bools = [false; 2];
        for json in listed {
            match &*json.0 {
                // `null` never matches an enumeration.
                Value::Null => {}
                Value::String(s) => texts.push(Box::from(s.as_str())),
                Value::Int(i) => ints.push(*i),
                // Adding zero removes the sign of a negative zero, which `total_cmp` distinguishes.
                Value::Float(f) => floats.push(f + 0.0),
                Value::Bool(b) => {
                    // Repeated booleans would only lengthen the linear search.
                    let [no, yes] = &mut bools;
                    let seen = if *b { yes } else { no };
                    if !std::mem::replace(seen, true) {
                        others.push(json.clone());
                    }
                }
                Value::Array(_) | Value::Object(_) => others.push(json.clone()),
            }
        }
        ints.sort_unstable();
        floats.sort_by(f64::total_cmp);
        EnumSet {
            texts: texts.into_iter().collect(),
            ints: ints.into(),
            floats: floats.into(),
            others: others.into(),
        }
    }

    /// Returns whether a value is in the set. kube-apiserver converts the value to the type of the listed one
    /// where Go converts: floats to integers by truncation, integers to strings by code point.
    #[expect(clippy::cast_precision_loss, reason = "the conversions of a server")]
    pub(crate) fn contains(&self, value: &Value) -> bool {
        match value {
            Value::Null => false,
            Value::String(s) => self.texts.contains(s),
            Value::Int(i) => {
                let c = u32::try_from(*i).ok().and_then(char::from_u32);
                let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
                self.ints.binary_search(i).is_ok()
                    || self.contains_float(*i as f64)
                    || self.texts.contains(c.encode_utf8(&mut [0; 4]))
            }
            Value::Float(f) => self.ints.binary_search(&go::cut(*f)).is_ok() || self.contains_float(*f),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                self.others.iter().any(|json| *json.0 == *value)
            }
        }
    }

    fn contains_float(&self, f: f64) -> bool {
        let f = f + 0.0;
        self.floats
            .binary_search_by(|listed| listed.total_cmp(&f))
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_value::{Limits, json};

    #[test]
    fn values_are_converted() {
        let decode = |text: &str| json::decode(text.as_bytes(), Limits::SAFE).unwrap();
        let listed = |text: &str| -> Vec<Json> {
            let value = decode(text);
            let items = value.as_array().unwrap();
            items.iter().map(|v| Json(v.clone().into())).collect()
        };
        for (list, value, is_listed) in [
            (r#"["a", "b"]"#, r#""b""#, true),
            (r#"["a", "b"]"#, r#""c""#, false),
            (r#"["a"]"#, "97", true),
            (r#"["\ufffd"]"#, "-1", true),
            ("[1, 2, 3]", "2", true),
            ("[1, 2, 3]", "4", false),
            ("[1, 2, 3]", "2.5", true),
            ("[1.5, 2.0]", "2", true),
            ("[1.5, 2.0]", "1.5", true),
            ("[1.5]", "1", false),
            ("[0.0]", "-0.0", true),
            ("[-0.0]", "0", true),
            ("[true]", "true", true),
            ("[true]", "false", false),
            ("[null]", "null", false),
            ("[[1], {\"a\": 1}]", "{\"a\": 1}", true),
            ("[[1], {\"a\": 1}]", "[2]", false),
        ] {
            let value = decode(value);
            assert_eq!(
                EnumSet::new(&listed(list)).contains(&value),
                is_listed,
                "{list} {value:?}"
            );
        }
    }
}
