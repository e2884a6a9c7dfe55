//! Whether all rules about a value are kept, as quickly as it can be told.
//!
//! Nearly always they are, and then nobody needs to know where each value stands and what it was before.

use super::{CompiledRules, RuleRunner};
use crate::plan::{Features, PlanNode, Types};
use scantling_value::{Map, Value, deadline};

/// Whether a value was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Absent,
    Present,
}

impl RuleRunner<'_> {
    /// Returns whether all rules of a node and of those below it hold; then their cost is counted. False
    /// where that depends on an old value, on ratcheting, or on anything else that the full path decides.
    pub(super) fn fast_path(&mut self, node: &PlanNode, value: &Value, before: Before) -> bool {
        if value.is_null() {
            return true;
        }
        deadline::tick();
        if node.is(Features::RULES) && !self.node_fast_path(node, value, before) {
            return false;
        }
        if !node.has_below(Features::RULES) {
            return true;
        }
        match (value, node.types()) {
            (Value::Object(map), Types::OBJECT) => self.members_fast_path(node, map, before),
            (Value::Array(list), Types::ARRAY) => match node.items() {
                Some(items) if items.has(Features::RULES) => {
                    list.iter().all(|item| self.fast_path(items, item, before))
                }
                _ => true,
            },
            (Value::Object(_) | Value::Array(_), _) => false,
            _ => true,
        }
    }

    fn members_fast_path(&mut self, node: &PlanNode, map: &Map, before: Before) -> bool {
        node.all_members(map.iter(), Features::RULES, |member| {
            // Rules see no more than the names of what stands in the metadata of a resource.
            let is_metadata = node.is_resource() && member.name == "metadata";
            !is_metadata && self.fast_path(member.node, member.value, before)
        })
    }

    fn node_fast_path(&mut self, node: &PlanNode, value: &Value, before: Before) -> bool {
        let Some(compiled_rules) = node.rules().and_then(|rules| rules.compiled(node.schema())) else {
            return true;
        };
        self.budget > 0
            && self.all_hold(compiled_rules, value)
            && (!compiled_rules.has_others
                || before == Before::Absent && self.all_require_old_value(node, compiled_rules))
    }

    /// Returns whether no rule runs without an old value that is not among those that are asked together.
    fn all_require_old_value(&self, node: &PlanNode, compiled_rules: &CompiledRules) -> bool {
        let rules = node.schema().rules.iter().zip(&compiled_rules.rules);
        rules.enumerate().all(|(index, (rule, compiled))| {
            compiled_rules.fused.include(index)
                || compiled.program.is_none()
                || (compiled.uses_old_self && !self.runs_without_old(rule))
        })
    }
}
