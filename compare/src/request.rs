//! Requests that both servers get.

use percent_encoding::{AsciiSet, CONTROLS};
use regex::Regex;
use scantling_apitypes::{Extensions, TypeTable};
use scantling_value::{Limits, Value, json, yaml};
use std::sync::LazyLock;

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub(crate) const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// The characters that are encoded in a segment of a path. Those of placeholders are not.
pub(crate) const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'?')
    .add(b'<')
    .add(b'>')
    .add(b'`')
    .add(b'|')
    .add(b'\\')
    .add(b'^')
    .add(b'[')
    .add(b']');

/// Placeholder for the version of the object in the last response of a server.
pub(crate) const VERSION: &str = "${resource version}";

/// A request. Path and body may contain placeholders for values that each server chooses itself.
#[derive(Clone, Debug)]
pub(crate) struct PairRequest {
    pub(crate) method: &'static str,
    /// The path with its query.
    pub(crate) path: String,
    /// The media type of the body.
    pub(crate) media: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Option<Value>,
}

impl PairRequest {
    pub(crate) fn new(method: &'static str, path: impl Into<String>, body: Option<Value>) -> PairRequest {
        PairRequest {
            method,
            path: path.into(),
            media: JSON,
            accept: JSON,
            body,
        }
    }

    /// The body of one server: `fill` replaces placeholders.
    pub(crate) fn bytes(&self, fill: impl Fn(&str) -> String) -> Vec<u8> {
        let Some(body) = &self.body else {
            return Vec::new();
        };
        // Allocated ports are numbers, and placeholders strings.
        static PORT: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r#""(\$\{auto:nodePort\d+\})""#).ok());
        let text = body.to_json();
        let text = PORT
            .as_ref()
            .map_or(text.clone(), |port| port.replace_all(&text, "$1").into_owned());
        let text = fill(&text);
        let filled = || json::decode(text.as_bytes(), Limits::SAFE).unwrap_or_default();
        let encoded = match self.media {
            YAML => Some(yaml::encode(&filled()).into_bytes()),
            PROTOBUF => protobuf(filled()),
            _ => None,
        };
        encoded.unwrap_or_else(|| text.into_bytes())
    }

    /// The request in one line and its body in another.
    pub(crate) fn text(&self) -> String {
        let body = self.body.as_ref().map(Value::to_json).unwrap_or_default();
        format!("{} {} {}\n      {body}", self.method, self.path, self.media)
    }
}

/// An object of a known type; `None` if a value does not fit its field.
fn protobuf(object: Value) -> Option<Vec<u8>> {
    let table = TypeTable::latest();
    let definition = table.kind_of(&object)?;
    let members = table.decode(definition, object, Extensions::NONE).ok()?.members;
    table.write_envelope(&members.into())
}
