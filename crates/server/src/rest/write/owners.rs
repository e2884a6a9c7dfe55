//! Removal of duplicate owner references.

use super::{Ownership, WriteRequest, metadata_mut};
use scantling_value::Value;
use std::collections::HashSet;

impl WriteRequest<'_> {
    /// Removes duplicate owner references with a warning, which depends on whether the request or a patch has them.
    pub(super) fn unite_owners(&mut self, object: &mut Value, ownership: Ownership) {
        let Some(Value::Array(owners)) = metadata_mut(object).and_then(|m| m.get_mut("ownerReferences"))
        else {
            return;
        };
        let mut seen = HashSet::new();
        let mut twice = Vec::new();
        owners.retain(|owner| {
            // Maps are ordered, so equal references have equal texts.
            let is_new = seen.insert(owner.to_json());
            if !is_new {
                twice.push(owner.get_str("uid").to_owned());
            }
            is_new
        });
        if twice.is_empty() {
            return;
        }
        let uids = twice.join(", ");
        self.warnings.push(match ownership {
            Ownership::Update => format!(
                ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and \
                 may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
            ),
            Ownership::Merged => format!(
                ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server \
                 dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your \
                 requests; duplicate UID(s) observed: {uids}"
            ),
        });
    }
}
