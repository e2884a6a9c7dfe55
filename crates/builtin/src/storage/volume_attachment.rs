//! Volume attachments.

use super::GROUP;
use crate::checks::update::{IMMUTABLE, same_of, separate_status};
use crate::checks::{Report, Rule, names, numbers};
use crate::core::persistent_volume::{check_inline_spec, default_inline_spec};
use crate::core::pod::volumes::csi_driver;
use crate::prepare::{keep_metadata_of_status, object_if_set};
use crate::{Context, Cursor, KindBehavior, KindFacts, Subresource, Write};
use scantling_value::{ErrorKind, ErrorList, FieldError, Map, Value};

/// The attachment of a volume to a node.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        validates_name_on_update: true,
        unconditional_update: false,
        delete_returns_object: true,
        status_keeps: &[&["metadata"], &["spec"]],
        ..KindFacts::new(GROUP, "VolumeAttachment")
    })
};

const MAX_ATTACHER: usize = 63;
const MAX_METADATA: usize = 256 << 10;
const MAX_MESSAGE: usize = 1024;
const ONE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

fn default(object: &mut Map, _context: &Context<'_>) {
    let spec = object_if_set(object, "spec").and_then(|s| object_if_set(s, "source"));
    if let Some(inline) = spec.and_then(|s| object_if_set(s, "inlineVolumeSpec")) {
        default_inline_spec(inline);
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    separate_status(object, write);
    if let (Some(old), Subresource::Status) = (write.old(), write.subresource) {
        keep_metadata_of_status(object, old);
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let (spec, status) = (root.field("spec"), root.field("status"));
    let attacher = spec.field("attacher");
    // The texts of creates are those of Kubernetes' declarative validation. An update that changes the spec does not
    // get that far: the whole spec is immutable.
    match write.old() {
        None => check_attacher(&attacher, errors),
        Some(_) => csi_driver(&attacher, errors),
    }
    let source = spec.field("source");
    check_source(&source, errors);
    let node = spec.field("nodeName");
    errors.invalid_for(&node, names::dns1123_subdomain(node.str()));
    check_status(&status, errors);
    let volume = source.field("persistentVolumeName");
    if volume.is_set() {
        errors.invalid_for(&volume, names::dns1123_subdomain(volume.str()));
    }
    let stored = write.old().map(|o| o.get("spec"));
    let is_same = |old| same_of("storage/v1", "VolumeAttachmentSpec", spec.value(), old);
    if stored.is_some_and(|old| !is_same(old)) {
        errors.invalid_value(&spec, Value::Null, IMMUTABLE);
    }
}

fn check_attacher(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.str().is_empty() {
        return errors.required(at, "");
    }
    errors.invalid_for(at, names::caseless_subdomain(at.str()));
    if at.str().chars().count() > MAX_ATTACHER {
        let detail = format!("may not be more than {MAX_ATTACHER} characters");
        let error = || FieldError::new(ErrorKind::TooLong, at.path(), Value::Null, detail);
        errors.push_with(error);
    }
}

fn check_source(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (inline, volume) = (at.field("inlineVolumeSpec"), at.field("persistentVolumeName"));
    match (inline.is_set(), volume.is_set()) {
        (false, false) => errors.required(at, ONE_SOURCE),
        (true, true) => errors.forbidden(at, ONE_SOURCE),
        (false, true) => {
            Rule::RequiredFor("must specify non empty persistentVolumeName").check(&volume, errors);
        }
        (true, false) => check_inline_spec(&inline, errors),
    }
}

fn check_status(status: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let metadata = status.field("attachmentMetadata");
    let size: usize = metadata.entries().map(|(k, v)| k.len() + v.str().len()).sum();
    if size > MAX_METADATA {
        errors.push(FieldError::too_long(metadata.path(), MAX_METADATA));
    }
    for field in ["attachError", "detachError"] {
        let error = status.field(field);
        let (message, code) = (error.field("message"), error.field("errorCode"));
        errors.max_bytes(&message, MAX_MESSAGE);
        if code.int() < 0 {
            errors.invalid(&code, numbers::range(0, i64::from(i32::MAX)));
        }
    }
}
