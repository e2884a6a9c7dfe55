//! Kinds of the group `storagemigration.k8s.io`.

mod storage_version_migration;

use crate::KindBehavior;

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[&storage_version_migration::KIND];
