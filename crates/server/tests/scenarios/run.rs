//! Runs a scenario step by step.

use crate::client::{Answer, Asking, Client};
use scantling_testkit::normalize::{self, BodyForm, Captures};
use scantling_testkit::scenario::{CURRENT_VERSION, record};
use scantling_testkit::{Scenario, ScenarioStep};
use scantling_value::{Limits, Value, json};
use std::time::Duration;

/// The timeout for CRDs to be served.
const ESTABLISH_TIMEOUT: Duration = Duration::from_secs(20);

/// A run of one scenario against one server.
pub(crate) struct ScenarioRun<'s> {
    client: Client,
    scenario: &'s Scenario,
    captures: Captures,
}

impl<'s> ScenarioRun<'s> {
    pub(crate) fn new(client: Client, scenario: &'s Scenario) -> Self {
        ScenarioRun {
            client,
            scenario,
            captures: Captures::default(),
        }
    }

    /// Creates the namespaces that the scenario uses.
    pub(crate) async fn prepare(&mut self) -> Result<(), String> {
        for name in &self.scenario.namespaces {
            let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
            let asking = Asking {
                content_type: Some("application/json"),
                body: Some(body.into_bytes()),
                ..Asking::default()
            };
            self.client.ask("POST", "/api/v1/namespaces", asking).await?;
        }
        Ok(())
    }

    /// Executes one step. Returns the response in the format of the recordings.
    pub(crate) async fn step(&mut self, step: &ScenarioStep) -> Result<Value, String> {
        let path = self.captures.fill(&step.url());
        let body = self.body(step).await?;
        let json = body.as_ref().map(|_| "application/json");
        let headers: Vec<(&str, &str)> = step
            .headers
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        let asking = Asking {
            content_type: step.content_type.as_deref().or(json),
            accept: step.accept.as_deref(),
            headers: &headers,
            body,
        };
        let answer = self.client.ask(step.verb, &path, asking).await?;
        self.capture(step, &answer)?;
        let body = self.normalized(step, &path, &answer);
        if is_definition_write(step.verb, &path)
            && matches!(answer.status, 200 | 201)
            && !path.contains("dryRun")
        {
            self.wait_until_served(&answer).await?;
        }
        tokio::time::sleep(step.wait).await;
        let warnings = normalize::warnings(
            answer
                .headers
                .get_all("warning")
                .iter()
                .map(hyper::http::HeaderValue::as_bytes),
        );
        Ok(normalize::sort_unordered(record(
            step,
            answer.status,
            warnings,
            body,
        )))
    }

    fn normalized(&self, step: &ScenarioStep, path: &str, answer: &Answer) -> Value {
        let is_watch = path.contains("watch=1") || path.contains("watch=true");
        // Some recordings contain a stream as plain text.
        let as_events = step
            .recorded
            .as_ref()
            .is_none_or(|r| r.at(["body", "events"]).is_some());
        let form = if is_watch && as_events {
            BodyForm::Events
        } else {
            BodyForm::Document
        };
        let content_type = answer.headers.get("content-type").and_then(|v| v.to_str().ok());
        let mut body = normalize::body(&answer.body, content_type.unwrap_or_default(), form);
        self.captures.blank(&mut body);
        if self.scenario.blanks_chosen_values {
            normalize::blank_fresh(&mut body, &self.scenario.text);
        }
        if !step.pick.is_empty() && answer.status < 300 {
            body = normalize::pick(&body, &step.pick);
        }
        if step.verb != "GET"
            && body.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition")
            && let Some(members) = body.as_object_mut()
        {
            // The server sets it asynchronously: a later GET shows it.
            members.remove("status");
        }
        body
    }

    async fn body(&mut self, step: &ScenarioStep) -> Result<Option<Vec<u8>>, String> {
        let (Some(current), Some(body)) = (&step.current, &step.versioned_body) else {
            return Ok(step
                .body
                .as_deref()
                .map(|body| self.captures.fill(body).into_bytes()));
        };
        let live = decoded(&self.client.ask("GET", current, Asking::default()).await?)?;
        let version = live.at(["metadata", "resourceVersion"]).and_then(Value::as_str);
        let body = match version {
            Some(version) => body.replace(CURRENT_VERSION, version),
            // The object does not exist: the response says so.
            None => step.body.clone().unwrap_or_default(),
        };
        Ok(Some(self.captures.fill(&body).into_bytes()))
    }

    fn capture(&mut self, step: &ScenarioStep, answer: &Answer) -> Result<(), String> {
        if self.scenario.blanks_chosen_values
            && let Ok(body) = decoded(answer)
        {
            self.captures.keep_allocated(&body, &self.scenario.text, "");
            let sent = json::decode(step.body_bytes(), Limits::SAFE).unwrap_or_default();
            let prefix = sent.at(["metadata", "generateName"]).and_then(Value::as_str);
            self.captures
                .keep_refused_name(prefix.unwrap_or_default(), &body, &self.scenario.text);
        }
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
            self.captures.insert(name, text);
        }
        Ok(())
    }

    /// Waits until a CRD is established and every served version can be listed.
    async fn wait_until_served(&mut self, answer: &Answer) -> Result<(), String> {
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
        let served_everywhere = async {
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
        // A CRD that is never served shows in the following steps.
        tokio::time::timeout(ESTABLISH_TIMEOUT, served_everywhere)
            .await
            .unwrap_or(Ok(()))
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
