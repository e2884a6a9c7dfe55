//! Objects that exist from the start.

use super::client::Client;
use crate::api::Api;
use crate::rest::services::{CLUSTER_IPS, first_cluster_ip};
use crate::status::{ApiError, ApiResult};
use scantling_value::{Limits, Value, json, yaml};
use std::sync::Arc;

/// Creates the objects that a new server starts with. Kinds that are not served have none.
pub(crate) async fn create_initial_objects(api: &Arc<Api>, secure_port: u16) -> ApiResult<()> {
    let client = Client::new(api, "kube-apiserver");
    for object in initial_objects(secure_port).map_err(ApiError::internal_error)? {
        // With `--crds-only`, most of these kinds are not served.
        if client.serves(&object) {
            client.create_if_absent(object).await?;
        }
    }
    Ok(())
}

fn initial_objects(secure_port: u16) -> Result<Vec<Value>, String> {
    let objects = yaml::decode(include_bytes!("bootstrap.yaml"), Limits::SAFE).map_err(|e| e.to_string())?;
    let Value::Array(mut objects) = objects else {
        return Err("bootstrap.yaml is not a list".to_owned());
    };
    // These two depend on the range of cluster IPs and on the port, so they are not in the file.
    for text in [service_cidr(), kubernetes_service(secure_port)] {
        objects.push(json::decode(text.as_bytes(), Limits::SAFE).map_err(|e| e.to_string())?);
    }
    Ok(objects)
}

/// The range of cluster IPs.
fn service_cidr() -> String {
    format!(
        r#"{{"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {{"name": "kubernetes"}},
            "spec": {{"cidrs": ["{CLUSTER_IPS}"]}}}}"#
    )
}

/// The Service of the API server itself.
fn kubernetes_service(secure_port: u16) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "Service",
            "metadata": {{"name": "kubernetes", "namespace": "default",
                "labels": {{"component": "apiserver", "provider": "kubernetes"}}}},
            "spec": {{"clusterIP": "{}", "ipFamilyPolicy": "SingleStack",
                "ports": [{{"name": "https", "protocol": "TCP", "port": 443, "targetPort": {secure_port}}}]}}}}"#,
        first_cluster_ip()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_objects_are_well_formed() {
        let objects = initial_objects(6443).unwrap();
        let names: Vec<_> = objects.iter().map(|o| o.str_at(["metadata", "name"])).collect();
        assert!(
            names.contains(&"default") && names.ends_with(&["kubernetes", "kubernetes"]),
            "{names:?}"
        );
    }
}
