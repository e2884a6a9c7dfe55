//! The status of Jobs. Most rules apply only where an update changes one of the fields that they are about.

use super::indexes;
use super::job_spec::{has_condition, is_indexed};
use crate::Cursor;
use crate::checks::{Report, Rule, check_fields, go, update};
use scantling_notation::timestamp;
use scantling_value::{BadValue, ErrorList, Value};
use std::collections::BTreeSet;

const RULES: &[(&str, Rule)] = &[
    ("active", Rule::NonNegative),
    ("succeeded", Rule::NonNegative),
    ("failed", Rule::NonNegative),
    ("ready", Rule::NonNegative),
    ("terminating", Rule::NonNegative),
];

/// The state of a Job that its conditions and counters tell.
struct JobState {
    is_complete: bool,
    is_failed: bool,
    is_failing: bool,
    is_succeeding: bool,
}

impl JobState {
    fn new(status: &Cursor<'_, '_>) -> JobState {
        let is_true = |name| has_condition(status, name, "True");
        JobState {
            is_complete: is_true("Complete"),
            is_failed: is_true("Failed"),
            is_failing: is_true("FailureTarget"),
            is_succeeding: is_true("SuccessCriteriaMet"),
        }
    }

    fn is_finished(&self) -> bool {
        self.is_complete || self.is_failed
    }
}

/// A status update: the new and the old status, their states, and the spec.
struct StatusChange<'c> {
    status: &'c Cursor<'c, 'c>,
    old_status: &'c Cursor<'c, 'c>,
    spec: &'c Cursor<'c, 'c>,
    new: JobState,
    old: JobState,
}

impl StatusChange<'_> {
    /// Returns whether an optional field changes.
    fn changes(&self, name: &str) -> bool {
        self.status.field(name).value() != self.old_status.field(name).value()
    }

    /// Returns whether a counter changes; an absent one is 0.
    fn changes_count(&self, name: &str) -> bool {
        self.status.field(name).int() != self.old_status.field(name).int()
    }

    fn changes_complete(&self) -> bool {
        self.new.is_complete != self.old.is_complete
    }

    fn changes_failed(&self) -> bool {
        self.new.is_failed != self.old.is_failed
    }

    fn changes_finished(&self) -> bool {
        self.new.is_finished() != self.old.is_finished()
    }

    /// Reports an error about the conditions, which are not shown.
    fn report_conditions(&self, why: &str, errors: &mut ErrorList) {
        errors.invalid_value(&self.status.field("conditions"), BadValue::Omitted, why);
    }
}

/// Checks an update of the status.
pub(super) fn check(job: &Cursor<'_, '_>, old_job: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (status, old_status) = (job.field("status"), old_job.field("status"));
    let change = StatusChange {
        status: &status,
        old_status: &old_status,
        spec: &job.field("spec"),
        new: JobState::new(&status),
        old: JobState::new(&old_status),
    };
    check_fields(RULES, &status, errors);
    check_uncounted(&status, errors);
    check_conditions(&change, errors);
    check_times(&change, errors);
    check_finished(&change, errors);
    check_indexes(&change, errors);
    if (change.changes("ready") || change.changes_count("active"))
        && status
            .field("ready")
            .as_int()
            .is_some_and(|ready| ready > status.field("active").int())
    {
        errors.invalid(&status.field("ready"), "cannot set more ready pods than active");
    }
    check_transitions(&change, errors);
}

/// UIDs of pods that are not counted yet are unique over both lists.
fn check_uncounted(status: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let uncounted = status.field("uncountedTerminatedPods");
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        for uid in uncounted.field(list).items() {
            if uid.str().is_empty() {
                errors.invalid(&uid, "must not be empty");
            } else if !seen.insert(uid.str()) {
                errors.duplicate(&uid, uid.str());
            }
        }
    }
}

fn check_conditions(change: &StatusChange<'_>, errors: &mut ErrorList) {
    let (new, old) = (&change.new, &change.old);
    let complete_or_failed = change.changes_complete() || change.changes_failed();
    let complete_or_failing = change.changes_complete() || new.is_failing != old.is_failing;
    let complete_or_succeeding = change.changes_complete() || new.is_succeeding != old.is_succeeding;
    let failed_or_indexes = change.changes_failed() || change.changes("failedIndexes");
    let has_success_policy = change.spec.field("successPolicy").is_set();
    // A rule that depends on a change tolerates a contradiction that is stored already.
    let rules = [
        (
            complete_or_failed && new.is_complete && new.is_failed,
            "cannot set Complete=True and Failed=true conditions",
        ),
        (
            complete_or_failing && new.is_complete && new.is_failing,
            "cannot set Complete=True and FailureTarget=true conditions",
        ),
        (
            failed_or_indexes && new.is_failed && !new.is_failing,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            complete_or_succeeding && new.is_complete && !new.is_succeeding,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (
            new.is_succeeding && new.is_failed,
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        ),
        (
            new.is_succeeding && new.is_failing,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
        (
            has_success_policy && !new.is_succeeding && new.is_complete,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        ),
    ];
    for (is_violated, why) in rules {
        if is_violated {
            change.report_conditions(why, errors);
        }
    }
}

fn check_times(change: &StatusChange<'_>, errors: &mut ErrorList) {
    let (completion, start) = (
        change.status.field("completionTime"),
        change.status.field("startTime"),
    );
    let is_complete = change.new.is_complete;
    if change.changes_complete() || change.changes("completionTime") {
        if completion.is_set() && !is_complete {
            let why = "cannot set completionTime when there is no Complete=True condition";
            errors.invalid(&completion, why);
        }
        if !completion.is_set() && is_complete {
            errors.required(&completion, "completionTime is required for Complete jobs");
        }
    }
    // Times of Kubernetes have whole seconds.
    let seconds = |at: &Cursor<'_, '_>| timestamp::parse(at.str()).map(|moment| moment.seconds);
    if (change.changes("startTime") || change.changes("completionTime"))
        && seconds(&completion)
            .zip(seconds(&start))
            .is_some_and(|(end, start)| end < start)
    {
        errors.invalid(&completion, "must be equal to or after `startTime`");
    }
}

fn check_finished(change: &StatusChange<'_>, errors: &mut ErrorList) {
    if !change.new.is_finished() {
        return;
    }
    let (status, spec) = (change.status, change.spec);
    let is_new = change.changes_finished();
    let active = status.field("active");
    if (is_new || change.changes_count("active")) && active.int() > 0 {
        errors.invalid(&active, "active>0 is invalid for finished job");
    }
    // A suspended Job without completions ends without having started.
    let needs_no_start = spec.field("suspend").bool() && spec.field("completions").as_int() == Some(0);
    let start = status.field("startTime");
    if (is_new || change.changes("startTime")) && !needs_no_start && !start.is_set() {
        errors.required(&start, "startTime is required for finished job");
    }
    let uncounted = status.field("uncountedTerminatedPods");
    let ty = ("batch/v1", "UncountedTerminatedPods");
    let changes_uncounted = !update::same_of(
        ty.0,
        ty.1,
        uncounted.value(),
        change.old_status.field("uncountedTerminatedPods").value(),
    );
    let has_uncounted = ["succeeded", "failed"]
        .iter()
        .any(|list| !uncounted.field(list).list().is_empty());
    if (is_new || changes_uncounted) && has_uncounted {
        let shown = go::pointer(ty.0, ty.1, uncounted.value());
        errors.invalid_value(&uncounted, shown, "must be empty for finished job");
    }
    let terminating = status.field("terminating");
    if (is_new || change.changes("terminating")) && terminating.int() > 0 {
        errors.invalid(&terminating, "terminating>0 is invalid for finished job");
    }
}

fn check_indexes(change: &StatusChange<'_>, errors: &mut ErrorList) {
    let (status, spec) = (change.status, change.spec);
    let (completed, failed) = (status.field("completedIndexes"), status.field("failedIndexes"));
    let changes_completed = completed.str() != change.old_status.field("completedIndexes").str();
    let changes_failed = change.changes("failedIndexes");
    let completions = spec.field("completions").as_int();
    let has_index_limit = spec.field("backoffLimitPerIndex").is_set();
    if let Some(completions) = completions {
        if changes_completed && let Err(why) = indexes::count(completed.str(), completions) {
            errors.invalid(&completed, format!("error parsing completedIndexes: {why}"));
        }
        if changes_failed
            && has_index_limit
            && let Err(why) = indexes::count(failed.str(), completions)
        {
            errors.invalid(&failed, format!("error parsing failedIndexes: {why}"));
        }
    }
    if changes_completed && !completed.str().is_empty() && !is_indexed(spec) {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.invalid(&completed, why);
    }
    if changes_failed && !has_index_limit && failed.is_set() {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.invalid(&failed, why);
    }
    if (changes_failed || changes_completed)
        && let Some(index) =
            completions.and_then(|completions| indexes::overlap(completed.str(), failed.str(), completions))
    {
        errors.invalid(
            &failed,
            format!("failedIndexes and completedIndexes overlap at index: {index}"),
        );
    }
}

/// Conditions that end a Job stay, counters do not decrease, and times are set once.
fn check_transitions(change: &StatusChange<'_>, errors: &mut ErrorList) {
    let (status, spec, new, old) = (change.status, change.spec, &change.new, &change.old);
    for (was, is, name) in [
        (old.is_failed, new.is_failed, "Failed"),
        (old.is_complete, new.is_complete, "Complete"),
        (old.is_failing, new.is_failing, "FailureTarget"),
    ] {
        if was && !is {
            change.report_conditions(
                &format!("cannot disable the terminal {name}=True condition"),
                errors,
            );
        }
    }
    // Jobs whose completions follow their parallelism can be scaled down.
    let is_scalable =
        is_indexed(spec) && spec.field("completions").value() == spec.field("parallelism").value();
    for (name, is_fixed) in [("failed", true), ("succeeded", !is_scalable)] {
        let count = status.field(name);
        if is_fixed && count.int() < change.old_status.field(name).int() {
            errors.invalid_value(&count, count.int(), format!("cannot decrease the {name} counter"));
        }
    }
    let completion = status.field("completionTime");
    if completion.is_set()
        && change.old_status.field("completionTime").is_set()
        && change.changes("completionTime")
    {
        errors.invalid(&completion, update::IMMUTABLE);
    }
    let is_resuming =
        has_condition(change.old_status, "Suspended", "True") && has_condition(status, "Suspended", "False");
    if change.old_status.field("startTime").is_set()
        && change.changes("startTime")
        && !is_resuming
        && !spec.field("suspend").bool()
    {
        let start = status.field("startTime");
        let shown = start.value().cloned().unwrap_or(Value::Null);
        errors.invalid_value(&start, shown, "field is immutable for unsuspended job once set");
    }
    if old.is_succeeding && !new.is_succeeding {
        change.report_conditions("cannot disable the SuccessCriteriaMet=True condition", errors);
    }
    if old.is_complete && !old.is_succeeding && new.is_succeeding {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        change.report_conditions(why, errors);
    }
}
