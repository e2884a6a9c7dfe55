//! Function calls.

use super::interpreter::{Computed, Interpreter, as_bool};
use super::op::{ArgEvaluation, AttributeMode, Binary, CallOp, Comparison, Op, Unary, UnaryKind};
use crate::estimate::text_cost;
use crate::overload::{Overload, Ty};
use crate::run::{Actual, Run};
use crate::shape::ShapeKind;
use crate::val::{Arena, EvalError, Owned, Res, Val, text_size};
use scantling_notation::regex::Pattern;
use scantling_value::Value;
use smallvec::SmallVec;

type Args<'a> = SmallVec<[Val<'a>; 4]>;

impl<'a> Interpreter<'a, '_> {
    /// `!a`
    #[inline(never)]
    pub(super) fn negation(&mut self, call: &'a Unary) -> Computed<bool> {
        let arg = self.test(&call.arg);
        let cost = match call.actual {
            Actual::Fixed(cost) => cost,
            actual => {
                let known = arg.as_ref().ok().map(|arg| Val::Bool(*arg));
                actual.cost(&[known], arg.as_ref().ok().map(|arg| Val::Bool(!arg)))
            }
        };
        self.charge_for(arg, cost).map(|arg| !arg)
    }

    /// A call with one argument. It costs the same if the argument is an error.
    #[inline(never)]
    pub(super) fn unary(&mut self, call: &'a Unary) -> Computed<Val<'a>> {
        let arg = match self.operand(&call.arg) {
            Ok(arg) => arg,
            Err(e) if e.is_final() => return Err(e),
            // cel-go evaluates the argument of a unary call first and charges for the call whatever the result is.
            Err(e) => {
                self.charge_failed_call(call.actual, &[None])?;
                return Err(e);
            }
        };
        // The common cases of `size` are computed here, without a call through a function pointer.
        let size = match (call.kind, arg) {
            (UnaryKind::Size, Val::JsonList(items, _)) => Some(items.len() as u64),
            (UnaryKind::Size, Val::JsonMap(object, _)) => Some(object.len() as u64),
            (UnaryKind::Size, Val::Str(text)) => Some(text_size(text)),
            _ => None,
        };
        let result = match size.map(i64::try_from) {
            Some(Ok(size)) => Ok(Val::Int(size)),
            // Also for sizes beyond an `int`, which the implementation reports as an overflow.
            _ => (call.run)(self.arena, arg),
        };
        match call.actual {
            Actual::Fixed(cost) => self.charge(cost)?,
            actual => self.charge_call(actual, &[Some(arg)], &result)?,
        }
        result.map_err(|e| self.call_error(e, call.overload, &[arg]))
    }

    /// A call with two arguments. Arithmetic on integer fields and constants bypasses [`Val`].
    #[inline(never)]
    pub(super) fn binary(&mut self, call: &'a Binary) -> Computed<Val<'a>> {
        if let (Some(arithmetic), Actual::Fixed(cost)) = (call.arithmetic, call.actual)
            && let Some((a, left)) = self.int_operand(&call.left)
            && let Some((b, right)) = self.int_operand(&call.right)
            // On overflow nothing has been charged yet, so the general path starts over and reports the error.
            && let Some(result) = arithmetic.result(a, b)
        {
            // Charged one by one: beyond the limit, the cost must be that of the operations that were reached.
            self.charge(left)?;
            self.charge(right)?;
            self.charge(cost)?;
            return Ok(Val::Int(result));
        }
        let (left, right) = self.operands(call)?;
        self.apply(call, left, right)
    }

    /// `a < b`, `a <= b`, `a > b` and `a >= b`
    #[inline(never)]
    pub(super) fn comparison(&mut self, comparison: &'a Comparison) -> Computed<bool> {
        let Comparison { relation, call } = comparison;
        if let Some((a, left)) = self.int_operand(&call.left)
            && let Some((b, right)) = self.int_operand(&call.right)
        {
            self.charge(left)?;
            self.charge(right)?;
            self.charge(1)?;
            return Ok(relation.holds(a, b));
        }
        self.any_comparison(comparison)
    }

    #[inline(never)]
    fn any_comparison(&mut self, comparison: &'a Comparison) -> Computed<bool> {
        let Comparison { relation, call } = comparison;
        match self.operands(call)? {
            (Val::Int(a), Val::Int(b)) => {
                self.charge(1)?;
                Ok(relation.holds(a, b))
            }
            (left, right) => self.apply(call, left, right).and_then(as_bool),
        }
    }

    /// `a + b` where the checker expects strings
    #[inline(never)]
    pub(super) fn concat(&mut self, call: &'a Binary) -> Computed<Val<'a>> {
        match self.operands(call)? {
            (Val::Str(a), Val::Str(b)) => {
                let joined = self.arena.concat_strings(a, b)?;
                self.charge(text_cost(text_size(joined)))?;
                Ok(Val::Str(joined))
            }
            (left, right) => self.apply(call, left, right),
        }
    }

    /// The integer that an op gives, and its cost, if it is a constant, a declared field, or the size of one.
    #[inline]
    pub(super) fn int_operand(&self, op: &'a Op) -> Option<(i64, u64)> {
        match op {
            Op::Const(Owned::Int(i)) => Some((*i, 0)),
            op => self.int_of_field(op),
        }
    }

    fn int_of_field(&self, op: &'a Op) -> Option<(i64, u64)> {
        match op {
            Op::Attribute(attribute) if attribute.mode == AttributeMode::Value => {
                match self.declared_value(attribute)? {
                    (Value::Int(i), shape)
                        // For any other shape the integer is read differently or is an error: `number` makes it a
                        // double.
                        if matches!(shape.kind, ShapeKind::Int | ShapeKind::IntOrString) =>
                    {
                        Some((*i, attribute.cost()))
                    }
                    _ => None,
                }
            }
            Op::Unary(call) if call.kind == UnaryKind::Size => match (&call.arg, call.actual) {
                (Op::Attribute(attribute), Actual::Fixed(cost)) if attribute.mode == AttributeMode::Value => {
                    let (value, shape) = self.declared_value(attribute)?;
                    let size = match (value, &shape.kind) {
                        (Value::Array(items), ShapeKind::List { .. }) => items.len() as u64,
                        (Value::String(text), ShapeKind::String) => text_size(text),
                        // Undeclared and null members count, as on kube-apiserver, whose map is the whole JSON object.
                        (Value::Object(object), ShapeKind::Object { .. } | ShapeKind::Map { .. }) => {
                            object.len() as u64
                        }
                        _ => return None,
                    };
                    Some((i64::try_from(size).ok()?, attribute.cost() + cost))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Evaluates both arguments. The right one is evaluated, and the call charged, even if the left one is an error.
    #[inline(always)]
    fn operands(&mut self, call: &'a Binary) -> Computed<(Val<'a>, Val<'a>)> {
        let left = match self.operand(&call.left) {
            Ok(left) => left,
            Err(e) if e.is_final() => return Err(e),
            Err(e) => return Err(self.left_error(call, e)),
        };
        match self.operand(&call.right) {
            Ok(right) => Ok((left, right)),
            Err(e) if e.is_final() => Err(e),
            // The left error would win; here the left operand is a value, so the right error stands.
            Err(e) => Err(self.argument_error(call, [Some(left), None], e)),
        }
    }

    #[inline]
    fn apply(&mut self, call: &'a Binary, a: Val<'a>, b: Val<'a>) -> Computed<Val<'a>> {
        let result = (call.run)(self.arena, a, b);
        match call.actual {
            Actual::Fixed(cost) => self.charge(cost)?,
            actual => self.charge_call(actual, &[Some(a), Some(b)], &result)?,
        }
        result.map_err(|e| self.call_error(e, call.overload, &[a, b]))
    }

    #[cold]
    fn left_error(&mut self, call: &'a Binary, error: EvalError) -> EvalError {
        match self.eval(&call.right) {
            Err(e) if e.is_final() => e,
            // The right operand has been evaluated for its cost only: the left error is the result.
            right => self.argument_error(call, [None, ok(&right)], error),
        }
    }

    #[cold]
    fn argument_error(
        &mut self,
        call: &'a Binary,
        known: [Option<Val<'a>>; 2],
        error: EvalError,
    ) -> EvalError {
        self.charge_failed_call(call.actual, &known)
            .err()
            .unwrap_or(error)
    }

    /// Evaluates an operand; the most common ops are inlined.
    #[inline(always)]
    pub(super) fn operand(&mut self, op: &'a Op) -> Computed<Val<'a>> {
        match op {
            Op::Const(Owned::Int(i)) => Ok(Val::Int(*i)),
            Op::Const(Owned::Str(s)) => Ok(Val::Str(s)),
            Op::Attribute(attribute) => self.attribute(attribute),
            op => self.eval(op),
        }
    }

    /// Any other call.
    #[inline(never)]
    pub(super) fn call(&mut self, call: &'a CallOp) -> Computed<Val<'a>> {
        let mut args = Args::new();
        for arg in &call.args {
            match self.eval(arg) {
                Ok(arg) => args.push(arg),
                Err(e) if e.is_final() => return Err(e),
                Err(e) => return Err(self.call_with_error(call, &args, e)),
            }
        }
        // The cost formulas take absent arguments, because they are also applied to calls whose arguments failed.
        let known: SmallVec<[Option<Val<'a>>; 4]> = args.iter().copied().map(Some).collect();
        self.dispatch(call, &args, &known)
    }

    fn dispatch(
        &mut self,
        call: &'a CallOp,
        args: &[Val<'a>],
        known: &[Option<Val<'a>>],
    ) -> Computed<Val<'a>> {
        let result = dispatch(self.arena, &call.candidates, call.pattern.as_ref(), args);
        self.charge_call(call.actual, known, &result)?;
        result
    }

    /// Finishes a call after an argument returned an error; `before` are the arguments before it.
    #[cold]
    fn call_with_error(&mut self, call: &'a CallOp, before: &[Val<'a>], error: EvalError) -> EvalError {
        let mut known: SmallVec<[Option<Val<'a>>; 4]> = before.iter().copied().map(Some).collect();
        // The error itself counts as an argument of size 1.
        known.push(None);
        if call.order == ArgEvaluation::All {
            for arg in call.args.iter().skip(known.len()) {
                match self.eval(arg) {
                    Err(e) if e.is_final() => return e,
                    arg => known.push(ok(&arg)),
                }
            }
        }
        // cel-go charges for a call only if it finds all arguments on its stack; the ones after the error are missing.
        if known.len() < call.args.len() {
            return error;
        }
        self.charge_failed_call(call.actual, &known)
            .err()
            .unwrap_or(error)
    }

    /// Charges for a call that has run.
    #[inline]
    fn charge_call(&mut self, actual: Actual, args: &[Option<Val<'a>>], result: &Res<'a>) -> Computed<()> {
        match result {
            Ok(result) => match actual {
                Actual::Fixed(cost) => self.charge(cost),
                actual if actual.fails(args) => Err(EvalError::NoCost),
                actual => self.charge(actual.cost(args, Some(*result))),
            },
            Err(e) if e.is_final() => Err(e.clone()),
            Err(_) => self.charge_failed_call(actual, args),
        }
    }

    /// Charges for a call that has no result.
    fn charge_failed_call(&mut self, actual: Actual, args: &[Option<Val<'a>>]) -> Computed<()> {
        if actual.fails(args) {
            return Err(EvalError::NoCost);
        }
        self.charge(actual.cost(args, None))
    }

    /// Converts the error of an implementation to kube-apiserver's message.
    fn call_error(&self, error: EvalError, overload: &'static Overload, args: &[Val<'a>]) -> EvalError {
        match error {
            EvalError::NoSuchOverload => no_such_overload(self.arena, overload, args),
            error => error,
        }
    }
}

/// Calls the first overload that fits the arguments.
pub(super) fn dispatch<'a>(
    arena: &'a Arena,
    candidates: &[&'static Overload],
    pattern: Option<&Pattern>,
    args: &[Val<'a>],
) -> Res<'a> {
    let fitting = match candidates {
        // The implementation checks its arguments itself, so a single candidate needs no comparison with its signature.
        [only] => Some(only),
        several => several.iter().find(|o| fits(arena, o, args)),
    };
    let Some(overload) = fitting else {
        return Err(match candidates {
            [first, ..] => no_such_overload(arena, first, args),
            [] => EvalError::NoSuchOverload,
        });
    };
    match run(arena, overload, pattern, args) {
        // A constant pattern has its own implementation, which does not check the signature.
        Err(EvalError::NoSuchOverload) if pattern.is_none() => Err(no_such_overload(arena, overload, args)),
        result => result,
    }
}

fn run<'a>(
    arena: &'a Arena,
    overload: &'static Overload,
    pattern: Option<&Pattern>,
    args: &[Val<'a>],
) -> Res<'a> {
    match (overload.run, args) {
        (Run::Nullary(run), []) => run(arena),
        (Run::Unary(run), [a]) => run(arena, *a),
        (Run::Binary(run), [a, b]) => run(arena, *a, *b),
        (Run::Ternary(run), [a, b, c]) => run(arena, *a, *b, *c),
        (Run::Variadic(run), args) => run(arena, args),
        (Run::Pattern(run, complaint), args) => match (pattern, args.get(1)) {
            (Some(pattern), _) => run(arena, pattern, args),
            // Compiled for every call, because the pattern is known only now.
            (None, Some(Val::Str(text))) => {
                let pattern =
                    Pattern::new(text).map_err(|e| EvalError::message(format!("{complaint}{e}")))?;
                run(arena, &pattern, args)
            }
            _ => Err(EvalError::NoSuchOverload),
        },
        _ => Err(EvalError::NoSuchOverload),
    }
}

#[inline]
pub(super) fn ok<'a, E>(value: &Result<Val<'a>, E>) -> Option<Val<'a>> {
    value.as_ref().ok().copied()
}

/// Returns whether the arguments fit the parameters of an overload.
fn fits<'a>(arena: &'a Arena, overload: &Overload, args: &[Val<'a>]) -> bool {
    overload.params.len() == args.len()
        && overload
            .params
            .iter()
            .zip(args)
            .all(|(ty, v)| is_a(arena, *v, *ty))
}

/// Returns whether a value has a type. Like cel-go, only the first element of a list is checked.
fn is_a<'a>(arena: &'a Arena, v: Val<'a>, ty: Ty) -> bool {
    match ty {
        Ty::Dyn | Ty::Param(_) => true,
        Ty::Null => matches!(v, Val::Null),
        Ty::Bool => matches!(v, Val::Bool(_)),
        Ty::Int => matches!(v, Val::Int(_)),
        Ty::Uint => matches!(v, Val::Uint(_)),
        Ty::Double => matches!(v, Val::Double(_)),
        Ty::String => matches!(v, Val::Str(_)),
        Ty::Bytes => matches!(v, Val::Bytes(_)),
        Ty::Duration => matches!(v, Val::Duration(_)),
        Ty::Timestamp => matches!(v, Val::Timestamp(_)),
        Ty::Type(_) | Ty::AnyType => matches!(v, Val::Type(_)),
        Ty::Wrapper(of) => matches!(v, Val::Null) || is_a(arena, v, *of),
        Ty::Optional(_) => matches!(v, Val::Optional(_)),
        Ty::Opaque(name) | Ty::Parametric(name, _) | Ty::Message(name) => {
            matches!(v, Val::Opaque(o) if o.type_name() == name)
        }
        Ty::List(element) => {
            // An empty list fits every element type, and an element with an error fits none.
            let first = v.as_list().map(|list| list.get(arena, 0));
            first.is_some_and(|first| first.is_none_or(|v| v.is_ok_and(|v| is_a(arena, v, *element))))
        }
        Ty::Map(..) => v.as_map().is_some(),
    }
}

/// The error for arguments of the wrong types. cel-go has three: with the argument types if it checks the signature
/// first, with the function if the operand does not implement the operation, and a bare one if the operation refuses.
#[cold]
fn no_such_overload<'a>(arena: &'a Arena, overload: &Overload, args: &[Val<'a>]) -> EvalError {
    let function = overload.function;
    // Only calls with arguments can be of wrong types.
    let Some(first) = args.first().copied() else {
        return EvalError::NoSuchOverload;
    };
    // Values that dispatch calls by name only report that they do not know this one.
    let answers = matches!(first, Val::Str(_) | Val::Timestamp(_) | Val::Duration(_));
    let has_operation = match function {
        // cel-go binds these without a check of the operand's traits, so it always gives the bare error.
        "contains" | "startsWith" | "endsWith" | "@in" | "!_" | "_&&_" | "_||_" => true,
        "_+_" => {
            first.as_list().is_some()
                || matches!(
                    first,
                    Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Str(_) | Val::Bytes(_)
                )
                || answers
        }
        "_-_" => matches!(first, Val::Int(_) | Val::Uint(_) | Val::Double(_)) || answers,
        "_*_" | "_/_" => matches!(first, Val::Int(_) | Val::Uint(_) | Val::Double(_)) || answers,
        "_%_" => matches!(first, Val::Int(_) | Val::Uint(_)) || answers,
        "-_" => matches!(first, Val::Int(_) | Val::Double(_) | Val::Bool(_)) || answers,
        "_<_" | "_<=_" | "_>_" | "_>=_" => {
            matches!(
                first,
                Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Str(_) | Val::Bytes(_)
            ) || answers
        }
        "size" => {
            first.as_list().is_some() || first.as_map().is_some() || matches!(first, Val::Bytes(_)) || answers
        }
        "matches" => answers,
        _ => {
            // The signature fits but the implementation refused, for example because of an element: the bare error.
            if fits(arena, overload, args) {
                return EvalError::NoSuchOverload;
            }
            let types: Vec<_> = args.iter().map(|v| v.type_name()).collect();
            return EvalError::message(format!("no such overload: {function}({})", types.join(", ")));
        }
    };
    if has_operation {
        EvalError::NoSuchOverload
    } else {
        EvalError::message(format!("no such overload: {function}"))
    }
}
