//! `format`: the named forms that a server knows, each as strict and as lenient as there.

mod address;
mod checksum;
mod email;
mod text;

use crate::plan::Types;
use scantling_cel::data::{duration, timestamp, url::Url};
use scantling_value::Str;

/// A format that means something for its type; the others are ignored.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    /// As the schema writes it: errors show it so.
    name: Str,
    kind: FormatKind,
}

/// The formats that are checked.
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
}

impl Format {
    /// The format of that name for values of those types. Dashes do not count in the names of string formats.
    pub(crate) fn parse(name: &Str, types: Types) -> Option<Self> {
        let kind = match types {
            Types::INTEGER => match name.as_str() {
                "int32" => FormatKind::Int32,
                "int64" => FormatKind::Int64,
                _ => return None,
            },
            Types::NUMBER => match name.as_str() {
                "float" => FormatKind::Float,
                "double" => FormatKind::Double,
                _ => return None,
            },
            Types::STRING | Types::INT_OR_STRING => Self::for_strings(name)?,
            _ if types.is_empty() => Self::for_strings(name)?,
            _ => return None,
        };
        Some(Format {
            name: name.clone(),
            kind,
        })
    }

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
            FormatKind::Int32 | FormatKind::Int64 | FormatKind::Float | FormatKind::Double
        )
    }

    /// Whether a string has this form.
    pub(crate) fn matches(&self, s: &str) -> bool {
        match self.kind {
            FormatKind::Int32
            | FormatKind::Int64
            | FormatKind::Float
            | FormatKind::Double
            | FormatKind::Password => true,
            FormatKind::BsonObjectId => s.len() == 24 && text::all(s, |b| b.is_ascii_hexdigit()),
            FormatKind::Uri => Url::check(s).is_ok(),
            FormatKind::Email => email::is_address(s),
            FormatKind::Hostname => text::is_hostname(s),
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
