//! Fills in defaults, and validates the defaults of a CRD.

mod check;
mod coerce;

pub use check::{PrunedDefaults, check_defaults};
pub(crate) use coerce::coerce_defaults;

use crate::plan::{Features, PlanNode};
use scantling_value::{Map, Str, Value, deadline};
use std::fmt;

/// The maximum size of text that defaults may add to an object: the size limit of a request. Otherwise a list
/// of a few thousand empty objects could grow to gigabytes.
pub const MAX_ADDED: usize = 3 << 20;

/// Defaults add more to an object than [`MAX_ADDED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "defaults add more than {MAX_ADDED} bytes to the object")
    }
}

impl std::error::Error for TooLarge {}

/// Sets the defaults of absent fields and of invalid `null`s, and then those inside existing values.
pub fn fill(node: &PlanNode, value: &mut Value) -> Result<(), TooLarge> {
    let mut filler = Filler { left: MAX_ADDED };
    filler.fill(node, value)
}

struct Filler {
    /// The bytes that may still be added.
    left: usize,
}

impl Filler {
    fn fill(&mut self, node: &PlanNode, value: &mut Value) -> Result<(), TooLarge> {
        if !node.has(Features::DEFAULT) {
            return Ok(());
        }
        deadline::tick();
        match value {
            Value::Object(map) => self.fill_object(node, map),
            Value::Array(list) => {
                if let Some(items) = node.items() {
                    for item in list {
                        self.fill_element(items, item)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn fill_object(&mut self, node: &PlanNode, map: &mut Map) -> Result<(), TooLarge> {
        // Inserted together afterwards, because each insertion moves all members behind it.
        let mut absent: Vec<(Str, Value)> = Vec::new();
        for (name, field, default) in node.defaulted() {
            deadline::tick();
            match map.get_mut(name) {
                None => {
                    // Quotes, a colon and a comma.
                    self.charge(name.len() + 4)?;
                    absent.push((name.clone(), self.copy(default)?));
                }
                Some(value) if value.is_null() && !field.schema().nullable => *value = self.copy(default)?,
                Some(_) => {}
            }
        }
        map.insert_all(absent);
        // A default that was just added may contain objects with defaults of their own.
        let mut filled = Ok(());
        node.all_members(map.iter_mut(), Features::DEFAULT, |member| {
            filled = if member.declared {
                self.fill(member.node, member.value)
            } else {
                self.fill_element(member.node, member.value)
            };
            filled.is_ok()
        });
        filled
    }

    /// Elements of lists and values of maps already exist, so a default only replaces a `null`.
    fn fill_element(&mut self, node: &PlanNode, value: &mut Value) -> Result<(), TooLarge> {
        if value.is_null()
            && !node.schema().nullable
            && let Some(default) = node.default()
        {
            *value = self.copy(default)?;
        }
        self.fill(node, value)
    }

    /// Copies a default, if there is room for it.
    // kube-apiserver has no such limit: it adds defaults until it runs out of memory.
    fn copy(&mut self, default: &Value) -> Result<Value, TooLarge> {
        self.charge_value(default)?;
        Ok(default.clone())
    }

    /// Charges about as many bytes as the JSON of a value has.
    fn charge_value(&mut self, value: &Value) -> Result<(), TooLarge> {
        match value {
            // The limit protects memory, so an estimate of the size of numbers suffices.
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => self.charge(4),
            Value::String(s) => self.charge(s.len() + 2),
            Value::Array(items) => {
                self.charge(2 + items.len())?;
                items.iter().try_for_each(|item| self.charge_value(item))
            }
            Value::Object(map) => {
                self.charge(2)?;
                map.iter().try_for_each(|(key, value)| {
                    self.charge(key.len() + 4)?;
                    self.charge_value(value)
                })
            }
        }
    }

    fn charge(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.left = self.left.checked_sub(bytes).ok_or(TooLarge)?;
        Ok(())
    }
}
