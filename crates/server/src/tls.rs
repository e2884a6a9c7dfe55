//! TLS: the server's certificate, given or made on first start, and the authority of client certificates.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// A certificate chain and its key, in PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
    /// The authority that clients are to trust; the certificate itself where it is self-signed.
    pub(crate) authority: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

/// Makes an authority and a certificate for a server on these addresses, valid for ten years.
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

/// Reads the identity kept in a directory, or makes one and keeps it there.
pub(crate) fn load_or_generate(dir: &Path, address: IpAddr) -> Result<Identity, String> {
    let (crt, key, ca) = (dir.join("server.crt"), dir.join("server.key"), dir.join("ca.crt"));
    if crt.exists() && key.exists() && ca.exists() {
        return Ok(Identity {
            certificate: read(&crt)?,
            key: read(&key)?,
            authority: read(&ca)?,
        });
    }
    let made = generate(address).map_err(|e| format!("cannot make a certificate: {e}"))?;
    std::fs::create_dir_all(dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
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

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// Writes a file that only its owner can read, whole or not at all.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), String> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let fail = |e: std::io::Error| format!("cannot write {}: {e}", path.display());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(fail)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(fail)?;
    std::fs::rename(&temporary, path).map_err(fail)
}

/// The TLS side of the listener. With an authority, clients may show a certificate that it signed.
pub(crate) fn server_config(
    identity: &Identity,
    client_authority: Option<&Path>,
) -> Result<Arc<rustls::ServerConfig>, String> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(identity.certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|e| format!("the server's certificate is not PEM: {e}"))?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())
        .map_err(|e| format!("the server's private key is not PEM: {e}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    let builder = match client_authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = rustls::RootCertStore::empty();
            let certs =
                CertificateDer::pem_file_iter(path).map_err(|e| format!("{}: {e}", path.display()))?;
            for cert in certs {
                let cert = cert.map_err(|e| format!("{}: {e}", path.display()))?;
                roots.add(cert).map_err(|e| format!("{}: {e}", path.display()))?;
            }
            let verifier =
                rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
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
