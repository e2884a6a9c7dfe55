//! Checks that a certificate and a private key belong together. Messages are those of Go's `tls` package.

use crate::checks::pem::{Block, blocks};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ParsedCertificate;
use rustls::sign::SigningKey;
use std::sync::Arc;
use x509_parser::prelude::FromDer;
use x509_parser::x509::SubjectPublicKeyInfo;

/// Returns the error of a certificate and key, if they do not match.
pub(super) fn mismatch(certificates: &[u8], key: &[u8]) -> Option<String> {
    check(certificates, key).err()
}

fn check(certificates: &[u8], key: &[u8]) -> Result<(), String> {
    let leaf = first(blocks(certificates), |label| label == "CERTIFICATE").map_err(|skipped| {
        match skipped.as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [only] if only.ends_with("PRIVATE KEY") => {
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may \
                 have been switched"
                    .to_owned()
            }
            skipped => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
                 following types: [{}]",
                skipped.join(" ")
            ),
        }
    })?;
    let is_key = |label: &str| label.ends_with("PRIVATE KEY");
    let key = first(blocks(key), is_key).map_err(|skipped| match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [only] if only == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        skipped => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of \
             the following types: [{}]",
            skipped.join(" ")
        ),
    })?;
    let leaf = CertificateDer::from(leaf);
    let parsed = ParsedCertificate::try_from(&leaf).map_err(|_| "x509: malformed certificate".to_owned())?;
    let Some(signing) = read_key(&key) else {
        // A well-formed key may have an unknown algorithm.
        return match is_whole(&key) {
            true => Ok(()),
            false => Err("tls: failed to parse private key".to_owned()),
        };
    };
    let public = parsed.subject_public_key_info();
    match signing.public_key() {
        Some(own) if own.as_ref() == public.as_ref() => Ok(()),
        Some(own) if algorithm(&own) == algorithm(&public) => {
            Err("tls: private key does not match public key".to_owned())
        }
        Some(_) => Err("tls: private key type does not match public key type".to_owned()),
        None => Ok(()),
    }
}

/// The bytes of the first block that is wanted, or the labels of all that are not.
fn first(blocks: Vec<Block>, wanted: impl Fn(&str) -> bool) -> Result<Vec<u8>, Vec<String>> {
    let mut skipped = Vec::new();
    for block in blocks {
        if wanted(&block.label) {
            return Ok(block.bytes);
        }
        skipped.push(block.label);
    }
    Err(skipped)
}

/// A key in whichever form it is: labels do not count.
fn read_key(bytes: &[u8]) -> Option<Arc<dyn SigningKey>> {
    let forms = [
        PrivateKeyDer::Pkcs1(bytes.into()),
        PrivateKeyDer::Pkcs8(bytes.into()),
        PrivateKeyDer::Sec1(bytes.into()),
    ];
    forms.iter().find_map(|key| any_supported_type(key).ok())
}

/// Returns whether bytes are exactly one DER sequence.
fn is_whole(bytes: &[u8]) -> bool {
    let [0x30, length, rest @ ..] = bytes else {
        return false;
    };
    let Some(digits) = length.checked_sub(0x80) else {
        return usize::from(*length) == rest.len();
    };
    let Some((head, body)) = rest.split_at_checked(usize::from(digits)) else {
        return false;
    };
    let length = head.iter().try_fold(0usize, |sum, byte| {
        Some(sum.checked_mul(256)?.saturating_add(usize::from(*byte)))
    });
    length == Some(body.len())
}

/// The algorithm of a public key.
fn algorithm(public: &[u8]) -> Option<String> {
    let (_, key) = SubjectPublicKeyInfo::from_der(public).ok()?;
    Some(key.algorithm.algorithm.to_id_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate and its key.
    fn pair() -> (String, String) {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(Vec::new())
            .unwrap()
            .self_signed(&key)
            .unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    #[test]
    fn certificates_match_keys() {
        let ((certificate, key), (other, other_key)) = (pair(), pair());
        let malformed = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let both = format!("{certificate}{other}");
        let table: [(&str, &str, Option<&str>); 10] = [
            (&certificate, &key, None),
            (&both, &format!("note\n{certificate}{key}"), None),
            (
                &certificate,
                &other_key,
                Some("tls: private key does not match public key"),
            ),
            (
                "",
                "",
                Some("tls: failed to find any PEM data in certificate input"),
            ),
            (
                &certificate,
                "x",
                Some("tls: failed to find any PEM data in key input"),
            ),
            (
                &key,
                &key,
                Some(
                    "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM \
                     inputs may have been switched",
                ),
            ),
            (
                &certificate,
                &certificate,
                Some("tls: found a certificate rather than a key in the PEM for the private key"),
            ),
            (
                &certificate,
                &both,
                Some(
                    "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM \
                     blocks of the following types: [CERTIFICATE CERTIFICATE]",
                ),
            ),
            (malformed, &key, Some("x509: malformed certificate")),
            (&certificate, no_key, Some("tls: failed to parse private key")),
        ];
        for (certificate, key, want) in table {
            let found = mismatch(certificate.as_bytes(), key.as_bytes());
            assert_eq!(found.as_deref(), want);
        }
    }
}
