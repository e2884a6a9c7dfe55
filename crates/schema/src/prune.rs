//! Pruning: removes undeclared fields.

use crate::plan::{Features, FieldLookup, PlanNode};
use crate::structural::Additional;
use scantling_value::{Finding, FindingList, Map, Path, Value, deadline};
use std::cmp::Ordering;
use std::sync::Arc;

/// The options of pruning.
#[derive(Debug, Default)]
pub struct PruneOptions {
    /// The treatment of `null`s that are neither valid nor replaced by a default.
    pub nulls: NullPolicy,
    /// The reporting of unknown fields.
    pub unknown: UnknownFields,
}

/// The treatment of `null` where a schema does not allow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NullPolicy {
    /// Kept.
    #[default]
    Keep,
    /// Fields are removed unless they have a default. Elements of lists stay.
    Drop,
}

/// The reporting of unknown fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// Not reported.
    #[default]
    Ignore,
    /// Listed by path, in order.
    List,
}

/// Whether an object is a whole resource, whose `apiVersion`, `kind` and `metadata` need no schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRole {
    /// An object of a request or of the store.
    Resource,
    /// A part of an object, such as a default.
    Part,
}

/// Removes unknown fields. Returns them in order if requested.
pub fn prune(node: &PlanNode, value: &mut Value, place: ValueRole, options: &PruneOptions) -> FindingList {
    let mut pruner = Pruner {
        options,
        found: FindingList::new(),
    };
    pruner.value(
        Some(node),
        value,
        place == ValueRole::Resource,
        UnlistedMembers::Remove,
        &Path::ROOT,
    );
    pruner.found.sort();
    pruner.found
}

/// Returns whether a field of a resource needs no schema.
pub(crate) fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// The treatment of undeclared members.
#[derive(Clone, Copy, PartialEq)]
enum UnlistedMembers {
    Remove,
    Keep,
}

/// An object being pruned.
struct PrunedObject<'a> {
    node: &'a PlanNode,
    resource: bool,
    unlisted: UnlistedMembers,
    at: &'a Path<'a>,
}

struct Pruner<'o> {
    options: &'o PruneOptions,
    found: FindingList,
}

impl Pruner<'_> {
    fn value(
        &mut self,
        node: Option<&PlanNode>,
        value: &mut Value,
        resource: bool,
        unlisted: UnlistedMembers,
        at: &Path<'_>,
    ) {
        // This concerns only the members of this value; declared members are pruned by their own schemas.
        let keeps = node.is_some_and(|n| n.has_here(Features::PRESERVE));
        let unlisted = if keeps { UnlistedMembers::Keep } else { unlisted };
        match (value, node) {
            (Value::Object(map), Some(node)) => self.object(node, map, resource, unlisted, at),
            (Value::Object(map), None) if unlisted == UnlistedMembers::Remove => {
                for name in map.keys() {
                    self.record(at, name);
                }
                *map = Map::new();
            }
            (Value::Array(list), node) => {
                // A list that preserves unknown fields preserves those of its elements.
                let items = node.and_then(|n| n.items()).map(|n| &**n);
                if items.is_none() && unlisted == UnlistedMembers::Keep {
                    return;
                }
                deadline::tick_for(list.len());
                for (i, item) in list.iter_mut().enumerate() {
                    if matches!(item, Value::Object(_) | Value::Array(_)) {
                        self.value(items, item, false, unlisted, &at.index(i));
                    }
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        node: &PlanNode,
        map: &mut Map,
        resource: bool,
        unlisted: UnlistedMembers,
        at: &Path<'_>,
    ) {
        let place = PrunedObject {
            node,
            resource: resource || node.has_here(Features::EMBEDDED),
            unlisted,
            at,
        };
        deadline::tick_for(map.len());
        let mut members = FieldLookup::new(node);
        // Few objects have anything to remove, so the first pass only looks; the first removal starts the
        // second.
        let first = map.iter_mut().position(|(name, value)| {
            let is_declared = members.find(name).is_some();
            // A declared scalar has nothing to prune.
            let is_simple = !matches!(value, Value::Null | Value::Object(_) | Value::Array(_));
            if is_simple && is_declared {
                return false;
            }
            let field = members.found().filter(|_| is_declared);
            !self.prune_member(&place, field, name, value)
        });
        if let Some(first) = first {
            self.remove_from(&place, members, map, first);
        }
    }

    /// Removes the member at a position and prunes those after it.
    #[cold]
    fn remove_from(
        &mut self,
        place: &PrunedObject<'_>,
        mut members: FieldLookup<'_>,
        map: &mut Map,
        first: usize,
    ) {
        let mut position = 0;
        map.retain(|name, value| {
            let keeps = match position.cmp(&first) {
                Ordering::Less => true,
                Ordering::Equal => false,
                Ordering::Greater => self.prune_member(place, members.declared(name), name, value),
            };
            position += 1;
            keeps
        });
    }

    /// Prunes a member; returns whether it stays.
    #[inline]
    fn prune_member(
        &mut self,
        place: &PrunedObject<'_>,
        field: Option<&Arc<PlanNode>>,
        name: &str,
        value: &mut Value,
    ) -> bool {
        let PrunedObject {
            node,
            resource,
            unlisted,
            at,
        } = *place;
        let child = field.or(node.additional());
        let drops_nulls = self.options.nulls == NullPolicy::Drop;
        if drops_nulls && value.is_null() && child.is_some_and(|child| child.drops_null()) {
            return false;
        }
        if resource && is_meta(name) {
            // Nothing is pruned in these fields, but their nulls are dropped.
            if let Some(child) = child
                && drops_nulls
            {
                drop_nulls(child, value);
            }
            return true;
        }
        if child.is_none() && node.schema().additional.is_none() {
            if unlisted == UnlistedMembers::Keep {
                return true;
            }
            // kube-apiserver does not report these fields at the top, even where it removes them.
            if !at.is_root() || !is_meta(name) {
                self.record(at, name);
            }
            return false;
        }
        if matches!(value, Value::Object(_) | Value::Array(_)) {
            // Preserved undeclared values are not pruned inside.
            let child = child.map(|child| &**child);
            debug_assert!(child.is_some() || matches!(node.schema().additional, Some(Additional::Any(_))));
            // `additionalProperties: true` keeps the value but declares nothing inside it.
            self.value(child, value, false, UnlistedMembers::Remove, &at.field(name));
        }
        true
    }

    fn record(&mut self, at: &Path<'_>, name: &str) {
        if self.options.unknown == UnknownFields::List {
            self.found.push_with(|| Finding::pruned(&at.field(name)));
        }
    }
}

/// Removes `null` members that are neither allowed nor have a default.
fn drop_nulls(node: &PlanNode, value: &mut Value) {
    deadline::tick();
    match value {
        Value::Object(map) => {
            let mut members = FieldLookup::new(node);
            map.retain(|name, value| {
                let Some(child) = members.declared(name).or(node.additional()) else {
                    return true;
                };
                if value.is_null() && child.drops_null() {
                    return false;
                }
                drop_nulls(child, value);
                true
            });
        }
        Value::Array(list) => {
            if let Some(items) = node.items() {
                list.iter_mut().for_each(|item| drop_nulls(items, item));
            }
        }
        _ => {}
    }
}
