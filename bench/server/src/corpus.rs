//! Real CRDs and objects.

use crate::Failure;
use flate2::read::GzDecoder;
use scantling_value::{Limits, Map, Value, json, yaml};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A CRD that a server accepts.
#[derive(Clone)]
pub struct Definition {
    pub name: String,
    pub group: String,
    /// The served versions.
    pub versions: Vec<String>,
    pub document: Value,
}

/// The object used for the load, and its CRD.
pub struct Subject {
    pub definition: Definition,
    object: Value,
}

/// The valid CRDs of a corpus.
pub fn definitions(path: &Path) -> Result<(Vec<Definition>, Subject), Failure> {
    let file = std::fs::File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut all = Vec::new();
    let mut subject = None;
    for line in BufReader::new(GzDecoder::new(file)).split(b'\n') {
        let entry = json::decode(&line?, Limits::SERVER)?;
        if entry
            .get("errors")
            .and_then(Value::as_array)
            .is_none_or(|e| !e.is_empty())
        {
            continue;
        }
        let Some(document) = entry.get("crd") else {
            continue;
        };
        let definition = Definition::of(document.clone());
        // Nineteen rules, some over lists, with messages; the object is the first sample.
        if definition.name == "nodepools.karpenter.sh" {
            let sample = entry
                .get("objects")
                .and_then(Value::as_array)
                .and_then(<[Value]>::first);
            let object = sample
                .and_then(|s| s.get("object"))
                .cloned()
                .ok_or("the corpus has no sample")?;
            let definition = definition.clone();
            subject = Some(Subject { definition, object });
        }
        all.push(definition);
    }
    let subject = subject.ok_or("the corpus has no nodepools.karpenter.sh")?;
    Ok((all, subject))
}

impl Definition {
    fn of(document: Value) -> Definition {
        let text = |v: &Value, path: &[&str]| {
            v.at(path.iter().copied())
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let versions = document
            .at(["spec", "versions"])
            .and_then(Value::as_array)
            .unwrap_or_default();
        let served = versions
            .iter()
            .filter(|v| v.get("served").and_then(Value::as_bool) == Some(true));
        Definition {
            name: text(&document, &["metadata", "name"]),
            group: text(&document, &["spec", "group"]),
            versions: served.map(|v| text(v, &["name"])).collect(),
            document,
        }
    }

    /// The same CRD in another group.
    pub fn in_group(&self, group: &str) -> Definition {
        let mut document = self.document.clone();
        let plural = self.name.split('.').next().unwrap_or_default();
        let name = format!("{plural}.{group}");
        let mut set = |parent: &str, field: &str, text: &str| {
            let parent = document.as_object_mut().and_then(|d| d.get_mut(parent));
            if let Some(members) = parent.and_then(Value::as_object_mut) {
                members.insert(field, text.into());
            }
        };
        set("metadata", "name", &name);
        set("spec", "group", group);
        Definition::of(document)
    }
}

/// The name of the n-th object. All names have the same length, so one content length fits all.
pub fn name(n: usize) -> String {
    format!("bench-{n:010}")
}

impl Subject {
    /// The path of the objects.
    pub fn path(&self) -> String {
        "/apis/karpenter.sh/v1/nodepools".to_owned()
    }

    /// The JSON of an object, with an annotation of some length.
    pub fn body(&self, name: &str, padding: usize) -> Vec<u8> {
        let mut object = self.object.clone();
        let annotations = Map::from_iter([("example.com/padding", Value::from("x".repeat(padding)))]);
        let metadata = Map::from_iter([("name", Value::from(name)), ("annotations", annotations.into())]);
        if let Some(members) = object.as_object_mut() {
            members.remove("status");
            members.insert("metadata", metadata.into());
        }
        object.to_json().into_bytes()
    }
}

/// The path of Deployments.
pub const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// The JSON of the first Deployment.
pub fn deployment() -> Result<Vec<u8>, Failure> {
    const DEPLOYMENT: &str = include_str!("../../cli/src/deployment.yaml");
    let mut object = yaml::decode(DEPLOYMENT.as_bytes(), Limits::SERVER)?;
    let metadata = Map::from_iter([("name", Value::from(name(0))), ("namespace", "default".into())]);
    let members = object.as_object_mut().ok_or("the Deployment is not an object")?;
    members.insert("metadata", metadata.into());
    Ok(object.to_json().into_bytes())
}
