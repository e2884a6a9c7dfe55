//! Authorization checks.
//!
//! CRD rules see these functions only so that messages about overloads name them. They have no authorizer, so
//! these functions never run.

use crate::estimate::{Bounds, CallEstimate, LIST_COST, Operand, STRUCT_COST, TEXT_FACTOR};
use crate::overload::{Costs, Estimate, Library, Ty, overloads};
use crate::run::Actual;
use crate::val::{Arena, EvalError, Res, Val};

const AUTHORIZER: Ty = Ty::Message("kubernetes.authorization.Authorizer");
const PATH_CHECK: Ty = Ty::Message("kubernetes.authorization.PathCheck");
const GROUP_CHECK: Ty = Ty::Message("kubernetes.authorization.GroupCheck");
const RESOURCE_CHECK: Ty = Ty::Message("kubernetes.authorization.ResourceCheck");
const DECISION: Ty = Ty::Message("kubernetes.authorization.Decision");
const S: Ty = Ty::String;

/// So expensive that an expression can afford two.
const CHECK: Costs = (Estimate::Fixed(350_000), Actual::Fixed(350_000));
const SELECTOR: Costs = (Estimate::Formula(selector), Actual::NOMINAL);

/// Checks of paths and resources.
pub static AUTHORIZATION: Library = Library {
    name: "kubernetes.authz",
    overloads: overloads! {
        "authorizer_path": member "path"(AUTHORIZER, S) -> PATH_CHECK => Variadic(never);
        "authorizer_group": member "group"(AUTHORIZER, S) -> GROUP_CHECK => Variadic(never);
        "authorizer_serviceaccount": member "serviceAccount"(AUTHORIZER, S, S) -> AUTHORIZER
            => Variadic(never);
        "groupcheck_resource": member "resource"(GROUP_CHECK, S) -> RESOURCE_CHECK => Variadic(never);
        "resourcecheck_subresource": member "subresource"(RESOURCE_CHECK, S) -> RESOURCE_CHECK
            => Variadic(never);
        "resourcecheck_namespace": member "namespace"(RESOURCE_CHECK, S) -> RESOURCE_CHECK => Variadic(never);
        "resourcecheck_name": member "name"(RESOURCE_CHECK, S) -> RESOURCE_CHECK => Variadic(never);
        "pathcheck_check": member "check"(PATH_CHECK, S) -> DECISION => Variadic(never), CHECK;
        "resourcecheck_check": member "check"(RESOURCE_CHECK, S) -> DECISION => Variadic(never), CHECK;
        "decision_errored": member "errored"(DECISION) -> Bool => Variadic(never);
        "decision_error": member "error"(DECISION) -> S => Variadic(never);
        "decision_allowed": member "allowed"(DECISION) -> Bool => Variadic(never);
        "decision_reason": member "reason"(DECISION) -> S => Variadic(never);
    },
    types: &[],
};

/// Selectors in checks of resources.
pub static AUTHORIZATION_SELECTORS: Library = Library {
    name: "kubernetes.authzSelectors",
    overloads: overloads! {
        "authorizer_fieldselector": member "fieldSelector"(RESOURCE_CHECK, S) -> RESOURCE_CHECK
            => Variadic(never), SELECTOR;
        "authorizer_labelselector": member "labelSelector"(RESOURCE_CHECK, S) -> RESOURCE_CHECK
            => Variadic(never), SELECTOR;
    },
    types: &[],
};

/// A selector is parsed into a list of requirements, each at least two characters long.
fn selector(operands: &[Operand<'_>]) -> CallEstimate {
    // Two roundings, as kube-apiserver has them: first the number of requirements, then their cost.
    let text = operands.get(1).map_or(Bounds::UNKNOWN, Operand::size);
    let requirements = text.scaled(0.5).scaled((LIST_COST + STRUCT_COST) as f64);
    CallEstimate::cost(
        Bounds::exactly(LIST_COST)
            .plus(text.scaled(TEXT_FACTOR))
            .plus(requirements),
    )
}

fn never<'a>(_: &'a Arena, _: &[Val<'a>]) -> Res<'a> {
    Err(EvalError::NoSuchOverload)
}
