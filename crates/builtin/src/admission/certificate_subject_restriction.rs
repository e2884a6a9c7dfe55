//! `CertificateSubjectRestriction`: no certificate for clients of the API server names the group `system:masters`.

use super::{Action, Effects, Found, Plugin, PluginVerdict, Request};
use scantling_notation::base64;
use scantling_value::Value;
use x509_parser::asn1_rs::{Any, Tag};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    check,
    ..Plugin::new("CertificateSubjectRestriction", handles)
};

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";

fn handles(request: &Request<'_>) -> bool {
    request.is_for("certificates.k8s.io", "certificatesigningrequests")
        && request.action == Action::Create
        && request.is_validating()
}

fn check(object: &Value, request: &Request<'_>, _: &Found<'_>, _: &mut Effects) -> PluginVerdict {
    if object.str_at(["spec", "signerName"]) != SIGNER {
        return Ok(());
    }
    let why = match organizations(object.str_at(["spec", "request"])) {
        Ok(groups) if groups.iter().any(|group| group == MASTERS) => {
            format!("use of {SIGNER} signer with {MASTERS} group is not allowed")
        }
        Ok(_) => return Ok(()),
        Err(why) => format!("failed to parse CSR: {why}"),
    };
    Err(request.forbidden(object, why))
}

/// The organizations in the subject of an encoded request for a certificate.
fn organizations(encoded: &str) -> Result<Vec<String>, String> {
    let text = base64::parse(encoded)?;
    let pem = Pem::iter_from_buffer(&text).next();
    let pem = pem
        .and_then(Result::ok)
        .ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).map_err(|e| e.to_string())?;
    let names = request.certification_request_info.subject.iter_organization();
    Ok(names.map(|name| string_of(name.attr_value())).collect())
}

/// The text of a value of any string type. A name that is not read could hide a group.
fn string_of(value: &Any<'_>) -> String {
    match value.tag() {
        Tag::BmpString => {
            let units = value.data.chunks_exact(2);
            let units: Vec<u16> = units
                .filter_map(|unit| unit.try_into().ok().map(u16::from_be_bytes))
                .collect();
            String::from_utf16_lossy(&units)
        }
        _ => String::from_utf8_lossy(value.data).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_string_types_are_read() {
        let wide: Vec<u8> = MASTERS.bytes().flat_map(|b| [0, b]).collect();
        for (tag, data) in [
            (Tag::BmpString, wide.as_slice()),
            (Tag::TeletexString, MASTERS.as_bytes()),
            (Tag::Utf8String, MASTERS.as_bytes()),
            (Tag::PrintableString, MASTERS.as_bytes()),
        ] {
            assert_eq!(string_of(&Any::from_tag_and_data(tag, data)), MASTERS, "{tag:?}");
        }
    }
}
