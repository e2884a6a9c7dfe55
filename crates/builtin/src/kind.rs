//! The behavior of a kind: facts, and functions that a write calls.

use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeMap;

/// The behavior of a kind. [`KindBehavior::new`] fits a kind without rules of its own.
///
/// A write calls the functions in this order: `default` (also on objects read from the store), `prepare`, admission
/// plugins, `validate`, `warn`. Metadata that all kinds share is prepared and validated by the caller.
#[derive(Debug)]
pub struct KindBehavior {
    /// Facts that need no code.
    pub facts: KindFacts,
    /// Fills in defaults.
    pub default: fn(&mut Map, &Context<'_>),
    /// Sets and clears what clients may not write: drops the status on a create, keeps it on an update, increments
    /// `metadata.generation`, drops fields of disabled feature gates.
    pub prepare: fn(&mut Map, &Write<'_>),
    /// Validates an object, except for the metadata that all kinds share.
    pub validate: fn(&Value, &Write<'_>, &mut ErrorList),
    /// Adds warnings about an object, whether it is valid or not.
    pub warn_always: fn(&Value, &Write<'_>, &mut Vec<String>),
    /// Adds warnings about an object that is valid.
    pub warn: fn(&Value, &Write<'_>, &mut Vec<String>),
    /// The grace period of a deletion in seconds, given the one that was requested; `None` if objects of the kind are
    /// deleted at once.
    pub grace_period: fn(&Value, Option<i64>) -> Option<i64>,
    /// The reason why the object with this name cannot be deleted, if it is protected.
    pub protection: fn(&str) -> Option<&'static str>,
    /// Converts an object of a served version to the hub version.
    pub version_to_hub: fn(&str, Value) -> Value,
    /// Converts an object of the hub version to a served version.
    pub hub_to_version: fn(&str, Value) -> Value,
    /// A field as field selectors see it; [`KindFacts::selectable`] lists which there are.
    pub selectable_field: fn(&Value, &str) -> String,
}

impl KindBehavior {
    /// The behavior of a kind that is only decoded and stored.
    pub const fn new(facts: KindFacts) -> KindBehavior {
        KindBehavior {
            facts,
            default: |_, _| {},
            prepare: |_, _| {},
            validate: |_, _, _| {},
            warn_always: |_, _, _| {},
            warn: |_, _, _| {},
            grace_period: |_, _| None,
            protection: |_| None,
            version_to_hub: |_, object| object,
            hub_to_version: |_, object| object,
            selectable_field: |object, field| match object.at(field.split('.')) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(s)) => s.to_string(),
                Some(other) => other.to_json(),
            },
        }
    }
}

/// Facts about a kind.
#[derive(Debug)]
pub struct KindFacts {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The syntax of names.
    pub names: NameRule,
    /// The fields that selectors may use besides the name and, of namespaced kinds, the namespace.
    pub selectable: &'static [&'static str],
    /// True if a PUT creates an object that does not exist (`AllowCreateOnUpdate`).
    pub creates_on_update: bool,
    /// True if an update may omit the resource version (`AllowUnconditionalUpdate`).
    pub unconditional_update: bool,
    /// True if a DELETE returns the deleted object (`ReturnDeletedObject`); otherwise it returns a `Status`.
    pub delete_returns_object: bool,
    /// True if `metadata.generation` starts at 1 and counts changes of the spec; otherwise it stays unset.
    pub has_generation: bool,
    /// True if the metadata that all kinds share are validated together with the object; otherwise they are validated
    /// once the object is valid.
    pub validates_metadata: bool,
    /// True if an update validates the form of `metadata.generateName` again.
    pub validates_name_on_update: bool,
    /// True if finalizers must be standard ones or name a domain.
    pub qualifies_finalizers: bool,
    /// True if a write to the status checks that, too.
    pub qualifies_finalizers_of_status: bool,
    /// The fields that a write to the object itself leaves as they are, for kinds with a status.
    pub keeps: &'static [&'static [&'static str]],
    /// The fields that a write to the status leaves as they are.
    pub status_keeps: &'static [&'static [&'static str]],
    /// The fields that a write to the approval leaves as they are.
    pub approval_keeps: &'static [&'static [&'static str]],
    /// The default effect of a deletion on dependents.
    pub garbage_collection: GarbageCollection,
    /// The warning about a deletion that orphans dependents by default.
    pub orphan_warning: Option<&'static str>,
    /// True if kube-apiserver serves reads from its watch cache: reads of a future revision fail differently
    /// without one.
    pub is_cached: bool,
}

/// The default effect of a deletion on dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GarbageCollection {
    /// They are deleted.
    Delete,
    /// They stay.
    Orphan,
    /// The kind has no dependents: options that concern them are ignored.
    Unsupported,
}

impl KindFacts {
    /// The facts of most kinds.
    pub const fn new(group: &'static str, kind: &'static str) -> KindFacts {
        KindFacts {
            group,
            kind,
            names: NameRule::Subdomain,
            selectable: &[],
            creates_on_update: false,
            unconditional_update: true,
            delete_returns_object: false,
            has_generation: false,
            validates_metadata: true,
            validates_name_on_update: false,
            qualifies_finalizers: true,
            qualifies_finalizers_of_status: true,
            keeps: &[&["status"]],
            status_keeps: &[&["spec"]],
            approval_keeps: &[],
            garbage_collection: GarbageCollection::Delete,
            orphan_warning: None,
            is_cached: true,
        }
    }
}

/// The inputs of rules besides the object. They are passed in, so that rules stay pure.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Reports whether a feature gate of Kubernetes is enabled.
    pub enabled: fn(&str) -> bool,
    /// The time of the request, as Kubernetes writes it (`2026-11-18T01:02:03Z`).
    pub now: &'a str,
    /// The user who sent the request.
    pub user: User<'a>,
}

/// A user as the server knows it after authentication.
#[derive(Clone, Copy, Debug, Default)]
pub struct User<'a> {
    /// The name.
    pub name: &'a str,
    /// The unique id of the user; may be empty.
    pub uid: &'a str,
    /// The groups.
    pub groups: &'a [String],
    /// Further attributes, by key.
    pub extra: Option<&'a BTreeMap<String, Vec<String>>>,
}

/// A write.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The operation with the stored object.
    pub operation: Operation<'a>,
    /// The subresource that is written.
    pub subresource: Subresource,
    /// Everything else.
    pub context: Context<'a>,
}

impl<'a> Write<'a> {
    /// The stored object, on an update.
    pub fn old(&self) -> Option<&'a Value> {
        match self.operation {
            Operation::Create => None,
            Operation::Update(old) => Some(old),
        }
    }
}

/// The operation of a write: create or update.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// A create.
    Create,
    /// An update of this stored object.
    Update(&'a Value),
}

/// A subresource of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// The object itself.
    None,
    /// `/status`
    Status,
    /// `/finalize`, of namespaces
    Finalize,
    /// `/approval`, of certificate signing requests
    Approval,
    /// `/ephemeralcontainers`, of pods
    EphemeralContainers,
    /// `/resize`, of pods
    Resize,
}
