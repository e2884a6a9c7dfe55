//! Tables: the columns of built-in kinds and their cells.
//!
//! To write a table of objects of a kind, call [`columns`] with its group, version and kind. [`Columns::definitions`] are
//! the `columnDefinitions`. [`Columns::cells`] are the cells of one object's row, in the same order; columns with priority
//! 1 are always among them. [`Columns::row_conditions`] are the `conditions` of the row. Before the rows of a list are
//! written, [`Columns::arrange`] orders its objects, and [`Columns::default_class`] finds the one that is marked.
//!
//! A kind without columns of its own has the name and the creation time; `columns` covers these kinds, too.

mod apps;
mod autoscaling;
mod batch;
mod cell;
mod core;
mod networking;
mod pod;
mod small;
mod storage;
mod text;

pub use text::selector;

use cell::FieldCell;
use scantling_value::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The type: `string`, `integer`, `boolean` or `date`.
    pub kind: &'static str,
    /// The format: `name`, or empty.
    pub format: &'static str,
    /// 0, or 1 for columns of wide tables.
    pub priority: i64,
    /// The description.
    pub description: String,
}

/// The inputs of cells besides the object.
#[derive(Clone, Copy, Debug)]
pub struct Printing<'a> {
    /// The current time, in seconds since 1970.
    pub now: i64,
    /// The name of the object that is marked as the default in a list; empty elsewhere.
    pub default_class: &'a str,
}

/// Computes the cells of an object's row that do not just show a field, in the order of their columns.
type ComputedCells = fn(&Value, &Printing<'_>) -> Vec<Value>;

/// The computed cells of a kind.
type Printer = (&'static str, &'static str, ComputedCells);

/// The printers of all groups.
const PRINTERS: &[&[Printer]] = &[
    apps::PRINTERS,
    autoscaling::PRINTERS,
    batch::PRINTERS,
    core::PRINTERS,
    networking::PRINTERS,
    small::PRINTERS,
    storage::PRINTERS,
];

/// The description of the column with the name.
pub const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources \
     may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for \
     creation idempotence and configuration definition. Cannot be updated. More info: \
     https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// The description of the column with the creation time.
pub const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is \
     not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is \
     represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The columns of a kind, with the cells that show a field.
#[derive(Default)]
struct KindColumns {
    columns: Vec<Column>,
    cells: Vec<Option<FieldCell>>,
}

type KindName = (&'static str, &'static str);

static DEFINITIONS: LazyLock<BTreeMap<KindName, KindColumns>> =
    LazyLock::new(|| parse(include_str!("columns/definitions.txt")));

fn parse(text: &'static str) -> BTreeMap<KindName, KindColumns> {
    let mut all: BTreeMap<_, KindColumns> = BTreeMap::new();
    let mut kind = ("", "");
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let parts: Vec<&'static str> = line.split('\t').collect();
        if let [name, ty, format, priority, cell, description] = *parts.as_slice() {
            let definitions = all.entry(kind).or_default();
            definitions.cells.push(FieldCell::parse(cell));
            definitions.columns.push(Column {
                name,
                kind: ty,
                format,
                priority: priority.parse().unwrap_or(0),
                description: match description {
                    "@name" => NAME.to_owned(),
                    "@created" => CREATED.to_owned(),
                    text => text.replace("\\n", "\n"),
                },
            });
        } else if let Some((group, name)) = line.split_once(' ') {
            kind = (if group == "core" { "" } else { group }, name);
        }
    }
    all
}

/// The columns of a kind.
#[derive(Clone, Copy)]
pub struct Columns {
    definitions: &'static [Column],
    cells: &'static [Option<FieldCell>],
    computed: ComputedCells,
    conditions: fn(&Value) -> Vec<Value>,
    to_hub: Option<fn(&mut Map)>,
    hidden_annotations: &'static [&'static str],
    arrange: fn(&mut [Value]),
    default_class: fn(&[Value]) -> &str,
}

impl std::fmt::Debug for Columns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.definitions.fmt(f)
    }
}

/// The columns of a kind in a version of a group (empty for the core group).
pub fn columns(group: &str, version: &str, kind: &str) -> Columns {
    let find = |name: (&str, &str)| DEFINITIONS.iter().find(|(known, _)| **known == name);
    // Kinds without columns of their own have the table that kube-apiserver uses for all objects.
    let definitions = find((group, kind)).or_else(|| find(("*", "*")));
    let (definitions, cells) = definitions.map_or((&[][..], &[][..]), |(_, d)| (&d.columns, &d.cells));
    let mut printers = PRINTERS.iter().copied().flatten();
    let printer = printers.find(|(g, k, _)| *g == group && *k == kind);
    let conditions = match (group, kind) {
        ("", "Pod") => pod::row_conditions,
        _ => |_: &Value| Vec::new(),
    };
    let mut columns = Columns {
        definitions,
        cells,
        computed: printer.map_or(|_, _| Vec::new(), |(_, _, computed)| *computed),
        conditions,
        to_hub: None,
        hidden_annotations: &[],
        arrange: |_| {},
        default_class: |_| "",
    };
    match (group, version, kind) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => {
            columns.to_hub = Some(crate::autoscaler_from_v1);
            columns.hidden_annotations = &crate::autoscaling::ANNOTATIONS;
        }
        ("apps", _, "DaemonSet") => columns.hidden_annotations = &[crate::apps::TEMPLATE_GENERATION],
        ("events.k8s.io", _, "Event") => columns.to_hub = Some(crate::core::event::rename_to_hub),
        ("flowcontrol.apiserver.k8s.io", _, "FlowSchema") => columns.arrange = small::by_precedence,
        ("storage.k8s.io", _, "StorageClass") => columns.default_class = storage::default_storage_class,
        _ => {}
    }
    columns
}

impl Columns {
    /// The definitions of the columns.
    pub fn definitions(&self) -> &'static [Column] {
        self.definitions
    }

    /// The cells of an object's row.
    pub fn cells(&self, object: &Value, printing: &Printing<'_>) -> Vec<Value> {
        match (self.to_hub, object.as_object()) {
            // kube-apiserver prints the internal type, which has the form of the hub version.
            (Some(to_hub), Some(members)) => {
                let mut members = members.clone();
                to_hub(&mut members);
                self.hub_cells(&members.into(), printing)
            }
            _ => self.hub_cells(object, printing),
        }
    }

    fn hub_cells(&self, object: &Value, printing: &Printing<'_>) -> Vec<Value> {
        let mut computed = (self.computed)(object, printing).into_iter();
        let cell = |cell: &Option<FieldCell>| match cell {
            Some(field) => Some(field.render(object, printing)),
            None => computed.next(),
        };
        let mut cells: Vec<Value> = self.cells.iter().filter_map(cell).collect();
        // kube-apiserver writes the age of an IP address, but defines no column for it.
        cells.extend(computed);
        cells
    }

    /// The annotations that the internal type of the kind holds in fields, so that rows and partial objects lack them.
    pub fn hidden_annotations(&self) -> &'static [&'static str] {
        self.hidden_annotations
    }

    /// Puts the objects of a list into the order of its table.
    pub fn arrange(&self, objects: &mut [Value]) {
        (self.arrange)(objects);
    }

    /// The name of the object of a list that its table marks as the default; empty if there is none.
    pub fn default_class<'a>(&self, objects: &'a [Value]) -> &'a str {
        (self.default_class)(objects)
    }

    /// The conditions of an object's row.
    pub fn row_conditions(&self, object: &Value) -> Vec<Value> {
        (self.conditions)(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_value::{Limits, json};

    #[test]
    fn printers_compute_the_cells_that_show_no_field() {
        let computed = DEFINITIONS
            .iter()
            .filter(|(_, d)| d.cells.iter().any(Option::is_none));
        let computed: Vec<KindName> = computed.map(|(kind, _)| *kind).collect();
        let mut printed: Vec<KindName> = PRINTERS.iter().copied().flatten().map(|p| (p.0, p.1)).collect();
        printed.sort_unstable();
        assert_eq!(computed, printed);
        let text = include_str!("columns/definitions.txt");
        let cells = text.lines().filter_map(|line| line.split('\t').nth(4));
        for cell in cells.filter(|cell| *cell != "-") {
            assert!(FieldCell::parse(cell).is_some(), "{cell}");
        }
    }

    #[test]
    fn empty_objects_have_all_cells() {
        let printing = Printing {
            now: 0,
            default_class: "",
        };
        for (group, kind) in DEFINITIONS.keys() {
            let columns = columns(group, "v1", kind);
            let cells = columns.cells(&Value::Null, &printing);
            // kube-apiserver writes the age of an IP address, but defines no column for it.
            let extra = usize::from(*kind == "IPAddress");
            assert_eq!(cells.len(), columns.definitions().len() + extra, "{group} {kind}");
        }
    }
    const EVENT: (&str, &str) = ("", "Event");

    fn row((group, kind): (&str, &str), object: &str) -> String {
        let object = json::decode(object.as_bytes(), Limits::SAFE).unwrap();
        let printing = Printing {
            now: 1_700_000_100,
            default_class: "",
        };
        Value::Array(columns(group, "v1", kind).cells(&object, &printing)).to_json()
    }

    #[test]
    fn events_of_both_apis() {
        let old = r#"{"metadata":{"name":"e"},"type":"Warning","reason":"Sunk","message":" it sank \n","count":3,
            "involvedObject":{"kind":"Ship","name":"a","fieldPath":"spec.hull"},"source":{"component":"tide","host":"h"},
            "firstTimestamp":"2023-11-14T22:13:20Z","lastTimestamp":"2023-11-14T22:14:20Z"}"#;
        assert_eq!(
            row(EVENT, old),
            r#"["40s","Warning","Sunk","ship/a","spec.hull","tide, h","it sank","100s",3,"e"]"#
        );
        let new = r#"{"metadata":{"name":"e"},"involvedObject":{"kind":"Ship"},"reportingComponent":"tide",
            "eventTime":"2023-11-14T22:13:20.000000Z"}"#;
        assert_eq!(
            row(EVENT, new),
            r#"["100s","","","ship","","tide","","100s",1,"e"]"#
        );
        let series = r#"{"metadata":{"name":"e"},"involvedObject":{"kind":"Ship"},"reportingInstance":"i",
            "series":{"count":9,"lastObservedTime":"2023-11-14T22:14:50.5Z"}}"#;
        assert_eq!(
            row(EVENT, series),
            r#"["10s","","","ship","",", i","","\u003cunknown\u003e",9,"e"]"#
        );
    }

    #[test]
    fn events_of_both_groups_print_the_same() {
        let core = r#"{"metadata":{"name":"e"},"message":"m","count":3,"involvedObject":{"kind":"Ship","name":"a"},
            "source":{"component":"tide","host":"h"},"firstTimestamp":"2023-11-14T22:13:20Z"}"#;
        let own = r#"{"metadata":{"name":"e"},"note":"m","deprecatedCount":3,"regarding":{"kind":"Ship","name":"a"},
            "deprecatedSource":{"component":"tide","host":"h"},"deprecatedFirstTimestamp":"2023-11-14T22:13:20Z"}"#;
        assert_eq!(row(EVENT, core), row(("events.k8s.io", "Event"), own));
        assert_eq!(
            row(("events.k8s.io", "Event"), own),
            r#"["100s","","","ship/a","","tide, h","m","100s",3,"e"]"#
        );
    }

    #[test]
    fn tables_of_small_kinds() {
        let namespace = r#"{"metadata":{"name":"n","creationTimestamp":"2023-11-14T22:13:20Z"},"status":{"phase":"Active"}}"#;
        assert_eq!(row(("", "Namespace"), namespace), r#"["n","Active","100s"]"#);
        let config_map = r#"{"metadata":{"name":"c","creationTimestamp":"2023-11-14T22:13:20Z"},"data":{"a":"","b":"1"},
            "binaryData":{"c":"YQ=="}}"#;
        assert_eq!(row(("", "ConfigMap"), config_map), r#"["c",3,"100s"]"#);
        let secret = r#"{"metadata":{"name":"s","creationTimestamp":"2023-11-14T22:13:20Z"},"data":{"a":"YQ=="},"type":"Opaque"}"#;
        assert_eq!(row(("", "Secret"), secret), r#"["s","Opaque",1,"100s"]"#);
        let lease = r#"{"metadata":{"name":"l","creationTimestamp":"2023-11-14T22:13:20Z"},"spec":{"holderIdentity":"a"}}"#;
        assert_eq!(
            row(("coordination.k8s.io", "Lease"), lease),
            r#"["l","a","100s"]"#
        );
        let definition = r#"{"metadata":{"name":"n","creationTimestamp":"2023-11-14T22:13:20Z"},"spec":{"scope":"Cluster",
            "group":"g","names":{"kind":"K","shortNames":["a","b"]},"versions":[{"name":"v2","served":true},
            {"name":"v1","served":true,"storage":true},{"name":"v0","served":false}]},
            "status":{"conditions":[{"type":"Established","status":"True"}]}}"#;
        assert_eq!(
            row(("apiextensions.k8s.io", "CustomResourceDefinition"), definition),
            r#"["n","Cluster","v1(storage),v2","2023-11-14T22:13:20Z","g","K","a,b",true]"#
        );
    }
}
