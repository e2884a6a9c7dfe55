//! Computed cells of jobs.

use super::text::{UNSET, condition, int, is_deleted, moment};
use super::{Printer, Printing};
use scantling_notation::duration::human_duration;
use scantling_value::Value;

/// The printers of the group `batch`.
pub(super) const PRINTERS: &[Printer] = &[
    ("batch", "CronJob", |object, _| {
        let suspend = match object.at(["spec", "suspend"]).and_then(Value::as_bool) {
            None => UNSET,
            Some(true) => "True",
            Some(false) => "False",
        };
        vec![suspend.into()]
    }),
    ("batch", "Job", |object, printing| {
        let duration = job_duration(object, printing);
        vec![
            job_status(object).into(),
            completions(object).into(),
            duration.into(),
        ]
    }),
];

fn job_status(job: &Value) -> &'static str {
    let is = |kind: &str| condition(job, kind) == "True";
    match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if is_deleted(job) => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(job: &Value) -> String {
    let succeeded = int(job, ["status", "succeeded"]);
    let wanted = job.at(["spec", "completions"]).and_then(Value::as_int);
    match (wanted, int(job, ["spec", "parallelism"])) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(job: &Value, printing: &Printing<'_>) -> String {
    let start = moment(job.at(["status", "startTime"]));
    // The duration of a Job that still runs is counted up to now.
    let end = moment(job.at(["status", "completionTime"])).map_or(printing.now, |end| end.seconds);
    start.map_or_else(String::new, |start| {
        human_duration(end.saturating_sub(start.seconds))
    })
}
