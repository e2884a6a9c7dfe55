//! Kubernetes' own round-trip fixtures: every kind as JSON and as protobuf, with all fields set.

use super::git::Repository;
use scantling_apitypes::{Extensions, TypeTable, protobuf};
use scantling_value::{Limits, Value, json};
use std::collections::BTreeMap;

const FOLDER: &str = "staging/src/k8s.io/api/testdata/HEAD";

/// Decodes and encodes all fixtures; returns their number.
pub(super) fn check(repository: &Repository, commit: &str) -> Result<usize, String> {
    let files = repository.bytes(commit, &[FOLDER], |path| {
        path.ends_with(".json") || path.ends_with(".pb")
    })?;
    // A kind has both files; a missing one stays empty and fails to decode.
    let mut kinds: BTreeMap<&str, (&[u8], &[u8])> = BTreeMap::new();
    for (path, content) in &files {
        if let Some(name) = path.strip_suffix(".json") {
            kinds.entry(name).or_default().0 = content;
        } else if let Some(name) = path.strip_suffix(".pb") {
            kinds.entry(name).or_default().1 = content;
        }
    }
    let mut problems = Vec::new();
    for (name, (text, binary)) in &kinds {
        let name = name.rsplit('/').next().unwrap_or(name);
        if let Err(problem) = round_trip(name, text, binary) {
            problems.push(format!("{name}: {problem}"));
        }
    }
    if problems.is_empty() {
        return Ok(kinds.len());
    }
    Err(format!(
        "{} of {} fixtures do not round-trip:\n{}",
        problems.len(),
        kinds.len(),
        problems.join("\n")
    ))
}

/// `name` is `<group>.<version>.<kind>`.
fn round_trip(name: &str, text: &[u8], binary: &[u8]) -> Result<(), String> {
    let table = TypeTable::latest();
    // The group may contain dots, so the name is split from the right.
    let mut parts = name.rsplitn(3, '.');
    let (kind, version, group) = (parts.next(), parts.next(), parts.next());
    let group = group.filter(|g| *g != "core").unwrap_or_default();
    let definition = table.kind(group, version.unwrap_or_default(), kind.unwrap_or_default());
    let definition = definition.ok_or("the table does not know the kind")?;
    let document = json::decode(text, Limits::SERVER).map_err(|e| e.to_string())?;
    let decoded = table
        .decode(definition, document, Extensions::NONE)
        .map_err(|e| e.to_string())?;
    // Fixtures set every field, so any finding is a field that the table lacks.
    if let Some(finding) = decoded.findings.first() {
        return Err(finding.to_string());
    }
    let object = Value::Object(table.canonical(definition, decoded.members));
    let mut written = Vec::new();
    table.write_json(definition, &object, &mut written);
    same("JSON", &written, &compact(text))?;
    // Watch events have no `apiVersion` and `kind` in either encoding.
    let envelope = protobuf::open(binary)?;
    let mut message = Vec::new();
    table.write_protobuf(definition, object.as_object().ok_or("no object")?, &mut message);
    // Bytes are compared, not values: kube-apiserver's encoding is deterministic.
    if protobuf::wrap(envelope.api_version, envelope.kind, &message) != binary {
        return Err("protobuf differs".to_owned());
    }
    let mut read = table.read_protobuf(definition, envelope.message, Limits::SERVER.depth)?;
    if !envelope.kind.is_empty() {
        read.insert("apiVersion", envelope.api_version.into());
        read.insert("kind", envelope.kind.into());
    }
    let read = Value::Object(table.canonical(definition, read));
    let mut written = Vec::new();
    table.write_json(definition, &read, &mut written);
    same("JSON of protobuf", &written, &compact(text))
}

fn same(what: &str, found: &[u8], expected: &[u8]) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    // The context of the first difference: whole fixtures are too long to read.
    let at = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| {
        let part: Vec<u8> = bytes
            .iter()
            .copied()
            .skip(at.saturating_sub(60))
            .take(120)
            .collect();
        String::from_utf8_lossy(&part).into_owned()
    };
    Err(format!(
        "{what} differs: {} instead of {}",
        around(found),
        around(expected)
    ))
}

/// JSON without the white space between its tokens.
fn compact(text: &[u8]) -> Vec<u8> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if is_quoted {
            is_quoted = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            is_quoted = *byte == b'"';
        }
        out.push(*byte);
    }
    out
}
