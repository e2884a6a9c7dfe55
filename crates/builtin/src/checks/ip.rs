//! IP addresses and CIDRs.

use super::Report;
use crate::Cursor;
use scantling_notation::ip::Ip;
use scantling_value::{ErrorList, Path, go};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// An address as `net.ParseIP` read it before Go 1.17: decimal parts may have leading zeros.
pub(crate) fn parse_sloppy(text: &str) -> Option<IpAddr> {
    parse_strict(text).or_else(|| {
        // A dotted IPv4 address may end an IPv6 address.
        let (head, dotted) = text.rsplit_once(':').map_or(("", text), |(head, _)| {
            text.split_at_checked(head.len() + 1).unwrap_or(("", text))
        });
        if !dotted.contains('.') {
            return None;
        }
        let plain = |part: &str| {
            let rest = part.trim_start_matches('0');
            (if rest.is_empty() && !part.is_empty() {
                "0"
            } else {
                rest
            })
            .to_owned()
        };
        let parts: Vec<String> = dotted.split('.').map(plain).collect();
        parse_strict(&format!("{head}{}", parts.join(".")))
    })
}

/// An address without leading zeros.
fn parse_strict(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// Returns whether an address is an IPv4 address written as an IPv6 address.
fn is_mapped(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// An address as Go prints it: an IPv4 address written as an IPv6 address becomes an IPv4 address.
pub(crate) fn canonical(address: &IpAddr) -> String {
    address.to_canonical().to_string()
}

/// Checks an address in a field that is older than strict validation: `existing` lists the stored addresses, which are
/// not checked again.
pub(crate) fn check_unless_stored(at: &Cursor<'_, '_>, existing: &BTreeSet<&str>, errors: &mut ErrorList) {
    if !existing.contains(at.str()) {
        check(at, errors);
    }
}

/// Checks an address, and that it is in canonical form.
pub(crate) fn check_canonical(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let before = errors.total();
    // Only an address without errors has a canonical form to ask for.
    if let Some(address) = check(at, errors).filter(|_| errors.total() == before) {
        let canonical = canonical(&address);
        if canonical != at.str() {
            let canonical = go::quote(&canonical);
            errors.invalid(at, format!("must be in canonical form ({canonical})"));
        }
    }
}

fn check(at: &Cursor<'_, '_>, errors: &mut ErrorList) -> Option<IpAddr> {
    let text = at.str();
    let Some(address) = parse_sloppy(text) else {
        errors.invalid(
            at,
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        );
        return None;
    };
    match parse_strict(text) {
        None => errors.invalid(at, "must not have leading 0s"),
        Some(address) if is_mapped(&address) => {
            errors.invalid(at, "must not be an IPv4-mapped IPv6 address");
        }
        Some(_) => {}
    }
    Some(address)
}

/// Checks that endpoints can have an address: it is neither unspecified, nor local to a node or link.
pub(crate) fn endpoint(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    // `Ip` has these predicates, but reads no mapped addresses. So it gets the canonical form.
    let parsed = parse_sloppy(at.str()).map(|a| canonical(&a));
    let Some(address) = parsed.and_then(|a| Ip::parse(&a).ok()) else {
        return errors.invalid(at, "must be a valid IP address");
    };
    if address.is_unspecified() {
        errors.invalid(at, format!("may not be unspecified ({})", at.str()));
    }
    let wrong = [
        (
            address.is_loopback(),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        ),
        (
            address.is_link_local_unicast(),
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        ),
        (
            address.is_link_local_multicast(),
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    ];
    for (_, why) in wrong.into_iter().filter(|(is_wrong, _)| *is_wrong) {
        errors.invalid(at, why);
    }
}

/// The warning about an address that is valid but not in canonical form.
pub(crate) fn warning(at: &Path<'_>, text: &str) -> Option<String> {
    let sloppy = parse_sloppy(text)?;
    let quoted = go::quote(text);
    match parse_strict(text) {
        None => Some(()),
        Some(address) if is_mapped(&address) => Some(()),
        // IPv4 addresses without leading zeros have only one notation.
        Some(IpAddr::V6(v6)) if v6.to_string() != text => {
            let canonical = go::quote(&v6.to_string());
            return Some(format!(
                "{at}: IPv6 address {quoted} should be in RFC 5952 canonical format ({canonical})"
            ));
        }
        Some(_) => None,
    }
    .map(|()| {
        let canonical = go::quote(&canonical(&sloppy));
        format!("{at}: non-standard IP address {quoted} is invalid: use {canonical}")
    })
}

/// An address with the length of a network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    /// The address.
    pub(crate) address: IpAddr,
    /// The number of bits that all addresses of the network share.
    pub(crate) prefix: u8,
}

impl Cidr {
    /// Reads a CIDR whose decimal numbers may have leading zeros.
    pub(crate) fn parse_sloppy(text: &str) -> Option<Cidr> {
        Cidr::parse(text, parse_sloppy)
    }

    fn parse_strict(text: &str) -> Option<Cidr> {
        let has_zeros = text
            .rsplit_once('/')
            .is_some_and(|(_, bits)| bits.len() > 1 && bits.starts_with('0'));
        Cidr::parse(text, parse_strict).filter(|_| !has_zeros)
    }

    fn parse(text: &str, address: fn(&str) -> Option<IpAddr>) -> Option<Cidr> {
        let (host, bits) = text.split_once('/')?;
        let address = address(host)?;
        // Rust's `parse` would also accept a plus sign.
        let is_number = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
        let prefix = bits.parse().ok().filter(|_| is_number)?;
        let max = if address.is_ipv4() { 32 } else { 128 };
        (prefix <= max).then_some(Cidr { address, prefix })
    }

    /// The network itself: the address with all other bits cleared.
    pub(crate) fn network(self) -> Cidr {
        let prefix = u32::from(self.prefix);
        let address = match self.address {
            IpAddr::V4(v4) => {
                // A prefix of 0 shifts all bits out, which `checked_shl` refuses.
                let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
                IpAddr::V4((u32::from(v4) & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
                IpAddr::V6((u128::from(v6) & mask).into())
            }
        };
        Cidr { address, ..self }
    }

    /// Returns whether an address is in the network.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && Cidr { address, ..self }.network() == self.network()
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", canonical(&self.address), self.prefix)
    }
}

/// Checks a CIDR in a field that is older than strict validation; `existing` lists the stored ones.
pub(crate) fn check_cidr_unless_stored(
    at: &Cursor<'_, '_>,
    existing: &BTreeSet<&str>,
    errors: &mut ErrorList,
) {
    if !existing.contains(at.str()) {
        check_cidr(at, errors);
    }
}

/// Checks a CIDR, and that it is in canonical form.
pub(crate) fn check_canonical_cidr(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let before = errors.total();
    if let Some(cidr) = check_cidr(at, errors).filter(|_| errors.total() == before) {
        let canonical = cidr.network().to_string();
        if canonical != at.str() {
            let canonical = go::quote(&canonical);
            errors.invalid(at, format!("must be in canonical form ({canonical})"));
        }
    }
}

/// Checks an address of an interface with the length of its prefix, in canonical form.
pub(crate) fn interface_address(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let Some(cidr) = Cidr::parse_sloppy(at.str()) else {
        let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return errors.invalid(at, why);
    };
    let canonical = cidr.to_string();
    if canonical != at.str() {
        let canonical = go::quote(&canonical);
        errors.invalid(at, format!("must be in canonical form ({canonical})"));
    }
}

fn check_cidr(at: &Cursor<'_, '_>, errors: &mut ErrorList) -> Option<Cidr> {
    let text = at.str();
    let Some(cidr) = Cidr::parse_sloppy(text) else {
        errors.invalid(
            at,
            "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        );
        return None;
    };
    match Cidr::parse_strict(text) {
        None => errors.invalid(at, "must not have leading 0s in IP or prefix length"),
        Some(cidr) if is_mapped(&cidr.address) => {
            errors.invalid(at, "must not have an IPv4-mapped IPv6 address");
        }
        Some(cidr) if cidr != cidr.network() => {
            errors.invalid(at, "must not have bits set beyond the prefix length");
        }
        Some(_) => {}
    }
    Some(cidr)
}

/// Adds the warnings about a CIDR that is valid but ambiguous or not in canonical form.
pub(crate) fn cidr_warnings(at: &Path<'_>, text: &str, warnings: &mut Vec<String>) {
    let Some(cidr) = Cidr::parse_sloppy(text) else {
        return;
    };
    let (quoted, network) = (go::quote(text), go::quote(&cidr.network().to_string()));
    let before = warnings.len();
    if cidr != cidr.network() {
        let single = Cidr {
            prefix: if cidr.address.is_ipv4() { 32 } else { 128 },
            ..cidr
        };
        let single = go::quote(&single.to_string());
        warnings.push(format!(
            "{at}: CIDR value {quoted} is ambiguous in this context (should be {network} or {single}?)"
        ));
    }
    match Cidr::parse_strict(text) {
        Some(strict) if !is_mapped(&strict.address) => {
            if strict.address.is_ipv6() && strict.to_string() != text && warnings.len() == before {
                let canonical = go::quote(&strict.to_string());
                warnings.push(format!(
                    "{at}: IPv6 CIDR value {quoted} should be in RFC 5952 canonical format ({canonical})"
                ));
            }
        }
        _ => warnings.push(format!(
            "{at}: non-standard CIDR value {quoted} is invalid: use {network}"
        )),
    }
}
