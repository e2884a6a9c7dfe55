//! What a server remarks on in a definition that it accepts.

use crate::definition::{Definition, Spec};
use std::collections::BTreeSet;

/// The remarks on a definition that those on the stored one do not contain already.
pub fn warnings(new: &Definition, old: Option<&Definition>) -> Vec<String> {
    let seen = |remarks: fn(&Spec) -> Vec<String>| old.map(|old| remarks(&old.spec)).unwrap_or_default();
    let fresh = |remarks: fn(&Spec) -> Vec<String>| {
        let seen: BTreeSet<String> = seen(remarks).into_iter().collect();
        remarks(&new.spec).into_iter().filter(move |r| !seen.contains(r))
    };
    let mut out: Vec<String> = fresh(unknown_formats).collect();
    out.extend(fresh(sets_of_compounds));
    out
}

fn unknown_formats(spec: &Spec) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for s in spec.schemas() {
        s.any(&mut |s| {
            let format = s.text("format");
            if !format.is_empty() && !is_known_format(format, s.ty()) && seen.insert(format) {
                out.push(format!(
                    "unrecognized format {}",
                    scantling_value::go::quote(format)
                ));
            }
            false
        });
    }
    out
}

/// Whether a server checks a format on values of a type.
fn is_known_format(format: &str, ty: &str) -> bool {
    const TEXT: &[&str] = &[
        "bsonobjectid",
        "byte",
        "cidr",
        "creditcard",
        "date",
        "datetime",
        "duration",
        "email",
        "hexcolor",
        "hostname",
        "ipv4",
        "ipv6",
        "isbn",
        "isbn10",
        "isbn13",
        "k8slongname",
        "k8sshortname",
        "mac",
        "password",
        "rgbcolor",
        "ssn",
        "uri",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
    ];
    match ty {
        "" | "string" => TEXT.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

fn sets_of_compounds(spec: &Spec) -> Vec<String> {
    let mut types = BTreeSet::new();
    for s in spec.schemas() {
        s.any(&mut |s| {
            if let Some(item) = s.item().filter(|_| s.list_type() == Some("set"))
                && let ty @ ("object" | "array") = item.ty()
            {
                types.insert(ty);
            }
            false
        });
    }
    types
        .into_iter()
        .map(|ty| {
            format!(
                "x-kubernetes-list-type: set for items of type \"{ty}\" is not supported by server-side apply or CEL \
                 validation rules"
            )
        })
        .collect()
}
