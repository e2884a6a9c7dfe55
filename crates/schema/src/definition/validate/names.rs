//! Checks the names of a CRD, and its approval to use a protected group.

use crate::definition::{Definition, Names};
use crate::meta::{self, NameRule, Scope};
use crate::names::dns1035_label;
use scantling_value::{ErrorList, FieldError, Path, Str, Value};

const APPROVED: &str = "api-approved.kubernetes.io";

/// Checks the metadata of a new CRD, whose name follows from its specification.
pub(super) fn check_metadata(definition: &Definition) -> ErrorList {
    let at = Path::ROOT.field("metadata");
    let metadata = Value::from(definition.metadata.clone());
    let mut errors = meta::check_new(Some(&metadata), Scope::Cluster, NameRule::Subdomain, &at);
    let spec = &definition.spec;
    let wanted = format!("{}.{}", spec.names.plural, spec.group);
    // kube-apiserver applies the rule for names to the prefix of a generated name, too.
    for key in ["generateName", "name"] {
        let name = meta::string_field(Some(&metadata), key);
        if !name.is_empty() && name != wanted {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            errors.push_with(|| FieldError::invalid(&at.field(key), name, detail));
        }
    }
    errors
}

/// Checks the names of the resource.
pub(super) fn check(names: &Names, at: &Path<'_>, errors: &mut ErrorList) {
    let label = |name: &Str, at: &Path<'_>, errors: &mut ErrorList| {
        let faults = dns1035_label(name);
        if !faults.is_empty() {
            errors.push_with(|| FieldError::invalid(at, name.clone(), faults.join(",")));
        }
    };
    let kind = |name: &Str, at: &Path<'_>, errors: &mut ErrorList| {
        let faults = dns1035_label(&name.to_lowercase());
        if !name.is_empty() && !faults.is_empty() {
            let detail = format!(
                "may have mixed case, but should otherwise match: {}",
                faults.join(",")
            );
            errors.push_with(|| FieldError::invalid(at, name.clone(), detail));
        }
    };
    for (key, name) in [("plural", &names.plural), ("singular", &names.singular)] {
        if !name.is_empty() {
            label(name, &at.field(key), errors);
        }
    }
    kind(&names.kind, &at.field("kind"), errors);
    kind(&names.list_kind, &at.field("listKind"), errors);
    for (i, name) in names.short_names.iter().flatten().enumerate() {
        label(name, &at.field("shortNames").index(i), errors);
    }
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push_with(|| FieldError::invalid(&at.field("listKind"), names.list_kind.clone(), detail));
    }
    for (i, name) in names.categories.iter().flatten().enumerate() {
        label(name, &at.field("categories").index(i), errors);
    }
}

/// The approval of a CRD in a protected group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Approval {
    /// The annotation is missing.
    Missing,
    /// The annotation explains the lack of an approval.
    Bypassed(String),
    /// The annotation links the approval.
    Approved(String),
    /// The annotation is malformed.
    Invalid,
}

/// Returns whether a group belongs to the Kubernetes community.
pub(crate) fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|own| {
        group
            .strip_suffix(own)
            .is_some_and(|g| g.is_empty() || g.ends_with('.'))
    })
}

impl Approval {
    /// Reads the annotation of a CRD.
    pub(crate) fn from_annotation(definition: &Definition) -> Self {
        let text = definition.annotation(APPROVED).unwrap_or("");
        if text.is_empty() {
            Approval::Missing
        } else if text.starts_with("unapproved") {
            Approval::Bypassed(text.into())
        } else if is_url(text) {
            Approval::Approved(text.into())
        } else {
            Approval::Invalid
        }
    }

    /// The message for conditions and errors.
    pub(crate) fn reason(&self) -> String {
        match self {
            Approval::Missing => format!(
                "protected groups must have approval annotation \"{APPROVED}\", see \
                 https://github.com/kubernetes/enhancements/pull/1111"
            ),
            Approval::Bypassed(text) => format!("not approved: {}", scantling_value::go::quote(text)),
            Approval::Approved(text) => format!("approved in {text}"),
            Approval::Invalid => format!(
                "protected groups must have approval annotation \"{APPROVED}\" with either a URL or a reason starting \
                 with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"
            ),
        }
    }
}

/// Returns whether a text is an absolute URL with a host.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let host = rest.split(['/', '?']).next().unwrap_or("");
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && !host.is_empty()
        && !text.bytes().any(|b| b.is_ascii_control() || b == b' ')
}

/// CRDs in protected groups need approval, unless an update leaves the approval unchanged.
pub(super) fn check_approval(definition: &Definition, old: Option<&Definition>) -> Option<FieldError> {
    if !is_protected(&definition.spec.group) {
        return None;
    }
    let approval = Approval::from_annotation(definition);
    // Only the kind of approval counts, so its text may change.
    let same = |old: &Definition| {
        std::mem::discriminant(&Approval::from_annotation(old)) == std::mem::discriminant(&approval)
    };
    if old.is_some_and(same) {
        return None;
    }
    let at = Path::ROOT.field("metadata");
    let at = at.field("annotations");
    let at = at.key(APPROVED);
    match &approval {
        Approval::Missing => Some(FieldError::required(&at, approval.reason())),
        Approval::Invalid => {
            let text = definition.annotation(APPROVED).unwrap_or("");
            Some(FieldError::invalid(&at, text, approval.reason()))
        }
        Approval::Bypassed(_) | Approval::Approved(_) => None,
    }
}
