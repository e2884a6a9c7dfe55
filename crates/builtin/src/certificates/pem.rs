//! Certificates and signing requests in PEM.

use crate::checks::pem;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use scantling_value::{BadValue, go};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;

/// The object identifiers of kinds of keys.
const RSA: &str = "1.2.840.113549.1.1.1";
const EC: &str = "1.2.840.10045.2.1";
const ED25519: &str = "1.3.101.112";

/// Checks a base64-encoded signing request, with its signature. The error is its text.
pub(super) fn check_request(encoded: &str) -> Result<(), String> {
    let first = pem::blocks(&decode(encoded)).into_iter().next();
    let Some(block) = first.filter(|block| block.label == "CERTIFICATE REQUEST") else {
        return Err("PEM block type must be CERTIFICATE REQUEST".to_owned());
    };
    let (rest, request) =
        X509CertificationRequest::from_der(&block.bytes).map_err(|_| asn1_error(&block.bytes).to_owned())?;
    if !rest.is_empty() {
        return Err("asn1: syntax error: trailing data".to_owned());
    }
    request.verify_signature().map_err(|_| {
        // Go names the failure after the algorithm of the key.
        let key = request
            .certification_request_info
            .subject_pki
            .algorithm
            .algorithm
            .to_id_string();
        match key.as_str() {
            RSA => "crypto/rsa: verification error".to_owned(),
            EC => "x509: ECDSA verification failure".to_owned(),
            ED25519 => "x509: Ed25519 verification failure".to_owned(),
            _ => "x509: cannot verify signature: algorithm unimplemented".to_owned(),
        }
    })
}

/// The text of Go's error about malformed DER.
fn asn1_error(der: &[u8]) -> &'static str {
    // `x509-parser` words its errors differently, so that Go's text is derived from the outermost header.
    const TRUNCATED_HEADER: &str = "asn1: syntax error: truncated tag or length";
    let [_, first, rest @ ..] = der else {
        return TRUNCATED_HEADER;
    };
    let (length, content) = match usize::from(*first) {
        length @ ..0x80 => (length, rest),
        long => {
            let Some((length, content)) = rest.split_at_checked(long & 0x7f) else {
                return TRUNCATED_HEADER;
            };
            let length = length.iter().fold(0_usize, |n, byte| {
                n.saturating_mul(256).saturating_add((*byte).into())
            });
            (length, content)
        }
    };
    match length > content.len() {
        true => "asn1: syntax error: data truncated",
        false => "asn1: structure error: tags don't match",
    }
}

/// Checks base64-encoded certificates; none at all are valid. The error is its text.
pub(super) fn check_certificates(encoded: &str) -> Result<(), String> {
    let data = decode(encoded);
    if data.is_empty() {
        return Ok(());
    }
    let blocks = pem::blocks(&data);
    for block in &blocks {
        if block.label != "CERTIFICATE" {
            let label = go::quote(&block.label);
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {label}"));
        }
        // `x509.ParseCertificates` reads several certificates in a row.
        let mut rest: &[u8] = &block.bytes;
        if rest.is_empty() {
            return Err("found CERTIFICATE PEM block containing 0 certificates".to_owned());
        }
        while !rest.is_empty() {
            let (after, _) = x509_parser::parse_x509_certificate(rest)
                .map_err(|_| "x509: malformed certificate".to_owned())?;
            rest = after;
        }
    }
    if blocks.is_empty() {
        return Err("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    Ok(())
}

/// Checks a signing request in DER: its form, its key, and its signature. The error is the value to show and its text.
pub(super) fn check_key_of_request(der: &[u8]) -> Result<(), (BadValue, &'static str)> {
    const MALFORMED: (BadValue, &str) = (BadValue::Omitted, "must be a valid PKCS#10 CSR");
    let Ok(([], request)) = X509CertificationRequest::from_der(der) else {
        return Err(MALFORMED);
    };
    let key = &request.certification_request_info.subject_pki;
    match key.algorithm.algorithm.to_id_string().as_str() {
        ED25519 => {}
        EC => {
            let curve = key.algorithm.parameters.as_ref().and_then(|p| p.as_oid().ok());
            match curve.map(|oid| oid.to_id_string()).as_deref() {
                Some("1.2.840.10045.3.1.7" | "1.3.132.0.34" | "1.3.132.0.35") => {}
                Some("1.3.132.0.33") => {
                    let why = "elliptic public keys must use curve P256, P384, or P521";
                    return Err(("curve P-224".into(), why));
                }
                _ => return Err(MALFORMED),
            }
        }
        RSA => {
            let Ok(PublicKey::RSA(key)) = key.parsed() else {
                return Err(MALFORMED);
            };
            // A leading zero byte keeps the number positive.
            let modulus = key.modulus.strip_prefix(&[0]).unwrap_or(key.modulus);
            let bits = modulus.len() * 8;
            if ![3072, 4096].contains(&bits) {
                let why = "RSA keys must have modulus size 3072 or 4096";
                return Err((format!("{bits}-bit modulus").into(), why));
            }
        }
        _ => {
            let why = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";
            return Err((BadValue::Omitted, why));
        }
    }
    let verified = request.verify_signature();
    verified.map_err(|_| (BadValue::Omitted, "invalid signature"))
}

/// The public key of a signing request in DER, in DER.
pub(super) fn key_of_request(der: &[u8]) -> Option<Vec<u8>> {
    let (_, request) = X509CertificationRequest::from_der(der).ok()?;
    Some(request.certification_request_info.subject_pki.raw.to_vec())
}

/// The bytes of a field, which decoding has found to be base64.
pub(super) fn decode(encoded: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(encoded).unwrap_or_default()
}
