//! Kinds as data: everything that the request pipeline knows about a kind of object.

use crate::codec::scheme::Scheme;
use crate::discovery::Root;
use crate::kinds::builtin;
use crate::kinds::definitions;
use crate::kinds::strategy::Strategy;
use crate::openapi;
use crate::rest::review::ReviewKind;
use crate::tables::Columns;
use bytes::Bytes;
use imbl::OrdMap;
use scantling_admit::ScalePaths;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch as signal;

/// The built-in groups whose keys name the group. The keys of other built-in groups begin with the resource.
const STORED_BY_GROUP: [&str; 2] = [definitions::GROUP, "apiregistration.k8s.io"];

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
    /// All versions, served or not, in the order of the definition.
    pub(crate) versions: Vec<Version>,
    /// What is particular about reading and writing its objects.
    pub(crate) strategy: Arc<dyn Strategy>,
    /// Whether the definition is being deleted: nothing is created any more.
    pub(crate) leaving: bool,
    /// Whether its objects are being deleted for that: discovery lists no verbs that make any.
    pub(crate) terminating: bool,
    /// What its objects ask, if they are questions that are answered and not stored.
    pub(crate) review: Option<ReviewKind>,
    /// Whether there can be objects: some schemas are accepted that make none.
    pub(crate) servable: bool,
    pub(crate) built_in: bool,
    /// The verbs of a built-in kind; those of custom resources follow from their state.
    pub(crate) verbs: Vec<&'static str>,
    /// The hash of the stored version that discovery lists; custom resources compute it.
    pub(crate) storage_hash: Option<&'static str>,
    /// Changes whenever anything about the kind does.
    pub(crate) mark: String,
    /// The same for this process alone: what is noted about entries counts for one state of their kind.
    pub(crate) serial: u32,
    /// The time for which what the kind says of its objects holds.
    pub(crate) incarnation: ServedIncarnation,
}

/// The time for which what a kind says of its objects holds. Watches keep within it, so that clients learn of what
/// came before and after.
#[derive(Clone, Debug)]
pub(crate) struct ServedIncarnation {
    /// The revision with which it began; zero for kinds that were there from the start.
    pub(crate) since: u64,
    over: Arc<signal::Sender<bool>>,
}

impl ServedIncarnation {
    /// One that begins with a revision.
    pub(crate) fn since(revision: u64) -> ServedIncarnation {
        ServedIncarnation {
            since: revision,
            over: Arc::new(signal::Sender::new(false)),
        }
    }

    /// Tells all that wait that it is over.
    pub(crate) fn end(&self) {
        self.over.send_replace(true);
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) {
        let mut seen = self.over.subscribe();
        // Who waits holds what would tell it, so that it does not go untold.
        let _ = seen.wait_for(|over| *over).await;
    }
}

/// A subresource of a built-in kind.
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    pub(crate) name: &'static str,
    /// The group of its kind, where it is not that of the resource.
    pub(crate) group: Option<&'static str>,
    pub(crate) version: Option<&'static str>,
    pub(crate) kind: &'static str,
    pub(crate) verbs: Vec<&'static str>,
}

/// One version of a kind.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    /// What every request to this version is warned of.
    pub(crate) deprecation: Option<String>,
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    /// The subresources of a built-in kind.
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) columns: Columns,
    /// The fields beside name and namespace that field selectors may use: `spec.color`.
    pub(crate) selectable: Vec<String>,
}

impl Kind {
    /// A version that is served.
    pub(crate) fn served_version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|v| v.served && v.name == name)
    }

    /// The group that keys name. Servers store the kinds that they brought along from the start as if they had none;
    /// definitions came later.
    pub(crate) fn key_group(&self) -> &str {
        match self.built_in && !STORED_BY_GROUP.contains(&self.group.as_str()) {
            true => "",
            false => &self.group,
        }
    }

    /// The group of the objects themselves, of which the kind may be but a view: events have two groups, and are one
    /// kind.
    pub(crate) fn own_group(&self) -> &str {
        match self.built_in && self.group == builtin::EVENTS {
            true => "",
            false => &self.group,
        }
    }

    /// How Go names the type that requests for a kind that is built in are read into.
    pub(crate) fn internal_type(&self) -> String {
        let package = match self.own_group().split('.').next() {
            None | Some("") => "core",
            Some(package) => package,
        };
        format!("{package}.{}", self.kind)
    }

    /// Whether a type is this kind under another name.
    pub(crate) fn is_also(&self, api_version: &str, kind: &str) -> bool {
        kind == self.kind && self.strategy.is_also(api_version)
    }

    /// Why a document of some other type is none of this kind, which is built in.
    pub(crate) fn mismatch(&self, api_version: &str, kind: &str) -> String {
        Scheme::of_group(&self.group).mismatch(api_version, kind, &self.internal_type())
    }

    /// The version in which objects are stored.
    pub(crate) fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|v| v.storage)
    }

    /// The verbs that discovery lists.
    pub(crate) fn verbs(&self) -> &[&'static str] {
        const CUSTOM: &[&str] = &[
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch",
        ];
        const ENDING: &[&str] = &["delete", "deletecollection", "get", "list", "watch"];
        match self.built_in {
            false if self.terminating => ENDING,
            false => CUSTOM,
            true => &self.verbs,
        }
    }

    /// Whether the kind has a verb.
    pub(crate) fn has_verb(&self, verb: &str) -> bool {
        self.verbs().contains(&verb)
    }
}

impl Version {
    /// The subresource of a built-in kind with this name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Whether the status has an endpoint of its own.
    pub(crate) fn has_status(&self) -> bool {
        self.status
    }
}

/// Kinds by group and plural name; no group is empty.
type ByName = OrdMap<Arc<str>, OrdMap<Arc<str>, Arc<Kind>>>;

/// All kinds that are served, by group and plural name. A change copies the few nodes on its path, so that requests
/// under way keep the state they began with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds {
    by_name: ByName,
    /// Those that definitions make in groups which are built in. Requests never reach them, and discovery lists what of
    /// their versions is not built in: so a definition cannot take the place of what clients rely on.
    overshadowed: ByName,
    pub(crate) cache: DiscoveryCache,
}

/// What was written about all kinds together, each when it was first asked for. A copy is made to be changed, so that
/// it begins with none.
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
    /// The place of an aggregated document of discovery.
    pub(crate) fn discovery(&self, root: Root) -> &OnceLock<Document> {
        match root {
            Root::Core => &self.core,
            Root::Groups => &self.groups,
        }
    }
}

/// A text with the tag by which clients keep it.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) text: Bytes,
    pub(crate) tag: String,
}

impl Document {
    /// The document with this text.
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

    /// Whether the kinds of a group are built in.
    pub(crate) fn has_builtin_group(&self, group: &str) -> bool {
        let first = self.by_name.get(group).and_then(|kinds| kinds.values().next());
        first.is_some_and(|kind| kind.built_in)
    }

    /// Whether a version of a group has kinds that are built in.
    pub(crate) fn serves_builtin(&self, group: &str, version: &str) -> bool {
        let mut kinds = self.in_group(group).filter(|kind| kind.built_in);
        kinds.any(|kind| kind.served_version(version).is_some())
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

    /// Removes the kind of a definition.
    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        let by_name = self.of_definitions(group);
        if let Some(kinds) = by_name.get_mut(group) {
            kinds.remove(plural);
            if kinds.is_empty() {
                by_name.remove(group);
            }
        }
    }

    /// Where the kinds are that definitions make in a group.
    fn of_definitions(&mut self, group: &str) -> &mut ByName {
        match self.has_builtin_group(group) {
            true => &mut self.overshadowed,
            false => &mut self.by_name,
        }
    }

    /// The groups that have kinds: built-in ones first, as servers list them, then by name.
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

    /// The kinds of a group that is built in which definitions make, by plural name.
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
