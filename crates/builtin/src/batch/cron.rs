//! Schedules in the notation of cron, with the rules and error texts of `robfig/cron`.

use scantling_notation::duration;
use scantling_notation::timestamp;
use scantling_value::go;

/// The numbers that a field may have, and names for them.
struct FieldBounds {
    min: u64,
    max: u64,
    names: &'static [(&'static str, u64)],
}

const MONTHS: &[(&str, u64)] = &[
    ("jan", 1),
    ("feb", 2),
    ("mar", 3),
    ("apr", 4),
    ("may", 5),
    ("jun", 6),
    ("jul", 7),
    ("aug", 8),
    ("sep", 9),
    ("oct", 10),
    ("nov", 11),
    ("dec", 12),
];

const WEEKDAYS: &[(&str, u64)] = &[
    ("sun", 0),
    ("mon", 1),
    ("tue", 2),
    ("wed", 3),
    ("thu", 4),
    ("fri", 5),
    ("sat", 6),
];

const fn bounds(min: u64, max: u64, names: &'static [(&'static str, u64)]) -> FieldBounds {
    FieldBounds { min, max, names }
}

/// Minute, hour, day of the month, month, day of the week.
const FIELDS: [FieldBounds; 5] = [
    bounds(0, 59, &[]),
    bounds(0, 23, &[]),
    bounds(1, 31, &[]),
    bounds(1, 12, MONTHS),
    bounds(0, 6, WEEKDAYS),
];

const DESCRIPTORS: &[&str] = &[
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// Checks a schedule; the error is its text.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    if schedule.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let rest = check_time_zone(schedule)?;
    if rest.starts_with('@') {
        return check_descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let (count, shown) = (fields.len(), fields.join(" "));
        return Err(format!("expected exactly 5 fields, found {count}: [{shown}]"));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        // Go's `FieldsFunc` skips empty parts, so that a field of only commas is valid.
        let mut ranges = field.split(',').filter(|range| !range.is_empty());
        ranges.try_for_each(|range| check_range(range, bounds))?;
    }
    Ok(())
}

/// Checks the time zone before a schedule, and returns what follows it.
fn check_time_zone(schedule: &str) -> Result<&str, String> {
    let zone_and_rest = ["TZ=", "CRON_TZ="]
        .iter()
        .find_map(|prefix| schedule.strip_prefix(prefix));
    let Some(zone_and_rest) = zone_and_rest else {
        return Ok(schedule);
    };
    let Some((zone, rest)) = zone_and_rest.split_once(' ') else {
        // The library slices without a check, and the server reports its panic.
        return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned());
    };
    check_location(zone).map_err(|why| format!("provided bad location {zone}: {why}"))?;
    Ok(rest.trim())
}

/// Checks the name of a time zone; the error is its text.
pub(super) fn check_location(zone: &str) -> Result<(), String> {
    // `offset_in` also takes the offsets of CEL (`-07:30`), which Go's `LoadLocation` does not know.
    if zone.contains(':') {
        return Err(format!("unknown time zone {zone}"));
    }
    timestamp::offset_in(zone, 0).map(|_| ())
}

fn check_descriptor(descriptor: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&descriptor) {
        return Ok(());
    }
    match descriptor.strip_prefix("@every ") {
        Some(text) if duration::parse(text).is_some() => Ok(()),
        Some(text) => Err(format!(
            "failed to parse duration {descriptor}: {}",
            duration_error(text)
        )),
        None => Err(format!("unrecognized descriptor: {descriptor}")),
    }
}

/// Returns the error with which Go refuses a duration.
fn duration_error(text: &str) -> String {
    let quoted = go::quote(text);
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    while let Some(after) = skip_number(rest) {
        let end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        // `find` returns a character boundary, so that the split cannot fail.
        let (unit, next) = after.split_at_checked(end).unwrap_or((after, ""));
        match unit {
            "" => return format!("time: missing unit in duration {quoted}"),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => rest = next,
            _ => return format!("time: unknown unit {} in duration {quoted}", go::quote(unit)),
        }
    }
    format!("time: invalid duration {quoted}")
}

/// Returns the text after a decimal number; `None` without a number.
fn skip_number(text: &str) -> Option<&str> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let whole = digits(text);
    let rest = text.get(whole..)?;
    match rest.strip_prefix('.') {
        Some(fraction) => {
            let count = digits(fraction);
            fraction.get(count..).filter(|_| whole + count > 0)
        }
        None => Some(rest).filter(|_| whole > 0),
    }
}

/// Checks `number`, `number-number` or `*`, with an optional `/step`.
fn check_range(range: &str, bounds: &FieldBounds) -> Result<(), String> {
    let parts: Vec<&str> = range.split('/').collect();
    let ends: Vec<&str> = parts
        .first()
        .map_or_else(Vec::new, |part| part.split('-').collect());
    let (start, mut end) = match ends.as_slice() {
        // UPSTREAM: what follows a dash after the star is ignored.
        ["*" | "?", ..] => (bounds.min, bounds.max),
        [only] => {
            let start = number_or_name(only, bounds)?;
            (start, start)
        }
        [low, high] => (number_or_name(low, bounds)?, number_or_name(high, bounds)?),
        [low, ..] => {
            number_or_name(low, bounds)?;
            return Err(format!("too many hyphens: {range}"));
        }
        [] => (bounds.min, bounds.max),
    };
    let step = match parts.as_slice() {
        [_] | [] => 1,
        [_, step] => {
            let step = number(step)?;
            // A number with a step is the start of a range to the end.
            if ends.len() == 1 {
                end = bounds.max;
            }
            step
        }
        _ => return Err(format!("too many slashes: {range}")),
    };
    let (min, max) = (bounds.min, bounds.max);
    if start < min {
        return Err(format!(
            "beginning of range ({start}) below minimum ({min}): {range}"
        ));
    }
    if end > max {
        return Err(format!("end of range ({end}) above maximum ({max}): {range}"));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {range}"
        ));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {range}"));
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &FieldBounds) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match bounds.names.iter().find(|(name, _)| *name == lower) {
        Some((_, number)) => Ok(*number),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = atoi(text).map_err(|why| format!("failed to parse int from {text}: {why}"))?;
    u64::try_from(parsed).map_err(|_| format!("negative number ({parsed}) not allowed: {text}"))
}

/// Parses a decimal integer; the error is that of Go's `strconv.Atoi`.
pub(super) fn atoi(text: &str) -> Result<i64, String> {
    go::parse_integer("Atoi", text)
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn schedules() {
        for (schedule, error) in [
            ("* * * * *", ""),
            ("0 0 1 jan-mar/2 MON,fri", ""),
            ("? , 1/2 */3 *-9", ""),
            ("@hourly", ""),
            ("@every 1h30m", ""),
            ("TZ=UTC 0 0 * * *", ""),
            ("CRON_TZ=Europe/Paris @daily", ""),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            (" ", "expected exactly 5 fields, found 0: []"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "a * * * *",
                "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax",
            ),
            (
                "99999999999999999999 * * * *",
                "failed to parse int from 99999999999999999999: \
                 strconv.Atoi: parsing \"99999999999999999999\": value out of range",
            ),
            ("@never", "unrecognized descriptor: @never"),
            (
                "@every 1x",
                "failed to parse duration @every 1x: time: unknown unit \"x\" in duration \"1x\"",
            ),
            (
                "@every 5",
                "failed to parse duration @every 5: time: missing unit in duration \"5\"",
            ),
            (
                "@every ",
                "failed to parse duration @every : time: invalid duration \"\"",
            ),
            (
                "TZ=UTC",
                "invalid schedule format: runtime error: slice bounds out of range [:-1]",
            ),
            (
                "TZ=Nowhere * * * * *",
                "provided bad location Nowhere: unknown time zone Nowhere",
            ),
        ] {
            assert_eq!(check(schedule).err().unwrap_or_default(), error, "{schedule}");
        }
    }
}
