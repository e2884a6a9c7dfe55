//! Authentication: anonymous requests, impersonation, tokens.

use crate::AttackError;
use crate::cluster::{JSON, define, open, things};
use crate::http::HttpRequest;
use crate::plan::{Attack, Scene};
use serde_json::json;

/// Asks the server for the identity of the caller.
fn who_am_i() -> HttpRequest {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    HttpRequest::new(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        JSON,
        review.to_string(),
    )
}

/// Checks what a user without privileges is refused, and what the administrator may do.
fn impersonation(scene: &Scene<'_>) -> Result<String, AttackError> {
    let tokens = scene.directory.join("tokens.csv");
    std::fs::write(&tokens, "bob-token,bob,1000,\"developers\"\n")?;
    let server = scene.start(&[
        "--token-auth-file",
        tokens.to_str().ok_or("a path that is no text")?,
    ])?;
    let bob = server.endpoint.with_token("bob-token");
    let admin = &server.endpoint;
    // SelfSubjectReview answers with the identity that the request really has.
    let header = |name: &str, value: &str| who_am_i().header(name, value);
    let forbidden = [
        header("Impersonate-User", "kubernetes-admin"),
        header("Impersonate-User", "system:admin").header("Impersonate-Group", "system:masters"),
        header("Impersonate-User", "bob").header("Impersonate-Group", "system:masters"),
        header("Impersonate-User", "bob").header("Impersonate-Uid", "0"),
        header("Impersonate-User", "bob").header("Impersonate-Extra-Scopes", "all"),
    ];
    for request in &forbidden {
        let answer = bob.ask(request, scene.left())?;
        if answer.status != 403 {
            return Err(format!(
                "{} to {:?} of a user without privileges",
                answer.status, request.headers
            )
            .into());
        }
    }
    // Impersonation requires a user.
    for (name, value) in [
        ("Impersonate-Group", "system:masters"),
        ("Impersonate-Uid", "0"),
        ("Impersonate-Extra-Scopes", "all"),
    ] {
        for endpoint in [&bob, admin] {
            let answer = endpoint.ask(&header(name, value), scene.left())?;
            if !matches!(answer.status, 400 | 403 | 500) {
                return Err(format!("{} to {name} without Impersonate-User", answer.status).into());
            }
        }
    }
    let answer = admin
        .ask(&header("Impersonate-User", "bob"), scene.left())?
        .expect(&[201])?;
    if !answer.body_text().contains(r#""username":"bob""#) {
        return Err(format!("the administrator does not become bob: {}", answer.body_text()).into());
    }
    Ok(format!("{} × 403", forbidden.len()))
}

/// The responses to a client without a token.
fn anonymous(scene: &Scene<'_>) -> Result<String, AttackError> {
    let server = scene.server()?;
    let nobody = server.endpoint.with_token("");
    let wrong = server.endpoint.with_token("wrong");
    for path in [
        "/api",
        "/api/v1/namespaces",
        "/apis",
        "/openapi/v2",
        "/metrics",
        "/logs",
    ] {
        let (anonymous, unknown) = (
            nobody.ask(&HttpRequest::get(path), scene.left())?,
            wrong.ask(&HttpRequest::get(path), scene.left())?,
        );
        if !matches!(anonymous.status, 401 | 403) {
            return Err(format!("{} to an anonymous GET {path}", anonymous.status).into());
        }
        // A wrong credential is refused, and does not make its sender anonymous.
        if unknown.status != 401 {
            return Err(format!("{} to a GET {path} with an unknown token", unknown.status).into());
        }
    }
    nobody
        .ask(&HttpRequest::get("/version"), scene.left())?
        .expect(&[200])?;
    Ok("401 and 403; /version 200".to_owned())
}

pub(crate) fn table() -> Vec<Attack> {
    vec![
        Attack::offline(
            "identity/impersonation",
            "Impersonate-* by a user without privileges",
            impersonation,
        ),
        Attack::program(
            "identity/anonymous",
            "requests without and with a wrong token",
            anonymous,
        ),
        Attack::one("identity/long-token", "a token of 200 kB", |size| {
            HttpRequest::get("/api").header("X-Padding", "a").header(
                "Authorization",
                format!("Bearer {}", "a".repeat(size.scale(200_000))),
            )
        })
        .expect(&[200, 400, 401, 431]),
        Attack::one(
            "identity/impersonate-groups",
            "90 groups to impersonate",
            |size| {
                (0..size.pick(90, 20)).fold(who_am_i().header("Impersonate-User", "bob"), |request, i| {
                    request.header("Impersonate-Group", format!("g{i}{}", "x".repeat(100)))
                })
            },
        )
        .expect(&[201, 400, 403, 431]),
        Attack::one(
            "identity/unauthenticated-bodies",
            "bodies of 2.9 MB without a token",
            |size| {
                // The server need not read the body of an unauthenticated request.
                HttpRequest::new(
                    "POST",
                    crate::cluster::THINGS,
                    JSON,
                    " ".repeat(size.scale(2_900_000)),
                )
                .header("Authorization", "Bearer wrong")
            },
        )
        .after_one(|_| define(&things(&open())))
        .expect(&[400, 401]),
    ]
}
