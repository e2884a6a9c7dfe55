//! The parameters of the rules of pod specs: feature gates and the stored spec.
//!
//! An update must not refuse what a stored object has already. Each method answers whether one such exception applies. They
//! are asked only where a spec uses the feature, since most specs use none.

use super::{containers_of, volumes};
use crate::checks::labels::{self, Values};
use crate::checks::names;
use crate::checks::resources::quantity;
use crate::{Context, Cursor};
use scantling_value::{ErrorList, Map, Path, Str, Value};

/// The parameters of the rules of pod specs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    /// Feature gates.
    pub(super) context: &'a Context<'a>,
    /// The stored spec, on an update.
    pub(super) old: Option<&'a Value>,
    /// True if the spec is that of a pod; otherwise it is that of a template.
    pub(super) is_pod: bool,
    /// True if amounts of huge pages need not be multiples of the page size.
    pub(super) allows_partial_pages: bool,
}

impl<'a> Rules<'a> {
    /// The rules for a spec; `old` is the stored spec on an update.
    pub(super) fn new(context: &'a Context<'a>, old: Option<&'a Value>, is_pod: bool) -> Self {
        Rules {
            context,
            old,
            is_pod,
            allows_partial_pages: old.is_some_and(has_partial_pages),
        }
    }

    /// Returns whether a feature gate is enabled.
    pub(super) fn enabled(&self, gate: &str) -> bool {
        (self.context.enabled)(gate)
    }

    fn old_has(&self, test: impl FnOnce(&'a Value) -> bool) -> bool {
        // Every rule that became stricter tolerates what the stored spec has already.
        self.old.is_some_and(test)
    }

    fn old_container_has(&self, test: impl Fn(&Value) -> bool) -> bool {
        self.old_has(|old| containers_of(old).any(test))
    }

    /// Returns whether values of selectors in pod affinities are checked.
    pub(super) fn affinity_values(&self) -> Values {
        let terms = |old: &'a Value| {
            ["podAffinity", "podAntiAffinity"].into_iter().flat_map(|kind| {
                let affinity = old.at(["affinity", kind]);
                let list = |field: &str| affinity.map_or(&[][..], |a| a.list(field)).iter();
                let required = list("requiredDuringSchedulingIgnoredDuringExecution");
                let preferred = list("preferredDuringSchedulingIgnoredDuringExecution");
                required.chain(preferred.filter_map(|t| t.get("podAffinityTerm")))
            })
        };
        let is_invalid = |term: &Value| {
            labels::has_invalid_value(term.get("labelSelector"))
                || labels::has_invalid_value(term.get("namespaceSelector"))
        };
        unchecked_if(self.old_has(|old| terms(old).any(is_invalid)))
    }

    /// Returns whether values of required node affinities are checked.
    pub(super) fn node_affinity_values(&self) -> Values {
        const TERMS: [&str; 4] = [
            "affinity",
            "nodeAffinity",
            "requiredDuringSchedulingIgnoredDuringExecution",
            "nodeSelectorTerms",
        ];
        let has_invalid = |old: &Value| {
            old.list_at(TERMS)
                .iter()
                .any(|term| labels::has_invalid_value(Some(term)))
        };
        unchecked_if(self.old_has(has_invalid))
    }

    /// Returns whether the label selectors of topology spread constraints are checked.
    pub(super) fn checks_spread_selectors(&self) -> bool {
        let is_invalid = |constraint: &Value| {
            let mut errors = ErrorList::new();
            let selector = Cursor::at(constraint.get("labelSelector"), Path::ROOT);
            labels::selector(&selector, &mut errors);
            !errors.is_empty()
        };
        !self.old_has(|old| old.list("topologySpreadConstraints").iter().any(is_invalid))
    }

    /// Returns whether a path of a projected service-account token may leave the volume.
    pub(super) fn allows_any_token_path(&self) -> bool {
        let sources = |old: &'a Value| {
            let volumes = old.list("volumes").iter();
            volumes.flat_map(|v| v.list_at(["projected", "sources"]))
        };
        let is_outside = |source: &Value| {
            let token = source.get("serviceAccountToken");
            token.is_some_and(|token| !volumes::is_local_path(token.get_str("path")))
        };
        self.old_has(|old| sources(old).any(is_outside))
    }

    /// Returns whether names of environment variables follow the relaxed rules.
    pub(super) fn relaxes_environment(&self, name: &str) -> bool {
        if self.enabled("RelaxedEnvironmentVariableValidation") {
            return true;
        }
        let has_name = |container: &Value| {
            let variables = container.list("env").iter().any(|v| v.get_str("name") == name);
            variables
                || container
                    .list("envFrom")
                    .iter()
                    .any(|v| v.get_str("prefix") == name)
        };
        !names::env_name(name).is_empty() && self.old_container_has(has_name)
    }

    /// Returns whether environment variables may come from files.
    pub(super) fn has_environment_files(&self) -> bool {
        let uses = |container: &Value| {
            let mut variables = container.list("env").iter();
            variables.any(|v| v.at(["valueFrom", "fileKeyRef"]).is_some())
        };
        self.enabled("EnvFiles") || self.old_container_has(uses)
    }

    /// Returns whether containers have restart policies of their own.
    pub(super) fn has_restart_rules(&self) -> bool {
        let uses = |old: &Value| {
            let sets_policy =
                |c: &Value| c.get("restartPolicy").is_some() || !c.list("restartPolicyRules").is_empty();
            let init = old.list("initContainers").iter();
            let mut init = init.filter(|c| sets_policy(c) && c.get_str("restartPolicy") != "Always");
            old.list("containers").iter().any(sets_policy) || init.next().is_some()
        };
        self.enabled("ContainerRestartRules") || self.old_has(uses)
    }

    /// Returns whether a restart rule may restart all containers.
    pub(super) fn has_restart_all(&self) -> bool {
        let uses = |container: &Value| {
            let mut rules = container.list("restartPolicyRules").iter();
            rules.any(|rule| rule.get_str("action") == "RestartAllContainers")
        };
        self.enabled("RestartAllContainersOnContainerExits") || self.old_container_has(uses)
    }

    /// Returns whether the operators `Lt` and `Gt` of tolerations may be used.
    pub(super) fn compares_taints(&self) -> bool {
        let uses = |old: &Value| {
            let mut tolerations = old.list("tolerations").iter();
            tolerations.any(|t| matches!(t.get_str("operator"), "Lt" | "Gt"))
        };
        self.enabled("TaintTolerationComparisonOperators") || self.old_has(uses)
    }

    /// Returns whether pods with user namespaces may use the host's network.
    pub(super) fn allows_host_network_with_user_namespace(&self) -> bool {
        let uses = |old: &Value| {
            let is = |field: &str| old.get(field).and_then(Value::as_bool);
            is("hostUsers") == Some(false) && is("hostNetwork") == Some(true)
        };
        self.enabled("UserNamespacesHostNetworkSupport") || self.old_has(uses)
    }

    /// Returns whether pods with user namespaces may have block devices.
    pub(super) fn allows_devices_with_user_namespace(&self) -> bool {
        // Such pods do not work, but stored ones may still be modified.
        self.old_has(|old| old.get("hostUsers").and_then(Value::as_bool) == Some(false))
            && self.old_container_has(|container| !container.list("volumeDevices").is_empty())
    }

    /// Returns whether SELinux labels may be changed by other means than recursion.
    pub(super) fn has_selinux_mount(&self) -> bool {
        self.enabled("SELinuxMount")
            || self.old_has(|old| old.at(["securityContext", "seLinuxChangePolicy"]).is_some())
    }

    /// Returns whether sysctls of the host's namespaces may be set although the pod uses these namespaces.
    pub(super) fn allows_host_sysctls(&self) -> bool {
        self.old_has(|old| {
            let mut sysctls = old.list_at(["securityContext", "sysctls"]).iter();
            sysctls.any(|s| super::security::host_sysctl(s.get_str("name"), old).is_some())
        })
    }

    /// Returns whether init containers that end may have the resize policy `RestartContainer`.
    pub(super) fn allows_restart_of_init_containers(&self) -> bool {
        let uses = |container: &Value| {
            let mut policies = container.list("resizePolicy").iter();
            container.get_str("restartPolicy") != "Always"
                && policies.any(|p| p.get_str("restartPolicy") == "RestartContainer")
        };
        self.old_has(|old| old.list("initContainers").iter().any(uses))
    }

    /// Returns whether sidecars may have a resize policy.
    pub(super) fn has_sidecar_resize(&self) -> bool {
        let uses = |container: &Value| {
            container.get_str("restartPolicy") == "Always" && !container.list("resizePolicy").is_empty()
        };
        self.enabled("InPlacePodVerticalScaling")
            || self.old_has(|old| old.list("initContainers").iter().any(uses))
    }

    /// Returns whether image volumes may lack a reference.
    pub(super) fn allows_empty_image(&self) -> bool {
        let is_empty = |volume: &Value| {
            volume
                .get("image")
                .is_some_and(|image| image.get_str("reference").is_empty())
        };
        self.old_has(|old| old.list("volumes").iter().any(is_empty))
    }

    /// Returns whether containers without privilege escalation may have the capability `CAP_SYS_ADMIN`.
    pub(super) fn allows_sys_admin(&self) -> bool {
        self.old_container_has(|container| {
            let context = container.get("securityContext");
            let escalates = context
                .and_then(|c| c.get("allowPrivilegeEscalation"))
                .and_then(Value::as_bool);
            let mut added = context
                .map_or(&[][..], |c| c.list_at(["capabilities", "add"]))
                .iter();
            escalates != Some(true) && added.any(|c| c.as_str() == Some("CAP_SYS_ADMIN"))
        })
    }
}

/// Returns whether a container has an amount of huge pages that is not a multiple of the page size.
fn has_partial_pages(spec: &Value) -> bool {
    let is_partial = |(name, amount): (&Str, &Value)| {
        let size = name
            .strip_prefix("hugepages-")
            .map(|size| quantity(Some(&size.into())).scaled(0));
        size.is_some_and(|size| size <= 0 || quantity(Some(amount)).scaled(0) % size != 0)
    };
    containers_of(spec).any(|container| {
        let lists = ["requests", "limits"].map(|list| container.at(["resources", list]));
        let amounts = lists.into_iter().flatten().filter_map(Value::as_object);
        amounts.flat_map(Map::iter).any(is_partial)
    })
}

fn unchecked_if(has_invalid: bool) -> Values {
    if has_invalid {
        Values::Unchecked
    } else {
        Values::Checked
    }
}
