//! Computed cells of pods.

use super::Printing;
use super::text::{NONE, condition, int, is_deleted, moment, since};
use scantling_value::{Map, Value};

/// The computed cells of a pod's row.
pub(super) fn cells(pod: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let summary = Summary::new(pod);
    let restarts = match (summary.restarts, summary.last_restart) {
        (0, _) | (_, None) => summary.restarts.to_string(),
        (restarts, last) => format!("{restarts} ({} ago)", since(last, printing)),
    };
    let address = pod
        .list_at(["status", "podIPs"])
        .first()
        .map_or("", |ip| ip.get_str("ip"));
    vec![
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        (if address.is_empty() { NONE } else { address }).into(),
        readiness_gates(pod).into(),
    ]
}

/// The conditions of a pod's row: whether it has ended.
pub(super) fn row_conditions(pod: &Value) -> Vec<Value> {
    let (reason, message) = match pod.str_at(["status", "phase"]) {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return Vec::new(),
    };
    let condition = Map::from_iter([
        ("message", Value::from(message)),
        ("reason", Value::from(reason)),
        ("status", Value::from("True")),
        ("type", Value::from("Completed")),
    ]);
    vec![condition.into()]
}

fn readiness_gates(pod: &Value) -> String {
    let gates = pod.list_at(["spec", "readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let is_open = |gate: &&Value| condition(pod, gate.get_str("conditionType")) == "True";
    format!("{}/{}", gates.iter().filter(is_open).count(), gates.len())
}

/// The summary of a pod's containers in a table.
struct Summary<'v> {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    last_restart: Option<&'v Value>,
}

/// The state of a container, if it is that one.
fn state<'v>(status: &'v Value, name: &str) -> Option<&'v Value> {
    status.at(["state", name]).filter(|s| !s.is_null())
}

/// The reason why a container ended: its reason, signal or exit code.
fn end_reason(terminated: &Value) -> String {
    match (terminated.get_str("reason"), int(terminated, ["signal"])) {
        ("", 0) => format!("ExitCode:{}", int(terminated, ["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// The later of two times.
fn later<'v>(a: Option<&'v Value>, b: Option<&'v Value>) -> Option<&'v Value> {
    let key = |time: Option<&Value>| moment(time).map(|m| (m.seconds, m.nanos));
    if key(b) > key(a) { b } else { a }
}

fn last_end(status: &Value) -> Option<&Value> {
    status.at(["lastState", "terminated", "finishedAt"])
}

impl<'v> Summary<'v> {
    fn new(pod: &'v Value) -> Self {
        let phase = pod.str_at(["status", "phase"]);
        let mut reason = match pod.str_at(["status", "reason"]) {
            "" => phase,
            reason => reason,
        }
        .to_owned();
        let mut conditions = pod.list_at(["status", "conditions"]).iter();
        if conditions.any(|c| c.get_str("type") == "PodScheduled" && c.get_str("reason") == "SchedulingGated")
        {
            "SchedulingGated".clone_into(&mut reason);
        }
        let init_containers = pod.list_at(["spec", "initContainers"]);
        // Sidecars run beside the containers, so that they count for the total.
        let sidecars = init_containers
            .iter()
            .filter(|c| c.get_str("restartPolicy") == "Always")
            .count();
        let mut summary = Summary {
            ready: 0,
            total: pod.list_at(["spec", "containers"]).len() + sidecars,
            reason,
            restarts: 0,
            last_restart: None,
        };
        let of_sidecars = summary.add_init_containers(pod);
        if of_sidecars.is_complete || condition(pod, "Initialized") == "True" {
            // Init containers are done, so that only the restarts of sidecars still matter.
            summary.restarts = of_sidecars.restarts;
            summary.last_restart = of_sidecars.last_restart;
            summary.add_containers(pod);
        }
        let is_terminal = matches!(phase, "Failed" | "Succeeded");
        // kube-apiserver shows deleted pods of an unreachable node as unknown.
        if is_deleted(pod) && pod.str_at(["status", "reason"]) == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if is_deleted(pod) && !is_terminal {
            "Terminating".clone_into(&mut summary.reason);
        }
        summary
    }

    /// Adds init containers up to the one that has not finished.
    fn add_init_containers(&mut self, pod: &'v Value) -> Sidecars<'v> {
        let containers = pod.list_at(["spec", "initContainers"]);
        let is_sidecar = |name: &str| {
            // kube-apiserver collects the containers by name in a map, where the last one of a name stays.
            let named = containers.iter().rev().find(|c| c.get_str("name") == name);
            named.is_some_and(|c| c.get_str("restartPolicy") == "Always")
        };
        let mut sidecars = Sidecars {
            is_complete: true,
            restarts: 0,
            last_restart: None,
        };
        for (i, status) in pod
            .list_at(["status", "initContainerStatuses"])
            .iter()
            .enumerate()
        {
            let restarts = int(status, ["restartCount"]);
            self.restarts += restarts;
            self.last_restart = later(self.last_restart, last_end(status));
            let is_sidecar = is_sidecar(status.get_str("name"));
            if is_sidecar {
                sidecars.restarts += restarts;
                sidecars.last_restart = later(sidecars.last_restart, last_end(status));
            }
            let (terminated, waiting) = (state(status, "terminated"), state(status, "waiting"));
            if terminated.is_some_and(|t| int(t, ["exitCode"]) == 0) {
                continue;
            }
            if is_sidecar && status.get("started") == Some(&Value::Bool(true)) {
                self.ready += usize::from(status.get("ready") == Some(&Value::Bool(true)));
                continue;
            }
            let waiting = waiting.map_or("", |w| w.get_str("reason"));
            self.reason = match terminated {
                Some(terminated) => format!("Init:{}", end_reason(terminated)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{i}/{}", containers.len()),
            };
            sidecars.is_complete = false;
            break;
        }
        sidecars
    }

    fn add_containers(&mut self, pod: &'v Value) {
        let mut has_running = false;
        let mut error = None;
        // The reason is overwritten from the last container to the first, so that the first one decides.
        for status in pod.list_at(["status", "containerStatuses"]).iter().rev() {
            self.restarts += int(status, ["restartCount"]);
            self.last_restart = later(self.last_restart, last_end(status));
            let waiting = state(status, "waiting").map_or("", |w| w.get_str("reason"));
            let is_ready = status.get("ready") == Some(&Value::Bool(true));
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = state(status, "terminated") {
                self.reason = end_reason(terminated);
                if int(terminated, ["exitCode"]) != 0 {
                    error = Some(self.reason.clone());
                }
            } else if is_ready && state(status, "running").is_some() {
                has_running = true;
                self.ready += 1;
            }
        }
        // A pod with a container that runs has not completed.
        if self.reason == "Completed" {
            if has_running && condition(pod, "Ready") == "True" {
                "Running".clone_into(&mut self.reason);
            } else if let Some(error) = error {
                self.reason = error;
            } else if has_running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }
}

/// The summary of restartable init containers (sidecars).
struct Sidecars<'v> {
    is_complete: bool,
    restarts: i64,
    last_restart: Option<&'v Value>,
}
