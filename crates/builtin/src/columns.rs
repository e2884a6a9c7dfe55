//! Tables: the columns of built-in kinds and their cells.
//!
//! To write a table of objects of a kind, call [`columns`] with its group, version and kind. [`Columns::definitions`] are
//! the `columnDefinitions`. [`Columns::cells`] are the cells of one object's row, in the same order; columns with priority
//! 1 are always among them. [`Columns::row_conditions`] are the `conditions` of the row. Before the rows of a list are
//! written, [`Columns::arrange`] orders its objects, and [`Columns::default_class`] finds the one that is marked.
//!
//! A kind without columns of its own has the name and the creation time; `columns` covers these kinds, too.

mod admissionregistration;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod core;
mod flowcontrol;
mod networking;
mod pod;
mod rbac;
mod small;
mod storage;
mod text;

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

/// The cells of an object's row.
type Cells = fn(&Value, &Printing<'_>) -> Vec<Value>;

/// The cells of a kind.
type Printer = (&'static str, &'static str, Cells);

/// The printers of all groups.
const PRINTERS: &[&[Printer]] = &[
    admissionregistration::PRINTERS,
    apps::PRINTERS,
    autoscaling::PRINTERS,
    batch::PRINTERS,
    certificates::PRINTERS,
    core::PRINTERS,
    flowcontrol::PRINTERS,
    networking::PRINTERS,
    rbac::PRINTERS,
    small::PRINTERS,
    storage::PRINTERS,
];

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources \
     may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for \
     creation idempotence and configuration definition. Cannot be updated. More info: \
     https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is \
     not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is \
     represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

static DEFINITIONS: LazyLock<BTreeMap<(&str, &str), Vec<Column>>> =
    LazyLock::new(|| parse(include_str!("columns/definitions.txt")));

static DEFAULT: LazyLock<Vec<Column>> = LazyLock::new(|| {
    vec![
        column("Name", "string", "name", "0", "@name"),
        column("Created At", "date", "", "0", "@created"),
    ]
});

fn column(
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: &str,
    description: &str,
) -> Column {
    let description = match description {
        "@name" => NAME.to_owned(),
        "@created" => CREATED.to_owned(),
        text => text.replace("\\n", "\n"),
    };
    Column {
        name,
        kind,
        format,
        priority: priority.parse().unwrap_or(0),
        description,
    }
}

fn parse(text: &'static str) -> BTreeMap<(&'static str, &'static str), Vec<Column>> {
    let mut definitions: BTreeMap<_, Vec<Column>> = BTreeMap::new();
    let mut kind = ("", "");
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let parts: Vec<&'static str> = line.split('\t').collect();
        if let [name, ty, format, priority, description] = parts.as_slice() {
            let columns = definitions.entry(kind).or_default();
            columns.push(column(name, ty, format, priority, description));
        } else if let Some((group, name)) = line.split_once(' ') {
            kind = (if group == "core" { "" } else { group }, name);
        }
    }
    definitions
}

/// The columns of a kind.
#[derive(Clone, Copy)]
pub struct Columns {
    definitions: &'static [Column],
    cells: Cells,
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
    let mut definitions = DEFINITIONS.iter();
    let definitions = definitions
        .find(|((g, k), _)| *g == group && *k == kind)
        .map(|(_, columns)| columns);
    let printers = PRINTERS.iter().copied().flatten();
    let printer = printers
        .filter(|(g, k, _)| *g == group && *k == kind)
        .map(|(_, _, cells)| *cells)
        .next();
    let conditions = match (group, kind) {
        ("", "Pod") => pod::row_conditions,
        _ => |_: &Value| Vec::new(),
    };
    let default_cells: Cells = |object, _| {
        let created = object.str_at(["metadata", "creationTimestamp"]);
        vec![text::name(object), created.into()]
    };
    let (definitions, cells) = match definitions.zip(printer) {
        Some((definitions, cells)) => (definitions, cells),
        // A kind without a printer has the table that kube-apiserver uses for all objects.
        None => (&*DEFAULT, default_cells),
    };
    let mut columns = Columns {
        definitions,
        cells,
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
        ("flowcontrol.apiserver.k8s.io", _, "FlowSchema") => columns.arrange = flowcontrol::by_precedence,
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
            // kube-apiserver prints the internal type, which has the form of v2.
            (Some(to_hub), Some(members)) => {
                let mut members = members.clone();
                to_hub(&mut members);
                (self.cells)(&members.into(), printing)
            }
            _ => (self.cells)(object, printing),
        }
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

    #[test]
    fn every_definition_has_a_printer_and_every_printer_a_definition() {
        let defined: Vec<(&str, &str)> = DEFINITIONS.keys().copied().collect();
        let mut printed: Vec<(&str, &str)> = PRINTERS.iter().copied().flatten().map(|p| (p.0, p.1)).collect();
        printed.sort_unstable();
        assert_eq!(defined, printed);
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
}
