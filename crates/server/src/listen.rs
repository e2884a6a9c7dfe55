//! Connections: TLS, HTTP/1.1 and HTTP/2, limits, and an orderly end.

use crate::api::Api;
use crate::auth::{self, User};
use crate::reply::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// How long a client may take for its handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most bytes of a request's head: what Go's HTTP server allows.
const MAX_HEAD: usize = 1 << 20;

/// How long running requests get to end after a stop.
const DRAIN: Duration = Duration::from_secs(10);

/// Accepts connections until told to stop, then lets running requests end.
pub(crate) async fn listen(
    listener: TcpListener,
    tls: watch::Receiver<Arc<rustls::ServerConfig>>,
    api: Arc<Api>,
    mut stop: watch::Receiver<bool>,
) {
    let graceful = GracefulShutdown::new();
    let http = Arc::new(http());
    loop {
        let accepted = tokio::select! {
            a = listener.accept() => a,
            _ = stop.wait_for(|s| *s) => break,
        };
        let (socket, peer) = match accepted {
            Ok(a) => a,
            Err(e) => {
                // Out of file descriptors, mostly: others may end their connections meanwhile.
                tracing::warn!(error = %e, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = socket.set_nodelay(true);
        let watcher = graceful.watcher();
        let acceptor = TlsAcceptor::from(Arc::clone(&tls.borrow()));
        let (api, http) = (Arc::clone(&api), Arc::clone(&http));
        tokio::spawn(async move {
            let Some((stream, user)) = handshake(acceptor, socket).await else {
                api.metrics.handshake_failed();
                tracing::debug!(%peer, "TLS handshake failed");
                return;
            };
            let service = service_fn(move |request: Request<Incoming>| {
                let (api, user) = (Arc::clone(&api), user.clone());
                async move { Ok::<Response<Body>, Infallible>(api.serve(request, user).await) }
            });
            let connection = http
                .serve_connection_with_upgrades(TokioIo::new(stream), service)
                .into_owned();
            if let Err(e) = watcher.watch(connection).await {
                tracing::debug!(%peer, error = %e, "connection ended");
            }
        });
    }
    drop((listener, tls));
    let ended = async {
        graceful.shutdown().await;
        // Connections that have changed their protocol are no longer HTTP's.
        api.upgraded.close();
        api.upgraded.wait().await;
    };
    if tokio::time::timeout(DRAIN, ended).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
}

fn http() -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MAX_HEAD);
    http.http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEAD as u32)
        .max_concurrent_streams(1000)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(15));
    http
}

type Tls = tokio_rustls::server::TlsStream<TcpStream>;

async fn handshake(acceptor: TlsAcceptor, socket: TcpStream) -> Option<(Tls, Option<Arc<User>>)> {
    let stream = tokio::time::timeout(PATIENCE, acceptor.accept(socket))
        .await
        .ok()?
        .ok()?;
    let user = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|c| c.first())
        .and_then(|c| auth::certificate_user(c.as_ref()))
        .map(Arc::new);
    Some((stream, user))
}
