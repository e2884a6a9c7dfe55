//! Hash values for comparing values: equal values have equal fingerprints, different values mostly different
//! ones.

use scantling_value::{Str, Value};

/// The fingerprint of a value that may be absent. Numbers are hashed by value; all lists and objects have the
/// same fingerprint.
pub(crate) fn fingerprint(value: Option<&Value>) -> u64 {
    match value {
        None => 1,
        Some(Value::Null) => 2,
        Some(Value::Bool(b)) => 3 + u64::from(*b),
        #[expect(clippy::cast_precision_loss, reason = "what is the same stays the same")]
        Some(Value::Int(i)) => number(*i as f64),
        Some(Value::Float(f)) => number(*f),
        Some(Value::String(text)) => hash_text(text),
        Some(Value::Array(_) | Value::Object(_)) => 5,
    }
}

/// Reads the keys of consecutive list elements.
pub(crate) struct KeyFingerprinter<'k> {
    keys: &'k [Str],
    /// The position of each key in the previous element.
    positions: Vec<usize>,
}

impl<'k> KeyFingerprinter<'k> {
    pub(crate) fn new(keys: &'k [Str]) -> Self {
        KeyFingerprinter {
            keys,
            positions: vec![0; keys.len()],
        }
    }

    /// The fingerprint of the keys of an element, and whether all of them match the predicate.
    pub(crate) fn fingerprint(
        &mut self,
        element: &Value,
        test: impl Fn(Option<&Value>) -> bool,
    ) -> (u64, bool) {
        let element = element.as_object();
        let keys = self.keys.iter().zip(&mut self.positions);
        keys.fold((0, true), |(print, passed), (key, position)| {
            let value = element.and_then(|map| map.get_near(key, position));
            (mix(print, fingerprint(value)), passed && test(value))
        })
    }
}

/// Returns whether all fingerprints differ, and therefore all values.
pub(crate) fn all_differ(prints: impl IntoIterator<Item = u64>) -> bool {
    let mut prints: Vec<u64> = prints.into_iter().collect();
    prints.sort_unstable();
    prints.windows(2).all(|pair| matches!(pair, [a, b] if a != b))
}

fn number(worth: f64) -> u64 {
    // Both zeros are equal.
    mix(6, (worth + 0.0).to_bits())
}

fn hash_text(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let begun = mix(7, bytes.len() as u64);
    let Some(last) = bytes.last_chunk::<8>() else {
        let short = bytes.iter().fold(0, |all, byte| (all << 8) | u64::from(*byte));
        // Short texts of the same length have different numbers, so their fingerprints differ.
        return mix(begun, short);
    };
    // The last word may overlap the previous one.
    let (words, _) = bytes.as_chunks::<8>();
    let all = words
        .iter()
        .fold(begun, |all, word| mix(all, u64::from_le_bytes(*word)));
    mix(all, u64::from_le_bytes(*last))
}

/// Not collision-resistant: colliding texts are compared in full, so an attacker gains nothing.
#[inline]
fn mix(all: u64, word: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    (all.rotate_left(23) ^ word).wrapping_mul(ODD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_equal_fingerprints() {
        let same = [
            (Value::Int(1), Value::Float(1.0)),
            (Value::Float(0.0), Value::Float(-0.0)),
            (Value::from("a long text"), Value::from("a long text")),
            (Value::Array(vec![]), Value::Array(vec![Value::Null])),
        ];
        for (a, b) in same {
            assert_eq!(fingerprint(Some(&a)), fingerprint(Some(&b)), "{a:?} {b:?}");
        }
    }

    #[test]
    fn different_values_have_different_fingerprints() {
        let texts = ["", "a", "b", "ab", "ba", "abcdefgh", "abcdefghi", "abcdefgh\0"];
        let texts = texts.map(Value::from);
        let others = [
            Value::Null,
            Value::Bool(false),
            Value::Bool(true),
            Value::Int(0),
            Value::Int(-1),
        ];
        let all = texts.iter().chain(&others).map(Some).chain([None]);
        assert!(all_differ(all.clone().map(fingerprint)));
        assert!(!all_differ([3, 1, 3]));
    }

    #[test]
    fn keys_are_read_in_order() {
        let names = ["a", "b"].map(Str::from);
        let mut keys = KeyFingerprinter::new(&names);
        let values = [
            None,
            Some(Value::Null),
            Some(Value::from("x")),
            Some(Value::from("y")),
        ];
        let member = |name, value: &Option<Value>| value.clone().map(|value| (name, value));
        let mut prints = Vec::new();
        for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
            let members = [member("a", a), member("aa", b), member("b", b)];
            let element = Value::Object(members.into_iter().flatten().collect());
            let (print, whole) = keys.fingerprint(&element, |key| key.is_some());
            assert_eq!(whole, a.is_some() && b.is_some());
            prints.push(print);
        }
        assert!(all_differ(prints));
    }
}
