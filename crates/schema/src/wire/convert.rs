//! Conversion of objects that were made, not sent. What a strategic merge patch or an apply makes of a built-in kind is
//! no text: the server turns it into its types value by value, with words of its own and other rules for numbers.

use super::walk::{Walk, read_base64};
use super::{DecodeError, MAX_DEPTH, Options, Struct, Type};
use scantling_value::{Value, go};

impl Struct {
    /// Brings the numbers of a document into their types, or tells the first value that does not fit its own.
    pub(crate) fn convert(&'static self, document: &mut Value, options: Options) -> Result<(), DecodeError> {
        let conversion = Conversion { options, depth: 0 };
        conversion
            .value(document, &Type::Struct(self))
            .map_err(DecodeError)
    }
}

#[derive(Clone, Copy)]
struct Conversion {
    options: Options,
    depth: usize,
}

impl Conversion {
    fn value(self, value: &mut Value, ty: &Type) -> Result<(), String> {
        if self.depth >= MAX_DEPTH {
            // Decoding will say so.
            return Ok(());
        }
        let inner = Conversion {
            depth: self.depth + 1,
            ..self
        };
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
                items.iter_mut().try_for_each(|v| inner.value(v, element))
            }
            (Type::Map(_, element), Value::Object(members)) => {
                members.iter_mut().try_for_each(|(_, v)| inner.value(v, element))
            }
            (Type::Struct(s), Value::Object(members)) => s.fields.iter().try_for_each(|field| {
                let member = members.get_mut(field.name);
                member.map_or(Ok(()), |v| inner.value(v, &field.ty))
            }),
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
    fn misfit(self, value: &Value, ty: &Type) -> String {
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
