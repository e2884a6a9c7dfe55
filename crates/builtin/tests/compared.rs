//! Random valid and invalid writes of workloads, policies and configurations, with the answers of kube-apiserver.
//!
//! Each line of `data/compared.jsonl` is a create, an update or an update of the status: the object that was sent, the stored
//! object, and either the causes of the refusal or the object and warnings that were returned.

use scantling_apitypes::{ApiResource, Extensions, TypeTable};
use scantling_builtin::{Context, KindBehavior, Operation, Subresource, User, Write, kind};
use scantling_schema::gates;
use scantling_schema::meta::{self, Scope};
use scantling_value::{Limits, Map, Path, Value, json};

const CASES: &str = include_str!("data/compared.jsonl");
const UID: &str = "11111111-1111-4111-8111-111111111111";
const NAMESPACE: &str = "wl-cmp";

/// Metadata that the server sets, which recordings leave out.
const SYSTEM_METADATA: [&str; 3] = ["uid", "creationTimestamp", "resourceVersion"];

/// The scope of a kind.
fn scope(kind: &KindBehavior) -> Scope {
    let mut resources = TypeTable::latest().resources().iter();
    let resource = resources.find(|r| r.group == kind.facts.group && r.kind() == kind.facts.kind);
    match resource.map(ApiResource::scope) {
        Some(scantling_apitypes::Scope::Cluster) => Scope::Cluster,
        _ => Scope::Namespaced,
    }
}

/// The result of a write, in the format of the recording.
fn answer(case: &Value) -> Result<Map, String> {
    let [group, version, name] = ["group", "version", "kind"].map(|member| case.get_str(member));
    let table = TypeTable::latest();
    let definition = table.kind(group, version, name).ok_or("no type")?;
    let behaviour = kind(group, name).ok_or("no kind")?;
    let context = Context {
        enabled: |gate| gates::is_on_by_default(gate),
        now: "2026-11-18T00:00:00Z",
        user: User::default(),
    };
    let read = |member: &str| -> Result<Option<Map>, String> {
        let Some(value) = case.get(member) else {
            return Ok(None);
        };
        let decoded = table.decode(definition, value.clone(), Extensions::NONE);
        let mut members = decoded.map_err(|e| e.to_string())?.members;
        (behaviour.default)(&mut members, &context);
        let metadata = members.get_or_insert_with("metadata", || Map::new().into());
        let metadata = metadata.as_object_mut().ok_or("no metadata")?;
        metadata.insert("uid", UID.into());
        metadata.insert("creationTimestamp", "2026-11-18T00:00:00Z".into());
        metadata.insert("resourceVersion", "1".into());
        if scope(behaviour) == Scope::Namespaced {
            metadata.insert("namespace", NAMESPACE.into());
        }
        Ok(Some(members))
    };
    let mut object = read("object")?.ok_or("no object")?;
    let old = read("old")?.map(Value::Object);
    let write = Write {
        operation: old.as_ref().map_or(Operation::Create, Operation::Update),
        subresource: match case.get_str("sub") {
            "status" => Subresource::Status,
            _ => Subresource::None,
        },
        context,
    };
    (behaviour.prepare)(&mut object, &write);
    let object = Value::Object(object);
    let at = Path::ROOT.field("metadata");
    let facts = &behaviour.facts;
    let mut errors = match &old {
        None => meta::check_new(object.get("metadata"), scope(behaviour), facts.names, &at),
        Some(old) => meta::check_update(object.get("metadata"), old.get("metadata"), &at),
    };
    (behaviour.validate)(&object, &write, &mut errors);
    let mut causes: Vec<String> = errors.iter().map(ToString::to_string).collect();
    if !causes.is_empty() {
        causes.sort();
        causes.dedup();
        return Ok(Map::from_iter([("causes", causes.into())]));
    }
    let mut warnings = Vec::new();
    (behaviour.warn)(&object, &write, &mut warnings);
    let mut members = table.canonical(definition, object.into_object().unwrap_or_default());
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        SYSTEM_METADATA
            .iter()
            .for_each(|member| drop(metadata.remove(member)));
    }
    Ok(Map::from_iter([
        ("stored", members.into()),
        ("warnings", warnings.into()),
    ]))
}

/// The recorded answer.
fn recorded(case: &Value) -> Map {
    let members = ["causes", "stored", "warnings"].iter();
    let mut answer: Map = members.filter_map(|m| Some((*m, case.get(m)?.clone()))).collect();
    if let Some(causes) = answer.get_mut("causes").and_then(Value::as_array_mut) {
        causes.dedup();
    }
    answer
}

/// An answer as text. An empty list reads as none: the store has no empty lists.
fn text(answer: &Map) -> String {
    Value::Object(answer.clone()).to_json().replace(":[]", ":null")
}

#[test]
fn results_match_kube_apiserver() {
    let mut different = Vec::new();
    let mut total = 0;
    for line in CASES.lines() {
        let case = json::decode(line.as_bytes(), Limits::default()).unwrap();
        total += 1;
        let (wanted, got) = (text(&recorded(&case)), answer(&case).map(|answer| text(&answer)));
        if got.as_ref() != Ok(&wanted) {
            let object = case.get("object").map(Value::to_json).unwrap_or_default();
            different.push(format!(
                "{}\n  sent   {object}\n  wanted {wanted}\n  got    {got:?}",
                case.get_str("kind")
            ));
        }
    }
    assert!(total > 200, "only {total} cases");
    assert!(
        different.is_empty(),
        "{} of {total} differ:\n{}",
        different.len(),
        different.join("\n")
    );
}
