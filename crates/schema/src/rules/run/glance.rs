//! Whether all rules about a value are kept, as quickly as it can be told.
//!
//! Nearly always they are, and then nobody needs to know where each value stands and what it was before.

use super::{Ready, Run};
use crate::plan::{Features, Node, Types};
use scantling_value::{Map, Value, deadline};

/// Whether a value was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Absent,
    Present,
}

impl Run<'_> {
    /// Whether all rules of a node and of those below it are kept; then they are paid for. Where that depends on an old
    /// value, on a broken rule being forgiven, or on anything else that takes a closer look, the answer is no.
    pub(super) fn keeps_all(&mut self, node: &Node, value: &Value, before: Before) -> bool {
        if value.is_null() {
            return true;
        }
        deadline::tick();
        if node.is(Features::RULES) && !self.keeps_here(node, value, before) {
            return false;
        }
        if !node.has_below(Features::RULES) {
            return true;
        }
        match (value, node.types()) {
            (Value::Object(map), Types::OBJECT) => self.keeps_members(node, map, before),
            (Value::Array(list), Types::ARRAY) => match node.items() {
                Some(items) if items.has(Features::RULES) => {
                    list.iter().all(|item| self.keeps_all(items, item, before))
                }
                _ => true,
            },
            (Value::Object(_) | Value::Array(_), _) => false,
            _ => true,
        }
    }

    fn keeps_members(&mut self, node: &Node, map: &Map, before: Before) -> bool {
        node.all_members(map.iter(), Features::RULES, |member| {
            // Rules see no more than the names of what stands in the metadata of a resource.
            let is_metadata = node.is_resource() && member.name == "metadata";
            !is_metadata && self.keeps_all(member.node, member.value, before)
        })
    }

    fn keeps_here(&mut self, node: &Node, value: &Value, before: Before) -> bool {
        let Some(ready) = node.rules().and_then(|rules| rules.ready(node.schema())) else {
            return true;
        };
        self.budget > 0
            && self.are_kept(ready, value)
            && (!ready.has_others || before == Before::Absent && self.need_an_old_value(node, ready))
    }

    /// Whether no rule runs without an old value that is not among those that are asked together.
    fn need_an_old_value(&self, node: &Node, ready: &Ready) -> bool {
        let rules = node.schema().rules.iter().zip(&ready.rules);
        rules.enumerate().all(|(index, (rule, compiled))| {
            ready.fused.include(index)
                || compiled.program.is_none()
                || (compiled.uses_old_self && !self.runs_without_old(rule))
        })
    }
}
