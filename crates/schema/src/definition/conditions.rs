//! The conditions of a CRD, as kube-apiserver's controllers set them.

use super::validate::names::{Approval, is_protected};
use super::validate::{bundle_fault, structural};
use super::{Condition, Definition, Names, Spec, Status, Validation};
use scantling_value::{ErrorList, FieldError, Map, Path, Str, Value, aggregate, go};
use std::collections::BTreeSet;

impl Definition {
    /// Updates names and conditions. `group` are the CRDs of the same group, including the stored form of
    /// this one; `now` is the transition time of changed conditions. Returns whether anything changed.
    pub fn update_conditions<'a>(
        &mut self,
        group: impl IntoIterator<Item = &'a Definition>,
        now: &str,
    ) -> bool {
        let before = self.status.clone();
        // The order matters within one call: a CRD is established only after its names have been accepted.
        self.update_names_condition(group, now);
        self.establish(now);
        match self.non_structural_condition() {
            Some(condition) => self.set_condition(condition, now),
            None => {
                let conditions = self.status.conditions.iter_mut();
                conditions.for_each(|list| list.retain(|c| c.ty != "NonStructuralSchema"));
            }
        }
        if let Some(condition) = self.approval_condition() {
            self.set_condition(condition, now);
        }
        self.status != before
    }

    /// Returns whether all requested names are accepted. Then other CRDs do not affect its conditions.
    pub fn has_its_names(&self) -> bool {
        self.spec.names.same(&self.status.accepted_names)
    }

    /// Returns a copy with only the names: what updating the conditions of other CRDs needs.
    #[must_use]
    pub fn without_schema_details(&self) -> Definition {
        Definition {
            metadata: Map::from_iter([("name", Value::from(self.name()))]),
            spec: Spec {
                group: self.spec.group.clone(),
                names: self.spec.names.clone(),
                ..Spec::default()
            },
            status: Status {
                accepted_names: self.status.accepted_names.clone(),
                ..Status::default()
            },
        }
    }

    /// Finds a condition.
    pub fn condition(&self, ty: &str) -> Option<&Condition> {
        self.status.conditions.iter().flatten().find(|c| c.ty == ty)
    }

    /// Sets a condition; its transition time changes only with its status.
    pub fn set_condition(&mut self, new: Condition, now: &str) {
        let conditions = self.status.conditions.get_or_insert_default();
        match conditions.iter_mut().find(|c| c.ty == new.ty) {
            Some(old) => {
                let moved = old.status != new.status || old.last_transition_time.is_empty();
                let last_transition_time = if moved {
                    now.into()
                } else {
                    old.last_transition_time.clone()
                };
                *old = Condition {
                    last_transition_time,
                    // As in kube-apiserver's helper, the observed generation of an existing condition stays.
                    observed_generation: old.observed_generation,
                    ..new
                };
            }
            None => conditions.push(Condition {
                last_transition_time: now.into(),
                ..new
            }),
        }
    }

    /// Refuses names that another CRD of the group uses; names accepted before are kept.
    fn update_names_condition<'a>(&mut self, group: impl IntoIterator<Item = &'a Definition>, now: &str) {
        // As on kube-apiserver, names that were accepted before are not checked again.
        if self.has_its_names() {
            return;
        }
        let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
        for other in group {
            let n = &other.status.accepted_names;
            resources.extend([n.plural.clone(), n.singular.clone()]);
            resources.extend(n.short_names.iter().flatten().cloned());
            kinds.extend([n.kind.clone(), n.list_kind.clone()]);
        }
        let wanted = &self.spec.names;
        let accepted = &mut self.status.accepted_names;
        // The last of several conflicts is reported.
        let mut conflict = None;
        let mut take = |name: &Str, accepted: &mut Str, used: &BTreeSet<Str>, reason| {
            if name != accepted && used.contains(name) {
                conflict = Some((reason, in_use(name)));
            } else {
                accepted.clone_from(name);
            }
        };
        take(&wanted.plural, &mut accepted.plural, &resources, "PluralConflict");
        take(
            &wanted.singular,
            &mut accepted.singular,
            &resources,
            "SingularConflict",
        );
        if wanted.short_names != accepted.short_names {
            let known = accepted.short_names.as_deref().unwrap_or_default();
            let taken = wanted
                .short_names
                .iter()
                .flatten()
                .filter(|n| !known.contains(n) && resources.contains(*n));
            let taken: Vec<String> = taken.map(|n| in_use(n)).collect();
            if taken.is_empty() {
                accepted.short_names.clone_from(&wanted.short_names);
            } else {
                conflict = Some(("ShortNamesConflict", aggregate(taken)));
            }
        }
        let mut take = |name: &Str, accepted: &mut Str, reason| {
            if name != accepted && kinds.contains(name) {
                conflict = Some((reason, in_use(name)));
            } else {
                accepted.clone_from(name);
            }
        };
        take(&wanted.kind, &mut accepted.kind, "KindConflict");
        take(&wanted.list_kind, &mut accepted.list_kind, "ListKindConflict");
        // Categories need not be unique, so they never conflict.
        accepted.categories.clone_from(&wanted.categories);

        let accepted = condition("NamesAccepted", true, "NoConflicts", "no conflicts found");
        let names = match conflict {
            None => accepted,
            Some((reason, message)) => condition("NamesAccepted", false, reason, &message),
        };
        self.set_condition(names, now);
        // A CRD that is established stays so, even if its new names conflict.
        if !self.has_condition("Established") {
            let refused = condition("Established", false, "NotAccepted", "not all names are accepted");
            self.set_condition(refused, now);
        }
    }

    /// Establishes a CRD whose names are accepted, unless the CA bundle of its webhook is invalid.
    fn establish(&mut self, now: &str) {
        if !self.has_condition("NamesAccepted") || self.has_condition("Established") {
            return;
        }
        let bundle = self
            .spec
            .conversion
            .as_ref()
            .and_then(|c| c.client.as_ref())
            .map_or("", |c| &c.ca_bundle);
        let established = if bundle.is_empty() || bundle_fault(bundle).is_none() {
            condition(
                "Established",
                true,
                "InitialNamesAccepted",
                "the initial names have been accepted",
            )
        } else {
            condition(
                "Established",
                false,
                "InvalidCABundle",
                "The conversion webhook CABundle is invalid",
            )
        };
        self.set_condition(established, now);
    }

    /// The condition that lists why schemas are not structural; `None` if all are.
    pub fn non_structural_condition(&self) -> Option<Condition> {
        let at = Path::ROOT.field("spec");
        let mut errors = ErrorList::new();
        if self.spec.preserves_unknown_fields() {
            errors
                .push_with(|| FieldError::invalid(&at.field("preserveUnknownFields"), true, "must be false"));
        }
        for (i, v) in self.spec.versions_with_own_settings().iter().enumerate() {
            let Some(schema) = v.validation.as_ref().and_then(Validation::schema) else {
                continue;
            };
            if let Some(e) = schema.unsupported() {
                let message = format!("failed to check validation schema for version {}: {e}", v.name);
                let unknown = condition("NonStructuralSchema", true, "StructuralError", &message);
                return Some(Condition {
                    status: "Unknown".into(),
                    ..unknown
                });
            }
            let at = at.field("versions");
            let at = at.index(i);
            errors.extend(structural::check(
                schema,
                &at.field("schema").field("openAPIV3Schema"),
            ));
        }
        let message = aggregate(&errors);
        (!errors.is_empty()).then(|| condition("NonStructuralSchema", true, "Violations", &message))
    }

    /// Returns whether the condition is set that some schema is not structural, or will be set by the
    /// controller. No schema of such a CRD is published.
    pub fn has_non_structural_condition(&self) -> bool {
        self.spec.preserves_unknown_fields() || self.condition("NonStructuralSchema").is_some()
    }

    /// The approval condition of a CRD in a protected group; `None` for other groups.
    pub fn approval_condition(&self) -> Option<Condition> {
        if !is_protected(&self.spec.group) {
            return None;
        }
        let approval = Approval::from_annotation(self);
        let reason = match approval {
            Approval::Missing => "MissingAnnotation",
            Approval::Bypassed(_) => "UnapprovedAnnotation",
            Approval::Approved(_) => "ApprovedAnnotation",
            Approval::Invalid => "InvalidAnnotation",
        };
        let approved = matches!(approval, Approval::Approved(_));
        Some(condition(
            "KubernetesAPIApprovalPolicyConformant",
            approved,
            reason,
            &approval.reason(),
        ))
    }
}

impl Names {
    /// Compares names without distinguishing an empty list from an absent one.
    fn same(&self, other: &Names) -> bool {
        let plain = |n: &Names| Names {
            short_names: n.short_names.clone().filter(|l| !l.is_empty()),
            categories: n.categories.clone().filter(|l| !l.is_empty()),
            ..n.clone()
        };
        plain(self) == plain(other)
    }
}

fn condition(ty: &str, status: bool, reason: &str, message: &str) -> Condition {
    Condition {
        ty: ty.into(),
        status: if status { "True" } else { "False" }.into(),
        reason: reason.into(),
        message: message.into(),
        ..Condition::default()
    }
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", go::quote(name))
}
