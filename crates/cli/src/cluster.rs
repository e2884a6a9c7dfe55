//! Reads CRDs and objects from a cluster that the user names.

use crate::args;
use crate::catalog::Catalog;
use crate::files;
use crate::input::{InputObject, flatten};
use crate::problem::Problem;
use kube::api::{GetParams, ListParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use scantling_schema::definition::{CrdVersion, Definition, Spec};
use scantling_value::{Limits, Value, json};
use secrecy::SecretString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of objects per page.
const PAGE: u32 = 500;

/// A cluster that the user named.
pub(crate) struct Cluster {
    client: kube::Client,
    runtime: tokio::runtime::Runtime,
    url: Arc<str>,
}

/// The cluster that the flags name, if any.
pub(crate) fn asked_for(flags: &args::Cluster) -> Result<Option<Cluster>, Problem> {
    if flags.names_one() {
        Cluster::connect(flags).map(Some)
    } else {
        Ok(None)
    }
}

impl Cluster {
    fn connect(flags: &args::Cluster) -> Result<Self, Problem> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Problem::new("cannot start a client", e))?;
        let config = runtime.block_on(config(flags))?;
        let url = config.cluster_url.to_string();
        // The client starts a background task, for which it needs the runtime.
        let _inside = runtime.enter();
        let client = kube::Client::try_from(config)
            .map_err(|e| Problem::new(format!("cannot make a client of {url}"), e))?;
        drop(_inside);
        Ok(Cluster {
            client,
            runtime,
            url: url.trim_end_matches('/').into(),
        })
    }

    /// The name for messages.
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.url)
    }

    /// Returns all CRDs.
    pub(crate) fn definitions(&self) -> Result<Vec<InputObject>, Problem> {
        let mut all = Vec::new();
        let mut pages = self.pages("/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned());
        while let Some(page) = pages.next()? {
            all.extend(page);
        }
        Ok(all)
    }

    /// Lists all objects of a CRD page by page, in the storage version if it is served.
    fn objects(&self, definition: &Definition) -> Pages<'_> {
        let spec = &definition.spec;
        // The storage version is read without conversion, so objects are as they are stored.
        let stored = spec.storage_version().filter(|v| v.served);
        let version = stored.or_else(|| spec.versions().iter().find(|v| v.served));
        let version = version.map_or("", |v: &CrdVersion| v.name.as_str());
        self.pages(format!("/apis/{}/{version}/{}", spec.group, spec.names.plural))
    }

    /// Returns the object with the same kind, namespace and name, if it exists.
    pub(crate) fn object(&self, object: &InputObject, spec: &Spec) -> Result<Option<Value>, Problem> {
        if object.name().is_empty() {
            return Ok(None);
        }
        let namespace = match (spec.scope.as_str(), object.namespace()) {
            ("Cluster", _) => String::new(),
            (_, "") => "namespaces/default/".to_owned(),
            (_, namespace) => format!("namespaces/{namespace}/"),
        };
        let path = format!("/apis/{}/{namespace}{}", object.api_version(), spec.names.plural);
        let failed = |why: &dyn std::fmt::Display| {
            Problem::new(format!("cannot get {}{path}/{}", self.url, object.name()), why)
        };
        let request = Request::new(path.as_str())
            .get(object.name(), &GetParams::default())
            .map_err(|e| failed(&e))?;
        match self.runtime.block_on(self.client.request_text(request)) {
            Ok(text) => json::decode(text.as_bytes(), Limits::SERVER)
                .map(Some)
                .map_err(|e| failed(&e)),
            // The write creates an object that does not exist.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(e) => Err(failed(&e)),
        }
    }

    /// Calls a function with each page of objects of some CRDs.
    pub(crate) fn each_page(
        &self,
        catalog: &Catalog,
        mut work: impl FnMut(&Arc<str>, Vec<InputObject>) -> Result<(), Problem>,
    ) -> Vec<Problem> {
        let mut problems = Vec::new();
        for entry in catalog.entries() {
            let mut pages = self.objects(&entry.definition);
            let name = pages.name();
            let mut all = || -> Result<(), Problem> {
                while let Some(page) = pages.next()? {
                    work(&name, page)?;
                }
                Ok(())
            };
            problems.extend(all().err());
        }
        problems
    }

    fn pages(&self, path: String) -> Pages<'_> {
        Pages {
            cluster: self,
            path,
            next: Next::First,
        }
    }
}

/// The pages of a list.
struct Pages<'c> {
    cluster: &'c Cluster,
    path: String,
    next: Next,
}

/// The next page to request.
enum Next {
    First,
    After(String),
    None,
}

impl Pages<'_> {
    /// The origin of the objects, for messages.
    fn name(&self) -> Arc<str> {
        format!("{}{}", self.cluster.url, self.path).into()
    }

    /// The objects of the next page.
    fn next(&mut self) -> Result<Option<Vec<InputObject>>, Problem> {
        let mut parameters = ListParams::default().limit(PAGE);
        // A request that fails leaves `None`, so the list ends instead of repeating the page.
        match std::mem::replace(&mut self.next, Next::None) {
            Next::First => {}
            Next::After(token) => parameters = parameters.continue_token(&token),
            Next::None => return Ok(None),
        }
        let failed = |why: &dyn std::fmt::Display| Problem::new(format!("cannot list {}", self.name()), why);
        let request = Request::new(self.path.as_str())
            .list(&parameters)
            .map_err(|e| failed(&e))?;
        let text = self
            .cluster
            .runtime
            .block_on(self.cluster.client.request_text(request))
            .map_err(|e| failed(&e))?;
        let value = json::decode(text.as_bytes(), Limits::SERVER).map_err(|e| failed(&e))?;
        let token = value.at(["metadata", "continue"]).and_then(Value::as_str);
        if let Some(token) = token.filter(|token| !token.is_empty()) {
            self.next = Next::After(token.to_owned());
        }
        let mut page = Vec::new();
        let whole = InputObject {
            value,
            found_in_text: Vec::new(),
            index: Vec::new(),
        };
        flatten(whole, &mut page);
        // The index within a page is meaningless to users.
        page.iter_mut().for_each(|object| object.index.clear());
        Ok(Some(page))
    }
}

/// The maximum size of a kubeconfig or certificate file.
const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// Refuses a file that is too large for a kubeconfig or a certificate, or may be endless. The reader reports
/// a missing file.
fn check_size(file: &Path) -> Result<(), Problem> {
    let what = || format!("cannot read {}", file.display());
    match std::fs::metadata(file) {
        Ok(data) if data.is_file() && data.len() > MAX_CONFIG_BYTES => {
            let why = format!("it has {} bytes, more than {MAX_CONFIG_BYTES}", data.len());
            Err(Problem::new(what(), why))
        }
        Ok(data) if !data.is_file() => Err(Problem::new(what(), "it is not a regular file")),
        _ => Ok(()),
    }
}

/// Returns whether a file can be read only once, such as the shell's `<(…)`.
fn is_pipe(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// The files that are read if no flag names one.
fn default_kubeconfigs() -> Vec<PathBuf> {
    if let Some(paths) = std::env::var_os("KUBECONFIG") {
        return std::env::split_paths(&paths).collect();
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    home.map(|home| home.join(".kube/config")).into_iter().collect()
}

/// Returns the connection that kubectl would use with the same flags.
async fn config(flags: &args::Cluster) -> Result<Config, Problem> {
    let failed = |e: &dyn std::fmt::Display| Problem::new("cannot use the kubeconfig", e);
    let options = KubeConfigOptions {
        context: flags.context.clone(),
        ..KubeConfigOptions::default()
    };
    if let Some(file) = &flags.certificate_authority {
        check_size(file)?;
    }
    if flags.kubeconfig.is_none() {
        default_kubeconfigs()
            .iter()
            .try_for_each(|file| check_size(file))?;
    }
    // A pipe can be read only once, so its size cannot be checked before.
    let kubeconfig = match &flags.kubeconfig {
        Some(path) if is_pipe(path) => {
            let bytes = files::read(path, MAX_CONFIG_BYTES).map_err(|e| failed(&e))?;
            let text = String::from_utf8(bytes).map_err(|e| failed(&e))?;
            Kubeconfig::from_yaml(&text).map(Some)
        }
        Some(path) => {
            check_size(path)?;
            Kubeconfig::read_from(path).map(Some)
        }
        // With `--server`, no kubeconfig is needed; one that exists is used.
        None if flags.server.is_some() && flags.context.is_none() => Ok(Kubeconfig::read().ok()),
        None => Kubeconfig::read().map(Some),
    };
    let mut config = match (kubeconfig.map_err(|e| failed(&e))?, &flags.server) {
        (Some(kubeconfig), server) => {
            match (Config::from_custom_kubeconfig(kubeconfig, &options).await, server) {
                (Ok(config), _) => config,
                // With an explicit server, a kubeconfig that does not fit is not needed.
                (Err(_), Some(server)) if flags.kubeconfig.is_none() => Config::new(address(server)?),
                (Err(e), _) => return Err(failed(&e)),
            }
        }
        (None, Some(server)) => Config::new(address(server)?),
        (None, None) => return Err(failed(&"there is none")),
    };
    if let Some(server) = &flags.server {
        config.cluster_url = address(server)?;
    }
    if let Some(token) = &flags.token {
        config.auth_info.token = Some(SecretString::from(token.clone()));
        config.auth_info.token_file = None;
    }
    if let Some(file) = &flags.certificate_authority {
        config.root_cert_file = Some(file.clone());
        config.root_cert = None;
    }
    if flags.insecure_skip_tls_verify {
        config.accept_invalid_certs = true;
    }
    Ok(config)
}

fn address<T: std::str::FromStr>(server: &str) -> Result<T, Problem>
where
    T::Err: std::fmt::Display,
{
    let complete = if server.contains("://") {
        server.to_owned()
    } else {
        format!("https://{server}")
    };
    let parsed = complete.parse();
    parsed.map_err(|e| Problem::usage(format!("--server {server} is no address: {e}")))
}
