//! Checks the defaults of a CRD as a whole.

use super::structural;
use crate::document::Schema;
use crate::plan::PlanCompiler;
use crate::rules::Environments;
use crate::structural::{Interner, Structural};
use scantling_value::Path;
use std::sync::Arc;

/// Returns whether a schema or any schema below it has a default.
pub(super) fn has_default(s: Schema<'_>) -> bool {
    s.any(&mut |s| s.get("default").is_some())
}

/// Returns whether every default is an object or inside one. kube-apiserver treats defaults as parts of whole
/// objects; elements of a root and a non-object default of a root are not.
pub(in crate::definition) fn are_in_objects(root: Schema<'_>) -> bool {
    root.get("default")
        .is_none_or(|default| default.as_object().is_some())
        && !root.item().is_some_and(has_default)
}

/// The schema with its root marked as a resource: a default there has metadata.
pub(super) fn as_resource(root: &Arc<Structural>) -> Arc<Structural> {
    let mut root = Structural::clone(root);
    root.extensions.get_or_insert_default().embedded_resource = true;
    Arc::new(root)
}

/// Returns whether any default contains undeclared fields or malformed metadata.
pub(super) fn has_unpruned(root: Schema<'_>, environments: &Environments) -> bool {
    // Stored defaults that cannot be evaluated justify no exception.
    if !has_default(root) || !are_in_objects(root) || !structural::check(root, &Path::ROOT).is_empty() {
        return false;
    }
    let Ok(schema) = root.structural(&mut Interner::new()) else {
        return false;
    };
    let plan = PlanCompiler::for_defaults(environments).compile(&as_resource(&schema));
    plan.has_unpruned_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_cel::kubernetes::KubernetesVersion;
    use scantling_value::{Limits, json};

    /// The results for the defaults of a schema whose root has these members.
    fn judged(members: &str) -> (bool, bool) {
        let text = format!(r#"{{"type": "object", {members}}}"#);
        let document = json::decode(text.as_bytes(), Limits::default()).unwrap();
        let root = Schema::new(&document);
        let environments = Environments::for_version(KubernetesVersion::LATEST);
        (are_in_objects(root), has_unpruned(root, &environments))
    }

    #[test]
    fn defaults_are_pruned_and_coerced() {
        let embedded = |members: &str| {
            format!(
                r#""properties": {{"spec": {{"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true, {members}}}}}"#
            )
        };
        let field = |name: &str, ty: &str, default: &str| {
            format!(r#""properties": {{"{name}": {{"type": "{ty}", "default": {default}}}}}"#)
        };
        let resource = |metadata: &str| {
            format!(r#""default": {{"apiVersion": "v1", "kind": "K", "metadata": {metadata}}}"#)
        };
        let changed = [
            field("spec", "object", r#"{"a": 1}"#),
            field("kind", "string", "1"),
            field("metadata", "object", r#"{"a": 1}"#),
            embedded(&field("kind", "string", "1")),
            embedded(&field("metadata", "object", r#"{"name": 1}"#)),
            embedded(&resource(r#"{"a": 1}"#)),
            r#""default": {"kind": 1}"#.to_owned(),
        ];
        for members in changed {
            assert_eq!(judged(&members), (true, true), "{members}");
        }
        let kept = [
            field("spec", "string", r#""a""#),
            field("kind", "string", r#""K""#),
            field("metadata", "object", r#"{"name": "a"}"#),
            embedded(&field("kind", "string", r#""K""#)),
            embedded(&resource(r#"{"name": "a"}"#)),
            r#""default": {"kind": "K"}"#.to_owned(),
        ];
        for members in kept {
            assert_eq!(judged(&members), (true, false), "{members}");
        }
    }

    #[test]
    fn defaults_outside_any_object() {
        for members in [
            r#""default": ["a"]"#,
            r#""items": {"type": "string", "default": "a"}"#,
            r#""items": {"type": "object", "properties": {"a": {"type": "string", "default": "a"}}}"#,
            r#""items": {"type": "object", "additionalProperties": {"type": "string", "default": "a"}},
            "properties": {"spec": {"type": "object", "default": {"a": 1}}}"#,
        ] {
            assert_eq!(judged(members), (false, false), "{members}");
        }
    }
}
