//! The named string formats of Kubernetes.

use crate::{names, timestamp, url::Url};

/// A named format. Formats with the same name are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedFormat {
    /// A DNS label of RFC 1123.
    Dns1123Label,
    /// A DNS subdomain of RFC 1123.
    Dns1123Subdomain,
    /// A DNS label of RFC 1035.
    Dns1035Label,
    /// A label key.
    QualifiedName,
    /// A prefix of a generated DNS label of RFC 1123.
    Dns1123LabelPrefix,
    /// A prefix of a generated DNS subdomain of RFC 1123.
    Dns1123SubdomainPrefix,
    /// A prefix of a generated DNS label of RFC 1035.
    Dns1035LabelPrefix,
    /// A label value.
    LabelValue,
    /// An absolute URL or path.
    Uri,
    /// A UUID, with optional dashes.
    Uuid,
    /// Base64.
    Byte,
    /// A date.
    Date,
    /// A date with a time.
    DateTime,
}

impl NamedFormat {
    /// All formats, by their names in CEL.
    pub const ALL: [(&'static str, Self); 13] = [
        ("dns1123Label", Self::Dns1123Label),
        ("dns1123Subdomain", Self::Dns1123Subdomain),
        ("dns1035Label", Self::Dns1035Label),
        ("qualifiedName", Self::QualifiedName),
        ("dns1123LabelPrefix", Self::Dns1123LabelPrefix),
        ("dns1123SubdomainPrefix", Self::Dns1123SubdomainPrefix),
        ("dns1035LabelPrefix", Self::Dns1035LabelPrefix),
        ("labelValue", Self::LabelValue),
        ("uri", Self::Uri),
        ("uuid", Self::Uuid),
        ("byte", Self::Byte),
        ("date", Self::Date),
        ("datetime", Self::DateTime),
    ];

    /// Finds a format by name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(n, _)| *n == name)
            .map(|(_, format)| format)
    }

    /// The length of the regular expression that the cost model assumes.
    pub fn regex_size(self) -> u64 {
        match self {
            Self::Dns1123Label | Self::Dns1035Label | Self::Dns1123LabelPrefix | Self::Dns1035LabelPrefix => {
                30
            }
            Self::Dns1123Subdomain | Self::Dns1123SubdomainPrefix | Self::QualifiedName => 60,
            Self::LabelValue => 40,
            Self::Uri => 1103,
            Self::Uuid => 70,
            Self::Byte => 84,
            Self::Date | Self::DateTime => 71,
        }
    }

    /// Returns the errors of a text; empty if it has the format.
    pub fn validate(self, text: &str) -> Vec<String> {
        let one = |valid: bool, message: &str| {
            if valid {
                Vec::new()
            } else {
                vec![message.to_owned()]
            }
        };
        match self {
            Self::Dns1123Label => names::dns1123_label(text),
            Self::Dns1123Subdomain => names::dns1123_subdomain(text),
            Self::Dns1035Label => names::dns1035_label(text),
            Self::Dns1123LabelPrefix => names::dns1123_label(&completed(text)),
            Self::Dns1123SubdomainPrefix => names::dns1123_subdomain(&completed(text)),
            Self::Dns1035LabelPrefix => names::dns1035_label(&completed(text)),
            Self::QualifiedName => names::label_key(text),
            Self::LabelValue => names::label_value(text),
            Self::Uri => Url::check(text).err().into_iter().collect(),
            Self::Uuid => one(is_uuid(text), "does not match the UUID format"),
            Self::Byte => one(is_base64(text), "invalid base64"),
            Self::Date => one(is_date(text), "invalid date"),
            Self::DateTime => one(is_date_time(text), "invalid datetime"),
        }
    }
}

/// Completes a prefix for validation. It may end with a dash, because a suffix will be appended.
fn completed(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            // UPSTREAM: the dash is replaced together with the character before it.
            let keep = rest
                .char_indices()
                .next_back()
                .map_or("", |(i, _)| rest.get(..i).unwrap_or(""));
            format!("{keep}a")
        }
        _ => prefix.to_owned(),
    }
}

/// Returns whether a text is a UUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12, any dash between them optional.
pub fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (i, n) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        match rest.split_at_checked(n) {
            Some((group, after)) if group.iter().all(u8::is_ascii_hexdigit) => rest = after,
            _ => return false,
        }
    }
    rest.is_empty()
}

/// Returns whether a text is padded Base64 in the standard alphabet. The empty text is not.
pub fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - data.len() <= 2
        && data
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

/// Returns whether a text is an RFC 3339 date.
pub fn is_date(text: &str) -> bool {
    timestamp::parse_date(text).is_ok()
}

/// Returns whether a text matches the OpenAPI pattern for RFC 3339 date-times: in any letter case, with any
/// character before the fraction, and with any offset.
pub fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    // Like kube-openapi's `strfmt`, ignores everything after a second `t`.
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    if text.len() < 4 || !is_date(date) {
        return false;
    }
    let Some((clock, rest)) = time.split_at_checked(8) else {
        return false;
    };
    let in_range = |part: Option<&str>, max: &str| {
        part.is_some_and(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_digit()) && p <= max)
    };
    let mut clock = clock.split(':');
    if !(in_range(clock.next(), "23") && in_range(clock.next(), "59") && in_range(clock.next(), "59"))
        || clock.next().is_some()
    {
        return false;
    }
    let is_offset = |s: &str| {
        s == "z"
            || matches!(s.as_bytes(), [b'+' | b'-', a, b, b':', c, d] if [a, b, c, d].iter().all(|x| x.is_ascii_digit()))
    };
    // The dot in the pattern matches any character but a line feed.
    let after_fraction = rest
        .strip_prefix(|c: char| c != '\n')
        .filter(|s| s.starts_with(|c: char| c.is_ascii_digit()))
        .map(|s| s.trim_start_matches(|c: char| c.is_ascii_digit()));
    is_offset(rest) || after_fraction.is_some_and(is_offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regex_sizes_match_the_patterns() {
        let uuid = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
        let date_time = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
        assert_eq!(NamedFormat::Uuid.regex_size(), uuid.len() as u64);
        assert_eq!(NamedFormat::DateTime.regex_size(), date_time.len() as u64);
    }

    #[test]
    fn names() {
        let valid = [
            ("dns1123Label", "a-1"),
            ("dns1123Subdomain", "a.b-c.1"),
            ("dns1035Label", "a1"),
            ("qualifiedName", "x.io/A_b"),
            ("dns1123LabelPrefix", "abc-"),
            ("dns1123SubdomainPrefix", "a.b-"),
            ("dns1035LabelPrefix", "a1-"),
            ("labelValue", ""),
            ("labelValue", "A.b_c-1"),
            ("uri", "https://x/y"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000"),
            ("uuid", "123E4567e89b12d3a456426614174000"),
            ("byte", "aGVsbG8="),
            ("date", "2020-02-29"),
            ("datetime", "2020-02-29t00:00:00.5z"),
            ("datetime", "2020-02-29T23:59:59+99:99"),
        ];
        for (name, text) in valid {
            assert_eq!(
                NamedFormat::by_name(name).unwrap().validate(text),
                Vec::<String>::new(),
                "{name} {text}"
            );
        }
        assert_eq!(NamedFormat::by_name("nope"), None);
    }
}
