//! The layout of the fields that fused rules read, and the pass that finds them in a value.

use super::{MAX_SLOTS, SlotIndex, Slots};
use crate::shape::{Shape, ShapeKind};
use scantling_value::{Map, Str, Value, same_text};

/// The slot of the value that the rules apply to.
pub(super) const SUBJECT: SlotIndex = 0;
/// The fields of that value.
pub(super) const ROOT: ObjectIndex = 0;

/// The fields that rules read, by object.
#[derive(Debug)]
pub(super) struct Layout {
    objects: Vec<Vec<FieldLayout>>,
    /// The number of slots taken from the front.
    front: usize,
    /// The number of slots that the current predicate has taken from the back.
    back: usize,
    /// The maximum of `back` over all predicates.
    most_back: usize,
}

/// The index of an object in the layout, whose fields are sorted by name.
pub(super) type ObjectIndex = u16;

#[derive(Debug)]
struct FieldLayout {
    name: Box<str>,
    slot: SlotIndex,
    /// The fields that are read of it, if it is an object.
    nested: Option<ObjectIndex>,
}

/// The end of the slot array that a slot comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotPool {
    /// For fields of the subject, which all predicates share.
    Front,
    /// For fields of list elements. The next predicate reuses these slots.
    Back,
}

impl Layout {
    /// A layout with the subject and no fields.
    pub(super) fn new() -> Self {
        Layout {
            objects: vec![Vec::new()],
            front: usize::from(SUBJECT) + 1,
            back: 0,
            most_back: 0,
        }
    }

    /// Releases the slots at the back for the next predicate.
    pub(super) fn free_back(&mut self) {
        self.back = 0;
    }

    /// Takes a slot, if one is left.
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

    /// Adds an object without fields.
    pub(super) fn object(&mut self) -> Option<ObjectIndex> {
        let object = ObjectIndex::try_from(self.objects.len()).ok()?;
        self.objects.push(Vec::new());
        Some(object)
    }

    /// Returns whether the slot belongs to a field of the subject.
    pub(super) fn is_front(&self, slot: SlotIndex) -> bool {
        usize::from(slot) < self.front
    }

    /// The slot of a field; takes a new one for a field that no rule has read before.
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

    /// The object in a field.
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

    /// Stores the fields of an object in their slots. Null members count as absent.
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
    /// Finds the field in sorted members and leaves the members behind it.
    #[inline]
    fn find<'v>(&self, members: &mut &'v [(Str, Value)]) -> Option<&'v Value> {
        /// Up to this length a linear search is faster than a binary one.
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

/// The JSON types whose values all fit a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JsonTypes(u8);

impl JsonTypes {
    const BOOL: u8 = 1;
    const INT: u8 = 2;
    const FLOAT: u8 = 4;
    const STRING: u8 = 8;
    const LIST: u8 = 16;
    const OBJECT: u8 = 32;

    /// `None` if the type alone does not decide, as for formats.
    pub(super) fn for_shape(shape: &Shape) -> Option<JsonTypes> {
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
