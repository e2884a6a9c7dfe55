//! Resource quantities: fixed-point numbers with a suffix (`100m`, `1.5Gi`, `12e6`).
//!
//! Like Go's `resource.Quantity`, a small amount is a 64-bit integer and a power of ten; a larger or finer
//! one has arbitrary precision. The representation is observable: only a small amount converts to an integer.

use dashu_int::{IBig, Sign, UBig};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// A resource quantity.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: QuantityFormat,
}

/// The value `mantissa × 10^exponent`.
#[derive(Clone, Debug)]
enum Amount {
    Small { mantissa: i64, exponent: i32 },
    Big { mantissa: IBig, exponent: i32 },
}

/// The suffix family of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityFormat {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// The error of a parse or of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// The text does not have the syntax of a quantity.
    Form,
    /// The part before the suffix is not a number.
    Number,
    /// The suffix is unknown.
    Suffix,
    /// The sum of amounts of very different magnitude would need too many digits.
    Precision,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Self::Number => "unable to parse numeric part of quantity",
            Self::Suffix => "unable to parse quantity's suffix",
            Self::Precision => "quantities differ too much in magnitude to be added exactly",
        })
    }
}

impl std::error::Error for QuantityError {}

/// The exponent of the finest amount, a billionth.
const NANO: i32 = -9;
/// The number of decimal digits that always fit a small amount.
const SMALL_DIGITS: usize = 18;
/// The maximum number of decimal places that an addition may span.
const MAX_SPREAD: i64 = 4_096;
/// The maximum number of digits of a quantity. Conversions between decimal and binary cost more than one pass.
const MAX_DIGITS: usize = 16_384;
/// Above this power of ten an amount exceeds every float, so it is not expanded.
const MAX_EXPANDED: i32 = 1_000;

/// The parts of a quantity's text.
struct QuantityParts<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    suffix: &'a str,
    /// True if neither the integer nor the fraction has a digit.
    no_digits: bool,
}

impl<'a> QuantityParts<'a> {
    /// The digits of the integer and the fraction.
    fn digits(&self) -> Cow<'a, str> {
        match self.fraction {
            "" => self.integer.into(),
            fraction => [self.integer, fraction].concat().into(),
        }
    }
}

fn split_while(s: &str, keep: impl Fn(u8) -> bool) -> (&str, &str) {
    let n = s.bytes().take_while(|b| keep(*b)).count();
    s.split_at_checked(n).unwrap_or((s, ""))
}

fn split(text: &str) -> Result<QuantityParts<'_>, QuantityError> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    // Leading zeros do not count as digits, so they do not make an amount large.
    let (zeros, rest) = split_while(rest, |b| b == b'0');
    if rest.is_empty() {
        // Zeros, and even a lone sign, are zero.
        return Ok(QuantityParts {
            negative: false,
            integer: "0",
            fraction: "",
            suffix: "",
            no_digits: false,
        });
    }
    let (integer, rest) = split_while(rest, |b| b.is_ascii_digit());
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_while(rest, |b| b.is_ascii_digit()),
        None => ("", rest),
    };
    let (_, exponent) = split_while(suffix, |b| b"eEinumkKMGTP".contains(&b));
    let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Form);
    }
    Ok(QuantityParts {
        negative,
        integer: if integer.is_empty() { "0" } else { integer },
        fraction,
        suffix,
        no_digits: zeros.is_empty() && integer.is_empty() && fraction.is_empty(),
    })
}

/// Returns whether Kubernetes keeps the text of a small quantity: its suffix is the right one for its digits.
fn is_nearly_canonical(text: &str) -> bool {
    let Ok(parts) = split(text) else {
        return false;
    };
    let digits = parts.digits();
    match scale(parts.suffix) {
        Some(SuffixScale::Decimal(exponent, _)) => {
            let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
            exponent.wrapping_sub(places) % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
        }
        Some(SuffixScale::Binary(bits)) => bits % 10 == 0 && digits.parse().is_ok_and(|n: i64| n & 7 != 0),
        None => false,
    }
}

/// The factor of a suffix.
enum SuffixScale {
    Decimal(i32, QuantityFormat),
    Binary(u32),
}

fn scale(suffix: &str) -> Option<SuffixScale> {
    let si = |e| Some(SuffixScale::Decimal(e, QuantityFormat::DecimalSi));
    match suffix {
        "n" => si(-9),
        "u" => si(-6),
        "m" => si(-3),
        "" => si(0),
        "k" => si(3),
        "M" => si(6),
        "G" => si(9),
        "T" => si(12),
        "P" => si(15),
        "E" => si(18),
        "Ki" => Some(SuffixScale::Binary(10)),
        "Mi" => Some(SuffixScale::Binary(20)),
        "Gi" => Some(SuffixScale::Binary(30)),
        "Ti" => Some(SuffixScale::Binary(40)),
        "Pi" => Some(SuffixScale::Binary(50)),
        "Ei" => Some(SuffixScale::Binary(60)),
        _ => {
            let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            // UPSTREAM: the exponent is truncated to 32 bits without a check.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the cut is the behaviour to imitate"
            )]
            Some(SuffixScale::Decimal(
                exponent as i32,
                QuantityFormat::DecimalExponent,
            ))
        }
    }
}

impl Quantity {
    /// Parses a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Form);
        }
        let parts = split(text)?;
        let digits = parts.integer.len() + parts.fraction.len();
        if digits > MAX_DIGITS {
            return Err(QuantityError::Number);
        }
        let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
        let (small_exponent, factor, format, fits) = match scale(parts.suffix).ok_or(QuantityError::Suffix)? {
            SuffixScale::Decimal(exponent, format) => {
                (exponent.wrapping_sub(places), 1, format, digits <= SMALL_DIGITS)
            }
            SuffixScale::Binary(bits) => {
                // Ten bits take about three decimal digits.
                let fits = parts.fraction.is_empty() && digits + bits as usize * 3 / 10 < 15;
                (-places, 1_i64 << bits, QuantityFormat::BinarySi, fits)
            }
        };
        // As in Go, the representation depends on the number of digits in the text, not on the value.
        if fits && small_exponent >= NANO {
            let number = parts.digits();
            let number: i64 = number.parse().map_err(|_| QuantityError::Number)?;
            if let Some(mantissa) = number.checked_mul(factor) {
                let mantissa = if parts.negative { -mantissa } else { mantissa };
                return Ok(Self {
                    amount: Amount::Small {
                        mantissa,
                        exponent: small_exponent,
                    },
                    format,
                });
            }
        }
        // Only this path rejects a text without digits: for a small amount, Go reads `.` as zero.
        if parts.no_digits {
            return Err(QuantityError::Number);
        }
        let number = parts.digits();
        let number: IBig = number.parse().map_err(|_| QuantityError::Number)?;
        // As in Kubernetes, a non-zero amount never becomes zero, however small it is.
        let mut magnitude = round_up_to_nano(number * IBig::from(factor), small_exponent);
        let mut format = format;
        if format == QuantityFormat::BinarySi {
            let max = Amount::Small {
                mantissa: i64::MAX,
                exponent: 0,
            };
            let one = Amount::Small {
                mantissa: 1,
                exponent: 0,
            };
            // Kubernetes caps only binary amounts.
            if magnitude.compare(&max) == Ordering::Greater {
                magnitude = Amount::Big {
                    mantissa: IBig::from(i64::MAX),
                    exponent: 0,
                };
            }
            // A binary amount below one would have to be rounded, so Go makes it decimal.
            if magnitude.sign() != Ordering::Equal && magnitude.compare(&one) == Ordering::Less {
                format = QuantityFormat::DecimalSi;
            }
        }
        let amount = if parts.negative {
            magnitude.negated()
        } else {
            magnitude
        };
        Ok(Self { amount, format })
    }

    /// Converts an integer, with the format `DecimalExponent`.
    pub fn from_int(value: i64) -> Self {
        Self {
            amount: Amount::Small {
                mantissa: value,
                exponent: 0,
            },
            format: QuantityFormat::DecimalExponent,
        }
    }

    /// The suffix family.
    pub fn format(&self) -> QuantityFormat {
        self.format
    }

    /// The sign: less than, equal to or greater than zero.
    pub fn sign(&self) -> Ordering {
        self.amount.sign()
    }

    /// Returns the amount as an integer if it is small and has no negative exponent (`1.0` has one).
    pub fn as_integer(&self) -> Option<i64> {
        match self.amount {
            Amount::Small { mantissa, exponent } => scale_up(mantissa, i64::from(exponent)),
            Amount::Big { .. } => None,
        }
    }

    /// The nearest float; infinite if out of range.
    pub fn as_approximate_float(&self) -> f64 {
        let (base, exponent) = match &self.amount {
            #[expect(clippy::cast_precision_loss, reason = "the result is approximate")]
            Amount::Small { mantissa, exponent } => (*mantissa as f64, *exponent),
            Amount::Big { mantissa, exponent } => (nearest_double(mantissa), *exponent),
        };
        if exponent == 0 {
            base
        } else {
            base * power_of_ten(exponent)
        }
    }

    /// Returns the amount in units of `10^exponent`, rounded away from zero: `scaled(0)` of `1500m` is 2.
    /// Beyond 64 bits, small amounts become 0 and large ones wrap around, as in Kubernetes.
    pub fn scaled(&self, exponent: i32) -> i64 {
        const MAX_DIGITS: i64 = 20;
        // A multiple of this power of ten has no bits among the lowest 64.
        const MAX_SHIFT: i64 = 64;
        let is_small = matches!(self.amount, Amount::Small { .. });
        let (number, own) = self.amount.parts();
        let sign = self.sign() as i64;
        let shift = own - i64::from(exponent);
        let length = shift + digits(&number);
        if length < 0 {
            return sign;
        }
        if length > MAX_DIGITS && (is_small || shift >= MAX_SHIFT) {
            return 0;
        }
        let unit = IBig::from(10).pow(usize::try_from(shift.unsigned_abs()).unwrap_or(0));
        let scaled = if shift >= 0 {
            number * unit
        } else {
            let is_whole = &number % &unit == IBig::ZERO;
            number / unit + IBig::from(if is_whole { 0 } else { sign })
        };
        match i64::try_from(&scaled) {
            Ok(scaled) => scaled,
            Err(_) if is_small => 0,
            Err(_) => {
                let (sign, magnitude) = scaled.into_parts();
                let low = magnitude % (UBig::from(u64::MAX) + UBig::ONE);
                let low = u64::try_from(&low).unwrap_or(0).cast_signed();
                match sign {
                    Sign::Positive => low,
                    Sign::Negative => low.wrapping_neg(),
                }
            }
        }
    }

    /// Returns the text that Kubernetes writes for a quantity that it read from `text`: the text itself if it is
    /// nearly canonical, or else the canonical one.
    pub fn rewrite(text: &str) -> Result<String, QuantityError> {
        let quantity = Quantity::parse(text)?;
        let is_small = matches!(quantity.amount, Amount::Small { .. });
        Ok(match is_small && is_nearly_canonical(text) {
            true => text.to_owned(),
            false => quantity.canonical(),
        })
    }

    /// Returns the exact sum. If one operand is zero, the result has the other's format.
    pub fn add(&self, other: &Self) -> Result<Self, QuantityError> {
        self.combine(other, &other.amount)
    }

    /// Returns the exact difference. If one operand is zero, the result has the other's format.
    pub fn sub(&self, other: &Self) -> Result<Self, QuantityError> {
        self.combine(other, &other.amount.negated())
    }

    fn combine(&self, other: &Self, right: &Amount) -> Result<Self, QuantityError> {
        let format = if self.sign() == Ordering::Equal {
            other.format
        } else {
            self.format
        };
        Ok(Self {
            amount: self.amount.plus(right)?,
            format,
        })
    }

    /// Formats canonically: no fraction, no digit lost, the largest possible suffix.
    pub fn canonical(&self) -> String {
        if self.sign() == Ordering::Equal {
            return "0".to_owned();
        }
        let whole = match self.format {
            QuantityFormat::BinarySi => self
                .amount
                .whole()
                // `Ki` is the smallest binary suffix; Go writes smaller amounts in decimal, which may have a fraction.
                .filter(|n| *n <= IBig::from(-1024) || *n >= IBig::from(1024)),
            QuantityFormat::DecimalExponent | QuantityFormat::DecimalSi => None,
        };
        if let Some(mut number) = whole {
            let (mut steps, unit) = (0, IBig::from(1024));
            while &number % &unit == IBig::ZERO {
                number /= &unit;
                steps += 1;
            }
            let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(steps).unwrap_or(&"");
            return format!("{number}{suffix}");
        }
        let (mut number, mut exponent) = self.amount.parts();
        let ten = IBig::from(10);
        while &number % &ten == IBig::ZERO {
            number /= &ten;
            exponent += 1;
        }
        while exponent % 3 != 0 {
            number *= &ten;
            exponent -= 1;
        }
        match (self.format, exponent) {
            (_, 0) => number.to_string(),
            (QuantityFormat::DecimalExponent, _) => format!("{number}e{exponent}"),
            (QuantityFormat::BinarySi | QuantityFormat::DecimalSi, _) => {
                let suffix = match exponent {
                    -9 => "n",
                    -6 => "u",
                    -3 => "m",
                    3 => "k",
                    6 => "M",
                    9 => "G",
                    12 => "T",
                    15 => "P",
                    18 => "E",
                    // UPSTREAM: larger powers of ten have no suffix and are lost.
                    _ => "",
                };
                format!("{number}{suffix}")
            }
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Quantity {}
impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.compare(&other.amount)
    }
}

impl Amount {
    fn sign(&self) -> Ordering {
        match self {
            Self::Small { mantissa, .. } => mantissa.cmp(&0),
            Self::Big { mantissa, .. } => mantissa.cmp(&IBig::ZERO),
        }
    }

    /// The mantissa and the exponent, if the mantissa fits into 64 bits.
    fn small(&self) -> Option<(i64, i32)> {
        match self {
            Self::Small { mantissa, exponent } => Some((*mantissa, *exponent)),
            Self::Big { .. } => None,
        }
    }

    fn parts(&self) -> (IBig, i64) {
        match self {
            Self::Small { mantissa, exponent } => (IBig::from(*mantissa), i64::from(*exponent)),
            Self::Big { mantissa, exponent } => (mantissa.clone(), i64::from(*exponent)),
        }
    }

    fn negated(&self) -> Self {
        match self {
            // UPSTREAM: negating `i64::MIN` overflows to itself.
            Self::Small { mantissa, exponent } => Self::Small {
                mantissa: mantissa.wrapping_neg(),
                exponent: *exponent,
            },
            Self::Big { mantissa, exponent } => Self::Big {
                mantissa: -mantissa,
                exponent: *exponent,
            },
        }
    }

    /// Compares exactly. Amounts of different magnitude are compared without aligning their digits.
    fn compare(&self, other: &Self) -> Ordering {
        if let (Some((a, x)), Some((b, y))) = (self.small(), other.small())
            && x == y
        {
            return a.cmp(&b);
        }
        let order = self.sign().cmp(&other.sign());
        if order != Ordering::Equal || self.sign() == Ordering::Equal {
            return order;
        }
        let ((a, x), (b, y)) = (self.parts(), other.parts());
        let order = (x + digits(&a)).cmp(&(y + digits(&b)));
        if order != Ordering::Equal {
            return if self.sign() == Ordering::Greater {
                order
            } else {
                order.reverse()
            };
        }
        // The magnitudes are equal, so the exponents differ by at most the number of digits.
        match usize::try_from(x.abs_diff(y)) {
            Ok(n) if x > y => (a * IBig::from(10).pow(n)).cmp(&b),
            Ok(n) => a.cmp(&(b * IBig::from(10).pow(n))),
            Err(_) => x.cmp(&y),
        }
    }

    /// The exact sum, in 64 bits if it fits.
    fn plus(&self, other: &Self) -> Result<Self, QuantityError> {
        if let (Some((a, x)), Some((b, y))) = (self.small(), other.small()) {
            if b == 0 {
                return Ok(self.clone());
            }
            if a == 0 {
                return Ok(other.clone());
            }
            let exponent = x.min(y);
            let sum = scale_up(a, i64::from(x) - i64::from(exponent))
                .zip(scale_up(b, i64::from(y) - i64::from(exponent)))
                .and_then(|(a, b)| a.checked_add(b));
            if let Some(mantissa) = sum {
                return Ok(Self::Small { mantissa, exponent });
            }
        }
        let ((a, x), (b, y)) = (self.parts(), other.parts());
        let exponent = x.min(y);
        let line_up = |n: IBig, e: i64| match e - exponent {
            spread @ 0..=MAX_SPREAD => usize::try_from(spread)
                .map(|s| n * IBig::from(10).pow(s))
                .map_err(|_| QuantityError::Precision),
            _ => Err(QuantityError::Precision),
        };
        let mantissa = line_up(a, x)? + line_up(b, y)?;
        Ok(Self::Big {
            mantissa,
            exponent: i32::try_from(exponent).unwrap_or(0),
        })
    }

    /// Returns the amount as an integer, if it has no fraction.
    fn whole(&self) -> Option<IBig> {
        let (number, exponent) = self.parts();
        let power =
            IBig::from(10).pow(usize::try_from(exponent.unsigned_abs().min(u64::from(u16::MAX))).ok()?);
        if exponent >= 0 {
            return Some(number * power);
        }
        (&number % &power == IBig::ZERO).then(|| number / power)
    }
}

/// Rounds a magnitude up to nine decimal places: any remainder adds one billionth.
fn round_up_to_nano(mantissa: IBig, exponent: i32) -> Amount {
    if mantissa == IBig::ZERO || exponent > MAX_EXPANDED {
        return Amount::Big { mantissa, exponent };
    }
    if exponent >= NANO {
        let places = usize::try_from(exponent - NANO).unwrap_or(0);
        return Amount::Big {
            mantissa: mantissa * IBig::from(10).pow(places),
            exponent: NANO,
        };
    }
    let excess = i64::from(NANO) - i64::from(exponent);
    if excess > digits(&mantissa) {
        return Amount::Big {
            mantissa: IBig::ONE,
            exponent: NANO,
        };
    }
    let divisor = IBig::from(10).pow(usize::try_from(excess).unwrap_or(0));
    let rest = &mantissa % &divisor != IBig::ZERO;
    Amount::Big {
        mantissa: mantissa / divisor + IBig::from(u8::from(rest)),
        exponent: NANO,
    }
}

/// The float nearest to an integer.
fn nearest_double(n: &IBig) -> f64 {
    // Parsing the decimal text rounds correctly; the direct conversion does not guarantee it.
    n.to_string().parse().unwrap_or(f64::NAN)
}

/// The number of decimal digits.
fn digits(n: &IBig) -> i64 {
    i64::try_from(n.to_string().trim_start_matches('-').len()).unwrap_or(i64::MAX)
}

/// Returns `n × 10^power` if it fits 64 bits; `None` for negative powers.
fn scale_up(n: i64, power: i64) -> Option<i64> {
    match power {
        0 => Some(n),
        ..0 => None,
        _ if n == 0 => Some(0),
        1..=18 => n.checked_mul(10_i64.pow(u32::try_from(power).ok()?)),
        _ => None,
    }
}

/// `10^n` with the same bits as Go's `math.Pow10`, which multiplies two table entries.
fn power_of_ten(n: i32) -> f64 {
    let literal = |e: i32| format!("1e{e}").parse::<f64>().unwrap_or(f64::NAN);
    match n {
        0..=308 => literal(n / 32 * 32) * literal(n % 32),
        -323..0 => literal(n / 32 * 32) / literal(-n % 32),
        _ if n < 0 => 0.0,
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn q(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn canonical_form() {
        let cases = [
            ("0", "0"),
            ("-", "0"),
            (".", "0"),
            ("k", "0"),
            ("1.5", "1500m"),
            ("1.5Gi", "1536Mi"),
            ("1000", "1k"),
            ("1024Ki", "1Mi"),
            ("12e6", "12e6"),
            ("1.2e3", "1200"),
            ("1E", "1E"),
            ("100Ki", "100Ki"),
            ("1000Ki", "1000Ki"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("1.1n", "2n"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854775808"),
            ("16Ei", "9223372036854775807"),
            ("1e-1000000000", "1e-9"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("0.0001Ki", "102400u"),
            ("1e4294967296", "1"),
        ];
        for (input, want) in cases {
            assert_eq!(q(input).canonical(), want, "{input}");
        }
    }

    #[test]
    fn invalid_quantities() {
        let cases = [
            ("", QuantityError::Form),
            ("abc", QuantityError::Form),
            ("1.2.3", QuantityError::Form),
            ("1 ", QuantityError::Form),
            ("1ki", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("1mm", QuantityError::Suffix),
            ("1e99999999999999999999", QuantityError::Suffix),
            ("e-10", QuantityError::Number),
            ("1e5x", QuantityError::Form),
        ];
        for (input, want) in cases {
            assert_eq!(Quantity::parse(input).unwrap_err(), want, "{input}");
        }
    }

    #[test]
    fn integers_and_floats() {
        let cases = [
            ("1", Some(1), 1.0),
            ("1k", Some(1000), 1000.0),
            ("1.0", None, 1.0),
            ("500m", None, 0.5),
            ("9223372036854775807", None, 9.223_372_036_854_776e18),
            ("10E", None, 1e19),
            ("1Mi", Some(1_048_576), 1_048_576.0),
            ("1e400", None, f64::INFINITY),
            ("-3", Some(-3), -3.0),
        ];
        for (input, integer, float) in cases {
            assert_eq!(
                (q(input).as_integer(), q(input).as_approximate_float()),
                (integer, float),
                "{input}"
            );
        }
    }

    #[test]
    fn arithmetic() {
        assert_eq!(q("1Ki").add(&q("1k")).unwrap().canonical(), "2024");
        assert_eq!(q("0").add(&q("2Mi")).unwrap().canonical(), "2Mi");
        assert_eq!(q("1").sub(&q("1500m")).unwrap().canonical(), "-500m");
        assert_eq!(q("9E").add(&q("9E")).unwrap().canonical(), "18E");
        assert_eq!(
            q("9E").add(&q("1")).unwrap().add(&q("1E")).unwrap().as_integer(),
            None
        );
        assert_eq!(q("1e1000000").add(&q("1")), Err(QuantityError::Precision));
        assert!(q("1e1000000000") > q("123456789012345678901234567890"));
        assert!(q("-1e1000000000") < q("1n"));
    }

    proptest! {
        #[test]
        fn order_matches_exact_comparison(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000) {
            let text = |n: i64| format!("{n}.0000000000000000000");
            prop_assert_eq!(q(&format!("{a}m")).cmp(&q(&format!("{b}m"))), a.cmp(&b));
            prop_assert_eq!(q(&text(a)).cmp(&q(&format!("{b}"))), a.cmp(&b));
        }

        #[test]
        fn sums_are_exact(a in any::<i64>(), b in any::<i64>()) {
            let sum = q(&a.to_string()).add(&q(&b.to_string())).unwrap();
            prop_assert_eq!(sum.clone(), q(&(i128::from(a) + i128::from(b)).to_string()));
            prop_assert_eq!(sum.sub(&q(&b.to_string())).unwrap(), q(&a.to_string()));
        }

        #[test]
        fn arbitrary_text_never_panics(text in "[-+]?[0-9.]{0,25}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,10}") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let _ = (quantity.as_integer(), quantity.as_approximate_float(), quantity.add(&q("1.1")));
            }
        }
    }
}
