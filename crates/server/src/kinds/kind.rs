//! Kinds as data: the facts about a kind that requests need.

use crate::codec::scheme::Scheme;
use crate::discovery::Root;
use crate::kinds::builtin;
use crate::kinds::codec::KindCodec;
use crate::kinds::rules::KindRules;
use crate::openapi;
use crate::rest::review::ReviewKind;
use crate::tables::Columns;
use bytes::Bytes;
use imbl::OrdMap;
use scantling_admit::ScalePaths;
use scantling_builtin::KindBehavior;
use scantling_schema::names::group_version;
use scantling_value::Value;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch as signal;

/// A kind of object, in all its versions.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// All versions, served or not, in the order of the CRD.
    pub(crate) versions: Vec<Version>,
    /// Decodes, converts and stores its objects.
    pub(crate) codec: Arc<dyn KindCodec>,
    /// The rules for writes.
    pub(crate) rules: Arc<dyn KindRules>,
    /// Facts, and functions that writes of built-in kinds call.
    pub(crate) behavior: &'static KindBehavior,
    /// The group in the keys of its objects.
    pub(crate) key_group: String,
    /// The group in errors about its objects. Events have two groups and are one kind.
    pub(crate) object_group: String,
    /// The verbs that discovery lists.
    pub(crate) verbs: Vec<&'static str>,
    /// The media types of the patches that it accepts.
    pub(crate) patch_types: &'static [&'static str],
    pub(crate) protobuf: Protobuf,
    /// True if `/status` has the columns of the object in tables.
    pub(crate) status_has_columns: bool,
    /// The beginning of errors about failed preconditions of a deletion, if it is not the default.
    pub(crate) precondition_failed: Option<&'static str>,
    /// True if the CRD is being deleted, so that nothing can be created.
    pub(crate) leaving: bool,
    /// The review that its objects request, if they are evaluated and not stored.
    pub(crate) review: Option<ReviewKind>,
    /// True if objects can exist: some accepted schemas cannot be served.
    pub(crate) servable: bool,
    pub(crate) built_in: bool,
    /// The hash of the storage version in discovery.
    pub(crate) storage_hash: Option<String>,
    /// Changes whenever anything about the kind does.
    pub(crate) mark: String,
    /// The same within this process: an [`EntryFacts`](crate::rest::entry_cache::EntryFacts) is valid for one
    /// state of a kind.
    pub(crate) serial: u32,
    /// The time in which the kind is served unchanged.
    pub(crate) incarnation: ServedIncarnation,
}

/// The protobuf encoding of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protobuf {
    /// Supported, in the versions of the table of API types.
    Supported,
    /// Unsupported, as for custom resources.
    Unsupported,
    /// Unsupported, because it cannot express every object, for this reason.
    Lossy(&'static str),
}

/// The media types of patches to custom resources.
pub(crate) const PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];

/// The media type of strategic merge patches.
pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// The media types of patches to built-in kinds.
pub(crate) const BUILTIN_PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    STRATEGIC_PATCH,
    "application/apply-patch+yaml",
];

/// The time in which a kind is served unchanged. A watch ends with it, so that its client notices the change.
#[derive(Clone, Debug)]
pub(crate) struct ServedIncarnation {
    /// The revision with which it began; zero for built-in kinds.
    pub(crate) since: u64,
    over: Arc<signal::Sender<bool>>,
}

impl ServedIncarnation {
    /// An incarnation that begins with a revision.
    pub(crate) fn since(revision: u64) -> ServedIncarnation {
        ServedIncarnation {
            since: revision,
            over: Arc::new(signal::Sender::new(false)),
        }
    }

    /// Ends it and wakes all waiters.
    pub(crate) fn end(&self) {
        self.over.send_replace(true);
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) {
        let mut seen = self.over.subscribe();
        // The sender lives as long as `self`, so this does not fail.
        let _ = seen.wait_for(|over| *over).await;
    }
}

/// A subresource.
#[derive(Clone, Debug)]
pub(crate) struct ServedSubresource {
    pub(crate) name: &'static str,
    /// The group of its kind, if it differs from the resource's.
    pub(crate) group: Option<&'static str>,
    pub(crate) version: Option<&'static str>,
    pub(crate) kind: Cow<'static, str>,
    pub(crate) verbs: Vec<&'static str>,
}

/// One version of a kind.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    /// The warning on every request to this version.
    pub(crate) deprecation: Option<String>,
    /// True if `/status` is served.
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) subresources: Vec<ServedSubresource>,
    pub(crate) columns: Columns,
    /// The fields beside name and namespace that field selectors may use: `spec.color`.
    pub(crate) selectable: Vec<String>,
}

impl Kind {
    /// A version that is served.
    pub(crate) fn served_version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|v| v.served && v.name == name)
    }

    /// The Go name of the internal type of a built-in kind.
    pub(crate) fn internal_type(&self) -> String {
        let package = match self.object_group.split('.').next() {
            None | Some("") => "core",
            // Go packages have the first label of the group: `rbac` for `rbac.authorization.k8s.io`.
            Some(package) => package,
        };
        format!("{package}.{}", self.kind)
    }

    /// Returns whether a type is this kind in a version that is not served.
    pub(crate) fn is_alias(&self, api_version: &str, kind: &str) -> bool {
        kind == self.kind && self.codec.is_alias(api_version)
    }

    /// The error about a document of another type than this built-in kind.
    pub(crate) fn mismatch(&self, api_version: &str, kind: &str) -> String {
        Scheme::of_group(&self.group).mismatch(api_version, kind, &self.internal_type())
    }

    /// Returns whether an `apiVersion` is a version of this kind, served or not.
    pub(crate) fn has_version(&self, api_version: &str) -> bool {
        let (group, version) = group_version(api_version);
        group == self.group && self.versions.iter().any(|v| v.name == version)
    }

    /// The version in which objects are stored.
    pub(crate) fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|v| v.storage)
    }

    /// Returns whether the kind has a verb.
    pub(crate) fn has_verb(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// Returns a field of an object as field selectors compare it.
    pub(crate) fn selector_field(&self, object: &Value, field: &str) -> String {
        (self.behavior.selectable_field)(object, field)
    }
}

impl Version {
    /// The subresource of a name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&ServedSubresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Returns whether a subresource has a verb.
    pub(crate) fn has_verb(&self, subresource: &str, verb: &str) -> bool {
        self.subresource(subresource)
            .is_some_and(|s| s.verbs.contains(&verb))
    }

    /// Returns whether `/status` is served.
    pub(crate) fn has_status(&self) -> bool {
        self.status
    }
}

/// Kinds by group and plural name; no group is empty.
type ByName = OrdMap<Arc<str>, OrdMap<Arc<str>, Arc<Kind>>>;

/// All kinds that are served, by group and plural name. The maps are persistent: a request keeps the state in which it
/// began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds {
    by_name: ByName,
    /// Kinds of CRDs in built-in groups. A CRD cannot replace a built-in kind: requests do not reach them, and
    /// discovery lists only their versions that are not built in.
    overshadowed: ByName,
    pub(crate) cache: DiscoveryCache,
}

/// Documents about all kinds, rendered on first use. A clone is about to be changed, so it begins empty.
#[derive(Debug, Default)]
pub(crate) struct DiscoveryCache {
    /// `/api`, aggregated.
    core: OnceLock<Document>,
    /// `/apis`, aggregated.
    groups: OnceLock<Document>,
    /// `/openapi/v3`
    pub(crate) index: OnceLock<Document>,
    /// The hash of `/openapi/v2`.
    pub(crate) hash: OnceLock<String>,
}

impl Clone for DiscoveryCache {
    fn clone(&self) -> Self {
        DiscoveryCache::default()
    }
}

impl DiscoveryCache {
    /// The slot of an aggregated discovery document.
    pub(crate) fn discovery(&self, root: Root) -> &OnceLock<Document> {
        match root {
            Root::Core => &self.core,
            Root::Groups => &self.groups,
        }
    }
}

/// A text with its entity tag.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) text: Bytes,
    pub(crate) tag: String,
}

impl Document {
    /// Wraps a text.
    pub(crate) fn new(text: String) -> Document {
        let tag = openapi::tag(text.as_bytes());
        Document {
            text: text.into(),
            tag,
        }
    }
}

impl Kinds {
    /// The kind behind a path.
    pub(crate) fn get(&self, group: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.by_name.get(group)?.get(plural)
    }

    /// Returns whether the kinds of a group are built in.
    pub(crate) fn has_builtin_group(&self, group: &str) -> bool {
        let first = self.by_name.get(group).and_then(|kinds| kinds.values().next());
        first.is_some_and(|kind| kind.built_in)
    }

    /// Returns whether a version of a group has built-in kinds.
    pub(crate) fn serves_builtin(&self, group: &str, version: &str) -> bool {
        let is_served = |kind: &Arc<Kind>| kind.served_version(version).is_some();
        self.has_builtin_group(group) && self.in_group(group).any(is_served)
    }

    /// Adds or replaces a kind.
    pub(crate) fn insert(&mut self, kind: Arc<Kind>) {
        let plural = Arc::from(kind.plural.as_str());
        let by_name = match kind.built_in {
            true => &mut self.by_name,
            false => self.of_definitions(&kind.group),
        };
        match by_name.get_mut(kind.group.as_str()) {
            Some(group) => {
                group.insert(plural, kind);
            }
            None => {
                let group = Arc::from(kind.group.as_str());
                by_name.insert(group, OrdMap::unit(plural, kind));
            }
        }
    }

    /// Removes the kind of a CRD.
    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        let by_name = self.of_definitions(group);
        if let Some(kinds) = by_name.get_mut(group) {
            kinds.remove(plural);
            // A group without kinds must disappear from discovery, and `has_builtin_group` looks at the first kind.
            if kinds.is_empty() {
                by_name.remove(group);
            }
        }
    }

    /// The map with the kinds of CRDs in a group.
    fn of_definitions(&mut self, group: &str) -> &mut ByName {
        match self.has_builtin_group(group) {
            true => &mut self.overshadowed,
            false => &mut self.by_name,
        }
    }

    /// The groups: built-in ones first, in kube-apiserver's order, then by name.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &str> {
        let mut out: Vec<(usize, &str)> = self
            .by_name
            .keys()
            .map(|group| (builtin::rank(group), group.as_ref()))
            .collect();
        out.sort_unstable();
        out.into_iter().map(|(_, g)| g)
    }

    /// The kinds of a group, by plural name.
    pub(crate) fn in_group(&self, group: &str) -> impl Iterator<Item = &Arc<Kind>> {
        self.by_name.get(group).into_iter().flat_map(OrdMap::values)
    }

    /// The kinds of CRDs in a built-in group, by plural name.
    pub(crate) fn overshadowed(&self, group: &str) -> impl Iterator<Item = &Arc<Kind>> {
        self.overshadowed.get(group).into_iter().flat_map(OrdMap::values)
    }

    /// The kinds that documents list in a version of a group, by plural name.
    pub(crate) fn listed(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Kind>> {
        let listed = match self.has_builtin_group(group) && !self.serves_builtin(group, version) {
            true => &self.overshadowed,
            false => &self.by_name,
        };
        listed.get(group).into_iter().flat_map(OrdMap::values)
    }

    /// All kinds that are served.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.by_name.values().flat_map(OrdMap::values)
    }
}
