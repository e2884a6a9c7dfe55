//! Shrinks requests as long as their responses differ in the same way.

use crate::CompareError;
use crate::answer::{class, differences};
use crate::mutate::{Key, remove};
use crate::request::PairRequest;
use crate::servers::Pair;
use scantling_value::Value;

/// The maximum number of attempts.
const ATTEMPTS: usize = 120;

/// Requests whose last responses differ.
pub(crate) struct Minimised {
    pub(crate) requests: Vec<PairRequest>,
    pub(crate) differences: Vec<String>,
    /// False if the responses did not differ when the requests were sent again.
    pub(crate) is_reproducible: bool,
}

/// Removes requests, and values of their bodies.
pub(crate) async fn minimise(
    pair: &mut Pair,
    requests: Vec<PairRequest>,
    found: &[String],
) -> Result<Minimised, CompareError> {
    let wanted = class(found);
    let mut attempts = 0;
    let mut smallest = Minimised {
        requests,
        differences: found.to_vec(),
        is_reproducible: true,
    };
    if class(&replay(pair, &smallest.requests).await?) != wanted {
        smallest.is_reproducible = false;
        return Ok(smallest);
    }
    // Every round tries all candidates once; the last round removes nothing.
    let mut is_smaller = true;
    while is_smaller {
        is_smaller = false;
        let mut next = 0;
        while let Some(requests) = candidate(&smallest.requests, next) {
            attempts += 1;
            if attempts > ATTEMPTS {
                return Ok(smallest);
            }
            let differences = replay(pair, &requests).await?;
            if class(&differences) == wanted {
                is_smaller = true;
                smallest.requests = requests;
                smallest.differences = differences;
            } else {
                next += 1;
            }
        }
    }
    Ok(smallest)
}

/// The differences of the last responses.
async fn replay(pair: &mut Pair, requests: &[PairRequest]) -> Result<Vec<String>, CompareError> {
    let mut found = Vec::new();
    for request in requests {
        let [theirs, ours] = pair.send(request).await?;
        found = differences(&theirs, &ours);
    }
    pair.clean_up().await?;
    Ok(found)
}

/// The requests without one of them, without a value in all bodies, or without a value in one body.
fn candidate(requests: &[PairRequest], number: usize) -> Option<Vec<PairRequest>> {
    let mut smaller = requests.to_vec();
    let optional = requests.len().saturating_sub(1);
    if number < optional {
        smaller.remove(number);
        return Some(smaller);
    }
    let mut number = number - optional;
    let mut seen: Vec<Vec<Key>> = Vec::new();
    for body in requests.iter().filter_map(|r| r.body.as_ref()) {
        let mut paths = Vec::new();
        each_path(body, &mut Vec::new(), &mut paths);
        paths.retain(|path| !seen.contains(path));
        seen.append(&mut paths);
    }
    // Large values first.
    seen.sort_by_key(Vec::len);
    if let Some(path) = seen.get(number) {
        let bodies = smaller.iter_mut().filter_map(|r| r.body.as_mut());
        for body in bodies {
            remove(body, path);
        }
        return Some(smaller);
    }
    number -= seen.len();
    if requests.len() == 1 {
        return None;
    }
    for body in smaller.iter_mut().filter_map(|r| r.body.as_mut()) {
        let mut paths = Vec::new();
        each_path(body, &mut Vec::new(), &mut paths);
        match paths.get(number) {
            Some(path) => {
                remove(body, path);
                return Some(smaller);
            }
            None => number -= paths.len(),
        }
    }
    None
}

fn each_path(value: &Value, path: &mut Vec<Key>, out: &mut Vec<Vec<Key>>) {
    let mut visit = |key: Key, value: &Value| {
        path.push(key);
        out.push(path.clone());
        each_path(value, path, out);
        path.pop();
    };
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(name, value)| visit(Key::Member(name.to_string()), value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(i, value)| visit(Key::Item(i), value)),
        _ => {}
    }
}
