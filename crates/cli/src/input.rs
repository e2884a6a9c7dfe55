//! Documents and the objects in them.

use crate::locate::Location;
use crate::placeholders;
use crate::problem::Problem;
use crate::split::lines;
use scantling_value::{DecodeError, Decoded, Finding, Limits, Position, Value, json, yaml};
use std::sync::Arc;

/// One document of a file.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    /// The file, for messages.
    pub(crate) file: &'a Arc<str>,
    /// The text of this document alone.
    pub(crate) text: &'a [u8],
    /// Its start in the file.
    pub(crate) start: Start,
    /// Its notation.
    pub(crate) notation: Notation,
    /// The list that it was split from.
    pub(crate) within: Option<ParentList>,
}

/// The start of a text in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// The number of lines before its first one.
    pub(crate) line: usize,
    /// The number of characters before it on that line.
    pub(crate) column: usize,
}

impl Start {
    /// Returns the start of the next text, after a text that begins here.
    pub(crate) fn after(self, text: &[u8]) -> Self {
        let last = memchr::memrchr(b'\n', text);
        let on_line = text.get(last.map_or(0, |n| n + 1)..).unwrap_or_default();
        // Continuation bytes of UTF-8 are not counted.
        let characters = on_line.iter().filter(|b| (**b as i8) >= -0x40).count();
        Start {
            line: self.line + lines(text),
            column: if last.is_some() {
                characters
            } else {
                self.column + characters
            },
        }
    }
}

/// The list that a document was split from: the `apiVersion` and `kind` that its elements need not repeat,
/// and the index of the element.
#[derive(Clone, Debug)]
pub(crate) struct ParentList {
    pub(crate) kind: Arc<str>,
    pub(crate) api_version: Arc<str>,
    pub(crate) index: usize,
}

/// The notation of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// A decoded object and its position in the document.
#[derive(Debug)]
pub(crate) struct InputObject {
    /// The object.
    pub(crate) value: Value,
    /// Duplicate fields that strict decoding reported.
    pub(crate) found_in_text: Vec<Finding>,
    /// Its index in the list that the document is; in a list of lists, one after the other.
    pub(crate) index: Vec<usize>,
}

impl InputObject {
    pub(crate) fn api_version(&self) -> &str {
        self.value.get_str("apiVersion")
    }

    pub(crate) fn kind(&self) -> &str {
        self.value.get_str("kind")
    }

    pub(crate) fn name(&self) -> &str {
        self.value.str_at(["metadata", "name"])
    }

    pub(crate) fn namespace(&self) -> &str {
        self.value.str_at(["metadata", "namespace"])
    }

    /// Renames a Namespace as kustomize does for the objects of a kustomization with a namespace.
    pub(crate) fn rename_namespace(&mut self, name: &str) {
        if self.kind() == "Namespace"
            && self.api_version() == "v1"
            && let Some(metadata) = self.value.as_object_mut().and_then(|o| o.get_mut("metadata"))
            && let Some(metadata) = metadata.as_object_mut()
        {
            metadata.insert("name", name.into());
        }
    }

    /// Returns whether this is a CRD.
    pub(crate) fn is_definition(&self) -> bool {
        self.kind() == "CustomResourceDefinition" && self.api_version().starts_with("apiextensions.k8s.io/")
    }

    /// Returns whether this is only a part of a CRD, as patches for kustomize are.
    pub(crate) fn is_definition_patch(&self) -> bool {
        let is_absent = |member: &&str| self.value.at(["spec", member]).is_none();
        self.is_definition() && ["group", "names", "versions", "version"].iter().all(is_absent)
    }
}

impl Document<'_> {
    /// Decodes the document.
    pub(crate) fn value(&self) -> Result<Value, Problem> {
        self.decode().map(|decoded| decoded.value)
    }

    fn decode(&self) -> Result<Decoded, Problem> {
        let decoded = match self.notation {
            Notation::Yaml => yaml::decode_strict(self.text, Limits::SERVER),
            // A flow mapping of YAML can begin as JSON does.
            Notation::Json => json::decode_strict(self.text, Limits::SERVER).or_else(|error| {
                // The error of the JSON decoder is reported: the text begins as JSON does.
                let other = yaml::decode_strict(self.text, Limits::SERVER);
                other.ok().filter(|_| !self.file.ends_with(".json")).ok_or(error)
            }),
        };
        decoded.map_err(|e| undecodable(self.file, self.text, self.start, &e))
    }

    /// Returns the objects of the document, without values that are not Kubernetes objects, such as a kustomize patch.
    pub(crate) fn known_objects(&self) -> Result<Vec<InputObject>, Problem> {
        let mut objects = self.flattened()?.unwrap_or_default();
        objects.retain(|o| !o.kind().is_empty() && !o.api_version().is_empty());
        Ok(objects)
    }

    /// The document as objects: itself, or those of a list. None if it is not an object.
    fn flattened(&self) -> Result<Option<Vec<InputObject>>, Problem> {
        let Decoded {
            mut value,
            duplicates: found_in_text,
        } = self.decode()?;
        // An empty document has no objects; an empty element of a list is an error.
        if value.is_null() && self.within.is_none() {
            return Ok(Some(Vec::new()));
        }
        if value.as_object().is_none() {
            return Ok(None);
        }
        if let Some(within) = &self.within {
            complete(&mut value, &within.kind, &within.api_version);
        }
        let mut objects = Vec::new();
        let whole = InputObject {
            value,
            found_in_text,
            index: Vec::new(),
        };
        flatten(whole, &mut objects);
        Ok(Some(objects))
    }

    /// Returns the objects of the document: itself, or those of a list. An empty document has none.
    pub(crate) fn objects(&self) -> Result<Vec<InputObject>, Problem> {
        let Some(objects) = self.flattened()? else {
            let why = self.describe(&[], "the document is not a Kubernetes object");
            return Err(Problem::in_file(self.file, Some(self.first_line()), why)
                .skippable(NOT_AN_OBJECT)
                .hint("an object is a mapping with apiVersion and kind"));
        };
        let nameless = |o: &&InputObject| o.kind().is_empty() || o.api_version().is_empty();
        match objects.iter().find(nameless) {
            Some(object) => {
                let member = if object.kind().is_empty() {
                    "kind"
                } else {
                    "apiVersion"
                };
                let why = self.describe(&object.index, &format!("the object has no {member}"));
                let problem = Problem::in_file(self.file, Some(self.first_line()), why);
                // With one of the two and metadata, it was meant to be an object.
                let has_one = !object.kind().is_empty() || !object.api_version().is_empty();
                if has_one && object.value.at(["metadata", "name"]).is_some() {
                    Err(problem)
                } else {
                    Err(problem.skippable(NOT_AN_OBJECT))
                }
            }
            None => Ok(objects),
        }
    }

    /// A message about the document, or about an object of the list that it is.
    fn describe(&self, index: &[usize], message: &str) -> String {
        let within = self.within.iter().map(|within| within.index);
        let steps: Vec<String> = within
            .chain(index.iter().copied())
            .map(|index| format!("items[{index}]"))
            .collect();
        if steps.is_empty() {
            message.to_owned()
        } else {
            format!("{}: {message}", steps.join("."))
        }
    }

    pub(crate) fn first_line(&self) -> Location {
        let first = Position { line: 1, column: 1 };
        Location::in_text(self.text, self.start, first)
    }
}

/// The reason why a document that is not an object is skipped.
const NOT_AN_OBJECT: &str = "not a Kubernetes object";

/// The objects behind an object: itself, or those of the list that it is.
pub(crate) fn flatten(object: InputObject, objects: &mut Vec<InputObject>) {
    let is_list = object.kind().ends_with("List")
        && object
            .value
            .get("items")
            .is_some_and(|items| items.as_array().is_some());
    if !is_list {
        objects.push(object);
        return;
    }
    let kind = object.kind().trim_end_matches("List").to_owned();
    let api_version = object.api_version().to_owned();
    let InputObject {
        mut value,
        mut found_in_text,
        index,
    } = object;
    let items = value.as_object_mut().and_then(|members| members.remove("items"));
    let Some(Value::Array(items)) = items else {
        return;
    };
    // Recursion is bounded by the depth limit of the decoder.
    for (n, mut value) in items.into_iter().enumerate() {
        complete(&mut value, &kind, &api_version);
        let mut index = index.clone();
        index.push(n);
        let element = InputObject {
            value,
            // A duplicate field is known by its line alone, so it is reported once, with the first element.
            found_in_text: std::mem::take(&mut found_in_text),
            index,
        };
        flatten(element, objects);
    }
}

/// Adds kind and apiVersion, which an element of a typed list need not repeat.
fn complete(element: &mut Value, kind: &str, api_version: &str) {
    if let Some(members) = element.as_object_mut()
        && !kind.is_empty()
    {
        members.get_or_insert_with("kind", || kind.into());
        members.get_or_insert_with("apiVersion", || api_version.into());
    }
}

/// Returns the problem for a text that cannot be decoded, with its location.
pub(crate) fn undecodable(file: &Arc<str>, text: &[u8], start: Start, error: &DecodeError) -> Problem {
    let at = Position::of_error(text, error);
    // The decoder may not know the position; then the problem is about the whole document.
    let position = at.unwrap_or(Position { line: 1, column: 1 });
    let place = Location::in_text(text, start, position);
    let mut problem = Problem::in_file(file, Some(place), error);
    if is_template(text) || line_of(text, at).is_some_and(placeholders::has_unquoted_placeholder) {
        problem = problem.skippable("a template: validate what it is rendered to");
    } else if memchr::memmem::find(text, b"apiVersion").is_none() {
        // Without an `apiVersion`, the file was not meant for a cluster.
        problem = problem.skippable(NOT_AN_OBJECT);
    }
    match hint(text, at) {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

fn line_of(text: &[u8], at: Option<Position>) -> Option<&[u8]> {
    text.split(|b| *b == b'\n').nth(at?.line.saturating_sub(1))
}

/// Returns whether a text looks like a template of Helm or Jinja.
fn is_template(text: &[u8]) -> bool {
    let contains = |mark: &[u8]| memchr::memmem::find(text, mark).is_some();
    contains(b"{{") || contains(b"{%")
}

/// Returns advice for a text that is neither JSON nor YAML.
fn hint(text: &[u8], at: Option<Position>) -> Option<&'static str> {
    let line = line_of(text, at);
    let indent = line.map(|line| line.iter().take_while(|b| b.is_ascii_whitespace()));
    if text.starts_with(b"\x1f\x8b") {
        Some("it is compressed: pipe the output of `gzip -dc` to `-`")
    } else if is_template(text) {
        Some("it looks like a template: use --helm, or pipe the output of `helm template` to `-`")
    } else if text.get(..4).is_some_and(|begin| begin.contains(&0)) {
        Some("it looks like UTF-16 without a byte order mark: pipe the output of `iconv -t UTF-8` to `-`")
    } else if indent.is_some_and(|mut indent| indent.any(|b| *b == b'\t')) {
        Some("the line begins with a tab: YAML indents with spaces only")
    } else {
        None
    }
}
