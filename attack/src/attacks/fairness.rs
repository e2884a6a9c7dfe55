//! Clients that compete: heavy requests of several users, and writes that count against one quota.

use crate::AttackError;
use crate::cluster::{JSON, THINGS, define, post, put, repeated, thing_text, things, with_spec};
use crate::http::{ATTACKER, BYSTANDER, HttpRequest};
use crate::plan::{Attack, Scene};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const QUOTA: &str = "/api/v1/namespaces/default/resourcequotas/q";

/// One user validates slowly on many connections; another user creates one object of 1 MB, which must be done in time.
fn heavy_users(scene: &Scene<'_>) -> Result<String, AttackError> {
    let tokens = scene.directory.join("tokens.csv");
    std::fs::write(&tokens, "bob-token,bob,1000,\"system:masters\"\n")?;
    let tokens = tokens.to_str().ok_or("a path that is no text")?;
    let server = scene.start(&["--request-timeout", "10s", "--token-auth-file", tokens])?;
    let branches: Vec<Value> = (0..2_000).map(|i| json!({"minimum": i + 1})).collect();
    let slow = json!({"type": "object", "properties": {
        "l": {"type": "array", "items": {"type": "integer", "anyOf": branches}},
        "s": {"type": "string"},
    }});
    server
        .endpoint
        .ask(&define(&things(&with_spec(&slow))), scene.left())?
        .expect(&[201])?;
    let path = format!("{THINGS}?dryRun=All");
    let items = repeated("0", scene.size.scale(20_000));
    let slow = HttpRequest::new(
        "POST",
        path.as_str(),
        JSON,
        thing_text(&format!(r#"{{"l":[{items}]}}"#)),
    );
    let slow = server.endpoint.bytes(&slow);
    let text = "x".repeat(scene.size.scale(1_000_000));
    let single = HttpRequest::new(
        "POST",
        path.as_str(),
        JSON,
        thing_text(&format!(r#"{{"s":"{text}"}}"#)),
    );
    let bob = server.endpoint.with_token("bob-token");
    std::thread::scope(|scope| {
        for _ in 0..scene.size.pick(100, 10) {
            scope.spawn(|| {
                let connection = server.endpoint.connect(ATTACKER, scene.left());
                // Not judged: the slow requests may be refused or time out.
                connection.and_then(|mut connection| connection.ask(&slow, scene.deadline))
            });
        }
        // The others are in the queue by then, or at least many of them.
        scene.sleep(
            scene
                .size
                .pick(Duration::from_secs(1), Duration::from_millis(100)),
        );
        let begin = Instant::now();
        let mut connection = bob.connect(BYSTANDER, scene.left())?;
        let answer = connection.ask(&bob.bytes(&single), scene.deadline)?;
        answer.expect(&[201])?;
        Ok(format!("201 after {} ms", begin.elapsed().as_millis()))
    })
}

/// Many connections create Pods at once; a quota admits 20 of them.
fn quota(scene: &Scene<'_>) -> Result<String, AttackError> {
    const ADMITTED: usize = 20;
    let endpoint = &scene.server()?.endpoint;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let create = endpoint.bytes(&post("/api/v1/namespaces/default/pods", &pod));
    let created = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let client = || -> Result<(), AttackError> {
            let mut connection = endpoint.connect(ATTACKER, scene.left())?;
            for _ in 0..5 {
                let answer = connection.ask(&create, scene.deadline)?;
                let answer = answer.expect(&[201, 403, 409, 429])?;
                created.fetch_add(usize::from(answer.status == 201), Ordering::Relaxed);
            }
            Ok(())
        };
        let clients: Vec<_> = (0..16).map(|_| scope.spawn(client)).collect();
        clients
            .into_iter()
            .try_for_each(|client| client.join().map_err(|_| "a client failed")?)
    })?;
    let created = created.into_inner();
    let stored = endpoint.ask(&HttpRequest::get(QUOTA), scene.left())?;
    let stored: Value = serde_json::from_slice(&stored.body)?;
    let used = stored.pointer("/status/used/pods").and_then(Value::as_str);
    // A lost update of the quota would admit more Pods than it counts.
    if created > ADMITTED || used != Some(created.to_string().as_str()) {
        return Err(format!("{created} Pods of {ADMITTED}, {used:?} counted").into());
    }
    Ok(format!("{created} Pods, as many counted"))
}

pub(crate) fn table() -> Vec<Attack> {
    let object = |status: Value| {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
            "spec": {"hard": {"pods": "20"}}, "status": status,
        })
    };
    vec![
        Attack::offline(
            "fairness/heavy-users",
            "100 slow validations of one user, one object of 1 MB of another",
            heavy_users,
        ),
        Attack::program(
            "fairness/quota",
            "80 Pods from 16 connections, a quota of 20",
            quota,
        )
        .after_one(move |_| post("/api/v1/namespaces/default/resourcequotas", &object(json!({}))))
        .after_one(move |_| {
            // No controller runs here, so the attack writes the first status itself.
            let status = json!({"hard": {"pods": "20"}, "used": {"pods": "0"}});
            put(&format!("{QUOTA}/status"), &object(status))
        }),
    ]
}
