//! Templates of persistent volume claims, as ephemeral volumes have them.

use crate::checks::metadata;
use crate::core::persistent_volume_claim::{SpecRules, check_spec};
use crate::{Context, Cursor};
use scantling_value::ErrorList;

/// Checks a template.
pub(super) fn validate(at: &Cursor<'_, '_>, context: &Context<'_>, errors: &mut ErrorList) {
    metadata::template_of_objects(&at.field("metadata"), errors);
    check_spec(&at.field("spec"), SpecRules::tolerating(None), context, errors);
}
