//! Cluster IPs and node ports of Services.

use crate::api::{Api, ResourceRequest};
use crate::controllers::service_addresses::cluster_ips;
use crate::kinds::kind::Kind;
use crate::status::{ApiError, ApiResult};
use scantling_builtin::services::{AllocationError, Pools, allocate};
use scantling_value::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tokio::sync::MutexGuard;

/// The range of cluster IPs, as `--service-cluster-ip-range` of kube-apiserver has it by default.
pub(crate) const CLUSTER_IPS: &str = "10.0.0.0/24";

/// The range of node ports, as `--service-node-port-range` of kube-apiserver has it by default.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// The address of the Service of the API server itself: the first of the range.
pub(crate) fn first_cluster_ip() -> String {
    let (network, _) = CLUSTER_IPS.split_once('/').unwrap_or((CLUSTER_IPS, ""));
    match network.parse() {
        Ok(IpAddr::V4(ip)) => Ipv4Addr::from_bits(ip.to_bits().saturating_add(1)).to_string(),
        Ok(IpAddr::V6(ip)) => Ipv6Addr::from_bits(ip.to_bits().saturating_add(1)).to_string(),
        // The range is a constant that parses.
        Err(_) => String::new(),
    }
}

fn is_service(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.kind == "Service"
}

impl<'a> ResourceRequest<'a> {
    /// Allocates the addresses and ports of a Service; other kinds pass. No other Service is written while the guard
    /// lives, so that no address is given twice.
    pub(crate) async fn allocate(
        &self,
        object: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> ApiResult<Option<MutexGuard<'a, ()>>> {
        if !is_service(self.kind) {
            return Ok(None);
        }
        // Free addresses are found by reading all Services, so no Service may be written between read and write.
        let guard = self.api.services.lock().await;
        let (addresses, ports) = self.api.used_by_services(self.kind).await?;
        let pools = Pools {
            ranges: &[CLUSTER_IPS],
            node_ports: NODE_PORTS,
            used_addresses: &addresses,
            used_ports: &ports,
            seed: uuid::Uuid::new_v4().as_u64_pair().0,
            dry_run,
        };
        let Some(members) = object.as_object_mut() else {
            return Ok(Some(guard));
        };
        match allocate(members, old, &pools) {
            Ok(_) => Ok(Some(guard)),
            Err(AllocationError::Invalid(errors)) => {
                let name = object.str_at(["metadata", "name"]);
                Err(ApiError::invalid(self.about_kind(), name, &errors))
            }
            Err(AllocationError::Internal(why)) => Err(ApiError::internal_error(why)),
            Err(AllocationError::Failed(why)) => Err(ApiError::internal(why)),
        }
    }
}

impl Api {
    /// The cluster IPs and node ports of all Services.
    async fn used_by_services(&self, kind: &Kind) -> ApiResult<(BTreeSet<IpAddr>, BTreeSet<u16>)> {
        let (mut addresses, mut ports) = (BTreeSet::new(), BTreeSet::new());
        for service in self.list_stored(kind, None).await? {
            addresses.extend(cluster_ips(&service));
            let port =
                |value: Option<&Value>| value.and_then(Value::as_int).and_then(|p| u16::try_from(p).ok());
            let own = service.list_at(["spec", "ports"]).iter();
            ports.extend(own.filter_map(|p| port(p.get("nodePort"))));
            ports.extend(port(service.at(["spec", "healthCheckNodePort"])));
        }
        // Zero stands for a port that is not allocated.
        ports.remove(&0);
        Ok((addresses, ports))
    }
}
