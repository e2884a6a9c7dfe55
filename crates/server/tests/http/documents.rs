//! Large or frequent documents: compression, client caches, and updates.

use crate::client::{Answer, Asking, Client};
use crate::support::{DEFINITION, DEFINITIONS, WIDGETS, eventually, serve_widgets, widget};
use scantling_server::Config;
use std::io::Read as _;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async fn get(client: &mut Client, path: &str, headers: &[(&str, &str)]) -> Answer {
    let asking = Asking {
        accept: (path == "/apis").then_some(AGGREGATED),
        headers,
        ..Asking::default()
    };
    client.ask("GET", path, asking).await.expect("an answer")
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.headers.get(name).and_then(|v| v.to_str().ok())
}

/// Cached documents are valid until a CRD changes.
#[tokio::test]
async fn discovery_and_openapi_follow_the_crds() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    for path in ["/apis", "/openapi/v3", "/openapi/v2"] {
        let first = get(&mut client, path, &[]).await;
        assert!(first.text().contains("example.com"), "{path}: {}", first.text());
        let tag = header(&first, "etag").expect("a tag").to_owned();
        let again = get(&mut client, path, &[]).await;
        assert_eq!(
            (again.text(), header(&again, "etag")),
            (first.text(), Some(tag.as_str()))
        );
        let kept = get(&mut client, path, &[("if-none-match", &tag)]).await;
        assert_eq!((kept.status, kept.body.len()), (304, 0), "{path}");

        let group = format!("other{}.example.com", path.len());
        let definition = DEFINITION
            .replace("example.com\"", &format!("{group}\""))
            .replace("widgets.example.com", &format!("widgets.{group}"));
        let made = client.send("POST", DEFINITIONS, &definition).await;
        assert_eq!(made.status, 201, "{}", made.text());
        eventually("the new kind is shown", async || {
            let changed = get(&mut client, path, &[("if-none-match", &tag)]).await;
            changed.status == 200 && changed.text().contains(&group) && header(&changed, "etag") != Some(&tag)
        })
        .await;
        client
            .send("DELETE", &format!("{DEFINITIONS}/widgets.{group}"), "")
            .await;
        eventually("the kind is gone", async || {
            !get(&mut client, path, &[]).await.text().contains(&group)
        })
        .await;
    }
    server.stop().await;
}

/// Long lists are compressed while they are sent, if the client accepts it; short ones are not.
#[tokio::test]
async fn long_lists_are_compressed() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let gzip = [("accept-encoding", "gzip")];
    client.send("POST", WIDGETS, &widget("only")).await;
    let short = get(&mut client, WIDGETS, &gzip).await;
    assert_eq!((short.status, header(&short, "content-encoding")), (200, None));
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{state:016x}")
    };
    for n in 0..40 {
        // Incompressible text, so that the list is sent in several frames.
        let noise: String = (0..256).map(|_| noise()).collect();
        let annotated = format!(r#""annotations":{{"noise":"{noise}"}},"name""#);
        let body = widget(&format!("w{n}")).replace(r#""name""#, &annotated);
        let made = client.send("POST", WIDGETS, &body).await;
        assert_eq!(made.status, 201, "{}", made.text());
    }
    let plain = get(&mut client, WIDGETS, &[]).await;
    assert_eq!(header(&plain, "content-encoding"), None);
    assert_eq!(
        header(&plain, "content-length"),
        Some(plain.body.len().to_string().as_str())
    );
    let packed = get(&mut client, WIDGETS, &gzip).await;
    assert_eq!(header(&packed, "content-encoding"), Some("gzip"));
    assert_eq!(header(&packed, "content-type"), Some("application/json"));
    assert!(packed.body.len() < plain.body.len());
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..])
        .read_to_end(&mut unpacked)
        .expect("it is whole");
    assert!(unpacked == plain.body, "the same list");
    server.stop().await;
}

/// Paths outside resources have documents, too, and the index lists all of them.
#[tokio::test]
async fn routes_have_documents() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let index = get(&mut client, "/openapi/v3", &[]).await;
    let table = [
        ("version", "getCodeVersion"),
        ("api", "getCoreAPIVersions"),
        ("apis", "getAPIVersions"),
        ("apis/apiextensions.k8s.io", "getApiextensionsAPIGroup"),
        ("apis/authorization.k8s.io", "getAuthorizationAPIGroup"),
        (
            "apis/authorization.k8s.io/v1",
            "createAuthorizationV1SelfSubjectAccessReview",
        ),
    ];
    for (name, operation) in table {
        let path = format!("/openapi/v3/{name}");
        assert!(index.text().contains(&format!("\"{path}?hash=")), "{path}");
        let document = get(&mut client, &path, &[]).await;
        assert_eq!(document.status, 200, "{path}");
        assert!(document.text().contains(operation), "{path}: {}", document.text());
        let kept = get(&mut client, &path, &[("if-none-match", "*")]).await;
        assert_eq!(kept.status, 304, "{path}");
    }
    for none in ["apis/widgets.example.com", "apis", "nope", "version/"] {
        let status = get(&mut client, &format!("/openapi/v3/{none}"), &[]).await.status;
        assert_eq!(status, if none == "apis" { 200 } else { 404 }, "{none}");
    }
    server.stop().await;
}
