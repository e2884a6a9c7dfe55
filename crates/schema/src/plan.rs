//! The compiled form of an accepted schema.
//!
//! A [`Plan`] is immutable, cheap to clone and safe to share. It is a tree of [`PlanNode`]s parallel to the
//! structural schema. A node adds precompiled checks (patterns, formats, enumerations, numeric bounds). It also
//! has a bit set of the algorithms with work at it or below it: a walk skips the other parts of an object. Equal schemas share one node across all CRDs of a process (see [`PlanCompiler`]).

mod compile;
mod fast_check;
mod members;
mod weight;

pub use compile::PlanCompiler;
pub(crate) use fast_check::FastCheck;
pub(crate) use members::{FieldLookup, path};

use crate::enumeration::EnumSet;
use crate::format::Format;
use crate::pattern::Pattern;
use crate::rules::{LazyRules, RuleScope};
use crate::structural::{ListType, Structural, ValueValidation};
use members::FieldHeader;
use scantling_value::{Str, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// The compiled schema of one version of a CRD.
#[derive(Clone, Debug)]
pub struct Plan {
    root: Arc<PlanNode>,
}

impl Plan {
    /// The root of the schema.
    pub fn root(&self) -> &Arc<PlanNode> {
        &self.root
    }

    /// Compiles the rules that have not been used yet.
    pub fn compile_rules(&self) {
        for node in self.nodes(Features::RULES) {
            if let Some(rules) = node.rules() {
                rules.compiled(&node.schema);
            }
        }
    }

    /// Returns whether any default contains fields that its schema does not declare.
    pub(crate) fn has_unpruned_default(&self) -> bool {
        self.nodes(Features::DEFAULT)
            .any(|node| node.pruned_default.is_some())
    }

    /// The nodes at or below which an algorithm has work, each once.
    fn nodes(&self, feature: Features) -> impl Iterator<Item = &PlanNode> {
        // Nodes are shared, so the walk remembers them.
        let mut seen = HashSet::new();
        let mut open = vec![&*self.root];
        std::iter::from_fn(move || {
            loop {
                let node = open.pop()?;
                if node.has(feature) && seen.insert(std::ptr::from_ref(node).addr()) {
                    let below = node.properties.iter().chain(&node.additional).chain(&node.items);
                    open.extend(below.map(|n| &**n));
                    return Some(node);
                }
            }
        })
    }
}

/// One compiled sub-schema.
#[derive(Debug)]
pub struct PlanNode {
    /// The schema that this node was compiled from.
    schema: Arc<Structural>,
    /// The allowed types; empty if any type is allowed.
    types: Types,
    /// The fast check.
    fast_check: FastCheck,
    /// The algorithms with work at this node.
    here: Features,
    /// The algorithms with work below this node.
    below: Features,
    /// The algorithms with work at this node or below it.
    within: Features,
    /// The nodes of `schema.properties`, slot by slot.
    properties: Box<[Arc<PlanNode>]>,
    /// The headers of `schema.properties`, slot by slot: looking up a name reads little else.
    names: Box<[FieldHeader]>,
    /// The slots of fields with a default.
    defaults: Box<[u32]>,
    /// The node of undeclared members.
    additional: Option<Arc<PlanNode>>,
    /// The node of list elements.
    items: Option<Arc<PlanNode>>,
    /// The value constraints; `None` if there are none.
    checks: Option<Box<ValueChecks>>,
    /// The rules; `None` if there are none.
    rules: Option<Box<LazyRules>>,
    /// The scope of the schema.
    scope: RuleScope,
    /// The maximum number of checks per value.
    weight: u32,
    /// The default without undeclared fields, if it has any: CRDs that were accepted before this was refused
    /// may have such defaults. `null` if nothing remains.
    pruned_default: Option<Box<Value>>,
}

impl PlanNode {
    /// The schema that this node was compiled from.
    pub fn schema(&self) -> &Arc<Structural> {
        &self.schema
    }

    /// The maximum number of checks per value at this node or below it: an estimate of the cost of an object
    /// per byte.
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// Returns whether there are rules at this node or below it.
    pub fn has_rules(&self) -> bool {
        self.has(Features::RULES)
    }

    /// Returns whether updates are restricted at this node or below it, independent of the values.
    pub fn restricts_updates(&self) -> bool {
        self.has(Features::MUTABILITY)
    }

    /// Returns whether defaults may contain embedded objects, at this node or below it.
    pub fn has_embedded_defaults(&self) -> bool {
        self.has(Features::DEFAULT) && self.has(Features::EMBEDDED)
    }

    /// Returns whether this algorithm has work at this node or below it.
    pub(crate) fn has(&self, feature: Features) -> bool {
        self.within.contains(feature)
    }

    /// Returns whether this algorithm has work below this node.
    pub(crate) fn has_below(&self, feature: Features) -> bool {
        self.below.contains(feature)
    }

    /// Returns whether this algorithm has work at this node itself.
    pub(crate) fn has_here(&self, feature: Features) -> bool {
        self.here.contains(feature)
    }

    pub(crate) fn types(&self) -> Types {
        self.types
    }

    pub(crate) fn fast_check(&self) -> FastCheck {
        self.fast_check
    }

    pub(crate) fn rules(&self) -> Option<&LazyRules> {
        self.rules.as_deref()
    }

    /// Returns whether values are whole resources, with metadata.
    pub(crate) fn is_resource(&self) -> bool {
        self.scope == RuleScope::Root || self.has_here(Features::EMBEDDED)
    }

    pub(crate) fn checks(&self) -> Option<&ValueChecks> {
        self.checks.as_deref()
    }

    /// The constraints as the schema declares them; [`PlanNode::checks`] has what was precompiled of them.
    pub(crate) fn limits(&self) -> Option<&ValueValidation> {
        self.schema.validation.as_deref()
    }

    pub(crate) fn items(&self) -> Option<&Arc<PlanNode>> {
        self.items.as_ref()
    }

    pub(crate) fn additional(&self) -> Option<&Arc<PlanNode>> {
        self.additional.as_ref()
    }

    /// Returns whether equal values always count as unchanged. Values with undeclared members do not, nor do
    /// keyed lists whose elements lack keys.
    pub(crate) fn equal_means_unchanged(&self) -> bool {
        !self.has(Features::OPEN) && !self.has(Features::KEYED)
    }

    /// The declared fields, sorted by name.
    pub(crate) fn fields(&self) -> impl ExactSizeIterator<Item = (&Str, &Arc<PlanNode>)> {
        self.schema
            .properties
            .iter()
            .map(|(name, _)| name)
            .zip(self.properties.iter())
    }

    /// The fields with a default, and their defaults.
    pub(crate) fn defaulted(&self) -> impl Iterator<Item = (&Str, &PlanNode, &Value)> {
        self.defaults.iter().filter_map(|slot| {
            let slot = usize::try_from(*slot).ok()?;
            let (name, _) = self.schema.properties.get(slot)?;
            let node = self.properties.get(slot)?;
            Some((name, &**node, node.default()?))
        })
    }

    /// A declared field.
    pub fn property(&self, name: &str) -> Option<&Arc<PlanNode>> {
        let slot = self
            .schema
            .properties
            .binary_search_by(|(k, _)| k.as_str().cmp(name))
            .ok()?;
        self.properties.get(slot)
    }

    /// The key fields, if this is a keyed list.
    pub(crate) fn list_keys(&self) -> Option<&[Str]> {
        let keyed = self.types.contains(Types::ARRAY) && self.schema.list_type() == Some(ListType::Map);
        Some(self.schema.list_map_keys()).filter(|keys| keyed && !keys.is_empty())
    }

    /// The default of an absent value.
    pub(crate) fn default(&self) -> Option<&Value> {
        let pruned = self.pruned_default.as_deref();
        // If pruning left nothing of the default, it is `null` and counts as absent.
        pruned
            .or_else(|| self.declared_default())
            .filter(|default| !default.is_null())
    }

    /// The default as declared in the schema.
    pub(crate) fn declared_default(&self) -> Option<&Value> {
        self.schema
            .default
            .as_ref()
            .map(|json| &*json.0)
            .filter(|v| !v.is_null())
    }

    /// Returns whether a `null` here is neither a valid value nor replaced by a default.
    pub(crate) fn drops_null(&self) -> bool {
        !self.schema.nullable && self.default().is_none()
    }
}

/// The purpose of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanPurpose {
    /// Validation of objects.
    Values,
    /// Validation of the defaults of a CRD. kube-apiserver interprets the schema differently there:
    /// unsupported formats take part in the type check, int-or-string is not a type, and junctors do not
    /// close objects.
    Defaults,
}

/// The precompiled value constraints; plain numbers stay in the schema.
#[derive(Debug, Default)]
pub(crate) struct ValueChecks {
    /// `format`, if it has an effect.
    pub(crate) format: Option<Format>,
    /// `pattern`.
    pub(crate) pattern: Option<Arc<Pattern>>,
    /// True if there are limits on strings other than `format` and `enum`.
    pub(crate) strings: bool,
    /// True if there are junctors.
    pub(crate) junctors: bool,
    /// The bounds that are not values of the type themselves: every number is then an error.
    pub(crate) out_of_type_bounds: OutOfTypeBounds,
    /// `enum`, if there is one.
    pub(crate) listed: Option<EnumSet>,
    /// `allOf`, `anyOf`, `oneOf`.
    pub(crate) all_of: Box<[Arc<PlanNode>]>,
    pub(crate) any_of: Box<[Arc<PlanNode>]>,
    pub(crate) one_of: Box<[Arc<PlanNode>]>,
    /// `not`.
    pub(crate) not: Option<Arc<PlanNode>>,
}

impl ValueChecks {
    /// Returns whether every string passes the junctors. Those of int-or-string values say no more than that.
    pub(crate) fn pass_texts(&self) -> bool {
        let passes = |branch: &Arc<PlanNode>| branch.types == Types::STRING && branch.checks.is_none();
        !self.junctors
            || (self.all_of.is_empty()
                && self.one_of.is_empty()
                && self.not.is_none()
                && self.any_of.iter().any(passes))
    }

    /// Returns whether objects and lists are only constrained in their size and their parts.
    pub(crate) fn are_about_parts(&self) -> bool {
        !self.junctors && self.format.is_none() && self.listed.is_none()
    }

    /// Returns whether strings are only constrained in length.
    fn is_about_length(&self) -> bool {
        self.format.is_none() && self.pattern.is_none() && self.pass_texts() && self.listed.is_none()
    }
}

/// Bounds outside the range of their type and format.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutOfTypeBounds {
    pub(crate) multiple_of: bool,
    pub(crate) minimum: bool,
    pub(crate) maximum: bool,
}

/// A set of JSON types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NONE: Types = Types(0);
    pub(crate) const OBJECT: Types = Types(1);
    pub(crate) const ARRAY: Types = Types(2);
    pub(crate) const STRING: Types = Types(4);
    pub(crate) const INTEGER: Types = Types(8);
    pub(crate) const NUMBER: Types = Types(16);
    pub(crate) const BOOLEAN: Types = Types(32);
    pub(crate) const INT_OR_STRING: Types = Types(Self::INTEGER.0 | Self::STRING.0);

    /// The type of a value; `null` has none.
    #[inline]
    pub(crate) fn of_value(value: &Value) -> Types {
        match value {
            Value::Null => Types::NONE,
            Value::Bool(_) => Types::BOOLEAN,
            Value::Int(_) => Types::INTEGER,
            Value::Float(_) => Types::NUMBER,
            Value::String(_) => Types::STRING,
            Value::Array(_) => Types::ARRAY,
            Value::Object(_) => Types::OBJECT,
        }
    }

    /// Returns whether the sets have a type in common: `INT_OR_STRING` contains `STRING`, and the reverse.
    pub(crate) fn contains(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names as errors list them.
    pub(crate) fn names(self) -> &'static str {
        match self {
            Types::OBJECT => "object",
            Types::ARRAY => "array",
            Types::STRING => "string",
            Types::INTEGER => "integer",
            Types::NUMBER => "number",
            Types::BOOLEAN => "boolean",
            Types::INT_OR_STRING => "integer,string",
            _ => "",
        }
    }
}

/// A set of algorithms with work to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features(u16);

impl Features {
    /// There is a default.
    pub(crate) const DEFAULT: Features = Features(1);
    /// A list is a set or keyed.
    pub(crate) const KEYED: Features = Features(2);
    /// A resource is embedded.
    pub(crate) const EMBEDDED: Features = Features(4);
    /// There are rules.
    pub(crate) const RULES: Features = Features(8);
    /// Updates are restricted.
    pub(crate) const MUTABILITY: Features = Features(16);
    /// There are unions.
    pub(crate) const UNIONS: Features = Features(32);
    /// Values are limited.
    pub(crate) const LIMITS: Features = Features(64);
    /// Unknown fields stay.
    pub(crate) const PRESERVE: Features = Features(128);
    /// Objects may have members that no schema describes.
    pub(crate) const OPEN: Features = Features(256);

    /// Returns whether the sets have an algorithm in common.
    pub(crate) fn contains(self, other: Features) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn add(&mut self, other: Features) {
        self.0 |= other.0;
    }

    pub(crate) fn remove(&mut self, other: Features) {
        self.0 &= !other.0;
    }

    pub(crate) fn set(&mut self, other: Features, on: bool) {
        if on {
            self.add(other);
        }
    }
}

#[cfg(test)]
mod tests;
