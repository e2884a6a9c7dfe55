//! Addresses of networks and of network interfaces.

use std::net::{IpAddr, Ipv6Addr};

/// An address of either family as Go reads it today.
pub(super) fn is_ip(s: &str) -> bool {
    // Go and Rust agree on both families, save that a zone, which neither family's parser here knows, is refused.
    s.parse::<IpAddr>().is_ok()
}

/// An address as Go read it before it refused leading zeros.
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

/// An address and the length of a prefix, with leading zeros allowed.
pub(super) fn is_lenient_cidr(s: &str) -> bool {
    let Some((ip, length)) = s.split_once('/') else {
        return false;
    };
    let max = match ip.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) if is_lenient_ipv4(ip) => 32,
        Err(_) if is_lenient_ipv6(ip) => 128,
        Err(_) => return false,
    };
    decimal(length).is_some_and(|n| n <= max)
}

fn decimal(s: &str) -> Option<u32> {
    let digits = !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    digits
        .then(|| s.parse().ok())
        .flatten()
        .filter(|n| *n < 0xff_ffff)
}

fn is_lenient_ipv4(s: &str) -> bool {
    s.split('.').count() == 4 && s.split('.').all(|part| decimal(part).is_some_and(|n| n <= 0xff))
}

fn is_lenient_ipv6(s: &str) -> bool {
    // Only the dotted tail may have more leading zeros than a strict reader takes, and groups may be longer than four
    // digits as long as they are leading zeros: written without them, the address is a strict one or none.
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

/// Six, eight or twenty bytes in hexadecimal: pairs with colons or dashes, or groups of four with dots; six bytes
/// also without anything between them.
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
