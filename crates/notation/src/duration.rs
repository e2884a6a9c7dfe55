//! Durations as text, in nanoseconds.

use crate::regex::Pattern;
use crate::timestamp::Moment;
use scantling_value::go::quote;
use std::sync::LazyLock;

/// The bound of a duration: 2^63 nanoseconds. Only a negative duration may have exactly this magnitude.
const LIMIT: u64 = 1 << 63;

/// Parses a duration: numbers with units (`1h30m`, `1.5s`), in any order of units.
pub fn parse(text: &str) -> Option<i64> {
    read(text).ok()
}

/// Parses a duration as [`parse`] does. The error is Go's, without the prefix `time: `.
pub fn parse_or_error(text: &str) -> Result<i64, String> {
    read(text).map_err(|fault| {
        let text = quote(text);
        match fault {
            Fault::Invalid => format!("invalid duration {text}"),
            Fault::NoUnit => format!("missing unit in duration {text}"),
            Fault::UnknownUnit(unit) => format!("unknown unit {} in duration {text}", quote(unit)),
        }
    })
}

/// The reason why a text is not a duration.
enum Fault<'t> {
    Invalid,
    NoUnit,
    UnknownUnit(&'t str),
}

fn read(text: &str) -> Result<i64, Fault<'_>> {
    let (negative, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    // Zero is the only number that Go accepts without a unit.
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(Fault::Invalid);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(Fault::Invalid);
        }
        let end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(end).unwrap_or((after, ""));
        let unit: u64 = match unit {
            "" => return Err(Fault::NoUnit),
            "ns" => 1,
            // U+00B5 is the micro sign, and U+03BC the Greek letter mu; Go accepts both.
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            unit => return Err(Fault::UnknownUnit(unit)),
        };
        let whole = if whole.is_empty() {
            Some(0)
        } else {
            whole.parse().ok()
        };
        let nanos = whole
            .and_then(|n: u64| n.checked_mul(unit))
            .filter(|n| *n <= LIMIT);
        let sum = nanos
            .and_then(|n| n.checked_add(fraction_of(fraction, unit)))
            .and_then(|n| total.checked_add(n));
        total = sum.filter(|n| *n <= LIMIT).ok_or(Fault::Invalid)?;
        rest = after;
    }
    let total = match negative {
        true => 0_i64.checked_sub_unsigned(total),
        false => i64::try_from(total).ok(),
    };
    total.ok_or(Fault::Invalid)
}

fn split_digits(text: &str) -> (&str, &str) {
    let n = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(n).unwrap_or((text, ""))
}

/// A decimal fraction of a unit, truncated to whole nanoseconds. Digits beyond 63 bits are ignored.
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let (mut numerator, mut denominator) = (0_u64, 1.0_f64);
    for digit in digits.bytes().map(|b| u64::from(b - b'0')) {
        match numerator
            .checked_mul(10)
            .and_then(|n| n.checked_add(digit))
            .filter(|n| *n <= LIMIT)
        {
            Some(n) => (numerator, denominator) = (n, denominator * 10.0),
            None => break,
        }
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the product is at most an hour in nanoseconds"
    )]
    let nanos = (numerator as f64 * (unit as f64 / denominator)) as u64;
    nanos
}

/// Parses a value of the OpenAPI format `duration`: a duration as [`parse`] reads it, or whole numbers with
/// unit names (`2 days`, `1 week 3 hours`) anywhere in the text. The error is the message.
pub fn parse_format(text: &str) -> Result<i64, String> {
    static TERM: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new(r"(\d+)\s*([A-Za-zµ]+)").ok());
    if let Some(nanos) = parse(text) {
        return Ok(nanos);
    }
    let mut total = None;
    for term in TERM.iter().flat_map(|re| re.matches(text, usize::MAX)) {
        let (count, unit) = split_digits(term);
        let count: i64 = scantling_value::go::parse_integer("Atoi", count)?;
        if let Some(unit) = unit_word(unit.trim_start()) {
            // UPSTREAM: the sum wraps around.
            total = Some(total.unwrap_or(0_i64).wrapping_add(count.wrapping_mul(unit)));
        }
    }
    total.ok_or_else(|| format!("unable to parse {text} as duration"))
}

/// Returns the nanoseconds of a unit name. The longest name may have a plural ending (`weeks`).
fn unit_word(word: &str) -> Option<i64> {
    const UNITS: [(&[&str], &str, i64); 8] = [
        (&["ns"], "nano", 1),
        (&["us", "\u{b5}s"], "micro", 1_000),
        (&["ms"], "milli", 1_000_000),
        (&["s"], "sec", 1_000_000_000),
        (&["m"], "min", 60_000_000_000),
        (&["h", "hr"], "hour", 3_600_000_000_000),
        (&["d"], "day", 86_400_000_000_000),
        (&["w", "wk"], "week", 604_800_000_000_000),
    ];
    let word = word.to_lowercase();
    UNITS
        .iter()
        .find(|(short, long, _)| short.contains(&word.as_str()) || word.starts_with(long))
        .map(|(_, _, nanos)| *nanos)
}

/// Formats a duration in seconds (`5400s`, `0.001s`).
pub fn format(nanos: i64) -> String {
    format!("{}s", seconds(nanos))
}

/// Formats a duration in several units, as messages do (`1h30m0s`, `1.5ms`).
pub fn in_units(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    // The number of a unit, with as many decimal places as it needs.
    let decimal = |unit: u64, places: usize| {
        let fraction = format!(".{:0places$}", nanos % unit);
        let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
        (nanos / unit, fraction.to_owned())
    };
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{nanos}ns"),
        1_000..1_000_000 => {
            let (n, fraction) = decimal(1_000, 3);
            format!("{sign}{n}{fraction}\u{b5}s")
        }
        1_000_000..1_000_000_000 => {
            let (n, fraction) = decimal(1_000_000, 6);
            format!("{sign}{n}{fraction}ms")
        }
        _ => {
            let (seconds, fraction) = decimal(1_000_000_000, 9);
            let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
            match (hours, minutes) {
                (0, 0) => format!("{sign}{seconds}{fraction}s"),
                (0, _) => format!("{sign}{minutes}m{seconds}{fraction}s"),
                _ => format!("{sign}{hours}h{minutes}m{seconds}{fraction}s"),
            }
        }
    }
}

/// Converts a duration to seconds, rounded to the nearest float.
#[expect(
    clippy::cast_precision_loss,
    reason = "the result is a floating-point number of seconds"
)]
pub fn seconds(nanos: i64) -> f64 {
    (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9
}

/// Formats a number of seconds as `kubectl` shows ages: at most two units, coarser for longer durations.
/// Negative values are invalid, except one second, because clocks differ.
pub fn human_duration(seconds: i64) -> String {
    let (minute, hour, day) = (60, 3600, 86_400);
    let year = 365 * day;
    let two = |whole: i64, unit: &str, rest: i64, small: &str| {
        if rest == 0 {
            format!("{whole}{unit}")
        } else {
            format!("{whole}{unit}{rest}{small}")
        }
    };
    match seconds {
        s if s < -1 => "<invalid>".to_owned(),
        s if s < 0 => "0s".to_owned(),
        s if s < 2 * minute => format!("{s}s"),
        s if s < 10 * minute => two(s / minute, "m", s % minute, "s"),
        s if s < 3 * hour => format!("{}m", s / minute),
        s if s < 8 * hour => two(s / hour, "h", s % hour / minute, "m"),
        s if s < 2 * day => format!("{}h", s / hour),
        s if s < 8 * day => two(s / day, "d", s % day / hour, "h"),
        s if s < 2 * year => format!("{}d", s / day),
        s if s < 8 * year => two(s / year, "y", s % year / day, "d"),
        s => format!("{}y", s / year),
    }
}

/// How long ago a time was, as people read it, by a clock that counts 292 years at most. The first moment of all means that
/// none is known.
pub fn age(time: Moment, now: i64) -> String {
    const FIRST: i64 = -62_135_596_800;
    const MOST: i64 = i64::MAX / 1_000_000_000;
    if (time.seconds, time.nanos) == (FIRST, 0) {
        return "<unknown>".to_owned();
    }
    human_duration(now.saturating_sub(time.seconds).clamp(-MOST, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_people_read() {
        let table = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (601, "10m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 61, "3h1m"),
            (9 * 3600, "9h"),
            (49 * 3600, "2d1h"),
            (9 * 86_400, "9d"),
            (800 * 86_400, "2y70d"),
            (9 * 365 * 86_400, "9y"),
        ];
        for (seconds, want) in table {
            assert_eq!(human_duration(seconds), want, "{seconds}");
        }
    }

    #[test]
    fn durations_in_units() {
        let cases = [
            (0, "0s"),
            (1, "1ns"),
            (-1_500, "-1.5\u{b5}s"),
            (1_002_003, "1.002003ms"),
            (30_000_000_000, "30s"),
            (61_500_000_000, "1m1.5s"),
            (7_200_000_000_000, "2h0m0s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ];
        for (nanos, want) in cases {
            assert_eq!(in_units(nanos), want);
        }
    }

    #[test]
    fn errors_of_durations() {
        let cases = [
            ("5", r#"missing unit in duration "5""#),
            ("5d", r#"unknown unit "d" in duration "5d""#),
            ("abc", r#"invalid duration "abc""#),
            ("1.2.3s", r#"missing unit in duration "1.2.3s""#),
            ("9999999h", r#"invalid duration "9999999h""#),
        ];
        for (text, want) in cases {
            assert_eq!(parse_or_error(text), Err(want.to_owned()), "{text}");
        }
    }

    #[test]
    fn durations() {
        let cases = [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1h30m", Some(5_400_000_000_000)),
            ("1.5s", Some(1_500_000_000)),
            (".5m", Some(30_000_000_000)),
            ("-1ms2us3ns", Some(-1_002_003)),
            ("1\u{b5}s", Some(1000)),
            ("1\u{3bc}s", Some(1000)),
            ("0.1ns", Some(0)),
            ("0.333333333333333333333h", Some(1_200_000_000_000)),
            ("9223372036854775807ns", Some(i64::MAX)),
            ("9223372036854775808ns", None),
            ("-9223372036854775808ns", Some(i64::MIN)),
            ("-9223372036854775809ns", None),
            ("9223372036.854775807s", Some(i64::MAX)),
            ("", None),
            ("1", None),
            ("s", None),
            (".s", None),
            ("1d", None),
            ("1 s", None),
            ("+", None),
            ("1h-1m", None),
            ("3000000h", None),
            ("1.s", Some(1_000_000_000)),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text), want, "{text}");
        }
    }

    #[test]
    fn openapi_duration_format() {
        let day = 86_400_000_000_000;
        let cases = [
            ("1h", Ok(3_600_000_000_000)),
            ("2 days", Ok(2 * day)),
            ("1 week 3 Hours", Ok(7 * day + day / 8)),
            ("3d", Ok(3 * day)),
            ("about 5 min", Ok(300_000_000_000)),
            ("5 secondsish", Ok(5_000_000_000)),
            ("x", Err("unable to parse x as duration".to_owned())),
            ("5 apples", Err("unable to parse 5 apples as duration".to_owned())),
        ];
        for (text, want) in cases {
            assert_eq!(parse_format(text), want, "{text}");
        }
    }

    #[test]
    fn formatted_durations() {
        for (nanos, want) in [
            (0, "0s"),
            (5_400_000_000_000, "5400s"),
            (-1_500_000_000, "-1.5s"),
            (1, "0.000000001s"),
            (i64::MAX, "9223372036.854776s"),
            (1_000_000_000_000_000_000, "1000000000s"),
        ] {
            assert_eq!(format(nanos), want);
        }
    }
}
