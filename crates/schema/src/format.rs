//! `format`: the named string formats that kube-apiserver validates, equally strict or lenient.

mod address;
mod checksum;
mod email;
mod text;

use crate::plan::{PlanPurpose, Types};
use scantling_notation::{duration, timestamp, url::Url};
use scantling_value::Str;

/// A format that applies to its type; other formats are ignored.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    /// The name as in the schema, for errors.
    name: Str,
    kind: FormatKind,
}

/// The validated formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormatKind {
    Int32,
    Int64,
    Float,
    Double,
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
    /// No effect except in type checks.
    Other,
}

impl Format {
    /// Finds the format with a name for values of the given types. Dashes in names of string formats are
    /// ignored.
    pub(crate) fn parse(name: &Str, types: Types, purpose: PlanPurpose) -> Option<Self> {
        let kind = match (Self::supported(name, types), purpose) {
            (Some(kind), _) => kind,
            (None, PlanPurpose::Defaults) if !name.is_empty() => {
                Self::for_strings(name).unwrap_or(FormatKind::Other)
            }
            (None, _) => return None,
        };
        Some(Format {
            name: name.clone(),
            kind,
        })
    }

    fn supported(name: &str, types: Types) -> Option<FormatKind> {
        Some(match types {
            Types::INTEGER => match name {
                "int32" => FormatKind::Int32,
                "int64" => FormatKind::Int64,
                _ => return None,
            },
            Types::NUMBER => match name {
                "float" => FormatKind::Float,
                "double" => FormatKind::Double,
                _ => return None,
            },
            Types::STRING | Types::INT_OR_STRING => Self::for_strings(name)?,
            _ if types.is_empty() => Self::for_strings(name)?,
            _ => return None,
        })
    }

    /// The formats of strings that kube-apiserver validates. Dashes do not count: `date-time` is `datetime`.
    fn for_strings(name: &str) -> Option<FormatKind> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => FormatKind::BsonObjectId,
            "uri" => FormatKind::Uri,
            "email" => FormatKind::Email,
            "hostname" => FormatKind::Hostname,
            "ipv4" => FormatKind::Ipv4,
            "ipv6" => FormatKind::Ipv6,
            "cidr" => FormatKind::Cidr,
            "mac" => FormatKind::Mac,
            "uuid" => FormatKind::Uuid,
            "uuid3" => FormatKind::Uuid3,
            "uuid4" => FormatKind::Uuid4,
            "uuid5" => FormatKind::Uuid5,
            "isbn" => FormatKind::Isbn,
            "isbn10" => FormatKind::Isbn10,
            "isbn13" => FormatKind::Isbn13,
            "creditcard" => FormatKind::CreditCard,
            "ssn" => FormatKind::Ssn,
            "hexcolor" => FormatKind::HexColor,
            "rgbcolor" => FormatKind::RgbColor,
            "byte" => FormatKind::Byte,
            "password" => FormatKind::Password,
            "date" => FormatKind::Date,
            "duration" => FormatKind::Duration,
            "datetime" => FormatKind::DateTime,
            "k8sshortname" => FormatKind::ShortName,
            "k8slongname" => FormatKind::LongName,
            _ => return None,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn kind(&self) -> FormatKind {
        self.kind
    }

    pub(crate) fn is_for_strings(&self) -> bool {
        !matches!(
            self.kind,
            FormatKind::Int32
                | FormatKind::Int64
                | FormatKind::Float
                | FormatKind::Double
                | FormatKind::Other
        )
    }

    /// Returns whether a string has this format.
    pub(crate) fn matches(&self, s: &str) -> bool {
        match self.kind {
            FormatKind::Int32
            | FormatKind::Int64
            | FormatKind::Float
            | FormatKind::Double
            | FormatKind::Other
            | FormatKind::Password => true,
            FormatKind::BsonObjectId => s.len() == 24 && text::all(s, |b| b.is_ascii_hexdigit()),
            FormatKind::Uri => Url::check(s).is_ok(),
            FormatKind::Email => email::is_address(s),
            FormatKind::Hostname => text::is_hostname(s),
            // kube-apiserver tolerates leading zeros in IPv4 addresses, as Go did before 1.17.
            FormatKind::Ipv4 => address::is_lenient_ip(s) && s.contains('.'),
            FormatKind::Ipv6 => address::is_ip(s) && s.contains(':'),
            FormatKind::Cidr => address::is_lenient_cidr(s),
            FormatKind::Mac => address::is_mac(s),
            FormatKind::Uuid => text::is_uuid(s, None),
            FormatKind::Uuid3 => text::is_uuid(s, Some(b'3')),
            FormatKind::Uuid4 => text::is_uuid(s, Some(b'4')),
            FormatKind::Uuid5 => text::is_uuid(s, Some(b'5')),
            FormatKind::Isbn => checksum::is_isbn10(s) || checksum::is_isbn13(s),
            FormatKind::Isbn10 => checksum::is_isbn10(s),
            FormatKind::Isbn13 => checksum::is_isbn13(s),
            FormatKind::CreditCard => checksum::is_credit_card(s),
            FormatKind::Ssn => text::is_ssn(s),
            FormatKind::HexColor => text::is_hex_color(s),
            FormatKind::RgbColor => text::is_rgb_color(s),
            FormatKind::Byte => text::is_base64(s),
            FormatKind::Date => timestamp::parse_date(s).is_ok(),
            FormatKind::Duration => duration::parse_format(s).is_ok(),
            FormatKind::DateTime => text::is_date_time(s),
            FormatKind::ShortName => s.len() <= 63 && text::is_label(s),
            FormatKind::LongName => s.len() <= 253 && s.split('.').all(text::is_label),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected verdicts were produced by Kubernetes' own code.
    #[test]
    fn formats_accept_and_refuse() {
        for (format, right, wrong) in [
            (
                "bsonobjectid",
                &["507f1f77bcf86cd799439011"][..],
                &["507f1f77", "507f1f77bcf86cd79943901z"][..],
            ),
            (
                "email",
                &["a@b", "A <a@b.c>", "\"a b\"@c.d", "a@[127.0.0.1]", "g: a@b;"],
                &["", "a", "a@", "a..b@c", "<a@b", "a@b c"],
            ),
            (
                "hostname",
                &["a", "a-", "a-b", "a.bc", "x-y-z.com", "é.com"],
                &["", "-a", "node-1-2", "a..b", "a.c1", "a_b"],
            ),
            (
                "ipv4",
                &["1.2.3.4", "01.02.03.004"],
                &["1.2.3", "1.2.3.256", "::1"],
            ),
            (
                "ipv6",
                &["::1", "::ffff:1.2.3.4"],
                &["1.2.3.4", "1::2::3", "fe80::1%eth0"],
            ),
            (
                "cidr",
                &["10.0.0.0/8", "010.0.0.0/08", "::/0"],
                &["10.0.0.0", "10.0.0.0/33", "::/129"],
            ),
            (
                "mac",
                &["00:00:5e:00:53:01", "0000.5e00.5301", "00-00-5e-00-53-01"],
                &["00:00:5e:00:53", "00:00-5e:00:53:01"],
            ),
            (
                "uuid",
                &[
                    "0b1c2d3e-4f50-4172-8394-a5b6c7d8e9fa",
                    "0B1C2D3E4F5041728394A5B6C7D8E9FA",
                ],
                &["0b1c2d3e", "0b1c2d3e-4f50-4172-8394-a5b6c7d8e9fag"],
            ),
            (
                "uuid3",
                &["0b1c2d3e-4f50-3172-8394-a5b6c7d8e9fa"],
                &["0b1c2d3e-4f50-4172-8394-a5b6c7d8e9fa"],
            ),
            (
                "uuid4",
                &["0b1c2d3e-4f50-4172-8394-a5b6c7d8e9fa"],
                &["0b1c2d3e-4f50-4172-0394-a5b6c7d8e9fa"],
            ),
            ("isbn", &["0321751043", "978-0321751041"], &["123", "0321751044"]),
            ("isbn10", &["080442957X", "0-8044-2957-X"], &["978-0321751041"]),
            (
                "creditcard",
                &["4111 1111 1111 1111"],
                &["4111 1111 1111 1112", "1234"],
            ),
            (
                "ssn",
                &["111-11-1111", "111 11 1111"],
                &["12-345-6789", "111111111"],
            ),
            ("hexcolor", &["#fff", "FFFFFF"], &["#ffff", "#ggg"]),
            (
                "rgbcolor",
                &["rgb(0, 128,255)", "rgb( 1 , 2 , 3 )"],
                &["rgb(256,0,0)", "rgb(01,0,0)", "rgb(1,2)"],
            ),
            ("byte", &["aGk=", "aGkh"], &["", "aGk", "a==="]),
            ("date", &["2024-02-29"], &["2023-02-29", "2024-2-9", ""]),
            (
                "date-time",
                &["2024-02-29T12:34:56Z", "2024-02-29t12:34:56.5+01:00"],
                &["2024-02-29T24:00:00Z", "2024-02-29", "2024-02-29T12:34:60Z"],
            ),
            ("duration", &["10s", "1 week", "2 days 3 hours"], &["", "abc"]),
            ("uri", &["http://a/b", "/a"], &["", "a b", "a"]),
            ("k8s-short-name", &["a-b", "1"], &["", "-a", "A", "a.b"]),
            ("k8s-long-name", &["a.b-c"], &["a..b", ".a"]),
            ("password", &["", "x"], &[]),
        ] {
            let known = Format::parse(&format.into(), Types::STRING, PlanPurpose::Values).unwrap();
            for text in right {
                assert!(known.matches(text), "{text:?} is a {format}");
            }
            for text in wrong {
                assert!(!known.matches(text), "{text:?} is no {format}");
            }
        }
        assert!(Format::parse(&"int32".into(), Types::STRING, PlanPurpose::Values).is_none());
        assert!(Format::parse(&"Date".into(), Types::STRING, PlanPurpose::Values).is_none());
        assert!(Format::parse(&"date".into(), Types::OBJECT, PlanPurpose::Values).is_none());
        assert!(Format::parse(&"da-te".into(), Types::default(), PlanPurpose::Values).is_some());
    }
}
