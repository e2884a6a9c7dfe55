//! A running server.

use crate::api::Api;
use crate::auth::authentication::{KnownTokens, MASTERS, User};
use crate::auth::service_accounts::{KEY_FILE, TokenIssuer};
use crate::config::{Config, encodings};
use crate::controllers::barrier::CrdBarrier;
use crate::controllers::crd::Controller;
use crate::controllers::{bootstrap, namespaces, service_accounts, service_addresses};
use crate::http::compute::Pool;
use crate::http::listen;
use crate::http::memory::Memory;
use crate::http::tls;
use crate::kinds::builtin::{self, BuiltinSet};
use crate::kinds::custom::Compiler;
use crate::kinds::definitions::PendingDefinitions;
use crate::kinds::kind::Kinds;
use crate::metrics::Metrics;
use crate::openapi;
use arc_swap::ArcSwap;
use scantling_schema::gates::{AppliedGates, Gates};
use scantling_store::{KeySpace, Store, StoreError};
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The reason why a server did not start, and what to do.
#[derive(Debug)]
pub struct StartError(String);

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// A running server. Dropping it stops nothing: call [`Server::stop`].
pub struct Server {
    address: SocketAddr,
    authority: String,
    admin_token: String,
    api: Arc<Api>,
    stop: watch::Sender<bool>,
    shutdown_grace_period: Duration,
    tasks: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Server {
    /// Neither tokens nor objects are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Starts a server.
    pub async fn start(config: Config, store: Arc<dyn Store>) -> Result<Server, StartError> {
        let fail = |e: String| StartError(e);
        openapi::check().map_err(fail)?;
        let identity = match (
            &config.tls_cert_file,
            &config.tls_private_key_file,
            &config.certificate_dir,
        ) {
            (Some(cert), Some(key), _) => tls::load(cert, key).map_err(fail)?,
            (None, None, Some(dir)) => tls::load_or_generate(dir, config.bind_address).map_err(fail)?,
            (None, None, None) => {
                tls::generate(config.bind_address).map_err(|e| StartError(e.to_string()))?
            }
            _ => {
                return Err(StartError(
                    "--tls-cert-file and --tls-private-key-file go together".to_owned(),
                ));
            }
        };
        let material = tls::Material::new(identity, config.client_ca_file.as_deref()).map_err(fail)?;
        let (configs, tls) = watch::channel(tls::server_config(&material).map_err(fail)?);
        let mut tokens = KnownTokens::default();
        if let Some(path) = &config.token_auth_file {
            let text = tls::read(path).map_err(fail)?;
            tokens
                .add_file(&text)
                .map_err(|e| StartError(format!("{}: {e}", path.display())))?;
        }
        let admin_token = config.admin_token.clone().map_or_else(random_token, |t| t.0);
        let (name, groups) = ("admin".to_owned(), vec![MASTERS.to_owned()]);
        tokens.add(&admin_token, User::authenticated(name.clone(), name, groups));

        let issuer = token_issuer(config.certificate_dir.as_deref()).map_err(fail)?;
        let at = SocketAddr::new(config.bind_address, config.secure_port);
        // Early: a port that is taken must be reported before anything is written to the store.
        let listener = TcpListener::bind(at).await.map_err(|e| {
            StartError(format!(
                "cannot listen on {at}: {e}; choose another --secure-port or stop what listens there"
            ))
        })?;
        let address = listener.local_addr().map_err(|e| StartError(e.to_string()))?;
        let (stop, stopped) = watch::channel(false);
        let metrics = Arc::new(Metrics::new());
        let AppliedGates { gates, notes } = Gates::apply(&config.feature_gates).map_err(fail)?;
        for note in notes {
            tracing::warn!("{note}");
        }
        let compiler = Compiler::new(gates, &metrics);
        let mut kinds = Kinds::default();
        let set = match config.crds_only {
            true => BuiltinSet::CrdsOnly,
            false => BuiltinSet::Default,
        };
        for kind in builtin::kinds(&compiler, set).map_err(fail)? {
            kinds.insert(Arc::new(kind));
        }
        let plugins = scantling_builtin::admission::select(
            &config.enable_admission_plugins,
            &config.disable_admission_plugins,
        );
        let plugins = plugins.map_err(fail)?;
        let keys = KeySpace::new(&config.etcd_prefix).map_err(|e| StartError(e.to_string()))?;
        let api = Arc::new(Api {
            store,
            keys,
            kinds: ArcSwap::from_pointee(kinds),
            documents: openapi::Documents::default(),
            event_encodings: crate::rest::event_encoding_cache::EventEncodingCache::default(),
            lists: crate::rest::listing::SharedListings::default(),
            recent: crate::rest::watch::RecentObjects::default(),
            tokens,
            issuer,
            anonymous: config.anonymous_auth.then(|| Arc::new(User::anonymous())),
            authorization: config.authorization_mode,
            encodings: encodings(gates),
            metrics,
            in_flight: Arc::new(Semaphore::new(config.max_requests_inflight)),
            related_objects: crate::rest::related_objects_cache::RelatedObjectsCache::default(),
            compute: Pool::new(std::thread::available_parallelism().map_or(1, NonZeroUsize::get)),
            memory: Memory::new(config.connections.max_buffered_bytes),
            request_timeout: config.request_timeout,
            min_request_timeout: config.min_request_timeout,
            strict_transport_security: config.strict_transport_security().map_err(fail)?,
            address: address.to_string(),
            ready: AtomicBool::new(false),
            stop: stopped,
            web_sockets: crate::http::websocket::Watches::default(),
            compiler,
            crds: CrdBarrier::default(),
            plugins,
            usage: crate::rest::admission::UsageLocks::default(),
            services: tokio::sync::Mutex::default(),
            pending: PendingDefinitions::default(),
        });
        let store_failed = |e: StoreError| StartError(format!("the store does not answer: {e}"));
        // Before connections are accepted, so that every client finds these objects.
        let created = bootstrap::create_initial_objects(&api, address.port()).await;
        created.map_err(|e| StartError(format!("cannot create the initial objects: {}", e.message())))?;
        let (controller, revision) = Controller::start(Arc::clone(&api)).await.map_err(store_failed)?;
        api.crds.applied(revision);
        api.ready.store(true, Ordering::Release);
        let authority = material.identity.authority.clone();
        let pair = config.tls_cert_file.zip(config.tls_private_key_file);
        let mut tasks = vec![
            tokio::spawn(tls::follow(material, pair, configs)),
            tokio::spawn(controller.run(revision)),
            tokio::spawn(listen::listen(
                listener,
                tls,
                Arc::clone(&api),
                config.connections,
                config.shutdown_grace_period,
            )),
        ];
        if config.empty_namespaces {
            tasks.push(tokio::spawn(namespaces::run(Arc::clone(&api))));
        }
        if !config.crds_only {
            tasks.push(tokio::spawn(service_addresses::run(Arc::clone(&api))));
        }
        if api.plugins.iter().any(|plugin| plugin.name == "ServiceAccount") {
            tasks.push(tokio::spawn(service_accounts::run(Arc::clone(&api))));
        }
        Ok(Server {
            address,
            authority,
            admin_token,
            api,
            stop,
            shutdown_grace_period: config.shutdown_grace_period,
            tasks,
        })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The administrator's token.
    pub fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// The CA that clients must trust, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// A kubeconfig for the administrator.
    pub fn kubeconfig(&self) -> String {
        use base64::Engine as _;
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.authority);
        let host = match self.address.ip() {
            // Clients cannot connect to an unspecified address.
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
            std::net::IpAddr::V4(ip) => ip.to_string(),
        };
        let (port, token) = (self.address.port(), &self.admin_token);
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: scantling\nclusters:\n- name: scantling\n  cluster:\n    \
             certificate-authority-data: {authority}\n    server: https://{host}:{port}\nusers:\n- name: admin\n  \
             user:\n    token: {token}\ncontexts:\n- name: scantling\n  context:\n    cluster: scantling\n    user: \
             admin\n    namespace: default\n"
        )
    }

    /// Writes the kubeconfig, readable only by its owner.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), StartError> {
        tls::write_private(path, &self.kubeconfig()).map_err(StartError)
    }

    /// Announces a stop: readiness fails, and everything else continues.
    pub fn announce_stop(&self) {
        self.api.ready.store(false, Ordering::Release);
    }

    /// Stops the server: readiness fails, running requests end, watches are closed. After the grace period, the rest is
    /// cancelled.
    pub async fn stop(self) {
        self.announce_stop();
        // Fails only if nothing listens any more.
        let _ = self.stop.send(true);
        // One deadline for all tasks: waiting for each in turn must not add up.
        let deadline = Instant::now() + self.shutdown_grace_period + listen::CANCEL_TIMEOUT;
        for mut task in self.tasks {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

/// The issuer of service-account tokens. Its key is stored beside the server's certificate, so tokens survive
/// a restart.
fn token_issuer(dir: Option<&Path>) -> Result<TokenIssuer, String> {
    let Some(path) = dir.map(|dir| dir.join(KEY_FILE)) else {
        return TokenIssuer::generate().map(|(issuer, _)| issuer);
    };
    if path.exists() {
        let pem = tls::read(&path)?;
        return TokenIssuer::from_pem(&pem).map_err(|e| format!("{}: {e}", path.display()));
    }
    let (issuer, pem) = TokenIssuer::generate()?;
    tls::write_private(&path, &pem)?;
    Ok(issuer)
}

fn random_token() -> String {
    format!(
        "{}{}",
        uuid::Uuid::new_v4().simple(),
        uuid::Uuid::new_v4().simple()
    )
}
