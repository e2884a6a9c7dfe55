//! Pod templates, as workloads embed them.

use crate::{Context, Cursor};
use scantling_value::{ErrorList, Map};

/// Fills in the defaults of a pod template: those of its pod spec.
pub(crate) fn default(_template: &mut Map, _context: &Context<'_>) {}

/// Validates a pod template. `old` is the stored template on an update; the pod-level feature checks ratchet on it.
pub(crate) fn validate(
    _template: &Cursor<'_, '_>,
    _old: Option<&Cursor<'_, '_>>,
    _context: &Context<'_>,
    _errors: &mut ErrorList,
) {
}

/// Adds the warnings of a pod template: deprecated fields, duplicate names and the like.
pub(crate) fn warn(
    _template: &Cursor<'_, '_>,
    _old: Option<&Cursor<'_, '_>>,
    _context: &Context<'_>,
    _warnings: &mut Vec<String>,
) {
}
