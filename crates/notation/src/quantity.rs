//! Resource quantities: fixed-point numbers with a suffix (`100m`, `1.5Gi`, `12e6`).
//!
//! Small amounts are a 64-bit integer and a power of ten; larger or finer ones are arbitrary-precision.
//! Which of the two holds an amount is visible: only a small one converts to an integer.

use dashu_int::IBig;
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

/// The family of suffixes in which a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityFormat {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// Why a text is no quantity, or why an operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// The text as a whole has another form.
    Form,
    /// The part before the suffix is no number.
    Number,
    /// The suffix is not known.
    Suffix,
    /// The sum of amounts of very different magnitude would take too many digits.
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

/// The finest amount: a billionth.
const NANO: i32 = -9;
/// As many decimal digits as always fit a small amount.
const SMALL_DIGITS: usize = 18;
/// An addition may spread over this many decimal places.
const MAX_SPREAD: i64 = 100_000;
/// Beyond this power of ten an amount exceeds every floating-point number, and stays unexpanded.
const MAX_EXPANDED: i32 = 1_000;

/// The pieces of a quantity's text.
struct QuantityParts<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    suffix: &'a str,
    /// Sign, integer and fraction hold no digit at all.
    no_digits: bool,
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
    let (zeros, rest) = split_while(rest, |b| b == b'0');
    if rest.is_empty() {
        // Zeros alone, and even a lone sign, are zero.
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

/// What a suffix multiplies by.
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
            // UPSTREAM: the exponent is cut to 32 bits without a check.
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
    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Form);
        }
        let parts = split(text)?;
        let digits = parts.integer.len() + parts.fraction.len();
        let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
        let (small_exponent, factor, format, fits) = match scale(parts.suffix).ok_or(QuantityError::Suffix)? {
            SuffixScale::Decimal(exponent, format) => {
                (exponent.wrapping_sub(places), 1, format, digits <= SMALL_DIGITS)
            }
            SuffixScale::Binary(bits) => {
                // Ten bits take about three digits.
                let fits = parts.fraction.is_empty() && digits + bits as usize * 3 / 10 < 15;
                (-places, 1_i64 << bits, QuantityFormat::BinarySi, fits)
            }
        };
        if fits && small_exponent >= NANO {
            let number = format!("{}{}", parts.integer, parts.fraction);
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
        if parts.no_digits {
            return Err(QuantityError::Number);
        }
        let number = format!("{}{}", parts.integer, parts.fraction);
        let number: IBig = number.parse().map_err(|_| QuantityError::Number)?;
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
            if magnitude.compare(&max) == Ordering::Greater {
                magnitude = Amount::Big {
                    mantissa: IBig::from(i64::MAX),
                    exponent: 0,
                };
            }
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

    /// A whole number, in the format with an exponent.
    pub fn from_int(value: i64) -> Self {
        Self {
            amount: Amount::Small {
                mantissa: value,
                exponent: 0,
            },
            format: QuantityFormat::DecimalExponent,
        }
    }

    /// The suffix family in which it is written.
    pub fn format(&self) -> QuantityFormat {
        self.format
    }

    /// Less than, equal to or greater than zero.
    pub fn sign(&self) -> Ordering {
        self.amount.sign()
    }

    /// The amount as an integer, where it is held as a small one and is whole by its exponent (`1.0` is not).
    pub fn as_integer(&self) -> Option<i64> {
        match self.amount {
            Amount::Small { mantissa, exponent } => scale_up(mantissa, i64::from(exponent)),
            Amount::Big { .. } => None,
        }
    }

    /// The amount as a floating-point number, to within its precision; infinite beyond its range.
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

    /// The amount in units of a power of ten, rounded away from zero: `scaled(0)` of `1500m` is 2. Amounts beyond 64 bits
    /// become 0, as in Kubernetes.
    pub fn scaled(&self, exponent: i32) -> i64 {
        const MAX_DIGITS: i64 = 20;
        let (number, own) = self.amount.parts();
        let sign = self.sign() as i64;
        let (shift, digits) = (own - i64::from(exponent), digits(&number));
        let unit = usize::try_from(shift.unsigned_abs()).map_or(IBig::ZERO, |n| match shift + digits {
            0..=MAX_DIGITS => IBig::from(10).pow(n),
            _ => IBig::ZERO,
        });
        let scaled = match shift + digits {
            ..0 => return sign,
            0..=MAX_DIGITS if shift >= 0 => number * unit,
            0..=MAX_DIGITS => {
                let is_whole = &number % &unit == IBig::ZERO;
                number / unit + IBig::from(if is_whole { 0 } else { sign })
            }
            _ => return 0,
        };
        i64::try_from(scaled).unwrap_or(0)
    }

    /// The exact sum. A zero takes on the format of the other.
    pub fn add(&self, other: &Self) -> Result<Self, QuantityError> {
        self.combine(other, &other.amount)
    }

    /// The exact difference. A zero takes on the format of the other.
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

    /// The canonical text: no fraction, no digit lost, the suffix as large as possible.
    pub fn canonical(&self) -> String {
        if self.sign() == Ordering::Equal {
            return "0".to_owned();
        }
        let whole = match self.format {
            QuantityFormat::BinarySi => self
                .amount
                .whole()
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

    fn parts(&self) -> (IBig, i64) {
        match self {
            Self::Small { mantissa, exponent } => (IBig::from(*mantissa), i64::from(*exponent)),
            Self::Big { mantissa, exponent } => (mantissa.clone(), i64::from(*exponent)),
        }
    }

    fn negated(&self) -> Self {
        match self {
            // UPSTREAM: the least integer is its own negative.
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

    /// The exact order. Amounts of different magnitude are told apart without lining up their digits.
    fn compare(&self, other: &Self) -> Ordering {
        if let (
            Self::Small {
                mantissa: a,
                exponent: x,
            },
            Self::Small {
                mantissa: b,
                exponent: y,
            },
        ) = (self, other)
            && x == y
        {
            return a.cmp(b);
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
        // The tops line up, so the exponents differ by no more than the digits that are there.
        match usize::try_from(x.abs_diff(y)) {
            Ok(n) if x > y => (a * IBig::from(10).pow(n)).cmp(&b),
            Ok(n) => a.cmp(&(b * IBig::from(10).pow(n))),
            Err(_) => x.cmp(&y),
        }
    }

    fn plus(&self, other: &Self) -> Result<Self, QuantityError> {
        if let (
            Self::Small {
                mantissa: a,
                exponent: x,
            },
            Self::Small {
                mantissa: b,
                exponent: y,
            },
        ) = (self, other)
        {
            if *b == 0 {
                return Ok(self.clone());
            }
            if *a == 0 {
                return Ok(other.clone());
            }
            let exponent = *x.min(y);
            let sum = scale_up(*a, i64::from(*x) - i64::from(exponent))
                .zip(scale_up(*b, i64::from(*y) - i64::from(exponent)))
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

    /// The amount as an integer, if it is whole.
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

/// A magnitude with no digit beyond the ninth decimal place: any rest counts as one more billionth.
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

/// The floating-point number nearest to an integer.
fn nearest_double(n: &IBig) -> f64 {
    // Reading text rounds correctly, which the conversion of the integer itself does not promise.
    n.to_string().parse().unwrap_or(f64::NAN)
}

/// How many decimal digits a number has.
fn digits(n: &IBig) -> i64 {
    i64::try_from(n.to_string().trim_start_matches('-').len()).unwrap_or(i64::MAX)
}

/// `n × 10^power`, if that is an integer of 64 bits; negative powers have no result.
fn scale_up(n: i64, power: i64) -> Option<i64> {
    match power {
        0 => Some(n),
        ..0 => None,
        _ if n == 0 => Some(0),
        1..=18 => n.checked_mul(10_i64.pow(u32::try_from(power).ok()?)),
        _ => None,
    }
}

/// `10^n` to the bit that the two-table product of upstream's mathematics library gives.
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
    fn canonical_texts() {
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
    fn not_quantities() {
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
        fn order_is_that_of_the_numbers(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000) {
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
        fn no_text_panics(text in "[-+]?[0-9.]{0,25}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,10}") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let _ = (quantity.as_integer(), quantity.as_approximate_float(), quantity.add(&q("1.1")));
            }
        }
    }
}
