//! Lowers checked expressions to programs.
//!
//! Constants are folded exactly where kube-apiserver folds them, because a folded expression costs nothing.

use super::Program;
use super::call::dispatch;
use super::constant_set::ConstantSet;
use super::interpreter::check_keys;
use super::op::{
    ArgEvaluation, Arithmetic, Attribute, AttributeMode, AttributeRoot, Binary, BlockOp, CallOp, Comparison,
    Conditional, ElementOp, Equality, FoldOp, FoldStep, InSet, Insertion, KnownField, MessageLiteral, Name,
    Op, OptionalOr, OrResult, Qualifier, QualifierKey, Relation, Unary, UnaryKind,
};
use crate::ast::{Comprehension, Expr, ExprId, ExprKind, Literal, MapEntry, StructField};
use crate::check::{CheckedExpr, Reference};
use crate::env::{Env, Semantics};
use crate::message;
use crate::overload::{Overload, Ty};
use crate::run::Run;
use crate::stack::with_room;
use crate::types::CelType;
use crate::val::{Arena, EvalError, Owned, go_kind};
use scantling_notation::regex::Pattern;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

type LowerResult = Result<Op, EvalError>;

pub(super) fn lower(env: &Env, checked: &CheckedExpr) -> Result<Program, EvalError> {
    let inputs: Box<[Arc<str>]> = env.variables().iter().map(|(name, _)| Arc::clone(name)).collect();
    let semantics = env.base().options().semantics;
    let mut lowerer = Lowerer {
        checked,
        inputs: &inputs,
        scope: Vec::new(),
        locals: 0,
        depth: 0,
        deepest: 0,
        // For constants that exist only while lowering: the program gets owned copies.
        scratch: Arena::new(),
        semantics,
    };
    let root = with_room(checked.ast.depth, || lowerer.expr(&checked.ast.root))?;
    // The depth of the program may differ from that of the expression, because folding removes levels.
    let levels = lowerer.deepest;
    Ok(Program {
        root,
        inputs,
        levels,
        semantics,
    })
}

struct Lowerer<'p> {
    checked: &'p CheckedExpr,
    inputs: &'p [Arc<str>],
    /// The variables in scope, innermost last, and their indexes. No two comprehensions share an index, because a lazy
    /// value may be evaluated inside another comprehension.
    scope: Vec<(Arc<str>, usize)>,
    locals: usize,
    depth: usize,
    deepest: usize,
    scratch: Arena,
    semantics: Semantics,
}

impl Lowerer<'_> {
    fn expr(&mut self, e: &Expr) -> LowerResult {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let op = match &e.kind {
            ExprKind::Literal(literal) => Ok(Op::Const(constant(literal))),
            ExprKind::Ident(name) => Ok(self.ident(e.id, name)),
            ExprKind::Select { operand, field, test } => self.select(operand, field, *test),
            ExprKind::Call {
                function,
                target,
                args,
            } => self.call(e.id, function, target.as_deref(), args),
            ExprKind::List { elements, optional } => self.list(elements, optional),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct { name, fields } => self.message(name, fields),
            ExprKind::Comprehension(fold) => self.fold(fold),
        };
        self.depth -= 1;
        op
    }

    fn ident(&self, id: ExprId, name: &str) -> Op {
        let root = match self.checked.reference(id) {
            // The checker has resolved the name to a local, so an input of the same name does not count.
            Some(Reference::Local(name)) => self.local(name),
            Some(Reference::Variable(name)) => self
                .inputs
                .iter()
                .position(|n| n == name)
                .map(AttributeRoot::Input),
            Some(Reference::Constant(value)) => return Op::Const(Owned::Int(*value)),
            Some(Reference::Type(ty)) => return Op::Const(Owned::Type(ty.name().into())),
            // Only the program knows the values of a block.
            _ => self.local(name),
        };
        match root {
            Some(root) => Op::Attribute(Box::new(Attribute {
                root,
                path: Vec::new(),
                mode: AttributeMode::Value,
            })),
            // Only unchecked expressions get here: cel-go reports an unknown name when it is evaluated.
            None => Op::Unresolved(EvalError::message(format!("no such attribute(s): {name}"))),
        }
    }

    fn local(&self, name: &str) -> Option<AttributeRoot> {
        let found = self.scope.iter().rev().find(|(n, _)| n.as_ref() == name);
        found.map(|(_, local)| AttributeRoot::Local(*local))
    }

    fn select(&mut self, operand: &Expr, field: &Arc<str>, test: bool) -> LowerResult {
        let key = QualifierKey::Name(self.name(operand, field));
        let mode = if test {
            AttributeMode::Presence
        } else {
            AttributeMode::Value
        };
        let op = self.expr(operand)?;
        Ok(qualify(op, Qualifier { key, optional: false }, mode))
    }

    /// Resolves a field name, if the checker knows the shape of the operand.
    fn name(&self, operand: &Expr, field: &Arc<str>) -> Name {
        let ty = self.checked.ty(operand.id);
        // A selection from an optional selects from its value.
        let known = match ty.optional_value().unwrap_or(ty) {
            CelType::Object(object) => object.shape.select(field).map(|found| KnownField {
                within: Arc::clone(&object.shape),
                json: found.json.clone(),
                shape: Arc::clone(&found.shape),
            }),
            _ => None,
        };
        Name {
            name: Arc::clone(field),
            field: known,
            hint: AtomicUsize::new(0),
        }
    }

    fn call(&mut self, id: ExprId, function: &str, target: Option<&Expr>, args: &[Expr]) -> LowerResult {
        // The receiver is evaluated before the arguments, although the checker visits it after them.
        let operands: Vec<&Expr> = target.into_iter().chain(args).collect();
        match (function, operands.as_slice()) {
            ("_&&_", [a, b]) => Ok(Op::And(Box::new([self.expr(a)?, self.expr(b)?]))),
            ("_||_", [a, b]) => Ok(Op::Or(Box::new([self.expr(a)?, self.expr(b)?]))),
            ("@not_strictly_false", [a]) => Ok(Op::NotStrictlyFalse(Box::new(self.expr(a)?))),
            ("_==_" | "_!=_", [a, b]) => Ok(Op::Equality(Box::new(Equality {
                left: self.expr(a)?,
                right: self.expr(b)?,
                negated: function == "_!=_",
            }))),
            ("_?_:_", [condition, yes, no]) => Ok(Op::Conditional(Box::new(Conditional {
                condition: self.expr(condition)?,
                if_true: self.expr(yes)?,
                if_false: self.expr(no)?,
                path: Vec::new(),
                mode: AttributeMode::Value,
            }))),
            ("_[_]" | "_[?_]" | "_?._", [operand, key]) => self.index(operand, key, function != "_[_]"),
            ("cel.@block", [values, result]) => self.block(values, result),
            // Only if it is certain that this is the function on optionals: an environment may have others of this
            // name.
            ("or", [optional, otherwise]) if self.is_only(id, "optional_or_optional") => {
                self.optional_or(optional, otherwise, OrResult::Optional)
            }
            ("orValue", [optional, otherwise]) if self.is_only(id, "optional_orValue_value") => {
                self.optional_or(optional, otherwise, OrResult::Value)
            }
            _ => {
                let args = operands
                    .into_iter()
                    .map(|arg| self.expr(arg))
                    .collect::<Result<_, _>>()?;
                self.function(id, function, args)
            }
        }
    }

    /// Returns whether a constant may be an index. kube-apiserver refuses to compile other constants as indexes.
    fn may_select(&self, value: &Owned) -> bool {
        let scalar = matches!(
            value,
            Owned::Bool(_) | Owned::Int(_) | Owned::Uint(_) | Owned::Double(_)
        );
        scalar || self.semantics == Semantics::Specification
    }

    fn index(&mut self, operand: &Expr, key: &Expr, optional: bool) -> LowerResult {
        let op = self.expr(operand)?;
        let key = match self.expr(key)? {
            // A constant string selects like a field, so that `a["b"]` is as fast as `a.b`.
            Op::Const(Owned::Str(name)) => QualifierKey::Name(self.name(operand, &name)),
            Op::Const(value) if self.may_select(&value) => QualifierKey::Const(value),
            Op::Const(value) => {
                // Fails the compilation, as on kube-apiserver, which rejects such qualifiers when it plans the program.
                let kind = go_kind(value.val(&self.scratch)?);
                return Err(EvalError::message(format!("invalid qualifier type: {kind}")));
            }
            op => QualifierKey::Computed(op),
        };
        Ok(qualify(op, Qualifier { key, optional }, AttributeMode::Value))
    }

    /// Returns whether the checker has left only this overload.
    fn is_only(&self, id: ExprId, overload: &str) -> bool {
        self.checked.overloads(id).iter().all(|o| o.id == overload)
    }

    fn optional_or(&mut self, optional: &Expr, otherwise: &Expr, result_kind: OrResult) -> LowerResult {
        Ok(Op::OptionalOr(Box::new(OptionalOr {
            optional: self.expr(optional)?,
            otherwise: self.expr(otherwise)?,
            result_kind,
        })))
    }

    fn block(&mut self, values: &Expr, result: &Expr) -> LowerResult {
        let ExprKind::List { elements, .. } = &values.kind else {
            return Err(EvalError::message("cel.@block requires a list of values"));
        };
        let first = self.locals;
        self.locals += elements.len();
        let outer = self.scope.len();
        let mut lowered = Vec::with_capacity(elements.len());
        for (i, element) in elements.iter().enumerate() {
            lowered.push(self.expr(element)?);
            // After its own lowering: a value sees only the values before it.
            self.scope.push((format!("@index{i}").into(), first + i));
        }
        let result = self.expr(result)?;
        self.scope.truncate(outer);
        Ok(Op::Block(Box::new(BlockOp {
            first,
            values: lowered.into(),
            result,
        })))
    }

    fn function(&self, id: ExprId, function: &str, args: Vec<Op>) -> LowerResult {
        let candidates = self.checked.overloads(id);
        let Some(first) = candidates.first().copied() else {
            return Ok(Op::Unresolved(EvalError::message(format!(
                "no such overload: {function}"
            ))));
        };
        if let [Op::Const(value)] = args.as_slice()
            // Not any pure function may be folded: kube-apiserver folds conversions only, and all other calls keep
            // their cost.
            && is_conversion(function)
        {
            return self.convert(candidates, value);
        }
        if let ([overload], [_, Op::Const(Owned::List(set))]) = (candidates, args.as_slice())
            // Only if the overload is certain: for a dynamic right operand kube-apiserver keeps the search.
            && overload.id == "in_list"
            && let Some(set) = ConstantSet::new(set)
        {
            return Ok(match args.into_iter().next() {
                // An empty list contains nothing, so the value is not evaluated.
                Some(value) if !set.is_empty() => Op::InSet(Box::new(InSet { value, set })),
                _ => Op::Const(Owned::Bool(false)),
            });
        }
        let pattern = match (first.run, args.get(1)) {
            (Run::Pattern(..), Some(Op::Const(Owned::Str(pattern)))) => {
                // An invalid constant pattern fails the compilation, like kube-apiserver's optimizer for regular
                // expressions.
                Some(Pattern::deferred(pattern).map_err(|e| EvalError::message(e.to_string()))?)
            }
            _ => None,
        };
        Ok(call(candidates, first, args, pattern))
    }

    /// Folds the conversion of a constant.
    fn convert(&self, candidates: &[&'static Overload], value: &Owned) -> LowerResult {
        let arena = &self.scratch;
        let value = value.val(arena)?;
        Ok(Op::Const(
            // A conversion that fails, fails the compilation, as on kube-apiserver.
            dispatch(arena, candidates, None, &[value])?.into_owned(arena)?,
        ))
    }

    fn list(&mut self, elements: &[Expr], optional: &[u32]) -> LowerResult {
        let elements = elements
            .iter()
            .enumerate()
            .map(|(i, e)| {
                Ok(ElementOp {
                    op: self.expr(e)?,
                    optional: optional.iter().any(|o| *o as usize == i),
                })
            })
            .collect::<Result<Vec<_>, EvalError>>()?;
        // Elements marked with `?` are never constant, so that absent ones are dropped at run time.
        let constants: Option<Vec<Owned>> = elements.iter().map(ElementOp::constant).collect();
        Ok(match constants {
            Some(items) => Op::Const(Owned::List(items.into())),
            None => Op::List(elements.into()),
        })
    }

    fn map(&mut self, entries: &[MapEntry]) -> LowerResult {
        let entries = entries
            .iter()
            .map(|entry| {
                let key = self.expr(&entry.key)?;
                let value = ElementOp {
                    op: self.expr(&entry.value)?,
                    optional: entry.optional,
                };
                Ok((key, value))
            })
            .collect::<Result<Vec<_>, EvalError>>()?;
        let constants: Option<Vec<(Owned, Owned)>> = entries
            .iter()
            .map(|(key, value)| match key {
                Op::Const(key) => Some((key.clone(), value.constant()?)),
                _ => None,
            })
            .collect();
        Ok(match constants {
            Some(constants) if self.may_hold(&constants) => Op::Const(Owned::map(constants)),
            _ => Op::Map(entries.into()),
        })
    }

    /// Returns whether the map literal can be folded. Invalid keys must remain an error at run time.
    fn may_hold(&self, entries: &[(Owned, Owned)]) -> bool {
        self.semantics == Semantics::Kubernetes
            || check_keys(entries.iter().map(|(key, _)| key.key())).is_ok()
    }

    fn message(&mut self, name: &Arc<str>, fields: &[StructField]) -> LowerResult {
        let fields = fields
            .iter()
            .map(|field| {
                let value = ElementOp {
                    op: self.expr(&field.value)?,
                    optional: field.optional,
                };
                Ok((Arc::clone(&field.name), value))
            })
            .collect::<Result<_, EvalError>>()?;
        Ok(Op::Message(Box::new(MessageLiteral {
            name: Arc::clone(name),
            message: message::find(name),
            fields,
        })))
    }

    fn fold(&mut self, fold: &Comprehension) -> LowerResult {
        // The range and the initial value are outside the scope of the loop's variables.
        let range = self.expr(&fold.range)?;
        let init = self.expr(&fold.accu_init)?;
        let outer = self.scope.len();
        let accumulator = self.declare(&fold.accu_var);
        let inner = self.scope.len();
        // If both variables have the same name, the name refers to the first.
        let second = fold.iter_var2.as_ref().map(|var| self.declare(var));
        let first = self.declare(&fold.iter_var);
        let step = self.step(fold)?;
        self.scope.truncate(inner);
        let result = self.expr(&fold.result)?;
        self.scope.truncate(outer);
        Ok(Op::Fold(Box::new(FoldOp {
            range,
            first,
            second,
            accumulator,
            init,
            step,
            result,
        })))
    }

    fn declare(&mut self, name: &Arc<str>) -> usize {
        let local = self.locals;
        self.locals += 1;
        self.scope.push((Arc::clone(name), local));
        local
    }

    /// Recognizes the expansion of a standard macro, so that the interpreter can run it without an accumulator
    /// expression.
    fn step(&mut self, fold: &Comprehension) -> Result<FoldStep, EvalError> {
        let accumulator = fold.accu_var.as_ref();
        // A predicate that reads the accumulator needs its current value, which the special steps keep in no variable.
        let free = |e: &Expr| !mentions(e, accumulator);
        let is_accumulator = |e: &Expr| matches!(&e.kind, ExprKind::Ident(n) if n.as_ref() == accumulator);
        let constant = |e: &Expr, b: bool| matches!(e.kind, ExprKind::Literal(Literal::Bool(v)) if v == b);
        // The whole shape is compared, not only the operator: other loops with the same step have other costs.
        if let Some(("_&&_", [left, predicate])) = called(&fold.step)
            && let Some(("@not_strictly_false", [going])) = called(&fold.condition)
            && is_accumulator(left)
            && is_accumulator(going)
            && constant(&fold.accu_init, true)
            && free(predicate)
        {
            return Ok(FoldStep::All {
                predicate: self.expr(predicate)?,
            });
        }
        if let Some(("_||_", [left, predicate])) = called(&fold.step)
            && let Some(("@not_strictly_false", [going])) = called(&fold.condition)
            && let Some(("!_", [going])) = called(going)
            && is_accumulator(left)
            && is_accumulator(going)
            && constant(&fold.accu_init, false)
            && free(predicate)
        {
            return Ok(FoldStep::Exists {
                predicate: self.expr(predicate)?,
            });
        }
        if constant(&fold.condition, true) {
            let (filter, adding) = match called(&fold.step) {
                Some(("_?_:_", [filter, adding, otherwise])) if is_accumulator(otherwise) && free(filter) => {
                    (Some(filter), adding)
                }
                // Without a filter, the step itself must be the one that adds.
                _ => (None, &fold.step),
            };
            if let Some((left, element)) = appended(adding)
                && is_empty_list(&fold.accu_init)
                && is_accumulator(left)
                && free(element)
            {
                return Ok(FoldStep::Append {
                    filter: filter.map(|f| self.expr(f)).transpose()?,
                    element: self.expr(element)?,
                });
            }
            if let Some(("cel.@mapInsert", [left, added @ ..])) = called(adding)
                && matches!(&fold.accu_init.kind, ExprKind::Map(entries) if entries.is_empty())
                && is_accumulator(left)
                && added.iter().all(free)
            {
                let filter = filter.map(|f| self.expr(f)).transpose()?;
                match added {
                    [key, value] => {
                        let (key, value) = (self.expr(key)?, self.expr(value)?);
                        let entry = Insertion::Entry { key, value };
                        return Ok(FoldStep::Insert { filter, entry });
                    }
                    [map] => {
                        let entry = Insertion::Map(self.expr(map)?);
                        return Ok(FoldStep::Insert { filter, entry });
                    }
                    _ => {}
                }
            }
        }
        Ok(FoldStep::Replace {
            condition: self.expr(&fold.condition)?,
            step: self.expr(&fold.step)?,
        })
    }
}

impl ElementOp {
    fn constant(&self) -> Option<Owned> {
        match &self.op {
            Op::Const(value) if !self.optional => Some(value.clone()),
            _ => None,
        }
    }
}

/// The function and arguments of a global call.
fn called(e: &Expr) -> Option<(&str, &[Expr])> {
    match &e.kind {
        ExprKind::Call {
            function,
            target: None,
            args,
        } => Some((function, args)),
        _ => None,
    }
}

/// `left + [element]`
fn appended(e: &Expr) -> Option<(&Expr, &Expr)> {
    let Some(("_+_", [left, right])) = called(e) else {
        return None;
    };
    match &right.kind {
        ExprKind::List { elements, optional } if optional.is_empty() => match elements.as_slice() {
            [element] => Some((left, element)),
            _ => None,
        },
        _ => None,
    }
}

fn is_empty_list(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::List { elements, .. } if elements.is_empty())
}

/// Returns whether a name occurs in an expression.
fn mentions(e: &Expr, name: &str) -> bool {
    match &e.kind {
        ExprKind::Ident(n) => n.as_ref() == name,
        // An inner macro usually has an accumulator of the same name, which is not the outer one. The range and the
        // initial value of the inner loop are still in the outer scope.
        ExprKind::Comprehension(fold) if fold.accu_var.as_ref() == name => {
            mentions(&fold.range, name) || mentions(&fold.accu_init, name)
        }
        _ => {
            let mut found = false;
            e.for_each_child(|child| found = found || mentions(child, name));
            found
        }
    }
}

fn constant(literal: &Literal) -> Owned {
    match literal {
        Literal::Null => Owned::Null,
        Literal::Bool(b) => Owned::Bool(*b),
        Literal::Int(i) => Owned::Int(*i),
        Literal::Uint(u) => Owned::Uint(*u),
        Literal::Double(d) => Owned::Double(*d),
        Literal::String(s) => Owned::Str(Arc::clone(s)),
        Literal::Bytes(b) => Owned::Bytes(Arc::clone(b)),
    }
}

/// Adds a qualifier. It extends an existing attribute, as kube-apiserver does, which costs less than a new one.
fn qualify(op: Op, qualifier: Qualifier, mode: AttributeMode) -> Op {
    match op {
        // After a presence test the value is a boolean, so nothing can be added to the path.
        Op::Attribute(mut attribute) if attribute.mode == AttributeMode::Value => {
            attribute.path.push(qualifier);
            attribute.mode = mode;
            Op::Attribute(attribute)
        }
        Op::Conditional(mut conditional) if conditional.mode == AttributeMode::Value => {
            conditional.path.push(qualifier);
            conditional.mode = mode;
            Op::Conditional(conditional)
        }
        op => Op::Attribute(Box::new(Attribute {
            root: AttributeRoot::Value(op),
            path: vec![qualifier],
            mode,
        })),
    }
}

/// The functions that are folded if their argument is a constant.
fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}

/// The functions with one implementation for all overloads.
fn is_singleton(function: &str) -> bool {
    function.ends_with('_') || matches!(function, "@in" | "size" | "matches" | "type" | "dyn")
}

fn call(
    candidates: &[&'static Overload],
    first: &'static Overload,
    args: Vec<Op>,
    pattern: Option<Pattern>,
) -> Op {
    let decided = candidates.len() == 1;
    let singleton = is_singleton(first.function);
    let actual = if decided {
        first.actual
    } else {
        first.actual.undecided()
    };
    // Costs that depend on constants only are computed once, not for every evaluation.
    let actual = actual.given(|arg| match args.get(arg) {
        Some(Op::Const(value)) => Some(value.key()),
        _ => None,
    });
    let mut args = args;
    // Among several overloads the arguments decide, unless all of them share an implementation.
    if decided || singleton {
        match first.run {
            Run::Unary(run) if args.len() == 1 => {
                if let Some(arg) = args.pop() {
                    return Op::Unary(Box::new(Unary {
                        kind: UnaryKind::from_function(first.function),
                        run,
                        arg,
                        actual,
                        overload: first,
                    }));
                }
            }
            Run::Binary(run) if args.len() == 2 => {
                if let (Some(right), Some(left)) = (args.pop(), args.pop()) {
                    let of_ints = decided && first.params == [Ty::Int, Ty::Int];
                    let call = Binary {
                        arithmetic: decided.then(|| Arithmetic::from_overload(first.id)).flatten(),
                        run,
                        left,
                        right,
                        actual,
                        overload: first,
                    };
                    return match Relation::from_function(first.function) {
                        // Also if the overload is open: two integers at run time are common there (int-or-string), and
                        // cost the same.
                        Some(relation) if of_ints || !decided => {
                            Op::Comparison(Box::new(Comparison { relation, call }))
                        }
                        None if decided && first.id == "add_string" => Op::Concat(Box::new(call)),
                        _ => Op::Binary(Box::new(call)),
                    };
                }
            }
            _ => {}
        }
    }
    let order = match first.run {
        // cel-go plans calls with one or two arguments as unary and binary nodes, which evaluate all of them. Calls
        // with more arguments, or without a known implementation, stop at the first error.
        Run::Pattern(..) if pattern.is_none() && decided && args.len() <= 2 => ArgEvaluation::All,
        _ => ArgEvaluation::UntilError,
    };
    Op::Call(Box::new(CallOp {
        candidates: candidates.into(),
        order,
        args: args.into(),
        actual,
        pattern,
    }))
}
