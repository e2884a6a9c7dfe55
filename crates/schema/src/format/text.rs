//! Formats that depend on characters only.

use regex::Regex;
use scantling_notation::timestamp;
use std::sync::LazyLock;

pub(super) fn all(s: &str, test: impl Fn(u8) -> bool) -> bool {
    s.bytes().all(test)
}

/// Returns whether a text has lower-case letters, digits and dashes, and no dash at either end.
pub(super) fn is_label(s: &str) -> bool {
    let end = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let mut bytes = s.bytes();
    end(s.bytes().next())
        && end(s.bytes().next_back())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Returns whether a text is a host name as kube-apiserver accepts it: one label with at most one dash, after
/// its first character; or several labels, the last with letters only.
pub(super) fn is_hostname(s: &str) -> bool {
    // Letters and symbols of all scripts are allowed, which requires Unicode tables.
    static HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        const WORD: &str = r"[a-zA-Z0-9\p{S}\p{L}]";
        let single = format!(r"{WORD}(-?{WORD}{{0,62}})?");
        let several =
            format!(r"({WORD}([a-zA-Z0-9\-\p{{S}}\p{{L}}]{{0,61}}{WORD})?\.)+[a-zA-Z\p{{L}}]{{2,63}}");
        // The pattern is constant and valid; an error would refuse every name.
        Regex::new(&format!("^({single}|{several})$")).ok()
    });
    s.len() <= 255
        && s.split('.').all(|label| label.len() <= 63)
        && HOSTNAME.as_ref().is_some_and(|regex| regex.is_match(s))
}

/// Returns whether a text is a UUID: 32 hexadecimal digits with or without dashes, of the given version if
/// any.
pub(super) fn is_uuid(s: &str, version: Option<u8>) -> bool {
    let mut bytes = s.bytes().peekable();
    let mut position = 0;
    for group in [8, 4, 4, 4, 12] {
        if position > 0 {
            bytes.next_if_eq(&b'-');
        }
        for _ in 0..group {
            let Some(b) = bytes.next() else {
                return false;
            };
            let wanted = match (position, version) {
                // kube-apiserver's pattern for version 3 does not check the variant.
                (12, Some(v)) => b == v,
                (16, Some(b'4' | b'5')) => matches!(b, b'8' | b'9' | b'a' | b'b' | b'A' | b'B'),
                _ => b.is_ascii_hexdigit(),
            };
            if !wanted {
                return false;
            }
            position += 1;
        }
    }
    bytes.next().is_none()
}

/// Returns whether a text is a social security number: groups of three, two and four digits, separated by a
/// dash or space.
pub(super) fn is_ssn(s: &str) -> bool {
    s.len() == 11
        && s.bytes().enumerate().all(|(i, b)| match i {
            3 | 6 => matches!(b, b'-' | b' '),
            _ => b.is_ascii_digit(),
        })
}

pub(super) fn is_hex_color(s: &str) -> bool {
    let digits = s.strip_prefix('#').unwrap_or(s);
    matches!(digits.len(), 3 | 6) && all(digits, |b| b.is_ascii_hexdigit())
}

pub(super) fn is_rgb_color(s: &str) -> bool {
    let part = |text: &str| {
        let digits = text.trim_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let plain = !digits.is_empty() && digits.len() <= 3 && all(digits, |b| b.is_ascii_digit());
        // kube-apiserver's pattern refuses leading zeros.
        plain && (digits == "0" || !digits.starts_with('0')) && digits.parse::<u8>().is_ok()
    };
    let inner = s.strip_prefix("rgb(").and_then(|s| s.strip_suffix(')'));
    inner.is_some_and(|inner| inner.split(',').count() == 3 && inner.split(',').all(part))
}

/// Returns whether a text is standard padded base64; the empty string is not.
pub(super) fn is_base64(s: &str) -> bool {
    if s.is_empty() || !s.len().is_multiple_of(4) {
        return false;
    }
    let digits = s.strip_suffix("==").or_else(|| s.strip_suffix('=')).unwrap_or(s);
    all(digits, |b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

/// Returns whether a text is a date, `T`, and a time with an offset. UPSTREAM: the time is what follows the
/// first `t` up to the second, in any letter case, and any character may precede the fraction.
pub(super) fn is_date_time(s: &str) -> bool {
    let lower = s.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    s.len() >= 4 && timestamp::parse_date(date).is_ok() && is_time(time)
}

/// Returns whether a text is `15:04:05` with an optional fraction and `z` or an offset.
fn is_time(s: &str) -> bool {
    static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$").ok()
    });
    let Some(found) = TIME.as_ref().and_then(|regex| regex.captures(s)) else {
        return false;
    };
    let part = |i: usize| found.get(i).map_or("", |m| m.as_str());
    // Texts of two digits compare like their numbers.
    part(1) <= "23" && part(2) <= "59" && part(3) <= "59"
}
