//! The order of versions, and deprecation warnings.

use super::{CrdVersion, Spec};
use std::cmp::Ordering;

/// Kubernetes' order of versions: v10 over v2 over v1beta1 over v1alpha1 over anything else.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(x), Some(y)) => x.cmp(&y),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Any other versions are in reverse alphabetical order.
        (None, None) => b.cmp(a),
    }
}

/// Stage (2 stable, 1 beta, 0 alpha), major, minor.
fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, stage) = rest.split_at_checked(digits)?;
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    // As in Go, a number that overflows makes the version unranked.
    let number = |s: &str| is_number(s).then(|| s.parse::<u64>().ok()).flatten();
    let major = number(major)?;
    match stage {
        "" => Some((2, major, 0)),
        s => {
            let (stage, minor) = s
                .strip_prefix("beta")
                .map(|m| (1, m))
                .or_else(|| s.strip_prefix("alpha").map(|m| (0, m)))?;
            Some((stage, major, number(minor)?))
        }
    }
}

impl Spec {
    /// The deprecation warning of a version, if it is deprecated: the CRD's text, or the recommended version.
    pub fn deprecation(&self, version: &CrdVersion) -> Option<String> {
        if !version.deprecated {
            return None;
        }
        if let Some(text) = &version.deprecation_warning {
            return Some(text.to_string());
        }
        let (group, kind) = (&self.group, &self.names.kind);
        let better = self
            .versions()
            .iter()
            .filter(|o| o.served && !o.deprecated && compare_versions(&o.name, &version.name).is_gt())
            .max_by(|a, b| compare_versions(&a.name, &b.name));
        let said = format!("{group}/{} {kind} is deprecated", version.name);
        Some(match better {
            Some(better) => format!("{said}; use {group}/{} {kind}", better.name),
            None => said,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CrdVersion, Spec, compare_versions};

    #[test]
    fn version_order() {
        let mut versions = [
            "foo1", "v1", "v2alpha1", "v10", "v1beta2", "v2", "v1beta1", "foo10", "v1alpha1",
        ];
        versions.sort_by(|a, b| compare_versions(b, a));
        let wanted = [
            "v10", "v2", "v1", "v1beta2", "v1beta1", "v2alpha1", "v1alpha1", "foo1", "foo10",
        ];
        assert_eq!(versions, wanted);
    }

    #[test]
    fn deprecation_warnings() {
        let version = |name: &str, deprecated| CrdVersion {
            name: name.into(),
            served: true,
            deprecated,
            ..CrdVersion::default()
        };
        let mut spec = Spec {
            group: "example.com".into(),
            versions: Some(vec![
                version("v1beta1", true),
                version("v1", false),
                version("v2", true),
            ]),
            ..Spec::default()
        };
        spec.names.kind = "Widget".into();
        let said = |name: &str| spec.version(name).and_then(|v| spec.deprecation(v));
        assert_eq!(said("v1"), None);
        assert_eq!(
            said("v1beta1").as_deref(),
            Some("example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget")
        );
        assert_eq!(said("v2").as_deref(), Some("example.com/v2 Widget is deprecated"));
    }
}
