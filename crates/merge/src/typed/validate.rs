//! Whether a value has a type.

use super::ty::{ListKind, MapKind, Scalar, Shape, TypeRef};
use crate::fields::Element;
use scantling_value::{Map, Value, go};
use std::collections::BTreeSet;
use std::fmt;

/// Whether elements of sets and keyed lists may repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// They may: objects that were stored before a list was keyed have them.
    Allowed,
    /// They may not: nobody could say which of them an applied value means.
    Refused,
}

/// What is wrong with an object, in a server's words.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// A place in the object; written out only when there is an error.
#[derive(Clone, Copy)]
struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
    Element(&'a Element),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Index(i) => write!(f, "[{i}]"),
            Step::Element(element) => element.fmt(f),
        }
    }
}

struct Validator {
    duplicates: Duplicates,
    errors: Vec<String>,
}

pub(super) fn validate(value: &Value, ty: TypeRef<'_>, duplicates: Duplicates) -> Result<(), TypeErrors> {
    let mut validator = Validator {
        duplicates,
        errors: Vec::new(),
    };
    let root = At {
        parent: None,
        step: Step::Root,
    };
    validator.value(value, ty, &root);
    if validator.errors.is_empty() {
        Ok(())
    } else {
        Err(TypeErrors(validator.errors))
    }
}

impl Validator {
    #[cold]
    fn error(&mut self, at: &At<'_>, text: &str) {
        let path = at.to_string();
        self.errors.push(if path.is_empty() {
            text.to_owned()
        } else {
            format!("{path}: {text}")
        });
    }

    fn value(&mut self, value: &Value, ty: TypeRef<'_>, at: &At<'_>) {
        match (ty.kinds().shape(Some(value)).0, value) {
            (_, Value::Null) => {}
            (Some(Shape::Map(kind)), Value::Object(map)) => self.map(map, kind, at),
            (Some(Shape::Map(_)), other) => {
                self.error(at, &format!("expected map, got &{{{}}}", go::value_v(other)));
            }
            (Some(Shape::List(kind)), Value::Array(items)) => self.list(items, kind, at),
            (Some(Shape::List(_)), other) => {
                self.error(at, &format!("expected list, got &{{{}}}", go::value_v(other)));
            }
            (Some(Shape::Scalar(scalar)), other) => {
                if let Some(text) = scalar_error(scalar, other) {
                    self.error(at, &text);
                }
            }
            (None, _) => self.error(at, "schema error: invalid atom: inlined"),
        }
    }

    fn map(&mut self, map: &Map, kind: MapKind<'_>, at: &At<'_>) {
        for (name, value) in map.iter() {
            let at = At {
                parent: Some(at),
                step: Step::Field(name),
            };
            let Some(ty) = kind.member(name) else {
                self.error(&at, "field not declared in schema");
                // A server looks no further in this object.
                return;
            };
            self.value(value, ty, &at);
        }
    }

    fn list(&mut self, items: &[Value], kind: ListKind<'_>, at: &At<'_>) {
        let mut seen = BTreeSet::new();
        for (i, item) in items.iter().enumerate() {
            if kind.is_atomic() {
                let at = At {
                    parent: Some(at),
                    step: Step::Index(i),
                };
                self.value(item, kind.element, &at);
                continue;
            }
            let element = match kind.element_of(item) {
                Ok(element) => element,
                Err(text) => {
                    self.error(at, &format!("element {i}: {text}"));
                    return;
                }
            };
            let below = At {
                parent: Some(at),
                step: Step::Element(&element),
            };
            if self.duplicates == Duplicates::Refused && seen.contains(&element) {
                self.error(at, &format!("duplicate entries for key {element}"));
            }
            self.value(item, kind.element, &below);
            if self.duplicates == Duplicates::Refused {
                seen.insert(element);
            }
        }
    }
}

/// Why a value that is not null is no scalar of that type.
fn scalar_error(scalar: Scalar, value: &Value) -> Option<String> {
    let fits = match scalar {
        Scalar::Numeric => matches!(value, Value::Int(_) | Value::Float(_)),
        Scalar::String => matches!(value, Value::String(_)),
        Scalar::Boolean => matches!(value, Value::Bool(_)),
        Scalar::Any => !matches!(value, Value::Array(_) | Value::Object(_)),
    };
    if fits {
        return None;
    }
    Some(match scalar {
        Scalar::Numeric => format!("expected numeric (int or float), got {}", go::value_type(value)),
        Scalar::String => {
            let shown = go::value_syntax(value);
            format!("expected string, got &value.valueUnstructured{{Value:{shown}}}")
        }
        Scalar::Boolean => format!("expected boolean, got &{{{}}}", go::value_v(value)),
        Scalar::Any => format!("expected any scalar, got &{{{}}}", go::value_v(value)),
    })
}
