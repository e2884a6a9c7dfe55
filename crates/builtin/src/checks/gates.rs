//! Fields of disabled feature gates.
//!
//! The table of API types names the gate of a field. A write drops such a field while its gate is disabled, unless the stored
//! object uses a field of the same gate.

use crate::prepare::{StructName, object_if_set};
use crate::{Context, Write};
use scantling_apitypes::{FieldDef, GoType, TypeDef, TypeId, TypeTable};
use scantling_value::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// A field that has a gate, or that leads to such fields.
struct GateStep {
    field: &'static str,
    gate: Option<&'static str>,
    /// The struct that the field holds, behind pointers, lists and maps, if gated fields are below it.
    into: Option<TypeId>,
    /// True if the field is a map.
    is_map: bool,
    /// A gate, and fields beside this one. If one of them is set, the fields of the gate below this one stay.
    spared: Option<(&'static str, &'static [&'static str])>,
}

type DropPlan = BTreeMap<TypeId, Vec<GateStep>>;

/// The fields of all structs that have a gate or lead to one.
fn plan() -> &'static DropPlan {
    static PLAN: OnceLock<DropPlan> = OnceLock::new();
    PLAN.get_or_init(|| {
        let table = TypeTable::latest();
        let mut reaching: BTreeSet<TypeId> = BTreeSet::new();
        let leads = |d: &TypeDef, reaching: &BTreeSet<TypeId>| {
            d.members().iter().any(|field| {
                let into = held_struct(table, &field.ty);
                gate_of(d.name, field).is_some() || into.is_some_and(|id| reaching.contains(&id))
            })
        };
        // Types refer to each other in any order, so that the search repeats until it finds no more.
        loop {
            let found = table
                .definitions()
                .iter()
                .filter(|d| !reaching.contains(&d.id) && leads(d, &reaching));
            let found: Vec<TypeId> = found.map(|d| d.id).collect();
            if found.is_empty() {
                break;
            }
            reaching.extend(found);
        }
        let steps = |d: &TypeDef| {
            let steps = d.members().iter().filter_map(|field| {
                let gate = gate_of(d.name, field);
                let gate = gate.filter(|_| !NEVER_DROPPED.contains(&(d.name, field.name)));
                let into = held_struct(table, &field.ty).filter(|id| reaching.contains(id));
                (gate.is_some() || into.is_some()).then_some(GateStep {
                    field: field.name,
                    gate,
                    into,
                    is_map: matches!(table.underlying(&field.ty), GoType::Map(_)),
                    spared: earlier(d.name, field.name),
                })
            });
            steps.collect::<Vec<_>>()
        };
        reaching.iter().map(|id| (*id, steps(table.get(*id)))).collect()
    })
}

/// Fields that kube-apiserver keeps although their gate is disabled.
const NEVER_DROPPED: &[(&str, &str)] = &[
    ("ContainerStatus", "stopSignal"),
    // Claims drop the whole reference; templates of claims in pods keep it.
    ("TypedObjectReference", "namespace"),
];

/// Unions in which kube-apiserver drops the fields of a gate from the first member that is set, in this order, and looks
/// no further.
const FIRST_ONLY: &[(&str, &str, &[&str])] = &[
    (
        "Volume",
        "AtomicWriteVolumeUserFields",
        &["secret", "configMap", "downwardAPI", "projected"],
    ),
    (
        "VolumeProjection",
        "AtomicWriteVolumeUserFields",
        &[
            "secret",
            "downwardAPI",
            "configMap",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ],
    ),
];

/// The members of a union that come before a field, with the gate to which the order matters.
fn earlier(owner: &str, field: &str) -> Option<(&'static str, &'static [&'static str])> {
    let (_, gate, order) = FIRST_ONLY.iter().find(|(union, _, _)| *union == owner)?;
    let at = order.iter().position(|member| *member == field)?;
    Some((gate, order.get(..at)?))
}

/// The gate of a field. The comments of Kubernetes omit the gate of one field, and use the old name of another gate.
fn gate_of(owner: &str, field: &FieldDef) -> Option<&'static str> {
    if (owner, field.name) == ("VolumeMountStatus", "volumeStatus") {
        return Some("ImageVolumeWithDigest");
    }
    Some(match field.attributes.value("gate")? {
        "PodCertificateProjection" => "PodCertificateRequest",
        gate => gate,
    })
}

/// The struct that a type holds, behind pointers, lists and maps.
fn held_struct(table: &TypeTable, ty: &GoType) -> Option<TypeId> {
    match table.underlying(ty) {
        GoType::List(element) => held_struct(table, element),
        GoType::Map(entry) => held_struct(table, &entry.1),
        GoType::Named(id) => table.get(*id).as_struct().map(|_| *id),
        _ => None,
    }
}

/// Drops the fields of disabled gates from a struct of the table, for example of `core/v1` and `PodSpec`.
pub(crate) fn drop_disabled(
    package: &str,
    name: &str,
    object: &mut Map,
    old: Option<&Value>,
    context: &Context<'_>,
) {
    let Some(definition) = TypeTable::latest().find(package, name) else {
        return;
    };
    // A field may need several gates.
    let is_disabled = |gates: &str| gates.split(',').any(|gate| !(context.enabled)(gate));
    let is_dropped = |gate: &str| is_disabled(gate) && !old.is_some_and(|old| uses(definition.id, old, gate));
    drop_from(definition.id, object, &is_dropped);
}

/// Drops the fields of disabled gates from a member of an object, such as its spec.
pub(crate) fn drop_disabled_in(
    object: &mut Map,
    member: &str,
    (package, name): StructName,
    write: &Write<'_>,
) {
    let old = write.old().and_then(|old| old.get(member));
    if let Some(part) = object_if_set(object, member) {
        drop_disabled(package, name, part, old, &write.context);
    }
}

fn drop_from(id: TypeId, object: &mut Map, is_dropped: &dyn Fn(&str) -> bool) {
    let is_set = |object: &Map, field: &str| object.get(field).is_some_and(|v| !v.is_null());
    for step in plan().get(&id).into_iter().flatten() {
        let spared = step
            .spared
            .filter(|(_, earlier)| earlier.iter().any(|f| is_set(object, f)));
        let Some(value) = object.get_mut(step.field) else {
            continue;
        };
        if step.gate.is_some_and(is_dropped) {
            object.remove(step.field);
        } else if let Some(into) = step.into {
            let is_dropped = |gate: &str| spared.is_none_or(|(spared, _)| spared != gate) && is_dropped(gate);
            each_object(value, step.is_map, &mut |object| {
                drop_from(into, object, &is_dropped);
            });
        }
    }
}

/// Calls a function for a struct, or for the structs in a list or map.
fn each_object(value: &mut Value, is_map: bool, act: &mut dyn FnMut(&mut Map)) {
    match value {
        Value::Object(map) if is_map => map
            .iter_mut()
            .filter_map(|(_, v)| v.as_object_mut())
            .for_each(act),
        Value::Object(object) => act(object),
        Value::Array(items) => items.iter_mut().filter_map(Value::as_object_mut).for_each(act),
        _ => {}
    }
}

/// Returns whether an object uses a field of a gate.
fn uses(id: TypeId, value: &Value, gate: &str) -> bool {
    let mut steps = plan().get(&id).into_iter().flatten();
    steps.any(|step| {
        let Some(value) = value.get(step.field).filter(|v| !v.is_null()) else {
            return false;
        };
        let below = |into: TypeId| match value {
            Value::Array(items) => items.iter().any(|item| uses(into, item, gate)),
            Value::Object(map) if step.is_map => map.values().any(|item| uses(into, item, gate)),
            value => uses(into, value, gate),
        };
        step.gate == Some(gate) || step.into.is_some_and(below)
    })
}
