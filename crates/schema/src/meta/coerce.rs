//! Brings `metadata` into the form of its type: unknown fields go, empty ones go, times are in UTC.
//!
//! The texts of errors are those of Go's JSON decoder, names of Go types included.

use scantling_apitypes::{Codec, FieldDef, GoType, Presence, TypeDef, TypeTable};
use scantling_notation::timestamp::{self, Moment};
use scantling_value::{Finding, FindingList, Map, Path, Segment, Value, go, same_text};
use std::sync::LazyLock;

/// How `metadata` is brought into form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedFields {
    /// A field of the wrong type is an error.
    Refuse,
    /// Fields of the wrong type are dropped: objects of the store are read so.
    Drop,
    /// Fields of the wrong type stay, to be judged with the rest: an apply leaves metadata as they were sent.
    Keep,
}

/// A type of the fields of `metadata`.
enum MetaFieldType {
    /// A string, and the name of its Go type.
    Text(String),
    Integer,
    /// An integer of which 0 is not the same as none.
    OptionalInteger,
    /// A boolean of which `false` is not the same as none.
    OptionalBoolean,
    Time,
    TextMap,
    TextList,
    /// A list of structures.
    Structs(MetaStruct),
    /// Any JSON but `null`.
    Raw,
}

/// A structure: its fields, ascending by name.
struct MetaStruct {
    name: &'static str,
    fields: Vec<(&'static str, MetaFieldType, Empty)>,
}

/// What becomes of an empty field.
#[derive(Clone, Copy, PartialEq)]
enum Empty {
    Omit,
    Keep,
}

static OBJECT_META: LazyLock<MetaStruct> = LazyLock::new(|| {
    let table = TypeTable::latest();
    MetaStruct::new(table, table.known("meta/v1", "ObjectMeta"))
});

impl MetaStruct {
    fn new(table: &'static TypeTable, definition: &'static TypeDef) -> MetaStruct {
        let field = |field: &'static FieldDef| {
            let empty = match field.presence {
                Presence::Required => Empty::Keep,
                Presence::OmitEmpty | Presence::Pointer => Empty::Omit,
            };
            (field.name, MetaFieldType::new(table, &field.ty), empty)
        };
        let mut fields: Vec<_> = definition.members().iter().map(field).collect();
        fields.sort_unstable_by_key(|(name, ..)| *name);
        MetaStruct {
            name: definition.name,
            fields,
        }
    }
}

impl MetaFieldType {
    fn new(table: &'static TypeTable, ty: &'static GoType) -> MetaFieldType {
        let is_pointer = matches!(ty, GoType::Pointer(_));
        match (table.codec_of(ty), table.underlying(ty)) {
            (Some(Codec::Time), _) => MetaFieldType::Time,
            (_, GoType::String) => MetaFieldType::Text(table.go_type(ty)),
            (_, GoType::Int64) if is_pointer => MetaFieldType::OptionalInteger,
            (_, GoType::Int64) => MetaFieldType::Integer,
            (_, GoType::Bool) => MetaFieldType::OptionalBoolean,
            (_, GoType::Map(_)) => MetaFieldType::TextMap,
            (_, GoType::List(element)) => match element.as_ref() {
                GoType::Named(id) => MetaFieldType::Structs(MetaStruct::new(table, table.get(*id))),
                _ => MetaFieldType::TextList,
            },
            _ => MetaFieldType::Raw,
        }
    }
}

/// Brings the `metadata` of an object into form. Absent metadata stays absent. Returns the unknown fields that were
/// dropped, in order.
pub fn coerce(object: &mut Map, at: &Path<'_>, malformed: MalformedFields) -> Result<FindingList, String> {
    let Some(metadata) = object.get_mut("metadata") else {
        return Ok(FindingList::new());
    };
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let at = at.field("metadata");
    let mut coercer = Coercer {
        malformed,
        unknown: FindingList::new(),
        metadata: &at,
    };
    let Value::Object(fields) = metadata else {
        if malformed != MalformedFields::Refuse {
            return Err(format!(
                "invalid metadata: expected object, got {}",
                go::value_type(metadata)
            ));
        }
        return Err(format!(
            "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
            go::json_kind(metadata)
        ));
    };
    let coerced = coercer.fields(&OBJECT_META, fields, &at);
    coerced.map_err(|mismatch| mismatch.why)?;
    Ok(coercer.unknown)
}

/// Why metadata that an apply left as they were sent cannot be read. Of other fields, their types or what was stored
/// before say what they have to be.
pub(super) fn unreadable(metadata: &Value) -> Option<String> {
    let time = match metadata.get("deletionTimestamp") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => coerced_time(text).err(),
        Some(other) => Some(format!(
            "json: cannot unmarshal {} into Go value of type string",
            go::json_kind(other)
        )),
    };
    let has_fraction = |seconds: &Value| matches!(seconds, Value::Float(f) if f.fract() != 0.0);
    let seconds = metadata.get("deletionGracePeriodSeconds");
    time.or_else(|| {
        let fraction = seconds.is_some_and(has_fraction);
        fraction.then(|| "cannot convert float64 to int64".to_owned())
    })
}

struct Coercer<'p> {
    malformed: MalformedFields,
    unknown: FindingList,
    /// Where the metadata stand.
    metadata: &'p Path<'p>,
}

/// Why a value does not fit its field.
struct TypeMismatch {
    why: String,
    reading: AfterMismatch,
}

/// What a server does after a value that does not fit.
#[derive(PartialEq, Eq)]
enum AfterMismatch {
    /// It reads on, and tells of the first such value.
    GoesOn,
    /// It reads no further, and tells of this value alone: times read themselves.
    Ends,
}

/// Keeps the mismatch that a server tells of.
fn keep(first: &mut Option<TypeMismatch>, mismatch: TypeMismatch) {
    if first.is_none() || mismatch.reading == AfterMismatch::Ends {
        *first = Some(mismatch);
    }
}

fn has_ended(first: Option<&TypeMismatch>) -> bool {
    first.is_some_and(|mismatch| mismatch.reading == AfterMismatch::Ends)
}

impl Coercer<'_> {
    fn fields(&mut self, of: &MetaStruct, map: &mut Map, at: &Path<'_>) -> Result<(), TypeMismatch> {
        let mut first = None;
        // Both are in order of their names.
        let mut rest = of.fields.as_slice();
        map.retain(|name, value| {
            if has_ended(first.as_ref()) {
                return true;
            }
            let Some(i) = rest.iter().position(|(field, ..)| same_text(field, name)) else {
                self.unknown.push_with(|| dropped(at, name));
                return false;
            };
            let Some(((field, kind, empty), behind)) = rest.get(i..).and_then(<[_]>::split_first) else {
                return false;
            };
            rest = behind;
            let known = self.unknown.total();
            match self.field(of, kind, value, &at.field(field)) {
                Ok(kept) => kept || *empty == Empty::Keep,
                Err(_) if self.malformed != MalformedFields::Refuse && std::ptr::eq(of, &*OBJECT_META) => {
                    self.unknown.truncate(known);
                    self.malformed == MalformedFields::Keep
                }
                Err(mismatch) => {
                    keep(&mut first, mismatch);
                    true
                }
            }
        });
        if let Some(mismatch) = first {
            return Err(mismatch);
        }
        for (field, _, empty) in &of.fields {
            if *empty == Empty::Keep {
                let value = map.get_or_insert_with(field, || Value::from(""));
                if value.is_null() {
                    *value = Value::from("");
                }
            }
        }
        Ok(())
    }

    /// Brings a field into form, and says whether it holds anything.
    fn field(
        &mut self,
        of: &MetaStruct,
        kind: &MetaFieldType,
        value: &mut Value,
        at: &Path<'_>,
    ) -> Result<bool, TypeMismatch> {
        if value.is_null() {
            return Ok(false);
        }
        let metadata = self.metadata;
        let wrong = |found: &str, ty: &str| {
            let place = fields_below(metadata, at).join(".");
            let owner = of.name;
            let why =
                format!("json: cannot unmarshal {found} into Go struct field {owner}.{place} of type {ty}");
            let reading = AfterMismatch::GoesOn;
            TypeMismatch { why, reading }
        };
        match (kind, value) {
            (MetaFieldType::Text(_), Value::String(s)) => Ok(!s.is_empty()),
            (MetaFieldType::Text(ty), v) => Err(wrong(go::json_kind(v), ty)),
            (
                MetaFieldType::Integer | MetaFieldType::OptionalInteger,
                v @ (Value::Int(_) | Value::Float(_)),
            ) => {
                let Some(i) = integer(v) else {
                    return Err(wrong(&format!("number {}", v.to_json()), "int64"));
                };
                *v = Value::Int(i);
                Ok(i != 0 || matches!(kind, MetaFieldType::OptionalInteger))
            }
            (MetaFieldType::Integer | MetaFieldType::OptionalInteger, v) => {
                Err(wrong(go::json_kind(v), "int64"))
            }
            (MetaFieldType::OptionalBoolean, Value::Bool(_)) => Ok(true),
            (MetaFieldType::OptionalBoolean, v) => Err(wrong(go::json_kind(v), "bool")),
            (MetaFieldType::Time, Value::String(s)) => {
                let (time, is_set) = coerced_time(s).map_err(|why| TypeMismatch {
                    why,
                    reading: AfterMismatch::Ends,
                })?;
                *s = time.into();
                Ok(is_set)
            }
            (MetaFieldType::Time, v) => Err(TypeMismatch {
                reading: AfterMismatch::Ends,
                ..wrong(go::json_kind(v), "string")
            }),
            (MetaFieldType::TextMap, Value::Object(map)) => {
                for (_, v) in map.iter_mut() {
                    text_element(v).map_err(|found| wrong(found, "string"))?;
                }
                Ok(!map.is_empty())
            }
            (MetaFieldType::TextMap, v) => Err(wrong(go::json_kind(v), "map[string]string")),
            (MetaFieldType::TextList, Value::Array(list)) => {
                for v in list.iter_mut() {
                    text_element(v).map_err(|found| wrong(found, "string"))?;
                }
                Ok(!list.is_empty())
            }
            (MetaFieldType::TextList, v) => Err(wrong(go::json_kind(v), "[]string")),
            (MetaFieldType::Structs(element), Value::Array(list)) => {
                let mut first = None;
                for (i, v) in list.iter_mut().enumerate() {
                    if v.is_null() {
                        *v = Value::Object(Map::new());
                    }
                    let read = match v {
                        Value::Object(map) => self.fields(element, map, &at.index(i)),
                        v => Err(wrong(go::json_kind(v), &format!("v1.{}", element.name))),
                    };
                    if let Err(mismatch) = read {
                        keep(&mut first, mismatch);
                    }
                    if has_ended(first.as_ref()) {
                        break;
                    }
                }
                first.map_or(Ok(!list.is_empty()), Err)
            }
            (MetaFieldType::Structs(element), v) => {
                Err(wrong(go::json_kind(v), &format!("[]v1.{}", element.name)))
            }
            (MetaFieldType::Raw, _) => Ok(true),
        }
    }
}

/// The finding about a field that is dropped. kube-apiserver writes the way to it as in errors, where a field without a
/// name looks like a key.
fn dropped(at: &Path<'_>, name: &str) -> Finding {
    let way = at.segments().into_iter().map(|segment| match segment {
        Segment::Field("") => Segment::Key(""),
        segment => segment,
    });
    Finding::PrunedField(way.chain([Segment::Field(name)]).collect())
}

/// The fields that lead from one place to another below it.
fn fields_below<'p>(above: &Path<'_>, at: &Path<'p>) -> Vec<&'p str> {
    let way = at.segments().into_iter().skip(above.segments().len());
    let field = |segment| match segment {
        Segment::Field(name) => Some(name),
        Segment::Key(_) | Segment::Index(_) => None,
    };
    way.filter_map(field).collect()
}

/// A string in a list or map; `null` reads as the empty one.
fn text_element(v: &mut Value) -> Result<(), &'static str> {
    match v {
        Value::String(_) => Ok(()),
        Value::Null => {
            *v = Value::from("");
            Ok(())
        }
        v => Err(go::json_kind(v)),
    }
}

/// An integer, also if it was written with a fraction of nothing or an exponent.
fn integer(v: &Value) -> Option<i64> {
    match v {
        Value::Int(i) => Some(*i),
        // Numbers are written out again before they are read: large ones get an exponent, which no integer has.
        Value::Float(f) => {
            let mut text = Vec::new();
            go::write_float_json(&mut text, *f);
            std::str::from_utf8(&text).ok()?.parse().ok()
        }
        _ => None,
    }
}

/// The first second of the year 1, which Go takes for no time at all.
const NO_TIME: i64 = -62_135_596_800;

/// A time without fractions and zone, and whether it is one at all.
fn coerced_time(text: &str) -> Result<(String, bool), String> {
    let seconds = timestamp::parse_rfc3339(text)?.seconds;
    let whole = Moment {
        seconds,
        nanos: 0,
        offset: 0,
    };
    Ok((timestamp::format(whole), seconds != NO_TIME))
}
