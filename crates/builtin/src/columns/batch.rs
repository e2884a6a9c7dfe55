//! Cells of the group `batch`.

use super::text::{
    NONE, UNSET, age, condition, containers, int, is_deleted, length, moment, name, selector_or_none, since,
    text, text_or,
};
use super::{Printer, Printing};
use scantling_notation::duration::human_duration;
use scantling_value::Value;

const GROUP: &str = "batch";

/// The printers of this group.
pub(super) const PRINTERS: &[Printer] = &[(GROUP, "CronJob", cron_job), (GROUP, "Job", job)];

fn job(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let [names, images] = containers(object.list_at(["spec", "template", "spec", "containers"]));
    vec![
        name(object),
        job_status(object).into(),
        completions(object).into(),
        job_duration(object, printing).into(),
        age(object, printing),
        names,
        images,
        selector_or_none(object.at(["spec", "selector"])),
    ]
}

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

fn cron_job(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let job = ["spec", "jobTemplate", "spec"];
    let template = object.at(job);
    let [names, images] =
        containers(template.map_or(&[][..], |t| t.list_at(["template", "spec", "containers"])));
    let suspend = match object.at(["spec", "suspend"]).and_then(Value::as_bool) {
        None => UNSET,
        Some(true) => "True",
        Some(false) => "False",
    };
    let last = object.at(["status", "lastScheduleTime"]).filter(|t| !t.is_null());
    let last = last.map_or_else(|| NONE.to_owned(), |last| since(Some(last), printing));
    vec![
        name(object),
        text(object, ["spec", "schedule"]),
        text_or(object, ["spec", "timeZone"], NONE),
        suspend.into(),
        length(object, ["status", "active"]),
        last.into(),
        age(object, printing),
        names,
        images,
        selector_or_none(template.and_then(|t| t.get("selector"))),
    ]
}
