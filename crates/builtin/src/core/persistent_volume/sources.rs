//! Sources of persistent volumes. Most are sources of pod volumes, too.

use crate::Cursor;
use crate::checks::defaults::set_static;
use crate::checks::{Report, Rule, check_fields, names, numbers};
use crate::core::pod::volumes::{
    check_shared_source, csi_driver, deprecation, iscsi_fault, no_backsteps, reported_fields,
};
use crate::prepare::set_default;
use scantling_value::{ErrorList, Map, Value};

/// The sources in the order in which they are checked.
const SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// Sources with which the annotation for mount options may be used.
pub(super) const SUPPORT_MOUNT_OPTIONS: &[&str] = &[
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

const SECRET: Rule = Rule::Struct(&[
    ("name", Rule::RequiredForm(names::dns1123_subdomain)),
    ("namespace", Rule::RequiredForm(names::dns1123_label)),
]);
const NAMED_SECRET: Rule = Rule::Struct(&[("name", Rule::Required), ("namespace", Rule::Required)]);

const CSI: &[(&str, Rule)] = &[
    ("driver", Rule::Check(csi_driver)),
    ("volumeHandle", Rule::Required),
    ("controllerPublishSecretRef", SECRET),
    ("controllerExpandSecretRef", SECRET),
    ("nodePublishSecretRef", SECRET),
    ("nodeExpandSecretRef", SECRET),
];

const STORAGE_OS: &[(&str, Rule)] = &[
    ("volumeName", Rule::RequiredForm(names::dns1123_label)),
    ("volumeNamespace", Rule::Form(names::dns1123_label)),
    ("secretRef", NAMED_SECRET),
];

/// The field of the first source.
pub(super) fn first(spec: &Cursor<'_, '_>) -> Option<&'static str> {
    SOURCES.iter().copied().find(|field| spec.field(field).is_set())
}

/// The members of a spec that are sources.
pub(super) fn select(spec: Option<&Value>) -> Value {
    let sources = SOURCES
        .iter()
        .filter_map(|field| Some((*field, spec?.get(field)?.clone())));
    Value::Object(Map::from_iter(sources))
}

/// Fills in the defaults of sources.
pub(super) fn set_defaults(spec: &mut Map) {
    const TYPES: [(&str, &str); 4] = [
        ("iscsi", "ISCSIPersistentVolumeSource"),
        ("rbd", "RBDPersistentVolumeSource"),
        ("azureDisk", "AzureDiskVolumeSource"),
        ("scaleIO", "ScaleIOPersistentVolumeSource"),
    ];
    for (field, name) in TYPES {
        if let Some(source) = spec.get_mut(field).and_then(Value::as_object_mut) {
            set_static(source, name);
        }
    }
    if let Some(host) = spec.get_mut("hostPath").and_then(Value::as_object_mut) {
        set_default(host, "type", "");
    }
}

/// Checks that exactly one source is set, and validates it. `name` is the name of the volume.
pub(super) fn check(spec: &Cursor<'_, '_>, name: &str, errors: &mut ErrorList) {
    let mut n_sources = 0;
    for source in SOURCES {
        let at = spec.field(source);
        if !at.is_set() {
            continue;
        }
        n_sources += 1;
        // Flex volumes may come second, as in Kubernetes.
        let (forbidden, reported) = reported_fields(source);
        if n_sources > 1 && *source != "flexVolume" {
            let at = at.with_path(spec.path().field(forbidden));
            errors.forbidden(&at, "may not specify more than 1 volume type");
        } else {
            let at = at.with_path(spec.path().field(reported));
            check_source(source, &at, name, errors);
        }
    }
    if n_sources == 0 {
        errors.required(spec, "must specify a volume type");
    }
}

fn check_source(field: &str, at: &Cursor<'_, '_>, name: &str, errors: &mut ErrorList) {
    match field {
        "iscsi" => check_iscsi(at, name, errors),
        "csi" => check_fields(CSI, at, errors),
        "storageos" => check_fields(STORAGE_OS, at, errors),
        "cinder" => {
            Rule::Required.check(&at.field("volumeID"), errors);
            NAMED_SECRET.check(&at.field("secretRef"), errors);
        }
        "local" => {
            let path = at.field("path");
            match path.str() {
                "" => errors.required(&path, ""),
                _ => no_backsteps(&path, errors),
            }
        }
        shared => {
            check_shared_source(shared, at, errors);
            match shared {
                "glusterfs" => check_endpoints_namespace(&at.field("endpointsNamespace"), errors),
                "azureFile" if at.field("secretNamespace").is_set() => {
                    Rule::Required.check(&at.field("secretNamespace"), errors);
                }
                _ => {}
            }
        }
    }
}

fn check_endpoints_namespace(namespace: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !namespace.is_set() {
        return;
    }
    match namespace.str() {
        "" => errors.invalid(
            namespace,
            "if the endpointnamespace is set, it must be a valid namespace name",
        ),
        name => errors.invalid_for(namespace, names::dns1123_label(name)),
    }
}

fn check_iscsi(at: &Cursor<'_, '_>, name: &str, errors: &mut ErrorList) {
    const MALFORMED: &str = "must be valid format";
    const MAX_PORTAL: usize = 64;
    let (portal, initiator, iqn) = (
        at.field("targetPortal"),
        at.field("initiatorName"),
        at.field("iqn"),
    );
    Rule::Required.check(&portal, errors);
    if initiator.is_set() && name.len() + 1 + portal.str().len() > MAX_PORTAL {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                   iscsi.initiatorName is specified.";
        // UPSTREAM: paths of these two errors are in lower case.
        errors.invalid(&portal.with_path(at.path().field("targetportal")), why);
    }
    match iqn.str() {
        "" => errors.required(&iqn, ""),
        name if iscsi_fault(name).is_some() => errors.invalid(&iqn, MALFORMED),
        _ => {}
    }
    numbers::between(&at.field("lun"), 0, 255, errors);
    let secret = at.field("secretRef");
    let authenticates = at.field("chapAuthDiscovery").bool() || at.field("chapAuthSession").bool();
    if authenticates && !secret.is_set() {
        errors.required(&secret, "");
    }
    Rule::Struct(&[("name", Rule::Required)]).check(&secret, errors);
    if initiator.is_set() && iscsi_fault(initiator.str()).is_some() {
        errors.invalid(&initiator.with_path(at.path().field("initiatorname")), MALFORMED);
    }
}

/// Adds warnings about sources that no longer work.
pub(super) fn warn(spec: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    let set = SOURCES.iter().filter(|field| spec.field(field).is_set());
    // kube-apiserver does not warn about these two, although pods with them get a warning.
    for field in set.filter(|field| !matches!(**field, "flocker" | "quobyte")) {
        if let Some((shown, why)) = deprecation(field) {
            warnings.push(format!("spec.{shown}: {why}"));
        }
    }
}
