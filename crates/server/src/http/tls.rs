//! TLS: the server's certificate, given or generated on first start, and the authority of client certificates. The
//! files may be replaced while the server runs.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use scantling_store::private;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The interval in which files are checked for changes.
const EVERY: Duration = Duration::from_secs(5);

/// A certificate chain and its key, in PEM.
#[derive(Clone, PartialEq)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
    /// The CA that clients must trust; the certificate itself if it is self-signed.
    pub(crate) authority: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

/// Generates an authority and a certificate for a server on these addresses, valid for ten years.
pub(crate) fn generate(address: IpAddr) -> Result<Identity, rcgen::Error> {
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    };
    let mut ca = CertificateParams::new(Vec::new())?;
    ca.distinguished_name.push(DnType::CommonName, "scantling-ca");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.not_after = rcgen::date_time_ymd(2045, 1, 1);
    let ca_key = KeyPair::generate()?;
    let authority = ca.self_signed(&ca_key)?.pem();
    let issuer = Issuer::new(ca, ca_key);

    let mut names = vec![
        "localhost".to_owned(),
        "kubernetes".to_owned(),
        "kubernetes.default.svc".to_owned(),
    ];
    names.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
    // Clients cannot connect to an unspecified address, and loopback is among the names already.
    if !address.is_unspecified() && !address.is_loopback() {
        names.push(address.to_string());
    }
    let mut leaf = CertificateParams::new(names)?;
    leaf.distinguished_name.push(DnType::CommonName, "scantling");
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.not_after = rcgen::date_time_ymd(2045, 1, 1);
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &issuer)?.pem();
    Ok(Identity {
        certificate,
        key: key.serialize_pem(),
        authority,
    })
}

/// Reads the identity in a directory, or generates it.
pub(crate) fn load_or_generate(dir: &Path, address: IpAddr) -> Result<Identity, String> {
    let (crt, key, ca) = (dir.join("server.crt"), dir.join("server.key"), dir.join("ca.crt"));
    private::create_directory(dir)
        .and_then(|()| private::restrict_directory(dir))
        .map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
    // The CA is written last: without it, the other files are left over from an interrupted start.
    if ca.exists() {
        if let Some(missing) = [&crt, &key].into_iter().find(|file| !file.exists()) {
            return Err(format!(
                "{} is missing next to {}; restore it, or remove {} to generate a new certificate",
                missing.display(),
                ca.display(),
                dir.display()
            ));
        }
        return Ok(Identity {
            certificate: read(&crt)?,
            key: read(&key)?,
            authority: read(&ca)?,
        });
    }
    let made = generate(address).map_err(|e| format!("cannot make a certificate: {e}"))?;
    write_private(&key, &made.key)?;
    write_private(&crt, &made.certificate)?;
    write_private(&ca, &made.authority)?;
    Ok(made)
}

/// Reads an identity from the files that flags name.
pub(crate) fn load(certificate: &Path, key: &Path) -> Result<Identity, String> {
    let pem = read(certificate)?;
    Ok(Identity {
        authority: pem.clone(),
        certificate: pem,
        key: read(key)?,
    })
}

/// The maximum size of a file with certificates, a key or tokens.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Reads a text file that a flag names.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = std::fs::File::open(path)
        // One byte more than the limit tells a file of exactly that size from a larger one.
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
        .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    if read as u64 > MAX_FILE_BYTES {
        return Err(format!(
            "cannot read {}: it is larger than {MAX_FILE_BYTES} bytes",
            path.display()
        ));
    }
    Ok(text)
}

/// Writes a file that only its owner can read, atomically.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), String> {
    private::write(path, text.as_bytes()).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// The parameters of the listener's TLS.
#[derive(Clone, PartialEq)]
pub(crate) struct Material {
    pub(crate) identity: Identity,
    /// The file with the authority of client certificates, and its content.
    client_authority: Option<(PathBuf, String)>,
}

impl Material {
    /// With an authority, clients may show a certificate that it signed.
    pub(crate) fn new(identity: Identity, client_authority: Option<&Path>) -> Result<Material, String> {
        let client_authority = match client_authority {
            Some(path) => Some((path.to_owned(), read(path)?)),
            None => None,
        };
        Ok(Material {
            identity,
            client_authority,
        })
    }

    /// The current content of the files of the certificate, its key and the authority.
    fn reload(&self, pair: Option<&(PathBuf, PathBuf)>) -> Result<Material, String> {
        let identity = match pair {
            Some((certificate, key)) => load(certificate, key)?,
            None => self.identity.clone(),
        };
        let authority = self.client_authority.as_ref().map(|(path, _)| &**path);
        Material::new(identity, authority)
    }
}

/// Reloads the files for new connections while the server listens. Files that do not match, as while they are being
/// replaced, are ignored until they do.
pub(crate) async fn follow(
    mut used: Material,
    pair: Option<(PathBuf, PathBuf)>,
    configs: watch::Sender<Arc<rustls::ServerConfig>>,
) {
    if pair.is_none() && used.client_authority.is_none() {
        return;
    }
    let mut failed = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = configs.closed() => return,
        }
        let changed = match used.reload(pair.as_ref()) {
            // Contents are compared, not times: tools that replace files may keep or reset their times.
            Ok(now) if now == used => continue,
            Ok(now) => server_config(&now).map(|config| (now, config)),
            Err(why) => Err(why),
        };
        match changed {
            Ok((now, config)) => {
                tracing::info!("certificates have changed");
                configs.send_replace(config);
                (used, failed) = (now, None);
            }
            // The same failure is logged once, not every few seconds.
            Err(why) if failed.as_ref() == Some(&why) => {}
            Err(why) => {
                tracing::warn!(
                    why,
                    "certificates have changed and cannot be used; keeping the previous ones"
                );
                failed = Some(why);
            }
        }
    }
}

/// The TLS configuration of the listener.
pub(crate) fn server_config(material: &Material) -> Result<Arc<rustls::ServerConfig>, String> {
    let identity = &material.identity;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(identity.certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|e| format!("the server's certificate is not PEM: {e}"))?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())
        .map_err(|e| format!("the server's private key is not PEM: {e}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    let builder = match &material.client_authority {
        None => builder.with_no_client_auth(),
        Some((path, text)) => {
            let mut roots = rustls::RootCertStore::empty();
            for cert in CertificateDer::pem_slice_iter(text.as_bytes()) {
                let cert = cert.map_err(|e| format!("{}: {e}", path.display()))?;
                roots.add(cert).map_err(|e| format!("{}: {e}", path.display()))?;
            }
            let verifier =
                rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    // Clients without a certificate may still send a token.
                    .allow_unauthenticated()
                    .build()
                    .map_err(|e| format!("{}: {e}", path.display()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|e| format!("the server's certificate and key do not fit: {e}"))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn an_incomplete_identity_is_regenerated() {
        let directory = tempfile::tempdir().unwrap();
        let load = || load_or_generate(directory.path(), IpAddr::V4(Ipv4Addr::LOCALHOST));
        let remove = |file: &str| std::fs::remove_file(directory.path().join(file)).unwrap();
        let made = load().unwrap();
        assert!(load().unwrap() == made);
        // An interrupted start leaves no CA.
        remove("ca.crt");
        let again = load().unwrap();
        assert!(again != made);
        remove("server.key");
        let refused = load().err().unwrap();
        assert!(refused.contains("server.key is missing next to"), "{refused}");
    }
}
