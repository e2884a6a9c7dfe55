//! Compacts etcd: in each interval every server tries, and one succeeds.

use std::sync::Arc;
use std::time::Duration;

use super::client::{EtcdClient, RetryPolicy, from_wire, to_wire};
use super::wire::{
    Compare, CompareTarget, CompareWith, PutRequest, RangeRequest, RequestKind, RequestOp, ResponseKind,
    TxnRequest,
};
use crate::cache::Cache;
use crate::{Revision, StoreError};

/// The key that kube-apiserver uses for the same purpose; it is outside every prefix. Its version counts the
/// rounds, and its value is the revision that the next round compacts.
const KEY: &[u8] = b"compact_rev_key";

/// Runs for as long as the store lives.
pub(crate) async fn run(client: Arc<EtcdClient>, cache: Arc<Cache>, interval: Duration) {
    // Zero means that the key does not exist. If it does, the first round fails and returns its version.
    let mut version = 0;
    let mut last_round = cache.revision();
    loop {
        tokio::time::sleep(interval).await;
        cache.trim();
        // A failed round is repaired by the next one.
        if let Ok((now, next)) = round(&client, version, last_round).await {
            (version, last_round) = (next, now);
        }
    }
}

/// Tries to compact in this round. Returns the current revision and the version of the key after the round.
async fn round(
    client: &EtcdClient,
    version: i64,
    last_round: Revision,
) -> Result<(Revision, i64), StoreError> {
    let request = TxnRequest {
        compare: vec![Compare {
            target: CompareTarget::Version as i32,
            key: KEY.to_vec(),
            with: Some(CompareWith::Version(version)),
        }],
        success: vec![RequestOp {
            request: Some(RequestKind::Put(PutRequest {
                key: KEY.to_vec(),
                value: last_round.to_string().into(),
                prev_kv: false,
            })),
        }],
        failure: vec![RequestOp {
            request: Some(RequestKind::Range(RangeRequest {
                key: KEY.to_vec(),
                ..RangeRequest::default()
            })),
        }],
    };
    // Safe to retry: the first execution changes the version, so a second one fails its condition.
    let answer = client
        .transaction(request, RetryPolicy::Safe)
        .await
        .map_err(|refusal| super::failure(&refusal.status, 0))?
        .response;
    let now = answer
        .header
        .map_or(last_round, |header| from_wire(header.revision));
    if answer.succeeded {
        // The revision of the previous round, so that the history of one interval stays readable.
        if to_wire(last_round) > 0 {
            client.compact(last_round).await?;
        }
        return Ok((now, version + 1));
    }
    let current = match answer.responses.into_iter().next().and_then(|op| op.response) {
        Some(ResponseKind::Range(range)) => range.kvs.first().map_or(0, |kv| kv.version),
        _ => 0,
    };
    Ok((now, current))
}
