//! The tables of built-in kinds. Their cells are computed, not selected by a path.

use super::{CREATED, Cell, Column, Columns, NAME, age};
use crate::rest::write::metadata_str;
use scantling_builtin::event_field;
use scantling_notation::timestamp;
use scantling_value::Value;

fn column(name: &str, description: &str) -> Column {
    Column {
        name: name.to_owned(),
        kind: "string".to_owned(),
        format: if name == "Name" { "name" } else { "" }.to_owned(),
        description: description.to_owned(),
        priority: 0,
        path: String::new(),
    }
}

fn wide(name: &str, description: &str) -> Column {
    Column {
        priority: 1,
        ..column(name, description)
    }
}

fn name(object: &Value, _now: i64) -> Value {
    metadata_str(object, "name").into()
}

/// The table of CRDs.
pub(crate) fn definitions() -> Columns {
    let created = Column {
        kind: "date".to_owned(),
        ..column("Created At", CREATED)
    };
    let established = Column {
        kind: "boolean".to_owned(),
        ..wide("Established", "Established status")
    };
    Columns::made([
        (column("Name", NAME), Cell::Made(name)),
        (
            column("Scope", "Cluster/Namespaced"),
            Cell::Made(|d, _| at(d, &["spec", "scope"]).into()),
        ),
        (column("Versions", "Served versions"), Cell::Made(served_versions)),
        (
            created,
            Cell::Made(|d, _| metadata_str(d, "creationTimestamp").into()),
        ),
        (
            wide("Group", "API group"),
            Cell::Made(|d, _| at(d, &["spec", "group"]).into()),
        ),
        (
            wide("Kind", "CustomResource kind"),
            Cell::Made(|d, _| at(d, &["spec", "names", "kind"]).into()),
        ),
        (wide("ShortNames", "Short names"), Cell::Made(short_names)),
        (established, Cell::Made(is_established)),
    ])
}

/// The elements of a list in an object; empty if it does not exist.
fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.list_at(path.iter().copied())
}

fn served_versions(definition: &Value, _now: i64) -> Value {
    let is = |version: &Value, flag| version.get(flag).and_then(Value::as_bool) == Some(true);
    let served = list(definition, &["spec", "versions"])
        .iter()
        .filter(|v| is(v, "served"));
    let mut labels: Vec<String> = served
        .map(|v| {
            format!(
                "{}{}",
                at(v, &["name"]),
                if is(v, "storage") { "(storage)" } else { "" }
            )
        })
        .collect();
    labels.sort_unstable();
    labels.join(",").into()
}

fn short_names(definition: &Value, _now: i64) -> Value {
    let names = list(definition, &["spec", "names", "shortNames"]);
    let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
    names.join(",").into()
}

fn is_established(definition: &Value, _now: i64) -> Value {
    let is = |c: &Value| at(c, &["type"]) == "Established" && at(c, &["status"]) == "True";
    list(definition, &["status", "conditions"]).iter().any(is).into()
}

/// The table of events: time, type, reason, object and message.
pub(crate) fn events() -> Columns {
    const FIELD_PATH: &str = "If referring to a piece of an object instead of an entire object, this string should \
         contain a valid JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if \
         the object reference is to a container within a pod, this would take on a value like: \
         \"spec.containers{name}\" (where \"name\" refers to the name of the container that triggered the event) or if \
         no container name is specified \"spec.containers[2]\" (container with index 2 in this pod). This syntax is \
         chosen only to have some well-defined way of referencing a part of an object.";
    const REASON: &str = "This should be a short, machine understandable string that gives the reason for the \
         transition into the object's current status.";
    const LAST: &str = "The time at which the most recent occurrence of this event was recorded.";
    const FIRST: &str =
        "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)";
    const KIND: &str = "Type of this event (Normal, Warning), new types could be added in the future";
    const SOURCE: &str =
        "The component reporting this event. Should be a short machine understandable string.";
    Columns::made([
        (column("Last Seen", LAST), Cell::Made(last_seen)),
        (column("Type", KIND), Cell::Made(|e, _| at(e, &["type"]).into())),
        (
            column("Reason", REASON),
            Cell::Made(|e, _| at(e, &["reason"]).into()),
        ),
        (
            column("Object", "The object that this event is about."),
            Cell::Made(involved),
        ),
        (
            wide("Subobject", FIELD_PATH),
            Cell::Made(|e, _| part_str(e, "involvedObject", "fieldPath").into()),
        ),
        (wide("Source", SOURCE), Cell::Made(source)),
        (
            column(
                "Message",
                "A human-readable description of the status of this operation.",
            ),
            Cell::Made(|e, _| event_str(e, "message").trim().into()),
        ),
        (
            wide("First Seen", FIRST),
            Cell::Made(|e, now| first_seen(e, now).into()),
        ),
        (
            wide("Count", "The number of times this event has occurred."),
            Cell::Made(count),
        ),
        (wide("Name", NAME), Cell::Made(name)),
    ])
}

fn at<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.str_at(path.iter().copied())
}

/// A string of an event of either group, by its name in the core group.
fn event_str<'a>(event: &'a Value, name: &str) -> &'a str {
    event_field(event, name).and_then(Value::as_str).unwrap_or("")
}

/// A string in a part of an event of either group.
fn part_str<'a>(event: &'a Value, part: &str, name: &str) -> &'a str {
    event_field(event, part).map_or("", |part| at(part, &[name]))
}

/// The age of a time.
fn since(time: &str, now: i64) -> String {
    let age = timestamp::parse(time).map(|time| age(time, now));
    age.unwrap_or_else(|| "<unknown>".to_owned())
}

fn first_seen(event: &Value, now: i64) -> String {
    let first = match event_str(event, "firstTimestamp") {
        "" => at(event, &["eventTime"]),
        first => first,
    };
    since(first, now)
}

fn last_seen(event: &Value, now: i64) -> Value {
    let last = event_str(event, "lastTimestamp");
    if event.get("series").is_some() {
        since(at(event, &["series", "lastObservedTime"]), now).into()
    } else if last.is_empty() {
        first_seen(event, now).into()
    } else {
        since(last, now).into()
    }
}

fn count(event: &Value, _now: i64) -> Value {
    let count = match event.get("series") {
        Some(series) => series.get("count").and_then(Value::as_int).unwrap_or(0),
        // An event without a series may have no count.
        None => event_field(event, "count")
            .and_then(Value::as_int)
            .filter(|c| *c != 0)
            .unwrap_or(1),
    };
    Value::Int(count)
}

fn involved(event: &Value, _now: i64) -> Value {
    let kind = part_str(event, "involvedObject", "kind").to_lowercase();
    match part_str(event, "involvedObject", "name") {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

fn source(event: &Value, _now: i64) -> Value {
    let first = |of_source: &str, reported: &str| match part_str(event, "source", of_source) {
        "" => event_str(event, reported).to_owned(),
        text => text.to_owned(),
    };
    let component = first("component", "reportingComponent");
    let instance = first("host", "reportingInstance");
    match instance.as_str() {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Room;
    use scantling_builtin::columns::Printing;
    use scantling_value::{Limits, json};

    fn row(columns: &Columns, object: &str) -> String {
        let object = json::decode(object.as_bytes(), Limits::SAFE).unwrap();
        let printing = Printing {
            now: 1_700_000_100,
            default_class: "",
        };
        let cells = columns.cells(&object, &printing, &mut Room::default());
        cells.unwrap().to_json()
    }

    #[test]
    fn events_of_both_apis() {
        let old = r#"{"metadata":{"name":"e"},"type":"Warning","reason":"Sunk","message":" it sank \n","count":3,
            "involvedObject":{"kind":"Ship","name":"a","fieldPath":"spec.hull"},"source":{"component":"tide","host":"h"},
            "firstTimestamp":"2023-11-14T22:13:20Z","lastTimestamp":"2023-11-14T22:14:20Z"}"#;
        assert_eq!(
            row(&events(), old),
            r#"["40s","Warning","Sunk","ship/a","spec.hull","tide, h","it sank","100s",3,"e"]"#
        );
        let new = r#"{"metadata":{"name":"e"},"involvedObject":{"kind":"Ship"},"reportingComponent":"tide",
            "eventTime":"2023-11-14T22:13:20.000000Z"}"#;
        assert_eq!(
            row(&events(), new),
            r#"["100s","","","ship","","tide","","100s",1,"e"]"#
        );
        let series = r#"{"metadata":{"name":"e"},"involvedObject":{"kind":"Ship"},"reportingInstance":"i",
            "series":{"count":9,"lastObservedTime":"2023-11-14T22:14:50.5Z"}}"#;
        assert_eq!(
            row(&events(), series),
            r#"["10s","","","ship","",", i","","\u003cunknown\u003e",9,"e"]"#
        );
    }

    #[test]
    fn events_of_both_groups_print_the_same() {
        let core = r#"{"metadata":{"name":"e"},"message":"m","count":3,"involvedObject":{"kind":"Ship","name":"a"},
            "source":{"component":"tide","host":"h"},"firstTimestamp":"2023-11-14T22:13:20Z"}"#;
        let own = r#"{"metadata":{"name":"e"},"note":"m","deprecatedCount":3,"regarding":{"kind":"Ship","name":"a"},
            "deprecatedSource":{"component":"tide","host":"h"},"deprecatedFirstTimestamp":"2023-11-14T22:13:20Z"}"#;
        assert_eq!(row(&events(), core), row(&events(), own));
        assert_eq!(
            row(&events(), own),
            r#"["100s","","","ship/a","","tide, h","m","100s",3,"e"]"#
        );
    }

    #[test]
    fn tables_of_small_kinds() {
        let namespace = r#"{"metadata":{"name":"n","creationTimestamp":"2023-11-14T22:13:20Z"},"status":{"phase":"Active"}}"#;
        assert_eq!(
            row(&Columns::builtin("", "v1", "Namespace"), namespace),
            r#"["n","Active","100s"]"#
        );
        let config_map = r#"{"metadata":{"name":"c","creationTimestamp":"2023-11-14T22:13:20Z"},"data":{"a":"","b":"1"},
            "binaryData":{"c":"YQ=="}}"#;
        assert_eq!(
            row(&Columns::builtin("", "v1", "ConfigMap"), config_map),
            r#"["c",3,"100s"]"#
        );
        let secret = r#"{"metadata":{"name":"s","creationTimestamp":"2023-11-14T22:13:20Z"},"data":{"a":"YQ=="},"type":"Opaque"}"#;
        assert_eq!(
            row(&Columns::builtin("", "v1", "Secret"), secret),
            r#"["s","Opaque",1,"100s"]"#
        );
        let lease = r#"{"metadata":{"name":"l","creationTimestamp":"2023-11-14T22:13:20Z"},"spec":{"holderIdentity":"a"}}"#;
        assert_eq!(
            row(&Columns::builtin("coordination.k8s.io", "v1", "Lease"), lease),
            r#"["l","a","100s"]"#
        );
        let definition = r#"{"metadata":{"name":"n","creationTimestamp":"2023-11-14T22:13:20Z"},"spec":{"scope":"Cluster",
            "group":"g","names":{"kind":"K","shortNames":["a","b"]},"versions":[{"name":"v2","served":true},
            {"name":"v1","served":true,"storage":true},{"name":"v0","served":false}]},
            "status":{"conditions":[{"type":"Established","status":"True"}]}}"#;
        assert_eq!(
            row(&definitions(), definition),
            r#"["n","Cluster","v1(storage),v2","2023-11-14T22:13:20Z","g","K","a,b",true]"#
        );
    }
}
