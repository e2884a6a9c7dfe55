//! Calling functions.

use super::interpreter::Interpreter;
use super::op::{ArgEvaluation, Binary, CallOp, Comparison, Op, Unary};
use crate::estimate::text_cost;
use crate::overload::{Overload, Ty};
use crate::run::{Actual, Run};
use crate::val::{Arena, EvalError, Owned, Res, Val, text_size};
use scantling_notation::regex::Pattern;
use smallvec::SmallVec;

type Args<'a> = SmallVec<[Val<'a>; 4]>;

impl<'a> Interpreter<'a, '_> {
    /// A call on one argument. It costs even if the argument is an error.
    #[inline(never)]
    pub(super) fn unary(&mut self, call: &'a Unary) -> Res<'a> {
        let arg = match self.operand(&call.arg) {
            Ok(arg) => arg,
            Err(e) if e.is_final() => return Err(e),
            Err(e) => {
                let result = Err(e);
                self.charge_call(call.actual, &[None], &result)?;
                return result;
            }
        };
        let result = (call.run)(self.arena, arg);
        match call.actual {
            Actual::Fixed(cost) => self.charge(cost)?,
            actual => self.charge_call(actual, &[Some(arg)], &result)?,
        }
        match result {
            Err(EvalError::NoSuchOverload) => Err(no_such_overload(self.arena, call.overload, &[arg])),
            result => result,
        }
    }

    /// A call on two arguments.
    #[inline(never)]
    pub(super) fn binary(&mut self, call: &'a Binary) -> Res<'a> {
        let (left, right) = self.operands(call)?;
        self.apply(call, left, right)
    }

    /// `a < b` and its kin: integers are compared on the spot.
    #[inline(never)]
    pub(super) fn comparison(&mut self, comparison: &'a Comparison) -> Res<'a> {
        match self.operands(&comparison.call)? {
            (Val::Int(a), Val::Int(b)) => {
                self.charge(1)?;
                Ok(Val::Bool(comparison.relation.holds(a, b)))
            }
            (left, right) => self.apply(&comparison.call, left, right),
        }
    }

    /// `a + b` where the checker expects texts: they are joined on the spot.
    #[inline(never)]
    pub(super) fn concat(&mut self, call: &'a Binary) -> Res<'a> {
        match self.operands(call)? {
            (Val::Str(a), Val::Str(b)) => self.concat_strings(a, b),
            (left, right) => self.apply(call, left, right),
        }
    }

    #[inline]
    fn concat_strings(&mut self, a: &str, b: &str) -> Res<'a> {
        let joined = self.arena.concat_strings(a, b)?;
        self.charge(text_cost(text_size(joined)))?;
        Ok(Val::Str(joined))
    }

    /// Both arguments of a call. Where one of them is an error, the call costs what it costs, and the right one is
    /// evaluated even if the left one is the error.
    #[inline(always)]
    fn operands(&mut self, call: &'a Binary) -> Result<(Val<'a>, Val<'a>), EvalError> {
        let left = match self.operand(&call.left) {
            Ok(left) => left,
            Err(e) => return Err(self.left_error(call, e)),
        };
        match self.operand(&call.right) {
            Ok(right) => Ok((left, right)),
            Err(e) => Err(self.argument_error(call, [Some(left), None], e)),
        }
    }

    #[inline]
    fn apply(&mut self, call: &'a Binary, a: Val<'a>, b: Val<'a>) -> Res<'a> {
        let result = (call.run)(self.arena, a, b);
        match call.actual {
            Actual::Fixed(cost) => self.charge(cost)?,
            actual => self.charge_call(actual, &[Some(a), Some(b)], &result)?,
        }
        match result {
            Err(EvalError::NoSuchOverload) => Err(no_such_overload(self.arena, call.overload, &[a, b])),
            result => result,
        }
    }

    #[cold]
    fn left_error(&mut self, call: &'a Binary, error: EvalError) -> EvalError {
        if error.is_final() {
            return error;
        }
        match self.eval(&call.right) {
            Err(e) if e.is_final() => e,
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
        let result = Err(error.clone());
        self.charge_call(call.actual, &known, &result)
            .err()
            .unwrap_or(error)
    }

    /// The value of a step, the most common ones found on the spot.
    #[inline(always)]
    pub(super) fn operand(&mut self, op: &'a Op) -> Res<'a> {
        match op {
            Op::Const(Owned::Int(i)) => Ok(Val::Int(*i)),
            Op::Const(Owned::Str(s)) => Ok(Val::Str(s)),
            Op::Attribute(attribute) => self.attribute(attribute),
            op => self.eval(op),
        }
    }

    /// Any other call.
    #[inline(never)]
    pub(super) fn call(&mut self, call: &'a CallOp) -> Res<'a> {
        let mut args = Args::new();
        let mut known: SmallVec<[Option<Val<'a>>; 4]> = SmallVec::new();
        let mut error = None;
        for arg in &call.args {
            match self.eval(arg) {
                Ok(arg) => {
                    args.push(arg);
                    known.push(Some(arg));
                }
                Err(e) if e.is_final() => return Err(e),
                Err(e) => {
                    known.push(None);
                    error = error.or(Some(e));
                    if call.order == ArgEvaluation::UntilError {
                        break;
                    }
                }
            }
        }
        let result = match error {
            Some(e) if known.len() < call.args.len() => return Err(e),
            Some(e) => Err(e),
            None => self.dispatch(call, &args),
        };
        self.charge_call(call.actual, &known, &result)?;
        result
    }

    /// Charges for a call that has run.
    #[inline]
    fn charge_call(
        &mut self,
        actual: Actual,
        args: &[Option<Val<'a>>],
        result: &Res<'a>,
    ) -> Result<(), EvalError> {
        if let Err(e) = result
            && e.is_final()
        {
            return Err(e.clone());
        }
        match actual {
            Actual::Fixed(cost) => self.charge(cost),
            actual if actual.fails(args) => Err(EvalError::NoCost),
            actual => self.charge(actual.cost(args, ok(result))),
        }
    }

    fn dispatch(&self, call: &'a CallOp, args: &[Val<'a>]) -> Res<'a> {
        dispatch(self.arena, &call.candidates, call.pattern.as_ref(), args)
    }
}

/// Calls the first of the overloads that fits the arguments.
pub(super) fn dispatch<'a>(
    arena: &'a Arena,
    candidates: &[&'static Overload],
    pattern: Option<&Pattern>,
    args: &[Val<'a>],
) -> Res<'a> {
    let fitting = match candidates {
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
        // A constant pattern is matched by its own code, which does not look at the signature.
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

/// The value, where there is one.
#[inline]
pub(super) fn ok<'a>(value: &Res<'a>) -> Option<Val<'a>> {
    value.as_ref().ok().copied()
}

/// Whether the arguments are of the types that an overload takes.
fn fits<'a>(arena: &'a Arena, overload: &Overload, args: &[Val<'a>]) -> bool {
    overload.params.len() == args.len()
        && overload
            .params
            .iter()
            .zip(args)
            .all(|(ty, v)| is_a(arena, *v, *ty))
}

/// Whether a value is of a type. Of a list or map, the first element speaks for all.
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
            let first = v.as_list().map(|list| list.get(arena, 0));
            first.is_some_and(|first| first.is_none_or(|v| v.is_ok_and(|v| is_a(arena, v, *element))))
        }
        Ty::Map(..) => v.as_map().is_some(),
    }
}

/// What a server says to arguments of the wrong types: it names them where it looks at the signature before it
/// calls, the function where the operand has no such operation at all, and nothing where the operation refuses.
#[cold]
fn no_such_overload<'a>(arena: &'a Arena, overload: &Overload, args: &[Val<'a>]) -> EvalError {
    let function = overload.function;
    let Some(first) = args.first().copied() else {
        return EvalError::NoSuchOverload;
    };
    // Operands that answer calls by name say only that they do not know this one.
    let answers = matches!(first, Val::Str(_) | Val::Timestamp(_) | Val::Duration(_));
    let has_operation = match function {
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
