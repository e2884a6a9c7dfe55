//! CronJob.

use super::{GROUP, cron, job, job_spec};
use crate::apps::template;
use crate::checks::{Report, Rule, numbers};
use crate::prepare::{self, object_in, set_default, set_default_text};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_value::{ErrorList, FieldError, Map, Value};

/// Jobs on a schedule.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        qualifies_finalizers_of_status: false,
        has_generation: true,
        ..KindFacts::new(GROUP, "CronJob")
    })
};

/// The controller appends a dash and ten digits to the name.
const MAX_NAME: usize = 52;

const MAX_ZONE_PART: usize = 14;

fn default(object: &mut Map, context: &Context<'_>) {
    let Some(spec) = object_in(object, "spec") else {
        return;
    };
    set_default_text(spec, "concurrencyPolicy", "Allow");
    set_default(spec, "suspend", false);
    set_default(spec, "successfulJobsHistoryLimit", 3_i64);
    set_default(spec, "failedJobsHistoryLimit", 1_i64);
    let job = object_in(spec, "jobTemplate").and_then(|template| object_in(template, "spec"));
    if let Some(job) = job {
        template::default(job, context);
        job::default_failure_policy(job);
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    job::drop_disabled_fields(object, write, &["spec", "jobTemplate", "spec"]);
    template::drop_disabled(object, write, &["spec", "jobTemplate", "spec"]);
    prepare::spec_and_status(object, write, ("batch/v1", "CronJobSpec"));
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    if write.subresource == Subresource::Status {
        return;
    }
    let root = Cursor::root(object);
    check_spec(&root.field("spec"), write, errors);
    let metadata = root.field("metadata");
    let name = metadata.field("name");
    if matches!(write.operation, Operation::Create) && name.str().len() > MAX_NAME {
        errors.invalid(&name, format!("must be no more than {MAX_NAME} characters"));
    }
    let spec = root.field("spec");
    let schedule = spec.field("schedule");
    Rule::Required.check(&schedule, errors);
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    if write.subresource != Subresource::None {
        return;
    }
    let root = Cursor::root(object);
    let spec = root.field("spec");
    let template = spec.field("jobTemplate");
    let job = template.field("spec");
    if write.old().is_none() {
        template::warn_about_name(object, warnings);
    }
    if template::is_new_or_changed(object, write) {
        job_spec::warn(&job, &write.context, warnings);
    }
    // UPSTREAM: the path of the warning has `spec` twice.
    if write.old().is_some() && spec.field("schedule").str().contains("TZ") {
        warnings.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
    }
}

fn check_spec(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let old = write.old().map(Cursor::root);
    let old_spec = old.as_ref().map(|old| old.field("spec"));
    let old_text = |name| old_spec.as_ref().and_then(|old| old.field(name).value());
    let (schedule, zone) = (spec.field("schedule"), spec.field("timeZone"));
    if !schedule.str().is_empty() {
        let had_zone = old_text("schedule")
            .and_then(Value::as_str)
            .is_some_and(|s| s.contains("TZ"));
        check_schedule(&schedule, &zone, had_zone, errors);
    }
    numbers::non_negative(&spec.field("startingDeadlineSeconds"), errors);
    // A stored zone may have left the time-zone database since.
    if old.is_none() || old_text("timeZone") != zone.value() {
        check_time_zone(&zone, errors);
    }
    Rule::RequiredOneOf(&["Allow", "Forbid", "Replace"]).check(&spec.field("concurrencyPolicy"), errors);
    let old_template = old_spec.as_ref().map(|old| old.field("jobTemplate"));
    check_job_template(
        &spec.field("jobTemplate"),
        old_template.as_ref(),
        &write.context,
        errors,
    );
    numbers::non_negative(&spec.field("successfulJobsHistoryLimit"), errors);
    numbers::non_negative(&spec.field("failedJobsHistoryLimit"), errors);
}

/// A schedule names no time zone, unless the stored one does.
fn check_schedule(schedule: &Cursor<'_, '_>, zone: &Cursor<'_, '_>, had_zone: bool, errors: &mut ErrorList) {
    if let Err(why) = cron::check(schedule.str()) {
        errors.invalid(schedule, why);
    }
    if schedule.str().contains("TZ") {
        if !had_zone {
            errors.invalid(
                schedule,
                "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
            );
        } else if zone.is_set() {
            errors.invalid(
                schedule,
                "cannot use both timeZone field and TZ or CRON_TZ in schedule",
            );
        }
    }
}

fn check_time_zone(zone: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let Some(name) = zone.value().and_then(Value::as_str) else {
        return;
    };
    if name.is_empty() {
        return errors.invalid(zone, "timeZone must be nil or non-empty string");
    }
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b".-_+".contains(&b);
    let is_part = |part: &str| {
        let has_length = (1..=MAX_ZONE_PART).contains(&part.len());
        has_length && !matches!(part, "." | "..") && !part.starts_with('-') && part.bytes().all(is_plain)
    };
    if !name.split('/').all(is_part) {
        return errors.invalid(zone, format!("unknown time zone {name}"));
    }
    if name.eq_ignore_ascii_case("Local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.invalid(zone, why);
    }
    if let Err(why) = cron::check_location(name) {
        errors.invalid(zone, why);
    }
}

/// The Jobs of a CronJob have generated selectors.
fn check_job_template(
    template: &Cursor<'_, '_>,
    old: Option<&Cursor<'_, '_>>,
    context: &Context<'_>,
    errors: &mut ErrorList,
) {
    let spec = template.field("spec");
    let old_spec = old.map(|old| old.field("spec"));
    job_spec::check(&spec, old_spec.as_ref(), context, errors);
    let selector = spec.field("selector");
    if selector.is_set() {
        let shown = template::show_selector(&selector);
        errors.invalid_value(&selector, shown, "`selector` will be auto-generated");
    }
    let manual = spec.field("manualSelector");
    if manual.bool() {
        errors.push_with(|| FieldError::not_supported(manual.path(), true, ["nil", "false"]));
    }
}
