//! Volume mounts and block devices of containers.

use super::volumes;
use crate::Cursor;
use crate::checks::{Report, Rule};
use scantling_value::{ErrorList, FieldError, Value};
use std::collections::{BTreeMap, BTreeSet};

const PROPAGATION: Rule = Rule::OneOf(&["Bidirectional", "HostToContainer", "None"]);
const BIND_OPTIONS: &[&str] = &["nodev", "noexec", "nosuid"];

/// The volumes of a pod that are valid, by name.
#[derive(Debug, Default)]
pub(super) struct Volumes<'v>(BTreeMap<&'v str, &'v Value>);

impl<'v> Volumes<'v> {
    pub(super) fn get(&self, name: &str) -> Option<&'v Value> {
        self.0.get(name).copied()
    }

    pub(super) fn insert(&mut self, name: &'v str, volume: &'v Value) {
        self.0.insert(name, volume);
    }
}

/// The values of a field of all elements of a list.
fn texts<'v>(list: &Cursor<'v, '_>, field: &str) -> BTreeSet<&'v str> {
    list.list().iter().map(|item| item.get_str(field)).collect()
}

/// Checks the volume mounts of a container.
pub(super) fn check_mounts(container: &Cursor<'_, '_>, known: &Volumes<'_>, errors: &mut ErrorList) {
    let at = container.field("volumeMounts");
    let devices = container.field("volumeDevices");
    let [device_names, device_paths] = ["name", "devicePath"].map(|field| texts(&devices, field));
    let mut paths = BTreeSet::new();
    for mount in at.items() {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        Rule::Required.check(&name, errors);
        let volume = known.get(name.str());
        if volume.is_none() {
            errors.push_with(|| FieldError::not_found(name.path(), name.str()));
        }
        Rule::Required.check(&path, errors);
        if !paths.insert(path.str()) {
            errors.invalid(&path, "must be unique");
        }
        if device_names.contains(name.str()) {
            errors.invalid(&name, "must not already exist in volumeDevices");
        }
        if device_paths.contains(path.str()) {
            errors.invalid(&path, "must not already exist as a path in volumeDevices");
        }
        check_sub_paths(&mount, &at, errors);
        check_propagation(&mount, &at, container, errors);
        check_recursive_read_only(&mount, &at, errors);
        check_bind_options(&mount.field("bindMountOptions"), volume, errors);
    }
}

/// A mount uses a part of a volume by a fixed path or an expression. Errors in the paths are reported at the list.
fn check_sub_paths(mount: &Cursor<'_, '_>, list: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (path, expression) = (mount.field("subPath"), mount.field("subPathExpr"));
    if !path.str().is_empty() {
        volumes::descending_path(&path.with_path(list.path().field("subPath")), errors);
    }
    if !expression.str().is_empty() {
        if !path.str().is_empty() {
            errors.invalid(&expression, "subPathExpr and subPath are mutually exclusive");
        }
        volumes::descending_path(&expression.with_path(list.path().field("subPathExpr")), errors);
    }
}

fn check_propagation(
    mount: &Cursor<'_, '_>,
    list: &Cursor<'_, '_>,
    container: &Cursor<'_, '_>,
    errors: &mut ErrorList,
) {
    let propagation = mount.field("mountPropagation");
    // UPSTREAM: the path lacks the index of the mount, here and below.
    let propagation = propagation.with_path(list.path().field("mountPropagation"));
    PROPAGATION.check(&propagation, errors);
    let is_privileged = container.field("securityContext").field("privileged").bool();
    if propagation.str() == "Bidirectional" && !is_privileged {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.forbidden(&propagation, why);
    }
}

fn check_recursive_read_only(mount: &Cursor<'_, '_>, list: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mode = mount.field("recursiveReadOnly");
    let mode = mode.with_path(list.path().field("recursiveReadOnly"));
    if !mode.is_set() {
        return;
    }
    match mode.str() {
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !mount.field("readOnly").bool() {
                errors.forbidden(&mode, "may only be specified when readOnly is true");
            }
            let propagation = mount.field("mountPropagation");
            if propagation.is_set() && propagation.str() != "None" {
                let why = "may only be specified when mountPropagation is None or not specified";
                errors.forbidden(&mode, why);
            }
        }
        _ => errors.not_supported(&mode, &["Disabled", "Enabled", "IfPossible"]),
    }
}

fn check_bind_options(at: &Cursor<'_, '_>, volume: Option<&Value>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for option in at.items() {
        Rule::OneOf(BIND_OPTIONS).check(&option, errors);
        errors.unique(&mut seen, &option);
    }
    if !at.list().is_empty() && volume.is_some_and(|v| v.get("image").is_some()) {
        errors.invalid(at, "bindMountOptions may not be used with image volumes");
    }
}

/// Checks the block devices of a container.
pub(super) fn check_devices(container: &Cursor<'_, '_>, known: &Volumes<'_>, errors: &mut ErrorList) {
    let mounts = container.field("volumeMounts");
    if container.field("volumeDevices").list().is_empty() {
        return;
    }
    let [mount_names, mount_paths] = ["name", "mountPath"].map(|field| texts(&mounts, field));
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for device in container.field("volumeDevices").items() {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        let volume = known.get(name.str());
        Rule::Required.check(&name, errors);
        if names.contains(name.str()) {
            errors.invalid(&name, "must be unique");
        }
        let is_block = |v: &Value| v.get("persistentVolumeClaim").is_some() || v.get("ephemeral").is_some();
        match volume {
            Some(volume) if !is_block(volume) => {
                let why =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid(&name, why);
            }
            Some(_) => {}
            None => errors.push_with(|| FieldError::not_found(name.path(), name.str())),
        }
        Rule::Required.check(&path, errors);
        if paths.contains(path.str()) {
            errors.invalid(&path, "must be unique");
        }
        // A path with backsteps is refused, so that later paths are not compared with it.
        if path.str().split('/').any(|part| part == "..") {
            errors.invalid(&path, "can not contain backsteps ('..')");
        } else {
            paths.insert(path.str());
        }
        if mount_names.contains(name.str()) {
            errors.invalid(&name, "must not already exist in volumeMounts");
        }
        if mount_paths.contains(path.str()) {
            errors.invalid(&path, "must not already exist as a path in volumeMounts");
        }
        // Empty names are reported as missing, not as repeated.
        if !name.str().is_empty() {
            names.insert(name.str());
        }
    }
}

/// Variables from files need a volume that is an empty directory.
pub(super) fn check_file_variables(
    spec: &Cursor<'_, '_>,
    container: &Cursor<'_, '_>,
    errors: &mut ErrorList,
) {
    for variable in container.field("env").items() {
        let file = variable.field("valueFrom");
        let file = file.field("fileKeyRef");
        if !file.is_set() {
            continue;
        }
        let name = file.field("volumeName");
        let volumes = spec.field("volumes");
        let mut named = volumes.list().iter().filter(|v| v.get_str("name") == name.str());
        match named.next_back() {
            None => errors.push_with(|| FieldError::not_found(name.path(), name.str())),
            Some(volume) if volume.get("emptyDir").is_none() => {
                errors.invalid(&name, "referenced volume must be of type emptyDir");
            }
            Some(_) => {}
        }
    }
}
