//! Unions: groups of fields with exactly one set (`x-kubernetes-unions`).

use crate::correlate::OldList;
use crate::plan::{Features, PlanNode};
use crate::structural::Union;
use crate::validate::Ratchet;
use scantling_value::{BadValue, ErrorKind, ErrorList, FieldError, Map, Path, Value, deadline};

/// Returns the errors about the unions of a value. With `ratchet`, an unchanged object is tolerated.
pub fn violations(node: &PlanNode, value: &Value, ratchet: Option<(&Ratchet<'_>, &Value)>) -> ErrorList {
    let mut checker = UnionChecker {
        ratchet: ratchet.map(|(r, _)| r),
        errors: ErrorList::new(),
    };
    checker.value(node, value, ratchet.map(|(_, old)| old), &Path::ROOT);
    checker.errors
}

struct UnionChecker<'r> {
    ratchet: Option<&'r Ratchet<'r>>,
    errors: ErrorList,
}

impl UnionChecker<'_> {
    /// Checks the unions of a value and of everything below it.
    fn value(&mut self, node: &PlanNode, value: &Value, old: Option<&Value>, at: &Path<'_>) {
        if !node.has(Features::UNIONS) {
            return;
        }
        deadline::tick();
        match value {
            Value::Object(map) => {
                self.object(node, value, map, old, at);
                let old = old.and_then(Value::as_object);
                node.all_members(map.iter(), Features::UNIONS, |member| {
                    let before = old.and_then(|old| old.get(member.name));
                    self.value(member.node, member.value, before, &member.at(at));
                    true
                });
            }
            Value::Array(list) => {
                let Some(items) = node.items() else { return };
                let old = old.and_then(|old| OldList::for_value(node, old));
                for (i, item) in list.iter().enumerate() {
                    let before = old.as_ref().and_then(|old| old.get(item));
                    self.value(items, item, before, &at.index(i));
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, node: &PlanNode, value: &Value, map: &Map, old: Option<&Value>, at: &Path<'_>) {
        let before = self.errors.total();
        for union in node.schema().unions() {
            deadline::tick_for(union.fields.len());
            check(union, map, at, &mut self.errors);
        }
        if self.errors.total() > before
            && let (Some(ratchet), Some(old)) = (self.ratchet, old)
            && ratchet.unchanged(node, old, value)
        {
            // Only the errors of this object's own unions are dropped, not those of values below it.
            self.errors.truncate(before);
        }
    }
}

fn check(union: &Union, map: &Map, at: &Path<'_>, errors: &mut ErrorList) {
    let list = |names: &[&str]| names.join(", ");
    let all: Vec<&str> = union.fields.iter().map(|(name, _)| name.as_str()).collect();
    let set: Vec<&str> = all
        .iter()
        .copied()
        .filter(|name| map.contains_key(name))
        .collect();
    match set.as_slice() {
        [_] => {}
        [] => errors.push_with(|| FieldError::required(at, format!("one of {} must be set", list(&all)))),
        several => {
            let detail = format!("only one of {} may be set, but {} are", list(&all), list(several));
            errors.push_with(|| FieldError::new(ErrorKind::Invalid, at, BadValue::Omitted, detail));
        }
    }
    // A union with a discriminator does not require that it is set.
    let Some((name, value)) = union.discriminator.as_ref().and_then(|d| Some((d, map.get(d)?))) else {
        return;
    };
    let at = at.field(name);
    let known = union.fields.iter().find(|(_, tag)| value.as_str() == Some(tag));
    let Some((named, _)) = known else {
        let tags = union.fields.iter().map(|(_, tag)| tag.as_str());
        errors.push_with(|| FieldError::not_supported(&at, value.clone(), tags));
        return;
    };
    if let [only] = set.as_slice()
        && *only != named.as_str()
    {
        let detail = format!("names the field {named}, but {only} is set");
        errors.push_with(|| FieldError::invalid(&at, value.clone(), detail));
    }
}
