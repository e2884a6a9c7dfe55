//! Authorization checks. Expressions in definitions know the functions, but have no authorizer to call them on: that
//! only shows in what the checker says of a mistaken call.

use crate::overload::{Estimate, Library, Overload, Ty};
use crate::run::{Actual, Run};
use crate::val::{Arena, EvalError, Res, Val};

const AUTHORIZER: Ty = Ty::Message("kubernetes.authorization.Authorizer");
const PATH_CHECK: Ty = Ty::Message("kubernetes.authorization.PathCheck");
const GROUP_CHECK: Ty = Ty::Message("kubernetes.authorization.GroupCheck");
const RESOURCE_CHECK: Ty = Ty::Message("kubernetes.authorization.ResourceCheck");
const DECISION: Ty = Ty::Message("kubernetes.authorization.Decision");

/// An authorization check costs so much that an expression can afford two of them.
const CHECK_COST: u64 = 350_000;

const NONE: Run = Run::Variadic(without_authorizer);

/// Checks of paths and resources.
pub static AUTHZ: Library = Library {
    name: "authz",
    overloads: &[
        Overload::member(
            "authorizer_path",
            "path",
            &[AUTHORIZER, Ty::String],
            PATH_CHECK,
            NONE,
        ),
        Overload::member(
            "authorizer_group",
            "group",
            &[AUTHORIZER, Ty::String],
            GROUP_CHECK,
            NONE,
        ),
        Overload::member(
            "authorizer_serviceaccount",
            "serviceAccount",
            &[AUTHORIZER, Ty::String, Ty::String],
            AUTHORIZER,
            NONE,
        ),
        Overload::member(
            "groupcheck_resource",
            "resource",
            &[GROUP_CHECK, Ty::String],
            RESOURCE_CHECK,
            NONE,
        ),
        Overload::member(
            "resourcecheck_subresource",
            "subresource",
            RESOURCE_AND_TEXT,
            RESOURCE_CHECK,
            NONE,
        ),
        Overload::member(
            "resourcecheck_namespace",
            "namespace",
            RESOURCE_AND_TEXT,
            RESOURCE_CHECK,
            NONE,
        ),
        Overload::member(
            "resourcecheck_name",
            "name",
            RESOURCE_AND_TEXT,
            RESOURCE_CHECK,
            NONE,
        ),
        Overload::member(
            "pathcheck_check",
            "check",
            &[PATH_CHECK, Ty::String],
            DECISION,
            NONE,
        )
        .costing(Estimate::Fixed(CHECK_COST), Actual::Fixed(CHECK_COST)),
        Overload::member("resourcecheck_check", "check", RESOURCE_AND_TEXT, DECISION, NONE)
            .costing(Estimate::Fixed(CHECK_COST), Actual::Fixed(CHECK_COST)),
        Overload::member("decision_errored", "errored", &[DECISION], Ty::Bool, NONE),
        Overload::member("decision_error", "error", &[DECISION], Ty::String, NONE),
        Overload::member("decision_allowed", "allowed", &[DECISION], Ty::Bool, NONE),
        Overload::member("decision_reason", "reason", &[DECISION], Ty::String, NONE),
    ],
    types: &[],
};

/// Checks of resources by selectors.
pub static AUTHZ_SELECTORS: Library = Library {
    name: "authz selectors",
    overloads: &[
        Overload::member(
            "authorizer_fieldselector",
            "fieldSelector",
            RESOURCE_AND_TEXT,
            RESOURCE_CHECK,
            NONE,
        )
        .costing(Estimate::text_pass(1), Actual::text_pass(1)),
        Overload::member(
            "authorizer_labelselector",
            "labelSelector",
            RESOURCE_AND_TEXT,
            RESOURCE_CHECK,
            NONE,
        )
        .costing(Estimate::text_pass(1), Actual::text_pass(1)),
    ],
    types: &[],
};

const RESOURCE_AND_TEXT: &[Ty] = &[RESOURCE_CHECK, Ty::String];

fn without_authorizer<'a>(_: &'a Arena, _: &[Val<'a>]) -> Res<'a> {
    Err(EvalError::NoSuchOverload)
}
