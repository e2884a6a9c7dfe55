//! Converts objects that a strategic merge patch or an apply produced. They are not text: kube-apiserver
//! converts them to its types value by value, with its own error messages and other rules for numbers than
//! its decoder.

use crate::decode::{DecodeError, MAX_DEPTH, base64};
use crate::{Codec, Extensions, GoType, TypeDef, TypeKind, TypeTable};
use scantling_value::{Finding, FindingList, Path, Value, deadline, go};

impl TypeTable {
    /// Converts the numbers of an object to their types; fails at the first value of the wrong type. Removes
    /// unknown fields and returns their paths.
    pub fn convert(
        &self,
        definition: &TypeDef,
        object: &mut Value,
        extensions: Extensions,
    ) -> Result<FindingList, DecodeError> {
        let mut conversion = Converter {
            table: self,
            extensions,
            depth: 0,
            unknown: FindingList::new(),
        };
        conversion
            .value(object, &GoType::Named(definition.id), &Path::ROOT)
            .map_err(DecodeError)?;
        conversion.unknown.sort();
        Ok(conversion.unknown)
    }
}

struct Converter<'t> {
    table: &'t TypeTable,
    extensions: Extensions,
    depth: usize,
    unknown: FindingList,
}

impl Converter<'_> {
    fn value(&mut self, value: &mut Value, ty: &GoType, at: &Path<'_>) -> Result<(), String> {
        if self.depth >= MAX_DEPTH {
            // Decoding will report it.
            return Ok(());
        }
        deadline::tick();
        self.depth += 1;
        let converted = self.of_type(value, ty, at);
        self.depth -= 1;
        converted
    }

    fn of_type(&mut self, value: &mut Value, ty: &GoType, at: &Path<'_>) -> Result<(), String> {
        let table = self.table;
        match (table.underlying(ty), &mut *value) {
            (_, Value::Null)
            | (GoType::Any, _)
            | (GoType::String, Value::String(_))
            | (GoType::Bool, Value::Bool(_))
            | (GoType::Float64, Value::Int(_) | Value::Float(_)) => Ok(()),
            (underlying @ (GoType::Int32 | GoType::Int64), Value::Int(i)) => {
                // UPSTREAM: `FromUnstructured` truncates without a check.
                *i = wrapped(*i, underlying);
                Ok(())
            }
            // As in `FromUnstructured`, a float without a fraction fits an integer field.
            (underlying @ (GoType::Int32 | GoType::Int64), Value::Float(f)) if f.trunc() == *f => {
                *value = Value::Int(wrapped(go::cut(*f), underlying));
                Ok(())
            }
            (GoType::Bytes, Value::String(s)) => base64::decode(s)
                .map(drop)
                .map_err(|at| format!("error decoding from json: illegal base64 data at input byte {at}")),
            (GoType::List(element), Value::Array(items)) => {
                let mut items = items.iter_mut().enumerate();
                items.try_for_each(|(i, v)| self.value(v, element, &at.index(i)))
            }
            // UPSTREAM: error paths skip the keys of maps.
            (GoType::Map(entry), Value::Object(members)) => members
                .iter_mut()
                .try_for_each(|(_, v)| self.value(v, &entry.1, at)),
            (GoType::Named(id), value) => match (&table.get(*id).kind, value) {
                (TypeKind::Struct(s), Value::Object(members)) => {
                    members.retain(|name, _| {
                        let field = s.field(name);
                        let is_known = field.is_some_and(|f| self.extensions.contains(f.extension));
                        if !is_known {
                            self.unknown.push_with(|| Finding::pruned(&at.field(name)));
                        }
                        is_known
                    });
                    // In the order of declaration, because the first error ends the conversion.
                    s.members.iter().try_for_each(|field| {
                        let member = members.get_mut(field.name);
                        member.map_or(Ok(()), |v| self.value(v, &field.ty, &at.field(field.name)))
                    })
                }
                (TypeKind::Custom(Codec::Raw | Codec::Fields | Codec::Json), _) => Ok(()),
                // These types have a decoder of their own, which reads text.
                (TypeKind::Custom(_), value) => table.check(value.clone(), ty, self.extensions),
                (_, value) => Err(self.mismatch(value, ty)),
            },
            (_, value) => Err(self.mismatch(value, ty)),
        }
    }

    /// The error about a value of the wrong type. Go has a different message for values that it could
    /// convert, such as an integer to a string.
    fn mismatch(&self, value: &Value, ty: &GoType) -> String {
        let found = match value {
            Value::Null => "invalid",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int64",
            Value::Float(_) => "float64",
            Value::String(_) => "string",
            Value::Array(_) => "slice",
            Value::Object(_) => "map",
        };
        match (self.table.underlying(ty), value) {
            (GoType::Map(_), _) => format!("cannot restore map from {found}"),
            (GoType::List(_) | GoType::Bytes, _) => format!("cannot restore slice from {found}"),
            (GoType::Named(_), _) => format!("cannot restore struct from: {found}"),
            (GoType::String, Value::Int(_)) | (GoType::Int32 | GoType::Int64, Value::Float(_)) => {
                format!("cannot convert {found} to {}", self.table.go_type(ty))
            }
            (GoType::String, _) => "unrecognized type: string".to_owned(),
            _ => format!("unrecognized type: {}", self.table.go_type(ty)),
        }
    }
}

/// Truncates an integer to its type.
fn wrapped(i: i64, ty: &GoType) -> i64 {
    match ty {
        GoType::Int32 => i64::from(i as i32),
        _ => i,
    }
}
