//! Normalizes `metadata` as typed decoding does: drops unknown and empty fields, converts times to UTC.
//!
//! The fields come from the table of API types. Unlike the decoder of built-in kinds (`scantling_apitypes::decode`), this
//! walk works in place, because it runs for every read and write of a custom resource, and it can tolerate malformed
//! fields. Errors are those of Go's JSON decoder.

use scantling_apitypes::{Codec, FieldDef, GoType, Presence, TypeDef, TypeTable};
use scantling_notation::timestamp::{self, Moment};
use scantling_value::{Finding, FindingList, Map, Path, Segment, Value, go, same_text};
use std::sync::LazyLock;

/// The treatment of fields of the wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedFields {
    /// They are errors: for objects of requests.
    Refuse,
    /// They are dropped: for stored objects.
    Drop,
    /// They are kept: an apply leaves metadata as sent, and validation reports them.
    Keep,
}

/// A struct of `metadata`.
struct MetaStruct {
    name: &'static str,
    /// Sorted by name.
    fields: Vec<MetaField>,
}

struct MetaField {
    name: &'static str,
    ty: MetaFieldType,
    /// True if the field is encoded even if it is empty.
    is_required: bool,
}

enum MetaFieldType {
    /// A string, with the name of its Go type.
    String(String),
    Integer,
    /// A pointer to an integer: 0 differs from unset.
    IntegerPointer,
    /// A pointer to a boolean: `false` differs from unset.
    BooleanPointer,
    Time,
    StringMap,
    StringList,
    StructList(MetaStruct),
    /// Any JSON but `null`.
    Raw,
}

static OBJECT_META: LazyLock<MetaStruct> = LazyLock::new(|| {
    let table = TypeTable::latest();
    MetaStruct::new(table, table.known("meta/v1", "ObjectMeta"))
});

impl MetaStruct {
    fn new(table: &'static TypeTable, definition: &'static TypeDef) -> MetaStruct {
        let field = |field: &'static FieldDef| MetaField {
            name: field.name,
            ty: MetaFieldType::new(table, &field.ty),
            is_required: field.presence == Presence::Required,
        };
        let mut fields: Vec<_> = definition.members().iter().map(field).collect();
        fields.sort_unstable_by_key(|field| field.name);
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
            (_, GoType::String) => MetaFieldType::String(table.go_type(ty)),
            (_, GoType::Int64) if is_pointer => MetaFieldType::IntegerPointer,
            (_, GoType::Int64) => MetaFieldType::Integer,
            (_, GoType::Bool) => MetaFieldType::BooleanPointer,
            (_, GoType::Map(_)) => MetaFieldType::StringMap,
            (_, GoType::List(element)) => match element.as_ref() {
                GoType::Named(id) => MetaFieldType::StructList(MetaStruct::new(table, table.get(*id))),
                _ => MetaFieldType::StringList,
            },
            _ => MetaFieldType::Raw,
        }
    }
}

/// Normalizes the `metadata` of an object; absent metadata stays absent. Returns the unknown fields that were dropped, in
/// order.
pub fn coerce(object: &mut Map, at: &Path<'_>, malformed: MalformedFields) -> Result<FindingList, String> {
    let Some(metadata) = object.get_mut("metadata") else {
        return Ok(FindingList::new());
    };
    // Go decodes null as an empty struct.
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

/// Returns the error of metadata that an apply left as sent and that cannot be decoded. Other fields are checked by their
/// merge type or against the stored object.
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
    /// The path of the metadata.
    metadata: &'p Path<'p>,
}

/// The error of a value that does not have the type of its field.
struct TypeMismatch {
    why: String,
    /// True if decoding ends here, as after an error of a custom decoder (times). Otherwise it continues, and the first
    /// error is reported.
    is_final: bool,
}

/// Replaces the reported mismatch by a later one, if that takes precedence.
fn record(reported: &mut Option<TypeMismatch>, mismatch: TypeMismatch) {
    if reported.is_none() || mismatch.is_final {
        *reported = Some(mismatch);
    }
}

fn has_ended(reported: Option<&TypeMismatch>) -> bool {
    reported.is_some_and(|mismatch| mismatch.is_final)
}

impl Coercer<'_> {
    fn fields(&mut self, definition: &MetaStruct, map: &mut Map, at: &Path<'_>) -> Result<(), TypeMismatch> {
        let mut reported = None;
        // Members and fields are sorted by name, so one pass over both suffices.
        let mut rest = definition.fields.as_slice();
        map.retain(|name, value| {
            if has_ended(reported.as_ref()) {
                // The object will be rejected, so the rest stays unchanged.
                return true;
            }
            let Some(i) = rest.iter().position(|field| same_text(field.name, name)) else {
                self.unknown.push_with(|| dropped(at, name));
                return false;
            };
            let Some((field, behind)) = rest.get(i..).and_then(<[_]>::split_first) else {
                return false;
            };
            rest = behind;
            let known = self.unknown.total();
            match self.field(definition, &field.ty, value, &at.field(field.name)) {
                Ok(is_set) => is_set || field.is_required,
                // Errors inside a field end at the field of `metadata` that contains it.
                Err(_)
                    if self.malformed != MalformedFields::Refuse
                        && std::ptr::eq(definition, &*OBJECT_META) =>
                {
                    // Unknown fields inside a field that is dropped or kept as sent are not reported.
                    self.unknown.truncate(known);
                    self.malformed == MalformedFields::Keep
                }
                Err(mismatch) => {
                    record(&mut reported, mismatch);
                    true
                }
            }
        });
        if let Some(mismatch) = reported {
            return Err(mismatch);
        }
        // All required fields of metadata are strings.
        for field in definition.fields.iter().filter(|field| field.is_required) {
            let value = map.get_or_insert_with(field.name, || Value::from(""));
            if value.is_null() {
                *value = Value::from("");
            }
        }
        Ok(())
    }

    /// Normalizes a field, and returns whether it is set to anything but an empty value.
    fn field(
        &mut self,
        definition: &MetaStruct,
        ty: &MetaFieldType,
        value: &mut Value,
        at: &Path<'_>,
    ) -> Result<bool, TypeMismatch> {
        if value.is_null() {
            return Ok(false);
        }
        let metadata = self.metadata;
        let wrong = |found: &str, ty: &str| {
            let (owner, fields) = (definition.name, fields_below(metadata, at).join("."));
            TypeMismatch {
                why: format!(
                    "json: cannot unmarshal {found} into Go struct field {owner}.{fields} of type {ty}"
                ),
                is_final: false,
            }
        };
        match (ty, value) {
            (MetaFieldType::String(_), Value::String(s)) => Ok(!s.is_empty()),
            (MetaFieldType::String(ty), v) => Err(wrong(go::json_kind(v), ty)),
            (
                MetaFieldType::Integer | MetaFieldType::IntegerPointer,
                v @ (Value::Int(_) | Value::Float(_)),
            ) => {
                let Some(i) = integer(v) else {
                    return Err(wrong(&format!("number {}", v.to_json()), "int64"));
                };
                *v = Value::Int(i);
                Ok(i != 0 || matches!(ty, MetaFieldType::IntegerPointer))
            }
            (MetaFieldType::Integer | MetaFieldType::IntegerPointer, v) => {
                Err(wrong(go::json_kind(v), "int64"))
            }
            (MetaFieldType::BooleanPointer, Value::Bool(_)) => Ok(true),
            (MetaFieldType::BooleanPointer, v) => Err(wrong(go::json_kind(v), "bool")),
            (MetaFieldType::Time, Value::String(s)) => {
                let (time, is_set) = coerced_time(s).map_err(|why| TypeMismatch { why, is_final: true })?;
                *s = time.into();
                Ok(is_set)
            }
            (MetaFieldType::Time, v) => Err(TypeMismatch {
                is_final: true,
                ..wrong(go::json_kind(v), "string")
            }),
            (MetaFieldType::StringMap, Value::Object(map)) => {
                for (_, v) in map.iter_mut() {
                    string_element(v).map_err(|found| wrong(found, "string"))?;
                }
                Ok(!map.is_empty())
            }
            (MetaFieldType::StringMap, v) => Err(wrong(go::json_kind(v), "map[string]string")),
            (MetaFieldType::StringList, Value::Array(list)) => {
                for v in list.iter_mut() {
                    string_element(v).map_err(|found| wrong(found, "string"))?;
                }
                Ok(!list.is_empty())
            }
            (MetaFieldType::StringList, v) => Err(wrong(go::json_kind(v), "[]string")),
            (MetaFieldType::StructList(element), Value::Array(list)) => {
                let mut reported = None;
                for (i, v) in list.iter_mut().enumerate() {
                    if v.is_null() {
                        *v = Value::Object(Map::new());
                    }
                    let result = match v {
                        Value::Object(map) => self.fields(element, map, &at.index(i)),
                        v => Err(wrong(go::json_kind(v), &format!("v1.{}", element.name))),
                    };
                    if let Err(mismatch) = result {
                        record(&mut reported, mismatch);
                    }
                    if has_ended(reported.as_ref()) {
                        break;
                    }
                }
                reported.map_or(Ok(!list.is_empty()), Err)
            }
            (MetaFieldType::StructList(element), v) => {
                Err(wrong(go::json_kind(v), &format!("[]v1.{}", element.name)))
            }
            (MetaFieldType::Raw, _) => Ok(true),
        }
    }
}

/// The finding about a dropped field. kube-apiserver formats its path as in errors, where a field with an empty name
/// looks like a key.
fn dropped(at: &Path<'_>, name: &str) -> Finding {
    let path = at.segments().into_iter().map(|segment| match segment {
        Segment::Field("") => Segment::Key(""),
        segment => segment,
    });
    Finding::PrunedField(path.chain([Segment::Field(name)]).collect())
}

/// The names of the fields between two paths, without list indexes and map keys.
fn fields_below<'p>(above: &Path<'_>, at: &Path<'p>) -> Vec<&'p str> {
    let below = at.segments().into_iter().skip(above.segments().len());
    let field = |segment| match segment {
        Segment::Field(name) => Some(name),
        Segment::Key(_) | Segment::Index(_) => None,
    };
    below.filter_map(field).collect()
}

/// Checks an element of a list or map of strings; `null` decodes as the empty string.
fn string_element(v: &mut Value) -> Result<(), &'static str> {
    match v {
        Value::String(_) => Ok(()),
        Value::Null => {
            *v = Value::from("");
            Ok(())
        }
        v => Err(go::json_kind(v)),
    }
}

/// Converts a number to an integer, if its JSON is one: `3.0` and `3e0` are encoded as `3`.
fn integer(v: &Value) -> Option<i64> {
    match v {
        Value::Int(i) => Some(*i),
        // kube-apiserver encodes the number before it decodes it as an integer. Large ones get an exponent.
        Value::Float(f) => {
            let mut text = Vec::new();
            go::write_float_json(&mut text, *f);
            std::str::from_utf8(&text).ok()?.parse().ok()
        }
        _ => None,
    }
}

/// The first second of the year 1: the zero value of Go's times.
const ZERO_TIME: i64 = -62_135_596_800;

/// Formats a time in UTC without fractions, and returns whether it is not the zero time.
fn coerced_time(text: &str) -> Result<(String, bool), String> {
    let seconds = timestamp::parse_rfc3339(text)?.seconds;
    let whole = Moment {
        seconds,
        nanos: 0,
        offset: 0,
    };
    Ok((timestamp::format(whole), seconds != ZERO_TIME))
}
