//! Verification of a webhook's certificate, with Go's errors.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::net::IpAddr;
use std::sync::Arc;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// The TLS configuration for authorities in PEM; without any, those of the system.
pub(super) fn client_config(bundle: &[u8]) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier {
        provider: Arc::clone(&provider),
        trusted: trusted(bundle)?,
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    // HTTP/2 would send all requests to the same instance of a replicated webhook.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn trusted(bundle: &[u8]) -> Result<Trusted, String> {
    let certificates = if bundle.trim_ascii().is_empty() {
        // Certificates of the system that cannot be read are left out: a webhook that needs one fails verification.
        rustls_native_certs::load_native_certs().certs
    } else {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bundle).collect();
        read.map_err(|e| format!("unable to load root certificates: {e}"))?
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    Ok(Trusted { certificates, roots })
}

#[derive(Debug)]
struct Trusted {
    certificates: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
}

/// Verifies certificates in Go's order: dates, names, CA. A certificate that is itself trusted needs no CA;
/// many webhooks are set up this way.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    trusted: Trusted,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let unverified = |why: String| Error::General(format!("failed to verify certificate: x509: {why}"));
        let (_, read) = X509Certificate::from_der(shown)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        check_dates(&read, now).map_err(unverified)?;
        // Old certificates without subject alternative names cannot be parsed further.
        let parsed = ParsedCertificate::try_from(shown);
        let named = parsed
            .as_ref()
            .is_ok_and(|parsed| verify_server_name(parsed, name).is_ok());
        let names = read.subject_alternative_name().ok().flatten();
        if !named && (parsed.is_ok() || names.is_none()) {
            return Err(unverified(other_name(&read, name)));
        }
        let parsed = parsed?;
        // WebPKI does not accept an end-entity certificate as its own trust anchor; Go does.
        if !self.trusted.certificates.iter().any(|known| known == shown) {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &parsed,
                &self.trusted.roots,
                intermediates,
                now,
                algorithms,
            )
            .map_err(|e| unverified(no_authority(&e)))?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

fn check_dates(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), String> {
    let now = now.as_secs().cast_signed();
    let validity = certificate.validity();
    let (first, last) = (validity.not_before.timestamp(), validity.not_after.timestamp());
    let (relation, limit) = match now {
        now if now < first => ("before", first),
        now if now > last => ("after", last),
        _ => return Ok(()),
    };
    let shown =
        |seconds| jiff::Timestamp::from_second(seconds).map_or_else(|_| String::new(), |t| t.to_string());
    Err(format!(
        "certificate has expired or is not yet valid: current time {} is {relation} {}",
        shown(now),
        shown(limit)
    ))
}

/// The error about a certificate for other names.
fn other_name(certificate: &X509Certificate<'_>, asked: &ServerName<'_>) -> String {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.map(|names| names.value.general_names.as_slice());
    let names = names.unwrap_or_default();
    let asked = asked.to_str();
    // The order of Go's `HostnameError`, whose texts these are.
    if asked.parse::<IpAddr>().is_ok() {
        let addresses: Vec<String> = names.iter().filter_map(address).collect();
        if addresses.is_empty() {
            return format!("cannot validate certificate for {asked} because it doesn't contain any IP SANs");
        }
        return format!("certificate is valid for {}, not {asked}", addresses.join(", "));
    }
    let domains: Vec<&str> = names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(*name),
            _ => None,
        })
        .collect();
    if names.is_empty() && certificate.subject().iter_common_name().next().is_some() {
        return "certificate relies on legacy Common Name field, use SANs instead".to_owned();
    }
    if domains.is_empty() {
        return format!("certificate is not valid for any names, but wanted to match {asked}");
    }
    format!("certificate is valid for {}, not {asked}", domains.join(", "))
}

fn address(name: &GeneralName<'_>) -> Option<String> {
    let GeneralName::IPAddress(bytes) = name else {
        return None;
    };
    let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
    v4.or_else(|_| v6()).ok().map(|address| address.to_string())
}

/// The error about a certificate of an unknown authority.
fn no_authority(e: &Error) -> String {
    match e {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "certificate signed by unknown authority".to_owned()
        }
        other => other.to_string(),
    }
}
