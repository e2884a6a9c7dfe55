//! Prepares CRDs for a write: sets the fields that the system owns.

use super::{Definition, Gates, Spec, Status, Validation};
use scantling_value::Value;
use std::sync::Arc;

impl Definition {
    /// Prepares a new CRD: clears its status and the fields of disabled features.
    pub fn prepare_create(&mut self, gates: Gates) {
        self.status = Status::default();
        self.metadata.insert("generation", 1.into());
        self.remember_storage_version();
        self.spec.drop_disabled(gates, None);
    }

    /// Prepares an update: keeps the status, increments the generation if the specification changed, and
    /// clears the fields of disabled features unless the stored CRD uses them.
    pub fn prepare_update(&mut self, old: &Definition, gates: Gates) {
        self.status = old.status.clone();
        let generation = old
            .metadata
            .get("generation")
            .and_then(Value::as_int)
            .unwrap_or(0);
        // As on kube-apiserver, compared before the fields of disabled features are cleared.
        let generation = if self.spec.same(&old.spec) {
            generation
        } else {
            generation + 1
        };
        self.metadata.insert("generation", generation.into());
        self.remember_storage_version();
        self.spec.drop_disabled(gates, Some(&old.spec));
    }

    /// Prepares a status update: nothing else changes.
    pub fn prepare_status_update(&mut self, old: &Definition) {
        self.spec = old.spec.clone();
    }

    /// Adds the storage version to the stored versions.
    fn remember_storage_version(&mut self) {
        if let Some(v) = self.spec.storage_version()
            && !self.status.stored_versions.contains(&v.name)
        {
            self.status.stored_versions.push(v.name.clone());
        }
    }
}

impl Spec {
    /// Drops the keywords of disabled feature gates, unless the stored CRD uses them.
    fn drop_disabled(&mut self, gates: Gates, stored: Option<&Spec>) {
        let in_use = |key: &str| {
            let rules = "x-kubernetes-validations";
            stored.is_some_and(|spec| {
                spec.schemas().any(|s| {
                    s.any(&mut |s| match key {
                        "optionalOldSelf" => s.schemas(rules).any(|r| r.get(key).is_some()),
                        _ => !s.list(key).is_empty(),
                    })
                })
            })
        };
        let mut dropped = Vec::new();
        if !gates.expressions && !in_use("x-kubernetes-validations") {
            dropped.push("x-kubernetes-validations");
        }
        if !gates.ratcheting && !in_use("optionalOldSelf") {
            dropped.push("optionalOldSelf");
        }
        if dropped.is_empty() {
            return;
        }
        let own = self
            .versions
            .iter_mut()
            .flatten()
            .filter_map(|v| v.validation.as_mut());
        for Validation { schema } in self.validation.iter_mut().chain(own) {
            if let Some(schema) = schema {
                remove(Arc::make_mut(schema), &dropped);
            }
        }
    }
}

/// Removes keywords from a schema and from the schemas of values below it.
fn remove(schema: &mut Value, keys: &[&str]) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    for key in keys {
        if *key == "optionalOldSelf" {
            let rules = members
                .get_mut("x-kubernetes-validations")
                .and_then(Value::as_array_mut);
            for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
                rule.remove(key);
            }
        } else {
            members.remove(key);
        }
    }
    if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
        properties.iter_mut().for_each(|(_, s)| remove(s, keys));
    }
    for key in ["items", "additionalProperties"] {
        match members.get_mut(key) {
            Some(Value::Array(each)) => each.iter_mut().for_each(|s| remove(s, keys)),
            Some(s) => remove(s, keys),
            None => {}
        }
    }
}
