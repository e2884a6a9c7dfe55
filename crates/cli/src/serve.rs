//! `scantling serve`: the API server.

use crate::args;
use crate::files;
use crate::problem::{ExitStatus, Problem};
use crate::render;
use scantling_server::{AuthorizationMode, Config, ConnectionLimits, Server};
use scantling_store::private;
use scantling_store::{EmbeddedConfig, EmbeddedStore, EtcdConfig, EtcdStore, KeySpace, MemStore, Store};
use std::num::NonZeroUsize;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// The allocator's setting of how long it keeps what was freed, in milliseconds.
const KEEP_FREE: &str = "MIMALLOC_PURGE_DELAY";
/// What one small request frees is what the next one takes, whatever is set here; of what a definition takes, nothing
/// waits for the next.
const KEEP_FREE_MILLIS: &str = "1";

/// The largest file with certificates or a key that is read.
const MAX_CERTIFICATE_BYTES: u64 = 16 << 20;

/// How often free memory goes back to the system.
const GIVE_BACK: Duration = Duration::from_secs(2);

/// Serves until it is told to stop.
pub(crate) fn run(flags: &args::Serve) -> Result<ExitStatus, Problem> {
    set_allocator();
    log_to_standard_error(flags.logging_format, flags.verbosity);
    // Every connection is a file: as many as this process may have.
    if let Err(e) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(error = %e, "the limit on open files stays as it is");
    }
    let runtime = crate::runtime()?;
    let served = runtime.block_on(serve(flags));
    // Work that still runs is abandoned: its clients are gone.
    runtime.shutdown_timeout(ABANDON_TIMEOUT);
    // The last reference carries everything over to the state at rest.
    served.map(drop)?;
    Ok(ExitStatus::Success)
}

/// The time that abandoned work gets to notice that its client is gone.
const ABANDON_TIMEOUT: Duration = Duration::from_secs(1);

/// The time after the grace period at which the process ends in any case. Acknowledged writes are on disk.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Resolves once the process is told to stop. From then on, it ends within a limit, even if no thread of the server has
/// time for that; a second signal ends it at once.
fn stop_signal(limit: Duration) -> Result<oneshot::Receiver<()>, Problem> {
    let failed = |e| Problem::new("cannot catch signals", e);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let context = runtime.enter();
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    drop(context);
    let (stop, stopped) = oneshot::channel();
    let mut signalled = async move || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let wait = async move {
        signalled().await;
        let _ = stop.send(());
        tokio::select! {
            () = signalled() => std::process::exit(1),
            () = tokio::time::sleep(limit) => {
                tracing::warn!("some work did not end in time, and is abandoned");
                std::process::exit(0)
            }
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(move || runtime.block_on(wait)).map_err(failed)?;
    Ok(stopped)
}

async fn serve(flags: &args::Serve) -> Result<Arc<dyn Store>, Problem> {
    let directory = if flags.in_memory {
        None
    } else {
        Some(data_directory(flags)?)
    };
    let config = Config {
        bind_address: flags.bind_address,
        secure_port: flags.secure_port,
        certificate_dir: directory.as_ref().map(|d| d.join("pki")),
        tls_cert_file: flags.tls_cert_file.clone(),
        tls_private_key_file: flags.tls_private_key_file.clone(),
        client_ca_file: flags.client_ca_file.clone(),
        token_auth_file: flags.token_auth_file.clone(),
        anonymous_auth: flags.anonymous_auth,
        authorization_mode: match flags.authorization_mode {
            args::AuthorizationMode::AlwaysAllow => AuthorizationMode::AlwaysAllow,
            args::AuthorizationMode::AlwaysDeny => AuthorizationMode::AlwaysDeny,
        },
        max_requests_inflight: flags.max_requests_inflight,
        request_timeout: flags.request_timeout,
        min_request_timeout: flags.min_request_timeout,
        strict_transport_security_directives: flags.strict_transport_security_directives.clone(),
        etcd_prefix: flags.etcd_prefix.clone(),
        feature_gates: flags.feature_gates.iter().cloned().collect(),
        shutdown_grace_period: flags.shutdown_grace_period,
        connections: ConnectionLimits {
            max_connections: flags.max_connections.map(NonZeroUsize::get),
            max_connections_per_client: flags.max_connections_per_client.map(NonZeroUsize::get),
            read_header_timeout: flags.read_header_timeout,
            idle_timeout: flags.idle_timeout,
            write_timeout: flags.write_timeout,
            http2_max_streams: flags.http2_max_streams_per_connection.get(),
            max_buffered_bytes: usize::try_from(flags.max_buffered_mib.get())
                .unwrap_or(usize::MAX)
                .saturating_mul(1 << 20),
            ..ConnectionLimits::default()
        },
        ..Config::default()
    };
    let store = store(flags, directory.as_deref()).await?;
    // Caught from now on: a signal that comes while the server starts ends it in order, too.
    let limit = [
        flags.shutdown_delay_duration,
        flags.shutdown_grace_period,
        EXIT_TIMEOUT,
    ];
    let stop = stop_signal(limit.into_iter().fold(Duration::ZERO, Duration::saturating_add))?;
    let server = Server::start(config, Arc::clone(&store))
        .await
        .map_err(|e| Problem::new("cannot start the server", e))?;
    let (kubeconfig, _temporary) = match (&flags.write_kubeconfig, &directory) {
        (Some(path), _) => (path.clone(), None),
        (None, Some(directory)) => (directory.join("kubeconfig"), None),
        (None, None) => {
            let name = format!("scantling-{}.kubeconfig", std::process::id());
            let path = std::env::temp_dir().join(name);
            (path.clone(), Some(TemporaryFile(path)))
        }
    };
    server
        .write_kubeconfig(&kubeconfig)
        .map_err(|e| Problem::new("cannot write the kubeconfig", e))?;
    let (address, kubeconfig) = (server.address(), kubeconfig.display());
    render::write(format!(
        "serving on https://{address}\nkubeconfig: {kubeconfig}\n"
    ))?;
    tokio::select! {
        _ = stop => {}
        () = give_back() => {}
    }
    server.announce_stop();
    tokio::time::sleep(flags.shutdown_delay_duration).await;
    server.stop().await;
    Ok(store)
}

/// A file that goes with the process, unless that is killed.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Err(e) = std::fs::remove_file(&self.0) {
            tracing::warn!(path = %self.0.display(), error = %e, "cannot remove the temporary kubeconfig");
        }
    }
}

/// Has the allocator keep what was freed for a short time only.
///
/// It keeps memory because that is often wanted again, for a second if it is not told otherwise: long enough for a
/// burst of requests to take new memory where what others have freed would do. It takes its settings from the
/// environment, before the program begins; so the program begins again. If it cannot, it is larger for a while.
fn set_allocator() {
    if std::env::var_os(KEEP_FREE).is_some() {
        return;
    }
    let mut arguments = std::env::args_os();
    let (Some(name), Ok(program)) = (arguments.next(), std::env::current_exe()) else {
        return;
    };
    let mut again = Command::new(program);
    let _ = again
        .arg0(name)
        .args(arguments)
        .env(KEEP_FREE, KEEP_FREE_MILLIS)
        .exec();
}

/// Gives memory that is free back to the system, for ever.
///
/// The allocator looks at what was freed only when it is asked for more: what a burst of requests took, it would keep
/// until the next one. It looks at it when a thread ends, too.
async fn give_back() {
    let mut time = tokio::time::interval(GIVE_BACK);
    loop {
        time.tick().await;
        // If there can be no thread, there is more to worry about than this.
        let _ = std::thread::Builder::new().spawn(|| std::hint::black_box(Vec::<u8>::with_capacity(1)));
    }
}

/// The directory that everything is kept in.
fn data_directory(flags: &args::Serve) -> Result<PathBuf, Problem> {
    let home = || {
        let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        base.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")))
    };
    let directory = match &flags.data_dir {
        Some(directory) => directory.clone(),
        None => home().map(|base| base.join("scantling")).ok_or_else(|| {
            Problem::plain("no place for the data: HOME is not set").hint("name one with --data-dir")
        })?,
    };
    let failed = |e| {
        let what = format!("cannot make the data directory {}", directory.display());
        Problem::new(what, e)
    };
    private::create_directory(&directory).map_err(failed)?;
    if holds_nothing_else(&directory).map_err(failed)? {
        private::restrict(&directory);
    }
    Ok(directory)
}

/// Whether a directory is there for this server alone. One that others use, too, such as `/tmp`, stays open to them; what
/// the server keeps in it is closed in any case.
fn holds_nothing_else(directory: &Path) -> std::io::Result<bool> {
    let known = ["store", "pki", "kubeconfig"];
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        if !known.iter().any(|known| name == *known) {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn store(flags: &args::Serve, directory: Option<&Path>) -> Result<Arc<dyn Store>, Problem> {
    if !flags.etcd_servers.is_empty() {
        let failed = |e| Problem::new("cannot use etcd", e);
        let pem = |file: &Option<PathBuf>| match file {
            None => Ok(None),
            Some(file) => files::read(file, MAX_CERTIFICATE_BYTES)
                .map(Some)
                .map_err(|e| Problem::new(format!("cannot read {}", file.display()), e)),
        };
        let config = EtcdConfig {
            keys: KeySpace::new(&flags.etcd_prefix).map_err(failed)?,
            ca_certificate: pem(&flags.etcd_cafile)?,
            client_identity: pem(&flags.etcd_certfile)?.zip(pem(&flags.etcd_keyfile)?),
            ..EtcdConfig::new(flags.etcd_servers.clone())
        };
        return Ok(Arc::new(EtcdStore::connect(config).await.map_err(failed)?));
    }
    let Some(directory) = directory else {
        return Ok(Arc::new(MemStore::default()));
    };
    let config = EmbeddedConfig::new(directory.join("store"));
    let opened = tokio::task::spawn_blocking(move || EmbeddedStore::open(config)).await;
    let opened = opened.map_err(|e| Problem::new("cannot open the store", e))?;
    Ok(Arc::new(
        opened.map_err(|e| Problem::new("cannot open the store", e))?,
    ))
}

fn log_to_standard_error(format: args::LoggingFormat, verbosity: u8) {
    let level = match verbosity {
        0 => tracing_subscriber::filter::LevelFilter::WARN,
        1 | 2 => tracing_subscriber::filter::LevelFilter::INFO,
        _ => tracing_subscriber::filter::LevelFilter::DEBUG,
    };
    let colours = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .with_max_level(level);
    match format {
        args::LoggingFormat::Text => builder.init(),
        args::LoggingFormat::Json => builder.json().init(),
    }
}
