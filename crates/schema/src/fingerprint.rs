//! Numbers that tell values apart: values that may be the same have the same, and most others have others.

use scantling_value::Value;

/// The number of a value that may be absent. Numbers count by what they are worth; lists and objects are not told apart.
pub(crate) fn of(value: Option<&Value>) -> u64 {
    match value {
        None => 1,
        Some(Value::Null) => 2,
        Some(Value::Bool(b)) => 3 + u64::from(*b),
        #[expect(clippy::cast_precision_loss, reason = "what is the same stays the same")]
        Some(Value::Int(i)) => number(*i as f64),
        Some(Value::Float(f)) => number(*f),
        Some(Value::String(text)) => of_text(text),
        Some(Value::Array(_) | Value::Object(_)) => 5,
    }
}

/// The number of several values in a row.
pub(crate) fn of_all<'v>(values: impl IntoIterator<Item = Option<&'v Value>>) -> u64 {
    values.into_iter().fold(0, |all, value| mix(all, of(value)))
}

/// Whether all numbers differ, and so all values that they stand for.
pub(crate) fn all_differ(prints: impl IntoIterator<Item = u64>) -> bool {
    let mut prints: Vec<u64> = prints.into_iter().collect();
    prints.sort_unstable();
    prints.windows(2).all(|pair| matches!(pair, [a, b] if a != b))
}

fn number(worth: f64) -> u64 {
    // Both zeros are equal.
    mix(6, (worth + 0.0).to_bits())
}

fn of_text(text: &str) -> u64 {
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let mut last = [0; 8];
    for (place, byte) in last.iter_mut().zip(rest) {
        *place = *byte;
    }
    let begun = mix(7, text.len() as u64);
    let words = words.iter().chain([&last]);
    words.fold(begun, |all, word| mix(all, u64::from_le_bytes(*word)))
}

/// Whoever makes two texts meet on purpose makes them be compared at length, and no more.
#[inline]
fn mix(all: u64, word: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    (all.rotate_left(23) ^ word).wrapping_mul(ODD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_the_same_has_the_same_number() {
        let same = [
            (Value::Int(1), Value::Float(1.0)),
            (Value::Float(0.0), Value::Float(-0.0)),
            (Value::from("a long text"), Value::from("a long text")),
            (Value::Array(vec![]), Value::Array(vec![Value::Null])),
        ];
        for (a, b) in same {
            assert_eq!(of(Some(&a)), of(Some(&b)), "{a:?} {b:?}");
        }
    }

    #[test]
    fn others_have_others() {
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
        assert!(all_differ(all.clone().map(of)));
        let pairs = all.clone().flat_map(|a| all.clone().map(move |b| of_all([a, b])));
        assert!(all_differ(pairs));
        assert!(!all_differ([3, 1, 3]));
    }
}
