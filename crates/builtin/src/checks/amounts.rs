//! Amounts of resources, and what the containers of a pod need together.

use super::resources::{quantity, sum};
use scantling_notation::quantity::Quantity;
use scantling_value::{Map, Value};
use std::collections::BTreeMap;

/// Amounts by the name of their resource.
pub(crate) type Amounts<K> = BTreeMap<K, Quantity>;

/// The amounts in a list of resources.
pub(crate) fn amounts<'v, K: From<&'v str> + Ord>(list: Option<&'v Value>) -> Amounts<K> {
    let entries = list.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let amounts = entries.map(|(name, amount)| (name.as_str().into(), quantity(Some(amount))));
    amounts.collect()
}

/// Adds amounts to others.
pub(crate) fn add<K: Ord + Clone>(sums: &mut Amounts<K>, more: &Amounts<K>) {
    for (name, amount) in more {
        let total = sums
            .get(name)
            .map_or_else(|| amount.clone(), |before| sum(before, amount));
        sums.insert(name.clone(), total);
    }
}

/// Raises amounts to others that are greater.
pub(crate) fn max_each<K: Ord + Clone>(greatest: &mut Amounts<K>, others: &Amounts<K>) {
    for (name, amount) in others {
        if greatest.get(name).is_none_or(|known| amount > known) {
            greatest.insert(name.clone(), amount.clone());
        }
    }
}

/// What the containers of a pod spec need together. Init containers run one after another, and sidecars beside all that
/// follow them.
pub(crate) fn aggregate<'v, K: Ord + Clone>(
    spec: Option<&'v Value>,
    of_container: impl Fn(&'v Value) -> Amounts<K>,
) -> Amounts<K> {
    let containers = |list| spec.map_or(&[][..], |spec| spec.list(list));
    let mut total = Amounts::new();
    for container in containers("containers") {
        add(&mut total, &of_container(container));
    }
    let (mut sidecars, mut highest) = (Amounts::new(), Amounts::new());
    for container in containers("initContainers") {
        let mut own = of_container(container);
        if container.get_str("restartPolicy") == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            own.clone_from(&sidecars);
        } else {
            add(&mut own, &sidecars);
        }
        max_each(&mut highest, &own);
    }
    max_each(&mut total, &highest);
    total
}
