//! Names of drivers, pools, devices and attributes.

use crate::Cursor;
use crate::checks::{Report, names};
use scantling_value::{ErrorKind, ErrorList, FieldError, Value};

const MAX_DRIVER: usize = 63;
const MAX_POOL: usize = 253;
const MAX_IDENTIFIER: usize = 32;

/// Checks the name of a request, a subrequest or a device.
pub(super) fn label(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    errors.invalid_for(at, names::dns1123_label(at.str()));
}

/// Checks the name of a set of counters.
pub(super) fn required_label(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    match at.str() {
        "" => errors.required(at, ""),
        name => errors.invalid_for(at, names::declared(names::dns1123_label(name))),
    }
}

/// Checks the name of a driver, with the texts of declarative validation.
pub(super) fn declared_driver(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.str().is_empty() {
        return errors.required(at, "");
    }
    errors.invalid_for(at, names::caseless_subdomain(at.str()));
    // Declarative validation counts characters, unlike `driver`, which counts bytes.
    if at.str().chars().count() > MAX_DRIVER {
        let detail = format!("may not be more than {MAX_DRIVER} characters");
        errors.push_with(|| FieldError::new(ErrorKind::TooLong, at.path(), Value::Null, detail));
    }
}

/// Checks the name of a driver in a slice or a status.
pub(super) fn driver(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    match at.str() {
        "" => errors.required(at, ""),
        name => domain(at, name, errors),
    }
}

fn domain(at: &Cursor<'_, '_>, name: &str, errors: &mut ErrorList) {
    if name.len() > MAX_DRIVER {
        errors.push_with(|| FieldError::too_long(at.path(), MAX_DRIVER));
    }
    for why in names::dns1123_subdomain(&name.to_lowercase()) {
        errors.invalid_value(at, name, why);
    }
}

/// Checks the name of a pool: subdomains joined by slashes.
pub(super) fn pool(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.str().is_empty() {
        return errors.required(at, "");
    }
    errors.max_bytes(at, MAX_POOL);
    for part in at.str().split('/') {
        for why in names::dns1123_subdomain(part) {
            errors.invalid_value(at, part, why);
        }
    }
}

/// Checks the name of a pool, with the texts of declarative validation.
pub(super) fn declared_pool(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.str().is_empty() {
        return errors.required(at, "");
    }
    errors.max_bytes(at, MAX_POOL);
    for (i, part) in at.str().split('/').enumerate() {
        if part.is_empty() {
            errors.invalid(at, format!("segment {i}: must not be empty"));
            continue;
        }
        for why in names::declared_subdomain(part) {
            errors.invalid_value(at, part, format!("segment {i}: {why}"));
        }
    }
}

/// Checks the name of an attribute or a capacity: an identifier, with or without a domain. A name with several slashes is
/// accepted, as kube-apiserver does.
pub(super) fn qualified(at: &Cursor<'_, '_>, name: &str, errors: &mut ErrorList) {
    match name.split_once('/') {
        None => identifier(at, name, errors),
        Some((_, rest)) if rest.contains('/') => {}
        Some((prefix, rest)) => {
            match prefix {
                "" => errors.invalid_value(at, "", "the domain must not be empty"),
                _ => domain(at, prefix, errors),
            }
            match rest {
                "" => errors.invalid_value(at, "", "the name must not be empty"),
                _ => identifier(at, rest, errors),
            }
        }
    }
}

/// Checks the name of an attribute with its domain, with the texts of declarative validation.
pub(super) fn fully_qualified(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let Some((prefix, name)) = at.str().split_once('/') else {
        identifier(at, at.str(), errors);
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        return errors.invalid(at, why);
    };
    if name.contains('/') {
        return;
    }
    if prefix.is_empty() {
        errors.invalid_value(at, "", "prefix must not be empty");
    } else {
        if prefix.len() > MAX_DRIVER {
            errors.push_with(|| FieldError::too_long(at.path(), MAX_DRIVER));
        }
        for why in names::declared_subdomain(prefix) {
            errors.invalid_value(at, prefix, format!("prefix: {why}"));
        }
    }
    match name {
        "" => errors.invalid_value(at, "", "name must not be empty"),
        _ => identifier(at, name, errors),
    }
}

fn identifier(at: &Cursor<'_, '_>, name: &str, errors: &mut ErrorList) {
    if name.len() > MAX_IDENTIFIER {
        errors.push_with(|| FieldError::too_long(at.path(), MAX_IDENTIFIER));
    }
    for why in names::c_identifier(name) {
        errors.invalid_value(at, name, why);
    }
}
