//! Volumes of pods: one table of rules per source.

use super::claim_template;
use super::environment::{field_reference, resource_reference};
use super::mounts::Volumes;
use super::projected;
use super::rules::Rules;
use crate::Cursor;
use crate::checks::resources::quantity;
use crate::checks::{Report, Rule, check_fields, names, numbers};
use scantling_value::{ErrorList, Path, Value, go};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A kind of volume: its field, the last part of the path of its errors, and its rules.
struct Source {
    field: &'static str,
    /// The field in the error about a second source, where Kubernetes spells it differently.
    forbidden: &'static str,
    /// The field in errors about the source, where Kubernetes spells it differently.
    reported: &'static str,
    rules: &'static [(&'static str, Rule)],
}

const fn source(field: &'static str, rules: &'static [(&'static str, Rule)]) -> Source {
    Source {
        field,
        forbidden: field,
        reported: field,
        rules,
    }
}

const MODE: Rule = Rule::IfSet(file_mode);
const USER: Rule = Rule::IfSet(numbers::id);
const PARTITION: Rule = Rule::Check(partition);
const SECRET_NAME: Rule = Rule::Struct(&[("name", Rule::Required)]);

/// The sources in the order in which they are checked. Those with rules that are no table follow in [`check_other`].
const SOURCES: &[Source] = &[
    source("emptyDir", &[]),
    source("hostPath", &[]),
    source(
        "gitRepo",
        &[
            ("repository", Rule::Required),
            ("directory", Rule::Check(descending_path)),
        ],
    ),
    Source {
        reported: "persistentDisk",
        ..source(
            "gcePersistentDisk",
            &[("pdName", Rule::Required), ("partition", PARTITION)],
        )
    },
    source(
        "awsElasticBlockStore",
        &[("volumeID", Rule::Required), ("partition", PARTITION)],
    ),
    source(
        "secret",
        &[
            ("secretName", Rule::Required),
            ("defaultMode", MODE),
            ("defaultUser", USER),
            ("items", Rule::Each(key_to_path)),
        ],
    ),
    source(
        "nfs",
        &[
            ("server", Rule::Required),
            ("path", Rule::Required),
            ("path", Rule::Check(absolute_path)),
        ],
    ),
    source(
        "iscsi",
        &[
            ("targetPortal", Rule::Required),
            ("iqn", Rule::Check(iscsi_name)),
            (
                "lun",
                Rule::Check(|at, errors| numbers::between(at, 0, 255, errors)),
            ),
        ],
    ),
    source(
        "glusterfs",
        &[("endpoints", Rule::Required), ("path", Rule::Required)],
    ),
    source("flocker", &[]),
    source("persistentVolumeClaim", &[("claimName", Rule::Required)]),
    source("rbd", &[("monitors", Rule::Required), ("image", Rule::Required)]),
    source(
        "cinder",
        &[("volumeID", Rule::Required), ("secretRef", SECRET_NAME)],
    ),
    Source {
        forbidden: "cephFS",
        ..source("cephfs", &[("monitors", Rule::Required)])
    },
    source("quobyte", &[]),
    Source {
        // UPSTREAM: the typo is Kubernetes' own.
        forbidden: "downwarAPI",
        ..source("downwardAPI", &[("defaultMode", MODE), ("defaultUser", USER)])
    },
    source("fc", &[]),
    source(
        "flexVolume",
        &[("driver", Rule::Required), ("options", Rule::Check(flex_options))],
    ),
    source(
        "configMap",
        &[
            ("name", Rule::Required),
            ("defaultMode", MODE),
            ("defaultUser", USER),
            ("items", Rule::Each(key_to_path)),
        ],
    ),
    source(
        "azureFile",
        &[("secretName", Rule::Required), ("shareName", Rule::Required)],
    ),
    source("vsphereVolume", &[("volumePath", Rule::Required)]),
    source("photonPersistentDisk", &[("pdID", Rule::Required)]),
    source("portworxVolume", &[("volumeID", Rule::Required)]),
    source(
        "azureDisk",
        &[
            ("diskName", Rule::Required),
            ("diskURI", Rule::Required),
            ("cachingMode", Rule::OneOf(&["None", "ReadOnly", "ReadWrite"])),
            ("kind", Rule::OneOf(&["Dedicated", "Managed", "Shared"])),
        ],
    ),
    source(
        "storageos",
        &[
            ("volumeName", Rule::RequiredForm(names::dns1123_label)),
            ("volumeNamespace", Rule::Form(names::dns1123_label)),
            ("secretRef", SECRET_NAME),
        ],
    ),
    source("projected", &[("defaultMode", MODE), ("defaultUser", USER)]),
    source(
        "scaleIO",
        &[
            ("gateway", Rule::Required),
            ("system", Rule::Required),
            ("volumeName", Rule::Required),
        ],
    ),
    source("csi", &[("driver", Rule::Check(csi_driver))]),
    source("ephemeral", &[]),
    source("image", &[]),
];

/// Checks the volumes of a pod. `pod` is its name, empty for templates. Returns the volumes that are valid.
pub(super) fn check<'v>(
    at: &Cursor<'v, '_>,
    pod: &str,
    rules: &Rules<'_>,
    errors: &mut ErrorList,
) -> Volumes<'v> {
    let mut valid = Volumes::default();
    let ephemeral = at
        .list()
        .iter()
        .filter(|volume| volume.get("ephemeral").is_some());
    let ephemeral: BTreeSet<&str> = ephemeral.map(|volume| volume.get_str("name")).collect();
    // The controller names the claim of an ephemeral volume after the pod and the volume.
    let creates_claim = |claim: &str| {
        let volume = claim.strip_prefix(pod).and_then(|rest| rest.strip_prefix('-'));
        !pod.is_empty() && volume.is_some_and(|volume| ephemeral.contains(volume))
    };
    for volume in at.items() {
        let before = errors.total();
        let name = volume.field("name");
        check_source(&volume, name.str(), pod, rules, errors);
        Rule::RequiredForm(names::dns1123_label).check(&name, errors);
        if valid.get(name.str()).is_some() {
            errors.duplicate(&name, name.str());
        }
        if let Some(value) = volume.value().filter(|_| errors.total() == before) {
            valid.insert(name.str(), value);
        }
        let claim = volume.field("persistentVolumeClaim");
        let claim = claim.field("claimName");
        // The pod would wait for a claim that is created only because the pod exists.
        if claim.is_set() && creates_claim(claim.str()) {
            errors.invalid(
                &claim,
                "must not reference a PVC that gets created for an ephemeral volume",
            );
        }
    }
    valid
}

fn check_source(volume: &Cursor<'_, '_>, name: &str, pod: &str, rules: &Rules<'_>, errors: &mut ErrorList) {
    let members = volume.map().map_or(0, scantling_value::Map::len);
    let mut found = 0;
    for source in SOURCES {
        let at = volume.field(source.field);
        if !at.is_set() {
            continue;
        }
        found += 1;
        if found > 1 {
            let at = at.with_path(volume.path().field(source.forbidden));
            errors.forbidden(&at, "may not specify more than 1 volume type");
        } else {
            let at = at.with_path(volume.path().field(source.reported));
            check_fields(source.rules, &at, errors);
            check_other(source.field, &at, rules, errors);
            if source.field == "ephemeral" && !pod.is_empty() && !name.is_empty() {
                check_claim_name(volume, name, pod, errors);
            }
        }
        // kube-apiserver checks this even if another source comes first.
        if source.field == "iscsi" {
            check_portal_length(volume, name, errors);
        }
        // Volumes have a name and one source: the rest of the table is skipped.
        if found == 1 && members == 2 {
            return;
        }
    }
    if found == 0 {
        errors.required(volume, "must specify a volume type");
    }
}

/// Checks the rules of a source that span fields or depend on feature gates.
fn check_other(field: &str, at: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    match field {
        "emptyDir" => check_empty_dir(at, errors),
        "iscsi" => check_iscsi_authentication(at, errors),
        "downwardAPI" => {
            let items = at.field("items");
            items.items().for_each(|file| downward_file(&file, at, errors));
        }
        "projected" => projected::check_sources(at, rules, errors),
        "csi" => check_csi_secret(at, errors),
        "ephemeral" => {
            let template = at.field("volumeClaimTemplate");
            match template.is_set() {
                true => claim_template::validate(&template, rules.context, errors),
                false => errors.required(&template, ""),
            }
        }
        "image" => {
            let (reference, policy) = (at.field("reference"), at.field("pullPolicy"));
            if reference.str().is_empty() && !rules.allows_empty_image() {
                errors.required(&reference, "");
            }
            super::containers::PULL_POLICY.check(&policy, errors);
        }
        shared => check_across_fields(shared, at, errors),
    }
}

/// A source as errors name it: in the error about a second source, and in errors about its fields.
pub(in crate::core) fn reported_fields(field: &'static str) -> (&'static str, &'static str) {
    let source = SOURCES.iter().find(|s| s.field == field);
    source.map_or((field, field), |s| (s.forbidden, s.reported))
}

/// The name of a deprecated source in warnings, and the text.
pub(in crate::core) fn deprecation(field: &str) -> Option<(&'static str, &'static str)> {
    let shown = match SOURCES.iter().find(|s| s.field == field)?.field {
        "storageos" => "storageOS",
        field => field,
    };
    let why = match field {
        "photonPersistentDisk" => "deprecated in v1.11, non-functional in v1.16+",
        "scaleIO" => "deprecated in v1.16, non-functional in v1.22+",
        "flocker" | "quobyte" | "storageos" => "deprecated in v1.22, non-functional in v1.25+",
        "glusterfs" => "deprecated in v1.25, non-functional in v1.26+",
        "cephfs" | "rbd" => "deprecated in v1.28, non-functional in v1.31+",
        _ => return None,
    };
    Some((shown, why))
}

/// Checks the rules of a source that persistent volumes have, too.
pub(in crate::core) fn check_shared_source(field: &str, at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if let Some(source) = SOURCES.iter().find(|s| s.field == field) {
        check_fields(source.rules, at, errors);
    }
    check_across_fields(field, at, errors);
}

/// Checks the rules of a shared source that span fields.
fn check_across_fields(field: &str, at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    match field {
        "hostPath" => check_host_path(at, errors),
        "flocker" => check_flocker(at, errors),
        "quobyte" => check_quobyte(at, errors),
        "fc" => check_fibre_channel(at, errors),
        "azureDisk" => check_azure_disk(at, errors),
        _ => {}
    }
}

fn check_empty_dir(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (limit, mode) = (at.field("sizeLimit"), at.field("mode"));
    if limit.is_set() && quantity(limit.value()).sign() == Ordering::Less {
        errors.forbidden(&limit, "SizeLimit field must be a valid resource quantity");
    }
    if mode.is_set() && !(0..=0o1777).contains(&mode.int()) {
        let why = "must be a number between 0 and 01777 (octal), both inclusive";
        errors.invalid(&mode, why);
    }
}

fn check_host_path(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const TYPES: &[&str] = &[
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    let path = at.field("path");
    if path.str().is_empty() {
        return errors.required(&path, "");
    }
    no_backsteps(&path, errors);
    Rule::OneOf(TYPES).check(&at.field("type"), errors);
}

fn file_mode(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !(0..=0o777).contains(&at.int()) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.invalid(at, why);
    }
}

fn partition(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !(0..=255).contains(&at.int()) {
        // UPSTREAM: 0 is valid, although the text starts at 1.
        errors.invalid(at, numbers::range(1, 255));
    }
}

fn absolute_path(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !at.str().starts_with('/') {
        errors.invalid(at, "must be an absolute path");
    }
}

/// A path has no part `..`.
pub(in crate::core) fn no_backsteps(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.str().split('/').any(|part| part == "..") {
        errors.invalid(at, "must not contain '..'");
    }
}

/// A path is relative and has no part `..`.
pub(super) fn descending_path(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.str().starts_with('/') {
        errors.invalid(at, "must be a relative path");
    }
    no_backsteps(at, errors);
}

/// A path of a file in a volume.
pub(super) fn local_path(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    descending_path(at, errors);
    if at.str().starts_with("..") && !at.str().starts_with("../") {
        errors.invalid(at, "must not start with '..'");
    }
}

/// Returns whether a path is one of a file in a volume.
pub(super) fn is_local_path(path: &str) -> bool {
    let mut errors = ErrorList::new();
    let path = Value::from(path);
    local_path(&Cursor::at(Some(&path), Path::ROOT), &mut errors);
    errors.is_empty()
}

/// Checks a key of a config map or secret that becomes a file.
pub(super) fn key_to_path(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const RULES: &[(&str, Rule)] = &[
        ("key", Rule::Required),
        ("path", Rule::Required),
        ("path", Rule::Check(local_path)),
        ("mode", MODE),
        ("user", USER),
    ];
    check_fields(RULES, at, errors);
}

/// Checks a file with facts about the pod. Kubernetes reports errors at the volume.
pub(super) fn downward_file(file: &Cursor<'_, '_>, volume: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const FIELDS: &[&str] = &[
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
    ];
    const RULES: &[(&str, Rule)] = &[("mode", MODE), ("user", USER)];
    let file = file.with_path(*volume.path());
    let path = file.field("path");
    Rule::Required.check(&path, errors);
    local_path(&path, errors);
    let (field, resource) = (file.field("fieldRef"), file.field("resourceFieldRef"));
    match (field.is_set(), resource.is_set()) {
        (true, has_both) => {
            field_reference(&field, FIELDS, errors);
            if has_both {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid_value(&file, "resource", why);
            }
        }
        (false, true) => resource_reference(&resource, true, errors),
        (false, false) => errors.required(&file, "one of fieldRef and resourceFieldRef is required"),
    }
    check_fields(RULES, &file, errors);
}

/// Checks an iSCSI name: `iqn.…`, `eui.…` or `naa.…`.
fn iscsi_name(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    match at.str() {
        "" => errors.required(at, ""),
        name => {
            if let Some(why) = iscsi_fault(name) {
                errors.invalid(at, why);
            }
        }
    }
}

/// Returns what is wrong with an iSCSI name, if anything is.
pub(crate) fn iscsi_fault(name: &str) -> Option<&'static str> {
    let is_word =
        |text: &str, length: usize| text.len() == length && text.bytes().all(|b| b.is_ascii_alphanumeric());
    // UPSTREAM: any one character may separate the type and the number.
    let after_type = || {
        name.get(3..)
            .and_then(|rest| rest.char_indices().nth(1).and_then(|(i, _)| rest.get(i..)))
    };
    let is_valid = match name.get(..3) {
        Some("iqn") => is_qualified_name(name),
        Some("eui") => after_type().is_some_and(|number| is_word(number, 16)),
        Some("naa") => after_type().is_some_and(|number| is_word(number, 32)),
        _ => return Some("must be valid format starting with iqn, eui, or naa"),
    };
    (!is_valid).then_some("must be valid format")
}

/// Returns whether a name ends like `iqn.2001-04.com.example:storage`.
fn is_qualified_name(name: &str) -> bool {
    name.match_indices("iqn.").any(|(at, _)| {
        let rest = name.get(at + 4..).unwrap_or("");
        let is_date = rest.as_bytes().first_chunk::<8>().is_some_and(|date| {
            let [y1, y2, y3, y4, dash, m1, m2, dot] = date;
            [y1, y2, y3, y4, m1, m2].iter().all(|d| d.is_ascii_digit()) && (*dash, *dot) == (b'-', b'.')
        });
        let rest = rest.get(8..).filter(|_| is_date).unwrap_or("");
        rest.split_once(':').is_some_and(|(authority, target)| {
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.');
            let is_excluded = |c: char| ",;*&$|".contains(c) || c.is_ascii_whitespace();
            !authority.is_empty()
                && authority.bytes().all(is_plain)
                && !target.is_empty()
                && !target.contains(is_excluded)
        })
    })
}

fn check_iscsi_authentication(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let secret = at.field("secretRef");
    let authenticates = at.field("chapAuthDiscovery").bool() || at.field("chapAuthSession").bool();
    if authenticates && !secret.is_set() {
        errors.required(&secret, "");
    }
    let initiator = at.field("initiatorName");
    if let Some(why) = iscsi_fault(initiator.str()).filter(|_| initiator.is_set()) {
        // UPSTREAM: the path is in lower case.
        errors.invalid(&initiator.with_path(at.path().field("initiatorname")), why);
    }
}

fn check_portal_length(volume: &Cursor<'_, '_>, name: &str, errors: &mut ErrorList) {
    let iscsi = volume.field("iscsi");
    let portal = iscsi.field("targetPortal").str();
    if iscsi.field("initiatorName").is_set() && name.len() + 1 + portal.len() > 64 {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                   iscsi.initiatorName is specified.";
        errors.invalid(&volume.field("name"), why);
    }
}

fn check_flocker(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (name, uuid) = (at.field("datasetName"), at.field("datasetUUID"));
    match (name.str().is_empty(), uuid.str().is_empty()) {
        (true, true) => errors.required(at, "one of datasetName and datasetUUID is required"),
        (false, false) => {
            let why = "datasetName and datasetUUID can not be specified simultaneously";
            errors.invalid_value(at, "resource", why);
        }
        _ => {}
    }
    if name.str().contains('/') {
        errors.invalid(&name, "must not contain '/'");
    }
}

fn check_quobyte(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let (registry, tenant) = (at.field("registry"), at.field("tenant"));
    if registry.str().is_empty() {
        errors.required(&registry, PAIRS);
    } else if tenant.str().len() >= 65 {
        // UPSTREAM: a tenant that is too long is reported as missing.
        errors.required(
            &tenant,
            "must be a UUID and may not exceed a length of 64 characters",
        );
    } else {
        let pairs = registry.str().split(',');
        pairs
            .filter(|pair| !is_host_and_port(pair))
            .for_each(|_| errors.invalid(&registry, PAIRS));
    }
    Rule::Required.check(&at.field("volume"), errors);
}

/// Returns whether a text is `host:port`; either may be empty, and a host with colons is in brackets.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let inner = match host.strip_prefix('[') {
        Some(rest) => match rest.strip_suffix(']') {
            Some(inner) => inner,
            None => return false,
        },
        None if host.contains(':') => return false,
        None => host,
    };
    !inner.contains(['[', ']']) && !port.contains(['[', ']'])
}

fn check_fibre_channel(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (targets, ids, lun) = (at.field("targetWWNs"), at.field("wwids"), at.field("lun"));
    match (targets.list().is_empty(), ids.list().is_empty()) {
        (true, true) => {
            let why = "must specify either targetWWNs or wwids, but not both";
            errors.required(&targets, why);
        }
        (false, false) => {
            let why = "targetWWNs and wwids can not be specified simultaneously";
            errors.invalid(&targets, why);
        }
        _ => {}
    }
    if !targets.list().is_empty() {
        match lun.is_set() {
            true => numbers::between(&lun, 0, 255, errors),
            false => errors.required(&lun, "lun is required if targetWWNs is specified"),
        }
    }
}

fn flex_options(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for (key, option) in at.entries() {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            errors.invalid_value(&option, key, why);
        }
    }
}

fn check_azure_disk(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let (kind, uri) = (at.field("kind"), at.field("diskURI"));
    if !kind.is_set() {
        return;
    }
    let (prefix, form) = match kind.str() {
        "Managed" => ("/subscriptions/", MANAGED),
        _ => ("https://", BLOB),
    };
    if !uri.str().starts_with(prefix) {
        errors.not_supported(&uri, &[form]);
    }
}

/// The name of a CSI driver: a domain that may have capitals.
pub(crate) fn csi_driver(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MAX: usize = 63;
    if at.str().is_empty() {
        return errors.required(at, "");
    }
    errors.max_bytes(at, MAX);
    errors.invalid_for(at, names::dns1123_subdomain(&at.str().to_lowercase()));
}

fn check_csi_secret(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let secret = at.field("nodePublishSecretRef");
    if !secret.is_set() {
        return;
    }
    let name = secret.field("name");
    match name.str() {
        "" => errors.required(&name, ""),
        // Kubernetes reports a malformed name one level up.
        text => errors.invalid_for(
            &name.with_path(at.path().field("name")),
            names::dns1123_subdomain(text),
        ),
    }
}

fn check_claim_name(volume: &Cursor<'_, '_>, name: &str, pod: &str, errors: &mut ErrorList) {
    let claim = format!("{pod}-{name}");
    for why in names::dns1123_subdomain(&claim) {
        let claim = go::quote(&claim);
        errors.invalid(&volume.field("name"), format!("PVC name {claim}: {why}"));
    }
}
