//! IP and MAC addresses.

use std::net::{IpAddr, Ipv6Addr};

/// Returns whether a text is an IP address that current Go parses.
pub(super) fn is_ip(s: &str) -> bool {
    // Go and Rust agree on both families, except that Rust refuses zones here.
    s.parse::<IpAddr>().is_ok()
}

/// Returns whether a text is an IP address that Go parsed before it refused leading zeros.
pub(super) fn is_lenient_ip(s: &str) -> bool {
    is_ip(s) || has_leading_zeros(s)
}

fn has_leading_zeros(s: &str) -> bool {
    match s.bytes().find(|b| matches!(b, b'.' | b':')) {
        Some(b'.') => is_lenient_ipv4(s),
        Some(_) => is_lenient_ipv6(s),
        None => false,
    }
}

/// Returns whether a text is a CIDR, with leading zeros allowed.
pub(super) fn is_lenient_cidr(s: &str) -> bool {
    let slash = s.bytes().rposition(|b| b == b'/');
    let Some((ip, length)) = slash.and_then(|at| Some((s.get(..at)?, s.get(at + 1..)?))) else {
        return false;
    };
    // The common notations come first, because the general parsers are slower.
    let max = if is_lenient_ipv4(ip) {
        32
    } else if is_common_ipv6(ip) || ip.parse::<Ipv6Addr>().is_ok() || is_lenient_ipv6(ip) {
        128
    } else {
        return false;
    };
    decimal(length).is_some_and(|n| n <= max)
}

fn decimal(s: &str) -> Option<u32> {
    let mut number = 0u32;
    for byte in s.bytes() {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        number = number.saturating_mul(10).saturating_add(digit);
    }
    // Go's parser refuses greater numbers.
    (!s.is_empty() && number < 0xff_ffff).then_some(number)
}

fn is_lenient_ipv4(s: &str) -> bool {
    let (mut parts, mut digits, mut number) = (1, 0, 0u32);
    for byte in s.bytes() {
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                number = number.saturating_mul(10).saturating_add(u32::from(byte - b'0'));
                if number > 0xff {
                    return false;
                }
            }
            b'.' if digits > 0 => (parts, digits, number) = (parts + 1, 0, 0),
            _ => return false,
        }
    }
    parts == 4 && digits > 0
}

/// Fast path in one pass: returns whether a text is an IPv6 address of hexadecimal groups only, as almost all
/// are.
fn is_common_ipv6(s: &str) -> bool {
    let (mut groups, mut digits, mut gap) = (0, 0, false);
    let mut bytes = s.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' if digits < 4 => {
                groups += usize::from(digits == 0);
                digits += 1;
            }
            b':' if bytes.next_if_eq(&b':').is_some() => {
                if gap {
                    return false;
                }
                (gap, digits) = (true, 0);
            }
            b':' if digits > 0 && bytes.peek().is_some() => digits = 0,
            _ => return false,
        }
    }
    // `::` stands for at least one group.
    if gap { groups < 8 } else { groups == 8 }
}

fn is_lenient_ipv6(s: &str) -> bool {
    // Only the dotted tail may have more leading zeros than a strict parser accepts, and groups may be longer
    // than four digits if they have leading zeros. Without them, the address must be strict.
    let Some(plain) = without_leading_zeros(s) else {
        return false;
    };
    plain.parse::<Ipv6Addr>().is_ok()
}

fn without_leading_zeros(s: &str) -> Option<String> {
    let mut groups = Vec::new();
    let mut rest = s.split(':').peekable();
    while let Some(group) = rest.next() {
        if group.contains('.') {
            if rest.peek().is_some() || !is_lenient_ipv4(group) {
                return None;
            }
            let parts: Vec<String> = group
                .split('.')
                .filter_map(decimal)
                .map(|n| n.to_string())
                .collect();
            groups.push(parts.join("."));
        } else if group.is_empty() {
            groups.push(String::new());
        } else {
            let short = group.trim_start_matches('0');
            groups.push(if short.is_empty() {
                "0".into()
            } else {
                short.into()
            });
        }
    }
    Some(groups.join(":"))
}

/// Six, eight or twenty hexadecimal bytes: pairs separated by colons or dashes, or groups of four separated
/// by dots; six bytes also without separators.
pub(super) fn is_mac(s: &str) -> bool {
    let hex = |group: &str, size: usize| group.len() == size && group.bytes().all(|b| b.is_ascii_hexdigit());
    let groups = |separator: char, size: usize, counts: &[usize]| {
        counts.contains(&s.split(separator).count()) && s.split(separator).all(|g| hex(g, size))
    };
    groups(':', 2, &[6, 8, 20])
        || groups('-', 2, &[6, 8, 20])
        || groups('.', 4, &[3, 4, 10])
        || [12, 16, 40].iter().any(|size| hex(s, *size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn common_addresses_are_addresses(s in "[0-9a-f:]{0,12}|([0-9a-f]{0,5}:){1,8}[0-9a-fg.]{0,5}") {
            let strict = s.parse::<Ipv6Addr>().is_ok();
            prop_assert!(strict || !is_common_ipv6(&s), "{s}");
            prop_assert!(is_common_ipv6(&s) || !strict || s.contains('.'), "{s}");
        }

        #[test]
        fn leading_zeros_are_lenient(s in "([0-9]{0,4}\\.){2,4}[0-9]{0,4}") {
            let short: Vec<&str> = s.split('.').map(|part| match part.trim_start_matches('0') {
                "" if !part.is_empty() => "0",
                rest => rest,
            }).collect();
            prop_assert_eq!(is_lenient_ipv4(&s), short.join(".").parse::<std::net::Ipv4Addr>().is_ok(), "{}", s);
        }
    }
}
