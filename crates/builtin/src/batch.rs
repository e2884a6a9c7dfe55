//! Kinds of the group `batch`.

mod cron;
mod cron_job;
mod indexes;
mod job;
mod job_policy;
mod job_spec;
mod job_status;

use crate::KindBehavior;

/// The group.
const GROUP: &str = "batch";

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[&cron_job::KIND, &job::KIND];
