//! The fields of a JSON text in document order: finds repeated fields, and sorts findings by position.

use super::raw::{RawJson, decode_raw};
use crate::{Finding, FindingList, Limits, PathBuf, Segment};
use std::collections::{BTreeMap, BTreeSet};

/// kube-apiserver stops collecting findings here.
const MAX_FINDINGS: usize = 100;

/// Returns the duplicate fields, in document order. The text is known to be valid; on any other the findings so far are
/// returned.
pub(super) fn duplicates(text: &[u8]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    visit_fields(text, |path, time| {
        // Like kube-apiserver, reports a field that occurs three times only once.
        if time == Occurrence::Again && found.len() < MAX_FINDINGS && !seen.contains(path) {
            seen.insert(path.clone());
            found.push(Finding::DuplicateField(path.clone()));
        }
    });
    found
}

/// Sorts findings about fields by where the text has the fields. Other findings come last, in their order.
pub fn sort_findings(text: &[u8], findings: &mut FindingList) {
    if findings.len() < 2 {
        return;
    }
    let fields = findings.iter().filter_map(Finding::field).cloned();
    let mut places: BTreeMap<PathBuf, Places> = fields.map(|at| (at, Places::NONE)).collect();
    let mut place = 0;
    visit_fields(text, |path, time| {
        place += 1;
        if let Some(known) = places.get_mut(path) {
            let known = match time {
                Occurrence::First => &mut known.first,
                Occurrence::Again => &mut known.again,
            };
            *known = place.min(*known);
        }
    });
    findings.kept_mut().sort_by_cached_key(|finding| {
        let known = finding.field().and_then(|at| places.get(at));
        let known = known.unwrap_or(&Places::NONE);
        match finding {
            Finding::DuplicateField(_) => known.again,
            _ => known.first,
        }
    });
}

/// The positions of a field among all fields of a text.
struct Places {
    first: usize,
    again: usize,
}

impl Places {
    const NONE: Places = Places {
        first: usize::MAX,
        again: usize::MAX,
    };
}

/// Whether this is the first occurrence of a field in its object or a repeated one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occurrence {
    First,
    Again,
}

/// Visits every field of a valid JSON text.
fn visit_fields(text: &[u8], mut visit: impl FnMut(&PathBuf, Occurrence)) {
    // A text that is not valid has no fields.
    if let Ok(document) = decode_raw(text, Limits::SERVER) {
        visit_below(&document, &mut PathBuf::default(), &mut visit);
    }
}

/// Visits the members below a value in document order.
fn visit_below(value: &RawJson, path: &mut PathBuf, visit: &mut impl FnMut(&PathBuf, Occurrence)) {
    let length = path.len();
    match value {
        RawJson::Object(members) => {
            let mut seen = BTreeSet::new();
            for (name, member) in members {
                path.push(Segment::Field(name));
                let time = match seen.insert(name) {
                    true => Occurrence::First,
                    false => Occurrence::Again,
                };
                visit(path, time);
                visit_below(member, path, visit);
                path.truncate(length);
            }
        }
        RawJson::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Segment::Index(index));
                visit_below(item, path, visit);
                path.truncate(length);
            }
        }
        RawJson::Null | RawJson::Bool(_) | RawJson::Number(_) | RawJson::Text(_) => {}
    }
}
