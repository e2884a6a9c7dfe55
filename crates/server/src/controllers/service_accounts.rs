//! The `default` service account of every namespace, as a cluster's controller manager keeps it.

use super::client::Client;
use super::follow::{Follower, until_stopped};
use crate::api::Api;
use crate::rest::read;
use crate::rest::write::metadata_str;
use crate::status::ApiResult;
use scantling_store::StoreError;
use scantling_value::{Map, Value};
use std::sync::Arc;

const NAME: &str = "default";

/// Creates service accounts that are missing, until the server stops.
pub(crate) async fn run(api: Arc<Api>) {
    until_stopped(api, "service accounts", follow).await;
}

async fn follow(api: Arc<Api>) -> Result<(), StoreError> {
    let prefix = |plural| api.keys.collection("", plural);
    let mut namespaces = Follower::start(&api, &prefix("namespaces")?).await?;
    // Deletions of accounts count, too: the account of an existing namespace is created again.
    let mut accounts = Follower::start(&api, &prefix("serviceaccounts")?).await?;
    loop {
        let namespace = tokio::select! {
            change = namespaces.next() => change?.new.map(|n| metadata_str(&n, "name").to_owned()),
            change = accounts.next() => {
                let change = change?;
                let deleted = change.old.filter(|old| change.new.is_none() && metadata_str(old, "name") == NAME);
                deleted.map(|account| metadata_str(&account, "namespace").to_owned())
            }
        };
        if let Some(namespace) = namespace
            && let Err(e) = create(&api, &namespace).await
        {
            tracing::warn!(
                namespace,
                error = e.message(),
                "cannot create the default service account"
            );
        }
    }
}

/// Creates the account in a namespace that exists and is not being deleted.
async fn create(api: &Arc<Api>, namespace: &str) -> ApiResult<()> {
    let key = api.keys.object("", "namespaces", None, namespace);
    let key = key.map_err(read::store_error)?;
    let Some(entry) = api.newest(&key).await? else {
        return Ok(());
    };
    if !metadata_str(&read::stored(&entry)?, "deletionTimestamp").is_empty() {
        return Ok(());
    }
    let metadata = Map::from_iter([("name", Value::from(NAME)), ("namespace", namespace.into())]);
    let account = Map::from_iter([
        ("apiVersion", Value::from("v1")),
        ("kind", "ServiceAccount".into()),
        ("metadata", metadata.into()),
    ]);
    let client = Client::new(api, "kube-controller-manager");
    client.create_if_absent(account.into()).await
}
