//! Credentials, certificates and secrets.

use crate::client::{Certificate, Client};
use crate::support::{WIDGETS, eventually, serve, serve_widgets, widget};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use scantling_server::{AuthorizationMode, Config, Token};
use std::io::Write;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn bad_tokens() {
    let (server, _) = serve(Config::default()).await;
    let admin = server.admin_token();
    for header in [
        "Bearer wrong".to_owned(),
        format!("Bearer {admin}x"),
        format!("Bearer {}", admin.chars().skip(1).collect::<String>()),
        format!("Bearer {}", admin.to_uppercase()),
    ] {
        let mut client = Client::anonymous(&server).with_authorization(&header);
        assert_eq!(client.get("/version").await.status, 401, "{header:?}");
    }
    // Only bearer tokens are credentials.
    for header in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {admin}"),
        admin.to_owned(),
    ] {
        let mut client = Client::anonymous(&server).with_authorization(&header);
        assert_eq!(client.get("/version").await.status, 200, "{header:?}");
        assert_eq!(client.get("/api").await.status, 403, "{header:?}");
    }
    let mut client = Client::anonymous(&server).with_authorization(&format!("bearer {admin}"));
    assert_eq!(client.get("/version").await.status, 200);
    server.stop().await;
}

/// As with kube-apiserver, the file is read once, at start.
#[tokio::test]
async fn token_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tokens.csv");
    std::fs::write(&path, "first,alice,1,\"dev,ops\"\n").expect("written");
    let config = || Config {
        token_auth_file: Some(path.clone()),
        ..Config::default()
    };
    let (server, _) = serve(config()).await;
    std::fs::write(&path, "second,alice,1\n").expect("written");
    let status = async |server: &_, token: &str| {
        let mut client = Client::anonymous(server).with_token(token);
        client.get("/version").await.status
    };
    assert_eq!(status(&server, "first").await, 200);
    assert_eq!(status(&server, "second").await, 401);
    server.stop().await;
    let (server, _) = serve(config()).await;
    assert_eq!(status(&server, "first").await, 401);
    assert_eq!(status(&server, "second").await, 200);
    server.stop().await;

    std::fs::write(&path, "token,name\n").expect("written");
    let store = Arc::new(scantling_store::MemStore::default());
    let refused = scantling_server::Server::start(config(), store).await;
    let why = refused.expect_err("a line is too short").to_string();
    assert!(
        why.ends_with("line 1: needs at least token, user name and user id"),
        "{why}"
    );
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    Authority {
        issuer: Issuer::new(params, key),
        pem,
    }
}

/// A client's certificate and key.
fn issue(authority: &Authority, name: &str, group: &str) -> (String, String) {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, &authority.issuer).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}

#[tokio::test]
async fn client_certificates() {
    let dir = tempfile::tempdir().expect("a directory");
    let trusted = authority("trusted");
    let path = dir.path().join("ca.crt");
    std::fs::write(&path, &trusted.pem).expect("written");
    let config = Config {
        client_ca_file: Some(path),
        authorization_mode: AuthorizationMode::AlwaysDeny,
        ..Config::default()
    };
    let (server, mut admin) = serve(config).await;
    // A token is accepted, and so is a certificate; its organization is a group.
    assert_eq!(admin.get("/version").await.status, 200);
    let (chain, key) = issue(&trusted, "carol", "system:masters");
    let mut master = Client::certified(
        &server,
        server.authority(),
        &Certificate {
            chain: &chain,
            key: &key,
        },
    );
    assert_eq!(master.get("/version").await.status, 200);
    let (chain, key) = issue(&trusted, "dave", "crew");
    let mut crew = Client::certified(
        &server,
        server.authority(),
        &Certificate {
            chain: &chain,
            key: &key,
        },
    );
    assert_eq!(
        crew.get("/version").await.said(),
        (
            403,
            "forbidden: User \"dave\" cannot get path \"/version\": Everything is forbidden.".to_owned()
        )
    );
    // A certificate of another CA fails the handshake.
    let (chain, key) = issue(&authority("other"), "mallory", "system:masters");
    let mut other = Client::certified(
        &server,
        server.authority(),
        &Certificate {
            chain: &chain,
            key: &key,
        },
    );
    let refused = other.ask("GET", "/version", Default::default()).await;
    assert!(refused.is_err(), "{refused:?}");
    let mut nobody = Client::anonymous(&server);
    assert_eq!(nobody.get("/version").await.status, 403);
    server.stop().await;
}

/// A self-signed server certificate and its key.
fn self_signed(name: &str) -> (String, String) {
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), name.to_owned()]).expect("parameters");
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}

#[tokio::test]
async fn certificates_are_replaced_while_the_server_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(path(name), text).expect("written");
    let (certificate, key) = self_signed("first.example.com");
    let (trusted, next) = (authority("trusted"), authority("next"));
    write("tls.crt", &certificate);
    write("tls.key", &key);
    write("ca.crt", &trusted.pem);
    let config = Config {
        tls_cert_file: Some(path("tls.crt")),
        tls_private_key_file: Some(path("tls.key")),
        client_ca_file: Some(path("ca.crt")),
        ..Config::default()
    };
    let (server, mut before) = serve(config).await;
    assert_eq!(before.get("/version").await.status, 200);
    let (chain, client_key) = issue(&next, "carol", "system:masters");
    let carol = Certificate {
        chain: &chain,
        key: &client_key,
    };
    // A key without a matching certificate is ignored.
    let (certificate, key) = self_signed("second.example.com");
    write("tls.key", &key);
    write("ca.crt", &next.pem);
    write("tls.crt", &certificate);
    eventually("the new files count", async || {
        let mut client = Client::certified(&server, &certificate, &carol);
        let answer = client.ask("GET", "/version", Default::default()).await;
        answer.is_ok_and(|answer| answer.status == 200)
    })
    .await;
    // Existing connections stay open.
    assert_eq!(before.get("/version").await.status, 200);
    write("tls.crt", "no certificate");
    let mut client = Client::certified(&server, &certificate, &carol);
    assert_eq!(client.get("/version").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn always_deny_authorization() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tokens.csv");
    std::fs::write(&path, "t,bob,1,crew\n").expect("written");
    let config = Config {
        token_auth_file: Some(path),
        authorization_mode: AuthorizationMode::AlwaysDeny,
        ..Config::default()
    };
    let (server, _) = serve_widgets(config).await;
    let mut bob = Client::anonymous(&server).with_token("t");
    let user = "User \"bob\" cannot";
    let named = format!("{WIDGETS}/a");
    for (method, path, said) in [
        (
            "GET",
            WIDGETS,
            format!(
                "widgets.example.com is forbidden: {user} list resource \"widgets\" in API group \"example.com\" in the \
                 namespace \"default\": Everything is forbidden."
            ),
        ),
        (
            "PATCH",
            &format!("{named}/status"),
            format!(
                "widgets.example.com \"a\" is forbidden: {user} patch resource \"widgets/status\" in API group \
                 \"example.com\" in the namespace \"default\": Everything is forbidden."
            ),
        ),
        (
            "GET",
            "/api/v1/namespaces?watch=1",
            format!(
                "namespaces is forbidden: {user} watch resource \"namespaces\" in API group \"\" at the cluster scope: \
                 Everything is forbidden."
            ),
        ),
        (
            "DELETE",
            WIDGETS,
            format!(
                "widgets.example.com is forbidden: {user} deletecollection resource \"widgets\" in API group \
                 \"example.com\" in the namespace \"default\": Everything is forbidden."
            ),
        ),
    ] {
        let answer = bob.send(method, path, "{}").await;
        assert_eq!(answer.said(), (403, said), "{method} {path}");
    }
    server.stop().await;
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The log never contains tokens or the contents of objects.
#[tokio::test]
async fn logs_hold_no_secrets() {
    let captured = Captured::default();
    let writer = captured.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .init();
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tokens.csv");
    std::fs::write(&path, "swordfish-in-a-file,alice,1\n").expect("written");
    let config = Config {
        token_auth_file: Some(path),
        admin_token: Some(Token("swordfish-of-the-admin".to_owned())),
        ..Config::default()
    };
    let mut debug = format!("{config:?}");
    let (server, mut client) = serve_widgets(config).await;
    let secret = widget("a").replace(
        "\"spec\"",
        "\"metadata2\":{\"x\":\"swordfish-in-an-object\"},\"spec\"",
    );
    client.send("POST", WIDGETS, &secret).await;
    client
        .send(
            "POST",
            WIDGETS,
            &secret.replace("\"size\":1", "\"size\":\"swordfish-in-a-field\""),
        )
        .await;
    client
        .get(&format!("{WIDGETS}?access_token=swordfish-in-a-query"))
        .await;
    for header in [
        "Bearer swordfish-in-a-file",
        "Bearer swordfish-that-is-wrong",
        "swordfish-alone",
    ] {
        Client::anonymous(&server)
            .with_authorization(header)
            .get("/version")
            .await;
    }
    // A connection without HTTP, and one without TLS.
    let mut raw = client.open().await.expect("a connection");
    raw.write_all(b"Authorization: Bearer swordfish-first\r\n\r\n")
        .await
        .expect("sent");
    let _ = raw.read_to_end(&mut Vec::new()).await;
    let mut plain = tokio::net::TcpStream::connect(server.address())
        .await
        .expect("a connection");
    plain
        .write_all(b"GET / HTTP/1.1\r\nAuthorization: Bearer swordfish-plain\r\n\r\n")
        .await
        .expect("sent");
    let _ = plain.read_to_end(&mut Vec::new()).await;
    debug += &format!("{server:?}");
    server.stop().await;
    let log = String::from_utf8_lossy(&captured.0.lock().expect("not poisoned")).into_owned();
    assert!(
        log.contains("path=\"/version\"") || log.contains("/version"),
        "{log}"
    );
    assert!(log.contains("alice"), "who asks is logged");
    assert!(!log.contains("swordfish"), "{log}");
    assert!(!debug.contains("swordfish"), "{debug}");
}

#[tokio::test]
async fn the_kubeconfig_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("kubeconfig");
    let config = Config {
        certificate_dir: Some(dir.path().join("pki")),
        ..Config::default()
    };
    let (server, _) = serve(config).await;
    server.write_kubeconfig(&path).expect("written");
    let mode = |p: &std::path::Path| std::fs::metadata(p).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&dir.path().join("pki/server.key")), 0o600);
    server.stop().await;
}
