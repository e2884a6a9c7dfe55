//! Lists of completion indexes: `1,3-5,7`.

use super::cron::atoi;
use scantling_value::go;

/// Counts the indexes of a list; the error says why it is malformed.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    let mut last: Option<i64> = None;
    let mut total = 0;
    for interval in intervals(text) {
        let (first, end) = parse(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {first}"
            ));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The first index that two lists share. Malformed intervals are skipped.
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let parsed = |text| intervals(text).filter_map(move |i| parse(i, completions).ok());
    let mut completed = parsed(completed).peekable();
    let mut failed = parsed(failed).peekable();
    // Valid lists are in ascending order, so that one walk over both suffices.
    while let (Some(&(c_first, c_end)), Some(&(f_first, f_end))) = (completed.peek(), failed.peek()) {
        if c_first <= f_end && f_first <= c_end {
            return Some(c_first.max(f_first));
        }
        if c_first <= f_first {
            completed.next();
        } else {
            failed.next();
        }
    }
    None
}

fn intervals(text: &str) -> impl Iterator<Item = &str> {
    // Splitting an empty text gives one empty part, not none.
    text.split(',').filter(move |_| !text.is_empty())
}

/// The first and the last index of an interval.
fn parse(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |text: &str| {
        let quoted = go::quote(text);
        match atoi(text) {
            Err(_) => Err(format!("cannot convert string to integer for index: {quoted}")),
            Ok(index) if index >= completions => Err(format!("too large index: {quoted}")),
            Ok(index) => Ok(index),
        }
    };
    let mut parts = interval.split('-');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(only), None, _) => index(only).map(|i| (i, i)),
        (Some(first), Some(last), None) => {
            let (first, last) = (index(first)?, index(last)?);
            if first >= last {
                return Err(format!(
                    "non-increasing order, previous: {first}, current: {last}"
                ));
            }
            Ok((first, last))
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts \
             separated by '-'",
            go::quote(interval)
        )),
    }
}
