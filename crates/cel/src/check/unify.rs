//! Type unification.

use crate::types::CelType;
use std::sync::Arc;

/// The bindings of type variables and parameters, with an undo log.
#[derive(Debug, Default)]
pub(super) struct Unifier {
    /// Bindings of variables, by number.
    vars: Vec<Option<CelType>>,
    /// Bindings of parameters in the types of declared variables, which are rare.
    params: Vec<(Arc<str>, Option<CelType>)>,
    /// The undo log: previous bindings since the last commit.
    trail: Vec<(VarRef, Option<CelType>)>,
}

#[derive(Clone, Copy, Debug)]
enum VarRef {
    Var(usize),
    Param(usize),
}

/// The treatment of unbound variables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unbound {
    Keep,
    ToDyn,
}

/// The result of binding a variable.
enum Binding {
    /// The variable is bound to the type or a compatible one.
    Bound,
    /// The variable is bound to an incompatible type.
    Conflict,
    /// The variable is free but occurs in the type.
    Circular,
}

impl Unifier {
    /// Creates an unbound variable.
    pub(super) fn new_variable(&mut self) -> CelType {
        let n = self.vars.len();
        self.vars.push(None);
        // The number cannot overflow: an expression has far fewer nodes and overloads than 2^32.
        CelType::Var(u32::try_from(n).unwrap_or(u32::MAX))
    }

    /// Skips variable numbers, which appear in error messages.
    pub(super) fn skip(&mut self, n: usize) {
        self.vars.resize(self.vars.len() + n, None);
    }

    /// Returns whether `from` is assignable to `to`. Binds variables if it is.
    pub(super) fn assignable(&mut self, from: &CelType, to: &CelType) -> bool {
        self.attempt(|u| u.fits(from, to))
    }

    /// Returns whether all pairs are assignable. Binds no variables if one is not.
    pub(super) fn all_assignable(&mut self, from: &[CelType], to: &[CelType]) -> bool {
        self.attempt(|u| u.all_fit(from, to))
    }

    /// Substitutes the bindings of variables.
    pub(super) fn resolve(&self, t: &CelType, unbound: Unbound) -> CelType {
        match t {
            CelType::Var(_) | CelType::Param(_) => match self.bound(t) {
                Some(bound) => self.resolve(bound, unbound),
                None if unbound == Unbound::ToDyn => CelType::Dyn,
                None => t.clone(),
            },
            CelType::List(element) => CelType::list(self.resolve(element, unbound)),
            CelType::Map(entry) => {
                CelType::map(self.resolve(&entry.0, unbound), self.resolve(&entry.1, unbound))
            }
            CelType::Type(Some(of)) => CelType::of_type(self.resolve(of, unbound)),
            CelType::Opaque(name, params) if !params.is_empty() => CelType::Opaque(
                Arc::clone(name),
                params.iter().map(|p| self.resolve(p, unbound)).collect(),
            ),
            // No other type has parts that could be variables.
            _ => t.clone(),
        }
    }

    fn attempt(&mut self, try_it: impl FnOnce(&mut Self) -> bool) -> bool {
        self.trail.clear();
        // A failed attempt must leave no bindings behind, because the next overload is tried with the same operands.
        if try_it(self) {
            return true;
        }
        // Newest first, because a variable may have been bound several times within the attempt.
        while let Some((slot, before)) = self.trail.pop() {
            if let Some(binding) = self.binding(slot) {
                *binding = before;
            }
        }
        false
    }

    fn binding(&mut self, slot: VarRef) -> Option<&mut Option<CelType>> {
        match slot {
            VarRef::Var(n) => self.vars.get_mut(n),
            VarRef::Param(n) => self.params.get_mut(n).map(|(_, bound)| bound),
        }
    }

    fn bound(&self, var: &CelType) -> Option<&CelType> {
        match var {
            CelType::Var(n) => self.vars.get(*n as usize)?.as_ref(),
            CelType::Param(name) => self.params.iter().find(|(n, _)| n == name)?.1.as_ref(),
            _ => None,
        }
    }

    fn bind(&mut self, var: &CelType, to: CelType) {
        let slot = match var {
            CelType::Var(n) => VarRef::Var(*n as usize),
            CelType::Param(name) => VarRef::Param(
                self.params
                    .iter()
                    .position(|(n, _)| n == name)
                    .unwrap_or_else(|| {
                        self.params.push((Arc::clone(name), None));
                        self.params.len() - 1
                    }),
            ),
            _ => return,
        };
        if let Some(binding) = self.binding(slot) {
            let before = binding.replace(to);
            self.trail.push((slot, before));
        }
    }

    fn fits(&mut self, from: &CelType, to: &CelType) -> bool {
        if is_variable(to) {
            match self.try_bind(from, to) {
                Binding::Bound => return true,
                Binding::Conflict => return false,
                // A free variable that occurs in the type: the type may still be a variable that accepts this one.
                Binding::Circular => {}
            }
        }
        // Both directions have now been tried, so a failure here is final.
        if is_variable(from) {
            return matches!(self.try_bind(to, from), Binding::Bound);
        }
        match (from.unwrapped(), to.unwrapped()) {
            // An operand with an error fits everything, so that one mistake is reported once.
            (CelType::Dyn | CelType::Error, _) | (_, CelType::Dyn | CelType::Error) => true,
            // cel-go still follows its first checker here: `null` fits opaque types, messages, durations and
            // timestamps.
            (CelType::Null, _) => is_nullable(to),
            (_, CelType::Null) => is_nullable(from),
            // All types of types are assignable to each other, so that `type(a) == type(b)` checks for any operands.
            (CelType::Type(_), CelType::Type(_)) => true,
            (CelType::List(a), CelType::List(b)) => self.fits(a, b),
            (CelType::Map(a), CelType::Map(b)) => self.fits(&a.0, &b.0) && self.fits(&a.1, &b.1),
            (CelType::Opaque(a, ps), CelType::Opaque(b, qs)) => a == b && self.all_fit(ps, qs),
            (a, b) => same(a, b),
        }
    }

    fn all_fit(&mut self, from: &[CelType], to: &[CelType]) -> bool {
        from.len() == to.len() && from.iter().zip(to).all(|(a, b)| self.fits(a, b))
    }

    /// Binds a variable to a type, or to the more general of the type and its present binding.
    fn try_bind(&mut self, t: &CelType, var: &CelType) -> Binding {
        if same(t, var) {
            return Binding::Bound;
        }
        // Cloned because comparing with the binding may change other bindings.
        let Some(bound) = self.bound(var).cloned() else {
            if self.occurs(var, t) {
                return Binding::Circular;
            }
            self.bind(var, t.clone());
            return Binding::Bound;
        };
        if same(t, &bound) {
            return Binding::Bound;
        }
        if !self.fits(t, &bound) {
            return Binding::Conflict;
        }
        // Widens the binding: `1 == dyn(x)` first binds the type parameter to `int`, then to `dyn`.
        let general = more_general(t, &bound).clone();
        // Otherwise the variable would be bound to itself, and `resolve` would not terminate.
        if !self.occurs(var, &general) {
            self.bind(var, general);
        }
        Binding::Bound
    }

    /// The occurs check, through the bindings of variables.
    fn occurs(&self, var: &CelType, within: &CelType) -> bool {
        if same(var, within) {
            return true;
        }
        match within {
            CelType::Var(_) | CelType::Param(_) => self.bound(within).is_some_and(|t| self.occurs(var, t)),
            CelType::List(element) => self.occurs(var, element),
            CelType::Map(entry) => self.occurs(var, &entry.0) || self.occurs(var, &entry.1),
            CelType::Type(Some(of)) => self.occurs(var, of),
            CelType::Opaque(_, params) => params.iter().any(|p| self.occurs(var, p)),
            _ => false,
        }
    }
}

fn is_variable(t: &CelType) -> bool {
    matches!(t, CelType::Var(_) | CelType::Param(_))
}

fn is_nullable(t: &CelType) -> bool {
    matches!(
        t,
        CelType::Null
            | CelType::Wrapper(_)
            | CelType::Opaque(..)
            | CelType::Object(_)
            | CelType::Message(_)
            | CelType::Duration
            | CelType::Timestamp
    )
}

/// Returns whether two types are the same type.
pub(crate) fn same(a: &CelType, b: &CelType) -> bool {
    match (a.unwrapped(), b.unwrapped()) {
        (CelType::List(a), CelType::List(b)) => same(a, b),
        (CelType::Map(a), CelType::Map(b)) => same(&a.0, &b.0) && same(&a.1, &b.1),
        (CelType::Type(Some(a)), CelType::Type(Some(b))) => same(a, b),
        (CelType::Opaque(a, ps), CelType::Opaque(b, qs)) => {
            a == b && ps.len() == qs.len() && ps.iter().zip(qs.iter()).all(|(p, q)| same(p, q))
        }
        (a, b) => a == b,
    }
}

/// The more general of two compatible types.
pub(super) fn more_general<'t>(a: &'t CelType, b: &'t CelType) -> &'t CelType {
    if is_as_general(a, b) { a } else { b }
}

fn is_as_general(a: &CelType, b: &CelType) -> bool {
    match (a.unwrapped(), b.unwrapped()) {
        (CelType::Dyn | CelType::Var(_) | CelType::Param(_), _) => true,
        (_, CelType::Dyn | CelType::Var(_) | CelType::Param(_)) => false,
        (CelType::List(a), CelType::List(b)) => is_as_general(a, b),
        (CelType::Map(a), CelType::Map(b)) => is_as_general(&a.0, &b.0) && is_as_general(&a.1, &b.1),
        (CelType::Type(_), CelType::Type(_)) => true,
        (CelType::Opaque(a, ps), CelType::Opaque(b, qs)) => {
            a == b && ps.len() == qs.len() && ps.iter().zip(qs.iter()).all(|(p, q)| is_as_general(p, q))
        }
        (a, b) => same(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_bind_to_the_more_general_type() {
        let mut u = Unifier::default();
        let var = u.new_variable();
        assert!(u.assignable(&CelType::Int, &var));
        assert_eq!(u.resolve(&var, Unbound::Keep), CelType::Int);
        assert!(u.assignable(&CelType::Dyn, &var));
        assert_eq!(u.resolve(&var, Unbound::Keep), CelType::Dyn);
    }

    #[test]
    fn failed_unification_is_undone() {
        let mut u = Unifier::default();
        let var = u.new_variable();
        let wanted = [var.clone(), CelType::String];
        assert!(!u.all_assignable(&[CelType::Int, CelType::Bool], &wanted));
        assert_eq!(u.resolve(&var, Unbound::Keep), var);
        assert_eq!(u.resolve(&var, Unbound::ToDyn), CelType::Dyn);
        assert!(u.all_assignable(&[CelType::Bool, CelType::String], &wanted));
        assert_eq!(
            u.resolve(&CelType::list(var), Unbound::Keep),
            CelType::list(CelType::Bool)
        );
    }

    #[test]
    fn occurs_check() {
        let mut u = Unifier::default();
        let var = u.new_variable();
        assert!(!u.assignable(&var, &CelType::list(var.clone())));
        let other = u.new_variable();
        assert!(u.assignable(&var, &CelType::list(other.clone())));
        assert!(!u.assignable(&other, &CelType::list(var)));
    }

    #[test]
    fn null_unifies_with_nullable_types() {
        let mut u = Unifier::default();
        for (ty, fits) in [
            (CelType::Int, false),
            (CelType::Wrapper(Arc::new(CelType::Int)), true),
            (CelType::Timestamp, true),
            (CelType::list(CelType::Int), false),
            (CelType::optional(CelType::Int), true),
            (CelType::Message("kubernetes.Quantity".into()), true),
            (CelType::Dyn, true),
        ] {
            assert_eq!(u.assignable(&CelType::Null, &ty), fits, "{ty}");
            assert_eq!(u.assignable(&ty, &CelType::Null), fits, "{ty}");
        }
    }
}
