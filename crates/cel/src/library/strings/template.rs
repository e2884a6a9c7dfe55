//! Format strings: text with clauses (`%s`, `%.2f`) for arguments.

use scantling_value::go;

/// A clause of a format string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    /// `%s`: any value as text.
    Text,
    /// `%d`
    Decimal,
    /// `%f`, with the number of decimal places if given.
    Fixed(Option<usize>),
    /// `%e`, with the number of decimal places if given.
    Scientific(Option<usize>),
    /// `%b`
    Binary,
    /// `%x`
    Hexadecimal,
    /// `%X`
    UpperHexadecimal,
    /// `%o`
    Octal,
}

/// The notation of values; see [`Clause::takes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Numbers as in American English; integers and floats differ.
    Localized,
    /// Plain numbers.
    Plain,
}

impl Clause {
    /// The accepted argument types, as error messages name them.
    pub(crate) fn takes(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Self::Text, _) => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps"
            }
            (Self::Decimal, Dialect::Localized) => "decimal clause can only be used on integers",
            (Self::Decimal, Dialect::Plain) => "decimal clause can only be used on ints, uints, and doubles",
            (Self::Fixed(_), Dialect::Localized) => "fixed-point clause can only be used on doubles",
            (Self::Fixed(_), Dialect::Plain) => {
                "fixed-point clause can only be used on ints, uints, and doubles"
            }
            (Self::Scientific(_), Dialect::Localized) => "scientific clause can only be used on doubles",
            (Self::Scientific(_), Dialect::Plain) => {
                "scientific clause can only be used on ints, uints, and doubles"
            }
            (Self::Binary, Dialect::Localized) => "only integers and bools can be formatted as binary",
            (Self::Binary, Dialect::Plain) => "only ints, uints, and bools can be formatted as binary",
            (Self::Hexadecimal | Self::UpperHexadecimal, Dialect::Localized) => {
                "only integers, byte buffers, and strings can be formatted as hex"
            }
            (Self::Hexadecimal | Self::UpperHexadecimal, Dialect::Plain) => {
                "only ints, uints, bytes, and strings can be formatted as hex"
            }
            (Self::Octal, Dialect::Localized) => "octal clause can only be used on integers",
            (Self::Octal, Dialect::Plain) => "octal clause can only be used on ints and uints",
        }
    }
}

/// Parses the clause after a percent sign and returns it with the rest of the text. The error is the message.
pub(crate) fn clause(text: &[u8], max_precision: Option<usize>) -> Result<(Clause, &[u8]), String> {
    let (precision, rest) =
        precision(text, max_precision).map_err(|e| format!("error while parsing precision: {e}"))?;
    let Some((letter, rest)) = rest.split_first() else {
        return Err("unexpected end of string".to_owned());
    };
    let clause = match letter {
        b's' => Clause::Text,
        b'd' => Clause::Decimal,
        b'f' => Clause::Fixed(precision),
        b'e' => Clause::Scientific(precision),
        b'b' => Clause::Binary,
        b'x' => Clause::Hexadecimal,
        b'X' => Clause::UpperHexadecimal,
        b'o' => Clause::Octal,
        // UPSTREAM: classifies bytes, not characters.
        _ => {
            return Err(format!(
                "unrecognized formatting clause \"{}\"",
                char::from(*letter)
            ));
        }
    };
    Ok((clause, rest))
}

fn precision(text: &[u8], max: Option<usize>) -> Result<(Option<usize>, &[u8]), String> {
    let Some(after) = text.strip_prefix(b".") else {
        return Ok((None, text));
    };
    let n = after.iter().take_while(|b| b.is_ascii_digit()).count();
    // Digits up to the end of the text have no letter behind them that would end the precision.
    let Some((digits, rest)) = after.split_at_checked(n).filter(|(_, rest)| !rest.is_empty()) else {
        return Err("could not find end of precision specifier".to_owned());
    };
    let digits = String::from_utf8_lossy(digits);
    let precision: i64 = go::parse_integer("Atoi", &digits)
        .map_err(|why| format!("error while converting precision to integer: {why}"))?;
    let precision = usize::try_from(precision).unwrap_or(usize::MAX);
    match max {
        Some(max) if precision > max => Err(format!(
            "precision {precision} exceeds maximum allowed precision {max}"
        )),
        _ => Ok((Some(precision), rest)),
    }
}

/// Replaces the clauses of a format string: `write` appends the argument with the given index. The error is
/// the message.
pub(crate) fn interpolate(
    template: &str,
    n_args: usize,
    max_precision: Option<usize>,
    mut write: impl FnMut(&mut Vec<u8>, usize, Clause) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(template.len());
    let mut rest = template.as_bytes();
    let mut index = 0;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, rest) {
            (b'%', [b'%', after @ ..]) => {
                out.push(b'%');
                rest = after;
            }
            // Before the clause is parsed, so that a missing argument is reported even for an invalid clause.
            (b'%', _) if index >= n_args => return Err(format!("index {index} out of range")),
            (b'%', []) => return Err("unexpected end of string".to_owned()),
            (b'%', text) => {
                let (clause, after) = clause(text, max_precision)
                    .map_err(|e| format!("could not parse formatting clause: {e}"))?;
                write(&mut out, index, clause).map_err(|e| format!("error during formatting: {e}"))?;
                index += 1;
                rest = after;
            }
            _ => out.push(byte),
        }
    }
    Ok(out)
}
