//! Schemes: the tables in which kube-apiserver looks up the `apiVersion` and `kind` of a document.
//!
//! A document of a registered type, sent in place of another type, is decoded before it is rejected. A document of
//! an unregistered type is not decoded. The error texts, which are Go's, differ.

use scantling_apitypes::{TYPES_OF_ALL_VERSIONS, UNVERSIONED_TYPES};
use scantling_schema::names::group_version;
use scantling_value::go;

/// A scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Built-in kinds.
    Core,
    /// CRDs.
    Definitions,
    /// API services.
    Aggregator,
    /// Types of the API machinery.
    Meta,
    /// Responses of webhooks.
    Webhook,
}

/// The kinds of each group and version of [`Scheme::Core`], without their lists.
const KINDS: &str = include_str!("scheme.txt");

impl Scheme {
    /// The scheme of a built-in group.
    pub(crate) fn of_group(group: &str) -> Scheme {
        match group {
            crate::kinds::definitions::GROUP => Scheme::Definitions,
            "apiregistration.k8s.io" => Scheme::Aggregator,
            _ => Scheme::Core,
        }
    }

    /// Its name: the place in the source where it is created.
    fn name(self) -> &'static str {
        match self {
            Scheme::Core => "pkg/api/legacyscheme/scheme.go:30",
            Scheme::Definitions => "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:56",
            Scheme::Aggregator => "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
            Scheme::Meta => "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27",
            Scheme::Webhook => "k8s.io/apiserver/pkg/util/webhook/client.go:74",
        }
    }

    fn kinds(self, api_version: &str) -> Option<&'static str> {
        match (self, api_version) {
            (Scheme::Core, _) => KINDS.lines().find_map(|line| {
                let (of, kinds) = line.split_once(": ")?;
                (of == api_version).then_some(kinds)
            }),
            (
                Scheme::Definitions | Scheme::Webhook,
                "apiextensions.k8s.io/v1" | "apiextensions.k8s.io/v1beta1",
            ) => Some("ConversionReview CustomResourceDefinition CustomResourceDefinitionList"),
            (Scheme::Aggregator, "apiregistration.k8s.io/v1" | "apiregistration.k8s.io/v1beta1") => {
                Some("APIService")
            }
            (Scheme::Meta, "meta.k8s.io/v1") => Some("Table TableOptions"),
            _ => None,
        }
    }

    /// The Go name of the type of a kind, if the scheme has it.
    fn type_of(self, api_version: &str, kind: &str) -> Option<String> {
        if UNVERSIONED_TYPES.contains(&kind) {
            return Some(format!("v1.{kind}"));
        }
        let kinds = self.kinds(api_version)?;
        if TYPES_OF_ALL_VERSIONS.contains(&kind) {
            return Some(format!("v1.{kind}"));
        }
        // The table names each kind once, and every kind has a list.
        let element = kind.strip_suffix("List").unwrap_or(kind);
        let known = kinds.split(' ').any(|k| k == kind || k == element);
        known.then(|| format!("{}.{kind}", group_version(api_version).1))
    }

    /// The error for a document of another type than the expected one, given its Go name.
    pub(crate) fn mismatch(self, api_version: &str, kind: &str, wanted: &str) -> String {
        match self.type_of(api_version, kind) {
            Some(found) => format!("converting ({found}) to ({wanted}): unknown conversion"),
            None => format!(
                "no kind {} is registered for version {} in scheme {}",
                go::quote(kind),
                go::quote(api_version.strip_prefix('/').unwrap_or(api_version)),
                go::quote(self.name())
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_go_types() {
        let table = [
            (Scheme::Core, "v1", "Pod", Some("v1.Pod")),
            (Scheme::Core, "v1", "PodList", Some("v1.PodList")),
            (Scheme::Core, "v1", "List", Some("v1.List")),
            (Scheme::Core, "v1", "Widget", None),
            (
                Scheme::Core,
                "apps/v1beta1",
                "Deployment",
                Some("v1beta1.Deployment"),
            ),
            (Scheme::Core, "apps/v9", "Deployment", None),
            (Scheme::Core, "apps/v9", "Status", Some("v1.Status")),
            (Scheme::Core, "apps/v1", "DeleteOptions", Some("v1.DeleteOptions")),
            (Scheme::Definitions, "v1", "Pod", None),
            (
                Scheme::Definitions,
                "apiextensions.k8s.io/v1beta1",
                "ConversionReview",
                Some("v1beta1.ConversionReview"),
            ),
        ];
        for (scheme, api_version, kind, want) in table {
            assert_eq!(
                scheme.type_of(api_version, kind).as_deref(),
                want,
                "{scheme:?} {api_version} {kind}"
            );
        }
    }
}
