//! Kinds of the group `autoscaling`.

mod conversion;
mod horizontal_pod_autoscaler;
mod metrics;

pub(crate) use conversion::ANNOTATIONS;
pub use conversion::{autoscaler_from_v1, autoscaler_to_v1};

use crate::KindBehavior;

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[&horizontal_pod_autoscaler::KIND];

/// The target for the utilization of CPUs where no metric is given, in percent.
const DEFAULT_CPU_UTILIZATION: i64 = 80;

/// A metric: the average utilization of CPUs, in percent.
fn cpu_utilization(percent: i64) -> scantling_value::Value {
    use scantling_value::{Map, Value};
    let target = Map::from_iter([
        ("type", Value::from("Utilization")),
        ("averageUtilization", Value::Int(percent)),
    ]);
    let resource = Map::from_iter([("name", Value::from("cpu")), ("target", target.into())]);
    Map::from_iter([("type", Value::from("Resource")), ("resource", resource.into())]).into()
}
