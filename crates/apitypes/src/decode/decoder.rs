//! The typed decoder.

use super::source::{DecodeSource, SourceNode};
use super::{DecodedObject, MAX_DEPTH, TOO_DEEP, base64};
use crate::canonical::is_zero;
use crate::{Codec, Extensions, FieldDef, GoType, Presence, StructDef, TypeDef, TypeKind, TypeTable};
use scantling_notation::quantity::Quantity;
use scantling_notation::timestamp::{self, Moment};
use scantling_value::{Finding, Map, Path, PathBuf, Str, Value, deadline, same_text};
use std::collections::BTreeSet;

/// kube-apiserver stops collecting findings here.
const MAX_FINDINGS: usize = 100;

/// The most bytes that fields which are always written may add to an object. Without a bound, a list of a million empty
/// objects, two bytes each, becomes a gigabyte.
const MAX_ADDED: usize = 3 << 20;

pub(super) struct Decoder<'t> {
    table: &'t TypeTable,
    extensions: Extensions,
    /// For objects in memory: the number of bytes that may still be added for fields that are always written.
    in_memory: Option<usize>,
    /// The names of the enclosing fields and inlined structs, without list indexes and map keys, as errors
    /// show them.
    stack: Vec<&'t str>,
    structs: Vec<&'t str>,
    /// The struct around the outermost value with a custom decoder. Errors inside name that struct, and
    /// unknown fields inside are not reported.
    opaque: Option<&'t str>,
    depth: usize,
    /// The first error; decoding continues.
    saved: Option<String>,
    /// An error that ended decoding.
    fatal: Option<String>,
    /// An error that is reported only after everything else is decoded.
    late: Option<String>,
    findings: Vec<Finding>,
}

impl<'t> Decoder<'t> {
    pub(super) fn new(table: &'t TypeTable, extensions: Extensions) -> Decoder<'t> {
        Decoder {
            table,
            extensions,
            in_memory: None,
            stack: Vec::new(),
            structs: Vec::new(),
            opaque: None,
            depth: 0,
            saved: None,
            fatal: None,
            late: None,
            findings: Vec::new(),
        }
    }

    /// A decoder of objects as kube-apiserver holds them in memory.
    pub(super) fn in_memory(table: &'t TypeTable) -> Decoder<'t> {
        Decoder {
            in_memory: Some(MAX_ADDED),
            ..Decoder::new(table, Extensions::NONE)
        }
    }

    /// Decodes a whole document, or returns its first error.
    pub(super) fn decode(
        mut self,
        document: impl DecodeSource,
        kind: &TypeDef,
    ) -> Result<DecodedObject, String> {
        let value = self.value(document, &GoType::Named(kind.id), &Path::ROOT, None);
        if let Some(fault) = self.first_fault() {
            return Err(fault);
        }
        Ok(DecodedObject {
            members: value.and_then(Value::into_object).unwrap_or_default(),
            findings: self.findings,
        })
    }

    /// Decodes a single value and returns its first error.
    pub(super) fn check(mut self, value: Value, ty: &GoType) -> Result<(), String> {
        self.value(value, ty, &Path::ROOT, None);
        self.first_fault().map_or(Ok(()), Err)
    }

    fn first_fault(&mut self) -> Option<String> {
        let fatal = self.fatal.take();
        fatal.or_else(|| self.saved.take()).or_else(|| self.late.take())
    }

    fn is_strict(&self) -> bool {
        self.opaque.is_none()
    }

    /// Decodes a value into the existing one; `None` if it does not fit the type.
    fn value<S: DecodeSource>(
        &mut self,
        v: S,
        ty: &GoType,
        at: &Path<'_>,
        before: Option<Value>,
    ) -> Option<Value> {
        if self.depth >= MAX_DEPTH {
            self.fatal.get_or_insert_with(|| TOO_DEEP.into());
        }
        if self.fatal.is_some() {
            return None;
        }
        deadline::tick();
        self.depth += 1;
        let out = self.fit(v, ty, at, before);
        self.depth -= 1;
        out
    }

    fn fit<S: DecodeSource>(
        &mut self,
        v: S,
        ty: &GoType,
        at: &Path<'_>,
        before: Option<Value>,
    ) -> Option<Value> {
        let table = self.table;
        let underlying = table.underlying(ty);
        if let GoType::Named(id) = underlying {
            return match &table.get(*id).kind {
                TypeKind::Custom(codec) => self.custom(v, *codec, *id, at, before),
                TypeKind::Struct(s) => match v.node() {
                    SourceNode::Null => before,
                    SourceNode::Object(members) => {
                        let name = table.get(*id).name;
                        Some(self.members(members, name, s, at, before).into())
                    }
                    v => self.mismatch(v.kind(), ty),
                },
                TypeKind::Named(_) => None,
            };
        }
        if *underlying == GoType::Any {
            return self.any(v);
        }
        match (underlying, v.node()) {
            // In Go, `null` resets slices and maps and leaves scalars unchanged.
            (GoType::Bytes | GoType::List(_) | GoType::Map(_), SourceNode::Null) => None,
            (_, SourceNode::Null) => before,
            (GoType::String, SourceNode::String(s)) => Some(Value::String(s)),
            (GoType::Bool, SourceNode::Bool(b)) => Some(Value::Bool(b)),
            (GoType::Int32 | GoType::Int64 | GoType::Float64, SourceNode::Number(number)) => {
                match (underlying, &number.value) {
                    (GoType::Int64, Value::Int(_)) => Some(number.value),
                    (GoType::Int32, Value::Int(i)) if i32::try_from(*i).is_ok() => Some(number.value),
                    #[expect(clippy::cast_precision_loss, reason = "the field is a double on the wire")]
                    (GoType::Float64, Value::Int(i)) => Some(Value::Float(*i as f64)),
                    (GoType::Float64, Value::Float(f)) if f.is_finite() => Some(number.value),
                    _ => self.mismatch(&format!("number {}", number.literal()), ty),
                }
            }
            (GoType::Bytes, SourceNode::String(s)) => match base64::canonical(&s) {
                Ok(canonical) => Some(canonical.into()),
                Err(offset) => self.fault(format!("illegal base64 data at input byte {offset}")),
            },
            (GoType::Bytes, SourceNode::List(items)) => {
                let bytes: Vec<u8> = items.into_iter().map(|item| self.byte(item)).collect();
                Some(base64::encode(&bytes).into())
            }
            (GoType::List(element), SourceNode::List(items)) => {
                Some(self.list(items, element, at, before).into())
            }
            (GoType::Map(entry), SourceNode::Object(members)) => {
                Some(self.map(members, &entry.1, at, before).into())
            }
            (_, v) => self.mismatch(v.kind(), ty),
        }
    }

    /// Decodes one byte of a list of numbers, which Go accepts in place of base64.
    fn byte(&mut self, item: impl DecodeSource) -> u8 {
        let wrong = match item.node() {
            SourceNode::Null => return 0,
            SourceNode::Number(number) => {
                let byte = number.value.as_int().and_then(|i| u8::try_from(i).ok());
                if let Some(byte) = byte {
                    return byte;
                }
                self.mismatch_text(&format!("number {}", number.literal()), "uint8")
            }
            other => self.mismatch_text(other.kind(), "uint8"),
        };
        self.fault(wrong);
        0
    }

    /// Decodes a value of any type. Numbers out of range are errors only here.
    fn any(&mut self, v: impl DecodeSource) -> Option<Value> {
        if let Some(number) = v.out_of_range() {
            let fault = format!("json: cannot unmarshal number {number} into Go value of type float64");
            self.late.get_or_insert(fault);
        }
        Some(v.into_value()).filter(|v| !v.is_null())
    }

    /// Decodes a value whose type has a custom decoder. Its first error ends decoding.
    fn custom<S: DecodeSource>(
        &mut self,
        v: S,
        codec: Codec,
        id: crate::TypeId,
        at: &Path<'_>,
        before: Option<Value>,
    ) -> Option<Value> {
        match (codec, v) {
            (Codec::Raw | Codec::Fields | Codec::Json, v) => self.any(v),
            (codec, v) => match (codec, v.node()) {
                // The decoders of these types reset the value on `null`.
                (Codec::Time | Codec::MicroTime | Codec::Quantity, SourceNode::Null) => None,
                (_, SourceNode::Null) => before,
                (Codec::Time, SourceNode::String(s)) => match timestamp::parse_rfc3339(&s) {
                    Ok(moment) => {
                        // `metav1.Time` has a precision of seconds and is written in UTC.
                        let whole = Moment {
                            nanos: 0,
                            offset: 0,
                            ..moment
                        };
                        Some(timestamp::format(whole).into())
                    }
                    Err(e) => self.end(e),
                },
                (Codec::MicroTime, SourceNode::String(s)) => match timestamp::parse_micro(&s) {
                    Ok(moment) => Some(timestamp::format_micro(moment).into()),
                    Err(e) => self.end(e),
                },
                (Codec::Time | Codec::MicroTime, v) => {
                    let fault = self.mismatch_text(v.kind(), "string");
                    self.end(fault)
                }
                (Codec::Quantity, v) => {
                    let text = match v {
                        // `Quantity.UnmarshalJSON` trims spaces.
                        SourceNode::String(s) => s.trim().to_owned(),
                        SourceNode::Number(number) => number.literal(),
                        // No other value can be a quantity.
                        v => v.kind().to_owned(),
                    };
                    match Quantity::rewrite(&text) {
                        Ok(text) => Some(text.into()),
                        Err(e) => self.end(e.to_string()),
                    }
                }
                (Codec::IntOrString, SourceNode::String(s)) => Some(Value::String(s)),
                (Codec::IntOrString, SourceNode::Number(number)) => match number.value {
                    Value::Int(i) if i32::try_from(i).is_ok() => Some(number.value),
                    _ => {
                        let fault = self.mismatch_text(&format!("number {}", number.literal()), "int32");
                        self.end(fault)
                    }
                },
                (Codec::IntOrString, v) => {
                    let fault = self.mismatch_text(v.kind(), "int32");
                    self.end(fault)
                }
                (Codec::SchemaOrBool, SourceNode::Bool(b)) => Some(Value::Bool(b)),
                (_, SourceNode::Object(members)) => {
                    let schema = self.schema(id)?;
                    let s = schema.as_struct()?;
                    self.opaque(|walk| walk.members(members, schema.name, s, at, None).into())
                }
                (Codec::SchemaOrBool, _) => self.end("boolean or JSON schema expected".into()),
                // kube-apiserver writes a list without elements as the schema, which is null.
                (Codec::SchemaOrList | Codec::SchemaOrStrings, SourceNode::List(items))
                    if items.is_empty() && self.in_memory.is_some() =>
                {
                    Some(Value::Null)
                }
                (Codec::SchemaOrList, SourceNode::List(items)) => {
                    let schema = GoType::Named(self.schema(id)?.id);
                    self.opaque(|walk| walk.list(items, &schema, at, None).into())
                }
                (Codec::SchemaOrStrings, SourceNode::List(items)) => {
                    self.opaque(|walk| walk.list(items, &GoType::String, at, None).into())
                }
                // UPSTREAM: anything that is neither a schema nor a list decodes as an empty list.
                _ => Some(Value::Array(Vec::new())),
            },
        }
    }

    /// The schema type in the package of a custom type.
    fn schema(&self, id: crate::TypeId) -> Option<&'t TypeDef> {
        let package = self.table.package(self.table.get(id));
        self.table.find(package.id, crate::SCHEMA)
    }

    /// Decodes the elements of a list, each into the existing element at its position.
    fn list<S: DecodeSource>(
        &mut self,
        items: Vec<S>,
        ty: &GoType,
        at: &Path<'_>,
        before: Option<Value>,
    ) -> Vec<Value> {
        let mut before = match before {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        }
        .into_iter();
        let items = items.into_iter().enumerate();
        items
            .map(|(i, v)| self.element(v, ty, &at.index(i), before.next()))
            .collect()
    }

    /// Decodes the entries of a map, in addition to existing ones.
    fn map<S: DecodeSource>(
        &mut self,
        members: impl Iterator<Item = (Str, S)>,
        ty: &GoType,
        at: &Path<'_>,
        before: Option<Value>,
    ) -> Map {
        let mut seen = BTreeSet::new();
        let entry = |(k, v): (Str, S)| {
            if S::HAS_DUPLICATES && !seen.insert(k.clone()) {
                self.report(Finding::DuplicateField, &at.field(&k));
            }
            // Go decodes every entry of a map into a new value, even if the map has the key.
            let v = self.element(v, ty, &at.field(&k), None);
            (k, v)
        };
        match before {
            Some(Value::Object(mut all)) => {
                all.insert_all(members.map(entry).collect());
                all
            }
            _ => members.map(entry).collect(),
        }
    }

    /// Decodes an element of a list or map. For null, scalars get their zero value; structs get theirs in memory or when
    /// they are encoded.
    fn element<S: DecodeSource>(&mut self, v: S, ty: &GoType, at: &Path<'_>, before: Option<Value>) -> Value {
        let v = self.value(v, ty, at, before);
        v.unwrap_or_else(|| match (self.table.underlying(ty), self.table.struct_of(ty)) {
            (_, Some(_)) if self.in_memory.is_none() => Value::Null,
            // A pointer to a struct is set.
            (underlying, Some(_)) => self.added("", underlying),
            (_, None) => self.table.zero(ty),
        })
    }

    /// Returns the zero value of a member or element that is added; `null` once too much was added.
    fn added(&mut self, name: &str, ty: &GoType) -> Value {
        let zero = self.table.zero(ty);
        let Some(left) = &mut self.in_memory else {
            return zero;
        };
        match left.checked_sub(member_bytes(name, &zero)) {
            Some(rest) => {
                *left = rest;
                zero
            }
            None => {
                self.late.get_or_insert_with(|| {
                    format!("fields that are always written add more than {MAX_ADDED} bytes to the object")
                });
                Value::Null
            }
        }
    }

    fn members<S: DecodeSource>(
        &mut self,
        members: impl ExactSizeIterator<Item = (Str, S)>,
        name: &'t str,
        s: &'t StructDef,
        at: &Path<'_>,
        before: Option<Value>,
    ) -> Map {
        // Defaults and preparation add a few fields to most structs.
        const ADDED_LATER: usize = 4;
        let mut out = Vec::with_capacity(members.len() + ADDED_LATER);
        if let Some(Value::Object(before)) = before {
            out.extend(before);
        }
        let mut seen = BTreeSet::new();
        let extensions = self.extensions;
        let is_on = |field: &&FieldDef| extensions.contains(field.extension);
        for (key, v) in members {
            // A field of an extension that is not enabled is unknown, as it is to kube-apiserver.
            let Some(field) = s.field(&key).filter(is_on) else {
                self.report(Finding::UnknownField, &at.field(&key));
                continue;
            };
            let mut before = None;
            if S::HAS_DUPLICATES {
                if !seen.insert(field.name) {
                    self.report(Finding::DuplicateField, &at.field(field.name));
                }
                // `out` has at most one entry per field of the struct, so the search is short. The order is
                // restored when the map is built.
                let place = out.iter().position(|(k, _): &(Str, Value)| *k == key);
                before = place.map(|place| out.swap_remove(place).1);
                // `null` resets a pointer.
                let is_pointer = matches!(field.ty, GoType::Pointer(_));
                before = before.filter(|_| !is_pointer || !v.is_null());
            }
            let depth = self.stack.len();
            // Go's errors name embedded structs, too.
            self.stack.extend(&field.embedded);
            self.stack.push(field.name);
            self.structs.push(name);
            let v = self.value(v, &field.ty, &at.field(field.name), before);
            self.stack.truncate(depth);
            self.structs.pop();
            // Without a pointer, the zero time is the same as none.
            let is_zero_time = |v: &Value| {
                !matches!(field.ty, GoType::Pointer(_))
                    && v.as_str()
                        .is_some_and(|text| self.table.is_zero_time(&field.ty, text))
            };
            let is_unset = |v: &Value| field.presence == Presence::OmitEmpty && is_zero(v) || is_zero_time(v);
            if let Some(v) = v.filter(|v| self.in_memory.is_none() || !is_unset(v)) {
                out.push((key, v));
            }
        }
        if self.in_memory.is_some() {
            for field in s.always() {
                if !out.iter().any(|(name, _)| same_text(name, field.name)) {
                    let zero = self.added(field.name, &field.ty);
                    out.push((field.name.into(), zero));
                }
            }
        }
        Map::from_unsorted(out)
    }

    /// Decodes a schema inside a custom type, where unknown fields are not reported.
    fn opaque(&mut self, decode: impl FnOnce(&mut Decoder<'t>) -> Value) -> Option<Value> {
        let outer = self.opaque;
        self.opaque = outer
            .or_else(|| self.structs.last().copied())
            .or(Some(crate::SCHEMA));
        let saved = self.saved.take();
        let out = decode(self);
        self.opaque = outer;
        // An error inside a custom decoder ends decoding, because `UnmarshalJSON` returns it.
        match self.saved.take() {
            Some(fault) => {
                self.fatal.get_or_insert(fault);
                None
            }
            None => {
                self.saved = saved;
                Some(out)
            }
        }
    }

    /// Reports a field once, although it may occur many times in a text.
    fn report(&mut self, finding: impl FnOnce(PathBuf) -> Finding, at: &Path<'_>) {
        if !self.is_strict() || self.findings.len() >= MAX_FINDINGS {
            return;
        }
        let finding = finding(PathBuf::from(at));
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Reports a value of the wrong type.
    fn mismatch(&mut self, value: &str, ty: &GoType) -> Option<Value> {
        let fault = self.mismatch_text(value, &self.table.go_type(ty));
        self.fault(fault)
    }

    fn mismatch_text(&self, value: &str, ty: &str) -> String {
        let target = match self
            .structs
            .last()
            .map(|innermost| self.opaque.unwrap_or(innermost))
        {
            Some(s) => format!("struct field {s}.{}", self.stack.join(".")),
            None => "value".into(),
        };
        format!("json: cannot unmarshal {value} into Go {target} of type {ty}")
    }

    /// Reports an error after which decoding continues; only the first one is kept.
    fn fault(&mut self, text: String) -> Option<Value> {
        self.saved.get_or_insert(text);
        None
    }

    /// Reports an error that ends decoding.
    fn end(&mut self, text: String) -> Option<Value> {
        self.fatal.get_or_insert(text);
        None
    }
}

/// The number of bytes of a member with a zero value, roughly.
fn member_bytes(name: &str, zero: &Value) -> usize {
    const QUOTES_COLON_VALUE_COMMA: usize = 6;
    let members = zero.as_object().into_iter().flat_map(Map::iter);
    let below: usize = members.map(|(name, value)| member_bytes(name, value)).sum();
    QUOTES_COLON_VALUE_COMMA + name.len() + below
}
