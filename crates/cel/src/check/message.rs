//! Message literals: well-known types, and object types of a schema. The latter check, but cannot be constructed at run
//! time, as on kube-apiserver.

use super::Checker;
use crate::ast::{ExprId, StructField};
use crate::env::{NameBinding, is_patch_object};
use crate::message;
use crate::types::CelType;
use std::sync::Arc;

impl Checker<'_> {
    /// Checks `Type{field: value}`.
    pub(super) fn message(&mut self, id: ExprId, name: &mut Arc<str>, fields: &mut [StructField]) -> CelType {
        let env = self.env;
        let meant = env.base().resolve(name, |name| match env.resolve_name(name)? {
            NameBinding::Type(ty) => Some((Arc::from(name), ty)),
            NameBinding::Variable(..) | NameBinding::Constant(_) => None,
        });
        let Some((full_name, ty)) = meant else {
            self.undeclared(id, name);
            return CelType::Error;
        };
        *name = full_name;
        // cel-go treats the protobuf types behind a type as messages, and so also the aliases `duration` and
        // `timestamp`.
        let is_message =
            message::find(name).is_some() || matches!(ty, CelType::Object(_)) || is_alias(name, &ty);
        if !is_message {
            self.report(id, format!("'{}' is not a message type", ty.name()));
        }
        for field in fields {
            // The fields of an unknown type are checked as well, so that mistakes in their values are reported, too.
            let mut found = self.expr(&mut field.value);
            if field.optional && is_message {
                found = self.optional_entry(field.value.id, found);
            }
            let Some(declared) = field_type(name, &ty, &field.name) else {
                self.report(field.id, format!("undefined field '{}'", field.name));
                continue;
            };
            if !self.unifier.assignable(&declared, &found) {
                let message = format!(
                    "expected type of field '{}' is '{declared}' but provided type is '{found}'",
                    field.name
                );
                self.report(field.id, message);
            }
        }
        if is_message { ty } else { CelType::Error }
    }
}

/// The type of a field of a message type or of an object type of a schema.
fn field_type(message: &str, ty: &CelType, field: &str) -> Option<CelType> {
    match ty {
        // The patch objects of mutations have no schema: kube-apiserver, too, accepts any field in them.
        CelType::Object(object) if is_patch_object(&object.name) => Some(CelType::Dyn),
        CelType::Object(object) => {
            let found = object.shape.field(field)?;
            Some(found.shape.ty(&format!("{}.{}", object.name, found.name)))
        }
        _ => Some(message::find(message)?.field(field)?.ty().to_type()),
    }
}

/// Returns whether a name is an alias that only the checker knows (`duration`).
fn is_alias(name: &str, ty: &CelType) -> bool {
    matches!(ty, CelType::Duration | CelType::Timestamp) && name != ty.name()
}
