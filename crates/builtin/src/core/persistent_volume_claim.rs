//! Persistent volume claims.

use scantling_notation::quantity::Quantity;
use scantling_value::Value;

/// The annotation that named the storage class before there was a field for it.
pub(crate) const BETA_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The name of a claim's storage class; empty if there is none.
pub(crate) fn class_name(claim: &Value) -> &str {
    let annotated = claim.at(["metadata", "annotations", BETA_CLASS_ANNOTATION]);
    match annotated.and_then(Value::as_str) {
        Some(class) => class,
        None => claim.text_at(["spec", "storageClassName"]),
    }
}

/// The storage that a claim requests.
pub(crate) fn requested_storage(claim: &Value) -> Quantity {
    let text = claim.text_at(["spec", "resources", "requests", "storage"]);
    Quantity::parse(text).unwrap_or_else(|_| Quantity::from_int(0))
}
