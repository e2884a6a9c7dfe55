//! Expressions of policies and match conditions.

use crate::Cursor;
use crate::checks::Report;
use scantling_cel::env::{BaseEnv, Env};
use scantling_cel::kubernetes::{self, KubernetesVersion};
use scantling_cel::shape::{ListType, Shape, ShapeKind};
use scantling_cel::types::CelType;
use scantling_value::ErrorList;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

/// The libraries for new expressions, and for those that were stored before.
static BASES: LazyLock<[Arc<BaseEnv>; 2]> = LazyLock::new(|| {
    [
        Arc::new(kubernetes::for_new_expressions(KubernetesVersion::LATEST)),
        Arc::new(kubernetes::for_stored_expressions(KubernetesVersion::LATEST)),
    ]
});

/// The types of the variables that all expressions may use.
static TYPES: LazyLock<[CelType; 2]> = LazyLock::new(|| {
    [
        namespace_shape().ty("kubernetes.Namespace"),
        request_shape().ty("kubernetes.AdmissionRequest"),
    ]
});

/// The optional variables that an expression may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declarations {
    /// `params`
    pub(super) has_params: bool,
    /// `authorizer`
    pub(super) has_authorizer: bool,
    /// The types of patches.
    pub(super) has_patch_types: bool,
}

/// The expected type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Result {
    /// Anything.
    Any,
    /// A boolean.
    Bool,
    /// A string.
    String,
    /// A string or null.
    StringOrNull,
    /// An object to apply.
    Object,
    /// A list of JSON patch operations.
    JsonPatches,
}

/// Compiles the expressions of one policy, which may use its variables.
#[derive(Debug, Default)]
pub(super) struct ExpressionCompiler {
    /// The variables that are declared so far; none where expressions may not use any.
    variables: Option<Vec<(String, Arc<Shape>)>>,
}

impl ExpressionCompiler {
    /// A compiler for a policy with variables.
    pub(super) fn with_variables() -> ExpressionCompiler {
        ExpressionCompiler {
            variables: Some(Vec::new()),
        }
    }

    /// Declares a variable of the policy, for expressions that follow.
    pub(super) fn declare(&mut self, name: &str, ty: Option<&CelType>) {
        let shape = ty.map_or_else(|| Shape::of_kind(ShapeKind::Dyn), shape_of);
        if let Some(variables) = &mut self.variables {
            // The last declaration of a name counts.
            variables.retain(|(declared, _)| declared != name);
            variables.push((name.to_owned(), shape));
        }
    }

    /// Compiles an expression and reports what is wrong with it; `shown` is the text that the error shows. Returns the
    /// type of its value. Expressions that were `stored` before may use newer libraries.
    #[expect(clippy::too_many_arguments, reason = "they describe one expression")]
    pub(super) fn check(
        &self,
        at: &Cursor<'_, '_>,
        text: &str,
        shown: &str,
        declarations: Declarations,
        expected: Result,
        stored: &BTreeSet<&str>,
        errors: &mut ErrorList,
    ) -> Option<CelType> {
        let [new, old] = &*BASES;
        // A newer server may have stored the expression before a downgrade; it must not block updates.
        let base = if stored.contains(shown) { old } else { new };
        match self.env(Arc::clone(base), declarations).compile(text) {
            Err(issues) => {
                errors.invalid_value(at, shown, format!("compilation failed: {issues}"));
                None
            }
            Ok(checked) => {
                let ty = checked.result_type().clone();
                if let Some(why) = expected.mismatch(&ty) {
                    errors.invalid_value(at, shown, why);
                    return None;
                }
                Some(ty)
            }
        }
    }

    fn env(&self, base: Arc<BaseEnv>, declarations: Declarations) -> Env {
        let [namespace, request] = &*TYPES;
        let mut env = Env::new(base)
            // A policy matches many kinds, so that the types of objects are not known here.
            .with_variable("object", CelType::Dyn)
            .with_variable("oldObject", CelType::Dyn)
            .with_variable("namespaceObject", namespace.clone())
            .with_variable("request", request.clone());
        if declarations.has_params {
            env = env.with_variable("params", CelType::Dyn);
        }
        if declarations.has_authorizer {
            let message = |name: &str| CelType::Message(name.into());
            env = env
                .with_variable("authorizer", message("kubernetes.authorization.Authorizer"))
                .with_variable(
                    "authorizer.requestResource",
                    message("kubernetes.authorization.ResourceCheck"),
                );
        }
        if declarations.has_patch_types {
            env = env.with_patch_types();
        }
        if let Some(variables) = &self.variables {
            let fields = variables
                .iter()
                .map(|(name, shape)| (name.as_str(), Arc::clone(shape)));
            env = env.with_variable("variables", Shape::object(fields).ty("kubernetes.variables"));
        }
        env
    }
}

impl Result {
    /// Returns the reason why a type is not the expected one.
    fn mismatch(self, ty: &CelType) -> Option<String> {
        let name = type_name(ty);
        let expected: &[&str] = match self {
            Result::Any => return None,
            Result::Bool => &["bool"],
            Result::String => &["string"],
            Result::StringOrNull => &["string", "null_type"],
            Result::Object => &["Object"],
            Result::JsonPatches => &["list(JSONPatch)"],
        };
        match expected {
            _ if expected.contains(&name.as_str()) => None,
            [only] => Some(format!("must evaluate to {only} but got {name}")),
            several => Some(format!(
                "must evaluate to one of [{}] but got {name}",
                several.join(" ")
            )),
        }
    }
}

/// The name of a type with its parameters.
fn type_name(ty: &CelType) -> String {
    match ty {
        CelType::List(element) => format!("list({})", type_name(element)),
        CelType::Map(entry) => format!("map({}, {})", type_name(&entry.0), type_name(&entry.1)),
        CelType::Type(Some(of)) => format!("type({})", type_name(of)),
        CelType::Opaque(name, params) if !params.is_empty() => {
            let params: Vec<String> = params.iter().map(type_name).collect();
            format!("{name}({})", params.join(", "))
        }
        other => other.name().to_owned(),
    }
}

/// The shape of values of a type, as far as variables of policies keep it.
fn shape_of(ty: &CelType) -> Arc<Shape> {
    Shape::of_kind(match ty {
        CelType::Bool => ShapeKind::Bool,
        CelType::Int => ShapeKind::Int,
        CelType::Double => ShapeKind::Double,
        CelType::String => ShapeKind::String,
        CelType::Bytes => ShapeKind::Bytes,
        CelType::Duration => ShapeKind::Duration,
        CelType::Timestamp => ShapeKind::DateTime,
        CelType::List(element) => ShapeKind::List {
            element: shape_of(element),
            list_type: ListType::Atomic,
        },
        CelType::Map(entry) if entry.0 == CelType::String => ShapeKind::Map {
            value: shape_of(&entry.1),
        },
        // Expressions that use such a variable are checked when they run.
        _ => ShapeKind::Dyn,
    })
}

fn string() -> Arc<Shape> {
    Shape::of_kind(ShapeKind::String)
}

fn time() -> Arc<Shape> {
    Shape::of_kind(ShapeKind::DateTime)
}

fn list(element: Arc<Shape>) -> Arc<Shape> {
    Shape::of_kind(ShapeKind::List {
        element,
        list_type: ListType::Atomic,
    })
}

fn map(value: Arc<Shape>) -> Arc<Shape> {
    Shape::of_kind(ShapeKind::Map { value })
}

/// Fields that are strings.
fn strings<'n>(names: &'n [&'n str]) -> impl Iterator<Item = (&'n str, Arc<Shape>)> {
    names.iter().map(|name| (*name, string()))
}

/// The request as expressions see it.
fn request_shape() -> Arc<Shape> {
    let kind = Shape::object(strings(&["group", "version", "kind"]));
    let resource = Shape::object(strings(&["group", "version", "resource"]));
    let user = Shape::object(
        strings(&["username", "uid"]).chain([("groups", list(string())), ("extra", map(list(string())))]),
    );
    let texts = [
        "subResource",
        "requestSubResource",
        "name",
        "namespace",
        "operation",
    ];
    Shape::object(strings(&texts).chain([
        ("kind", Arc::clone(&kind)),
        ("requestKind", kind),
        ("resource", Arc::clone(&resource)),
        ("requestResource", resource),
        ("userInfo", user),
        ("dryRun", Shape::of_kind(ShapeKind::Bool)),
        ("options", Shape::of_kind(ShapeKind::Dyn)),
    ]))
}

/// The namespace of the request as expressions see it.
fn namespace_shape() -> Arc<Shape> {
    let int = || Shape::of_kind(ShapeKind::Int);
    // kube-apiserver declares `UID` in capitals.
    let texts = ["name", "generateName", "namespace", "UID", "resourceVersion"];
    let metadata = Shape::object(strings(&texts).chain([
        ("labels", map(string())),
        ("annotations", map(string())),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", int()),
        ("deletionTimestamp", time()),
        ("generation", int()),
        ("finalizers", list(string())),
    ]));
    let texts = ["status", "type", "message", "reason"];
    let condition = Shape::object(strings(&texts).chain([("lastTransitionTime", time())]));
    let status = Shape::object([("conditions", list(condition)), ("phase", string())]);
    Shape::object([
        ("metadata", metadata),
        ("spec", Shape::object([("finalizers", list(string()))])),
        ("status", status),
    ])
}
