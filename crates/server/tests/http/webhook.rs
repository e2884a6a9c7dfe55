//! A conversion webhook for tests, over TLS; each path responds differently.

use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use scantling_value::{Limits, Map, Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The response of a path.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// A review of converted objects, modified by the function.
    Review(fn(&mut Value)),
    /// A status code and a text.
    Text(u16, &'static str),
    /// None: it closes the connection.
    Nothing,
    /// A review for the first request of a connection, and nothing for the second.
    Once,
}

/// The requests to a webhook, and the number of connections.
#[derive(Default)]
struct Asked {
    reviews: Mutex<Vec<Value>>,
    connections: AtomicUsize,
}

/// A webhook that listens.
pub(crate) struct Webhook {
    address: SocketAddr,
    certificate: String,
    asked: Arc<Asked>,
}

impl Webhook {
    /// Starts a webhook whose path `/0` responds in the first of these ways, and so on.
    pub(crate) async fn start(ways: impl IntoIterator<Item = Way>) -> Webhook {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("there are protocol versions")
            .with_no_client_auth()
            .with_single_cert(
                chain.map(|c| c.expect("a certificate")).collect(),
                PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key"),
            )
            .expect("certificate and key fit");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Asked::default());
        tokio::spawn(listen(
            listener,
            TlsAcceptor::from(Arc::new(config)),
            ways.into_iter().collect(),
            Arc::clone(&asked),
        ));
        Webhook {
            address,
            certificate,
            asked,
        }
    }

    /// The conversion settings of a CRD that uses one of the paths, in JSON.
    pub(crate) fn settings(&self, way: usize) -> String {
        let bundle = base64::engine::general_purpose::STANDARD.encode(&self.certificate);
        format!(
            r#"{{"url":"https://{}/{way}","caBundle":"{bundle}"}}"#,
            self.address
        )
    }

    /// The reviews so far.
    pub(crate) fn reviews(&self) -> Vec<Value> {
        self.asked.reviews.lock().expect("nobody failed").clone()
    }

    /// The number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.asked.connections.load(Ordering::Relaxed)
    }
}

async fn listen(listener: TcpListener, tls: TlsAcceptor, ways: Arc<[Way]>, asked: Arc<Asked>) {
    while let Ok((tcp, _)) = listener.accept().await {
        let (tls, ways, asked) = (tls.clone(), Arc::clone(&ways), Arc::clone(&asked));
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(tcp).await else {
                return;
            };
            asked.connections.fetch_add(1, Ordering::Relaxed);
            let answered = AtomicUsize::new(0);
            let service = service_fn(|request| answer(request, &ways, &asked, &answered));
            let http = hyper::server::conn::http1::Builder::new();
            // A client that disconnects is not a failure.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    ways: &[Way],
    asked: &Asked,
    answered: &AtomicUsize,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let way: usize = request.uri().path().trim_matches('/').parse().expect("a number");
    assert_eq!(request.uri().query(), Some("timeout=30s"));
    let body = request
        .into_body()
        .collect()
        .await
        .map_err(std::io::Error::other)?;
    let review = json::decode(&body.to_bytes(), Limits::SAFE).expect("a review");
    asked.reviews.lock().expect("nobody failed").push(review.clone());
    let is_first = answered.fetch_add(1, Ordering::Relaxed) == 0;
    let (code, text) = match ways.get(way).expect("a way") {
        Way::Once if is_first => (200, converted(&review).to_json()),
        Way::Review(change) => {
            let mut answer = converted(&review);
            change(&mut answer);
            (200, answer.to_json())
        }
        Way::Text(code, text) => (*code, (*text).to_owned()),
        Way::Once | Way::Nothing => return Err(std::io::Error::other("it says nothing")),
    };
    let response = Response::builder()
        .status(code)
        .header("Content-Type", "text/plain");
    Ok(response.body(Full::from(text)).expect("a response"))
}

/// The response to a review: `v1` has a `size` where other versions have a `count`, and each version has its
/// own defaults.
fn converted(review: &Value) -> Value {
    let text = |path: [&str; 2]| {
        review
            .at(path)
            .and_then(Value::as_str)
            .expect("a text")
            .to_owned()
    };
    let wanted = text(["request", "desiredAPIVersion"]);
    let objects = review.at(["request", "objects"]).and_then(Value::as_array);
    let objects = objects.expect("objects").iter().map(|object| {
        let mut object = object.clone();
        let members = object.as_object_mut().expect("an object");
        members.insert("apiVersion", wanted.as_str().into());
        if let Some(spec) = members.get_mut("spec").and_then(Value::as_object_mut) {
            spec.retain(|name, _| !matches!(name, "first" | "second"));
            let number = spec.remove("size").or_else(|| spec.remove("count"));
            let name = if wanted.ends_with("/v1") { "size" } else { "count" };
            number.map(|number| spec.insert(name, number));
        }
        object
    });
    let result = Map::from_iter([("status", Value::from("Success"))]);
    let response = Map::from_iter([
        ("uid", Value::from(text(["request", "uid"]))),
        ("result", result.into()),
        ("convertedObjects", Value::Array(objects.collect())),
    ]);
    Map::from_iter([
        ("kind", review.get("kind").cloned().unwrap_or_default()),
        (
            "apiVersion",
            review.get("apiVersion").cloned().unwrap_or_default(),
        ),
        ("response", response.into()),
    ])
    .into()
}
