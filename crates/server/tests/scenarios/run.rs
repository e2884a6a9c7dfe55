//! Running a scenario, step by step.

use crate::client::{Answer, Asking, Client};
use crate::normal::{self, Reading};
use crate::scenario::{self, CURRENT, Step};
use scantling_value::{Limits, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long definitions may take to be served.
const SETTLING: Duration = Duration::from_secs(20);

/// A run of one scenario against one server.
pub(crate) struct Run {
    client: Client,
    /// What was captured so far.
    kept: BTreeMap<String, String>,
}

impl Run {
    pub(crate) fn new(client: Client) -> Run {
        Run {
            client,
            kept: BTreeMap::new(),
        }
    }

    /// Carries out one step; its record has the form of the recordings.
    pub(crate) async fn step(&mut self, step: &Step, recorded: Option<&Value>) -> Result<Value, String> {
        let verb = step.verb;
        let path = normal::fill(&step.path, &self.kept);
        let body = self.body(step).await?;
        let json = body.as_ref().map(|_| "application/json");
        let asking = Asking {
            content_type: step.content_type.as_deref().or(json),
            accept: step.accept.as_deref(),
            headers: &[],
            body,
        };
        let answer = self.client.ask(verb, &path, asking).await?;
        self.capture(step, &answer)?;
        let watch = path.contains("watch=1") || path.contains("watch=true");
        // Some recordings hold a stream as plain text.
        let as_events = recorded.is_none_or(|r| r.at(["body", "events"]).is_some());
        let reading = if watch && as_events {
            Reading::Events
        } else {
            Reading::Plain
        };
        let mut body = normal::body(&answer, reading);
        normal::blank(&mut body, &self.kept);
        if verb != "GET"
            && body.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition")
            && let Some(members) = body.as_object_mut()
        {
            // The server sets it in its own time: a later GET shows it.
            members.remove("status");
        }
        if is_definition_write(verb, &path) && matches!(answer.status, 200 | 201) && !path.contains("dryRun")
        {
            self.settle(&answer).await?;
        }
        let warnings = normal::warnings(&answer);
        Ok(normal::ordered(scenario::record(
            step,
            answer.status,
            warnings,
            body,
        )))
    }

    async fn body(&mut self, step: &Step) -> Result<Option<Vec<u8>>, String> {
        let Some(body) = &step.body else {
            return Ok(None);
        };
        let mut body = normal::fill(body, &self.kept);
        if let Some(current) = &step.current {
            let live = self.client.ask("GET", current, Asking::default()).await?;
            let live = decoded(&live)?;
            let version = live
                .at(["metadata", "resourceVersion"])
                .and_then(Value::as_str)
                .ok_or_else(|| format!("{current} has no resourceVersion"))?;
            body = body.replace(&format!("${{{CURRENT}}}"), version);
        }
        Ok(Some(body.into_bytes()))
    }

    fn capture(&mut self, step: &Step, answer: &Answer) -> Result<(), String> {
        for (name, place) in &step.capture {
            let body = decoded(answer)?;
            let found = place.split('.').try_fold(&body, |v, part| match v {
                Value::Array(items) => items.get(part.parse::<usize>().ok()?),
                v => v.get(part),
            });
            let text = match found {
                Some(Value::String(s)) => s.to_string(),
                Some(other) => other.to_json(),
                None => return Err(format!("nothing at {place} to capture")),
            };
            self.kept.insert(name.clone(), text);
        }
        Ok(())
    }

    /// Waits until a definition is established and every served version answers a list.
    async fn settle(&mut self, answer: &Answer) -> Result<(), String> {
        let definition = decoded(answer)?;
        let text = |path: &[&str]| {
            let found = definition.at(path.iter().copied()).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let (name, group) = (text(&["metadata", "name"]), text(&["spec", "group"]));
        let plural = text(&["spec", "names", "plural"]);
        if name.is_empty() || plural.is_empty() {
            return Ok(());
        }
        let own = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let settled = async {
            loop {
                let answer = self.client.ask("GET", &own, Asking::default()).await?;
                if answer.status == 200 {
                    let found = decoded(&answer)?;
                    let status = |ty: &str| condition(&found, ty);
                    if status("NamesAccepted").as_deref() == Some("False") {
                        return Ok(());
                    }
                    if status("Established").as_deref() == Some("True") {
                        break;
                    }
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            for version in served(&definition) {
                let list = format!("/apis/{group}/{version}/{plural}?limit=1");
                while self.client.ask("GET", &list, Asking::default()).await?.status != 200 {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Ok(())
        };
        // A definition that does not settle shows in the steps that follow.
        tokio::time::timeout(SETTLING, settled).await.unwrap_or(Ok(()))
    }
}

fn decoded(answer: &Answer) -> Result<Value, String> {
    json::decode(&answer.body, Limits::SAFE).map_err(|e| e.to_string())
}

fn is_definition_write(verb: &str, path: &str) -> bool {
    matches!(verb, "POST" | "PUT" | "PATCH")
        && path.contains("/customresourcedefinitions")
        && !path.contains("/status")
}

fn condition(definition: &Value, ty: &str) -> Option<String> {
    let conditions = definition.at(["status", "conditions"])?.as_array()?;
    let of_type = |c: &&Value| c.get("type").and_then(Value::as_str) == Some(ty);
    let status = conditions.iter().find(of_type)?.get("status")?;
    status.as_str().map(str::to_owned)
}

fn served(definition: &Value) -> Vec<String> {
    let spec = definition.get("spec");
    let text = |v: &Value| v.as_str().map(str::to_owned);
    let Some(versions) = spec.and_then(|s| s.get("versions")?.as_array()) else {
        return spec.and_then(|s| text(s.get("version")?)).into_iter().collect();
    };
    let is_served = |v: &&Value| v.get("served").and_then(Value::as_bool) == Some(true);
    versions
        .iter()
        .filter(is_served)
        .filter_map(|v| text(v.get("name")?))
        .collect()
}
