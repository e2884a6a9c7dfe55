//! Timestamps as text, and their civil time in a time zone.

use jiff::tz::TimeZoneDatabase;
use scantling_value::go;
use std::fmt::Write;
use std::sync::LazyLock;

/// A point in time with the offset it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds after that, below 1 000 000 000.
    pub nanos: u32,
    /// The offset from UTC in seconds.
    pub offset: i32,
}

/// An element of a layout, and its reference text in Go layouts.
#[derive(Clone, Copy)]
enum LayoutElement {
    Literal(u8),
    Year,
    Month,
    Day,
    Hour,
    Minute,
    /// Seconds with an optional fraction.
    Second,
    /// Seconds without a fraction.
    WholeSecond,
    /// A fraction of six digits.
    Micros,
    Zone,
}

impl LayoutElement {
    fn sample(self) -> &'static str {
        match self {
            Self::Literal(b'-') => "-",
            Self::Literal(b':') => ":",
            Self::Literal(_) => "T",
            Self::Year => "2006",
            Self::Month => "01",
            Self::Day => "02",
            Self::Hour => "15",
            Self::Minute => "04",
            Self::Second | Self::WholeSecond => "05",
            Self::Micros => ".000000",
            Self::Zone => "Z07:00",
        }
    }
}

const DATE: &[LayoutElement] = &[
    LayoutElement::Year,
    LayoutElement::Literal(b'-'),
    LayoutElement::Month,
    LayoutElement::Literal(b'-'),
    LayoutElement::Day,
];
const TIME: &[LayoutElement] = &[
    LayoutElement::Literal(b'T'),
    LayoutElement::Hour,
    LayoutElement::Literal(b':'),
    LayoutElement::Minute,
    LayoutElement::Literal(b':'),
    LayoutElement::Second,
];

/// Parses an RFC 3339 timestamp.
///
/// Like Go's parser, it also accepts an hour of one digit, a comma before the fraction, and offsets up to 24
/// hours and 60 minutes.
pub fn parse(text: &str) -> Option<Moment> {
    parse_rfc3339(text).ok()
}

/// Parses an RFC 3339 timestamp as [`parse`] does; the error is the message.
pub fn parse_rfc3339(text: &str) -> Result<Moment, String> {
    LayoutParser::new(text).read(&[DATE, TIME, &[LayoutElement::Zone]])
}

/// Parses an RFC 3339 timestamp with exactly six fractional digits; the error is the message.
pub fn parse_micro(text: &str) -> Result<Moment, String> {
    let (_, minutes) = TIME.split_last().unwrap_or((&LayoutElement::Second, &[]));
    let seconds = &[
        LayoutElement::WholeSecond,
        LayoutElement::Micros,
        LayoutElement::Zone,
    ];
    LayoutParser::new(text).read(&[DATE, minutes, seconds])
}

/// Parses a value of the OpenAPI format `date`; the error is the message.
pub fn parse_date(text: &str) -> Result<Moment, String> {
    LayoutParser::new(text).read(&[DATE])
}

/// Parses a value of the OpenAPI format `date-time`: RFC 3339 with or without an offset; the empty text is
/// the epoch. The error is the message.
pub fn parse_date_time(text: &str) -> Result<Moment, String> {
    if text.is_empty() {
        return Ok(Moment {
            seconds: 0,
            nanos: 0,
            offset: 0,
        });
    }
    parse(text).map_or_else(|| LayoutParser::new(text).read(&[DATE, TIME]), Ok)
}

/// The reason why a text does not match its layout.
enum ParseStop {
    /// The text does not have the syntax of the element.
    Form,
    /// The syntax is right, but the value does not exist (a 13th month).
    Range(&'static str),
}

struct LayoutParser<'a> {
    text: &'a [u8],
    rest: &'a [u8],
    date: (i64, i64, i64),
    time: (i64, i64, i64),
    nanos: u32,
    offset: i32,
}

impl<'a> LayoutParser<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.as_bytes();
        Self {
            text,
            rest: text,
            date: (0, 1, 1),
            time: (0, 0, 0),
            nanos: 0,
            offset: 0,
        }
    }

    fn read(mut self, layout: &[&[LayoutElement]]) -> Result<Moment, String> {
        let text = self.text;
        let elements = || layout.iter().flat_map(|part| part.iter().copied());
        let fail = |why: &str| format!("parsing time {}{why}", quote(text));
        for element in elements() {
            let at = self.rest;
            match self.element(element) {
                Ok(()) => {}
                Err(ParseStop::Range(what)) => return Err(fail(&format!(": {what} out of range"))),
                Err(ParseStop::Form) => {
                    let layout: String = elements().map(LayoutElement::sample).collect();
                    return Err(fail(&format!(
                        " as {}: cannot parse {} as {}",
                        quote(layout.as_bytes()),
                        quote(at),
                        quote(element.sample().as_bytes())
                    )));
                }
            }
        }
        if !self.rest.is_empty() {
            return Err(fail(&format!(": extra text: {}", quote(self.rest))));
        }
        let (year, month, day) = self.date;
        // Go checks the day against its month last, so errors of the syntax take precedence.
        if day < 1 || day > days_in(year, month) {
            return Err(fail(": day out of range"));
        }
        let (hour, minute, second) = self.time;
        let seconds = days_before(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
        Ok(Moment {
            seconds: seconds - i64::from(self.offset),
            nanos: self.nanos,
            offset: self.offset,
        })
    }

    fn element(&mut self, element: LayoutElement) -> Result<(), ParseStop> {
        match element {
            LayoutElement::Literal(byte) => match self.rest.split_first() {
                Some((first, rest)) if *first == byte => self.rest = rest,
                _ => return Err(ParseStop::Form),
            },
            LayoutElement::Year => {
                let (digits, rest) = self.rest.split_first_chunk::<4>().ok_or(ParseStop::Form)?;
                self.date.0 = number(digits).ok_or(ParseStop::Form)?;
                self.rest = rest;
            }
            LayoutElement::Month => self.date.1 = self.two_digits(1..=12, "month")?,
            // The upper bound depends on the month and is checked at the end.
            LayoutElement::Day => self.date.2 = self.two_digits(0..=99, "day")?,
            LayoutElement::Hour => {
                // The hour is the only number that may have a single digit.
                if let [digit, rest @ ..] = self.rest
                    && digit.is_ascii_digit()
                    && !rest.first().is_some_and(u8::is_ascii_digit)
                {
                    self.time.0 = i64::from(digit - b'0');
                    self.rest = rest;
                } else {
                    self.time.0 = self.two_digits(0..=23, "hour")?;
                }
            }
            LayoutElement::Minute => self.time.1 = self.two_digits(0..=59, "minute")?,
            LayoutElement::Second => {
                self.time.2 = self.two_digits(0..=59, "second")?;
                self.fraction();
            }
            LayoutElement::WholeSecond => self.time.2 = self.two_digits(0..=59, "second")?,
            LayoutElement::Micros => {
                let [b'.' | b',', rest @ ..] = self.rest else {
                    return Err(ParseStop::Form);
                };
                let (digits, rest) = rest.split_first_chunk::<6>().ok_or(ParseStop::Form)?;
                let micros = number(digits).and_then(|n| u32::try_from(n).ok());
                self.nanos = micros.ok_or(ParseStop::Form)? * 1_000;
                self.rest = rest;
            }
            LayoutElement::Zone => self.zone()?,
        }
        Ok(())
    }

    fn two_digits(
        &mut self,
        range: std::ops::RangeInclusive<i64>,
        what: &'static str,
    ) -> Result<i64, ParseStop> {
        let (digits, rest) = self.rest.split_first_chunk::<2>().ok_or(ParseStop::Form)?;
        let value = number(digits).ok_or(ParseStop::Form)?;
        self.rest = rest;
        if range.contains(&value) {
            Ok(value)
        } else {
            Err(ParseStop::Range(what))
        }
    }

    /// Parses a fraction of a second. Only the first nine digits count.
    fn fraction(&mut self) {
        let [b'.' | b',', digits @ ..] = self.rest else {
            return;
        };
        let n = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        let Some((digits, rest)) = digits.split_at_checked(n).filter(|_| n > 0) else {
            return;
        };
        self.nanos = (0..9).fold(0, |nanos, i| {
            nanos * 10 + digits.get(i).map_or(0, |b| u32::from(b - b'0'))
        });
        self.rest = rest;
    }

    fn zone(&mut self) -> Result<(), ParseStop> {
        if let Some(rest) = self.rest.strip_prefix(b"Z") {
            self.rest = rest;
            return Ok(());
        }
        let (&[sign, h1, h2, b':', m1, m2], rest) =
            self.rest.split_first_chunk::<6>().ok_or(ParseStop::Form)?
        else {
            return Err(ParseStop::Form);
        };
        let hours = number(&[h1, h2]).ok_or(ParseStop::Form)?;
        let minutes = number(&[m1, m2]).ok_or(ParseStop::Form)?;
        self.rest = rest;
        // Go accepts 24 hours and 60 minutes, because some programs write such offsets.
        if hours > 24 {
            return Err(ParseStop::Range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(ParseStop::Range("time zone offset minute"));
        }
        let offset = i32::try_from((hours * 60 + minutes) * 60).map_err(|_| ParseStop::Form)?;
        self.offset = match sign {
            b'+' => offset,
            b'-' => -offset,
            _ => return Err(ParseStop::Form),
        };
        Ok(())
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits
        .iter()
        .try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
}

/// Quotes a value as Go's time errors do: every non-ASCII byte is escaped.
fn quote(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for &b in bytes {
        match b {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(b));
            }
            // Unlike `%q`, does not escape DEL.
            b' '..=0x7f => out.push(char::from(b)),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\x{b:02x}");
            }
        }
    }
    out.push('"');
    out
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The number of days from the epoch to a Gregorian date, computed with years that begin in March.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The civil time of a point in time at an offset from UTC. All fields are zero-based, except the year and
/// the day of the month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilTime {
    /// The year.
    pub year: i64,
    /// The month, January is 0.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
    /// The day of the year.
    pub day_of_year: i64,
    /// The day of the week, Sunday is 0.
    pub day_of_week: i64,
    /// The hour.
    pub hour: i64,
    /// The minute.
    pub minute: i64,
    /// The second.
    pub second: i64,
}

impl CivilTime {
    /// Computes the civil time of a point in time.
    pub fn at(seconds: i64, offset: i32) -> Self {
        let local = seconds.saturating_add(i64::from(offset));
        let (days, second_of_day) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        // Days since 0000-03-01: in years that begin in March, the leap day is the last day.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * of_year + 2) / 153;
        let month = (march_month + 2) % 12;
        let year = year_of_era + era * 400 + i64::from(month < 2);
        Self {
            year,
            month,
            day: of_year - (153 * march_month + 2) / 5 + 1,
            day_of_year: days - days_before(year, 1, 1),
            day_of_week: (days + 4).rem_euclid(7),
            hour: second_of_day / 3_600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
        }
    }
}

/// Formats a timestamp by RFC 3339, with as many fractional digits as needed.
pub fn format(moment: Moment) -> String {
    let (date, time) = date_and_time(moment);
    if moment.offset == 0 {
        return format!("{date}T{time}Z");
    }
    let (sign, hours, minutes) = offset_parts(moment);
    format!("{date}T{time}{sign}{hours:02}:{minutes:02}")
}

/// Formats a timestamp in UTC with exactly six fractional digits.
pub fn format_micro(moment: Moment) -> String {
    let whole = format(Moment {
        nanos: 0,
        offset: 0,
        ..moment
    });
    format!("{}.{:06}Z", whole.trim_end_matches('Z'), moment.nanos / 1_000)
}

/// Formats a timestamp as Go messages do: `2024-02-29 01:02:03.5 +0000 UTC`. A zone without a name shows its
/// offset twice.
pub fn with_zone(moment: Moment) -> String {
    let (date, time) = date_and_time(moment);
    let (sign, hours, minutes) = offset_parts(moment);
    let offset = format!("{sign}{hours:02}{minutes:02}");
    let zone = if moment.offset == 0 { "UTC" } else { &offset };
    format!("{date} {time} {offset} {zone}")
}

fn date_and_time(moment: Moment) -> (String, String) {
    let f = CivilTime::at(moment.seconds, moment.offset);
    let date = format!("{:04}-{:02}-{:02}", f.year, f.month + 1, f.day);
    let mut time = format!("{:02}:{:02}:{:02}", f.hour, f.minute, f.second);
    if moment.nanos != 0 {
        let digits = format!(".{:09}", moment.nanos);
        time.push_str(digits.trim_end_matches('0'));
    }
    (date, time)
}

fn offset_parts(moment: Moment) -> (char, u32, u32) {
    let sign = if moment.offset < 0 { '-' } else { '+' };
    let minutes = moment.offset.unsigned_abs() / 60;
    (sign, minutes / 60, minutes % 60)
}

/// Returns the UTC offset in seconds of a time zone at a point in time. The zone is a name (`Europe/Paris`)
/// or hours and minutes (`-07:30`). The error is the message.
pub fn offset_in(zone: &str, seconds: i64) -> Result<i32, String> {
    static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    if let Some((hours, minutes)) = zone.split_once(':') {
        let hours: i64 = go::parse_integer("Atoi", hours)?;
        let minutes: i64 = go::parse_integer("Atoi", minutes)?;
        if !(0..=59).contains(&minutes) {
            return Err(format!("timezone offset minutes out of range [0, 59]: {zone}"));
        }
        let minutes = if zone.starts_with('-') { -minutes } else { minutes };
        let seconds = hours.saturating_mul(3_600).saturating_add(minutes * 60);
        return Ok(i32::try_from(seconds).unwrap_or(if seconds < 0 { i32::MIN } else { i32::MAX }));
    }
    if matches!(zone, "" | "UTC" | "Local") {
        return Ok(0);
    }
    // Go rejects names that could lead out of the directory of its database.
    if zone.contains("..") || zone.starts_with(['/', '\\']) {
        return Err("time: invalid location name".to_owned());
    }
    // The database ignores the letter case of names; kube-apiserver does not.
    let found = ZONES.get(zone).ok().filter(|tz| tz.iana_name() == Some(zone));
    let unknown = || format!("unknown time zone {zone}");
    let instant = jiff::Timestamp::from_second(seconds).map_err(|_| unknown())?;
    Ok(found.ok_or_else(unknown)?.to_offset(instant).seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micros() {
        let table = [
            ("2024-01-01T00:00:00.123456Z", Ok("2024-01-01T00:00:00.123456Z")),
            (
                "2024-01-01T01:00:00.000001+01:00",
                Ok("2024-01-01T00:00:00.000001Z"),
            ),
            (
                "2024-01-01T00:00:00.123456789Z",
                Err(
                    r#"parsing time "2024-01-01T00:00:00.123456789Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "789Z" as "Z07:00""#,
                ),
            ),
            (
                "2024-01-01T00:00:00Z",
                Err(
                    r#"parsing time "2024-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#,
                ),
            ),
        ];
        for (text, want) in table {
            let got = parse_micro(text).map(format_micro);
            assert_eq!(got, want.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn timestamps() {
        let cases = [
            ("2009-02-13T23:31:30Z", Some("2009-02-13T23:31:30Z")),
            ("2009-02-13T23:31:30.120000000Z", Some("2009-02-13T23:31:30.12Z")),
            (
                "2009-02-13T23:31:30.1234567899Z",
                Some("2009-02-13T23:31:30.123456789Z"),
            ),
            ("2009-02-13T23:31:30,5Z", Some("2009-02-13T23:31:30.5Z")),
            ("2009-02-13T3:31:30Z", Some("2009-02-13T03:31:30Z")),
            ("2009-02-13T23:31:30+05:30", Some("2009-02-13T23:31:30+05:30")),
            ("2009-02-13T23:31:30-00:00", Some("2009-02-13T23:31:30Z")),
            ("2009-02-13T23:31:30+24:00", Some("2009-02-13T23:31:30+24:00")),
            ("2000-02-29T00:00:00Z", Some("2000-02-29T00:00:00Z")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            (
                "9999-12-31T23:59:59.999999999Z",
                Some("9999-12-31T23:59:59.999999999Z"),
            ),
            ("1900-02-29T00:00:00Z", None),
            ("2009-02-13t23:31:30z", None),
            ("2009-02-13 23:31:30Z", None),
            ("2009-02-13T24:00:00Z", None),
            ("2009-02-13T23:31:60Z", None),
            ("2009-02-13T23:31:30", None),
            ("2009-02-13T23:31:30+25:00", None),
            ("2009-13-13T23:31:30Z", None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text).map(format).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn messages() {
        let cases = [
            (
                "abc",
                r#"parsing time "abc" as "2006-01-02": cannot parse "abc" as "2006""#,
            ),
            (
                "2020-1-01",
                r#"parsing time "2020-1-01" as "2006-01-02": cannot parse "1-01" as "01""#,
            ),
            ("2020-13-01", r#"parsing time "2020-13-01": month out of range"#),
            ("2020-02-30", r#"parsing time "2020-02-30": day out of range"#),
            ("2020-02-01x", r#"parsing time "2020-02-01x": extra text: "x""#),
            (
                "2020/02/01",
                r#"parsing time "2020/02/01" as "2006-01-02": cannot parse "/02/01" as "-""#,
            ),
            (
                "\u{e9}",
                r#"parsing time "\xc3\xa9" as "2006-01-02": cannot parse "\xc3\xa9" as "2006""#,
            ),
        ];
        for (text, want) in cases {
            assert_eq!(parse_date(text), Err(want.to_owned()));
        }
        assert_eq!(
            parse_date_time("2020-01-01T00:00:00").map(format).as_deref(),
            Ok("2020-01-01T00:00:00Z")
        );
        assert_eq!(
            parse_date_time("").map(format).as_deref(),
            Ok("1970-01-01T00:00:00Z")
        );
        assert_eq!(
            parse_date_time("2020-01-01T00:00:00+25:00"),
            Err(r#"parsing time "2020-01-01T00:00:00+25:00": extra text: "+25:00""#.to_owned())
        );
    }

    #[test]
    fn civil_time_matches_the_calendar() {
        for days in (-719_162..2_932_896).step_by(97) {
            let f = CivilTime::at(days * 86_400 + 3_661, 0);
            assert_eq!(days_before(f.year, f.month + 1, f.day), days);
            assert_eq!((f.hour, f.minute, f.second), (1, 1, 1));
            let date = jiff::Timestamp::from_second(days * 86_400)
                .unwrap()
                .to_zoned(jiff::tz::TimeZone::UTC);
            assert_eq!(
                (
                    i64::from(date.day_of_year()) - 1,
                    i64::from(date.weekday().to_sunday_zero_offset())
                ),
                (f.day_of_year, f.day_of_week)
            );
        }
    }

    #[test]
    fn timestamps_in_messages() {
        let cases = [
            ("2024-02-29T01:02:03Z", "2024-02-29 01:02:03 +0000 UTC"),
            (
                "2024-02-29T01:02:03.25+05:30",
                "2024-02-29 01:02:03.25 +0530 +0530",
            ),
            (
                "0001-01-01T00:00:00.000000001-11:00",
                "0001-01-01 00:00:00.000000001 -1100 -1100",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(with_zone(parse(text).unwrap()), want);
        }
    }

    #[test]
    fn zones() {
        let summer = parse("2020-07-01T00:00:00Z").unwrap().seconds;
        let cases = [
            ("", Ok(0)),
            ("UTC", Ok(0)),
            ("Europe/Paris", Ok(7_200)),
            ("America/New_York", Ok(-14_400)),
            ("+05:30", Ok(19_800)),
            ("-02:30", Ok(-9_000)),
            ("02:00", Ok(7_200)),
            ("-00:30", Ok(-1_800)),
            ("europe/paris", Err("unknown time zone europe/paris")),
            ("Nowhere", Err("unknown time zone Nowhere")),
            ("../x", Err("time: invalid location name")),
            ("a:00", Err(r#"strconv.Atoi: parsing "a": invalid syntax"#)),
            (
                "01:60",
                Err("timezone offset minutes out of range [0, 59]: 01:60"),
            ),
        ];
        for (zone, want) in cases {
            assert_eq!(offset_in(zone, summer), want.map_err(str::to_owned), "{zone}");
        }
    }
}
