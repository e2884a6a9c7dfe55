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

/// The allocator setting for how long it keeps freed memory, in milliseconds.
const KEEP_FREE: &str = "MIMALLOC_PURGE_DELAY";
/// A short time suffices: small requests reuse freed memory at once, and the memory of a CRD is rarely
/// reused.
const KEEP_FREE_MILLIS: &str = "1";

/// The maximum size of a file with certificates or a key.
const MAX_CERTIFICATE_BYTES: u64 = 16 << 20;

/// The interval in which free memory is returned to the system.
const GIVE_BACK: Duration = Duration::from_secs(2);

/// Serves until it is told to stop.
pub(crate) fn run(flags: &args::Serve) -> Result<ExitStatus, Problem> {
    // First of all: the process may replace itself, which must happen before it starts threads or opens files.
    set_allocator();
    log_to_standard_error(flags.logging_format, flags.verbosity);
    // Every connection is a file: raise the limit as far as allowed.
    if let Err(e) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(error = %e, "the limit on open files stays as it is");
    }
    let runtime = crate::runtime()?;
    let served = runtime.block_on(serve(flags));
    // Running work is abandoned: its clients are gone.
    runtime.shutdown_timeout(ABANDON_TIMEOUT);
    // Dropping the last reference makes the last checkpoint.
    served.map(drop)?;
    Ok(ExitStatus::Success)
}

/// The time that abandoned work has to notice that its client is gone.
const ABANDON_TIMEOUT: Duration = Duration::from_secs(1);

/// The time after the grace period at which the process ends in any case. Acknowledged writes are durable.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Resolves when the process is told to stop. From then on it ends within a limit, even if no thread of the
/// server is free; a second signal ends it at once.
fn stop_signal(limit: Duration) -> Result<oneshot::Receiver<()>, Problem> {
    let failed = |e| Problem::new("cannot catch signals", e);
    // A runtime of its own: the workers may all be busy with requests, and a signal must still be handled.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    // The handlers are installed here, not on the thread: a signal between the two would kill the process.
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
        // The receiver is gone if the start has failed; then there is nothing to stop.
        let _ = stop.send(());
        tokio::select! {
            () = signalled() => std::process::exit(1),
            () = tokio::time::sleep(limit) => {
                tracing::warn!("some work did not end in time, and is abandoned");
                // Status 0: acknowledged writes are durable, so nothing is lost by not waiting longer.
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
        Some(create_data_directory(flags)?)
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
        crds_only: flags.crds_only,
        enable_admission_plugins: flags.enable_admission_plugins.clone(),
        disable_admission_plugins: flags.disable_admission_plugins.clone(),
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
    // Installed early: a signal during the start also stops it gracefully.
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
    // Clients and scripts wait for this line: from here on, requests are accepted and the kubeconfig can be read.
    render::write(format!(
        "serving on https://{address}\nkubeconfig: {kubeconfig}\n"
    ))?;
    tokio::select! {
        _ = stop => {}
        () = give_back() => {}
    }
    // `/readyz` fails during the delay while requests are still served, so that load balancers move away first.
    server.announce_stop();
    tokio::time::sleep(flags.shutdown_delay_duration).await;
    server.stop().await;
    Ok(store)
}

/// A file that is removed when the process ends, unless it is killed.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Err(e) = std::fs::remove_file(&self.0) {
            tracing::warn!(path = %self.0.display(), error = %e, "cannot remove the temporary kubeconfig");
        }
    }
}

/// Makes the allocator keep freed memory only for a short time.
///
/// By default it keeps it for a second, so a burst of requests takes new memory instead of reusing freed
/// memory. The allocator reads its settings from the environment before the program starts, so the program
/// restarts itself. If that fails, it just uses more memory.
fn set_allocator() {
    // The restarted process has the variable, which ends the recursion. A value that the user sets is respected.
    if std::env::var_os(KEEP_FREE).is_some() {
        return;
    }
    let mut arguments = std::env::args_os();
    let (Some(name), Ok(program)) = (arguments.next(), std::env::current_exe()) else {
        return;
    };
    let mut again = Command::new(program);
    // `exec` returns only on failure, which costs memory and nothing else.
    let _ = again
        .arg0(name)
        .args(arguments)
        .env(KEEP_FREE, KEEP_FREE_MILLIS)
        .exec();
}

/// Returns free memory to the system periodically.
///
/// The allocator checks freed memory only when it allocates or when a thread ends, so after a burst of
/// requests it would keep the memory until the next one.
async fn give_back() {
    let mut time = tokio::time::interval(GIVE_BACK);
    loop {
        time.tick().await;
        // If no thread can be started, this is the least problem.
        let _ = std::thread::Builder::new().spawn(|| std::hint::black_box(Vec::<u8>::with_capacity(1)));
    }
}

/// Returns the data directory: that of the flag `--data-dir`, or else `scantling` in the user's data directory.
pub(crate) fn data_directory(flag: Option<&Path>) -> Result<PathBuf, Problem> {
    if let Some(directory) = flag {
        return Ok(directory.to_owned());
    }
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
    let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let base = base.or_else(home).ok_or_else(|| {
        Problem::plain("no place for the data: HOME is not set").hint("name one with --data-dir")
    })?;
    Ok(base.join("scantling"))
}

fn create_data_directory(flags: &args::Serve) -> Result<PathBuf, Problem> {
    let directory = data_directory(flags.data_dir.as_deref())?;
    let failed = |e| {
        let what = format!("cannot make the data directory {}", directory.display());
        Problem::new(what, e)
    };
    private::create_directory(&directory).map_err(failed)?;
    if holds_nothing_else(&directory).map_err(failed)? {
        // Only a directory without foreign files: `--data-dir /tmp` must not lock out other users.
        private::restrict(&directory);
    }
    Ok(directory)
}

/// Returns whether a directory belongs to this server alone. A shared one such as `/tmp` stays accessible to
/// others; the server's files in it are private in any case.
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
    // Opening replays the journal, which blocks for as long as the disk takes.
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
