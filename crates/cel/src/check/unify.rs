//! Unification: which types fit which, and what type variables stand for.

use crate::types::Type;
use std::sync::Arc;

/// What type variables and parameters stand for, with the means to take bindings back.
#[derive(Debug, Default)]
pub(super) struct Unifier {
    /// By the number of the variable.
    vars: Vec<Option<Type>>,
    /// Parameters in the types of declared variables; there are hardly ever any.
    params: Vec<(Arc<str>, Option<Type>)>,
    /// What was bound before each binding since the last commitment, so that a failed attempt leaves no trace.
    trail: Vec<(Slot, Option<Type>)>,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Var(usize),
    Param(usize),
}

/// Whether unbound variables stay as they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unbound {
    Keep,
    ToDyn,
}

/// How an attempt to bind a variable ended.
enum Binding {
    /// The variable stands for the type, or for one that agrees with it.
    Agrees,
    /// The variable stands for something else.
    Disagrees,
    /// The variable is free, but occurs within the type.
    Circular,
}

impl Unifier {
    /// A variable that stands for nothing yet.
    pub(super) fn fresh(&mut self) -> Type {
        let n = self.vars.len();
        self.vars.push(None);
        Type::Var(u32::try_from(n).unwrap_or(u32::MAX))
    }

    /// Leaves out so many variables: messages show their numbers.
    pub(super) fn skip(&mut self, n: usize) {
        self.vars.resize(self.vars.len() + n, None);
    }

    /// Whether a value of type `from` may stand where `to` is asked for; if so, variables are bound to make it fit.
    pub(super) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.attempt(|u| u.fits(from, to))
    }

    /// The same for all pairs at once.
    pub(super) fn all_assignable(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.attempt(|u| u.all_fit(from, to))
    }

    /// The type with its variables replaced by what they stand for.
    pub(super) fn resolve(&self, t: &Type, unbound: Unbound) -> Type {
        match t {
            Type::Var(_) | Type::Param(_) => match self.bound(t) {
                Some(bound) => self.resolve(bound, unbound),
                None if unbound == Unbound::ToDyn => Type::Dyn,
                None => t.clone(),
            },
            Type::List(element) => Type::list(self.resolve(element, unbound)),
            Type::Map(entry) => Type::map(self.resolve(&entry.0, unbound), self.resolve(&entry.1, unbound)),
            Type::Type(Some(of)) => Type::of_type(self.resolve(of, unbound)),
            Type::Opaque(name, params) if !params.is_empty() => Type::Opaque(
                Arc::clone(name),
                params.iter().map(|p| self.resolve(p, unbound)).collect(),
            ),
            _ => t.clone(),
        }
    }

    fn attempt(&mut self, try_it: impl FnOnce(&mut Self) -> bool) -> bool {
        self.trail.clear();
        if try_it(self) {
            return true;
        }
        while let Some((slot, before)) = self.trail.pop() {
            if let Some(place) = self.place(slot) {
                *place = before;
            }
        }
        false
    }

    fn place(&mut self, slot: Slot) -> Option<&mut Option<Type>> {
        match slot {
            Slot::Var(n) => self.vars.get_mut(n),
            Slot::Param(n) => self.params.get_mut(n).map(|(_, bound)| bound),
        }
    }

    fn bound(&self, var: &Type) -> Option<&Type> {
        match var {
            Type::Var(n) => self.vars.get(*n as usize)?.as_ref(),
            Type::Param(name) => self.params.iter().find(|(n, _)| n == name)?.1.as_ref(),
            _ => None,
        }
    }

    fn bind(&mut self, var: &Type, to: Type) {
        let slot = match var {
            Type::Var(n) => Slot::Var(*n as usize),
            Type::Param(name) => Slot::Param(self.params.iter().position(|(n, _)| n == name).unwrap_or_else(
                || {
                    self.params.push((Arc::clone(name), None));
                    self.params.len() - 1
                },
            )),
            _ => return,
        };
        if let Some(place) = self.place(slot) {
            let before = place.replace(to);
            self.trail.push((slot, before));
        }
    }

    fn fits(&mut self, from: &Type, to: &Type) -> bool {
        if is_variable(to) {
            match self.agree(from, to) {
                Binding::Agrees => return true,
                Binding::Disagrees => return false,
                Binding::Circular => {}
            }
        }
        if is_variable(from) {
            return matches!(self.agree(to, from), Binding::Agrees);
        }
        match (from.unwrapped(), to.unwrapped()) {
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) => true,
            (Type::Null, _) => is_nullable(to),
            (_, Type::Null) => is_nullable(from),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(a), Type::List(b)) => self.fits(a, b),
            (Type::Map(a), Type::Map(b)) => self.fits(&a.0, &b.0) && self.fits(&a.1, &b.1),
            (Type::Opaque(a, ps), Type::Opaque(b, qs)) => a == b && self.all_fit(ps, qs),
            (a, b) => same(a, b),
        }
    }

    fn all_fit(&mut self, from: &[Type], to: &[Type]) -> bool {
        from.len() == to.len() && from.iter().zip(to).all(|(a, b)| self.fits(a, b))
    }

    /// Makes a variable stand for a type, or for the more general of that and what it stands for already.
    fn agree(&mut self, t: &Type, var: &Type) -> Binding {
        if same(t, var) {
            return Binding::Agrees;
        }
        let Some(bound) = self.bound(var).cloned() else {
            if self.occurs(var, t) {
                return Binding::Circular;
            }
            self.bind(var, t.clone());
            return Binding::Agrees;
        };
        if same(t, &bound) {
            return Binding::Agrees;
        }
        if !self.fits(t, &bound) {
            return Binding::Disagrees;
        }
        let general = more_general(t, &bound).clone();
        if !self.occurs(var, &general) {
            self.bind(var, general);
        }
        Binding::Agrees
    }

    /// Whether a variable occurs within a type, or within what that type's variables stand for.
    fn occurs(&self, var: &Type, within: &Type) -> bool {
        if same(var, within) {
            return true;
        }
        match within {
            Type::Var(_) | Type::Param(_) => self.bound(within).is_some_and(|t| self.occurs(var, t)),
            Type::List(element) => self.occurs(var, element),
            Type::Map(entry) => self.occurs(var, &entry.0) || self.occurs(var, &entry.1),
            Type::Type(Some(of)) => self.occurs(var, of),
            Type::Opaque(_, params) => params.iter().any(|p| self.occurs(var, p)),
            _ => false,
        }
    }
}

fn is_variable(t: &Type) -> bool {
    matches!(t, Type::Var(_) | Type::Param(_))
}

fn is_nullable(t: &Type) -> bool {
    matches!(
        t,
        Type::Null
            | Type::Wrapper(_)
            | Type::Opaque(..)
            | Type::Object(_)
            | Type::Message(_)
            | Type::Duration
            | Type::Timestamp
    )
}

/// Whether two types are the same type.
pub(crate) fn same(a: &Type, b: &Type) -> bool {
    match (a.unwrapped(), b.unwrapped()) {
        (Type::List(a), Type::List(b)) => same(a, b),
        (Type::Map(a), Type::Map(b)) => same(&a.0, &b.0) && same(&a.1, &b.1),
        (Type::Type(Some(a)), Type::Type(Some(b))) => same(a, b),
        (Type::Opaque(a, ps), Type::Opaque(b, qs)) => {
            a == b && ps.len() == qs.len() && ps.iter().zip(qs.iter()).all(|(p, q)| same(p, q))
        }
        (a, b) => a == b,
    }
}

/// The more general of two types that fit each other.
pub(super) fn more_general<'t>(a: &'t Type, b: &'t Type) -> &'t Type {
    if is_as_general(a, b) { a } else { b }
}

fn is_as_general(a: &Type, b: &Type) -> bool {
    match (a.unwrapped(), b.unwrapped()) {
        (Type::Dyn | Type::Var(_) | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Var(_) | Type::Param(_)) => false,
        (Type::List(a), Type::List(b)) => is_as_general(a, b),
        (Type::Map(a), Type::Map(b)) => is_as_general(&a.0, &b.0) && is_as_general(&a.1, &b.1),
        (Type::Type(_), Type::Type(_)) => true,
        (Type::Opaque(a, ps), Type::Opaque(b, qs)) => {
            a == b && ps.len() == qs.len() && ps.iter().zip(qs.iter()).all(|(p, q)| is_as_general(p, q))
        }
        (a, b) => same(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_take_the_more_general_type() {
        let mut u = Unifier::default();
        let var = u.fresh();
        assert!(u.assignable(&Type::Int, &var));
        assert_eq!(u.resolve(&var, Unbound::Keep), Type::Int);
        assert!(u.assignable(&Type::Dyn, &var));
        assert_eq!(u.resolve(&var, Unbound::Keep), Type::Dyn);
    }

    #[test]
    fn a_failed_attempt_leaves_no_trace() {
        let mut u = Unifier::default();
        let var = u.fresh();
        let wanted = [var.clone(), Type::String];
        assert!(!u.all_assignable(&[Type::Int, Type::Bool], &wanted));
        assert_eq!(u.resolve(&var, Unbound::Keep), var);
        assert_eq!(u.resolve(&var, Unbound::ToDyn), Type::Dyn);
        assert!(u.all_assignable(&[Type::Bool, Type::String], &wanted));
        assert_eq!(u.resolve(&Type::list(var), Unbound::Keep), Type::list(Type::Bool));
    }

    #[test]
    fn no_type_contains_itself() {
        let mut u = Unifier::default();
        let var = u.fresh();
        assert!(!u.assignable(&var, &Type::list(var.clone())));
        let other = u.fresh();
        assert!(u.assignable(&var, &Type::list(other.clone())));
        assert!(!u.assignable(&other, &Type::list(var)));
    }

    #[test]
    fn null_fits_what_allows_it() {
        let mut u = Unifier::default();
        for (ty, fits) in [
            (Type::Int, false),
            (Type::Wrapper(Arc::new(Type::Int)), true),
            (Type::Timestamp, true),
            (Type::list(Type::Int), false),
            (Type::optional(Type::Int), true),
            (Type::Message("kubernetes.Quantity".into()), true),
            (Type::Dyn, true),
        ] {
            assert_eq!(u.assignable(&Type::Null, &ty), fits, "{ty}");
            assert_eq!(u.assignable(&ty, &Type::Null), fits, "{ty}");
        }
    }
}
