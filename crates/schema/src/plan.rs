//! The compiled form of an accepted schema.
//!
//! A [`Plan`] is immutable, cheap to clone and safe to share. It is a tree of [`PlanNode`]s that runs beside the
//! structural schema: a node adds to its schema what checking wants ready (patterns, formats, enumerations, the
//! meaning of numeric bounds) and says in one word which algorithms have anything to do at it or below it, so that a
//! walk never enters a part of an object that it has no business in. Nodes of equal schemas are one node across all
//! definitions of a process (see [`PlanCompiler`]).

mod compile;
mod dump;
mod fast_path;
mod members;
mod weight;

pub use compile::PlanCompiler;
pub(crate) use fast_path::{CheckKind, FastCheck};
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

/// The compiled schema of one version of a definition.
#[derive(Clone, Debug)]
pub struct Plan {
    root: Arc<PlanNode>,
}

impl Plan {
    /// The root of the schema.
    pub fn root(&self) -> &Arc<PlanNode> {
        &self.root
    }

    /// Compiles the rules that no value has asked for yet.
    pub fn compile_rules(&self) {
        for node in self.nodes(Features::RULES) {
            if let Some(rules) = node.rules() {
                rules.compiled(&node.schema);
            }
        }
    }

    /// Whether any default holds what its scope does not.
    pub(crate) fn has_unpruned_default(&self) -> bool {
        self.nodes(Features::DEFAULT)
            .any(|node| node.pruned_default.is_some())
    }

    /// The nodes at or below which an algorithm has something to do, each once.
    fn nodes(&self, feature: Features) -> impl Iterator<Item = &PlanNode> {
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
    /// The types that a value may have; empty where any will do.
    types: Types,
    /// Which values fit without a closer look.
    fast_check: FastCheck,
    /// How the others are looked at.
    check_kind: CheckKind,
    /// What there is to do at this node.
    here: Features,
    /// What there is to do below this node.
    below: Features,
    /// What there is to do at this node or at any below it.
    within: Features,
    /// Beside `schema.properties`, slot by slot.
    properties: Box<[Arc<PlanNode>]>,
    /// What is known of `schema.properties` without a look at them, slot by slot: looking for a name reads little else.
    names: Box<[FieldHeader]>,
    /// The slots of the fields that have a default.
    defaults: Box<[u32]>,
    /// The values beside declared fields.
    additional: Option<Arc<PlanNode>>,
    /// The elements of a list.
    items: Option<Arc<PlanNode>>,
    /// The limits on values; absent where there are none.
    checks: Option<Box<ValueChecks>>,
    /// The rules; absent where there are none.
    rules: Option<Box<LazyRules>>,
    /// Where the schema stands.
    scope: RuleScope,
    /// How many checks are made of one value, at most.
    weight: u32,
    /// What the default is without the fields that its schema does not describe, where it has any: definitions that
    /// were accepted before that was refused may have such defaults. `null` where nothing remains.
    pruned_default: Option<Box<Value>>,
}

impl PlanNode {
    /// The schema that this node was compiled from.
    pub fn schema(&self) -> &Arc<Structural> {
        &self.schema
    }

    /// How many checks are made of one value at this node or below it, at most: an estimate of what an object costs per
    /// byte.
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// Whether there are rules at this node or below it.
    pub fn has_rules(&self) -> bool {
        self.has(Features::RULES)
    }

    /// Whether some updates are refused at this node or below it, whatever the values are.
    pub fn restricts_updates(&self) -> bool {
        self.has(Features::MUTABILITY)
    }

    /// Whether this algorithm has anything to do at this node or below it.
    pub(crate) fn has(&self, feature: Features) -> bool {
        self.within.contains(feature)
    }

    /// Whether this algorithm has anything to do below this node.
    pub(crate) fn has_below(&self, feature: Features) -> bool {
        self.below.contains(feature)
    }

    /// Whether this algorithm has anything to do at this very node.
    pub(crate) fn is(&self, feature: Features) -> bool {
        self.here.contains(feature)
    }

    pub(crate) fn types(&self) -> Types {
        self.types
    }

    pub(crate) fn fast_check(&self) -> FastCheck {
        self.fast_check
    }

    pub(crate) fn check_kind(&self) -> CheckKind {
        self.check_kind
    }

    pub(crate) fn rules(&self) -> Option<&LazyRules> {
        self.rules.as_deref()
    }

    /// Whether values are whole resources, with metadata.
    pub(crate) fn is_resource(&self) -> bool {
        self.scope == RuleScope::Root || self.is(Features::EMBEDDED)
    }

    pub(crate) fn checks(&self) -> Option<&ValueChecks> {
        self.checks.as_deref()
    }

    pub(crate) fn limits(&self) -> Option<&ValueValidation> {
        self.schema.validation.as_deref()
    }

    pub(crate) fn items(&self) -> Option<&Arc<PlanNode>> {
        self.items.as_ref()
    }

    pub(crate) fn additional(&self) -> Option<&Arc<PlanNode>> {
        self.additional.as_ref()
    }

    /// Whether values that are equal always count as unchanged. Those with members that no schema describes do not, nor
    /// do keyed lists whose elements lack keys.
    pub(crate) fn equality_tells(&self) -> bool {
        !self.has(Features::OPEN) && !self.has(Features::KEYED)
    }

    /// The declared fields in order of their names.
    pub(crate) fn fields(&self) -> impl ExactSizeIterator<Item = (&Str, &Arc<PlanNode>)> {
        self.schema
            .properties
            .iter()
            .map(|(name, _)| name)
            .zip(self.properties.iter())
    }

    /// The fields that have a default, with their defaults.
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

    /// What stands in for an absent value.
    pub(crate) fn default(&self) -> Option<&Value> {
        let pruned = self.pruned_default.as_deref();
        pruned
            .or_else(|| self.declared_default())
            .filter(|default| !default.is_null())
    }

    /// The default as the schema declares it.
    pub(crate) fn declared_default(&self) -> Option<&Value> {
        self.schema
            .default
            .as_ref()
            .map(|json| &*json.0)
            .filter(|v| !v.is_null())
    }

    /// Whether a `null` here is neither a value nor a request for the default.
    pub(crate) fn drops_null(&self) -> bool {
        !self.schema.nullable && self.default().is_none()
    }
}

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanPurpose {
    /// To check objects.
    Values,
    /// To check the defaults of a definition. Servers do so with another reading of the schema: formats that they do
    /// not support take part in the check of types, integer-or-string is no type, and junctors close no objects.
    Defaults,
}

/// The limits on values in the form in which they are checked; plain numbers stay in the schema.
#[derive(Debug, Default)]
pub(crate) struct ValueChecks {
    /// `format`, where it means something.
    pub(crate) format: Option<Format>,
    /// `pattern`.
    pub(crate) pattern: Option<Arc<Pattern>>,
    /// Whether there are limits on strings other than `format` and `enum`.
    pub(crate) strings: bool,
    /// Whether there are junctors.
    pub(crate) junctors: bool,
    /// Which bounds are themselves no values of the type: every number is then an error.
    pub(crate) out_of_type_bounds: OutOfTypeBounds,
    /// The strings of `enum`.
    pub(crate) listed: EnumSet,
    /// `allOf`, `anyOf`, `oneOf`.
    pub(crate) all_of: Box<[Arc<PlanNode>]>,
    pub(crate) any_of: Box<[Arc<PlanNode>]>,
    pub(crate) one_of: Box<[Arc<PlanNode>]>,
    /// `not`.
    pub(crate) not: Option<Arc<PlanNode>>,
}

impl ValueChecks {
    /// Whether every text passes the junctors. Those of most values that are integers or strings say no more than that.
    fn pass_texts(&self) -> bool {
        let passes = |branch: &Arc<PlanNode>| branch.types == Types::STRING && branch.checks.is_none();
        !self.junctors
            || (self.all_of.is_empty()
                && self.one_of.is_empty()
                && self.not.is_none()
                && self.any_of.iter().any(passes))
    }

    /// Whether no more is asked of a text than that it has so many characters.
    fn is_about_length(&self, limits: &ValueValidation) -> bool {
        self.format.is_none() && self.pattern.is_none() && !self.junctors && limits.enumeration.is_empty()
    }
}

/// Bounds that lie outside of the type and format which they bound.
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

    pub(crate) fn contains(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names as an error lists them.
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

/// A set of algorithms that have something to do.
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
