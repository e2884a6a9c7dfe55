//! Accepts connections: TLS, HTTP/1.1 and HTTP/2, limits, and graceful shutdown.

use crate::api::Api;
use crate::auth::authentication;
use crate::config::ConnectionLimits;
use crate::http::connection::{Connection, ConnectionIo, Connections, StreamExecutor};
use crate::http::send::ResponseBody;
use crate::metrics::Closed;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The maximum size of an HTTP/1 request head: that of Go's HTTP server.
const MAX_HEAD: usize = 1 << 20;

/// The maximum size of HTTP/2 request headers. Unlike HTTP/1 heads, incomplete ones are not charged to a
/// budget.
const MAX_HEADER_LIST: u32 = 256 << 10;

/// The bytes that an HTTP/2 client may send before the request is read: as many as with kube-apiserver.
const STREAM_WINDOW: u32 = 256 << 10;

/// The same for all requests of a connection.
const CONNECTION_WINDOW: u32 = 1 << 20;

/// The maximum number of response bytes that an HTTP/2 stream buffers.
const SEND_BUFFER: usize = 32 << 10;

/// The time a client has to close a connection after being asked to.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The time tasks have to notice their cancellation.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Accepts connections until told to stop, lets running requests finish during the grace period, then cancels
/// them.
pub(crate) async fn listen(
    listener: TcpListener,
    tls: watch::Receiver<Arc<rustls::ServerConfig>>,
    api: Arc<Api>,
    limits: ConnectionLimits,
    grace_period: Duration,
) {
    let connections = Arc::new(Connections::new(&limits));
    let acceptor = Acceptor {
        http: Arc::new(http(&api, &limits)),
        handshake_timeout: limits.handshake_timeout,
        api: Arc::clone(&api),
        cancelled: CancellationToken::new(),
    };
    let tasks = TaskTracker::new();
    let mut stop = api.stop.clone();
    loop {
        let accepted = tokio::select! {
            a = listener.accept() => a,
            () = stopped(&mut stop) => break,
        };
        let (socket, peer) = match accepted {
            Ok(a) => a,
            Err(e) => {
                // Usually out of file descriptors: other connections may end meanwhile.
                tracing::warn!(error = %e, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Dropping the socket closes it: a refused client has cost neither a handshake nor a task.
        let Some(connection) = connections.admit(peer.ip(), &api.metrics) else {
            tracing::debug!(%peer, "too many connections");
            continue;
        };
        tune(&socket);
        // Taken per connection, so that a replaced certificate serves new connections at once.
        let tls = TlsAcceptor::from(Arc::clone(&tls.borrow()));
        let acceptor = acceptor.clone();
        tasks.spawn(async move {
            if let Err(why) = acceptor.serve(tls, socket, connection).await {
                tracing::debug!(%peer, why, "connection ended");
            }
        });
    }
    // New connections are refused from now on, and the task that reloads certificates ends with the last receiver.
    drop((listener, tls));
    tasks.close();
    let ended = async {
        tasks.wait().await;
        // Upgraded connections are no longer tracked as HTTP.
        api.web_sockets.tasks.close();
        api.web_sockets.tasks.wait().await;
    };
    if tokio::time::timeout(grace_period, ended).await.is_err() {
        tracing::warn!("some requests did not end within the grace period");
        acceptor.cancelled.cancel();
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, tasks.wait()).await;
    }
}

fn http(api: &Api, limits: &ConnectionLimits) -> auto::Builder<StreamExecutor> {
    let mut http = auto::Builder::new(StreamExecutor {
        write_timeout: limits.write_timeout,
        metrics: Arc::clone(&api.metrics),
    });
    http.http1()
        .timer(TokioTimer::new())
        // Heads and idle connections have their own deadlines: see `Connection::expired`.
        .header_read_timeout(None)
        .max_buf_size(MAX_HEAD);
    http.http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER_LIST)
        .max_concurrent_streams(limits.http2_max_streams)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(15));
    http
}

/// The bytes that a socket holds before they are sent. Otherwise the system takes megabytes per connection for a client
/// that does not read, and copying them takes the time of other clients.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 * 1024;

/// Sets the options of a socket. One that cannot be set only costs speed.
fn tune(socket: &TcpStream) {
    let _ = socket.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(socket).set_tcp_notsent_lowat(UNSENT);
}

/// Waits until the server stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|s| *s).await;
}

/// The state shared by all connections.
#[derive(Clone)]
struct Acceptor {
    http: Arc<auto::Builder<StreamExecutor>>,
    handshake_timeout: Duration,
    api: Arc<Api>,
    /// Set once the grace period is over.
    cancelled: CancellationToken,
}

impl Acceptor {
    /// Serves a connection to its end.
    async fn serve(
        self,
        tls: TlsAcceptor,
        socket: TcpStream,
        connection: Arc<Connection>,
    ) -> Result<(), String> {
        let mut stop = self.api.stop.clone();
        let handshake = tokio::time::timeout(self.handshake_timeout, tls.accept(socket));
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            () = connection.evicted() => return Err("another connection takes its place".to_owned()),
            // A client that has not sent a request by now is not served.
            () = stopped(&mut stop) => return Ok(()),
        };
        let failed = |why: String| {
            self.api.metrics.handshake_failed();
            Err(format!("TLS handshake failed: {why}"))
        };
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(e)) => return failed(e.to_string()),
            Err(_) => {
                self.api.metrics.closed(Closed::HandshakeTimeout);
                return failed("it took too long".to_owned());
            }
        };
        let certificates = stream.get_ref().1.peer_certificates();
        let user = certificates
            .and_then(|c| c.first())
            .and_then(|c| authentication::certificate_user(c.as_ref()));
        if let Some(user) = user {
            connection.set_certificate_user(Arc::new(user));
        }
        let metrics = Arc::clone(&self.api.metrics);
        let io = ConnectionIo::new(stream, Arc::clone(&connection), metrics, &self.api.memory.heads);
        let (api, of_request) = (Arc::clone(&self.api), Arc::clone(&connection));
        let service = service_fn(move |request: Request<Incoming>| {
            let (api, connection) = (Arc::clone(&api), Arc::clone(&of_request));
            async move { Ok::<Response<ResponseBody>, Infallible>(api.serve(request, connection).await) }
        });
        let served = self
            .http
            .serve_connection_with_upgrades(TokioIo::new(io), service);
        let mut served = pin!(served);
        tokio::select! {
            ended = served.as_mut() => return ended.map_err(|e| e.to_string()),
            () = connection.evicted() => return Err("another connection takes its place".to_owned()),
            () = connection.expired() => {
                self.api.metrics.closed(Closed::Idle);
                served.as_mut().graceful_shutdown();
                // A request that crosses the GOAWAY is still answered; connections without requests need not
                // be waited for.
                let ended = tokio::time::timeout(CLOSE_TIMEOUT, served).await;
                return ended.map_or(Ok(()), |e| e.map_err(|e| e.to_string()));
            }
            // Running requests continue; HTTP/2 clients learn from a GOAWAY that they must open another connection.
            () = stopped(&mut stop) => served.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            ended = served => ended.map_err(|e| e.to_string()),
            () = self.cancelled.cancelled() => Err("the grace period is over".to_owned()),
        }
    }
}
