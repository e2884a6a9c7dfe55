//! Anonymous requests and impersonation.

use crate::client::{Answer, Asking, Client};
use crate::support::{WIDGETS, serve, serve_widgets, widget};
use hyper::header::HeaderValue;
use scantling_server::{AuthorizationMode, Config, Server};
use scantling_value::{Value, json};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const REVIEW: &str = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
const ACCESS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

type Headers<'a> = &'a [(&'a str, &'a str)];

fn forbidden(message: &str) -> (u16, String) {
    (403, message.to_owned())
}

#[tokio::test]
async fn anonymous_requests_see_public_endpoints() {
    let (server, _) = serve_widgets(Config::default()).await;
    let mut nobody = Client::anonymous(&server);
    for path in [
        "/healthz",
        "/livez",
        "/readyz",
        "/readyz?verbose",
        "/version",
        "/version/",
        "/%76ersion",
    ] {
        assert_eq!(nobody.get(path).await.status, 200, "{path}");
    }
    let user = "User \"system:anonymous\" cannot";
    for path in [
        "/",
        "/api",
        "/apis",
        "/apis/example.com",
        "/metrics",
        "/openapi/v2",
        "/livez/ping",
        "/nothing",
        "/version/x",
    ] {
        let message = format!("forbidden: {user} get path \"{path}\"");
        assert_eq!(nobody.get(path).await.said(), forbidden(&message), "{path}");
    }
    for (method, path, message) in [
        ("HEAD", "/version", String::new()),
        (
            "POST",
            "/version",
            format!("forbidden: {user} post path \"/version\""),
        ),
        (
            "GET",
            "/a%3Cb%3E&c",
            format!("forbidden: {user} get path \"/a&lt;b&gt;&amp;c\""),
        ),
        (
            "GET",
            WIDGETS,
            format!(
                "widgets.example.com is forbidden: {user} list resource \"widgets\" in API group \"example.com\" in the namespace \"default\""
            ),
        ),
        (
            "POST",
            WIDGETS,
            format!(
                "widgets.example.com is forbidden: {user} create resource \"widgets\" in API group \"example.com\" in the namespace \"default\""
            ),
        ),
        (
            "GET",
            "/api/v1/namespaces/default",
            format!(
                "namespaces \"default\" is forbidden: {user} get resource \"namespaces\" in API group \"\" in the namespace \"default\""
            ),
        ),
        (
            "PUT",
            "/api/v1/namespaces/default/finalize",
            format!(
                "namespaces \"default\" is forbidden: {user} update resource \"namespaces/finalize\" in API group \"\" in the namespace \"default\""
            ),
        ),
        (
            "GET",
            "/api/v1/secrets?fieldSelector=metadata.name%3Da&watch=true",
            format!(
                "secrets \"a\" is forbidden: {user} watch resource \"secrets\" in API group \"\" at the cluster scope"
            ),
        ),
        (
            "GET",
            "/api/v1/watch/namespaces/default/secrets/a",
            format!(
                "secrets \"a\" is forbidden: {user} watch resource \"secrets\" in API group \"\" in the namespace \"default\""
            ),
        ),
        (
            "POST",
            REVIEWS,
            format!(
                "selfsubjectreviews.authentication.k8s.io is forbidden: {user} create resource \"selfsubjectreviews\" in API group \"authentication.k8s.io\" at the cluster scope"
            ),
        ),
    ] {
        let answer = nobody.send(method, path, "{}").await;
        assert_eq!(answer.said(), forbidden(&message), "{method} {path}");
        assert_eq!(
            answer
                .headers
                .get("x-content-type-options")
                .map(HeaderValue::as_bytes),
            Some(&b"nosniff"[..])
        );
    }
    let details = |answer: &Answer| answer.json().get("details").map(Value::to_json);
    assert_eq!(details(&nobody.get("/api").await), Some("{}".to_owned()));
    assert_eq!(
        details(&nobody.get(&format!("{WIDGETS}/a")).await),
        Some(r#"{"group":"example.com","kind":"widgets","name":"a"}"#.to_owned())
    );
    server.stop().await;
}

#[tokio::test]
async fn anonymous_requests_may_be_refused() {
    let config = Config {
        anonymous_auth: false,
        ..Config::default()
    };
    let (server, _) = serve(config).await;
    let mut nobody = Client::anonymous(&server);
    for path in ["/version", "/readyz", "/api", WIDGETS] {
        let answer = nobody.get(path).await;
        assert_eq!(answer.said(), (401, "Unauthorized".to_owned()), "{path}");
        let reason = answer.json();
        assert_eq!(reason.get("reason").and_then(Value::as_str), Some("Unauthorized"));
    }
    server.stop().await;
}

/// Sends a request with the token of a user and with headers.
async fn ask(
    server: &Server,
    token: &str,
    method: &str,
    path: &str,
    body: &str,
    headers: Headers<'_>,
) -> Answer {
    let asking = Asking {
        body: (method != "GET").then(|| body.as_bytes().to_vec()),
        content_type: Some("application/json"),
        headers,
        ..Asking::default()
    };
    let mut client = Client::anonymous(server).with_token(token);
    let answer = client.ask(method, path, asking).await;
    answer.unwrap_or_else(|e| panic!("{e}"))
}

async fn serve_bob(mode: AuthorizationMode) -> Server {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tokens.csv");
    std::fs::write(&path, "bob,bob,1,crew\n").expect("written");
    let config = Config {
        token_auth_file: Some(path),
        authorization_mode: mode,
        ..Config::default()
    };
    serve_widgets(config).await.0
}

#[tokio::test]
async fn impersonated_users() {
    let (server, _) = serve(Config::default()).await;
    let admin = server.admin_token();
    let table: [(Headers<'_>, &str); 13] = [
        (
            &[("Impersonate-User", "bob")],
            r#"{"groups":["system:authenticated"],"username":"bob"}"#,
        ),
        (
            &[
                ("Impersonate-User", "bob"),
                ("Impersonate-User", "eve"),
                ("Impersonate-Uid", "7"),
            ],
            r#"{"groups":["system:authenticated"],"uid":"7","username":"bob"}"#,
        ),
        (
            &[
                ("Impersonate-User", "bob"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Group", "a"),
            ],
            r#"{"groups":["b","a","system:authenticated"],"username":"bob"}"#,
        ),
        (
            &[
                ("Impersonate-User", "bob"),
                ("Impersonate-Group", "system:authenticated"),
                ("Impersonate-Group", ""),
            ],
            r#"{"groups":["system:authenticated",""],"username":"bob"}"#,
        ),
        (
            &[
                ("Impersonate-User", "bob"),
                ("Impersonate-Extra-Acme.com%2FProject", "one"),
                ("Impersonate-Extra-acme.com%2fproject", "two"),
                ("Impersonate-Extra-Bad%zz", "x"),
                ("Impersonate-Extra-%41", "y"),
            ],
            r#"{"extra":{"A":["y"],"acme.com/project":["one","two"],"bad%zz":["x"]},"groups":["system:authenticated"],"username":"bob"}"#,
        ),
        (
            &[("Impersonate-User", "system:serviceaccount:ci:builder")],
            r#"{"groups":["system:serviceaccounts","system:serviceaccounts:ci","system:authenticated"],"username":"system:serviceaccount:ci:builder"}"#,
        ),
        (
            &[
                ("Impersonate-User", "system:serviceaccount:ci:builder"),
                ("Impersonate-Uid", "7"),
            ],
            r#"{"groups":["system:serviceaccounts","system:serviceaccounts:ci","system:authenticated"],"uid":"7","username":"system:serviceaccount:ci:builder"}"#,
        ),
        (
            &[
                ("Impersonate-User", "system:serviceaccount:ci:builder"),
                ("Impersonate-Group", "dev"),
            ],
            r#"{"groups":["dev","system:authenticated"],"username":"system:serviceaccount:ci:builder"}"#,
        ),
        (
            &[("Impersonate-User", "system:serviceaccount:CI:builder")],
            r#"{"groups":["system:authenticated"],"username":"system:serviceaccount:CI:builder"}"#,
        ),
        (
            &[("Impersonate-User", "system:node:n1")],
            r#"{"groups":["system:nodes","system:authenticated"],"username":"system:node:n1"}"#,
        ),
        (
            &[
                ("Impersonate-User", "system:node:n1"),
                ("Impersonate-Group", "dev"),
            ],
            r#"{"groups":["dev","system:authenticated"],"username":"system:node:n1"}"#,
        ),
        (
            &[
                ("Impersonate-User", "eve"),
                ("Impersonate-Group", "system:masters"),
            ],
            r#"{"groups":["system:masters","system:authenticated"],"username":"eve"}"#,
        ),
        (
            &[
                ("Impersonate-User", "system:anonymous"),
                ("Impersonate-Group", "system:masters"),
            ],
            r#"{"groups":["system:masters","system:unauthenticated"],"username":"system:anonymous"}"#,
        ),
    ];
    for (headers, want) in table {
        let answer = ask(&server, admin, "POST", REVIEWS, REVIEW, headers).await;
        let body = answer.json();
        let info = body.at(["status", "userInfo"]).map(Value::to_json);
        assert_eq!(info.as_deref(), Some(want), "{headers:?}: {}", answer.text());
    }
    // An empty name impersonates no one.
    let answer = ask(&server, admin, "GET", "/api", "", &[("Impersonate-User", "")]).await;
    assert_eq!(answer.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn impersonated_users_have_their_own_rights() {
    let server = serve_bob(AuthorizationMode::AlwaysAllow).await;
    let admin = server.admin_token();
    let anonymous = [("Impersonate-User", "system:anonymous")];
    let unauthenticated = [
        ("Impersonate-User", "eve"),
        ("Impersonate-Group", "system:unauthenticated"),
    ];
    assert_eq!(
        ask(&server, admin, "GET", "/version", "", &anonymous)
            .await
            .status,
        200
    );
    assert_eq!(
        ask(&server, admin, "GET", "/api", "", &anonymous).await.said(),
        forbidden("forbidden: User \"system:anonymous\" cannot get path \"/api\"")
    );
    assert_eq!(
        ask(&server, admin, "GET", "/api", "", &unauthenticated)
            .await
            .said(),
        forbidden("forbidden: User \"eve\" cannot get path \"/api\"")
    );
    let made = ask(
        &server,
        admin,
        "POST",
        WIDGETS,
        &widget("a"),
        &[("Impersonate-User", "bob")],
    )
    .await;
    assert_eq!(made.status, 201);
    let made = made.json();
    let managers = made.at(["metadata", "managedFields"]).map(Value::to_json);
    assert!(managers.is_some_and(|m| m.contains(r#""manager":"replay""#)));
    let body = |verb: &str| {
        format!(
            r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{{"resourceAttributes":{{"verb":"{verb}","resource":"users"}}}}}}"#
        )
    };
    for (who, verb, want) in [
        ("", "impersonate", true),
        ("bob", "impersonate", false),
        ("bob", "get", true),
    ] {
        let headers = [("Impersonate-User", who)];
        let answer = ask(&server, admin, "POST", ACCESS, &body(verb), &headers).await;
        let status = answer.json().get("status").map(Value::to_json);
        assert_eq!(status, Some(format!(r#"{{"allowed":{want}}}"#)), "{who} {verb}");
    }
    server.stop().await;

    let server = serve_bob(AuthorizationMode::AlwaysDeny).await;
    let admin = server.admin_token();
    assert_eq!(
        ask(&server, admin, "GET", "/api", "", &[("Impersonate-User", "bob")])
            .await
            .said(),
        forbidden("forbidden: User \"bob\" cannot get path \"/api\": Everything is forbidden.")
    );
    assert_eq!(
        Client::anonymous(&server).get("/version").await.said(),
        forbidden(
            "forbidden: User \"system:anonymous\" cannot get path \"/version\": Everything is forbidden."
        )
    );
    server.stop().await;
}

#[tokio::test]
async fn only_masters_impersonate() {
    let server = serve_bob(AuthorizationMode::AlwaysAllow).await;
    let table: [(&str, &str, Headers<'_>, &str); 7] = [
        (
            "GET",
            "/version",
            &[("Impersonate-User", "eve")],
            r#"forbidden: User "bob" cannot impersonate-on:user-info:get path "/version""#,
        ),
        (
            "GET",
            "/api/v1/namespaces",
            &[
                ("Impersonate-User", "eve"),
                ("Impersonate-Group", "system:masters"),
            ],
            r#"namespaces is forbidden: User "bob" cannot impersonate-on:user-info:list resource "namespaces" in API group "" at the cluster scope"#,
        ),
        (
            "POST",
            WIDGETS,
            &[("Impersonate-User", "bob")],
            r#"widgets.example.com is forbidden: User "bob" cannot impersonate-on:user-info:create resource "widgets" in API group "example.com" in the namespace "default""#,
        ),
        (
            "GET",
            "/api",
            &[("Impersonate-User", "system:serviceaccount:ci:builder")],
            r#"forbidden: User "bob" cannot impersonate-on:serviceaccount:get path "/api""#,
        ),
        (
            "GET",
            "/api",
            &[
                ("Impersonate-User", "system:serviceaccount:ci:builder"),
                ("Impersonate-Group", "dev"),
            ],
            r#"serviceaccounts "builder" is forbidden: User "bob" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ci""#,
        ),
        (
            "GET",
            "/api",
            &[("Impersonate-User", "system:node:n1")],
            r#"forbidden: User "bob" cannot impersonate-on:arbitrary-node:get path "/api""#,
        ),
        (
            "GET",
            "/api",
            &[("Impersonate-User", "system:node:n1"), ("Impersonate-Uid", "7")],
            r#"users "system:node:n1" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope"#,
        ),
    ];
    for (method, path, headers, want) in table {
        let answer = ask(&server, "bob", method, path, "{}", headers).await;
        assert_eq!(answer.said(), forbidden(want), "{method} {path} {headers:?}");
    }
    // An invalid token stays invalid, and anonymous users may not impersonate either.
    let eve = [("Impersonate-User", "eve")];
    assert_eq!(
        ask(&server, "wrong", "GET", "/version", "", &eve).await.status,
        401
    );
    let asking = Asking {
        headers: &eve,
        ..Asking::default()
    };
    let answer = Client::anonymous(&server).ask("GET", "/version", asking).await;
    assert_eq!(
        answer.expect("an answer").said(),
        forbidden(
            r#"forbidden: User "system:anonymous" cannot impersonate-on:user-info:get path "/version""#
        )
    );
    server.stop().await;

    let server = serve_bob(AuthorizationMode::AlwaysDeny).await;
    assert_eq!(
        ask(&server, "bob", "GET", "/version", "", &eve).await.said(),
        forbidden(
            r#"forbidden: User "bob" cannot impersonate-on:user-info:get path "/version": Everything is forbidden."#
        )
    );
    server.stop().await;
}

#[tokio::test]
async fn invalid_impersonation_headers() {
    let (server, _) = serve(Config::default()).await;
    let admin = server.admin_token();
    for (headers, want) in [
        (
            vec![("Impersonate-Group", "a")],
            r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)} without impersonating a user name"#,
        ),
        (
            vec![("Impersonate-User", ""), ("Impersonate-Uid", "1\"")],
            r#"requested &user.DefaultInfo{Name:"", UID:"1\"", Groups:[]string(nil), Extra:map[string][]string(nil)} without impersonating a user name"#,
        ),
        (
            vec![
                ("Impersonate-Extra-B", "1"),
                ("Impersonate-Extra-A", "2"),
                ("Impersonate-Extra-A", "3"),
                ("Impersonate-Group", "x"),
                ("Impersonate-Group", "y"),
            ],
            r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"x", "y"}, Extra:map[string][]string{"a":[]string{"2", "3"}, "b":[]string{"1"}}} without impersonating a user name"#,
        ),
        (
            vec![("Impersonate-User", "bob"), ("Impersonate-Extra-%FF", "1")],
            "impersonation headers must be valid UTF-8",
        ),
    ] {
        let answer = ask(&server, admin, "GET", "/version", "", &headers).await;
        assert_eq!(answer.said(), (400, want.to_owned()));
        let reason = json::decode(&answer.body, scantling_value::Limits::SAFE).expect("a status");
        assert_eq!(reason.get("reason").and_then(Value::as_str), Some("BadRequest"));
        assert_eq!(reason.get("details"), None);
    }
    let long = "x".repeat(300 * 1024);
    let answer = ask(
        &server,
        admin,
        "GET",
        "/version",
        "",
        &[("Impersonate-User", &long)],
    )
    .await;
    assert_eq!(
        answer.said(),
        (
            400,
            "too many impersonation headers: at most 1024 headers with 262144 bytes are allowed".to_owned()
        )
    );
    server.stop().await;
}
