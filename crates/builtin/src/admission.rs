//! Admission plugins: the built-in checks and changes that sit between a request and the behaviour of its kind.
//!
//! Plugins are pure. For each write the caller does, with every enabled plugin in the order of [`PLUGINS`]:
//!
//! 1. *Mutating phase*, before [`prepare`](crate::BuiltinKind::prepare): call [`lookups`](Plugin::lookups), fetch the
//!    objects they name, and call [`mutate`](Plugin::mutate).
//! 2. *Validating phase*, after [`validate`](crate::BuiltinKind::validate) found no errors: call `lookups` again (the
//!    object may have changed), fetch, and call [`check`](Plugin::check). It may add warnings, and objects whose status
//!    must be written together with the object (quotas).
//!
//! kube-apiserver runs webhooks and policies between [`PLUGINS`] and [`LAST_PLUGINS`], in both phases; this server has
//! neither yet.
//! A deletion only has a validating phase; its object is the stored one.

mod admin_access;
mod certificate_subject_restriction;
pub(crate) mod classes;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod limit_ranger;
mod namespace_lifecycle;
mod node_declared_feature_validator;
mod persistent_volume_claim_resize;
mod pod_resize_validator;
mod pod_resources;
mod pod_security;
mod pod_topology_labels;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

use crate::{Context, Subresource};
use scantling_value::{Map, Value, go};
use std::fmt::Debug;
use std::sync::Arc;

/// The plugins that kube-apiserver runs before webhooks and policies, in its order.
pub const PLUGINS: &[&dyn Plugin] = &[
    &namespace_lifecycle::NamespaceLifecycle,
    &limit_ranger::LimitRanger,
    &service_account::ServiceAccount,
    &taint_nodes_by_condition::TaintNodesByCondition,
    &pod_security::PodSecurity,
    &priority::Priority,
    &default_toleration_seconds::DefaultTolerationSeconds,
    &default_storage_class::DefaultStorageClass,
    &storage_object_in_use_protection::StorageObjectInUseProtection,
    &persistent_volume_claim_resize::PersistentVolumeClaimResize,
    &runtime_class::RuntimeClass,
    &certificate_subject_restriction::CertificateSubjectRestriction,
    &default_ingress_class::DefaultIngressClass,
    &deny_service_external_ips::DenyServiceExternalIPs,
    &pod_topology_labels::PodTopologyLabels,
    &node_declared_feature_validator::NodeDeclaredFeatureValidator,
    &pod_resize_validator::PodResizeValidator,
];

/// The plugins that kube-apiserver runs after webhooks and policies.
pub const LAST_PLUGINS: &[&dyn Plugin] = &[&resource_quota::ResourceQuota];

/// Checks of kinds that depend on other objects. kube-apiserver does not list them as plugins, so no flag disables them.
const CHECKS: &[&dyn Plugin] = &[&admin_access::AdminAccess];

/// Returns the plugins that run, in their order: those that run by default, and those that are enabled, without those that
/// are disabled. Fails if a name is unknown, or both enabled and disabled.
pub fn select(enabled: &[String], disabled: &[String]) -> Result<Vec<&'static dyn Plugin>, String> {
    let all = || PLUGINS.iter().chain(LAST_PLUGINS).copied();
    for (flag, names) in [("enable", enabled), ("disable", disabled)] {
        for name in names {
            if !all().any(|plugin| plugin.name() == name) {
                return Err(format!(
                    "{flag}-admission-plugins plugin {} is unknown",
                    go::quote(name)
                ));
            }
        }
    }
    if let Some(name) = enabled.iter().find(|name| disabled.contains(name)) {
        return Err(format!(
            "{name} is in both enable-admission-plugins and disable-admission-plugins"
        ));
    }
    let is_named = |names: &[String], plugin: &dyn Plugin| names.iter().any(|name| name == plugin.name());
    let runs = |plugin: &&dyn Plugin| {
        (plugin.is_on_by_default() || is_named(enabled, *plugin)) && !is_named(disabled, *plugin)
    };
    // No flag applies to these: kube-apiserver runs them in the strategies of the resources.
    let checks = CHECKS.iter().copied();
    Ok(checks.chain(all().filter(runs)).collect())
}

/// An admission plugin. Defaults of the methods fit a plugin that does nothing in that phase.
pub trait Plugin: Debug + Sync {
    /// The name, as `--enable-admission-plugins` lists it.
    fn name(&self) -> &'static str;

    /// Returns whether the plugin runs unless it is disabled.
    fn is_on_by_default(&self) -> bool {
        true
    }

    /// Returns whether the plugin has anything to do for a request in its phase. The other methods are only called if it
    /// has.
    fn handles(&self, request: &Request<'_>) -> bool;

    /// The objects that the plugin must see to decide about a write of `object`.
    fn lookups(&self, _object: &Value, _request: &Request<'_>) -> Vec<Lookup> {
        Vec::new()
    }

    /// Changes the object, or refuses it.
    fn mutate(&self, _object: &mut Map, _request: &Request<'_>, _found: &Found<'_>) -> Verdict {
        Ok(())
    }

    /// Refuses an object that is otherwise valid.
    fn check(&self, _object: &Value, _request: &Request<'_>, _found: &Found<'_>) -> Verdict {
        Ok(())
    }

    /// As [`Plugin::check`], for plugins whose admission has effects.
    fn check_with_effects(
        &self,
        object: &Value,
        request: &Request<'_>,
        found: &Found<'_>,
        _effects: &mut Effects,
    ) -> Verdict {
        self.check(object, request, found)
    }
}

/// A request to write an object.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The phase of admission.
    pub phase: Phase,
    /// The action.
    pub action: Action,
    /// The API group of the resource; empty for the core group.
    pub group: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: RequestSubresource<'a>,
    /// The namespace; empty for cluster-wide objects.
    pub namespace: &'a str,
    /// The name; empty if the server shall generate it.
    pub name: &'a str,
    /// The stored object, on updates and deletions.
    pub old: Option<&'a Value>,
    /// Time, user and feature gates.
    pub context: Context<'a>,
}

/// A phase of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Plugins change the object.
    Mutating,
    /// Plugins check the object as it will be stored.
    Validating,
}

/// The action of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A create, or an update that creates.
    Create,
    /// An update of a stored object.
    Update,
    /// A deletion.
    Delete,
}

/// The subresource of a request: one whose object has the resource's own kind, or another one by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSubresource<'a> {
    /// The object itself or a view of it.
    Of(Subresource),
    /// A subresource with a kind of its own: `binding`, `eviction`, `token`, `scale`.
    Other(&'a str),
}

impl<'a> Request<'a> {
    /// Returns whether the request is in the mutating phase.
    fn is_mutating(&self) -> bool {
        self.phase == Phase::Mutating
    }

    /// Returns whether the request is in the validating phase.
    fn is_validating(&self) -> bool {
        self.phase == Phase::Validating
    }

    /// Returns whether the request is about objects of a resource themselves, not about a subresource.
    pub fn is_for(&self, group: &str, resource: &str) -> bool {
        self.is_resource(group, resource) && self.subresource == RequestSubresource::Of(Subresource::None)
    }

    /// Returns whether the request is about a resource or one of its subresources.
    pub fn is_resource(&self, group: &str, resource: &str) -> bool {
        self.group == group && self.resource == resource
    }

    /// The refusal `RESOURCE "NAME" is forbidden: why`.
    pub fn forbidden(&self, object: &Value, why: impl AsRef<str>) -> Box<Denial> {
        let metadata = object.get("metadata");
        let text = |field| metadata.map_or("", |m| m.get_str(field));
        // Names are generated after admission, so until then the prefix names the object, as in kube-apiserver.
        let name = [self.name, text("name"), text("generateName"), "Unknown"];
        let name = name.into_iter().find(|n| !n.is_empty()).unwrap_or_default();
        let qualified = match self.group {
            "" => self.resource.to_owned(),
            group => format!("{}.{group}", self.resource),
        };
        let message = format!("{qualified} {} is forbidden: {}", go::quote(name), why.as_ref());
        Box::new(Denial {
            code: 403,
            reason: "Forbidden",
            message,
            group: self.group.to_owned(),
            kind: self.resource.to_owned(),
            name: name.to_owned(),
            ..Denial::default()
        })
    }
}

/// Objects that a plugin needs, in the form of their kind's hub version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The plural name of the resource.
    pub resource: &'static str,
    /// The namespace; empty for cluster-wide kinds.
    pub namespace: String,
    /// The name, or `None` for all objects of the namespace or cluster.
    pub name: Option<String>,
}

impl Lookup {
    /// One cluster-wide object.
    pub fn one(group: &'static str, resource: &'static str, name: impl Into<String>) -> Lookup {
        Lookup {
            group,
            resource,
            namespace: String::new(),
            name: Some(name.into()),
        }
    }

    /// All objects of a cluster-wide kind.
    pub fn all(group: &'static str, resource: &'static str) -> Lookup {
        Lookup {
            group,
            resource,
            namespace: String::new(),
            name: None,
        }
    }

    /// The same lookup in a namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Lookup {
        namespace.clone_into(&mut self.namespace);
        self
    }
}

/// What the lookups of a plugin found: per lookup its objects, in the order of the lookups. A lookup by name finds at
/// most one.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a>(&'a [Vec<Arc<Value>>]);

impl<'a> Found<'a> {
    /// The results of the lookups.
    pub fn new(results: &'a [Vec<Arc<Value>>]) -> Self {
        Found(results)
    }

    /// The object that the first lookup found.
    fn one(&self) -> Option<&'a Value> {
        self.all().next()
    }

    /// The objects that the first lookup found.
    fn all(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.0.iter().take(1).flatten().map(|object| &**object)
    }
}

/// The effects of admission on a write.
#[derive(Debug, Default)]
pub struct Effects {
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Objects with a new status (resource quotas), which must be stored before the written object. If one of them has
    /// changed meanwhile, the check must be repeated. A dry run stores none.
    pub updates: Vec<Value>,
}

/// The decision of a plugin.
pub type Verdict = Result<(), Box<Denial>>;

/// The refusal of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denial {
    /// The HTTP status.
    pub code: u16,
    /// The reason in the `Status`.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// The group in the details.
    pub group: String,
    /// The resource in the details; empty if there are none.
    pub kind: String,
    /// The name in the details.
    pub name: String,
    /// The causes in the details.
    pub causes: Vec<Cause>,
}

/// A cause of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The reason.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// The field.
    pub field: String,
}

impl Denial {
    /// 500 of a plugin that fails.
    fn failed(message: String) -> Box<Denial> {
        Box::new(Denial {
            code: 500,
            reason: "",
            message,
            ..Denial::default()
        })
    }

    /// 404 of an object in the core group.
    fn not_found(resource: &str, name: &str) -> Box<Denial> {
        Box::new(Denial {
            code: 404,
            reason: "NotFound",
            message: format!("{resource} {} not found", go::quote(name)),
            kind: resource.to_owned(),
            name: name.to_owned(),
            ..Denial::default()
        })
    }
}
