//! Validates the specification of a CRD.

use super::defaults::{as_resource, has_default};
use super::{MAX_SELECTABLE_FIELDS, Requirements, conversion, extensions, names, schema, structural};
use crate::default::check_defaults;
use crate::definition::convert::{same_list, same_validation};
use crate::definition::print::{self, KeywordType};
use crate::definition::{
    ApiVersion, CrdVersion, PrinterColumn, ScaleSubresource, Spec, Subresources, Validation,
};
use crate::document::Schema;
use crate::field_path::{self, BracketSyntax, PathStep};
use crate::names::{dns1035_label, dns1123_subdomain};
use crate::plan::PlanCompiler;
use crate::rules::{self, ExpressionLimit, Expressions, Shapes};
use crate::structural::{Interner, Structural, Type};
use scantling_value::{BadValue, ErrorList, FieldError, Path, Str, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Validates a specification.
pub(super) fn check(spec: &Spec, requirements: &Requirements<'_>, errors: &mut ErrorList) {
    let at = Path::ROOT.field("spec");
    check_group_and_scope(spec, &at, errors);
    check_schemas_present(spec, requirements, &at, errors);
    let has_defaults = requirements.schema.no_defaults.is_none() && spec.schemas().any(has_default);
    if has_defaults && spec.preserve_unknown_fields != Some(false) {
        let detail = "must be false in order to use defaults in the schema";
        // The value is a constant in kube-apiserver: `true` is shown even if the field is unset.
        errors.push_with(|| FieldError::invalid(&at.field("preserveUnknownFields"), true, detail));
    }
    let structural = requirements.structural
        || spec.preserve_unknown_fields != Some(true)
        || has_defaults
        || spec
            .schemas()
            .any(|s| s.any(&mut |s| uses_extension(s, requirements.context.api)));
    let check = SpecValidator {
        spec,
        requirements,
        structural,
        known: requirements.stored.map(Spec::expressions),
    };
    check.versions(&at, errors);
    check.top_level(&at, errors);
}

/// Checks the immutable settings.
pub(super) fn check_fixed(
    spec: &Spec,
    stored: &Spec,
    requirements: &Requirements<'_>,
    errors: &mut ErrorList,
) {
    let at = Path::ROOT.field("spec");
    let at_names = at.field("names");
    let mut fixed = |new: &Str, old: &Str, at: Path<'_>, shown: BadValue| {
        if new != old {
            errors.push_with(|| FieldError::invalid(&at, shown, "field is immutable"));
        }
    };
    let (new, old) = (&spec.names, &stored.names);
    if requirements.fixed_names {
        // UPSTREAM: the scope has a named type and is printed as JSON.
        fixed(
            &spec.scope,
            &stored.scope,
            at.field("scope"),
            json_text(&spec.scope),
        );
        fixed(
            &new.kind,
            &old.kind,
            at_names.field("kind"),
            new.kind.clone().into(),
        );
    }
    fixed(
        &spec.group,
        &stored.group,
        at.field("group"),
        spec.group.clone().into(),
    );
    fixed(
        &new.plural,
        &old.plural,
        at_names.field("plural"),
        new.plural.clone().into(),
    );
}

/// A text as kube-apiserver prints it if its type is not a plain string.
fn json_text(text: &str) -> BadValue {
    BadValue::Raw(Value::from(text).to_json())
}

/// Returns whether a schema uses an extension that requires a structural schema. In `v1`, stored
/// non-structural schemas may have map types.
fn uses_extension(s: Schema<'_>, api: ApiVersion) -> bool {
    s.flag("x-kubernetes-embedded-resource")
        || s.get("x-kubernetes-preserve-unknown-fields").is_some()
        || s.flag("x-kubernetes-int-or-string")
        || !s.list("x-kubernetes-list-map-keys").is_empty()
        || s.list_type().is_some()
        || (api == ApiVersion::V1Beta1 && s.map_type().is_some())
        || !s.list("x-kubernetes-validations").is_empty()
        || !s.list("x-kubernetes-unions").is_empty()
        || crate::structural::Mutability::ALL
            .iter()
            .any(|m| s.get(m.keyword()).is_some())
}

fn check_group_and_scope(spec: &Spec, at: &Path<'_>, errors: &mut ErrorList) {
    let at_group = at.field("group");
    let faults = dns1123_subdomain(&spec.group);
    if spec.group.is_empty() {
        errors.push_with(|| FieldError::required(&at_group, ""));
    } else if !faults.is_empty() {
        errors.push_with(|| FieldError::invalid(&at_group, spec.group.clone(), faults.join(",")));
    } else if !spec.group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.push_with(|| FieldError::invalid(&at_group, spec.group.clone(), detail));
    }
    let at_scope = at.field("scope");
    match spec.scope.as_str() {
        "" => errors.push_with(|| FieldError::required(&at_scope, "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push_with(|| FieldError::not_supported(&at_scope, other, ["Cluster", "Namespaced"])),
    }
}

/// Every version must have a schema. If the stored CRD lacks some, at least served and pruned versions must
/// have one.
fn check_schemas_present(
    spec: &Spec,
    requirements: &Requirements<'_>,
    at: &Path<'_>,
    errors: &mut ErrorList,
) {
    let has_schema = |v: Option<&Validation>| v.is_some_and(|v| v.schema.is_some());
    let pruned = spec.preserve_unknown_fields != Some(true);
    if has_schema(spec.validation.as_ref()) || !(requirements.schemas || pruned) {
        return;
    }
    for (i, v) in spec.versions().iter().enumerate() {
        if has_schema(v.validation.as_ref()) || !(requirements.schemas || v.served) {
            continue;
        }
        let detail = if requirements.schemas {
            ""
        } else {
            "because otherwise all fields are pruned"
        };
        let at = at.field("versions");
        let at = at.index(i);
        errors.push_with(|| FieldError::required(&at.field("schema").field("openAPIV3Schema"), detail));
    }
}

struct SpecValidator<'a> {
    spec: &'a Spec,
    requirements: &'a Requirements<'a>,
    /// True if schemas must be structural.
    structural: bool,
    /// The expressions of the stored CRD.
    known: Option<Expressions>,
}

impl SpecValidator<'_> {
    fn versions(&self, at: &Path<'_>, errors: &mut ErrorList) {
        let spec = self.spec;
        let at_versions = at.field("versions");
        let own_subresources = spec.versions().iter().any(|v| v.subresources.is_some());
        let mut first_of_name = BTreeMap::new();
        for v in spec.versions() {
            first_of_name.entry(&v.name).or_insert(v.subresources.as_ref());
        }
        for (i, v) in spec.versions().iter().enumerate() {
            let at = at_versions.index(i);
            let faults = dns1035_label(&v.name);
            if !faults.is_empty() {
                errors.push_with(|| FieldError::invalid(&at.field("name"), v.name.clone(), faults.join(",")));
            }
            // The subresources of the first version with that name apply.
            let subresources = if own_subresources {
                first_of_name.get(&v.name).copied().flatten()
            } else {
                spec.subresources.as_ref()
            };
            self.version(v, subresources.is_some_and(|s| s.status), &at, errors);
        }
    }

    fn version(&self, v: &CrdVersion, has_status: bool, at: &Path<'_>, errors: &mut ErrorList) {
        if let Some(warning) = &v.deprecation_warning {
            // UPSTREAM: an optional string is printed as JSON.
            for fault in deprecation_faults(v.deprecated, warning) {
                errors.push_with(|| {
                    FieldError::invalid(&at.field("deprecationWarning"), json_text(warning), fault)
                });
            }
        }
        self.validation(
            v.validation.as_ref(),
            has_status,
            &v.name,
            &at.field("schema"),
            errors,
        );
        check_subresources(v.subresources.as_ref(), &at.field("subresources"), errors);
        check_columns(
            v.columns.as_deref(),
            &at.field("additionalPrinterColumns"),
            errors,
        );
        let fields = v.selectable_fields.as_deref().unwrap_or_default();
        if fields.is_empty() {
            return;
        }
        let at_fields = at.field("selectableFields");
        let Some(schema) = v.validation.as_ref().and_then(Validation::schema) else {
            // UPSTREAM: the text says the opposite of what it means.
            let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
            errors.push_with(|| FieldError::invalid(&at_fields, "", detail));
            return;
        };
        self.selectable_fields(fields, schema, Some(&v.name), at, errors);
    }

    /// Checks the settings of the CRD as a whole. kube-apiserver reports them after those of the versions.
    fn top_level(&self, at: &Path<'_>, errors: &mut ErrorList) {
        let spec = self.spec;
        let versions = spec.versions();
        self.check_agreement(at, errors);
        let at_versions = at.field("versions");
        let shown = || BadValue::Raw(print::versions(spec.versions.as_deref()));
        let names: BTreeSet<&Str> = versions.iter().map(|v| &v.name).collect();
        if names.len() != versions.len() {
            errors.push_with(|| {
                FieldError::invalid(&at_versions, shown(), "must contain unique version names")
            });
        }
        if versions.iter().filter(|v| v.storage).count() != 1 {
            let detail = "must have exactly one version marked as storage version";
            errors.push_with(|| FieldError::invalid(&at_versions, shown(), detail));
        }
        if !spec.version.is_empty() {
            let at = at.field("version");
            let faults = dns1035_label(&spec.version);
            if !faults.is_empty() {
                errors.push_with(|| FieldError::invalid(&at, spec.version.clone(), faults.join(",")));
            }
            if versions.first().is_some_and(|v| v.name != spec.version) {
                let detail = "must match the first version in spec.versions";
                errors.push_with(|| FieldError::invalid(&at, spec.version.clone(), detail));
            }
        }
        let at_names = at.field("names");
        let n = &spec.names;
        for (key, name) in [
            ("plural", &n.plural),
            ("singular", &n.singular),
            ("kind", &n.kind),
            ("listKind", &n.list_kind),
        ] {
            if name.is_empty() {
                errors.push_with(|| FieldError::required(&at_names.field(key), ""));
            }
        }
        names::check(n, &at_names, errors);
        let has_status = |s: Option<&Subresources>| s.is_some_and(|s| s.status);
        let any_status = has_status(spec.subresources.as_ref())
            || versions.iter().any(|v| has_status(v.subresources.as_ref()));
        self.validation(
            spec.validation.as_ref(),
            any_status,
            &spec.version,
            &at.field("validation"),
            errors,
        );
        check_subresources(spec.subresources.as_ref(), &at.field("subresources"), errors);
        check_columns(
            spec.columns.as_deref(),
            &at.field("additionalPrinterColumns"),
            errors,
        );
        self.top_level_selectable_fields(at, errors);
        if let Some(c) = &spec.conversion {
            let at = at.field("conversion");
            if c.strategy != "None"
                && spec.preserve_unknown_fields != Some(false)
                && self.requirements.webhook_needs_pruning
            {
                let shown = json_text(&c.strategy);
                let detail = "must be None if spec.preserveUnknownFields is true";
                errors.push_with(|| FieldError::invalid(&at.field("strategy"), shown, detail));
            }
            conversion::check(c, &at, self.requirements, errors);
        }
    }

    /// A setting is at the top or with versions, and with versions only if they differ.
    fn check_agreement(&self, at: &Path<'_>, errors: &mut ErrorList) {
        let spec = self.spec;
        let versions = spec.versions();
        let filled = |c: Option<&[PrinterColumn]>| c.is_some_and(|c| !c.is_empty());
        let of_versions = |f: &dyn Fn(&CrdVersion, &CrdVersion) -> (bool, bool)| {
            let each = || versions.iter().zip(versions.first().into_iter().cycle());
            let any = each().any(|(v, first)| f(v, first).0);
            (any, any && each().all(|(v, first)| f(v, first) == (true, true)))
        };
        // Whether a setting is at the top, whether a version has it, and whether all have the same.
        let settings = [
            (
                ("validation", "schemas"),
                spec.validation.is_some(),
                of_versions(&|v, first| {
                    let own = v.validation.as_ref();
                    (own.is_some(), same_validation(own, first.validation.as_ref()))
                }),
            ),
            (
                ("subresources", "subresources"),
                spec.subresources.is_some(),
                of_versions(&|v, first| (v.subresources.is_some(), v.subresources == first.subresources)),
            ),
            (
                ("additionalPrinterColumns", "additionalPrinterColumns"),
                filled(spec.columns.as_deref()),
                of_versions(&|v, first| {
                    let own = v.columns.as_deref();
                    (filled(own), same_list(own, first.columns.as_deref()))
                }),
            ),
        ];
        for ((key, name), at_top, (some_have, _)) in settings {
            if at_top && some_have {
                let detail = format!("top-level and per-version {name} are mutually exclusive");
                errors.push_with(|| FieldError::forbidden(&at.field(key), detail));
            }
        }
        for ((key, name), _, (_, all_alike)) in settings {
            if all_alike {
                let shown = BadValue::Raw(print::versions(spec.versions.as_deref()));
                let detail = format!(
                    "per-version {name} may not all be set to identical values (top-level {key} should be used instead)"
                );
                errors.push_with(|| FieldError::invalid(&at.field("versions"), shown, detail));
            }
        }
    }

    fn top_level_selectable_fields(&self, at: &Path<'_>, errors: &mut ErrorList) {
        let fields = self.spec.selectable_fields.as_deref().unwrap_or_default();
        if fields.is_empty() {
            return;
        }
        match self.spec.validation.as_ref().map(Validation::schema) {
            None => {
                let detail = "may only be set when validations.schema is included";
                errors.push_with(|| FieldError::invalid(&at.field("selectableFields"), "", detail));
            }
            Some(schema) => {
                // Without a schema, no fields are declared.
                let schema = schema.unwrap_or(Schema::new(&Value::Null));
                self.selectable_fields(fields, schema, None, at, errors);
            }
        }
    }

    fn selectable_fields(
        &self,
        fields: &[Str],
        schema: Schema<'_>,
        version: Option<&str>,
        at: &Path<'_>,
        errors: &mut ErrorList,
    ) {
        // kube-apiserver continues without a schema, so paths are reported in addition.
        let schema = schema.structural(&mut Interner::new()).unwrap_or_else(|e| {
            let at = at.field("schema.openAPIV3Schema");
            errors.push_with(|| FieldError::invalid(&at, "", e.to_string()));
            Arc::default()
        });
        let at = at.field("selectableFields");
        let mut seen: BTreeSet<Vec<PathStep>> = BTreeSet::new();
        for (i, path) in fields.iter().enumerate() {
            let at = at.index(i);
            check_selectable_field(path, &schema, &at.field("jsonPath"), &mut seen, errors);
        }
        let kept = self
            .requirements
            .stored
            .is_some_and(|stored| self.spec.keeps_selectable_fields(stored, version));
        if seen.len() > MAX_SELECTABLE_FIELDS && !kept {
            errors.push_with(|| FieldError::too_many(&at, seen.len(), MAX_SELECTABLE_FIELDS));
        }
    }

    /// Checks the schema of a version or of all versions.
    fn validation(
        &self,
        place: Option<&Validation>,
        has_status: bool,
        version: &str,
        at: &Path<'_>,
        errors: &mut ErrorList,
    ) {
        let Some(root) = place.and_then(Validation::schema) else {
            return;
        };
        let before = errors.total();
        if has_status {
            check_root_with_status(root, at, errors);
        }
        if root.flag("nullable") {
            errors.push_with(|| {
                FieldError::forbidden(
                    &at.field("openAPIV3Schema.nullable"),
                    "nullable cannot be true at the root",
                )
            });
        }
        let at = at.field("openAPIV3Schema");
        let mut compiled = None;
        let mut fault = None;
        if self.structural {
            match root.structural(&mut Interner::new()) {
                Err(e) => fault = Some(FieldError::invalid(&at, "", e.to_string())),
                Ok(schema) => {
                    let mut faults = structural::check(root, &at);
                    if faults.is_empty() && has_default(root) {
                        let environments = self.requirements.context.environments;
                        let plan = PlanCompiler::for_defaults(environments).compile(&as_resource(&schema));
                        faults = check_defaults(&plan, &at, self.requirements.pruned_defaults);
                    }
                    // As on kube-apiserver, rules are not compiled if the schema is not structural or its
                    // defaults are invalid.
                    if faults.is_empty() {
                        compiled = Some(schema);
                    }
                    errors.extend(faults);
                }
            }
        }
        let faults = schema::check(root, &at, self.requirements.schema);
        extensions::check_root(root, &at, errors);
        self.immutability_version(root, &at, errors);
        if let Some(schema) = compiled {
            let rules = self.rules(&schema, version, &at, &faults.flawed);
            errors.extend(faults.errors.into_iter().chain(rules));
        } else {
            errors.extend(faults.errors);
        }
        // The reason why a schema has no structural form is mostly reported by a better error already.
        if errors.total() == before {
            errors.extend(fault);
        }
    }

    /// Checks the rules of a schema; those of schemas with errors are skipped.
    fn rules(
        &self,
        schema: &Arc<Structural>,
        version: &str,
        at: &Path<'_>,
        flawed: &BTreeSet<String>,
    ) -> ErrorList {
        let stored = self.requirements.stored;
        let check = rules::RuleCheck {
            environments: self.requirements.context.environments,
            accepted: self
                .known
                .as_ref()
                .map_or(rules::PreviouslyAccepted::None, rules::PreviouslyAccepted::These),
            expression_limit: match stored {
                Some(stored) if self.spec.keeps_schema(stored, version) => ExpressionLimit::Lifted,
                _ => ExpressionLimit::Enforced,
            },
        };
        // kube-apiserver skips these rules: their errors would disappear with the errors of the schema.
        let is_flawed = |node: &Path<'_>| !flawed.is_empty() && flawed.contains(&node.to_string());
        check.schema(schema, at, &mut Shapes::new(), &is_flawed)
    }

    /// Immutability is newer than `v1beta1`, where only stored CRDs may keep it.
    fn immutability_version(&self, root: Schema<'_>, at: &Path<'_>, errors: &mut ErrorList) {
        let kept = self
            .requirements
            .stored
            .is_some_and(|s| s.schemas().any(extensions::uses_immutability));
        if self.requirements.context.api == ApiVersion::V1Beta1
            && !kept
            && extensions::uses_immutability(root)
        {
            let detail = "immutability is available in apiextensions.k8s.io/v1 only";
            errors.push_with(|| FieldError::forbidden(at, detail));
        }
    }
}

fn deprecation_faults(deprecated: bool, warning: &str) -> Vec<String> {
    if !deprecated {
        return vec!["can only be set for deprecated versions".into()];
    }
    let mut faults = Vec::new();
    // UPSTREAM: bytes are counted.
    if warning.len() > 256 {
        faults.push("must be <= 256 characters long".into());
    }
    if warning.is_empty() {
        faults.push("must not be an empty string".into());
    }
    if let Some((i, _)) = warning
        .char_indices()
        .find(|(_, c)| !scantling_value::go::is_print(*c))
    {
        faults.push(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {i}"
        ));
    }
    faults
}

fn check_subresources(s: Option<&Subresources>, at: &Path<'_>, errors: &mut ErrorList) {
    let Some(scale) = s.and_then(|s| s.scale.as_ref()) else {
        return;
    };
    let ScaleSubresource {
        spec_replicas_path: spec,
        status_replicas_path: status,
        label_selector_path,
    } = scale;
    let mut check = |path: &Str, name: &str, below: &[&str], shown: BadValue, detail: &str| {
        let at = at.field(name);
        if path.is_empty() {
            errors.push_with(|| FieldError::required(&at, ""));
        } else if !path.starts_with('.') {
            let detail = "must be a simple json path starting with .";
            errors.push_with(|| FieldError::invalid(&at, path.clone(), detail));
        } else if !below.iter().any(|b| path.starts_with(b)) {
            errors.push_with(|| FieldError::invalid(&at, shown, detail));
        }
    };
    let detail = "should be a json path under .spec";
    check(
        spec,
        "scale.specReplicasPath",
        &[".spec."],
        spec.clone().into(),
        detail,
    );
    let detail = "should be a json path under .status";
    check(
        status,
        "scale.statusReplicasPath",
        &[".status."],
        status.clone().into(),
        detail,
    );
    if let Some(path) = label_selector_path.as_ref().filter(|p| !p.is_empty()) {
        // UPSTREAM: an optional string is printed as JSON.
        let detail = "should be a json path under either .spec or .status";
        check(
            path,
            "scale.labelSelectorPath",
            &[".spec.", ".status."],
            json_text(path),
            detail,
        );
    }
}

fn check_columns(columns: Option<&[PrinterColumn]>, at: &Path<'_>, errors: &mut ErrorList) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";
    for (i, c) in columns.unwrap_or_default().iter().enumerate() {
        let at = at.index(i);
        if c.name.is_empty() {
            errors.push_with(|| FieldError::required(&at.field("name"), ""));
        }
        let detail = format!("must be one of {}", TYPES.join(","));
        if c.ty.is_empty() {
            errors.push_with(|| FieldError::required(&at.field("type"), detail));
        } else if !TYPES.contains(&c.ty.as_str()) {
            errors.push_with(|| FieldError::invalid(&at.field("type"), c.ty.clone(), detail));
        }
        if !c.format.is_empty() && FORMATS.split(',').all(|format| format != c.format.as_str()) {
            let detail = format!("must be one of {FORMATS}");
            errors.push_with(|| FieldError::invalid(&at.field("format"), c.format.clone(), detail));
        }
        let at = at.field("JSONPath");
        if c.json_path.is_empty() {
            errors.push_with(|| FieldError::required(&at, ""));
        } else if !c.json_path.starts_with('.') {
            let detail = "must be a simple json path starting with .";
            errors.push_with(|| FieldError::invalid(&at, c.json_path.clone(), detail));
        }
    }
}

fn check_selectable_field(
    path: &Str,
    schema: &Arc<Structural>,
    at: &Path<'_>,
    seen: &mut BTreeSet<Vec<PathStep>>,
    errors: &mut ErrorList,
) {
    if path.is_empty() {
        errors.push_with(|| FieldError::required(at, ""));
        return;
    }
    let resolved = match field_path::resolve(path, schema, BracketSyntax::Refused) {
        Ok(resolved) => resolved,
        Err(e) => {
            errors.push_with(|| FieldError::invalid(at, path.clone(), format!("is an invalid path: {e}")));
            return;
        }
    };
    if matches!(resolved.steps.first(), Some(PathStep::Field(name) | PathStep::Key(name)) if name == "metadata")
    {
        errors.push_with(|| FieldError::invalid(at, path.clone(), "must not point to fields in metadata"));
    }
    let ty = resolved.schema.and_then(|s| s.ty);
    if !matches!(ty, Some(Type::String | Type::Boolean | Type::Integer)) {
        let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                      formats are allowed.";
        errors.push_with(|| FieldError::invalid(at, path.clone(), detail));
    }
    if !seen.insert(resolved.steps) {
        errors.push_with(|| FieldError::duplicate(at, path.clone()));
    }
}

/// With a status subresource, the root may only have keywords that also apply to `properties.status` alone.
fn check_root_with_status(root: Schema<'_>, at: &Path<'_>, errors: &mut ErrorList) {
    const ALLOWED: &str = "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum \
                           MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items \
                           Properties ExternalDocs Example XPreserveUnknownFields XValidations";
    let is_set = |key: &str, holds: KeywordType| match holds {
        KeywordType::Text => !root.string(key).is_empty(),
        KeywordType::Flag => root.flag(key),
        _ => root.get(key).is_some(),
    };
    let own = [("XUnions", "x-kubernetes-unions", KeywordType::Pointer)];
    // kube-apiserver walks over its Go type by reflection, which determines the names and the first error.
    for (name, key, holds) in print::KEYWORDS.iter().chain(&own) {
        if !is_set(key, *holds) {
            continue;
        }
        if *name == "Type" {
            if root.ty() != "object" {
                let detail = "only \"object\" is allowed as the type at the root of the schema if the status \
                              subresource is enabled";
                errors
                    .push_with(|| FieldError::invalid(&at.field("openAPIV3Schema.type"), root.ty(), detail));
                return;
            }
        } else if ALLOWED.split(' ').all(|allowed| allowed != *name) {
            let shown = BadValue::Raw(print::schema(root));
            let detail = format!(
                "only [{ALLOWED}] fields are allowed at the root of the schema if the status subresource is enabled"
            );
            errors.push_with(|| FieldError::invalid(&at.field("openAPIV3Schema"), shown, detail));
            return;
        }
    }
}
