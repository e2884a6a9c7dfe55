//! Built-in kinds by the releases that have them.

use scantling_admit::BuiltinResource;
use scantling_apitypes::{ApiResource, Extensions, Release, Scope as ApiScope, TypeDef, TypeTable};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::meta::Scope;
use scantling_schema::names::group_version;
use scantling_value::{Finding, Value};

/// The built-in kinds of a Kubernetes release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuiltinKinds {
    pub(crate) release: Release,
}

/// The result of looking for a built-in kind.
#[derive(Debug)]
pub(crate) enum BuiltinLookup {
    Found(BuiltinMatch),
    /// Other releases have the kind: the text says which.
    OtherRelease(String),
    Unknown,
}

/// A built-in kind in one of its versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuiltinMatch {
    release: Release,
    resource: &'static ApiResource,
}

impl BuiltinKinds {
    /// The kinds of a Kubernetes version; the table begins with 1.33 and ends with 1.37.
    pub(crate) fn new(version: KubernetesVersion) -> Self {
        let minor = u8::try_from(version.minor).unwrap_or(u8::MAX);
        // Other releases are validated as the nearest one that the table has.
        let minor = minor.clamp(Release::OLDEST.minor(), Release::LATEST.minor());
        BuiltinKinds {
            release: Release::new(minor).unwrap_or(Release::LATEST),
        }
    }

    /// The kinds and their versions.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &'static ApiResource> {
        TypeTable::for_release(self.release).resources().iter()
    }

    /// Returns whether a group is one of Kubernetes itself, also of a release that is no longer known.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        // Only groups of Kubernetes have no dot: those of CRDs are DNS names.
        !group.contains('.') || self.resources().any(|resource| resource.group == group)
    }

    /// Finds a kind.
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> BuiltinLookup {
        if let Some(resource) = resource(self.release, api_version, kind) {
            return BuiltinLookup::Found(BuiltinMatch {
                release: self.release,
                resource,
            });
        }
        let have: Vec<Release> = releases()
            .filter(|r| resource(*r, api_version, kind).is_some())
            .collect();
        match exists(&have, self.release) {
            Some(when) => BuiltinLookup::OtherRelease(format!(
                "the kind exists {when}; --kubernetes-version is {}",
                self.release
            )),
            None => BuiltinLookup::Unknown,
        }
    }
}

/// Returns since when, or up to when, something exists that a release does not have.
pub(crate) fn exists(have: &[Release], release: Release) -> Option<String> {
    match (have.first(), have.last()) {
        (Some(first), _) if *first > release => Some(format!("since Kubernetes {first}")),
        (_, Some(last)) if *last < release => Some(format!("up to Kubernetes {last}")),
        _ => None,
    }
}

/// All releases that the table knows.
pub(crate) fn releases() -> impl Iterator<Item = Release> {
    (Release::OLDEST.minor()..=Release::LATEST.minor()).filter_map(Release::new)
}

fn resource(release: Release, api_version: &str, kind: &str) -> Option<&'static ApiResource> {
    let (group, version) = group_version(api_version);
    let mut resources = TypeTable::for_release(release).resources().iter();
    resources.find(|r| r.group == group && r.version == version && r.kind() == kind)
}

/// The group and version in which rules apply: the newest stable one. Events of both groups are stored in the core
/// group.
fn hub(resource: &ApiResource) -> Option<(&'static str, &'static str)> {
    if resource.kind() == "Event" {
        return Some(("", "v1"));
    }
    let is_stable = |version: &str| !version.contains("alpha") && !version.contains("beta");
    let same = TypeTable::latest().resources().iter();
    let same = same.filter(|r| r.group == resource.group && r.kind() == resource.kind());
    let versions = same.map(|r| r.version);
    // A kind without a stable version has its rules in the newest one.
    let newest = versions.clone().filter(|v| is_stable(v)).max().or(versions.max());
    Some((resource.group, newest?))
}

impl BuiltinMatch {
    /// Returns the scope of the kind: namespaced or cluster-wide.
    pub(crate) fn scope(&self) -> Scope {
        match self.resource.scope() {
            ApiScope::Namespaced => Scope::Namespaced,
            ApiScope::Cluster => Scope::Cluster,
        }
    }

    /// The title for the details of a result.
    pub(crate) fn title(&self) -> String {
        format!("built-in kind of Kubernetes {}", self.release)
    }

    /// Returns the releases that have a field which this one does not: `since Kubernetes 1.36`.
    pub(crate) fn field_exists(&self, object: &Value, finding: &Finding) -> Option<String> {
        let lacks = |release: Release| {
            let definition = self.definition(release)?;
            let decoded = TypeTable::for_release(release)
                .decode(definition, object.clone(), Extensions::NONE)
                .ok()?;
            // A release may lack what the field is in, too.
            let at = finding.field()?;
            let mut lacking = decoded.findings.iter().filter_map(Finding::unknown_field);
            Some(lacking.any(|above| at.starts_with(above)))
        };
        let have: Vec<Release> = releases().filter(|r| lacks(*r) == Some(false)).collect();
        exists(&have, self.release).map(|when| format!("the field exists {when}"))
    }

    fn definition(&self, release: Release) -> Option<&'static TypeDef> {
        TypeTable::for_release(release).kind(self.resource.group, self.resource.version, self.resource.kind())
    }

    /// The resource whose pipeline validates objects of the kind; `None` if the table has no stored version of it.
    pub(crate) fn resource(&self) -> Option<BuiltinResource> {
        let (group, version, kind) = (self.resource.group, self.resource.version, self.resource.kind());
        let table = TypeTable::for_release(self.release);
        BuiltinResource::new(table, (group, version, kind), hub(self.resource)?, self.scope())
    }
}
