//! How ownership moves: the core of updates and applies, without the habits of a server around it.

use super::conflict::Conflicts;
use super::managed::{ManagerId, Owned};
use super::{ApplyError, Force, Versions};
use crate::fields::{Set, equal};
use crate::typed::{Comparison, Duplicates, ObjectType, named_members, reconcile, remove};
use scantling_value::{Str, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

pub(super) type Managers = BTreeMap<ManagerId, Owned>;

/// An object in one of its versions.
#[derive(Clone)]
pub(super) struct Versioned<'a> {
    pub(super) object: Cow<'a, Value>,
    pub(super) api_version: Str,
}

impl<'a> Versioned<'a> {
    pub(super) fn borrowed(object: &'a Value, api_version: &str) -> Self {
        Versioned {
            object: Cow::Borrowed(object),
            api_version: api_version.into(),
        }
    }

    pub(super) fn owned(object: Value, api_version: &str) -> Self {
        Versioned {
            object: Cow::Owned(object),
            api_version: api_version.into(),
        }
    }
}

/// Why an object cannot be had in a version.
enum ConvertError {
    /// The kind does not have that version (any more).
    Missing,
    Failed(String),
}

/// One operation on an object whose kind has versions.
pub(super) struct Updater<'a> {
    pub(super) versions: &'a dyn Versions,
    /// Fields that a write to this resource cannot change, by version; they and all below them are not counted.
    pub(super) reset: &'a BTreeMap<Str, Set>,
}

impl<'a> Updater<'a> {
    fn ty(&self, api_version: &str) -> Result<&'a ObjectType, ConvertError> {
        self.versions
            .object_type(api_version)
            .ok_or(ConvertError::Missing)
    }

    fn convert<'v>(&self, from: &'v Versioned<'_>, api_version: &str) -> Result<Versioned<'v>, ConvertError> {
        let ty = self.ty(api_version)?;
        if from.api_version == api_version {
            return Ok(Versioned::borrowed(&from.object, api_version));
        }
        let converted = self
            .versions
            .convert(&from.object, api_version)
            .map_err(ConvertError::Failed)?;
        ty.validate(&converted, Duplicates::Refused)
            .map_err(|e| ConvertError::Failed(e.to_string()))?;
        Ok(Versioned::owned(converted, api_version))
    }

    fn without_reset(&self, set: Set, api_version: &str) -> Set {
        match self.reset.get(api_version) {
            Some(reset) => set.recursive_difference(reset),
            None => set,
        }
    }

    fn compare(&self, old: &Value, new: &Value, api_version: &str) -> Result<Comparison, ConvertError> {
        let comparison = self.ty(api_version)?.compare(old, new);
        Ok(match self.reset.get(api_version) {
            Some(reset) => comparison.without(reset),
            None => comparison,
        })
    }

    /// Brings all sets into line with the schemas of today.
    fn reconcile(&self, live: &Versioned<'_>, managers: Managers) -> Result<Managers, ApplyError> {
        let mut out = Managers::new();
        for (id, mut owned) in managers {
            match self.convert(live, &owned.api_version) {
                Ok(_) => {}
                Err(ConvertError::Missing) => continue,
                Err(ConvertError::Failed(e)) => return Err(ApplyError::Internal(e)),
            }
            if let Some(ty) = self.versions.object_type(&owned.api_version)
                && let Some(set) = reconcile(&owned.set, ty.root())
            {
                owned.set = set;
            }
            out.insert(id, owned);
        }
        Ok(out)
    }

    /// Takes from the other managers what changes. Without force it is an error to take what an apply changes.
    fn take_over(
        &self,
        old: &Versioned<'_>,
        new: &Versioned<'_>,
        managers: &mut Managers,
        who: &ManagerId,
        force: Force,
    ) -> Result<Comparison, ApplyError> {
        let failed =
            |what: &str, e: &str| ApplyError::Internal(format!("failed to convert {what} object: {e}"));
        let mut comparisons: BTreeMap<Str, Comparison> = BTreeMap::new();
        let own = self.compare(&old.object, &new.object, &old.api_version);
        let own = own.map_err(|_| ApplyError::Internal("failed to compare objects: no type".into()))?;
        comparisons.insert(old.api_version.clone(), own.clone());

        let mut conflicts = Conflicts::default();
        let mut taken: Vec<(ManagerId, Set)> = Vec::new();
        let mut gone: Vec<ManagerId> = Vec::new();
        for (id, owned) in managers.iter() {
            if id == who {
                continue;
            }
            if !comparisons.contains_key(&owned.api_version) {
                let converted = self.convert(old, &owned.api_version).map_err(|e| ("old", e));
                let pair = converted.and_then(|old| {
                    let new = self.convert(new, &owned.api_version).map_err(|e| ("new", e))?;
                    Ok((old, new))
                });
                let (old, new) = match pair {
                    Ok(pair) => pair,
                    Err((_, ConvertError::Missing)) => {
                        gone.push(id.clone());
                        continue;
                    }
                    Err((what, ConvertError::Failed(e))) => return Err(failed(what, &e)),
                };
                let Ok(comparison) = self.compare(&old.object, &new.object, &owned.api_version) else {
                    gone.push(id.clone());
                    continue;
                };
                comparisons.insert(owned.api_version.clone(), comparison);
            }
            let Some(comparison) = comparisons.get(&owned.api_version) else {
                continue;
            };
            let changed = [&comparison.modified, &comparison.added];
            if changed.iter().any(|set| owned.set.intersects(set)) {
                let conflict = owned
                    .set
                    .intersection(&comparison.modified.union(&comparison.added));
                conflicts.0.extend(Conflicts::of_manager(id, &conflict));
                taken.push((id.clone(), conflict));
            }
            if !comparison.removed.is_empty() {
                taken.push((id.clone(), comparison.removed.clone()));
            }
        }
        if force == Force::No && !conflicts.0.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
        for id in gone {
            managers.remove(&id);
        }
        for (id, fields) in taken {
            if let Some(owned) = managers.get_mut(&id) {
                owned.set = owned.set.difference(&fields);
            }
        }
        managers.retain(|_, owned| !owned.set.is_empty());
        Ok(own)
    }

    /// After a write that is no apply: the writer owns what it changed.
    pub(super) fn update(
        &self,
        live: &Versioned<'_>,
        new: &Versioned<'_>,
        managers: Managers,
        who: &ManagerId,
    ) -> Result<Managers, ApplyError> {
        let mut managers = self.reconcile(live, managers)?;
        let changes = self.take_over(live, new, &mut managers, who, Force::Yes)?;
        let before = managers.remove(who).map(|owned| owned.set).unwrap_or_default();
        let set = before
            .difference(&changes.removed)
            .union(&changes.modified)
            .union(&changes.added);
        let set = self.without_reset(set, &new.api_version);
        if !set.is_empty() {
            let api_version = new.api_version.clone();
            managers.insert(who.clone(), Owned { set, api_version });
        }
        Ok(managers)
    }

    /// An apply: the new object, if it differs from the live one, and who owns what then.
    pub(super) fn apply(
        &self,
        live: &Versioned<'_>,
        config: &Versioned<'_>,
        managers: Managers,
        who: &ManagerId,
        force: Force,
    ) -> Result<(Option<Value>, Managers), ApplyError> {
        let mut managers = self.reconcile(live, managers)?;
        let api_version = config.api_version.clone();
        let Ok(ty) = self.ty(&api_version) else {
            return Err(ApplyError::Internal(format!(
                "no corresponding type for {api_version}"
            )));
        };
        let merged = ty.merge(&live.object, &config.object);
        let set = self.without_reset(ty.fields_of(&config.object), &api_version);
        let last = managers.insert(
            who.clone(),
            Owned {
                set,
                api_version: api_version.clone(),
            },
        );
        let merged = Versioned::owned(merged, &api_version);
        // Mostly an apply lists all that it listed before, and there is nothing to remove.
        let drops = |last: &Owned| {
            let listed = managers.get(who).map(|owned| &owned.set);
            last.api_version != api_version || listed.is_none_or(|listed| !last.set.is_subset(listed))
        };
        let new = match last.filter(drops) {
            Some(last) => self.prune(merged, &managers, &last, &api_version)?,
            None => merged,
        };
        self.take_over(live, &new, &mut managers, who, force)?;
        let changed = !equal(&live.object, &new.object);
        Ok((changed.then(|| new.object.into_owned()), managers))
    }

    /// Removes what the manager applied last time and now does not, unless somebody else owns it.
    fn prune<'v>(
        &self,
        merged: Versioned<'v>,
        managers: &Managers,
        last: &Owned,
        api_version: &str,
    ) -> Result<Versioned<'v>, ApplyError> {
        let failed = |what: String| {
            move |e: &str| ApplyError::Internal(format!("failed to prune fields: {what}: {e}"))
        };
        let at_last = match self.convert(&merged, &last.api_version) {
            Ok(converted) => converted,
            Err(ConvertError::Missing) => return Ok(merged),
            Err(ConvertError::Failed(e)) => {
                let what = "failed to convert merged object to last applied version".to_owned();
                return Err(failed(what)(&e));
            }
        };
        let Some(ty) = self.versions.object_type(&last.api_version) else {
            return Ok(merged);
        };
        let last_named = named_members(&last.set, Some(ty.root()));
        let mut pruned = at_last.object.clone().into_owned();
        remove(&mut pruned, &last_named, ty.root());
        let pruned = Versioned::owned(pruned, &last.api_version);
        let pruned = self.add_back_owned(&at_last, pruned, managers)?;

        // What was not the manager's to remove comes back.
        let pruned = match self.convert(&pruned, &last.api_version) {
            Ok(converted) => converted,
            Err(ConvertError::Missing) => return Ok(merged),
            Err(ConvertError::Failed(e)) => {
                let what = "failed add back dangling items: \
                            failed to convert pruned object to last applied version";
                return Err(failed(what.to_owned())(&e));
            }
        };
        let merged_set = named_members(&ty.fields_of(&at_last.object), Some(ty.root()));
        let pruned_set = named_members(&ty.fields_of(&pruned.object), Some(ty.root()));
        let to_remove = merged_set.difference(&pruned_set).intersection(&last_named);
        let mut result = at_last.object.clone().into_owned();
        remove(&mut result, &to_remove, ty.root());
        let result = Versioned::owned(result, &last.api_version);
        match self.convert(&result, api_version) {
            Ok(converted) => Ok(Versioned::owned(converted.object.into_owned(), api_version)),
            Err(ConvertError::Missing) => Ok(merged),
            Err(ConvertError::Failed(e)) => Err(ApplyError::Internal(format!("failed to prune fields: {e}"))),
        }
    }

    /// Puts back what pruning removed though a manager owns it.
    fn add_back_owned<'v>(
        &self,
        merged: &Versioned<'_>,
        pruned: Versioned<'v>,
        managers: &Managers,
    ) -> Result<Versioned<'v>, ApplyError> {
        let mut owned: BTreeMap<&Str, Set> = BTreeMap::new();
        for Owned { set, api_version } in managers.values() {
            let all = owned.entry(api_version).or_default();
            *all = all.union(set);
        }
        // The version of the pruned object first: conversion may need fields that pruning took.
        let first = owned.remove_entry(&pruned.api_version);
        let mut pruned = pruned;
        for (api_version, owned) in first.into_iter().chain(owned) {
            let failed = |what: &str, e: &str| {
                ApplyError::Internal(format!(
                    "failed to prune fields: failed add back owned items: \
                     failed to convert {what} object at version {api_version}: {e}"
                ))
            };
            let at = match self.convert(merged, api_version) {
                Ok(converted) => converted,
                Err(ConvertError::Missing) => continue,
                Err(ConvertError::Failed(e)) => return Err(failed("merged", &e)),
            };
            let before = match self.convert(&pruned, api_version) {
                Ok(converted) => converted,
                Err(ConvertError::Missing) => continue,
                Err(ConvertError::Failed(e)) => return Err(failed("pruned", &e)),
            };
            let Some(ty) = self.versions.object_type(api_version) else {
                continue;
            };
            let named = |set: &Set| named_members(set, Some(ty.root()));
            let keep = named(&ty.fields_of(&before.object)).union(&named(&owned));
            let to_remove = named(&ty.fields_of(&at.object)).difference(&keep);
            let mut object = at.object.into_owned();
            remove(&mut object, &to_remove, ty.root());
            pruned = Versioned::owned(object, api_version);
        }
        Ok(pruned)
    }
}
