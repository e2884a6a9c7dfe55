//! Documents and the objects in them.

use crate::problem::Problem;
use scantling_value::{DecodeError, Decoded, Limits, Position, Value, json, yaml};
use std::sync::Arc;

/// One document of a file.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    /// The file, for messages.
    pub(crate) file: &'a Arc<str>,
    /// The text of this document alone.
    pub(crate) text: &'a [u8],
    /// The number of lines before it.
    pub(crate) line: usize,
    /// How it is written.
    pub(crate) notation: Notation,
}

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// A decoded object, and where it stands in its document.
#[derive(Debug)]
pub(crate) struct Object {
    /// The object.
    pub(crate) value: Value,
    /// What strict decoding found.
    pub(crate) found_in_text: Vec<String>,
    /// Its index, where the document is a list.
    pub(crate) index: Option<usize>,
}

impl Object {
    pub(crate) fn api_version(&self) -> &str {
        text(self.value.get("apiVersion"))
    }

    pub(crate) fn kind(&self) -> &str {
        text(self.value.get("kind"))
    }

    pub(crate) fn name(&self) -> &str {
        text(self.value.at(["metadata", "name"]))
    }

    pub(crate) fn namespace(&self) -> &str {
        text(self.value.at(["metadata", "namespace"]))
    }

    /// Whether this is a definition.
    pub(crate) fn is_definition(&self) -> bool {
        self.kind() == "CustomResourceDefinition" && self.api_version().starts_with("apiextensions.k8s.io/")
    }
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

impl Document<'_> {
    /// Whatever the document holds.
    pub(crate) fn value(&self) -> Result<Value, Problem> {
        self.decode().map(|decoded| decoded.value)
    }

    fn decode(&self) -> Result<Decoded, Problem> {
        let decoded = match self.notation {
            Notation::Yaml => yaml::decode_strict(self.text, Limits::SERVER),
            // A flow mapping of YAML can begin as JSON does.
            Notation::Json => json::decode_strict(self.text, Limits::SERVER).or_else(|error| {
                let other = yaml::decode_strict(self.text, Limits::SERVER);
                other.ok().filter(|_| !self.file.ends_with(".json")).ok_or(error)
            }),
        };
        decoded.map_err(|e| undecodable(self.file, self.text, self.line, &e))
    }

    /// The objects of the document: itself, or those of a list; none where there is nothing.
    pub(crate) fn objects(&self) -> Result<Vec<Object>, Problem> {
        let Decoded { value, duplicates } = self.decode()?;
        let found_in_text = match self.notation {
            Notation::Yaml if !duplicates.is_empty() => vec![yaml::strict_error(&duplicates)],
            _ => duplicates,
        };
        if value.is_null() {
            return Ok(Vec::new());
        }
        let file = self.file;
        if value.as_object().is_none() {
            let place = format!("{file}:{}", self.line + 1);
            return Err(Problem::new(place, "the document is no Kubernetes object")
                .hint("an object is a mapping with apiVersion and kind"));
        }
        let whole = Object {
            value,
            found_in_text,
            index: None,
        };
        let objects = match whole.value.get("items") {
            Some(Value::Array(_)) if whole.kind().ends_with("List") => list(whole),
            _ => vec![whole],
        };
        match objects
            .iter()
            .find(|o| o.kind().is_empty() || o.api_version().is_empty())
        {
            Some(object) => {
                let member = if object.kind().is_empty() {
                    "kind"
                } else {
                    "apiVersion"
                };
                let index = object.index.map(|i| format!(" items[{i}]")).unwrap_or_default();
                let place = format!("{file}:{}{index}", self.line + 1);
                Err(Problem::new(place, format!("the object has no {member}")))
            }
            None => Ok(objects),
        }
    }

    /// One of the objects once more, as it was sent.
    pub(crate) fn again(&self, index: Option<usize>) -> Value {
        let mut value = self.value().unwrap_or(Value::Null);
        let element = index.and_then(|index| {
            let items = value.as_object_mut()?.get_mut("items")?.as_array_mut()?;
            items.get_mut(index).map(std::mem::take)
        });
        element.unwrap_or(value)
    }
}

/// The objects of a list. Those of a typed list need not repeat what they are.
pub(crate) fn list(whole: Object) -> Vec<Object> {
    let element = (
        whole.kind().trim_end_matches("List").to_owned(),
        whole.api_version().to_owned(),
    );
    let Value::Object(mut members) = whole.value else {
        return Vec::new();
    };
    let Some(Value::Array(items)) = members.remove("items") else {
        return Vec::new();
    };
    items
        .into_iter()
        .enumerate()
        .map(|(index, mut value)| {
            if let (Some(members), (kind, version)) = (value.as_object_mut(), &element)
                && !kind.is_empty()
            {
                members.get_or_insert_with("kind", || kind.as_str().into());
                members.get_or_insert_with("apiVersion", || version.as_str().into());
            }
            let found_in_text = if index == 0 {
                whole.found_in_text.clone()
            } else {
                Vec::new()
            };
            Object {
                value,
                found_in_text,
                index: Some(index),
            }
        })
        .collect()
}

/// Why a text cannot be read, and where.
pub(crate) fn undecodable(file: &str, text: &[u8], lines_before: usize, error: &DecodeError) -> Problem {
    let place = match Position::of_error(text, error) {
        Some(at) => format!("{file}:{}:{}", at.line + lines_before, at.column),
        None if lines_before > 0 => format!("{file}: the document at line {}", lines_before + 1),
        None => file.to_owned(),
    };
    Problem::new(place, error)
}
