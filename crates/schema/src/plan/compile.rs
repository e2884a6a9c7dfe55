//! Compiles structural schemas to plan nodes.

use super::members::FieldHeader;
use super::{FastCheck, Features, OutOfTypeBounds, Plan, PlanNode, PlanPurpose, Types, ValueChecks, weight};
use crate::enumeration::EnumSet;
use crate::format::Format;
use crate::meta::{self, MalformedFields};
use crate::pattern::Pattern;
use crate::prune;
use crate::rules::{self, Environments, LazyRules, RuleScope};
use crate::structural::{Additional, ListType, Structural, Type, ValueValidation};
use crate::validate::number;
use foldhash::HashMap;
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_value::{Path, Str, Value};
use std::sync::{Arc, Weak};

/// Compiles plans, and caches nodes and patterns that plans of different CRDs share.
///
/// It lives as long as the CRDs of a process. Schemas come from one
/// [`Interner`](crate::structural::Interner), so equal schemas have the same address, and one node.
#[derive(Debug)]
pub struct PlanCompiler {
    /// Nodes by the address of their schema. A node keeps its schema alive, so the address of a live node
    /// belongs to that schema; entries of dropped nodes are replaced or swept.
    nodes: HashMap<(usize, RuleScope), Weak<PlanNode>>,
    patterns: HashMap<Str, Weak<Pattern>>,
    rules: Arc<rules::RuleContext>,
    purpose: PlanPurpose,
}

impl Default for PlanCompiler {
    fn default() -> Self {
        Self::for_version(KubernetesVersion::LATEST)
    }
}

impl PlanCompiler {
    /// Creates a compiler with an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a compiler with the CEL environments of a Kubernetes version.
    pub fn for_version(version: KubernetesVersion) -> Self {
        Self::with(Environments::for_version(version), PlanPurpose::Values)
    }

    /// Creates a compiler for schemas whose defaults are to be validated.
    pub(crate) fn for_defaults(environments: &Environments) -> Self {
        Self::with(environments.clone(), PlanPurpose::Defaults)
    }

    fn with(environments: Environments, purpose: PlanPurpose) -> Self {
        PlanCompiler {
            nodes: HashMap::default(),
            patterns: HashMap::default(),
            rules: Arc::new(rules::RuleContext::new(environments)),
            purpose,
        }
    }

    /// Compiles the schema of a version.
    pub fn compile(&mut self, schema: &Arc<Structural>) -> Plan {
        Plan {
            root: self.node(schema, RuleScope::Root),
        }
    }

    /// The number of live nodes.
    pub fn len(&self) -> usize {
        self.nodes.values().filter(|n| n.strong_count() > 0).count()
    }

    /// Returns whether there are no live nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops cache entries that no plan uses.
    pub fn sweep(&mut self) {
        self.nodes.retain(|_, n| n.strong_count() > 0);
        self.patterns.retain(|_, p| p.strong_count() > 0);
        self.rules.sweep();
    }

    fn node(&mut self, schema: &Arc<Structural>, scope: RuleScope) -> Arc<PlanNode> {
        let address = (Arc::as_ptr(schema).addr(), scope);
        if let Some(known) = self.nodes.get(&address).and_then(Weak::upgrade) {
            return known;
        }
        let node = Arc::new(self.build(schema, scope, None));
        self.nodes.insert(address, Arc::downgrade(&node));
        node
    }

    /// The node of a sub-schema; `metadata` is its path within the metadata of a resource. The treatment of a
    /// default depends on that, so such a node is not shared.
    fn child(&mut self, schema: &Arc<Structural>, metadata: Option<&Path<'_>>) -> Arc<PlanNode> {
        match metadata.filter(|_| has_defaults(schema)) {
            Some(_) => Arc::new(self.build(schema, RuleScope::Nested, metadata)),
            None => self.node(schema, RuleScope::Nested),
        }
    }

    fn build(&mut self, schema: &Arc<Structural>, scope: RuleScope, metadata: Option<&Path<'_>>) -> PlanNode {
        let is_resource = scope == RuleScope::Root || schema.is_embedded_resource();
        let property = |(name, s): &(Str, Arc<Structural>)| match metadata {
            Some(at) => self.child(s, Some(&at.field(name))),
            None if is_resource && prune::is_meta(name) => self.child(s, Some(&Path::ROOT.field(name))),
            None => self.child(s, None),
        };
        let properties = schema.properties.iter().map(property).collect::<Box<[_]>>();
        // Any key and any index do: only the types along the path matter.
        let entry = metadata.map(|at| at.key("*"));
        let additional = schema.additional_schema();
        let additional = additional.map(|s| self.child(s, entry.as_ref()));
        let element = metadata.map(|at| at.index(0));
        let items = schema.items.as_ref();
        let items = items.map(|s| self.child(s, element.as_ref()));
        let types = types(schema, self.purpose);
        let checks = schema
            .validation
            .as_deref()
            .map(|v| Box::new(self.checks(v, types)));
        let limits = schema.validation.as_deref().zip(checks.as_deref());
        let fast_check = FastCheck::new(types, limits);

        let mut here = Features::default();
        here.set(Features::DEFAULT, schema.default.is_some());
        here.set(
            Features::KEYED,
            matches!(schema.list_type(), Some(ListType::Set | ListType::Map)),
        );
        here.set(Features::EMBEDDED, schema.is_embedded_resource());
        let visible = rules::is_visible(schema);
        here.set(Features::RULES, visible && !schema.rules.is_empty());
        here.set(Features::MUTABILITY, schema.mutability().is_some());
        here.set(Features::UNIONS, !schema.unions().is_empty());
        here.set(
            Features::LIMITS,
            // `additionalProperties: false` refuses members even without other keywords.
            !types.is_empty() || checks.is_some() || schema.additional.is_some(),
        );
        here.set(Features::PRESERVE, schema.preserves_unknown_fields());
        here.set(
            Features::OPEN,
            schema.preserves_unknown_fields()
                || schema.is_embedded_resource()
                || schema.additional == Some(Additional::Any(true)),
        );
        let mut below = Features::default();
        for property in &properties {
            below.add(property.within);
        }
        // kube-apiserver compiles no rules below a value that expressions cannot see.
        // Before the other children are added, because this concerns only fields.
        if !rules::shows_fields(schema) {
            below.remove(Features::RULES);
        }
        for child in additional.iter().chain(&items) {
            below.add(child.within);
        }
        if !visible {
            below.remove(Features::RULES);
        }
        let mut within = here;
        within.add(below);
        let rules = here.contains(Features::RULES);
        let rules = rules.then(|| Box::new(LazyRules::new(Arc::clone(&self.rules), scope)));
        let mut node = PlanNode {
            schema: Arc::clone(schema),
            types,
            fast_check,
            here,
            below,
            within,
            names: names(schema, &properties),
            defaults: slots(&properties, |node| node.default().is_some()),
            properties,
            additional,
            items,
            checks,
            rules,
            scope,
            weight: 0,
            pruned_default: None,
        };
        node.weight = weight::weight_of_node(&node);
        // Last, because pruning walks the finished node.
        node.pruned_default = pruned_default(&node, metadata);
        node
    }

    fn checks(&mut self, v: &ValueValidation, types: Types) -> ValueChecks {
        let mut branches = |list: &[Arc<Structural>]| -> Box<[Arc<PlanNode>]> {
            list.iter().map(|s| self.branch(s)).collect()
        };
        let (all_of, any_of, one_of) = (branches(&v.all_of), branches(&v.any_of), branches(&v.one_of));
        let not = v.not.as_ref().map(|s| self.branch(s));
        // kube-apiserver ignores formats that it does not support for a type, and supports none for unknown
        // types.
        let known = v.unknown_type.is_empty() || self.purpose == PlanPurpose::Defaults;
        let format = Some(&v.format).filter(|_| known);
        let format = format.and_then(|format| Format::parse(format, types, self.purpose));
        let odd = |bound: Option<crate::structural::EqFloat>| {
            bound.is_some_and(|n| !number::in_range(&Value::Float(n.0), types, format.as_ref()))
        };
        let out_of_type_bounds = OutOfTypeBounds {
            multiple_of: odd(v.multiple_of),
            minimum: odd(v.minimum),
            maximum: odd(v.maximum),
        };
        ValueChecks {
            pattern: (!v.pattern.is_empty()).then(|| self.pattern(&v.pattern)),
            junctors: !(all_of.is_empty() && any_of.is_empty() && one_of.is_empty() && not.is_none()),
            strings: v.max_length.is_some() || v.min_length.is_some() || !v.pattern.is_empty(),
            out_of_type_bounds,
            listed: (!v.enumeration.is_empty()).then(|| EnumSet::new(&v.enumeration)),
            format,
            all_of,
            any_of,
            one_of,
            not,
        }
    }

    /// The node of a schema in a junctor.
    fn branch(&mut self, schema: &Arc<Structural>) -> Arc<PlanNode> {
        match self.purpose {
            PlanPurpose::Values => self.node(schema, RuleScope::Nested),
            PlanPurpose::Defaults => self.node(&without_closed_maps(schema), RuleScope::Nested),
        }
    }

    fn pattern(&mut self, text: &Str) -> Arc<Pattern> {
        if let Some(known) = self.patterns.get(text).and_then(Weak::upgrade) {
            return known;
        }
        let pattern = Arc::new(Pattern::new(text.clone()));
        self.patterns.insert(text.clone(), Arc::downgrade(&pattern));
        pattern
    }
}

fn names(schema: &Structural, properties: &[Arc<PlanNode>]) -> Box<[FieldHeader]> {
    let required = schema.validation.as_deref().map_or(&[][..], |v| &v.required);
    let names = schema.properties.iter().map(|(name, _)| name);
    let known = |(name, node): (&Str, &Arc<PlanNode>)| FieldHeader::new(name, node, required.contains(name));
    names.zip(properties).map(known).collect()
}

fn slots(nodes: &[Arc<PlanNode>], test: impl Fn(&PlanNode) -> bool) -> Box<[u32]> {
    let found = (0u32..).zip(nodes).filter(|(_, node)| test(node));
    found.map(|(slot, _)| slot).collect()
}

/// The schema without `additionalProperties: false`, the only value that junctors allow.
fn without_closed_maps(schema: &Arc<Structural>) -> Arc<Structural> {
    let property = |(name, s): &(Str, Arc<Structural>)| (name.clone(), without_closed_maps(s));
    Arc::new(Structural {
        additional: None,
        properties: schema.properties.iter().map(property).collect(),
        items: schema.items.as_ref().map(without_closed_maps),
        ..Structural::clone(schema)
    })
}

fn has_defaults(schema: &Structural) -> bool {
    let mut below = schema
        .properties
        .iter()
        .map(|(_, s)| s)
        .chain(schema.additional_schema())
        .chain(&schema.items);
    schema.default.is_some() || below.any(|s| has_defaults(s))
}

fn pruned_default(node: &PlanNode, metadata: Option<&Path<'_>>) -> Option<Box<Value>> {
    let declared = node.declared_default()?;
    if let Some(at) = metadata {
        let kept = meta::typed_fields(declared, at);
        return (kept != *declared).then(|| Box::new(kept));
    }
    if !matches!(declared, Value::Array(_) | Value::Object(_)) {
        return None;
    }
    let mut pruned = declared.clone();
    // Never fails: malformed metadata is dropped.
    let _ = meta::coerce_embedded(node, &mut pruned, MalformedFields::Drop, &Path::ROOT);
    prune::prune(
        node,
        &mut pruned,
        prune::ValueRole::Part,
        &prune::PruneOptions::default(),
    );
    (pruned != *declared).then(|| Box::new(pruned))
}

fn types(schema: &Structural, purpose: PlanPurpose) -> Types {
    if schema.is_int_or_string() && purpose == PlanPurpose::Values {
        return Types::INT_OR_STRING;
    }
    match schema.ty {
        None => Types::default(),
        Some(Type::Object) => Types::OBJECT,
        Some(Type::Array) => Types::ARRAY,
        Some(Type::String) => Types::STRING,
        Some(Type::Integer) => Types::INTEGER,
        Some(Type::Number) => Types::NUMBER,
        Some(Type::Boolean) => Types::BOOLEAN,
    }
}
