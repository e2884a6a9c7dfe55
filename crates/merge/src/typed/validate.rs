//! Validation of values against a type.

use super::object_type::{ChosenType, ListSchema, MapSchema, ScalarType, TypeRef};
use scantling_value::{Map, TextList, Value, deadline, go};
use std::fmt;

/// The treatment of duplicates in sets and keyed lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Accepted: objects may be older than the list type of their schema.
    Allowed,
    /// An error: an applied value would be ambiguous.
    Refused,
}

/// The type errors of an object, with kube-apiserver's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeErrors(Vec<String>);

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => f.write_str(one),
            many => {
                f.write_str("errors:")?;
                many.iter().try_for_each(|e| write!(f, "\n  {e}"))
            }
        }
    }
}

impl std::error::Error for TypeErrors {}

/// A path in the object; formatted only when there is an error.
#[derive(Clone, Copy)]
struct ObjectPath<'a> {
    parent: Option<&'a ObjectPath<'a>>,
    step: PathStep<'a>,
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
    Root,
    Field(&'a str),
    Index(usize),
    /// An identifiable element of the list.
    Item(ListSchema<'a>, &'a Value),
}

impl fmt::Display for PathStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathStep::Root => Ok(()),
            PathStep::Field(name) => write!(f, ".{name}"),
            PathStep::Index(i) => write!(f, "[{i}]"),
            PathStep::Item(kind, item) => match kind.element_of(item) {
                Ok(element) => element.fmt(f),
                Err(text) => f.write_str(&text),
            },
        }
    }
}

impl fmt::Display for ObjectPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        self.step.fmt(f)
    }
}

struct TypeValidator {
    duplicates: Duplicates,
    errors: TextList,
}

pub(super) fn validate(value: &Value, ty: TypeRef<'_>, duplicates: Duplicates) -> Result<(), TypeErrors> {
    let mut validator = TypeValidator {
        duplicates,
        errors: TextList::new(),
    };
    let root = ObjectPath {
        parent: None,
        step: PathStep::Root,
    };
    validator.value(value, ty, &root);
    if validator.errors.is_empty() {
        Ok(())
    } else {
        Err(TypeErrors(validator.errors.into_vec()))
    }
}

/// Returns whether a value fits a type.
pub(super) fn fits(value: &Value, ty: TypeRef<'_>) -> bool {
    validate(value, ty, Duplicates::Allowed).is_ok()
}

impl TypeValidator {
    #[cold]
    fn error(&mut self, at: &ObjectPath<'_>, text: &str) {
        self.errors.push_with(|| {
            let path = at.to_string();
            match path.as_str() {
                "" => text.to_owned(),
                path => format!("{path}: {text}"),
            }
        });
    }

    fn value(&mut self, value: &Value, ty: TypeRef<'_>, at: &ObjectPath<'_>) {
        if ty.is_anything() {
            return;
        }
        deadline::tick();
        match (ty.kinds().choose(Some(value)).0, value) {
            // structured-merge-diff accepts null for any type; the validation of the merged object reports it.
            (_, Value::Null) => {}
            (Some(ChosenType::Map(kind)), Value::Object(map)) => self.map(map, kind, at),
            (Some(ChosenType::Map(_)), other) => {
                self.error(at, &format!("expected map, got &{{{}}}", go::value_v(other)));
            }
            (Some(ChosenType::List(kind)), Value::Array(items)) => self.list(items, kind, at),
            (Some(ChosenType::List(_)), other) => {
                self.error(at, &format!("expected list, got &{{{}}}", go::value_v(other)));
            }
            (Some(ChosenType::Scalar(scalar)), other) if scalar.allows(other) => {}
            (Some(ChosenType::Scalar(scalar)), other) => self.error(at, &scalar_error(scalar, other)),
            (None, _) => self.error(at, "schema error: invalid atom: inlined"),
        }
    }

    fn map(&mut self, map: &Map, kind: MapSchema<'_>, at: &ObjectPath<'_>) {
        if kind.is_deduced() {
            return;
        }
        for (name, value) in map.iter() {
            let at = ObjectPath {
                parent: Some(at),
                step: PathStep::Field(name),
            };
            let Some(ty) = kind.member(name) else {
                self.error(&at, "field not declared in schema");
                // kube-apiserver stops validating this object here.
                return;
            };
            self.value(value, ty, &at);
        }
    }

    fn list(&mut self, items: &[Value], kind: ListSchema<'_>, at: &ObjectPath<'_>) {
        if kind.is_atomic() {
            for (i, item) in items.iter().enumerate() {
                let step = PathStep::Index(i);
                self.value(
                    item,
                    kind.element,
                    &ObjectPath {
                        parent: Some(at),
                        step,
                    },
                );
            }
            return;
        }
        let repeats = match self.duplicates {
            Duplicates::Allowed => Vec::new(),
            Duplicates::Refused => repeats(items, kind),
        };
        for (i, item) in items.iter().enumerate() {
            // structured-merge-diff stops here, because an element without identity has no path for further
            // errors.
            if let Err(text) = kind.check_element(item) {
                self.error(at, &format!("element {i}: {text}"));
                return;
            }
            let step = PathStep::Item(kind, item);
            let below = ObjectPath {
                parent: Some(at),
                step,
            };
            if repeats.binary_search(&i).is_ok() {
                self.error(at, &format!("duplicate entries for key {step}"));
            }
            self.value(item, kind.element, &below);
        }
    }
}

/// The positions of repeated elements.
fn repeats(items: &[Value], kind: ListSchema<'_>) -> Vec<usize> {
    let elements = items.iter().enumerate();
    let elements = elements.filter_map(|(i, item)| Some((kind.element_of(item).ok()?, i)));
    let mut elements: Vec<_> = elements.collect();
    elements.sort();
    let groups = elements.chunk_by(|(a, _), (b, _)| a == b);
    let mut repeats: Vec<usize> = groups
        .flat_map(|group| group.iter().skip(1).map(|(_, i)| *i))
        .collect();
    repeats.sort_unstable();
    repeats
}

impl ScalarType {
    /// Returns whether a value is a scalar of the type.
    pub(super) fn allows(self, value: &Value) -> bool {
        match self {
            ScalarType::Numeric => matches!(value, Value::Int(_) | Value::Float(_)),
            ScalarType::String => matches!(value, Value::String(_)),
            ScalarType::Boolean => matches!(value, Value::Bool(_)),
            ScalarType::Any => !matches!(value, Value::Array(_) | Value::Object(_)),
        }
    }
}

/// The error about a value that is not a scalar of the type.
fn scalar_error(scalar: ScalarType, value: &Value) -> String {
    match scalar {
        ScalarType::Numeric => format!("expected numeric (int or float), got {}", go::value_type(value)),
        ScalarType::String => {
            let shown = go::value_syntax(value);
            format!("expected string, got &value.valueUnstructured{{Value:{shown}}}")
        }
        ScalarType::Boolean => format!("expected boolean, got &{{{}}}", go::value_v(value)),
        ScalarType::Any => format!("expected any scalar, got &{{{}}}", go::value_v(value)),
    }
}
