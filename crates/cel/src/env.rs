//! Environments: the declarations that an expression is checked against.
//!
//! A [`BaseEnv`] holds the libraries and options that many expressions share. An [`Env`] adds variables and is cheap to
//! create for every schema node.

use crate::check::{CheckedExpr, check};
use crate::issue::Issues;
use crate::overload::{Library, Overload};
use crate::shape::{Shape, ShapeKind};
use crate::syntax::{ParseOptions, parse};
use crate::types::CelType;
use crate::validate::validate;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Libraries and options.
#[derive(Debug, Default)]
pub struct BaseEnv {
    functions: BTreeMap<&'static str, Vec<&'static Overload>>,
    types: BTreeMap<&'static str, CelType>,
    container: String,
    options: EnvOptions,
}

/// Options of the language. The default is the language without extensions.
#[derive(Clone, Copy, Debug, Default)]
pub struct EnvOptions {
    /// Parser options.
    pub parse: ParseOptions,
    /// Selection of fields whose names are reserved words.
    pub reserved_fields: ReservedFields,
    /// Validation after checking.
    pub validation: Validation,
    /// The semantics at run time.
    pub semantics: Semantics,
}

/// The semantics at run time. kube-apiserver is more lenient than the specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Semantics {
    /// As kube-apiserver: a presence test on a value without fields is `false`, map literals accept any scalar key, and
    /// the last of equal keys wins.
    #[default]
    Kubernetes,
    /// As specified: a presence test on a value without fields is an error, and so are repeated keys and keys that are
    /// neither booleans, integers nor strings.
    Specification,
}

/// Selection of fields whose names are reserved words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReservedFields {
    /// Only by their escaped names.
    #[default]
    Escaped,
    /// Also by the word itself: `self.namespace` is `self.__namespace__`.
    Raw,
}

/// The validation after checking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// None.
    #[default]
    None,
    /// The elements of list and map literals are of one type.
    Aggregates,
    /// In addition, constant durations, timestamps and regular expressions parse, and format strings match their
    /// arguments.
    Constants,
}

impl BaseEnv {
    /// Creates an environment base without names.
    pub fn new(options: EnvOptions) -> Self {
        BaseEnv {
            options,
            ..BaseEnv::default()
        }
    }

    /// Adds a library. Overloads of one function are tried in the order in which they were added.
    #[must_use]
    pub fn with(mut self, library: &'static Library) -> Self {
        for overload in library.overloads {
            let overloads = self.functions.entry(overload.function).or_default();
            // A later library may repeat an overload of an earlier one, for example as a newer version of it.
            if !overloads.iter().any(|o| o.id == overload.id) {
                overloads.push(overload);
            }
        }
        for (name, ty) in library.types {
            // The first declaration wins, as for overloads.
            self.types.entry(name).or_insert_with(|| ty.to_type());
        }
        self
    }

    /// Resolves names first within a container: in `a.b`, the name `x` is looked for as `a.b.x`, `a.x` and `x`.
    #[must_use]
    pub fn within(mut self, container: &str) -> Self {
        container.clone_into(&mut self.container);
        self
    }

    /// The options.
    pub fn options(&self) -> EnvOptions {
        self.options
    }

    /// The container's name; empty for none.
    pub fn container(&self) -> &str {
        &self.container
    }

    /// The overloads of a function by its full name.
    pub fn overloads(&self, function: &str) -> Option<&[&'static Overload]> {
        self.functions.get(function).map(Vec::as_slice)
    }

    /// All overloads, by function, in the order in which the checker tries them.
    pub fn rows(&self) -> impl Iterator<Item = &'static Overload> {
        self.functions.values().flatten().copied()
    }

    /// Calls `find` with each qualified name that a name may refer to, until it returns something. A leading dot makes
    /// a name absolute.
    pub(crate) fn resolve<T>(&self, name: &str, mut find: impl FnMut(&str) -> Option<T>) -> Option<T> {
        if let Some(absolute) = name.strip_prefix('.') {
            return find(absolute);
        }
        let mut container = self.container.as_str();
        // The innermost container comes first, as in the name resolution of protocol buffers.
        while !container.is_empty() {
            if let Some(found) = find(&format!("{container}.{name}")) {
                return Some(found);
            }
            container = container.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        find(name)
    }
}

/// A base environment with variables.
#[derive(Clone, Debug)]
pub struct Env {
    base: Arc<BaseEnv>,
    variables: Vec<(Arc<str>, CelType)>,
    has_patch_types: bool,
}

/// The declaration of a global name.
#[derive(Debug)]
pub(crate) enum NameBinding<'e> {
    Variable(&'e Arc<str>, &'e CelType),
    Type(CelType),
    Constant(i64),
}

/// The only named constant. It belongs to an enumeration, so its value is a number.
const NULL_VALUE: &str = "google.protobuf.NullValue.NULL_VALUE";

impl Env {
    /// Creates an environment without variables.
    pub fn new(base: Arc<BaseEnv>) -> Self {
        Env {
            base,
            variables: Vec::new(),
            has_patch_types: false,
        }
    }

    /// Declares a variable. Its name may have dots.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<Arc<str>>, ty: CelType) -> Self {
        self.variables.push((name.into(), ty));
        self
    }

    /// Declares the types of mutation patches: `JSONPatch`, and `Object` with arbitrary fields
    /// (`Object{spec: Object.spec{a: 1}}`).
    #[must_use]
    pub fn with_patch_types(mut self) -> Self {
        self.has_patch_types = true;
        self
    }

    /// The libraries and options.
    pub fn base(&self) -> &Arc<BaseEnv> {
        &self.base
    }

    /// The variables in the order of their declaration, which is the order of a program's inputs.
    pub fn variables(&self) -> &[(Arc<str>, CelType)] {
        &self.variables
    }

    /// Parses, checks and validates an expression.
    ///
    /// # Errors
    /// Returns the errors of the first stage that fails.
    pub fn compile(&self, source: &str) -> Result<CheckedExpr, Issues> {
        let options = self.base.options;
        let checked = check(self, parse(source, &options.parse)?)?;
        validate(&checked, options.validation)?;
        Ok(checked)
    }

    /// Looks up a qualified name.
    pub(crate) fn resolve_name(&self, name: &str) -> Option<NameBinding<'_>> {
        // As in cel-go, a declared variable hides a type of the same name.
        if let Some((name, ty)) = self.variables.iter().find(|(n, _)| n.as_ref() == name) {
            return Some(NameBinding::Variable(name, ty));
        }
        if name == NULL_VALUE {
            return Some(NameBinding::Constant(0));
        }
        if self.has_patch_types
            && let Some(ty) = patch_type(name)
        {
            return Some(NameBinding::Type(ty));
        }
        let known = self.base.types.get(name).cloned();
        known.or_else(|| self.schema_type(name)).map(NameBinding::Type)
    }

    /// Looks up the type of a schema node by its name (`selfType.spec`). Scalars have no types of their own. A name that
    /// begins with a variable is a selection instead.
    fn schema_type(&self, name: &str) -> Option<CelType> {
        let first = name.split('.').next();
        if self.variables.iter().any(|(n, _)| Some(n.as_ref()) == first) {
            return None;
        }
        self.variables.iter().find_map(|(_, ty)| {
            let CelType::Object(object) = ty else {
                return None;
            };
            // Type names of two variables may share a prefix (`selfType`, `selfTypeX`): what follows must begin with a
            // dot.
            let below = name.strip_prefix(object.name.as_ref())?;
            if below.is_empty() {
                return Some(ty.clone());
            }
            let mut shape = &object.shape;
            for field in below.strip_prefix('.')?.split('.') {
                shape = &shape.field(field)?.shape;
            }
            let ty = shape.ty(name);
            matches!(ty, CelType::Object(_) | CelType::List(_) | CelType::Map(_)).then_some(ty)
        })
    }
}

/// The type of a patch by its name.
fn patch_type(name: &str) -> Option<CelType> {
    if name == "JSONPatch" {
        let string = || Shape::of_kind(ShapeKind::String);
        let value = Shape::of_kind(ShapeKind::Dyn);
        let fields = [
            ("op", string()),
            ("path", string()),
            ("from", string()),
            ("value", value),
        ];
        return Some(Shape::object(fields).ty(name));
    }
    is_patch_object(name).then(|| Shape::object([]).ty(name))
}

/// Returns whether a type is that of an apply configuration, which may have any fields.
pub(crate) fn is_patch_object(name: &str) -> bool {
    name == "Object" || name.starts_with("Object.")
}
