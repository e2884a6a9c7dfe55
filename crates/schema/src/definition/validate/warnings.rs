//! Warnings about accepted CRDs.

use crate::definition::{Definition, Spec};
use crate::document::Schema;
use std::collections::BTreeSet;

/// Returns the warnings about a CRD that the stored one does not have.
pub fn warnings(new: &Definition, old: Option<&Definition>) -> Vec<String> {
    let mut remarks = WarningCollector::collect(&new.spec);
    if let Some(old) = old {
        let before = WarningCollector::collect(&old.spec);
        remarks.formats.retain(|format| !before.seen.contains(format));
        remarks.compounds.retain(|ty| !before.compounds.contains(ty));
    }
    let formats = remarks.formats.into_iter().map(|format| {
        let format = scantling_value::go::quote(format);
        format!("unrecognized format {format}")
    });
    let sets = remarks.compounds.into_iter().map(|ty| {
        format!(
            "x-kubernetes-list-type: set for items of type \"{ty}\" is not supported by server-side apply or CEL \
             validation rules"
        )
    });
    formats.chain(sets).collect()
}

/// Collects warnings about the schemas of a CRD.
#[derive(Default)]
struct WarningCollector<'a> {
    /// The unknown formats, in document order.
    formats: Vec<&'a str>,
    /// The same, for lookups.
    seen: BTreeSet<&'a str>,
    /// The non-scalar element types of sets.
    compounds: BTreeSet<&'a str>,
}

impl<'a> WarningCollector<'a> {
    fn collect(spec: &'a Spec) -> Self {
        let mut remarks = WarningCollector::default();
        for schema in spec.schemas() {
            schema.any(&mut |schema| {
                remarks.visit(schema);
                false
            });
        }
        remarks
    }

    fn visit(&mut self, schema: Schema<'a>) {
        let format = schema.string("format");
        if !format.is_empty() && !is_known_format(format, schema.ty()) && self.seen.insert(format) {
            self.formats.push(format);
        }
        if schema.list_type() == Some("set")
            && let Some(ty @ ("object" | "array")) = schema.item().map(Schema::ty)
        {
            self.compounds.insert(ty);
        }
    }
}

/// Returns whether kube-apiserver validates a format for values of a type.
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
        // kube-apiserver ignores dashes in the names of string formats, but not letter case.
        "" | "string" => TEXT.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}
