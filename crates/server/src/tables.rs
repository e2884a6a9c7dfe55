//! Tables: what `kubectl get` prints.

mod jsonpath;

use crate::status::{ApiError, ApiResult};
use crate::tables::jsonpath::JsonPath;
use scantling_builtin::columns::{CREATED, NAME, Printing};
use scantling_notation::{duration, timestamp};
use scantling_value::{Map, Value, deadline};

/// A column that a definition declares.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) path: String,
}

/// The columns of a kind, ready to fill.
#[derive(Debug)]
pub(crate) struct Columns {
    definitions: Vec<Value>,
    /// The types and paths of declared columns, which follow the name.
    paths: Vec<(String, JsonPath)>,
    /// The columns of a built-in kind, which make all cells at once.
    printer: Option<scantling_builtin::columns::Columns>,
}

impl Column {
    /// The column of a kind that declares none.
    pub(crate) fn age() -> Column {
        Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: CREATED.to_owned(),
            priority: 0,
            path: ".metadata.creationTimestamp".to_owned(),
        }
    }
}

/// How much more a table may hold: a column may show all of an object, and there may be thousands of columns.
#[derive(Debug)]
pub(crate) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Room(Room::MOST)
    }
}

impl Room {
    /// The most bytes of all cells of a table.
    const MOST: usize = 64 << 20;

    fn take(&mut self, cell: &Value) -> ApiResult<()> {
        deadline::tick();
        let size = size_of::<Value>() + cell.as_str().map_or(0, str::len);
        self.0 = self.0.checked_sub(size).ok_or_else(|| {
            ApiError::too_large(format!(
                "the table is too large: its cells have more than {} bytes. Ask for fewer objects with the parameter limit, \
                 or for the objects themselves",
                Room::MOST
            ))
        })?;
        Ok(())
    }
}

impl Columns {
    /// The name, and the declared columns or else the age. A column whose path does not parse is the end of them.
    pub(crate) fn new(declared: &[Column]) -> Columns {
        let default = [Column::age()];
        let declared = if declared.is_empty() { &default } else { declared };
        let name = Column {
            name: "Name".to_owned(),
            kind: "string".to_owned(),
            format: "name".to_owned(),
            description: NAME.to_owned(),
            priority: 0,
            path: String::new(),
        };
        let mut definitions = vec![definition(&name)];
        let mut paths = Vec::new();
        for column in declared {
            // kube-apiserver logs the error and keeps the columns that it has so far.
            let Ok(path) = JsonPath::parse(&column.path) else {
                break;
            };
            definitions.push(definition(column));
            paths.push((column.kind.clone(), path));
        }
        Columns {
            definitions,
            paths,
            printer: None,
        }
    }

    /// The columns of a built-in kind.
    pub(crate) fn builtin(group: &str, version: &str, kind: &str) -> Columns {
        let printer = scantling_builtin::columns::columns(group, version, kind);
        let declared = printer.definitions().iter().map(|c| Column {
            name: c.name.to_owned(),
            kind: c.kind.to_owned(),
            format: c.format.to_owned(),
            description: c.description.clone(),
            priority: c.priority,
            path: String::new(),
        });
        Columns {
            definitions: declared.map(|c| definition(&c)).collect(),
            paths: Vec::new(),
            printer: Some(printer),
        }
    }

    /// Returns whether a table without rows has none at all instead of an empty list: so have kinds without columns of their own.
    pub(crate) fn has_null_rows(&self) -> bool {
        let is_default = |p: &scantling_builtin::columns::Columns| {
            let names = p.definitions().iter().map(|c| c.name);
            names.eq(["Name", "Created At"])
        };
        self.printer.as_ref().is_some_and(is_default)
    }

    /// The `conditions` of an object's row.
    pub(crate) fn row_conditions(&self, object: &Value) -> Vec<Value> {
        let printer = self.printer.as_ref();
        printer.map_or_else(Vec::new, |printer| printer.row_conditions(object))
    }

    /// The `columnDefinitions` of a table.
    pub(crate) fn definitions(&self) -> Value {
        Value::Array(self.definitions.clone())
    }

    /// The columns of a built-in kind, which know what its tables need besides cells.
    pub(crate) fn printer(&self) -> Option<&scantling_builtin::columns::Columns> {
        self.printer.as_ref()
    }

    /// The cells of one object's row; times are in seconds since the epoch.
    pub(crate) fn cells(&self, object: &Value, printing: &Printing<'_>, room: &mut Room) -> ApiResult<Value> {
        let fits = |cell: Value| room.take(&cell).map(|()| cell);
        let cells: ApiResult<Vec<Value>> = match &self.printer {
            Some(printer) => printer.cells(object, printing).into_iter().map(fits).collect(),
            None => {
                let name = crate::rest::write::metadata_str(object, "name").into();
                let declared = self.paths.iter().map(|(kind, path)| {
                    // A server leaves the cell empty where the path fails on the object.
                    let found = path.find(object).unwrap_or_default();
                    // A column shows one value: of several, the first.
                    found.first().map_or(Value::Null, |v| cell(kind, v, printing.now))
                });
                std::iter::once(name).chain(declared).map(fits).collect()
            }
        };
        Ok(Value::Array(cells?))
    }
}

fn definition(c: &Column) -> Value {
    let description = if c.description.is_empty() && !c.path.is_empty() {
        format!(
            "Custom resource definition column (in JSONPath format): {}",
            c.path
        )
    } else {
        c.description.clone()
    };
    let entries = [
        ("name", Value::from(c.name.as_str())),
        ("type", c.kind.as_str().into()),
        ("format", c.format.as_str().into()),
        ("description", description.into()),
        ("priority", c.priority.into()),
    ];
    Map::from_iter(entries).into()
}

fn cell(kind: &str, value: &Value, now: i64) -> Value {
    match (kind, value) {
        ("string", Value::String(s)) => Value::String(s.clone()),
        // Go's text templates print a nil like this.
        ("string", Value::Null) => Value::from("<no value>"),
        ("string", Value::Float(f)) => Value::from(scantling_value::go::float_v(*f)),
        ("string", other) => Value::from(other.to_json()),
        ("integer", Value::Int(i)) => Value::Int(*i),
        ("integer", Value::Float(f)) => Value::Int(scantling_value::go::cut(*f)),
        #[expect(
            clippy::cast_precision_loss,
            reason = "a double is what the column's type asks for"
        )]
        ("number", Value::Int(i)) => Value::Float(*i as f64),
        ("number", Value::Float(f)) => Value::Float(*f),
        ("boolean", Value::Bool(b)) => Value::Bool(*b),
        ("date", Value::String(s)) if s.is_empty() => Value::from("<unknown>"),
        ("date", Value::String(s)) => {
            let age = timestamp::parse(s).map(|time| duration::age(time, now));
            Value::from(age.unwrap_or_else(|| "<invalid>".to_owned()))
        }
        // A value of another type than the column leaves the cell empty.
        _ => Value::Null,
    }
}
