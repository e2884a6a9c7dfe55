//! The device requests of claims, claim templates and device classes.

use super::names::{declared_driver, fully_qualified, label};
use super::selector::check_selectors;
use super::taint;
use crate::Cursor;
use crate::checks::{Report, Rule, names};
use crate::prepare::{object_if_set, objects_in, set_default_text};
use scantling_apitypes::TypeTable;
use scantling_value::{BadValue, ErrorList, FieldError, Map, Value};
use std::collections::{BTreeMap, BTreeSet};

const MAX_REQUESTS: usize = 32;
const MAX_CONSTRAINTS: usize = 32;
const MAX_CONFIGURATIONS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;
const MAX_PARAMETERS: usize = 10 * 1024;

const MODES: &[&str] = &["All", "ExactCount"];

/// Fills in the defaults of a claim's spec.
pub(super) fn default_spec(spec: &mut Map) {
    let Some(devices) = object_if_set(spec, "devices") else {
        return;
    };
    for request in objects_in(devices, "requests") {
        if let Some(exactly) = object_if_set(request, "exactly") {
            default_request(exactly);
        }
        objects_in(request, "firstAvailable").for_each(default_request);
    }
}

fn default_request(request: &mut Map) {
    set_default_text(request, "allocationMode", "ExactCount");
    let has_count = request
        .get("count")
        .and_then(Value::as_int)
        .is_some_and(|count| count != 0);
    if request.get_str("allocationMode") == "ExactCount" && !has_count {
        request.insert("count", Value::Int(1));
    }
    default_tolerations(request);
}

/// Fills in the defaults of the tolerations of a request or of its result.
pub(super) fn default_tolerations(request: &mut Map) {
    for toleration in objects_in(request, "tolerations") {
        set_default_text(toleration, "operator", "Equal");
    }
}

/// The requests of a claim with their alternatives.
pub(super) type Requests<'v> = BTreeMap<&'v str, BTreeSet<&'v str>>;

/// The requests in the spec of a claim.
pub(super) fn requests_of(spec: Option<&Value>) -> Requests<'_> {
    let devices = spec.and_then(|spec| spec.get("devices"));
    let requests = devices.map_or(&[][..], |devices| devices.list("requests"));
    requests
        .iter()
        .map(|r| (r.get_str("name"), alternatives_of(r)))
        .collect()
}

fn alternatives_of(request: &Value) -> BTreeSet<&str> {
    let alternatives = request.list("firstAvailable").iter();
    alternatives.map(|r| r.get_str("name")).collect()
}

/// Checks the spec of a claim.
pub(super) fn check_spec(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let devices = spec.field("devices");
    let requests = devices.field("requests");
    let known = requests_of(spec.value());
    if errors.max_items(&requests, MAX_REQUESTS) {
        Rule::Each(check_request).check(&requests, errors);
        check_unique_names(&requests, "DeviceRequest", errors);
    }
    let constraints = devices.field("constraints");
    if errors.max_items(&constraints, MAX_CONSTRAINTS) {
        constraints
            .items()
            .for_each(|constraint| check_constraint(&constraint, &known, errors));
    }
    let configurations = devices.field("config");
    if errors.max_items(&configurations, MAX_CONFIGURATIONS) {
        for configuration in configurations.items() {
            check_references(&configuration.field("requests"), &known, errors);
            check_configuration(&configuration, errors);
        }
    }
}

fn check_unique_names(list: &Cursor<'_, '_>, ty: &str, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for item in list.items() {
        let name = item.field("name").str();
        if !seen.insert(name) {
            errors.duplicate(&item, versioned(ty, item.map()));
        }
    }
}

/// A struct as declarative validation shows it: in the form of its version.
pub(super) fn versioned(ty: &str, members: Option<&Map>) -> BadValue {
    let table = TypeTable::latest();
    let definition = table.known("resource/v1", ty);
    let members = table.canonical(definition, members.cloned().unwrap_or_default());
    let mut json = Vec::new();
    table.write_json(definition, &members.into(), &mut json);
    BadValue::Raw(String::from_utf8_lossy(&json).into_owned())
}

fn check_request(request: &Cursor<'_, '_>, errors: &mut ErrorList) {
    label(&request.field("name"), errors);
    let (exactly, alternatives) = (request.field("exactly"), request.field("firstAvailable"));
    match (exactly.is_set(), !alternatives.list().is_empty()) {
        (false, false) => errors.required(
            request,
            "exactly one of `exactly` or `firstAvailable` is required",
        ),
        (true, true) => {
            let why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            errors.invalid_value(request, Value::Null, why);
            // Hand-written validation stops at this error, but declarative validation also checks the alternatives.
            for alternative in alternatives.items() {
                Rule::RequiredForm(names::declared_subdomain)
                    .check(&alternative.field("deviceClassName"), errors);
                Rule::OneOf(MODES).check(&alternative.field("allocationMode"), errors);
            }
            check_unique_names(&alternatives, "DeviceSubRequest", errors);
        }
        (true, false) => check_devices(&exactly, names::dns1123_subdomain, errors),
        (false, true) => {
            if errors.max_items(&alternatives, MAX_ALTERNATIVES) {
                for alternative in alternatives.items() {
                    label(&alternative.field("name"), errors);
                    check_devices(&alternative, names::declared_subdomain, errors);
                }
                check_unique_names(&alternatives, "DeviceSubRequest", errors);
            }
        }
    }
}

fn check_devices(request: &Cursor<'_, '_>, class: fn(&str) -> Vec<String>, errors: &mut ErrorList) {
    Rule::RequiredForm(class).check(&request.field("deviceClassName"), errors);
    check_selectors(&request.field("selectors"), errors);
    let (mode, count) = (request.field("allocationMode"), request.field("count"));
    match mode.str() {
        "All" if count.int() != 0 => {
            errors.invalid(&count, "must not be specified when allocationMode is 'All'");
        }
        "ExactCount" if count.int() <= 0 => {
            errors.invalid_value(&count, count.int(), "must be greater than zero");
        }
        "All" | "ExactCount" => {}
        _ => errors.not_supported(&mode, MODES),
    }
    Rule::Each(taint::check_toleration).check(&request.field("tolerations"), errors);
}

fn check_constraint(constraint: &Cursor<'_, '_>, known: &Requests<'_>, errors: &mut ErrorList) {
    check_references(&constraint.field("requests"), known, errors);
    let (matched, distinct) = (
        constraint.field("matchAttribute"),
        constraint.field("distinctAttribute"),
    );
    if !matched.is_set() && !distinct.is_set() {
        // UPSTREAM: the text is that of the opposite mistake.
        let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
        errors.required(constraint, why);
    }
    for attribute in [matched, distinct] {
        Rule::IfSet(fully_qualified).check(&attribute, errors);
    }
}

/// References name requests, or a request and one of its alternatives.
pub(super) fn check_references(references: &Cursor<'_, '_>, known: &Requests<'_>, errors: &mut ErrorList) {
    if !errors.max_items(references, MAX_REQUESTS) {
        return;
    }
    let mut seen = BTreeSet::new();
    for reference in references.items() {
        check_reference(&reference, known, errors);
        errors.unique(&mut seen, &reference);
    }
}

/// A reference names a request, or a request and one of its alternatives.
pub(super) fn check_reference(reference: &Cursor<'_, '_>, known: &Requests<'_>, errors: &mut ErrorList) {
    let text = reference.str();
    let (name, alternative) = match text.split_once('/') {
        Some((name, alternative)) => (name, Some(alternative)),
        None => (text, None),
    };
    let is_nested = alternative.is_some_and(|alternative| alternative.contains('/'));
    if !is_nested {
        for part in text.split('/') {
            for why in names::dns1123_label(part) {
                errors.invalid_value(reference, part, why);
            }
        }
    }
    let is_known = |subs: &BTreeSet<&str>| alternative.is_none_or(|alternative| subs.contains(alternative));
    if is_nested || !known.get(name).is_some_and(is_known) {
        let why = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
        errors.invalid(reference, why);
    }
}

/// Checks the configurations of a device class.
pub(super) fn check_class_configurations(configurations: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if errors.max_items(configurations, MAX_CONFIGURATIONS) {
        Rule::Each(check_configuration).check(configurations, errors);
    }
}

/// A configuration is opaque to all but the driver.
pub(super) fn check_configuration(configuration: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let opaque = configuration.field("opaque");
    if !opaque.is_set() {
        return errors.required(&opaque, "");
    }
    declared_driver(&opaque.field("driver"), errors);
    let parameters = opaque.field("parameters");
    match parameters.is_set() {
        false => errors.required(&parameters, ""),
        true => check_raw(&parameters, errors),
    }
}

/// Checks that data of a driver are a JSON object of limited size.
pub(super) fn check_raw(data: &Cursor<'_, '_>, errors: &mut ErrorList) {
    match data.value() {
        Some(value) if value.to_json().len() > MAX_PARAMETERS => {
            errors.push_with(|| FieldError::too_long(data.path(), MAX_PARAMETERS));
        }
        None | Some(Value::Object(_)) => {}
        Some(_) => errors.invalid_value(data, "<value omitted>", "must be a valid JSON object"),
    }
}
