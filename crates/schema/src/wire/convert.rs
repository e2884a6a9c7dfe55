//! Conversion of objects that were made, not sent. What a strategic merge patch or an apply makes of a built-in kind is
//! no text: the server turns it into its types value by value, with words of its own and other rules for numbers.

use super::walk::{Walk, read_base64};
use super::{DecodeError, MAX_DEPTH, Options, Struct, Type};
use scantling_value::{Path, PathBuf, Value, go};

impl Struct {
    /// Brings the numbers of a document into their types, or tells the first value that does not fit its own. Takes
    /// unknown fields out, and returns where they stood.
    pub(crate) fn convert(
        &'static self,
        document: &mut Value,
        options: Options,
    ) -> Result<Vec<PathBuf>, DecodeError> {
        let mut conversion = Conversion {
            options,
            depth: 0,
            unknown: Vec::new(),
        };
        conversion
            .value(document, &Type::Struct(self), &Path::ROOT)
            .map_err(DecodeError)?;
        conversion.unknown.sort_by_cached_key(PathBuf::listed);
        Ok(conversion.unknown)
    }
}

struct Conversion {
    options: Options,
    depth: usize,
    unknown: Vec<PathBuf>,
}

impl Conversion {
    fn value(&mut self, value: &mut Value, ty: &Type, at: &Path<'_>) -> Result<(), String> {
        if self.depth >= MAX_DEPTH {
            // Decoding will say so.
            return Ok(());
        }
        self.depth += 1;
        let converted = self.of_type(value, ty, at);
        self.depth -= 1;
        converted
    }

    fn of_type(&mut self, value: &mut Value, ty: &Type, at: &Path<'_>) -> Result<(), String> {
        match (ty, &mut *value) {
            (_, Value::Null)
            | (Type::Any, _)
            | (Type::Text(_), Value::String(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::Float, Value::Int(_) | Value::Float(_)) => Ok(()),
            (Type::Int32 | Type::Int64, Value::Int(i)) => {
                *i = held(*i, ty);
                Ok(())
            }
            (Type::Int32 | Type::Int64, Value::Float(f)) if f.trunc() == *f => {
                *value = Value::Int(held(go::cut(*f), ty));
                Ok(())
            }
            (Type::Bytes, Value::String(s)) => read_base64(s)
                .map(drop)
                .map_err(|at| format!("error decoding from json: illegal base64 data at input byte {at}")),
            (Type::List(_, element), Value::Array(items)) => {
                let mut items = items.iter_mut().enumerate();
                items.try_for_each(|(i, v)| self.value(v, element, &at.index(i)))
            }
            // The server loses sight of the keys of maps: its paths lead past them.
            (Type::Map(_, element), Value::Object(members)) => members
                .iter_mut()
                .try_for_each(|(_, v)| self.value(v, element, at)),
            (Type::Struct(s), Value::Object(members)) => {
                members.retain(|name, _| {
                    let is_known = s.known(name, self.options).is_some();
                    if !is_known {
                        self.unknown.push(PathBuf::from(&at.field(name)));
                    }
                    is_known
                });
                s.fields.iter().try_for_each(|field| {
                    let member = members.get_mut(field.name);
                    member.map_or(Ok(()), |v| self.value(v, &field.ty, &at.field(field.name)))
                })
            }
            // These read themselves, from a text.
            (
                Type::Time | Type::MicroTime | Type::SchemaOrBool | Type::SchemaOrList | Type::SchemaOrTexts,
                value,
            ) => Walk::new(self.options).check(value.clone(), ty),
            (_, value) => Err(self.misfit(value, ty)),
        }
    }

    /// What is told of a value of the wrong type. Go knows how to make a text of an integer, though that is not what is
    /// meant: for what it could convert it has other words than for what it could not.
    fn misfit(&self, value: &Value, ty: &Type) -> String {
        let found = match value {
            Value::Null => "invalid",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int64",
            Value::Float(_) => "float64",
            Value::String(_) => "string",
            Value::Array(_) => "slice",
            Value::Object(_) => "map",
        };
        match (ty, value) {
            (Type::Map(..), _) => format!("cannot restore map from {found}"),
            (Type::List(..) | Type::Bytes, _) => format!("cannot restore slice from {found}"),
            (Type::Struct(_), _) => format!("cannot restore struct from: {found}"),
            (Type::Text(_), Value::Int(_)) | (Type::Int32 | Type::Int64, Value::Float(_)) => {
                format!("cannot convert {found} to {}", ty.name(self.options.package))
            }
            (Type::Text(_), _) => "unrecognized type: string".to_owned(),
            _ => format!("unrecognized type: {}", ty.name(self.options.package)),
        }
    }
}

/// What a type holds of an integer.
fn held(i: i64, ty: &Type) -> i64 {
    match ty {
        Type::Int32 => i64::from(i as i32),
        _ => i,
    }
}
