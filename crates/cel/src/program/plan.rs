//! From checked expressions to programs.

use super::call::dispatch;
use super::eval::check_keys;
use super::node::{
    Access, Alternative, Arithmetic, Binary, Block, Call, Choice, Comparison, Construction, Element,
    Equality, Fold, Gives, Insertion, Key, KnownField, Member, Mode, Name, Node, Operation, Order, Qualifier,
    Relation, Root, Step, Unary,
};
use super::set::Set;
use super::{Program, plain};
use crate::ast::{Comprehension, Expr, ExprId, ExprKind, Literal, MapEntry, StructField};
use crate::check::{Checked, Reference};
use crate::data::regex::Pattern;
use crate::env::{Env, Strictness};
use crate::message;
use crate::overload::{Overload, Ty};
use crate::run::Run;
use crate::stack::with_room;
use crate::types::Type;
use crate::val::{Arena, EvalError, Owned, go_kind};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

type Planned = Result<Node, EvalError>;

pub(super) fn compile(env: &Env, checked: &Checked) -> Result<Program, EvalError> {
    let inputs: Box<[Arc<str>]> = env.variables().iter().map(|(name, _)| Arc::clone(name)).collect();
    let strictness = env.scope().options().strictness;
    let mut planner = Planner {
        checked,
        inputs: &inputs,
        scope: Vec::new(),
        locals: 0,
        depth: 0,
        deepest: 0,
        scratch: Arena::new(),
        strictness,
    };
    let root = with_room(checked.ast.depth, || planner.expr(&checked.ast.root))?;
    let (locals, levels) = (planner.locals, planner.deepest);
    Ok(Program {
        plain: plain::is_plain(&root, levels),
        root,
        inputs,
        locals,
        levels,
        strictness,
    })
}

struct Planner<'p> {
    checked: &'p Checked,
    inputs: &'p [Arc<str>],
    /// The variables of the folds around, innermost last, and their places. Every fold has places of its own: a value
    /// that is computed late must not meet those of another.
    scope: Vec<(Arc<str>, usize)>,
    locals: usize,
    depth: usize,
    deepest: usize,
    scratch: Arena,
    strictness: Strictness,
}

impl Planner<'_> {
    fn expr(&mut self, e: &Expr) -> Planned {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let node = match &e.kind {
            ExprKind::Literal(literal) => Ok(Node::Const(constant(literal))),
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
        node
    }

    fn ident(&self, id: ExprId, name: &str) -> Node {
        let root = match self.checked.reference(id) {
            Some(Reference::Local(name)) => self.local(name),
            Some(Reference::Variable(name)) => self.inputs.iter().position(|n| n == name).map(Root::Input),
            Some(Reference::Constant(value)) => return Node::Const(Owned::Int(*value)),
            Some(Reference::Type(ty)) => return Node::Const(Owned::Type(runtime_name(ty))),
            // The values of a block are known by the program alone.
            _ => self.local(name),
        };
        match root {
            Some(root) => Node::Access(Box::new(Access {
                root,
                path: Vec::new(),
                mode: Mode::Value,
            })),
            None => Node::Unresolved(EvalError::text(format!("no such attribute(s): {name}"))),
        }
    }

    fn local(&self, name: &str) -> Option<Root> {
        let found = self.scope.iter().rev().find(|(n, _)| n.as_ref() == name);
        found.map(|(_, local)| Root::Local(*local))
    }

    fn select(&mut self, operand: &Expr, field: &Arc<str>, test: bool) -> Planned {
        let key = Key::Name(self.name(operand, field));
        let mode = if test { Mode::Presence } else { Mode::Value };
        let node = self.expr(operand)?;
        Ok(qualify(node, Qualifier { key, optional: false }, mode))
    }

    /// A name to select by, and the field that it is if the checker knows.
    fn name(&self, operand: &Expr, field: &Arc<str>) -> Name {
        let ty = self.checked.ty(operand.id);
        let known = match ty.optional_value().unwrap_or(ty) {
            Type::Object(object) => object.shape.select(field).map(|found| KnownField {
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

    fn call(&mut self, id: ExprId, function: &str, target: Option<&Expr>, args: &[Expr]) -> Planned {
        let operands: Vec<&Expr> = target.into_iter().chain(args).collect();
        match (function, operands.as_slice()) {
            ("_&&_", [a, b]) => Ok(Node::And(Box::new([self.expr(a)?, self.expr(b)?]))),
            ("_||_", [a, b]) => Ok(Node::Or(Box::new([self.expr(a)?, self.expr(b)?]))),
            ("@not_strictly_false", [a]) => Ok(Node::NotStrictlyFalse(Box::new(self.expr(a)?))),
            ("_==_" | "_!=_", [a, b]) => Ok(Node::Equality(Box::new(Equality {
                left: self.expr(a)?,
                right: self.expr(b)?,
                negated: function == "_!=_",
            }))),
            ("_?_:_", [condition, yes, no]) => Ok(Node::Choice(Box::new(Choice {
                condition: self.expr(condition)?,
                yes: self.expr(yes)?,
                no: self.expr(no)?,
                path: Vec::new(),
                mode: Mode::Value,
            }))),
            ("_[_]" | "_[?_]" | "_?._", [operand, key]) => self.index(operand, key, function != "_[_]"),
            ("cel.@block", [values, result]) => self.block(values, result),
            ("or", [optional, otherwise]) if self.is_only(id, "optional_or_optional") => {
                self.alternative(optional, otherwise, Gives::Optional)
            }
            ("orValue", [optional, otherwise]) if self.is_only(id, "optional_orValue_value") => {
                self.alternative(optional, otherwise, Gives::Value)
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

    /// Whether a constant may be an index. A server makes no program of what cannot be the index of anything.
    fn may_select(&self, value: &Owned) -> bool {
        let scalar = matches!(
            value,
            Owned::Bool(_) | Owned::Int(_) | Owned::Uint(_) | Owned::Double(_)
        );
        scalar || self.strictness == Strictness::Specification
    }

    fn index(&mut self, operand: &Expr, key: &Expr, optional: bool) -> Planned {
        let node = self.expr(operand)?;
        let key = match self.expr(key)? {
            Node::Const(Owned::Str(name)) => Key::Name(self.name(operand, &name)),
            Node::Const(value) if self.may_select(&value) => Key::Const(value),
            Node::Const(value) => {
                let kind = go_kind(value.val(&self.scratch)?);
                return Err(EvalError::text(format!("invalid qualifier type: {kind}")));
            }
            node => Key::Node(node),
        };
        Ok(qualify(node, Qualifier { key, optional }, Mode::Value))
    }

    /// Whether a call can mean no other overload than this one.
    fn is_only(&self, id: ExprId, overload: &str) -> bool {
        self.checked.overloads(id).iter().all(|o| o.id == overload)
    }

    fn alternative(&mut self, optional: &Expr, otherwise: &Expr, gives: Gives) -> Planned {
        Ok(Node::Alternative(Box::new(Alternative {
            optional: self.expr(optional)?,
            otherwise: self.expr(otherwise)?,
            gives,
        })))
    }

    fn block(&mut self, values: &Expr, result: &Expr) -> Planned {
        let ExprKind::List { elements, .. } = &values.kind else {
            return Err(EvalError::text("cel.@block requires a list of values"));
        };
        let first = self.locals;
        self.locals += elements.len();
        let outer = self.scope.len();
        let mut planned = Vec::with_capacity(elements.len());
        for (i, element) in elements.iter().enumerate() {
            planned.push(self.expr(element)?);
            self.scope.push((format!("@index{i}").into(), first + i));
        }
        let result = self.expr(result)?;
        self.scope.truncate(outer);
        Ok(Node::Block(Box::new(Block {
            first,
            values: planned.into(),
            result,
        })))
    }

    fn function(&self, id: ExprId, function: &str, args: Vec<Node>) -> Planned {
        let candidates = self.checked.overloads(id);
        let Some(first) = candidates.first().copied() else {
            return Ok(Node::Unresolved(EvalError::text(format!(
                "no such overload: {function}"
            ))));
        };
        if let [Node::Const(value)] = args.as_slice()
            && is_conversion(function)
        {
            return self.convert(candidates, value);
        }
        if let ([overload], [_, Node::Const(Owned::List(set))]) = (candidates, args.as_slice())
            && overload.id == "in_list"
            && let Some(set) = Set::new(set)
        {
            return Ok(match args.into_iter().next() {
                // Nothing is in nothing: the value is not even looked at.
                Some(value) if !set.is_empty() => Node::Member(Box::new(Member {
                    value,
                    set: Arc::new(set),
                })),
                _ => Node::Const(Owned::Bool(false)),
            });
        }
        let pattern = match (first.run, args.get(1)) {
            (Run::Pattern(..), Some(Node::Const(Owned::Str(pattern)))) => {
                Some(Pattern::deferred(pattern).map_err(|e| EvalError::text(e.to_string()))?)
            }
            _ => None,
        };
        Ok(call(candidates, first, args, pattern))
    }

    /// A conversion of a constant is a constant.
    fn convert(&self, candidates: &[&'static Overload], value: &Owned) -> Planned {
        let arena = &self.scratch;
        let value = value.val(arena)?;
        Ok(Node::Const(
            dispatch(arena, candidates, None, &[value])?.into_owned(arena)?,
        ))
    }

    fn list(&mut self, elements: &[Expr], optional: &[u32]) -> Planned {
        let elements = elements
            .iter()
            .enumerate()
            .map(|(i, e)| {
                Ok(Element {
                    node: self.expr(e)?,
                    optional: optional.iter().any(|o| *o as usize == i),
                })
            })
            .collect::<Result<Vec<_>, EvalError>>()?;
        let constants: Option<Vec<Owned>> = elements.iter().map(Element::constant).collect();
        Ok(match constants {
            Some(items) => Node::Const(Owned::List(items.into())),
            None => Node::List(elements.into()),
        })
    }

    fn map(&mut self, entries: &[MapEntry]) -> Planned {
        let entries = entries
            .iter()
            .map(|entry| {
                let key = self.expr(&entry.key)?;
                let value = Element {
                    node: self.expr(&entry.value)?,
                    optional: entry.optional,
                };
                Ok((key, value))
            })
            .collect::<Result<Vec<_>, EvalError>>()?;
        let constants: Option<Vec<(Owned, Owned)>> = entries
            .iter()
            .map(|(key, value)| match key {
                Node::Const(key) => Some((key.clone(), value.constant()?)),
                _ => None,
            })
            .collect();
        Ok(match constants {
            Some(constants) if self.may_hold(&constants) => Node::Const(Owned::map(constants)),
            _ => Node::Map(entries.into()),
        })
    }

    /// Whether these entries make a map. If they do not, making it is an error when it is tried.
    fn may_hold(&self, entries: &[(Owned, Owned)]) -> bool {
        self.strictness == Strictness::Server || check_keys(entries.iter().map(|(key, _)| key.key())).is_ok()
    }

    fn message(&mut self, name: &Arc<str>, fields: &[StructField]) -> Planned {
        let fields = fields
            .iter()
            .map(|field| {
                let value = Element {
                    node: self.expr(&field.value)?,
                    optional: field.optional,
                };
                Ok((Arc::clone(&field.name), value))
            })
            .collect::<Result<_, EvalError>>()?;
        Ok(Node::Message(Box::new(Construction {
            name: Arc::clone(name),
            message: message::find(name),
            fields,
        })))
    }

    fn fold(&mut self, fold: &Comprehension) -> Planned {
        let range = self.expr(&fold.range)?;
        let init = self.expr(&fold.accu_init)?;
        let outer = self.scope.len();
        let accumulator = self.declare(&fold.accu_var);
        let inner = self.scope.len();
        // Of two variables of one name, the first is meant.
        let second = fold.iter_var2.as_ref().map(|var| self.declare(var));
        let first = self.declare(&fold.iter_var);
        let step = self.step(fold)?;
        self.scope.truncate(inner);
        let result = self.expr(&fold.result)?;
        self.scope.truncate(outer);
        Ok(Node::Fold(Box::new(Fold {
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

    /// What the fold does, seen through to what its macro meant.
    fn step(&mut self, fold: &Comprehension) -> Result<Step, EvalError> {
        let accumulator = fold.accu_var.as_ref();
        let free = |e: &Expr| !mentions(e, accumulator);
        let is_accumulator = |e: &Expr| matches!(&e.kind, ExprKind::Ident(n) if n.as_ref() == accumulator);
        let constant = |e: &Expr, b: bool| matches!(e.kind, ExprKind::Literal(Literal::Bool(v)) if v == b);
        if let Some(("_&&_", [left, predicate])) = called(&fold.step)
            && let Some(("@not_strictly_false", [going])) = called(&fold.condition)
            && is_accumulator(left)
            && is_accumulator(going)
            && constant(&fold.accu_init, true)
            && free(predicate)
        {
            return Ok(Step::All {
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
            return Ok(Step::Exists {
                predicate: self.expr(predicate)?,
            });
        }
        if constant(&fold.condition, true) {
            let (filter, adding) = match called(&fold.step) {
                Some(("_?_:_", [filter, adding, otherwise])) if is_accumulator(otherwise) && free(filter) => {
                    (Some(filter), adding)
                }
                _ => (None, &fold.step),
            };
            if let Some((left, element)) = appended(adding)
                && is_empty_list(&fold.accu_init)
                && is_accumulator(left)
                && free(element)
            {
                return Ok(Step::Append {
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
                        return Ok(Step::Insert { filter, entry });
                    }
                    [map] => {
                        let entry = Insertion::Map(self.expr(map)?);
                        return Ok(Step::Insert { filter, entry });
                    }
                    _ => {}
                }
            }
        }
        Ok(Step::Replace {
            condition: self.expr(&fold.condition)?,
            step: self.expr(&fold.step)?,
        })
    }
}

impl Element {
    fn constant(&self) -> Option<Owned> {
        match &self.node {
            Node::Const(value) if !self.optional => Some(value.clone()),
            _ => None,
        }
    }
}

/// A call of a function without a receiver.
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

/// Whether a name occurs in an expression.
fn mentions(e: &Expr, name: &str) -> bool {
    match &e.kind {
        ExprKind::Literal(_) => false,
        ExprKind::Ident(n) => n.as_ref() == name,
        ExprKind::Select { operand, .. } => mentions(operand, name),
        ExprKind::Call { target, args, .. } => {
            target.as_deref().is_some_and(|t| mentions(t, name)) || args.iter().any(|a| mentions(a, name))
        }
        ExprKind::List { elements, .. } => elements.iter().any(|e| mentions(e, name)),
        ExprKind::Map(entries) => {
            let mut entries = entries.iter();
            entries.any(|entry| mentions(&entry.key, name) || mentions(&entry.value, name))
        }
        ExprKind::Struct { fields, .. } => fields.iter().any(|f| mentions(&f.value, name)),
        ExprKind::Comprehension(fold) => {
            let outside = mentions(&fold.range, name) || mentions(&fold.accu_init, name);
            let hides = fold.accu_var.as_ref() == name;
            let parts = [&fold.condition, &fold.step, &fold.result];
            outside || (!hides && parts.into_iter().any(|part| mentions(part, name)))
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

/// The name of a type at run time, where parameters are gone.
fn runtime_name(ty: &Type) -> Arc<str> {
    match ty {
        Type::Null => "null_type".into(),
        Type::Duration => "google.protobuf.Duration".into(),
        Type::Timestamp => "google.protobuf.Timestamp".into(),
        Type::List(_) => "list".into(),
        Type::Map(_) => "map".into(),
        Type::Type(_) => "type".into(),
        Type::Wrapper(of) => runtime_name(of),
        Type::Opaque(name, _) | Type::Message(name) | Type::Param(name) => Arc::clone(name),
        Type::Object(object) => Arc::clone(&object.name),
        scalar => scalar.to_string().into(),
    }
}

/// Selects from what a node gives. What is selected from an access extends it, which is cheaper than another one.
fn qualify(node: Node, qualifier: Qualifier, mode: Mode) -> Node {
    match node {
        Node::Access(mut access) if access.mode == Mode::Value => {
            access.path.push(qualifier);
            access.mode = mode;
            Node::Access(access)
        }
        Node::Choice(mut choice) if choice.mode == Mode::Value => {
            choice.path.push(qualifier);
            choice.mode = mode;
            Node::Choice(choice)
        }
        node => Node::Access(Box::new(Access {
            root: Root::Value(node),
            path: vec![qualifier],
            mode,
        })),
    }
}

/// The functions whose result is folded where the argument is a constant.
fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}

/// The functions that have one implementation for all overloads.
fn is_singleton(function: &str) -> bool {
    function.ends_with('_') || matches!(function, "@in" | "size" | "matches" | "type" | "dyn")
}

fn call(
    candidates: &[&'static Overload],
    first: &'static Overload,
    args: Vec<Node>,
    pattern: Option<Pattern>,
) -> Node {
    let decided = candidates.len() == 1;
    let singleton = is_singleton(first.function);
    let actual = if decided {
        first.actual
    } else {
        first.actual.undecided()
    };
    let actual = actual.given(|arg| match args.get(arg) {
        Some(Node::Const(value)) => Some(value.key()),
        _ => None,
    });
    let mut args = args;
    if decided || singleton {
        match first.run {
            Run::Unary(run) if args.len() == 1 => {
                if let Some(arg) = args.pop() {
                    return Node::Unary(Box::new(Unary {
                        operation: Operation::of(first.function),
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
                        arithmetic: decided.then(|| Arithmetic::of(first.id)).flatten(),
                        run,
                        left,
                        right,
                        actual,
                        overload: first,
                    };
                    return match Relation::of(first.function) {
                        Some(relation) if of_ints || !decided => {
                            Node::Comparison(Box::new(Comparison { relation, call }))
                        }
                        None if decided && first.id == "add_string" => Node::Join(Box::new(call)),
                        _ => Node::Binary(Box::new(call)),
                    };
                }
            }
            _ => {}
        }
    }
    let order = match first.run {
        Run::Pattern(..) if pattern.is_none() && decided && args.len() <= 2 => Order::All,
        _ => Order::Stop,
    };
    Node::Call(Box::new(Call {
        candidates: candidates.into(),
        order,
        args: args.into(),
        actual,
        pattern,
    }))
}
