//! The IPAddress objects of cluster IPs: one for each address of a Service.

use super::client::Client;
use super::follow::{Follower, ObjectChange, until_stopped};
use crate::api::Api;
use crate::rest::read;
use crate::rest::write::metadata_str;
use crate::status::ApiResult;
use scantling_store::{StoreError, Write};
use scantling_value::{Map, Value};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// The label of IPAddresses that says what manages them, and its value for Services.
const MANAGED_BY: (&str, &str) = ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");
const IP_FAMILY: &str = "ipaddress.kubernetes.io/ip-family";

/// Creates and deletes IPAddresses, until the server stops.
pub(crate) async fn run(api: Arc<Api>) {
    until_stopped(api, "service addresses", follow).await;
}

async fn follow(api: Arc<Api>) -> Result<(), StoreError> {
    let prefix = api.keys.collection("", "services")?;
    let mut services = Follower::start(&api, &prefix).await?;
    // After the follower has its start: changes from now on arrive as events.
    release_unused(&api).await;
    loop {
        let ObjectChange { old, new } = services.next().await?;
        let addresses = |service: &Option<Value>| service.as_ref().map_or_else(BTreeSet::new, cluster_ips);
        let (before, after) = (addresses(&old), addresses(&new));
        for address in before.difference(&after) {
            if let Some(service) = &old {
                log(*address, release(&api, *address, &parent(service)).await);
            }
        }
        for address in after.difference(&before) {
            if let Some(service) = &new {
                let client = Client::new(&api, "kube-apiserver");
                log(
                    *address,
                    client.create_if_absent(ip_address(*address, service)).await,
                );
            }
        }
    }
}

fn log(address: IpAddr, result: ApiResult<()>) {
    if let Err(e) = result {
        tracing::warn!(%address, error = e.message(), "cannot keep the IPAddress of a Service");
    }
}

/// The cluster IPs of a Service.
pub(crate) fn cluster_ips(service: &Value) -> BTreeSet<IpAddr> {
    let texts = service.list_at(["spec", "clusterIPs"]).iter();
    texts.filter_map(|ip| ip.as_str()?.parse().ok()).collect()
}

fn ip_address(address: IpAddr, service: &Value) -> Value {
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    let labels = Map::from_iter([
        (IP_FAMILY, Value::from(family)),
        (MANAGED_BY.0, MANAGED_BY.1.into()),
    ]);
    let metadata = Map::from_iter([
        ("name", Value::from(address.to_string())),
        ("labels", labels.into()),
    ]);
    let spec = Map::from_iter([("parentRef", parent(service))]);
    Map::from_iter([
        ("apiVersion", Value::from("networking.k8s.io/v1")),
        ("kind", "IPAddress".into()),
        ("metadata", metadata.into()),
        ("spec", spec.into()),
    ])
    .into()
}

/// The reference from an IPAddress to its Service.
fn parent(service: &Value) -> Value {
    Map::from_iter([
        ("resource", Value::from("services")),
        ("namespace", metadata_str(service, "namespace").into()),
        ("name", metadata_str(service, "name").into()),
    ])
    .into()
}

fn is_parent(address: &Value, parent: &Value) -> bool {
    let text = |field| address.str_at(["spec", "parentRef", field]);
    let mut fields = ["group", "resource", "namespace", "name"].into_iter();
    // Absent fields count as empty: the group of Services is.
    fields.all(|field| text(field) == parent.get_str(field))
}

/// Deletes an IPAddress that refers to this parent.
async fn release(api: &Api, address: IpAddr, parent: &Value) -> ApiResult<()> {
    let key = api.keys.object("", "ipaddresses", None, &address.to_string());
    let key = key.map_err(read::store_error)?;
    let Some(entry) = api.newest(&key).await? else {
        return Ok(());
    };
    // The address may already belong to another Service that took it after its release.
    if !is_parent(&read::stored(&entry)?, parent) {
        return Ok(());
    }
    let delete = Write::Delete {
        expected: entry.mod_revision,
    };
    api.write_if_current(&key, delete).await.map(|_| ())
}

/// Deletes the IPAddresses of Services that were deleted, or changed, while the server did not run.
async fn release_unused(api: &Api) {
    if let Err(e) = try_release_unused(api).await {
        tracing::warn!(
            error = e.message(),
            "cannot release the IPAddresses of deleted Services"
        );
    }
}

async fn try_release_unused(api: &Api) -> ApiResult<()> {
    let kind = |group, kind| api.kind_named(group, kind);
    let Some((services, addresses)) = kind("", "Service").zip(kind("networking.k8s.io", "IPAddress")) else {
        return Ok(());
    };
    let services = api.list_stored(&services, None).await?;
    let used = services.iter().flat_map(|service| {
        let name = |field| metadata_str(service, field).to_owned();
        let parent = (name("namespace"), name("name"));
        cluster_ips(service)
            .into_iter()
            .map(move |ip| (ip, parent.clone()))
    });
    let used: BTreeSet<_> = used.collect();
    for address in api.list_stored(&addresses, None).await? {
        // IPAddress objects that users created are not released.
        let is_own = address.str_at(["metadata", "labels", MANAGED_BY.0]) == MANAGED_BY.1;
        let Ok(ip) = metadata_str(&address, "name").parse::<IpAddr>() else {
            continue;
        };
        let Some(parent) = address.at(["spec", "parentRef"]) else {
            continue;
        };
        let name = |field| parent.get_str(field).to_owned();
        let is_of_service = parent.get_str("group").is_empty() && parent.get_str("resource") == "services";
        if is_own && !(is_of_service && used.contains(&(ip, (name("namespace"), name("name"))))) {
            release(api, ip, parent).await?;
        }
    }
    Ok(())
}
