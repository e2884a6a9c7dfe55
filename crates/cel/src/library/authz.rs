//! Authorization checks.
//!
//! CRD rules see these functions only so that messages about overloads name them. They have no authorizer, so
//! these functions never run.

use crate::estimate::{Bounds, CallEstimate, LIST_COST, Operand, STRUCT_COST, TEXT_FACTOR};
use crate::overload::{Estimate, Library, Overload, Ty};
use crate::run::{Actual, Run};
use crate::val::EvalError;

const AUTHORIZER: Ty = Ty::Message("kubernetes.authorization.Authorizer");
const PATH_CHECK: Ty = Ty::Message("kubernetes.authorization.PathCheck");
const GROUP_CHECK: Ty = Ty::Message("kubernetes.authorization.GroupCheck");
const RESOURCE_CHECK: Ty = Ty::Message("kubernetes.authorization.ResourceCheck");
const DECISION: Ty = Ty::Message("kubernetes.authorization.Decision");
const S: Ty = Ty::String;

const fn row(id: &'static str, function: &'static str, params: &'static [Ty], result: Ty) -> Overload {
    Overload::member(
        id,
        function,
        params,
        result,
        Run::Variadic(|_, _| Err(EvalError::NoSuchOverload)),
    )
}

/// Makes a check so expensive that an expression can afford two.
const fn check(row: Overload) -> Overload {
    row.costing(Estimate::Fixed(350_000), Actual::Fixed(350_000))
}

/// Checks of paths and resources.
pub static AUTHORIZATION: Library = Library {
    name: "kubernetes.authz",
    overloads: &[
        row("authorizer_path", "path", &[AUTHORIZER, S], PATH_CHECK),
        row("authorizer_group", "group", &[AUTHORIZER, S], GROUP_CHECK),
        row(
            "authorizer_serviceaccount",
            "serviceAccount",
            &[AUTHORIZER, S, S],
            AUTHORIZER,
        ),
        row(
            "groupcheck_resource",
            "resource",
            &[GROUP_CHECK, S],
            RESOURCE_CHECK,
        ),
        row(
            "resourcecheck_subresource",
            "subresource",
            &[RESOURCE_CHECK, S],
            RESOURCE_CHECK,
        ),
        row(
            "resourcecheck_namespace",
            "namespace",
            &[RESOURCE_CHECK, S],
            RESOURCE_CHECK,
        ),
        row("resourcecheck_name", "name", &[RESOURCE_CHECK, S], RESOURCE_CHECK),
        check(row("pathcheck_check", "check", &[PATH_CHECK, S], DECISION)),
        check(row(
            "resourcecheck_check",
            "check",
            &[RESOURCE_CHECK, S],
            DECISION,
        )),
        row("decision_errored", "errored", &[DECISION], Ty::Bool),
        row("decision_error", "error", &[DECISION], S),
        row("decision_allowed", "allowed", &[DECISION], Ty::Bool),
        row("decision_reason", "reason", &[DECISION], S),
    ],
    types: &[],
};

/// Selectors in checks of resources.
pub static AUTHORIZATION_SELECTORS: Library = Library {
    name: "kubernetes.authzSelectors",
    overloads: &[
        row(
            "authorizer_fieldselector",
            "fieldSelector",
            &[RESOURCE_CHECK, S],
            RESOURCE_CHECK,
        )
        .costing(Estimate::Formula(selector), Actual::NOMINAL),
        row(
            "authorizer_labelselector",
            "labelSelector",
            &[RESOURCE_CHECK, S],
            RESOURCE_CHECK,
        )
        .costing(Estimate::Formula(selector), Actual::NOMINAL),
    ],
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
