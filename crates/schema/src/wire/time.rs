//! Times as the server reads them.

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// Checks a time of RFC 3339; the error is in the words of the server's parser.
pub(crate) fn check_time(text: &str) -> Result<(), String> {
    let mut rest = text;
    let mut fields = [0_u32; 6];
    let parts = [("2006", 4), ("01", 2), ("02", 2), ("15", 2), ("04", 2), ("05", 2)];
    for (i, ((layout, digits), before)) in parts.into_iter().zip(["", "-", "-", "T", ":", ":"]).enumerate() {
        rest = rest
            .strip_prefix(before)
            .ok_or_else(|| mismatch(text, rest, before))?;
        let number = rest
            .get(..digits)
            .filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
        // An hour may have one digit.
        let number = number.or_else(|| {
            rest.get(..1)
                .filter(|n| i == 3 && n.bytes().all(|b| b.is_ascii_digit()))
        });
        let number = number.ok_or_else(|| mismatch(text, rest, layout))?;
        let value = number.parse().map_err(|_| mismatch(text, rest, layout))?;
        let (least, most, name) = match i {
            0 => (0, 9999, "year"),
            1 => (1, 12, "month"),
            2 => (0, 31, "day"),
            3 => (0, 23, "hour"),
            4 => (0, 59, "minute"),
            _ => (0, 59, "second"),
        };
        if value < least || value > most {
            return Err(range(text, name));
        }
        if let Some(f) = fields.get_mut(i) {
            *f = value;
        }
        rest = rest.strip_prefix(number).unwrap_or(rest);
    }
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let digits = fraction.len() - fraction.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 {
            rest = fraction.get(digits..).unwrap_or("");
        }
    }
    let after = if let Some(after) = rest.strip_prefix('Z') {
        after
    } else {
        let zone = rest.as_bytes();
        let form = match zone {
            [b'+' | b'-', h1, h2, b':', m1, m2, ..] => [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit()),
            _ => false,
        };
        if !form {
            return Err(mismatch(text, rest, "Z07:00"));
        }
        rest.get(6..).unwrap_or("")
    };
    if !after.is_empty() {
        return Err(format!(
            "parsing time {}: extra text: {}",
            quote(text),
            quote(after)
        ));
    }
    let [year, month, day, ..] = fields;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day < 1 || day > last {
        return Err(range(text, "day"));
    }
    Ok(())
}

fn mismatch(text: &str, rest: &str, layout: &str) -> String {
    format!(
        "parsing time {} as {}: cannot parse {} as {}",
        quote(text),
        quote(LAYOUT),
        quote(rest),
        quote(layout)
    )
}

fn range(text: &str, what: &str) -> String {
    format!("parsing time {}: {what} out of range", quote(text))
}

/// The time package quotes on its own: control characters and everything beyond ASCII are escaped as bytes.
fn quote(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            ' '..='~' => out.push(c),
            _ => {
                let mut bytes = [0; 4];
                for b in c.encode_utf8(&mut bytes).bytes() {
                    out.push_str(&format!("\\x{b:02x}"));
                }
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::check_time;
    use expect_test::expect;

    #[test]
    fn times_and_their_faults() {
        let mut out = String::new();
        for text in [
            "2020-01-02T03:04:05Z",
            "2020-02-29T03:04:05.123+01:00",
            "2021-02-29T03:04:05Z",
            "2020-13-01T00:00:00Z",
            "2020-01-02 03:04:05Z",
            "2020-01-02T03:04:05",
            "2020-01-02T03:04:05Zx",
            "yesterday",
            "",
            "2020-1-02T03:04:05Z",
        ] {
            out += &match check_time(text) {
                Ok(()) => format!("{text} is a time\n"),
                Err(e) => format!("{e}\n"),
            };
        }
        expect![[r#"
            2020-01-02T03:04:05Z is a time
            2020-02-29T03:04:05.123+01:00 is a time
            parsing time "2021-02-29T03:04:05Z": day out of range
            parsing time "2020-13-01T00:00:00Z": month out of range
            parsing time "2020-01-02 03:04:05Z" as "2006-01-02T15:04:05Z07:00": cannot parse " 03:04:05Z" as "T"
            parsing time "2020-01-02T03:04:05" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"
            parsing time "2020-01-02T03:04:05Zx": extra text: "x"
            parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"
            parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"
            parsing time "2020-1-02T03:04:05Z" as "2006-01-02T15:04:05Z07:00": cannot parse "1-02T03:04:05Z" as "01"
        "#]]
        .assert_eq(&out);
    }
}
