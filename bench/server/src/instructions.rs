//! Counts the instructions of single requests: the server runs under callgrind.
//!
//! The counts hardly depend on the machine. They include everything that the process does outside of the kernel, so
//! also TLS and storage. A build without link-time optimisation keeps the functions of a profile apart:
//!
//! ```text
//! export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=line-tables-only
//! cargo build --release -p scantling --target-dir target/profile
//! cd bench && cargo run --release -p bench-server -- --program ../target/profile/release/scantling instructions
//! callgrind_annotate target/instructions/create-deployments
//! ```

use crate::child::{Profiler, Server};
use crate::client::Endpoint;
use crate::corpus::{self, Subject, name};
use crate::report::{self, Reference, figure};
use crate::{Failure, register_subject};
use scantling_value::{Limits, Map, Value, json};
use std::path::Path;

/// The number of requests of each sort that are counted.
const COUNTED: usize = 100;
/// The number of requests before them, which fill caches.
const WARM_UP: usize = 20;
/// The number of the object that is read and changed.
const CHANGED: usize = 1_000_000;

/// Makes the n-th request from the last response.
type Request<'a> = &'a dyn Fn(usize, &Value) -> Vec<u8>;

/// Counts creates, gets, updates, merge patches and applies of Deployments and of custom resources.
pub async fn count(program: &Path, subject: &Subject) -> Result<(), Failure> {
    report::title(&format!("instructions, average of {COUNTED} requests"));
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/instructions");
    std::fs::create_dir_all(&profiles)?;
    let directory = tempfile::tempdir()?;
    let profiler = Profiler::new(directory.path());
    let server = Server::start_under(Some(&profiler), program, directory.path()).await?;
    register_subject(&server, subject).await?;
    let kinds = [
        (corpus::DEPLOYMENTS.to_owned(), corpus::deployment()?, "replicas"),
        (subject.path(), subject.body(&name(0), 64), "weight"),
    ];
    for (path, body, applied) in kinds {
        let endpoint = &server.endpoint;
        let mut client = endpoint.connect().await?;
        let plural = path.rsplit('/').next().unwrap_or_default();
        let (create, changed) = (
            creates(endpoint, &path, &body)?,
            format!("{path}/{}", name(CHANGED)),
        );
        let type_meta = json::decode(&body, Limits::SERVER)?;
        let json = |method: &str, path: &str, kind: &str, body: &Value| {
            endpoint.sending(method, path, kind, body.to_json().as_bytes())
        };
        let put = |n: usize, last: &Value| {
            let mut object = last.clone();
            merge_label(&mut object, n);
            json("PUT", &changed, "application/json", &object)
        };
        let patch = |n: usize, _: &Value| {
            let mut patch = Map::from_iter([("metadata", Map::new().into())]).into();
            merge_label(&mut patch, n);
            json("PATCH", &changed, "application/merge-patch+json", &patch)
        };
        let apply = |n: usize, _: &Value| {
            let field = |name: &'static str| (name, type_meta.get(name).cloned().unwrap_or_default());
            let metadata = Map::from_iter([("name", Value::from(name(CHANGED)))]);
            let spec = Map::from_iter([(applied, Value::Int(3))]);
            let members = [
                field("apiVersion"),
                field("kind"),
                ("metadata", metadata.into()),
                ("spec", spec.into()),
            ];
            let mut config = Map::from_iter(members).into();
            merge_label(&mut config, n);
            let path = format!("{changed}?fieldManager=bench-apply&force=true");
            json("PATCH", &path, "application/apply-patch+yaml", &config)
        };
        let get = |_: usize, _: &Value| endpoint.get(&changed);
        client.send(&create(CHANGED, &Value::Null)).await?.expect(201)?;
        let requests: [(&str, u16, Request<'_>); 5] = [
            ("create", 201, &create),
            ("get", 200, &get),
            ("update", 200, &put),
            ("merge patch", 200, &patch),
            ("apply", 200, &apply),
        ];
        for (verb, status, request) in requests {
            let mut last = json::decode(client.send(&endpoint.get(&changed)).await?.body, Limits::SERVER)?;
            for n in 0..WARM_UP + COUNTED {
                if n == WARM_UP {
                    profiler.dump(&server)?;
                }
                let request = request(n, &last);
                let answer = client.send(&request).await?.expect(status)?;
                last = json::decode(answer.body, Limits::SERVER)?;
            }
            let profile = profiles.join(format!("{verb}-{plural}").replace(' ', "-"));
            std::fs::copy(profiler.dump(&server)?, &profile)?;
            let each = Profiler::total(&profile)? / COUNTED as f64;
            figure(&format!("{verb}, {plural}"), each, "", Reference::NONE);
        }
    }
    Ok(())
}

/// Creates of objects whose name is the first one in a body.
fn creates<'a>(
    endpoint: &'a Endpoint,
    path: &'a str,
    body: &[u8],
) -> Result<impl Fn(usize, &Value) -> Vec<u8> + use<'a>, Failure> {
    let body = String::from_utf8(body.to_vec())?;
    Ok(move |n: usize, _: &Value| {
        let body = body.replace(&name(0), &name(n));
        endpoint.sending("POST", path, "application/json", body.as_bytes())
    })
}

/// Sets a label of an object that has metadata.
fn merge_label(object: &mut Value, n: usize) {
    let metadata = object
        .as_object_mut()
        .and_then(|members| members.get_mut("metadata"));
    if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
        let labels = metadata.get_or_insert_with("labels", || Map::new().into());
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("turn", format!("{n:010}").into());
        }
    }
}
