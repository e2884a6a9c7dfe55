//! The traversal that estimates a checked expression.

use super::path::SizePath;
use super::{Bounds, CallEstimate, LIST_COST, MAP_COST, MapMembers, Operand, STRUCT_COST, TEXT_FACTOR};
use crate::ast::{Comprehension, Expr, ExprId, ExprKind, Literal};
use crate::check::{CheckedExpr, Reference};
use crate::overload::{Estimate, ResultSize};
use crate::shape::Shape;
use crate::types::CelType;
use std::sync::Arc;

/// The traversal, with the facts about nodes indexed by `ExprId`.
pub(super) struct CostEstimator<'c> {
    checked: &'c CheckedExpr,
    root: Option<&'c Shape>,
    members: MapMembers,
    nodes: Vec<ExprFacts>,
    locals: Vec<LoopVariable>,
}

#[derive(Clone, Default)]
struct ExprFacts {
    path: SizePath,
    size: Option<Bounds>,
    entries: Option<EntrySizes>,
}

/// The sizes of the entries of a list or map.
#[derive(Clone, Copy)]
struct EntrySizes {
    container: ContainerKind,
    key: Bounds,
    value: Bounds,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ContainerKind {
    List,
    Map,
    Other,
}

/// A variable of a comprehension.
struct LoopVariable {
    name: Arc<str>,
    path: SizePath,
    size: Option<Bounds>,
    entries: Option<EntrySizes>,
}

/// The part of an entry that a variable is bound to.
#[derive(Clone, Copy)]
enum EntryPart {
    /// The index of a list, the key of a map.
    Key,
    /// The element of a list, the value of a map.
    Value,
    /// The element of a list or key of a map, with a single variable.
    Single,
}

/// The neutral element of [`Bounds::or`].
const EMPTY_BOUNDS: Bounds = Bounds {
    min: u64::MAX,
    max: 0,
};

impl<'c> CostEstimator<'c> {
    pub(super) fn new(checked: &'c CheckedExpr, root: Option<&'c Shape>, members: MapMembers) -> Self {
        CostEstimator {
            checked,
            root,
            members,
            nodes: vec![ExprFacts::default(); checked.ast.id_limit()],
            locals: Vec::new(),
        }
    }

    pub(super) fn cost(&mut self, e: &'c Expr) -> Bounds {
        match &e.kind {
            ExprKind::Literal(_) => Bounds::exactly(0),
            ExprKind::Ident(name) => {
                // A loop variable stands for the elements of its range, so it inherits a path into the schema.
                let path = match self.local(e) {
                    Some(local) => local.path.clone(),
                    None => SizePath::variable(name),
                };
                self.set_path(e.id, path);
                Bounds::exactly(1)
            }
            // A presence test is free.
            ExprKind::Select {
                operand, test: true, ..
            } => self.cost(operand),
            ExprKind::Select {
                operand,
                field,
                test: false,
            } => {
                let mut cost = self.cost(operand);
                // A selection from a dynamic operand costs nothing here, although it costs 1 at run time: cel-go's
                // estimator only counts operands with a known structure.
                if matches!(
                    self.checked.ty(operand.id).unwrapped(),
                    CelType::Map(_) | CelType::Object(_) | CelType::Message(_)
                ) {
                    cost = cost.plus(Bounds::exactly(1));
                }
                let path = self.path(operand).join(field);
                self.set_path(e.id, path);
                cost
            }
            ExprKind::Call {
                function,
                target: None,
                args,
            } if function.as_ref() == "dyn" => {
                let mut cost = Bounds::exactly(1);
                for arg in args {
                    cost = cost.plus(self.cost(arg));
                    self.copy_sizes(e.id, arg);
                }
                cost
            }
            ExprKind::Call { target, args, .. } => self.call(e, target.as_deref(), args),
            ExprKind::List { elements, .. } => {
                let mut cost = Bounds::exactly(LIST_COST);
                let mut value = if elements.is_empty() {
                    // The neutral element would invert the bounds of an empty list, so that one gets 0 instead.
                    Bounds::exactly(0)
                } else {
                    EMPTY_BOUNDS
                };
                for element in elements {
                    cost = cost.plus(self.cost(element));
                    value = value.or(self.size_or_unknown(element));
                }
                let entries = EntrySizes {
                    container: ContainerKind::List,
                    key: Bounds::exactly(1),
                    value,
                };
                self.set_entries(e.id, Some(entries));
                cost
            }
            ExprKind::Map(entries) => {
                let mut cost = Bounds::exactly(MAP_COST);
                let none = if entries.is_empty() {
                    Bounds::exactly(0)
                } else {
                    EMPTY_BOUNDS
                };
                let (mut key, mut value) = (none, none);
                for entry in entries {
                    cost = cost.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
                    key = key.or(self.size_or_unknown(&entry.key));
                    value = value.or(self.size_or_unknown(&entry.value));
                }
                self.set_entries(
                    e.id,
                    Some(EntrySizes {
                        container: ContainerKind::Map,
                        key,
                        value,
                    }),
                );
                cost
            }
            ExprKind::Struct { fields, .. } => {
                let mut cost = Bounds::exactly(STRUCT_COST);
                for field in fields {
                    cost = cost.plus(self.cost(&field.value));
                }
                cost
            }
            ExprKind::Comprehension(fold) if is_binding(fold) => self.binding(e, fold),
            ExprKind::Comprehension(fold) => self.comprehension(e, fold),
        }
    }

    fn call(&mut self, e: &'c Expr, target: Option<&'c Expr>, args: &'c [Expr]) -> Bounds {
        let mut costs = Vec::with_capacity(args.len());
        let mut operands = Vec::with_capacity(args.len() + 1);
        for arg in args {
            costs.push(self.cost(arg));
            operands.push(self.operand(arg));
        }
        let operand_costs = costs.iter().fold(Bounds::exactly(0), |sum, cost| sum.plus(*cost));
        if matches!(self.checked.reference(e.id), Some(Reference::OptionalSelect)) {
            let size = self.size(e);
            self.set_size(e.id, size);
            return operand_costs.plus(Bounds::exactly(1));
        }
        // The target is visited after the arguments: the order decides which paths share a buffer, see `SizePath`.
        let mut base = Bounds::exactly(0);
        if let Some(target) = target {
            base = self.cost(target);
            operands.insert(0, self.operand(target));
        }
        // The bounds cover all candidate overloads.
        let mut cost = EMPTY_BOUNDS;
        let mut size: Option<Bounds> = None;
        for overload in self.checked.overloads(e.id) {
            let estimate = match overload.estimate {
                Estimate::ShortCircuit => {
                    let left = costs.first().copied().unwrap_or(Bounds::exactly(0));
                    CallEstimate::cost(Bounds::new(left.min, operand_costs.max))
                }
                Estimate::Conditional => self.conditional(e.id, &costs, &operands, args),
                other => {
                    let call = self.estimate(e.id, other, &operands, args);
                    CallEstimate {
                        cost: call.cost.plus(operand_costs),
                        ..call
                    }
                }
            };
            cost = cost.or(estimate.cost);
            if let Some(result) = estimate.result {
                size = Some(size.map_or(result, |size| size.or(result)));
            }
            if let Some(segment) = index_segment(overload.estimate)
                && let Some(container) = args.first()
            {
                // An index replaces the size that an earlier overload has found, even by an unknown one, as in cel-go.
                size = self.entries(container).map(|entries| entries.value);
                let path = self.path(container).join(segment);
                self.set_path(e.id, path);
            }
            if size.is_none() {
                size = self.size(e);
            }
        }
        self.set_size(e.id, size);
        base.plus(cost)
    }

    fn estimate(
        &mut self,
        id: ExprId,
        estimate: Estimate,
        operands: &[Operand<'_>],
        args: &[Expr],
    ) -> CallEstimate {
        match estimate {
            Estimate::Fixed(cost) => CallEstimate::cost(Bounds::exactly(cost)),
            Estimate::IndexList | Estimate::IndexMap => CallEstimate::cost(Bounds::exactly(1)),
            Estimate::Pass {
                operand,
                factor,
                result,
            } => {
                // Without a size the cost is unbounded, so an operand that is missing by mistake could not make a rule
                // cheap.
                let size = operands.get(operand).map_or(Bounds::UNKNOWN, Operand::size);
                CallEstimate {
                    cost: size.scaled(factor),
                    result: match result {
                        ResultSize::Unknown => None,
                        ResultSize::Same => Some(size),
                        ResultSize::UpTo => Some(Bounds::up_to(size.max)),
                    },
                }
            }
            Estimate::Formula(formula) => formula(operands),
            Estimate::ConcatText | Estimate::ConcatList => {
                let size = operands
                    .iter()
                    .fold(Bounds::exactly(0), |sum, operand| sum.plus(operand.size()));
                // The elements of a concatenation may be those of either side.
                let entries = self.joint_entries(args.first(), args.get(1));
                self.set_entries(id, entries);
                let cost = match estimate {
                    Estimate::ConcatText => size.scaled(TEXT_FACTOR),
                    _ => Bounds::exactly(1),
                };
                CallEstimate {
                    cost,
                    result: Some(size),
                }
            }
            // These estimates include the cost of the operands.
            Estimate::ShortCircuit | Estimate::Conditional => CallEstimate::cost(Bounds::exactly(0)),
        }
    }

    fn conditional(
        &mut self,
        id: ExprId,
        costs: &[Bounds],
        operands: &[Operand<'_>],
        args: &[Expr],
    ) -> CallEstimate {
        let entries = self.joint_entries(args.get(1), args.get(2));
        self.set_entries(id, entries);
        let result = match operands {
            [_, yes, no] => yes.size().or(no.size()),
            _ => Bounds::UNKNOWN,
        };
        let cost = match costs {
            // The checker guarantees three operands; anything else must not look cheap.
            [condition, yes, no] => condition.plus(yes.or(*no)),
            _ => Bounds::UNKNOWN,
        };
        CallEstimate {
            cost,
            result: Some(result),
        }
    }

    fn comprehension(&mut self, e: &'c Expr, fold: &'c Comprehension) -> Bounds {
        let mut cost = self.cost(&fold.range).plus(self.cost(&fold.accu_init));
        let outside = self.locals.len();
        self.push_value(&fold.accu_var, &fold.accu_init);
        let inside = self.locals.len();
        // Only the accumulator carries entry sizes; loop variables get the sizes of their part of the range.
        match &fold.iter_var2 {
            Some(second) => {
                self.push_part(&fold.iter_var, &fold.range, EntryPart::Key);
                self.push_part(second, &fold.range, EntryPart::Value);
            }
            None => self.push_part(&fold.iter_var, &fold.range, EntryPart::Single),
        }
        // Visited once although the loop runs often: the estimate assumes that every iteration costs the same.
        let each = self.cost(&fold.condition).plus(self.cost(&fold.step));
        self.locals.truncate(inside);
        cost = cost.plus(self.cost(&fold.result));
        self.locals.truncate(outside);

        let times = self.size_or_unknown(&fold.range);
        cost = cost.plus(times.times(each));
        match &fold.accu_init.kind {
            ExprKind::Literal(_) => {
                let size = self.size(&fold.accu_init);
                self.set_size(e.id, size);
            }
            ExprKind::List { .. } | ExprKind::Map(_) => {
                // cel-go assumes at most one element or entry per iteration, and ignores filters.
                self.set_size(e.id, Some(times));
                let entries = self.entries(&fold.step);
                self.set_entries(e.id, entries);
            }
            _ => {}
        }
        cost
    }

    /// `cel.bind(name, value, result)`, which expands to a comprehension over an empty list.
    fn binding(&mut self, e: &'c Expr, fold: &'c Comprehension) -> Bounds {
        // The empty range costs 10 for its list literal. cel-go keeps this cost, although a binding needs no list.
        let cost = self.cost(&fold.range).plus(self.cost(&fold.accu_init));
        let outside = self.locals.len();
        self.push_value(&fold.accu_var, &fold.accu_init);
        let cost = cost.plus(self.cost(&fold.result));
        self.locals.truncate(outside);
        self.copy_sizes(e.id, &fold.result);
        cost
    }

    fn push_value(&mut self, name: &Arc<str>, value: &Expr) {
        let local = LoopVariable {
            name: Arc::clone(name),
            path: self.path(value),
            entries: self.entries(value),
            size: self.size(value),
        };
        self.locals.push(local);
    }

    fn push_part(&mut self, name: &Arc<str>, range: &Expr, part: EntryPart) {
        let entries = self.entries(range);
        // A literal knows its kind even if the checker has found no element type.
        let container = entries.map_or_else(
            || match self.checked.ty(range.id).unwrapped() {
                CelType::List(_) => ContainerKind::List,
                CelType::Map(_) => ContainerKind::Map,
                _ => ContainerKind::Other,
            },
            |entries| entries.container,
        );
        let (segment, takes_value) = match (part, container) {
            (EntryPart::Key, ContainerKind::List) => ("@indices", false),
            (EntryPart::Value | EntryPart::Single, ContainerKind::List) => ("@items", true),
            (EntryPart::Value, _) => ("@values", true),
            (EntryPart::Key | EntryPart::Single, _) => ("@keys", false),
        };
        let local = LoopVariable {
            name: Arc::clone(name),
            path: self.path(range).join(segment),
            size: entries.map(|entries| if takes_value { entries.value } else { entries.key }),
            // Sizes are tracked for one level only, so the elements of a list within a list literal have unknown sizes.
            entries: None,
        };
        self.locals.push(local);
    }

    /// The variable of a comprehension that a name refers to.
    fn local(&self, e: &Expr) -> Option<&LoopVariable> {
        match self.checked.reference(e.id) {
            Some(Reference::Local(name)) => self.locals.iter().rev().find(|local| local.name == *name),
            _ => None,
        }
    }

    fn operand<'a>(&mut self, e: &'a Expr) -> Operand<'a>
    where
        'c: 'a,
    {
        let ty = self.checked.ty(e.id);
        // `elements` copies the path into a buffer of its own, so this look ahead does not disturb other paths.
        let elements = ty.first_param().is_some().then(|| self.path(e));
        Operand {
            ty,
            size: self.size(e),
            element_size: elements.and_then(|path| self.schema_size(&path.elements()?)),
            literal: match &e.kind {
                ExprKind::Literal(literal) => Some(literal),
                _ => None,
            },
        }
    }

    fn schema_size(&self, path: &SizePath) -> Option<Bounds> {
        self.root
            .and_then(|root| path.size_in(root, self.members))
            .map(Bounds::up_to)
    }

    /// The size of a node, from the first source that knows it: the formula of a call, the literal, the schema, the type
    /// or the range of a loop.
    fn size(&mut self, e: &Expr) -> Option<Bounds> {
        let known = self.facts(e.id).and_then(|facts| facts.size);
        if let Some(size) = known.or_else(|| literal_size(e)) {
            return Some(size);
        }
        // Kept, as in cel-go: a path that shares its buffer may point elsewhere when the size is needed again.
        if let Some(size) = self.schema_size(&self.path(e)) {
            self.set_size(e.id, Some(size));
            return Some(size);
        }
        if is_scalar(self.checked.ty(e.id)) {
            return Some(Bounds::exactly(1));
        }
        self.local(e).and_then(|local| local.size)
    }

    fn size_or_unknown(&mut self, e: &Expr) -> Bounds {
        self.size(e).unwrap_or(Bounds::UNKNOWN)
    }

    fn entries(&self, e: &Expr) -> Option<EntrySizes> {
        let known = self.facts(e.id).and_then(|facts| facts.entries);
        known.or_else(|| self.local(e).and_then(|local| local.entries))
    }

    fn joint_entries(&self, a: Option<&Expr>, b: Option<&Expr>) -> Option<EntrySizes> {
        let (a, b) = (self.entries(a?)?, self.entries(b?)?);
        Some(EntrySizes {
            container: a.container,
            key: a.key.or(b.key),
            value: a.value.or(b.value),
        })
    }

    fn path(&self, e: &Expr) -> SizePath {
        if let Some(local) = self.local(e) {
            return local.path.clone();
        }
        self.facts(e.id)
            .map_or_else(SizePath::default, |facts| facts.path.clone())
    }

    fn copy_sizes(&mut self, to: ExprId, from: &Expr) {
        let size = self.size(from);
        self.set_size(to, size);
        let entries = self.entries(from);
        self.set_entries(to, entries);
    }

    fn facts(&self, id: ExprId) -> Option<&ExprFacts> {
        self.nodes.get(id.0 as usize)
    }

    fn set_path(&mut self, id: ExprId, path: SizePath) {
        if let Some(facts) = self.nodes.get_mut(id.0 as usize) {
            facts.path = path;
        }
    }

    /// Sets the size of a node; `None` keeps the current one.
    fn set_size(&mut self, id: ExprId, size: Option<Bounds>) {
        if let Some(facts) = self.nodes.get_mut(id.0 as usize) {
            facts.size = size.or(facts.size);
        }
    }

    fn set_entries(&mut self, id: ExprId, entries: Option<EntrySizes>) {
        if let Some(facts) = self.nodes.get_mut(id.0 as usize) {
            facts.entries = entries.or(facts.entries);
        }
    }
}

fn index_segment(estimate: Estimate) -> Option<&'static str> {
    match estimate {
        Estimate::IndexList => Some("@items"),
        Estimate::IndexMap => Some("@values"),
        _ => None,
    }
}

/// Returns whether a comprehension only binds a name. The accumulator of the standard macros does not count.
fn is_binding(fold: &Comprehension) -> bool {
    matches!(&fold.range.kind, ExprKind::List { elements, .. } if elements.is_empty())
        && matches!(fold.condition.kind, ExprKind::Literal(Literal::Bool(false)))
        // UPSTREAM: cel-go compares with the former name of the accumulator, which no macro uses any more.
        && fold.accu_var.as_ref() != "__result__"
}

fn literal_size(e: &Expr) -> Option<Bounds> {
    let size = match &e.kind {
        // Code points, like cel-go's `size()`; sizes from a schema are in bytes (4 per character) for strings.
        ExprKind::Literal(Literal::String(text)) => text.chars().count(),
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        ExprKind::Literal(_) => 1,
        ExprKind::List { elements, .. } => elements.len(),
        ExprKind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(Bounds::exactly(size as u64))
}

fn is_scalar(ty: &CelType) -> bool {
    match ty {
        CelType::Bool
        | CelType::Double
        | CelType::Duration
        | CelType::Int
        | CelType::Timestamp
        | CelType::Uint => true,
        CelType::Wrapper(of) => is_scalar(of),
        _ => ty.optional_value().is_some_and(is_scalar),
    }
}
