//! Which fields predicates read, and where they stand in a value.

use super::{MOST_SLOTS, Slot, View};
use crate::shape::{Kind, Shape};
use scantling_value::{Map, Str, Value, same_text};

/// The slot of the value that all predicates are about.
pub(super) const SUBJECT: Slot = 0;
/// What is read of that value.
pub(super) const ROOT: Object = 0;

/// The fields that predicates read, object by object.
#[derive(Debug)]
pub(super) struct Layout {
    objects: Vec<Vec<Field>>,
    /// How many slots are taken from the front.
    front: usize,
    /// How many slots the predicate at work has taken from the back.
    back: usize,
    /// The most that any predicate has taken from there.
    most_back: usize,
}

/// The fields that are read of one object, in order of their names.
pub(super) type Object = u16;

#[derive(Debug)]
struct Field {
    name: Box<str>,
    slot: Slot,
    /// What is read of it, if it is an object.
    below: Option<Object>,
}

/// Which end of the slots to take one from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// For what is found once, for all predicates.
    Front,
    /// For what is found anew for each element of a fold. It gives way to what the next predicate finds.
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
    pub(super) fn take(&mut self, end: End) -> Option<Slot> {
        let (front, back) = match end {
            End::Front => (self.front + 1, self.back),
            End::Back => (self.front, self.back + 1),
        };
        let most_back = self.most_back.max(back);
        if front + most_back > MOST_SLOTS {
            return None;
        }
        (self.front, self.back, self.most_back) = (front, back, most_back);
        let slot = match end {
            End::Front => front - 1,
            End::Back => MOST_SLOTS - back,
        };
        Slot::try_from(slot).ok()
    }

    /// An object of which nothing is read yet.
    pub(super) fn object(&mut self) -> Option<Object> {
        let object = Object::try_from(self.objects.len()).ok()?;
        self.objects.push(Vec::new());
        Some(object)
    }

    /// Whether what stands there is found once, for all predicates.
    pub(super) fn is_front(&self, slot: Slot) -> bool {
        usize::from(slot) < self.front
    }

    /// The slot of a field of an object, which is taken from that end if nobody has read it before.
    pub(super) fn field(&mut self, object: Object, name: &str, end: End) -> Option<Slot> {
        let fields = self.objects.get(usize::from(object))?;
        match fields.binary_search_by(|field| (*field.name).cmp(name)) {
            Ok(known) => fields.get(known).map(|field| field.slot),
            Err(place) => {
                let slot = self.take(end)?;
                self.objects.get_mut(usize::from(object))?.insert(
                    place,
                    Field {
                        name: name.into(),
                        slot,
                        below: None,
                    },
                );
                Some(slot)
            }
        }
    }

    /// The object that a field holds.
    pub(super) fn below(&mut self, object: Object, slot: Slot) -> Option<Object> {
        let known = |field: &&mut Field| field.slot == slot;
        let fields = self.objects.get_mut(usize::from(object))?;
        if let Some(below) = fields.iter_mut().find(known)?.below {
            return Some(below);
        }
        let below = self.object()?;
        let fields = self.objects.get_mut(usize::from(object))?;
        fields.iter_mut().find(known)?.below = Some(below);
        Some(below)
    }

    /// Finds the fields of an object. What is no object has none, and a null is none.
    #[inline]
    pub(super) fn find<'v>(&self, object: Object, value: &'v Value, view: &mut View<'v>) {
        if let Some(fields) = self.objects.get(usize::from(object)).filter(|f| !f.is_empty()) {
            self.find_fields(fields, value.as_object(), view);
        }
    }

    #[inline(never)]
    fn find_fields<'v>(&self, fields: &[Field], object: Option<&'v Map>, view: &mut View<'v>) {
        let mut rest = object.map_or(&[][..], Map::entries);
        for field in fields {
            let found = field.find(&mut rest).filter(|value| !value.is_null());
            view.set(field.slot, found);
            if let Some(below) = field.below {
                self.find(below, found.unwrap_or(&Value::Null), view);
            }
        }
    }
}

impl Field {
    /// Finds the field among members, both in order, and leaves those behind it.
    #[inline]
    fn find<'v>(&self, members: &mut &'v [(Str, Value)]) -> Option<&'v Value> {
        /// Most objects are so small that asking every name is faster than halving.
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
pub(super) struct Types(u8);

impl Types {
    const BOOL: u8 = 1;
    const INT: u8 = 2;
    const FLOAT: u8 = 4;
    const STRING: u8 = 8;
    const LIST: u8 = 16;
    const OBJECT: u8 = 32;

    /// `None` where that depends on more than the type.
    pub(super) fn of(shape: &Shape) -> Option<Types> {
        Some(Types(match shape.kind {
            Kind::Bool => Self::BOOL,
            Kind::Int => Self::INT,
            Kind::Double => Self::INT | Self::FLOAT,
            Kind::String => Self::STRING,
            Kind::IntOrString => Self::INT | Self::STRING,
            Kind::List { .. } => Self::LIST,
            Kind::Map { .. } | Kind::Object { .. } => Self::OBJECT,
            Kind::Bytes | Kind::Date | Kind::DateTime | Kind::Duration | Kind::Dyn => return None,
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
