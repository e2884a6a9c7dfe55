//! Nodes.

use crate::checks::defaults::round_list;
use crate::checks::gates::drop_disabled;
use crate::checks::update::keep;
use crate::checks::{Report, Rule, check_fields, go, ip, labels, names, numbers, resources, tolerations};
use crate::prepare::{object_if_set, object_in, set_default};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_value::{ErrorKind, ErrorList, FieldError, Limits, Map, Value, go as go_text, json};
use std::collections::BTreeSet;

/// The annotation that held taints.
const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";

/// The annotation that lists controllers whose pods the node should not run.
const AVOID_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// Nodes.
pub(crate) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn,
    selectable_field,
    ..KindBehavior::new(KindFacts {
        selectable: &["spec.unschedulable"],
        validates_name_on_update: true,
        ..KindFacts::new("", "Node")
    })
};

fn default(object: &mut Map, _context: &Context<'_>) {
    if let Some(spec) = object_if_set(object, "spec") {
        unite_cidrs(spec);
    }
    if let Some(status) = object_if_set(object, "status") {
        round_list(status.get_mut("capacity"));
        round_list(status.get_mut("allocatable"));
        if let Some(capacity) = status.get("capacity").cloned() {
            set_default(status, "allocatable", capacity);
        }
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    match (write.operation, write.subresource) {
        (Operation::Create, _) => {
            // The feature is removed: only stored nodes keep these fields.
            for (part, field) in [("spec", "configSource"), ("status", "config")] {
                if let Some(part) = object_if_set(object, part) {
                    part.remove(field);
                }
            }
        }
        (Operation::Update(old), Subresource::Status) => {
            keep(object, old, "spec");
            if old.at(["status", "config"]).is_none()
                && let Some(status) = object_if_set(object, "status")
            {
                status.remove("config");
            }
            return;
        }
        (Operation::Update(old), _) => {
            keep(object, old, "status");
            if old.at(["spec", "configSource"]).is_none()
                && let Some(spec) = object_if_set(object, "spec")
            {
                spec.remove("configSource");
            }
        }
    }
    for (part, ty) in [("spec", "NodeSpec"), ("status", "NodeStatus")] {
        let old = write.old().and_then(|old| old.get(part));
        if let Some(members) = object_in(object, part) {
            drop_disabled("core/v1", ty, members, old, &write.context);
        }
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource != Subresource::Status {
        check_node(&root, errors);
    }
    if let Operation::Update(old) = write.operation {
        check_update(&root, old, errors);
    }
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    if write.subresource == Subresource::Status {
        return;
    }
    let root = Cursor::root(object);
    let spec = root.field("spec");
    if spec.field("configSource").is_set() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.field("externalID").str().is_empty() {
        let text = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        warnings.push(text.to_owned());
    }
    for cidr in spec.field("podCIDRs").items() {
        ip::cidr_warnings(cidr.path(), cidr.str(), warnings);
    }
}

fn selectable_field(object: &Value, field: &str) -> String {
    match field {
        "spec.unschedulable" => {
            let flag = object.at(["spec", "unschedulable"]).and_then(Value::as_bool);
            flag.unwrap_or(false).to_string()
        }
        field => object.str_at(field.split('.')).to_owned(),
    }
}

/// The first range of addresses and the list of ranges go together; the former wins.
fn unite_cidrs(spec: &mut Map) {
    let first = spec
        .get("podCIDRs")
        .and_then(Value::as_array)
        .and_then(|list| list.first())
        .cloned();
    match (spec.get("podCIDR").cloned(), first) {
        (Some(Value::String(single)), first)
            if !single.is_empty() && first.as_ref().and_then(Value::as_str) != Some(single.as_str()) =>
        {
            spec.insert("podCIDRs", vec![single].into());
        }
        (_, Some(first)) => {
            spec.insert("podCIDR", first);
        }
        _ => {}
    }
}

fn check_node(root: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (metadata, spec, status) = (root.field("metadata"), root.field("spec"), root.field("status"));
    check_annotations(&metadata, errors);
    // Kubernetes reports errors of taints under `metadata`.
    let taints = spec.field("taints");
    check_taints(&taints.with_path(metadata.path().field("taints")), errors);
    check_resources(&status, errors);
    let info = status.field("nodeInfo");
    let swap = info.field("swap");
    let capacity = swap.field("capacity");
    if capacity.is_set() {
        let reported = metadata.path().field("nodeSwapStatus");
        // UPSTREAM: the error is at `metadata`, where the node has no such field.
        numbers::positive(&capacity.with_path(reported.field("capacity")), errors);
    }
    check_features(&status.field("declaredFeatures"), errors);
    let cidrs = spec.field("podCIDRs");
    cidrs
        .items()
        .for_each(|cidr| ip::check_cidr_unless_stored(&cidr, &BTreeSet::new(), errors));
    check_families(&cidrs, errors);
}

/// A node has at most one range of addresses of each family.
fn check_families(cidrs: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let list = cidrs.list();
    if list.len() < 2 {
        return;
    }
    let texts = list.iter().map(|cidr| cidr.as_str().unwrap_or(""));
    let parsed: Vec<_> = texts.clone().map(ip::Cidr::parse_sloppy).collect();
    if let Some((i, text)) = texts
        .enumerate()
        .find(|(i, _)| parsed.get(*i).is_some_and(Option::is_none))
    {
        let why = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{i}]: <nil> (invalid CIDR address: \
             {text})"
        );
        errors.push_with(|| FieldError::internal(cidrs.path(), why));
    }
    let families: BTreeSet<bool> = parsed
        .iter()
        .flatten()
        .map(|cidr| cidr.address.is_ipv6())
        .collect();
    let is_dual = families.len() == 2 && parsed.iter().all(Option::is_some);
    if !is_dual || list.len() > 2 {
        errors.invalid(cidrs, "may specify no more than one CIDR for each IP family");
    }
}

fn check_annotations(metadata: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let annotations = metadata.field("annotations");
    let text = |key: &str| annotations.map().map_or("", |map| map.get_str(key));
    if !text(AVOID_PODS).is_empty() {
        check_avoided_pods(&annotations, text(AVOID_PODS), errors);
    }
    let text = text(TAINTS);
    if text.is_empty() {
        return;
    }
    match json::decode(text.as_bytes(), Limits::SERVER) {
        Ok(taints @ (Value::Array(_) | Value::Null)) => {
            check_taints(
                &Cursor::at(Some(&taints), annotations.path().field(TAINTS)),
                errors,
            );
        }
        Ok(other) => {
            let kind = go_text::json_kind(&other);
            let why = format!("json: cannot unmarshal {kind} into Go value of type []core.Taint");
            errors.invalid_value(&annotations, TAINTS, why);
        }
        Err(e) => errors.invalid_value(&annotations, TAINTS, e.to_string()),
    }
}

/// Checks the annotation that lists controllers: each entry must name one.
fn check_avoided_pods(annotations: &Cursor<'_, '_>, text: &str, errors: &mut ErrorList) {
    let refused = |why: String, errors: &mut ErrorList| {
        let at = annotations.path().field("AvoidPods");
        errors.push_with(|| FieldError::invalid(&at, AVOID_PODS, why));
    };
    let avoided = match json::decode(text.as_bytes(), Limits::SERVER) {
        Ok(avoided @ (Value::Object(_) | Value::Null)) => avoided,
        Ok(other) => {
            let kind = go_text::json_kind(&other);
            let why = format!("json: cannot unmarshal {kind} into Go value of type v1.AvoidPods");
            return refused(why, errors);
        }
        Err(e) => return refused(e.to_string(), errors),
    };
    let list = annotations.path().field(AVOID_PODS);
    for (i, entry) in avoided.list("preferAvoidPods").iter().enumerate() {
        let at = list.index(i);
        let signature = at.field("PodSignature");
        match entry.at(["podSignature", "podController"]) {
            None => errors.push_with(|| FieldError::required(&signature, "")),
            Some(owner) if owner.get("controller").and_then(Value::as_bool) != Some(true) => {
                let controller = signature.field("PodController");
                let why = "must point to a controller";
                errors.push_with(|| FieldError::invalid(&controller.field("Controller"), false, why));
            }
            Some(_) => {}
        }
    }
}

fn check_taints(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for taint in at.items() {
        let [key, value, effect] = ["key", "value", "effect"].map(|field| taint.field(field));
        labels::key(&key, errors);
        let wrong = names::label_value(value.str());
        if !wrong.is_empty() {
            errors.invalid(&value, wrong.join(";"));
        }
        tolerations::EFFECT.check(&effect, errors);
        if !seen.insert((effect.str(), key.str())) {
            let shown = go::structure("core/v1", "Taint", taint.value());
            let why = "taints must be unique by key and effect pair";
            errors.push_with(|| FieldError::new(ErrorKind::Duplicate, taint.path(), shown, why));
        }
    }
}

fn check_resources(status: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for list in ["capacity", "allocatable"] {
        let list = status.field(list);
        for (name, amount) in list.entries() {
            resources::amount(name, &amount.with_path(list.path().field(name)), errors);
        }
    }
}

/// Features are sorted and have names like `MyFeature/part`.
fn check_features(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MAX: usize = 253;
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    for (i, feature) in at.items().enumerate() {
        let name = feature.str();
        let quoted = go_text::quote(name);
        if name.len() > MAX {
            let why = format!("invalid feature name {quoted}: must be no more than {MAX} characters");
            errors.invalid(&feature, why);
        } else if !name.starts_with(|c: char| c.is_ascii_uppercase()) || !name.split('/').all(is_word) {
            let why = format!(
                "invalid feature name {quoted}: must start with an UpperCamelCase segment, with subsequent segments \
                 separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and \
                 slashes"
            );
            errors.invalid(&feature, why);
        }
        let Some(next) = at.list().get(i + 1).and_then(Value::as_str) else {
            continue;
        };
        let next_at = at.path().index(i + 1);
        if name == next {
            errors.push_with(|| FieldError::duplicate(&next_at, next));
        } else if name > next {
            let why = "list must be sorted alphabetically";
            errors.push_with(|| FieldError::invalid(&next_at, next, why));
        }
    }
}

fn check_update(root: &Cursor<'_, '_>, old: &Value, errors: &mut ErrorList) {
    let (metadata, spec, status) = (root.field("metadata"), root.field("spec"), root.field("status"));
    check_annotations(&metadata, errors);
    check_resources(&status, errors);
    check_features(&status.field("declaredFeatures"), errors);
    let mut seen = BTreeSet::new();
    for address in status.field("addresses").items() {
        if !seen.insert((address.field("type").str(), address.field("address").str())) {
            errors.duplicate(&address, go::structure("core/v1", "NodeAddress", address.value()));
        }
    }
    let (cidrs, before) = (spec.field("podCIDRs"), old.list_at(["spec", "podCIDRs"]));
    const KEPT: &str = "node updates may not change podCIDR except from \"\" to valid";
    if !before.is_empty() && before.len() != cidrs.list().len() {
        errors.forbidden(&cidrs, KEPT);
    } else {
        // UPSTREAM: the same error for each range that differs.
        let changed = before.iter().zip(cidrs.list()).filter(|(a, b)| a != b);
        changed.for_each(|_| errors.forbidden(&cidrs, KEPT));
    }
    let provider = spec.field("providerID");
    let stored = old.str_at(["spec", "providerID"]);
    if !stored.is_empty() && provider.str() != stored {
        let done = if provider.str().is_empty() {
            "cleared"
        } else {
            "modified"
        };
        let why = format!("field cannot be {done} once set");
        // UPSTREAM: the error shows `null` instead of the new value.
        errors.invalid_value(&provider, Value::Null, why);
    }
    let source = spec.field("configSource");
    if source.is_set() {
        check_config_source(&source, true, errors);
    }
    let config = status.field("config");
    for field in ["assigned", "active", "lastKnownGood"] {
        let source = config.field(field);
        if source.is_set() {
            check_config_source(&source, false, errors);
        }
    }
    let taints = spec.field("taints");
    check_taints(&taints.with_path(metadata.path().field("taints")), errors);
    let external = spec.field("externalID");
    if external.str() != old.str_at(["spec", "externalID"]) {
        errors.forbidden(&external, "may not be updated");
    }
}

/// Checks a reference to a kubelet's configuration, which only stored nodes have.
fn check_config_source(at: &Cursor<'_, '_>, is_spec: bool, errors: &mut ErrorList) {
    const RULES: &[(&str, Rule)] = &[
        ("namespace", Rule::RequiredForm(names::dns1123_label)),
        ("name", Rule::RequiredForm(names::dns1123_subdomain)),
        ("kubeletConfigKey", Rule::RequiredForm(names::config_key)),
    ];
    let map = at.field("configMap");
    if !map.is_set() {
        let shown = go::structure("core/v1", "NodeConfigSource", at.value());
        return errors.invalid_value(at, shown, "exactly one reference subfield must be non-nil");
    }
    for field in ["uid", "resourceVersion"] {
        let value = map.field(field);
        match (is_spec, value.str().is_empty()) {
            (true, false) => errors.forbidden(&value, format!("{field} must not be set in spec")),
            (false, true) => errors.required(&value, ""),
            _ => {}
        }
    }
    check_fields(RULES, &map, errors);
}
