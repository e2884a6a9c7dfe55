//! Subresources of Pods that are actions: binding and eviction.

use crate::api::{ResourceRequest, check_segment};
use crate::codec::text::Stored;
use crate::http::reply::Reply;
use crate::rest::admission::Admission;
use crate::rest::delete::Deleted;
use crate::rest::options::DeleteOptions;
use crate::rest::read;
use crate::rest::write::{Part, WriteRequest, metadata_str, timestamp};
use crate::status::{ApiError, ApiResult, GroupResource};
use scantling_builtin::admission::Action;
use scantling_builtin::validate_binding;
use scantling_value::{ErrorList, Map, Value, aggregate, go};
use std::sync::Arc;

/// The number of times that an eviction is tried while its Pod changes.
const MAX_TRIES: usize = 20;

/// The maximum number of evicted Pods that a budget records.
const MAX_DISRUPTED: usize = 2000;

/// The previous version of evictions.
const OLD_EVICTION: &[u8] = b"policy/v1beta1";

/// The name of bindings in errors.
const BINDING: GroupResource<'static> = GroupResource {
    group: "",
    kind: "pods/binding",
};

/// The name of budgets in errors.
const BUDGET: GroupResource<'static> = GroupResource {
    group: "policy",
    kind: "poddisruptionbudget",
};

/// The name of Pods in errors.
const PODS: GroupResource<'static> = GroupResource {
    group: "",
    kind: "pods",
};

/// The `Status` of a successful action.
fn success(write: &WriteRequest<'_>) -> ApiResult<Reply> {
    let status = Map::from_iter([
        ("kind", Value::from("Status")),
        ("apiVersion", "v1".into()),
        ("metadata", Map::new().into()),
        ("status", "Success".into()),
        ("code", Value::Int(201)),
    ]);
    Ok(Reply::object(
        201,
        &status.into(),
        write.call.view_renderer()?.wanted.encoding,
    ))
}

impl WriteRequest<'_> {
    /// POST of `pods/binding` and of `bindings`.
    pub(crate) async fn bind(&mut self, name: Option<&str>) -> ApiResult<Reply> {
        let (mut binding, options) = self.decode_action("", "v1", "Binding")?;
        let own = metadata_str(&binding, "name").to_owned();
        let admission = Admission {
            action: Action::Create,
            part: Part::Whole,
            name: name.unwrap_or(&own),
            old: None,
        };
        // Mutating admission runs before the names are compared, as for any create in kube-apiserver.
        self.admit(&admission, &mut binding).await?;
        let name = match name {
            Some(name) if !own.is_empty() && own != name => {
                let why = "name in URL does not match name in Binding object";
                return Err(ApiError::bad_request(why));
            }
            Some(name) => name,
            None => &own,
        };
        let mut errors = ErrorList::new();
        validate_binding(&binding, &mut errors);
        if !errors.is_empty() {
            // kube-apiserver returns the aggregated errors without a status, which makes them a 500.
            return Err(ApiError::internal(aggregate(&errors)));
        }
        self.check_admission(&admission, &binding, options.dry_run)
            .await?;
        let key = self.call.pod_key(name)?;
        loop {
            let Some(entry) = self.call.api.newest(&key).await? else {
                return Err(ApiError::not_found(PODS, name));
            };
            let mut pod = read::stored(&entry)?;
            check_bindable(&pod, &binding).map_err(|why| ApiError::conflict(BINDING, name, &why))?;
            bind_pod(&mut pod, &binding);
            if options.dry_run {
                return success(self);
            }
            let value = Stored::whole(&pod).value;
            let expected = entry.mod_revision;
            let update = scantling_store::Write::Update { value, expected };
            if self.call.api.write_if_current(&key, update).await?.is_some() {
                return success(self);
            }
        }
    }

    /// POST of `pods/eviction`.
    pub(crate) async fn evict(&mut self, name: &str) -> ApiResult<Reply> {
        let call = self.call;
        // Evictions of the previous version are accepted, too.
        // The version decides how the body is decoded, so it is found before decoding.
        let is_old = self.body.windows(OLD_EVICTION.len()).any(|w| w == OLD_EVICTION);
        let version = if is_old { "v1beta1" } else { "v1" };
        let (mut eviction, options) = self.decode_action("policy", version, "Eviction")?;
        self.admit_action(name, &mut eviction).await?;
        if metadata_str(&eviction, "name") != name {
            let why = "name in URL does not match name in Eviction object";
            return Err(ApiError::bad_request(why));
        }
        let none = Value::Object(Map::new());
        let given = eviction.get("deleteOptions").unwrap_or(&none);
        let mut asked = DeleteOptions::parse(call.query, Some(given))?;
        asked.check_eviction(name)?;
        check_dry_runs(&call.query.all("dryRun"), given)?;
        // The query and the delete options of the body can each ask for a dry run.
        asked.dry_run |= options.dry_run;
        let is_conditional = asked.resource_version.is_some();
        let key = call.key(name)?;
        let mut tries = 1;
        loop {
            let entry = call.live(&key, name).await?;
            let pod = read::stored(&entry)?;
            let mut delete = asked.clone();
            let has_budget = !ignores_budget(&pod);
            let budget = match has_budget {
                true => self.respect_budget(&pod, asked.dry_run).await?,
                false => None,
            };
            // A Pod that counts as disrupted already must not become ready meanwhile.
            if budget.is_some() || (!has_budget && !is_conditional && !is_over(&pod)) {
                delete.resource_version = Some(entry.mod_revision.to_string());
            }
            match (self.evict_pod(&key, name, delete).await, budget) {
                (Ok(()), _) => return success(self),
                // A client that names a resource version wants the conflict, so its eviction is not tried again.
                (Err(e), _) if e.code() != 409 || is_conditional => return Err(e),
                // The Pod may have become ready, so the budget must be asked again: the client retries.
                (Err(_), Some(budget)) => return Err(still_processing(&budget)),
                (Err(_), None) if !has_budget && tries < MAX_TRIES => tries += 1,
                (Err(e), None) => return Err(e),
            }
        }
    }

    /// Marks and deletes an evicted Pod.
    async fn evict_pod(&self, key: &str, name: &str, mut delete: DeleteOptions) -> ApiResult<()> {
        if !delete.dry_run {
            self.mark_disrupted(key, name, &mut delete).await?;
        }
        // As in kube-apiserver, invalid options are refused only after the mark.
        delete.check()?;
        match self.delete_object(name, &delete).await? {
            Deleted::Gone(_) | Deleted::Unread | Deleted::Held(_) => Ok(()),
        }
    }

    /// Records the eviction in the status of a Pod. A required resource version becomes that of the marked Pod.
    async fn mark_disrupted(&self, key: &str, name: &str, delete: &mut DeleteOptions) -> ApiResult<()> {
        let call = self.call;
        // Empty preconditions count only for the deletion.
        let mut of_mark = delete.clone();
        of_mark.uid.take_if(|uid| uid.is_empty());
        of_mark.resource_version.take_if(|version| version.is_empty());
        loop {
            let entry = call.live(key, name).await?;
            let mut pod = read::stored(&entry)?;
            self.preconditions(name, metadata_str(&pod, "uid"), entry.mod_revision, &of_mark)?;
            let condition = Map::from_iter([
                ("type", Value::from("DisruptionTarget")),
                ("status", "True".into()),
                ("lastProbeTime", Value::Null),
                ("lastTransitionTime", timestamp().into()),
                ("reason", "EvictionByEvictionAPI".into()),
                ("message", "Eviction API: evicting".into()),
            ]);
            let expected = entry.mod_revision;
            let marked = if set_condition(&mut pod, condition) {
                let value = Stored::whole(&pod).value;
                let update = scantling_store::Write::Update { value, expected };
                let event = call.api.write_if_current(key, update).await?;
                event.map(|event| event.revision)
            } else {
                Some(expected)
            };
            if let Some(marked) = marked {
                let version = delete.resource_version.as_mut();
                // The mark itself changed the Pod, so the old precondition would never hold.
                version.into_iter().for_each(|v| *v = marked.to_string());
                return Ok(());
            }
        }
    }

    /// Takes one disruption from the budget of a Pod, or refuses the eviction. Returns the name of the budget if it
    /// allows the eviction only because the Pod is not ready.
    async fn respect_budget(&self, pod: &Value, dry_run: bool) -> ApiResult<Option<String>> {
        let call = self.call;
        let Some(kind) = call.api.kind_named("policy", "PodDisruptionBudget") else {
            return Ok(None);
        };
        loop {
            let budgets = call
                .api
                .list_stored(&kind, call.path.namespace.as_deref())
                .await?;
            let mut of_pod = budgets.into_iter().filter(|budget| covers(budget, pod));
            // No budget covers the Pod: nothing limits its eviction.
            let Some(budget) = of_pod.next() else {
                return Ok(None);
            };
            if of_pod.next().is_some() {
                let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(ApiError::internal(why));
            }
            if !is_ready(pod) {
                let status = |field| number(&budget, "status", field);
                let always = budget.str_at(["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow";
                let is_healthy =
                    status("currentHealthy") >= status("desiredHealthy") && status("desiredHealthy") > 0;
                if always || is_healthy {
                    return Ok(Some(metadata_str(&budget, "name").to_owned()));
                }
            }
            let mut budget = Arc::unwrap_or_clone(budget);
            take_disruption(&mut budget, metadata_str(pod, "name"))?;
            if dry_run {
                return Ok(None);
            }
            let conflict = call.api.store_updates(std::slice::from_ref(&budget)).await?;
            if conflict.is_none() {
                return Ok(None);
            }
        }
    }
}

/// Checks that the query of an eviction and its delete options do not ask for different dry runs.
fn check_dry_runs(query: &[&str], delete: &Value) -> ApiResult<()> {
    let body: Vec<&str> = delete.list("dryRun").iter().filter_map(Value::as_str).collect();
    if query.is_empty() || body.is_empty() || query == body {
        return Ok(());
    }
    let (query, body) = (query.join(" "), body.join(" "));
    Err(ApiError::internal(format!(
        "Non-matching dry-run options in request and content: [{query}] and [{body}]"
    )))
}

impl ResourceRequest<'_> {
    /// The key of a Pod of the request's namespace.
    fn pod_key(&self, name: &str) -> ApiResult<String> {
        check_segment(name)?;
        let namespace = self.path.namespace.as_deref();
        let key = self.api.keys.object("", "pods", namespace, name);
        key.map_err(|_| ApiError::not_found(PODS, name))
    }
}

/// Returns the reason why a Pod cannot be bound, if there is one.
fn check_bindable(pod: &Value, binding: &Value) -> Result<(), String> {
    let name = metadata_str(pod, "name");
    let precondition = |field: &str, what: &str| match metadata_str(binding, field) {
        "" => Ok(()),
        asked if asked == metadata_str(pod, field) => Ok(()),
        asked => Err(format!(
            "Precondition failed: {what} in precondition: {asked}, {what} in object meta: {}",
            metadata_str(pod, field)
        )),
    };
    precondition("uid", "UID")?;
    precondition("resourceVersion", "ResourceVersion")?;
    if !metadata_str(pod, "deletionTimestamp").is_empty() {
        return Err(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }
    let node = pod.str_at(["spec", "nodeName"]);
    if !node.is_empty() {
        return Err(format!(
            "pod {name} is already assigned to node {}",
            go::quote(node)
        ));
    }
    if !pod.list_at(["spec", "schedulingGates"]).is_empty() {
        return Err(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    Ok(())
}

/// Assigns a Pod to the node of a binding, and copies its labels and annotations.
fn bind_pod(pod: &mut Value, binding: &Value) {
    let Some(members) = pod.as_object_mut() else {
        return;
    };
    let mut member = |name: &str| {
        let value = members.get_or_insert_with(name, || Map::new().into());
        value.as_object_mut().map(std::mem::take)
    };
    let (Some(mut spec), Some(mut status), Some(mut metadata)) =
        (member("spec"), member("status"), member("metadata"))
    else {
        return;
    };
    spec.insert("nodeName", binding.str_at(["target", "name"]).into());
    // kube-apiserver clears the nomination with the binding, so that no component acts on a stale hint.
    status.remove("nominatedNodeName");
    for field in ["annotations", "labels"] {
        let added = binding.at(["metadata", field]).and_then(Value::as_object);
        if let Some(added) = added.filter(|added| !added.is_empty()) {
            let own = metadata.get_or_insert_with(field, || Map::new().into());
            if let Some(own) = own.as_object_mut() {
                for (key, value) in added.iter() {
                    own.insert(key.clone(), value.clone());
                }
            }
        }
    }
    let condition = Map::from_iter([
        ("type", Value::from("PodScheduled")),
        ("status", "True".into()),
        ("lastProbeTime", Value::Null),
        ("lastTransitionTime", timestamp().into()),
    ]);
    members.insert("spec", spec.into());
    members.insert("status", status.into());
    members.insert("metadata", metadata.into());
    set_condition(pod, condition);
}

/// Adds a condition to the status of a Pod, or replaces the one with its type.
fn set_condition(pod: &mut Value, mut condition: Map) -> bool {
    let Some(members) = pod.as_object_mut() else {
        return false;
    };
    let status = members.get_or_insert_with("status", || Map::new().into());
    let conditions = status
        .as_object_mut()
        .map(|status| status.get_or_insert_with("conditions", || Value::Array(Vec::new())));
    let Some(conditions) = conditions.and_then(Value::as_array_mut) else {
        return false;
    };
    let same = |c: &&mut Value| c.get_str("type") == condition.get_str("type");
    let Some(old) = conditions.iter_mut().find(same) else {
        conditions.push(condition.into());
        return true;
    };
    // Without a transition, the condition keeps its time.
    if old.get_str("status") == condition.get_str("status")
        && let Some(time) = old.get("lastTransitionTime")
    {
        condition.insert("lastTransitionTime", time.clone());
    }
    let condition = condition.into();
    let is_changed = *old != condition;
    *old = condition;
    is_changed
}

/// Returns whether a Pod can be evicted regardless of budgets: it does not run, or is being deleted.
fn ignores_budget(pod: &Value) -> bool {
    is_over(pod) || pod.str_at(["status", "phase"]) == "Pending"
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod.list_at(["status", "conditions"]).iter();
    conditions.any(|c| c.get_str("type") == "Ready" && c.get_str("status") == "True")
}

/// Returns whether a Pod has ended or is being deleted.
fn is_over(pod: &Value) -> bool {
    matches!(pod.str_at(["status", "phase"]), "Succeeded" | "Failed")
        || !metadata_str(pod, "deletionTimestamp").is_empty()
}

/// The error of an eviction that is to be tried again.
fn still_processing(budget: &str) -> ApiError {
    let why = "Cannot evict pod as it would violate the pod's disruption budget.";
    let cause = format!("The disruption budget {budget} is still being processed by the server.");
    let error = ApiError::too_many_requests(why, 10).retry_after(10);
    error.cause("DisruptionBudget", &cause, "")
}

/// Returns whether a budget covers a Pod.
fn covers(budget: &Value, pod: &Value) -> bool {
    scantling_builtin::selects(budget.at(["spec", "selector"]), pod.at(["metadata", "labels"]))
}

fn number(object: &Value, part: &str, field: &str) -> i64 {
    object.at([part, field]).and_then(Value::as_int).unwrap_or(0)
}

/// Counts an eviction in the status of a budget, or refuses it.
fn take_disruption(budget: &mut Value, pod: &str) -> ApiResult<()> {
    let name = metadata_str(budget, "name").to_owned();
    let status = |field| number(budget, "status", field);
    let cause = |e: ApiError, why: String| e.cause("DisruptionBudget", &why, "");
    if status("observedGeneration") < number(budget, "metadata", "generation") {
        return Err(still_processing(&name));
    }
    let denied = |why: &str, detail: &str| {
        let e = ApiError::forbidden(BUDGET, &name, why);
        let why = format!("The disruption budget {name} does not allow evicting pods currently: {detail}");
        cause(e, why)
    };
    let allowed = status("disruptionsAllowed");
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(denied(why, why));
    }
    let disrupted = budget.at(["status", "disruptedPods"]).and_then(Value::as_object);
    // The disruption controller removes entries; a full map means that it does not keep up, as in kube-apiserver.
    if disrupted.is_some_and(|pods| pods.len() > MAX_DISRUPTED) {
        return Err(denied(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            "too many pending evictions not confirmed by PDB controller",
        ));
    }
    if allowed == 0 {
        let e = ApiError::too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.",
            0,
        );
        return Err(cause(e, no_disruption(budget, &name)));
    }
    let Some(Value::Object(status)) = budget.as_object_mut().and_then(|b| b.get_mut("status")) else {
        return Err(ApiError::internal("a budget without a status"));
    };
    status.insert("disruptionsAllowed", Value::Int(allowed - 1));
    let disrupted = status.get_or_insert_with("disruptedPods", || Map::new().into());
    if let Some(disrupted) = disrupted.as_object_mut() {
        // The disruption controller expects the deletion of these Pods and removes them from the map.
        disrupted.insert(pod, timestamp().into());
    }
    Ok(())
}

/// The reason why a budget allows no disruption.
fn no_disruption(budget: &Value, name: &str) -> String {
    let status = |field| number(budget, "status", field);
    let mut conditions = budget.list_at(["status", "conditions"]).iter();
    let condition = conditions.find(|c| c.get_str("type") == "DisruptionAllowed");
    let refusing = condition.filter(|c| c.get_str("status") == "False" && !c.get_str("message").is_empty());
    match refusing {
        Some(c) if c.get_str("reason") == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            c.get_str("message")
        ),
        _ if status("currentHealthy") <= status("desiredHealthy") => format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            status("desiredHealthy"),
            status("currentHealthy")
        ),
        Some(c) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            c.get_str("reason"),
            c.get_str("message")
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}
