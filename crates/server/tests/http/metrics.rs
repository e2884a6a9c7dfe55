//! Metrics and their names.

use crate::client::{Asking, Client};
use crate::support::{DEFINITIONS, WIDGETS, eventually, serve_widgets, widget};
use scantling_server::Config;

pub(crate) async fn metrics(client: &mut Client) -> String {
    let answer = client.get("/metrics").await;
    assert_eq!(answer.status, 200);
    answer.text()
}

/// The value of a sample.
pub(crate) fn sample(text: &str, name: &str) -> Option<f64> {
    let line = text
        .lines()
        .find(|l| l.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn requests_are_counted() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    client.send("POST", WIDGETS, &widget("a")).await;
    client
        .send(
            "POST",
            &format!("{WIDGETS}?dryRun=All&fieldValidation=Strict"),
            &widget("b"),
        )
        .await;
    client.send("POST", WIDGETS, &widget("a")).await;
    client.get(&format!("{WIDGETS}/a")).await;
    client.get(&format!("{WIDGETS}/a/scale")).await;
    client.get("/apis/example.com/v1/widgets").await;
    let apply = Asking {
        body: Some(widget("a").replace(":1}", ":2}").into_bytes()),
        content_type: Some("application/apply-patch+yaml"),
        ..Asking::default()
    };
    let path = format!("{WIDGETS}/a?fieldManager=x&force=true");
    assert_eq!(
        client.ask("PATCH", &path, apply).await.expect("an answer").status,
        200
    );
    Client::anonymous(&server).get(WIDGETS).await;
    Client::anonymous(&server).with_token("wrong").get(WIDGETS).await;
    let text = metrics(&mut client).await;
    let of = |verb: &str, dry_run: &str, sub: &str, scope: &str, code: u16| {
        let name = format!(
            "apiserver_request_total{{verb=\"{verb}\",group=\"example.com\",version=\"v1\",\
             resource=\"widgets\",subresource=\"{sub}\",scope=\"{scope}\",component=\"apiserver\",\
             dry_run=\"{dry_run}\",code=\"{code}\"}}"
        );
        sample(&text, &name)
    };
    assert_eq!(of("POST", "", "", "resource", 201), Some(1.0), "{text}");
    assert_eq!(of("POST", "All", "", "resource", 201), Some(1.0));
    assert_eq!(of("POST", "", "", "resource", 409), Some(1.0));
    assert_eq!(of("GET", "", "", "resource", 200), Some(1.0));
    assert_eq!(
        of("GET", "", "scale", "resource", 500),
        Some(1.0),
        "there are no replicas"
    );
    assert_eq!(of("LIST", "", "", "cluster", 200), Some(1.0));
    assert_eq!(of("APPLY", "", "", "resource", 200), Some(1.0));
    assert_eq!(of("LIST", "", "", "namespace", 403), Some(1.0));
    assert_eq!(of("LIST", "", "", "namespace", 401), Some(1.0));
    for name in [
        "apiserver_request_duration_seconds_count{verb=\"GET\",group=\"example.com\",version=\"v1\",\
         resource=\"widgets\",subresource=\"\",scope=\"resource\",component=\"apiserver\",dry_run=\"\"}",
        "apiserver_request_duration_seconds_bucket{le=\"0.005\",verb=\"GET\"",
        "apiserver_response_sizes_bucket{le=\"1000.0\",verb=\"LIST\"",
        "field_validation_request_duration_seconds_count{field_validation=\"Strict\"} 1",
        "field_validation_request_duration_seconds_count{field_validation=\"\"}",
        "apiserver_current_inflight_requests{request_kind=\"mutating\"} 0",
        "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1",
        "apiserver_cel_evaluation_duration_seconds_count",
        "apiserver_cel_compilation_duration_seconds_bucket{le=\"0.005\"}",
        "apiextensions_apiserver_validation_ratcheting_seconds_bucket{le=\"0.00001\"}",
        "apiserver_resource_objects{group=\"example.com\",resource=\"widgets\"} 1",
        "apiserver_resource_objects{group=\"\",resource=\"namespaces\"} 4",
        "apiserver_resource_objects{group=\"apiextensions.k8s.io\",resource=\"customresourcedefinitions\"} 1",
        "authentication_attempts_total{result=\"failure\"} 1",
        "authentication_attempts_total{result=\"success\"}",
        "# TYPE apiserver_request_total counter",
        "# TYPE apiserver_request_duration_seconds histogram",
        "# TYPE apiserver_tls_handshake_errors_total counter",
    ] {
        assert!(text.contains(name), "{name} is not in\n{text}");
    }
    assert!(sample(&text, "apiserver_cel_evaluation_duration_seconds_count") >= Some(3.0));
    assert!(sample(&text, "apiserver_cel_compilation_duration_seconds_count") >= Some(2.0));
    server.stop().await;
}

/// Names that clients invent never become labels: not of groups, resources, versions, subresources, methods
/// or modes.
#[tokio::test]
async fn unknown_resources_create_no_series() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let ask = async |client: &mut Client, word: &str| {
        for path in [
            format!("/apis/{word}.com/v1/{word}"),
            format!("/apis/example.com/{word}/widgets"),
            format!("/apis/example.com/v1/{word}"),
            format!("{WIDGETS}/a/{word}"),
            format!("/{word}"),
            format!("{WIDGETS}?fieldValidation={word}&dryRun={word}"),
            format!("/apis/example.com/v1/namespaces/{word}/widgets/{word}"),
        ] {
            for method in ["GET", "POST", "DELETE", "BREW"] {
                let asking = Asking {
                    body: Some(b"{}".to_vec()),
                    ..Asking::default()
                };
                client.ask(method, &path, asking).await.expect("an answer");
            }
        }
    };
    ask(&mut client, "made-up").await;
    metrics(&mut client).await;
    let before = metrics(&mut client).await;
    ask(&mut client, "invented").await;
    ask(&mut client, "imagined").await;
    let after = metrics(&mut client).await;
    assert_eq!(before.lines().count(), after.lines().count(), "{after}");
    for word in ["made-up", "invented", "BREW"] {
        assert!(!after.contains(word), "{word}\n{after}");
    }
    assert!(after.contains("dry_run=\"invalid\""), "{after}");
    assert!(after.contains("field_validation=\"invalid\""), "{after}");
    server.stop().await;
}

#[tokio::test]
async fn watches_are_counted_while_they_last() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (server, mut client) = serve_widgets(Config::default()).await;
    let labels = "{verb=\"WATCH\",group=\"example.com\",version=\"v1\",resource=\"widgets\",subresource=\"\",\
                  scope=\"namespace\",component=\"apiserver\"}";
    let open = format!("apiserver_longrunning_requests{labels}");
    let events = "apiserver_watch_events_total{group=\"example.com\",version=\"v1\",resource=\"widgets\"}";
    let mut watch = client.open().await.expect("a connection");
    let authorization = client.authorization().unwrap_or_default().to_owned();
    let request =
        format!("GET {WIDGETS}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n\r\n");
    watch.write_all(request.as_bytes()).await.expect("sent");
    let mut bytes = vec![0; 4096];
    assert!(watch.read(&mut bytes).await.expect("a head") > 0);
    client.send("POST", WIDGETS, &widget("a")).await;
    assert!(watch.read(&mut bytes).await.expect("an event") > 0);
    let text = metrics(&mut client).await;
    assert_eq!(sample(&text, &open), Some(1.0), "{text}");
    assert_eq!(sample(&text, events), Some(1.0), "{text}");
    drop(watch);
    // The server notices with its next event.
    let mut n = 0;
    eventually("the watch is closed", async || {
        n += 1;
        client.send("POST", WIDGETS, &widget(&format!("w{n}"))).await;
        sample(&metrics(&mut client).await, &open) == Some(0.0)
    })
    .await;
    server.stop().await;
}

/// Objects of kinds that are no longer served are no longer counted.
#[tokio::test]
async fn metrics_of_removed_kinds_disappear() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    client
        .send("DELETE", &format!("{DEFINITIONS}/widgets.example.com"), "")
        .await;
    eventually("the definition is gone", async || {
        client
            .get(&format!("{DEFINITIONS}/widgets.example.com"))
            .await
            .status
            == 404
    })
    .await;
    eventually("its objects are not counted", async || {
        !metrics(&mut client)
            .await
            .contains("apiserver_resource_objects{group=\"example.com\"")
    })
    .await;
    server.stop().await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn process_metrics() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let text = metrics(&mut client).await;
    for name in [
        "process_cpu_seconds_total",
        "process_start_time_seconds",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
        "process_open_fds",
        "process_max_fds",
    ] {
        assert!(sample(&text, name).is_some_and(|value| value > 0.0), "{name}");
    }
    server.stop().await;
}
