//! Semantic versions, with the limits and messages of the Go library that Kubernetes uses: numbers have 64
//! bits, and build metadata does not affect the order.

use scantling_value::go::{parse_integer, quote};
use std::cmp::Ordering;

/// A semantic version.
#[derive(Clone, Debug)]
pub struct Semver {
    /// The major version.
    pub major: u64,
    /// The minor version.
    pub minor: u64,
    /// The patch version.
    pub patch: u64,
    prerelease: Box<[Identifier]>,
}

/// A dot-separated identifier of a pre-release. Numbers sort before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(Box<str>),
}

/// The accepted syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SemverSyntax {
    /// Exactly `major.minor.patch`.
    Strict,
    /// Also accepts a leading `v`, leading zeros and missing parts.
    Normalizing,
}

impl Semver {
    /// Parses a version; the error is the message.
    pub fn parse(text: &str, reading: SemverSyntax) -> Result<Self, String> {
        match reading {
            SemverSyntax::Strict => Self::strict(text),
            SemverSyntax::Normalizing => Self::strict(&normalize(text)?),
        }
    }

    fn strict(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let major = number("major", "Major", major)?;
        let minor = number("minor", "Minor", minor)?;
        // Build metadata may contain dashes, so it is split off before the pre-release.
        let (rest, build) = split_off(rest, '+');
        let (patch, prerelease) = split_off(rest, '-');
        let patch = number("patch", "Patch", patch)?;
        let prerelease = prerelease.map_or(Ok(Vec::new()), |p| p.split('.').map(identifier).collect())?;
        for part in build.iter().flat_map(|b| b.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !part.chars().all(is_word) {
                return Err(format!(
                    "Invalid character(s) found in build meta data {}",
                    quote(part)
                ));
            }
        }
        Ok(Self {
            major,
            minor,
            patch,
            prerelease: prerelease.into(),
        })
    }
}

fn normalize(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|p| p.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    let zero = if rest.starts_with(|c: char| c.is_ascii_digit()) {
        ""
    } else {
        "0"
    };
    format!("{zero}{rest}")
}

fn split_off(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}

fn number(name: &str, title: &str, text: &str) -> Result<u64, String> {
    if !text.chars().all(|c| c.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {name} number {}",
            quote(text)
        ));
    }
    if has_leading_zero(text) {
        return Err(format!(
            "{title} number must not contain leading zeroes {}",
            quote(text)
        ));
    }
    parse_integer("ParseUint", text)
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.chars().all(|c| c.is_ascii_digit()) {
        if has_leading_zero(text) {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                quote(text)
            ));
        }
        return parse_integer("ParseUint", text).map(Identifier::Number);
    }
    if text.chars().all(is_word) {
        return Ok(Identifier::Word(text.into()));
    }
    Err(format!(
        "Invalid character(s) found in prerelease {}",
        quote(text)
    ))
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Semver {}
impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            // A version sorts after its pre-releases.
            .then_with(|| self.prerelease.is_empty().cmp(&other.prerelease.is_empty()))
            .then_with(|| self.prerelease.cmp(&other.prerelease))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(text: &str) -> String {
        match Semver::parse(text, SemverSyntax::Strict) {
            Ok(v) => format!("{}.{}.{}", v.major, v.minor, v.patch),
            Err(e) => e,
        }
    }

    #[test]
    fn strict_syntax() {
        let cases = [
            ("1.2.3", "1.2.3"),
            ("1.2.3-alpha.1+build.01", "1.2.3"),
            ("18446744073709551615.0.0", "18446744073709551615.0.0"),
            ("", "Version string empty"),
            ("1.2", "No Major.Minor.Patch elements found"),
            ("v1.2.3", r#"Invalid character(s) found in major number "v1""#),
            ("01.2.3", r#"Major number must not contain leading zeroes "01""#),
            ("1..3", r#"strconv.ParseUint: parsing "": invalid syntax"#),
            (
                "1.18446744073709551616.3",
                r#"strconv.ParseUint: parsing "18446744073709551616": value out of range"#,
            ),
            ("1.2.3.4", r#"Invalid character(s) found in patch number "3.4""#),
            ("1.2.3-", "Prerelease is empty"),
            (
                "1.2.3-01",
                r#"Numeric PreRelease version must not contain leading zeroes "01""#,
            ),
            ("1.2.3-a_b", r#"Invalid character(s) found in prerelease "a_b""#),
            ("1.2.3+", "Build meta data is empty"),
            (
                "1.2.3+a_b",
                r#"Invalid character(s) found in build meta data "a_b""#,
            ),
        ];
        for (input, want) in cases {
            assert_eq!(strict(input), want, "{input}");
        }
    }

    #[test]
    fn normalizing_syntax() {
        let same = [
            ("v1", "1.0.0"),
            ("01.02", "1.2.0"),
            ("v1.00.03-rc.1", "1.0.3-rc.1"),
            ("0.0.0", "0.0.0"),
        ];
        for (input, want) in same {
            let want = Semver::parse(want, SemverSyntax::Strict).unwrap();
            assert_eq!(
                Semver::parse(input, SemverSyntax::Normalizing),
                Ok(want),
                "{input}"
            );
        }
        assert_eq!(
            Semver::parse("1.2-rc", SemverSyntax::Normalizing),
            Err("short version cannot contain PreRelease/Build meta data".to_owned())
        );
    }

    #[test]
    fn order() {
        let ascending = [
            "1.0.0-1",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "2.0.0",
        ];
        for pair in ascending.windows(2) {
            let [a, b] = [0, 1].map(|i| Semver::parse(pair[i], SemverSyntax::Strict).unwrap());
            assert!(a < b, "{pair:?}");
        }
        assert_eq!(
            Semver::parse("1.0.0+a", SemverSyntax::Strict),
            Semver::parse("1.0.0+b", SemverSyntax::Strict)
        );
    }
}
