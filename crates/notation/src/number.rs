//! Parses floating-point numbers.

/// Parses a floating-point number as Go's `strconv.ParseFloat` does: decimal or hexadecimal with a binary
/// exponent, underscores between digits, `inf`, `infinity` and `nan` in any letter case. Returns `None` for
/// numbers out of range.
pub fn parse_double(text: &str) -> Option<f64> {
    let (negative, magnitude) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if magnitude.eq_ignore_ascii_case("nan") {
        // Go accepts no sign before `nan`.
        return (magnitude.len() == text.len()).then_some(f64::NAN);
    }
    let sign = if negative { -1.0 } else { 1.0 };
    if magnitude.eq_ignore_ascii_case("inf") || magnitude.eq_ignore_ascii_case("infinity") {
        return Some(sign * f64::INFINITY);
    }
    let hexadecimal = magnitude
        .strip_prefix("0x")
        .or_else(|| magnitude.strip_prefix("0X"));
    // The prefix counts as a digit before an underscore.
    if !underscores_separate_digits(magnitude, hexadecimal.is_some()) {
        return None;
    }
    let value = match hexadecimal {
        Some(digits) => parse_hexadecimal(&digits.replace('_', ""))?,
        None => {
            // Rust would accept a second sign and words here.
            let decimal = magnitude.replace('_', "");
            decimal
                .starts_with(|c: char| c.is_ascii_digit() || c == '.')
                .then(|| decimal.parse().ok())??
        }
    };
    value.is_finite().then_some(sign * value)
}

fn underscores_separate_digits(text: &str, hexadecimal: bool) -> bool {
    let is_digit = |b: Option<&u8>| {
        b.is_some_and(|b| {
            if hexadecimal {
                b.is_ascii_hexdigit() || b"xX".contains(b)
            } else {
                b.is_ascii_digit()
            }
        })
    };
    let bytes = text.as_bytes();
    bytes
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'_')
        .all(|(i, _)| {
            i > 0
                && is_digit(bytes.get(i - 1))
                && is_digit(bytes.get(i + 1))
                && !matches!(bytes.get(i + 1), Some(b'x' | b'X'))
        })
}

fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    if !exponent
        .strip_prefix(['-', '+'])
        .unwrap_or(exponent)
        .bytes()
        .all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let mut exponent = match exponent.parse::<i64>() {
        // The bounds keep the arithmetic below from overflowing and the loop short.
        Ok(exponent) => exponent.clamp(-1_000_000, 1_000_000),
        Err(e) if *e.kind() == std::num::IntErrorKind::PosOverflow => 1_000_000,
        Err(e) if *e.kind() == std::num::IntErrorKind::NegOverflow => -1_000_000,
        Err(_) => return None,
    };
    exponent -= i64::try_from(fraction.len()).ok()?.saturating_mul(4);
    let mut bits: u64 = 0;
    for c in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(c.to_digit(16)?);
        if bits >> 60 == 0 {
            bits = bits << 4 | digit;
        } else {
            // Digits beyond the mantissa only affect rounding.
            bits |= u64::from(digit != 0);
            exponent += 4;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "this is the rounding to a double")]
    let mut value = bits as f64;
    // Scales in steps, so that no power of two exceeds the range of a double.
    while exponent != 0 && value != 0.0 && value.is_finite() {
        let step = exponent.clamp(-1000, 1000);
        value *= 2_f64.powi(i32::try_from(step).ok()?);
        exponent -= step;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_doubles() {
        let good = [
            ("1_000.5", 1000.5),
            ("0x1p-2", 0.25),
            ("0x1_0p0", 16.0),
            ("0X1.8P1", 3.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("+Infinity", f64::INFINITY),
            ("-iNf", f64::NEG_INFINITY),
            ("1e-400", 0.0),
            ("-0", 0.0),
            ("1e5", 1e5),
            ("0x_1p0", 1.0),
        ];
        for (text, want) in good {
            assert_eq!(parse_double(text), Some(want), "{text}");
        }
        assert!(parse_double("NaN").is_some_and(f64::is_nan));
        for text in [
            "", ".", " 1", "+nan", "infi", "1e400", "0x", "1e", "1e+", "_1", "1_", "1__0", "0b11", "1p3",
            "0x10", "--1", "0x1p", "0xp1", "1_e5",
        ] {
            assert_eq!(parse_double(text), None, "{text}");
        }
    }
}
