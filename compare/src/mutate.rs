//! Random changes of an object along its type.

use crate::corpus::{Corpus, Field, members};
use crate::rng::Rng;
use scantling_apitypes::{Codec, GoType, StructDef, TypeDef, TypeTable};
use scantling_value::{Limits, Map, Value, json};
use std::sync::LazyLock;

/// Values at bounds, of wrong formats, and of other fields.
static VALUES: LazyLock<Value> =
    LazyLock::new(|| json::decode(include_bytes!("values.json"), Limits::SAFE).unwrap_or_default());

/// A step into a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Key {
    Member(String),
    Item(usize),
}

/// A value in an object, with its type.
struct Slot {
    path: Vec<Key>,
    ty: &'static GoType,
    field: Option<Field>,
}

/// Changes objects of a type.
pub(crate) struct Mutator<'c> {
    pub(crate) corpus: &'c Corpus,
    pub(crate) rng: &'c mut Rng,
}

impl Mutator<'_> {
    /// Makes a change below one of the object's members, or anywhere.
    pub(crate) fn mutate(&mut self, object: &mut Value, definition: &'static TypeDef, below: Option<&str>) {
        let mut slots = Vec::new();
        let path: &mut Vec<Key> = &mut Vec::new();
        each_member(object, definition, path, &mut slots);
        let top = |slot: &Slot| match slot.path.first() {
            Some(Key::Member(name)) => name.clone(),
            _ => String::new(),
        };
        let is_wanted = |slot: &Slot, rare: bool| match below {
            Some(name) => top(slot) == name,
            // Most rules are about the rest.
            None => rare || !matches!(top(slot).as_str(), "metadata" | "status" | "apiVersion" | "kind"),
        };
        let rare = self.rng.chance(12);
        slots.retain(|slot| is_wanted(slot, rare));
        let Some(slot) = self.rng.pick(&slots) else {
            // The object does not have the member yet, or is empty.
            let of_name = |f: &&scantling_apitypes::FieldDef| below.is_none_or(|name| f.name == name);
            let fields: Vec<_> = definition.members().iter().filter(of_name).collect();
            if let (Some(field), Some(object)) = (self.rng.pick(&fields), object.as_object_mut()) {
                object.insert(
                    field.name,
                    self.sample(&field.ty, Some((definition.id, field.name, 0)), 4),
                );
            }
            return;
        };
        if self.rng.chance(10) || self.change(object, slot).is_none() {
            remove(object, &slot.path);
        }
    }

    /// Changes the value at a slot; `None` if it cannot be changed in the chosen way.
    fn change(&mut self, object: &mut Value, slot: &Slot) -> Option<()> {
        let value = find(object, &slot.path)?;
        let ty = TypeTable::latest().underlying(slot.ty);
        *value = match self.rng.below(20) {
            0 => Value::Null,
            1 => empty(value),
            2 => self.wrong_type(),
            3..=8 => self.sample(slot.ty, slot.field, 4),
            _ => match ty {
                GoType::Named(id) => return self.change_struct(value, TypeTable::latest().get(*id), slot),
                GoType::List(item) => return self.change_list(value, item, slot.field),
                GoType::Map(entry) => return self.change_map(value, &entry.1, slot.field),
                _ => self.tweak(value),
            },
        };
        Some(())
    }

    fn change_struct(&mut self, value: &mut Value, definition: &'static TypeDef, slot: &Slot) -> Option<()> {
        let Some(fields) = definition.as_struct() else {
            *value = self.sample(slot.ty, slot.field, 4);
            return Some(());
        };
        let object = members(value)?;
        if self.rng.chance(8) {
            let name = self.rng.pick(&["unknown", "Name", "NAME", "spec", "metadata"])?;
            object.insert(*name, self.sample(&GoType::String, None, 1));
            return Some(());
        }
        let absent: Vec<_> = fields
            .members
            .iter()
            .filter(|f| !object.contains_key(f.name))
            .collect();
        let field = self.rng.pick(&absent)?;
        object.insert(
            field.name,
            self.sample(&field.ty, Some((definition.id, field.name, 0)), 4),
        );
        Some(())
    }

    fn change_list(&mut self, value: &mut Value, item: &'static GoType, field: Option<Field>) -> Option<()> {
        let sample = self.sample(item, field.map(deeper), 4);
        let items = value.as_array_mut()?;
        let at = self.rng.below(items.len());
        match self.rng.below(5) {
            0 => items.reverse(),
            1 => items.extend(items.get(at).cloned()),
            2 if !items.is_empty() => drop(items.remove(at)),
            _ => items.push(sample),
        }
        Some(())
    }

    fn change_map(&mut self, value: &mut Value, ty: &'static GoType, field: Option<Field>) -> Option<()> {
        let (key, sample) = (self.key(field), self.sample(ty, field.map(deeper), 4));
        let object = members(value)?;
        let names: Vec<String> = object.keys().map(ToString::to_string).collect();
        match self.rng.pick(&names) {
            Some(name) if self.rng.chance(25) => drop(object.remove(name)),
            _ => drop(object.insert(key, sample)),
        }
        Some(())
    }

    fn key(&mut self, field: Option<Field>) -> String {
        let keys = field.map_or(&[][..], |field| self.corpus.keys(field));
        match self.rng.pick(keys) {
            Some(key) if self.rng.chance(70) => key.clone(),
            _ => self.string(),
        }
    }

    fn known(&mut self, list: &str) -> Value {
        self.rng.pick(VALUES.list(list)).cloned().unwrap_or_default()
    }

    fn string(&mut self) -> String {
        if self.rng.chance(8) {
            let length = self.known("lengths").as_int().unwrap_or_default();
            return "a".repeat(usize::try_from(length).unwrap_or_default());
        }
        self.known("strings").as_str().unwrap_or_default().to_owned()
    }

    /// A value near another one.
    fn tweak(&mut self, value: &Value) -> Value {
        match value {
            Value::Bool(b) => (!b).into(),
            Value::Int(n) => match self.rng.below(4) {
                0 => n.wrapping_add(1).into(),
                1 => n.wrapping_sub(1).into(),
                2 => n.wrapping_neg().into(),
                _ => self.known("integers"),
            },
            // A part of a placeholder would be none.
            Value::String(text) if text.contains("${") => self.known("strings"),
            Value::String(text) => match self.rng.below(7) {
                0 => format!("{text}{text}").into(),
                1 => text.to_uppercase().into(),
                2 => format!("-{text}").into(),
                3 => format!("{text}-b").into(),
                4 => text.chars().skip(1).collect::<String>().into(),
                5 => format!("{text} ").into(),
                _ => self.string().into(),
            },
            _ => self.wrong_type(),
        }
    }

    fn wrong_type(&mut self) -> Value {
        match self.rng.below(7) {
            0 => true.into(),
            1 => self.known("integers"),
            2 => 1.5.into(),
            3 => self.string().into(),
            4 => Value::Array(vec![self.string().into()]),
            5 => Map::from_iter([("a", Value::from("b"))]).into(),
            _ => "1".into(),
        }
    }

    /// A value of a type: one that the field has in another object, or a new one.
    fn sample(&mut self, ty: &GoType, field: Option<Field>, depth: usize) -> Value {
        let values = field.map_or(&[][..], |field| self.corpus.values(field));
        if self.rng.chance(65)
            && let Some(value) = self.rng.pick(values)
        {
            return value.clone();
        }
        let table = TypeTable::latest();
        if let Some(values) = enumeration(ty).filter(|values| !values.is_empty()) {
            return match self.rng.chance(80) {
                true => self.rng.pick(&values).copied().unwrap_or_default().into(),
                false => self.string().into(),
            };
        }
        match table.underlying(ty) {
            GoType::Bool => self.rng.chance(60).into(),
            GoType::Int32 | GoType::Int64 | GoType::Float64 => self.known("integers"),
            GoType::String | GoType::Pointer(_) => self.string().into(),
            GoType::Bytes => self.known("bytes"),
            GoType::Any => self.wrong_type(),
            GoType::List(item) => {
                let length = self.rng.below(3).min(depth);
                let items = (0..length).map(|_| self.sample(item, field.map(deeper), depth - 1));
                items.collect::<Vec<_>>().into()
            }
            GoType::Map(entry) => {
                let length = self.rng.below(3).min(depth);
                let entry = |_| {
                    (
                        self.key(field),
                        self.sample(&entry.1, field.map(deeper), depth - 1),
                    )
                };
                (0..length).map(entry).collect::<Map>().into()
            }
            GoType::Named(id) => {
                let definition = table.get(*id);
                match definition.as_struct() {
                    Some(fields) => self.sample_struct(definition, fields, depth),
                    None => self.custom(table.codec_of(ty)),
                }
            }
        }
    }

    fn sample_struct(&mut self, definition: &TypeDef, fields: &StructDef, depth: usize) -> Value {
        let mut object = Map::new();
        // Many optional fields would make every object invalid.
        let percent = (200 / fields.members.len().max(1)).clamp(5, 60);
        for field in &fields.members {
            let is_likely = field.is_required || field.presence == scantling_apitypes::Presence::Required;
            if depth > 0 && self.rng.chance(if is_likely { 90 } else { percent }) {
                let value = self.sample(&field.ty, Some((definition.id, field.name, 0)), depth - 1);
                object.insert(field.name, value);
            }
        }
        object.into()
    }

    fn custom(&mut self, codec: Option<Codec>) -> Value {
        match codec {
            Some(Codec::Time | Codec::MicroTime) => self.known("times"),
            Some(Codec::Quantity) if self.rng.chance(90) => self.known("quantities"),
            Some(Codec::IntOrString) if self.rng.chance(50) => self.string().into(),
            Some(Codec::Quantity | Codec::IntOrString) => self.known("integers"),
            _ => self.wrong_type(),
        }
    }
}

/// The values of an enumeration, behind pointers and names.
fn enumeration(ty: &GoType) -> Option<Vec<&'static str>> {
    let table = TypeTable::latest();
    match ty {
        GoType::Pointer(inner) => enumeration(inner),
        GoType::Named(id) => {
            let attributes = table.get(*id).attributes;
            attributes
                .enumeration()
                .or_else(|| Some(attributes.values("values")))
        }
        _ => None,
    }
}

fn deeper((id, name, depth): Field) -> Field {
    (id, name, depth + 1)
}

fn empty(value: &Value) -> Value {
    match value {
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Map::new().into(),
        Value::String(_) => "".into(),
        Value::Int(_) => 0.into(),
        _ => false.into(),
    }
}

/// Lists the values of an object with their types.
fn each_member(object: &Value, definition: &'static TypeDef, path: &mut Vec<Key>, out: &mut Vec<Slot>) {
    for field in definition.members() {
        if let Some(value) = object.get(field.name) {
            path.push(Key::Member(field.name.to_owned()));
            each_slot(value, &field.ty, (definition.id, field.name, 0), path, out);
            path.pop();
        }
    }
}

fn each_slot(value: &Value, ty: &'static GoType, field: Field, path: &mut Vec<Key>, out: &mut Vec<Slot>) {
    out.push(Slot {
        path: path.clone(),
        ty,
        field: Some(field),
    });
    let table = TypeTable::latest();
    match (table.underlying(ty), value) {
        (GoType::List(item), Value::Array(items)) => {
            for (i, value) in items.iter().enumerate() {
                path.push(Key::Item(i));
                each_slot(value, item, deeper(field), path, out);
                path.pop();
            }
        }
        (GoType::Map(entry), Value::Object(members)) => {
            for (name, value) in members.iter() {
                path.push(Key::Member(name.to_string()));
                each_slot(value, &entry.1, deeper(field), path, out);
                path.pop();
            }
        }
        (GoType::Named(id), Value::Object(_)) => each_member(value, table.get(*id), path, out),
        _ => {}
    }
}

/// Finds the value at a path.
pub(crate) fn find<'v>(value: &'v mut Value, path: &[Key]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, key| match key {
        Key::Member(name) => value.as_object_mut()?.get_mut(name),
        Key::Item(i) => value.as_array_mut()?.get_mut(*i),
    })
}

/// Removes the value at a path. Returns whether there was one.
pub(crate) fn remove(value: &mut Value, path: &[Key]) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return false;
    };
    let removed = find(value, parents).and_then(|parent| match last {
        Key::Member(name) => parent.as_object_mut()?.remove(name),
        Key::Item(i) => {
            let items = parent.as_array_mut()?;
            (*i < items.len()).then(|| items.remove(*i))
        }
    });
    removed.is_some()
}
