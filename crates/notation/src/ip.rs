//! IP addresses and networks in CIDR notation.
//!
//! Accepts only one notation of an address: no leading zeros, no zone, no embedded IPv4 address.

use scantling_value::go::quote;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The parsed parts of an address.
struct ParsedIp {
    address: IpAddr,
    zoned: bool,
}

/// A parse error: the message, and the unparsed rest of the text.
struct IpError<'a> {
    what: &'static str,
    at: &'a str,
}

impl IpError<'_> {
    fn message(&self, input: &str) -> String {
        let mut text = format!("ParseAddr({}): {}", quote(input), self.what);
        if !self.at.is_empty() {
            text.push_str(&format!(" (at {})", quote(self.at)));
        }
        text
    }
}

fn flaw<'a, T>(what: &'static str, at: &'a str) -> Result<T, IpError<'a>> {
    Err(IpError { what, at })
}

fn parse_any(text: &str) -> Result<ParsedIp, IpError<'_>> {
    // As in Go, the first of these characters decides the kind of the address.
    match text.bytes().find(|b| b".:%".contains(b)) {
        Some(b'.') => Ok(ParsedIp {
            address: parse_v4(text)?.into(),
            zoned: false,
        }),
        Some(b':') => parse_v6(text),
        Some(_) => flaw("missing IPv6 address", ""),
        None => flaw("unable to parse IP", ""),
    }
}

fn rest(text: &str, from: usize) -> &str {
    // Offsets are those of ASCII characters, so the slice never splits a character.
    text.get(from..).unwrap_or("")
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, IpError<'_>> {
    let mut octets = [0_u8; 4];
    let (mut n_dots, mut value, mut n_digits) = (0, 0_u16, 0);
    let mut previous = b'.';
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'0'..=b'9' => {
                if n_digits == 1 && value == 0 {
                    return flaw("IPv4 field has octet with leading zero", "");
                }
                value = value * 10 + u16::from(b - b'0');
                n_digits += 1;
                if value > 255 {
                    return flaw("IPv4 field has value >255", "");
                }
            }
            b'.' => {
                if previous == b'.' || i + 1 == text.len() {
                    return flaw("IPv4 field must have at least one digit", rest(text, i));
                }
                if n_dots == 3 {
                    return flaw("IPv4 address too long", "");
                }
                if let Some(octet) = octets.get_mut(n_dots) {
                    *octet = u8::try_from(value).unwrap_or(u8::MAX);
                }
                n_dots += 1;
                (value, n_digits) = (0, 0);
            }
            _ => return flaw("unexpected character", rest(text, i)),
        }
        previous = b;
    }
    if n_dots < 3 {
        return flaw("IPv4 address too short", "");
    }
    octets[3] = u8::try_from(value).unwrap_or(u8::MAX);
    Ok(octets.into())
}

fn parse_v6(text: &str) -> Result<ParsedIp, IpError<'_>> {
    let (mut s, zoned) = match text.split_once('%') {
        Some((_, "")) => return flaw("zone must be a non-empty string", ""),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let mut groups: Vec<u16> = Vec::with_capacity(8);
    // The number of groups before the `::`.
    let mut gap = None;
    if let Some(after) = s.strip_prefix("::") {
        gap = Some(0);
        s = after;
    }
    while groups.len() < 8 && !(s.is_empty() && gap == Some(groups.len())) {
        let n = s.bytes().take_while(u8::is_ascii_hexdigit).count();
        if n > 4 {
            return flaw("each group must have 4 or less digits", s);
        }
        if n == 0 {
            return flaw("each colon-separated field must have at least one digit", s);
        }
        let (digits, after) = s.split_at_checked(n).unwrap_or((s, ""));
        if after.starts_with('.') {
            if gap.is_none() && groups.len() != 6 {
                return flaw(
                    "embedded IPv4 address must replace the final 2 fields of the address",
                    s,
                );
            }
            if groups.len() > 6 {
                return flaw(
                    "too many hex fields to fit an embedded IPv4 at the end of the address",
                    s,
                );
            }
            let [a, b, c, d] = parse_v4(s)?.octets();
            groups.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
            s = "";
            break;
        }
        // Four hexadecimal digits always fit.
        groups.push(u16::from_str_radix(digits, 16).unwrap_or(0));
        s = after;
        if s.is_empty() {
            break;
        }
        let Some(after) = s.strip_prefix(':') else {
            return flaw("unexpected character, want colon", s);
        };
        if after.is_empty() {
            return flaw("colon must be followed by more characters", s);
        }
        s = after;
        if let Some(after) = s.strip_prefix(':') {
            if gap.is_some() {
                return flaw("multiple :: in address", s);
            }
            gap = Some(groups.len());
            s = after;
        }
    }
    if !s.is_empty() {
        return flaw("trailing garbage after address", s);
    }
    match gap {
        None if groups.len() < 8 => return flaw("address string too short", ""),
        Some(_) if groups.len() == 8 => return flaw("the :: must expand to at least one field of zeros", ""),
        Some(at) => {
            let missing = 8 - groups.len();
            groups.splice(at..at, std::iter::repeat_n(0, missing));
        }
        None => {}
    }
    let Ok(groups) = <[u16; 8]>::try_from(groups) else {
        return flaw("address string has the wrong length", "");
    };
    Ok(ParsedIp {
        address: Ipv6Addr::from(groups).into(),
        zoned,
    })
}

/// Checks that a text is an IPv6 address in any notation, as in the brackets of a URL's host. The error is
/// the message.
pub(super) fn check_literal(text: &str) -> Result<(), String> {
    match parse_any(text) {
        Ok(parsed) if parsed.address.is_ipv6() => Ok(()),
        Ok(_) => Err("invalid IP-literal".to_owned()),
        Err(flaw) => Err(format!("invalid host: {}", flaw.message(text))),
    }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// An IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip(IpAddr);

impl Ip {
    /// Parses an address; the error is the message.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed = parse_any(text).map_err(|flaw| {
            format!(
                "IP Address {} parse error during conversion from string: {}",
                quote(text),
                flaw.message(text)
            )
        })?;
        if parsed.zoned {
            return Err(format!(
                "IP address {} with zone value is not allowed",
                quote(text)
            ));
        }
        if is_mapped(parsed.address) {
            return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
        }
        Ok(Self(parsed.address))
    }

    /// The IP version: 4 or 6.
    pub fn family(self) -> i64 {
        if self.0.is_ipv4() { 4 } else { 6 }
    }

    /// The number of bytes of the address.
    pub fn n_bytes(self) -> u64 {
        if self.0.is_ipv4() { 4 } else { 16 }
    }

    /// Returns whether this is `0.0.0.0` or `::`.
    pub fn is_unspecified(self) -> bool {
        self.0.is_unspecified()
    }

    /// Returns whether this is in `127.0.0.0/8` or `::1`.
    pub fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }

    /// Returns whether this is in `224.0.0.0/24` or `ff02::/16` (with any flags).
    pub fn is_link_local_multicast(self) -> bool {
        match self.0 {
            IpAddr::V4(v4) => matches!(v4.octets(), [224, 0, 0, _]),
            IpAddr::V6(v6) => v6.segments().first().is_some_and(|s| s & 0xff0f == 0xff02),
        }
    }

    /// Returns whether this is in `169.254.0.0/16` or `fe80::/10`.
    pub fn is_link_local_unicast(self) -> bool {
        match self.0 {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        }
    }

    /// Returns whether this is neither unspecified, broadcast, loopback, multicast nor link-local. Private
    /// addresses are global in this sense.
    pub fn is_global_unicast(self) -> bool {
        !(self.0.is_unspecified()
            || self.0 == IpAddr::V4(Ipv4Addr::BROADCAST)
            || self.0.is_loopback()
            || self.0.is_multicast()
            || self.is_link_local_unicast())
    }

    /// The address as a number, left-aligned in 128 bits.
    fn bits(self) -> u128 {
        match self.0 {
            IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
            IpAddr::V6(v6) => v6.to_bits(),
        }
    }
}

/// The canonical form.
impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A network in CIDR notation. Bits beyond the prefix are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: Ip,
    prefix_length: u8,
}

impl Cidr {
    /// Parses a network; the error is the message.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fail = |what: &str| {
            Err(format!(
                "network address parse error during conversion from string: netip.ParsePrefix({}): {what}",
                quote(text)
            ))
        };
        let Some((address, bits)) = text.rsplit_once('/') else {
            return fail("no '/'");
        };
        let parsed = match parse_any(address) {
            Ok(parsed) => parsed,
            Err(flaw) => return fail(&flaw.message(address)),
        };
        if parsed.zoned {
            return fail("IPv6 zones cannot be present in a prefix");
        }
        // Rust would accept a plus sign and leading zeros, which Go rejects.
        let clean = bits.bytes().all(|b| b.is_ascii_digit()) && !(bits.len() > 1 && bits.starts_with('0'));
        let Some(length) = bits.parse::<i64>().ok().filter(|_| clean) else {
            return fail(&format!("bad bits after slash: {}", quote(bits)));
        };
        let longest = if parsed.address.is_ipv4() { 32 } else { 128 };
        let Some(prefix_length) = u8::try_from(length).ok().filter(|n| *n <= longest) else {
            return fail("prefix length out of range");
        };
        if is_mapped(parsed.address) {
            return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
        }
        Ok(Self {
            address: Ip(parsed.address),
            prefix_length,
        })
    }

    /// The address, including bits beyond the prefix.
    pub fn ip(self) -> Ip {
        self.address
    }

    /// The prefix length in bits.
    pub fn prefix_length(self) -> u8 {
        self.prefix_length
    }

    /// The network with all bits beyond the prefix cleared.
    pub fn masked(self) -> Self {
        let bits = self.address.bits() & mask(self.prefix_length);
        let address = match self.address.0 {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits >> 96).unwrap_or(0))),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        };
        Self {
            address: Ip(address),
            prefix_length: self.prefix_length,
        }
    }

    /// Returns whether an address is of the same family and in the network.
    pub fn contains_ip(self, ip: Ip) -> bool {
        self.address.family() == ip.family()
            && (self.address.bits() ^ ip.bits()) & mask(self.prefix_length) == 0
    }

    /// Returns whether another network is of the same family and contained in this one.
    pub fn contains_cidr(self, other: Self) -> bool {
        self.prefix_length <= other.prefix_length && self.contains_ip(other.address)
    }
}

fn mask(prefix_length: u8) -> u128 {
    // A shift by all 128 bits fails; its mask is empty.
    u128::MAX.checked_shl(128 - u32::from(prefix_length)).unwrap_or(0)
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let e = |text: &str, why: &str| {
            format!(
                "IP Address {} parse error during conversion from string: ParseAddr({}): {why}",
                quote(text),
                quote(text)
            )
        };
        let good = [
            ("1.2.3.4", "1.2.3.4"),
            ("::", "::"),
            ("::1.2.3.4", "::102:304"),
            ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("1:0:3:4:5:6:7:8", "1:0:3:4:5:6:7:8"),
            ("1::", "1::"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ];
        for (input, want) in good {
            assert_eq!(
                Ip::parse(input).map(|ip| ip.to_string()),
                Ok(want.to_owned()),
                "{input}"
            );
        }
        let bad = [
            ("", "unable to parse IP"),
            ("abc", "unable to parse IP"),
            ("%a", "missing IPv6 address"),
            ("1.2.3", "IPv4 address too short"),
            ("1.2.3.4.5", "IPv4 address too long"),
            ("1.2.3.04", "IPv4 field has octet with leading zero"),
            ("1.2.3.256", "IPv4 field has value >255"),
            ("1..3.4", "IPv4 field must have at least one digit (at \".3.4\")"),
            ("1.2.3.", "IPv4 field must have at least one digit (at \".\")"),
            ("1.2.3.4x", "unexpected character (at \"x\")"),
            (
                ":",
                "each colon-separated field must have at least one digit (at \":\")",
            ),
            (
                "12345::",
                "each group must have 4 or less digits (at \"12345::\")",
            ),
            ("1:", "colon must be followed by more characters (at \":\")"),
            ("1:2", "address string too short"),
            ("1::2::3", "multiple :: in address (at \":3\")"),
            ("1:2:3:4:5:6:7:8:9", "trailing garbage after address (at \"9\")"),
            (
                "1:2:3:4:5:6:7::8",
                "the :: must expand to at least one field of zeros",
            ),
            (
                "1:g",
                "each colon-separated field must have at least one digit (at \"g\")",
            ),
            ("1g:", "unexpected character, want colon (at \"g:\")"),
            ("::1%", "zone must be a non-empty string"),
            (
                "1:1.2.3.4",
                "embedded IPv4 address must replace the final 2 fields of the address (at \"1.2.3.4\")",
            ),
        ];
        for (input, why) in bad {
            assert_eq!(Ip::parse(input), Err(e(input, why)), "{input}");
        }
        assert_eq!(
            Ip::parse("fe80::1%eth0"),
            Err("IP address \"fe80::1%eth0\" with zone value is not allowed".into())
        );
        assert_eq!(
            Ip::parse("::ffff:1.2.3.4"),
            Err("IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed".into())
        );
    }

    #[test]
    fn kinds_of_addresses() {
        let kinds = |text: &str| {
            let ip = Ip::parse(text).unwrap();
            [
                (ip.is_unspecified(), 'u'),
                (ip.is_loopback(), 'l'),
                (ip.is_link_local_multicast(), 'm'),
                (ip.is_link_local_unicast(), 's'),
                (ip.is_global_unicast(), 'g'),
            ]
            .into_iter()
            .filter_map(|(is, name)| is.then_some(name))
            .collect::<String>()
        };
        let cases = [
            ("0.0.0.0", "u"),
            ("::", "u"),
            ("127.9.0.1", "l"),
            ("::1", "l"),
            ("224.0.0.9", "m"),
            ("ff12::1", "m"),
            ("169.254.1.1", "s"),
            ("febf::1", "s"),
            ("10.0.0.1", "g"),
            ("fd00::1", "g"),
            ("255.255.255.255", ""),
            ("224.0.1.1", ""),
        ];
        for (input, want) in cases {
            assert_eq!(kinds(input), want, "{input}");
        }
    }

    #[test]
    fn networks() {
        let cidr = |text| Cidr::parse(text).unwrap();
        assert_eq!(cidr("10.1.2.3/8").masked().to_string(), "10.0.0.0/8");
        assert_eq!(cidr("2001:db8::1/32").masked().to_string(), "2001:db8::/32");
        assert_eq!(cidr("1.2.3.4/0").masked().to_string(), "0.0.0.0/0");
        assert_eq!(cidr("1.2.3.4/32").masked().to_string(), "1.2.3.4/32");
        assert!(cidr("10.0.0.0/8").contains_ip(Ip::parse("10.255.0.1").unwrap()));
        assert!(!cidr("0.0.0.0/0").contains_ip(Ip::parse("::1").unwrap()));
        assert!(cidr("10.1.0.0/8").contains_cidr(cidr("10.2.0.0/16")));
        assert!(!cidr("10.0.0.0/16").contains_cidr(cidr("10.0.0.0/8")));
        let e = "network address parse error during conversion from string: netip.ParsePrefix";
        let bad = [
            ("10.0.0.0", "no '/'"),
            ("x/8", "ParseAddr(\"x\"): unable to parse IP"),
            ("1.2.3.4/33", "prefix length out of range"),
            ("1.2.3.4/08", "bad bits after slash: \"08\""),
            ("1.2.3.4/", "bad bits after slash: \"\""),
            ("1.2.3.4/+1", "bad bits after slash: \"+1\""),
            ("fe80::1%a/64", "IPv6 zones cannot be present in a prefix"),
        ];
        for (input, why) in bad {
            assert_eq!(
                Cidr::parse(input),
                Err(format!("{e}({}): {why}", quote(input))),
                "{input}"
            );
        }
    }
}
