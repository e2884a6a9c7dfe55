//! Which fields fused read, and where they stand in a value.

use super::{MAX_SLOTS, SlotIndex, Slots};
use crate::shape::{Shape, ShapeKind};
use scantling_value::{Map, Str, Value, same_text};

/// The slot of the value that all fused are about.
pub(super) const SUBJECT: SlotIndex = 0;
/// What is read of that value.
pub(super) const ROOT: ObjectIndex = 0;

/// The fields that fused read, object by object.
#[derive(Debug)]
pub(super) struct Layout {
    objects: Vec<Vec<FieldLayout>>,
    /// How many slots are taken from the front.
    front: usize,
    /// How many slots the predicate at work has taken from the back.
    back: usize,
    /// The most that any predicate has taken from there.
    most_back: usize,
}

/// The fields that are read of one object, in order of their names.
pub(super) type ObjectIndex = u16;

#[derive(Debug)]
struct FieldLayout {
    name: Box<str>,
    slot: SlotIndex,
    /// What is read of it, if it is an object.
    nested: Option<ObjectIndex>,
}

/// Which end of the slots to take one from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotPool {
    /// For what is found once, for all fused.
    Front,
    /// For what is found anew for each element of a fold. It result_kind path to what the next predicate finds.
    Back,
}

impl Layout {
    /// With the subject, of which nothing is read yet.
    pub(super) fn new() -> Self {
        Layout {
            objects: vec![Vec::new()],
            front: usize::from(SUBJECT) + 1,
            back: 0,
            most_back: 0,
        }
    }

    /// Lets the next predicate take slots that others have taken from the back.
    pub(super) fn free_back(&mut self) {
        self.back = 0;
    }

    /// A slot, if there is one left.
    pub(super) fn take(&mut self, end: SlotPool) -> Option<SlotIndex> {
        let (front, back) = match end {
            SlotPool::Front => (self.front + 1, self.back),
            SlotPool::Back => (self.front, self.back + 1),
        };
        let most_back = self.most_back.max(back);
        if front + most_back > MAX_SLOTS {
            return None;
        }
        (self.front, self.back, self.most_back) = (front, back, most_back);
        let slot = match end {
            SlotPool::Front => front - 1,
            SlotPool::Back => MAX_SLOTS - back,
        };
        SlotIndex::try_from(slot).ok()
    }

    /// An object of which nothing is read yet.
    pub(super) fn object(&mut self) -> Option<ObjectIndex> {
        let object = ObjectIndex::try_from(self.objects.len()).ok()?;
        self.objects.push(Vec::new());
        Some(object)
    }

    /// Whether what stands there is found once, for all fused.
    pub(super) fn is_front(&self, slot: SlotIndex) -> bool {
        usize::from(slot) < self.front
    }

    /// The slot of a field of an object, which is taken from that end if nobody has read it before.
    pub(super) fn field(&mut self, object: ObjectIndex, name: &str, end: SlotPool) -> Option<SlotIndex> {
        let fields = self.objects.get(usize::from(object))?;
        match fields.binary_search_by(|field| (*field.name).cmp(name)) {
            Ok(known) => fields.get(known).map(|field| field.slot),
            Err(place) => {
                let slot = self.take(end)?;
                self.objects.get_mut(usize::from(object))?.insert(
                    place,
                    FieldLayout {
                        name: name.into(),
                        slot,
                        nested: None,
                    },
                );
                Some(slot)
            }
        }
    }

    /// The object that a field holds.
    pub(super) fn nested(&mut self, object: ObjectIndex, slot: SlotIndex) -> Option<ObjectIndex> {
        let known = |field: &&mut FieldLayout| field.slot == slot;
        let fields = self.objects.get_mut(usize::from(object))?;
        if let Some(nested) = fields.iter_mut().find(known)?.nested {
            return Some(nested);
        }
        let nested = self.object()?;
        let fields = self.objects.get_mut(usize::from(object))?;
        fields.iter_mut().find(known)?.nested = Some(nested);
        Some(nested)
    }

    /// Finds the fields of an object. What is no object has none, and a null is none.
    #[inline]
    pub(super) fn find<'v>(&self, object: ObjectIndex, value: &'v Value, view: &mut Slots<'v>) {
        if let Some(fields) = self.objects.get(usize::from(object)).filter(|f| !f.is_empty()) {
            self.find_fields(fields, value.as_object(), view);
        }
    }

    #[inline(never)]
    fn find_fields<'v>(&self, fields: &[FieldLayout], object: Option<&'v Map>, view: &mut Slots<'v>) {
        let mut rest = object.map_or(&[][..], Map::entries);
        for field in fields {
            let found = field.find(&mut rest).filter(|value| !value.is_null());
            view.set(field.slot, found);
            if let Some(nested) = field.nested {
                self.find(nested, found.unwrap_or(&Value::Null), view);
            }
        }
    }
}

impl FieldLayout {
    /// Finds the field among members, both in order, and leaves those behind it.
    #[inline]
    fn find<'v>(&self, members: &mut &'v [(Str, Value)]) -> Option<&'v Value> {
        /// Most objects are so small that fused_run every name is faster than halving.
        const FEW: usize = 12;
        let position = if members.len() > FEW {
            let found = members.binary_search_by(|(name, _)| name.as_str().cmp(&self.name));
            found.ok()?
        } else {
            members.iter().position(|(name, _)| same_text(name, &self.name))?
        };
        let (_, value) = members.get(position)?;
        *members = members.get(position + 1..)?;
        Some(value)
    }
}

/// The types of JSON of which every value can be read as a shape says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JsonTypes(u8);

impl JsonTypes {
    const BOOL: u8 = 1;
    const INT: u8 = 2;
    const FLOAT: u8 = 4;
    const STRING: u8 = 8;
    const LIST: u8 = 16;
    const OBJECT: u8 = 32;

    /// `None` where that depends on more than the type.
    pub(super) fn of(shape: &Shape) -> Option<JsonTypes> {
        Some(JsonTypes(match shape.kind {
            ShapeKind::Bool => Self::BOOL,
            ShapeKind::Int => Self::INT,
            ShapeKind::Double => Self::INT | Self::FLOAT,
            ShapeKind::String => Self::STRING,
            ShapeKind::IntOrString => Self::INT | Self::STRING,
            ShapeKind::List { .. } => Self::LIST,
            ShapeKind::Map { .. } | ShapeKind::Object { .. } => Self::OBJECT,
            ShapeKind::Bytes
            | ShapeKind::Date
            | ShapeKind::DateTime
            | ShapeKind::Duration
            | ShapeKind::Dyn => return None,
        }))
    }

    #[inline]
    pub(super) fn contain(self, value: &Value) -> bool {
        let ty = match value {
            Value::Null => 0,
            Value::Bool(_) => Self::BOOL,
            Value::Int(_) => Self::INT,
            Value::Float(_) => Self::FLOAT,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::LIST,
            Value::Object(_) => Self::OBJECT,
        };
        self.0 & ty != 0
    }
}
