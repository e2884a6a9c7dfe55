//! The members of an object during many changes.

use scantling_value::{Map, Str, Value};
use std::collections::BTreeMap;

/// The members of an object during a number of changes. A change to a sorted vector moves all members after
/// it, so many changes use a tree.
pub(crate) enum MergeMembers {
    Few(Map),
    Many(BTreeMap<Str, Value>),
}

impl MergeMembers {
    /// Prepares the members of an object for a number of changes.
    pub(crate) fn new(map: Map, changes: usize) -> Self {
        /// Up to this number of changes, moving members is cheaper than a tree.
        const FEW: usize = 32;
        // Moving members is cheap if the object is small or changes rarely.
        if map.len().min(changes) <= FEW {
            MergeMembers::Few(map)
        } else {
            MergeMembers::Many(map.into_iter().collect())
        }
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        match self {
            MergeMembers::Few(map) => map.get_mut(name),
            MergeMembers::Many(tree) => tree.get_mut(name),
        }
    }

    pub(crate) fn insert(&mut self, name: Str, value: Value) {
        match self {
            MergeMembers::Few(map) => drop(map.insert(name, value)),
            MergeMembers::Many(tree) => drop(tree.insert(name, value)),
        }
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Value> {
        match self {
            MergeMembers::Few(map) => map.remove(name),
            MergeMembers::Many(tree) => tree.remove(name),
        }
    }

    pub(crate) fn into_map(self) -> Map {
        match self {
            MergeMembers::Few(map) => map,
            MergeMembers::Many(tree) => tree.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn member_representations_agree(
            names in prop::collection::btree_set("[a-e]{1,3}", 33..60),
            changes in prop::collection::vec(("[a-e]{1,3}", prop::option::of(0i64..9)), 33..60),
        ) {
            let map: Map = names.iter().map(|name| (name.as_str(), Value::Int(0))).collect();
            let (mut few, mut many) = (MergeMembers::new(map.clone(), 1), MergeMembers::new(map, changes.len()));
            prop_assert!(matches!((&few, &many), (MergeMembers::Few(_), MergeMembers::Many(_))));
            for (name, change) in changes {
                prop_assert_eq!(few.get_mut(&name), many.get_mut(&name));
                match change {
                    Some(value) => {
                        few.insert(name.as_str().into(), Value::Int(value));
                        many.insert(name.as_str().into(), Value::Int(value));
                    }
                    None => prop_assert_eq!(few.remove(&name), many.remove(&name)),
                }
            }
            prop_assert_eq!(few.into_map(), many.into_map());
        }
    }
}
