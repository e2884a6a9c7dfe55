//! Conflicts of an apply with the owners of fields.

use super::ManagerId;
use crate::fields::{FieldPath, Set};
use std::fmt;

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: ManagerId,
    /// The field.
    pub path: FieldPath,
}

impl Conflict {
    /// Returns the message of the cause in a `Status`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

/// The maximum number of conflicts that are listed.
const MAX_LISTED: usize = 1000;

/// The maximum size of the listed paths. A `Status` holds each path twice, in its message and in its causes.
const MAX_LISTED_BYTES: usize = 1 << 20;

/// All conflicts of an apply, grouped by manager. `Display` is the message of the `Status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflicts {
    /// Returns the conflicts that a `Status` lists, each with the text of its path. A small apply can conflict in as many
    /// fields as the object has, so both their number and their size are bounded; the message says how many are omitted.
    pub fn listed(&self) -> Vec<(&Conflict, String)> {
        let mut room = MAX_LISTED_BYTES;
        let conflicts = self.0.iter().take(MAX_LISTED);
        let with_path = conflicts.map(|conflict| (conflict, conflict.path.to_string()));
        with_path
            // Ends at the first path that does not fit, so that the listed conflicts are the first ones.
            .take_while(|(_, path)| match room.checked_sub(path.len()) {
                Some(left) => {
                    room = left;
                    true
                }
                None => false,
            })
            .collect()
    }

    pub(super) fn of_manager(manager: &ManagerId, fields: &Set) -> impl Iterator<Item = Conflict> {
        fields.paths().into_iter().map(|path| Conflict {
            manager: manager.clone(),
            path,
        })
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // structured-merge-diff writes a single conflict on one line, and several as a list by manager.
        if let [one] = self.0.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", one.message(), one.path);
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut last = None;
        let listed = self.listed();
        for (conflict, path) in &listed {
            if last != Some(&conflict.manager) {
                let line = if last.is_some() { "\n" } else { "" };
                write!(f, "{line}conflicts with {}:", conflict.manager)?;
                last = Some(&conflict.manager);
            }
            write!(f, "\n- {path}")?;
        }
        match self.0.len() - listed.len() {
            0 => Ok(()),
            omitted => write!(f, "\n({omitted} more omitted)"),
        }
    }
}

impl std::error::Error for Conflicts {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::ManagerOperation;

    #[test]
    fn long_conflict_lists_are_truncated() {
        let manager = ManagerId {
            manager: "kubectl".into(),
            operation: ManagerOperation::Apply,
            api_version: None,
            subresource: "".into(),
        };
        let path = FieldPath::default();
        let conflicts = |n: usize| {
            let conflict = Conflict {
                manager: manager.clone(),
                path: path.clone(),
            };
            Conflicts(vec![conflict; n])
        };
        assert_eq!(conflicts(MAX_LISTED).listed().len(), MAX_LISTED);
        assert!(!conflicts(MAX_LISTED).to_string().contains("omitted"));
        let text = conflicts(MAX_LISTED + 7).to_string();
        assert!(text.starts_with("Apply failed with 1007 conflicts: "), "{text}");
        assert!(text.ends_with("\n(7 more omitted)"), "{text}");
    }
}
