//! Kinds of the group `storagemigration.k8s.io`.

mod storage_version_migration;

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[&storage_version_migration::StorageVersionMigration];
