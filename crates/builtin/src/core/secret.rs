//! Secret.

mod key_pair;

use super::config_map::{MAX_SIZE, check_immutable, check_key};
use crate::checks::Report;
use crate::{Context, Cursor, KindBehavior, KindFacts, Write};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use scantling_value::{ErrorList, FieldError, Limits, Map, Str, Value, go, json};

/// Confidential data as keys and values.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        selectable: &["type"],
        validates_name_on_update: true,
        ..KindFacts::new("", "Secret")
    })
};

/// The type of a Secret that names none.
const OPAQUE: &str = "Opaque";

/// The type of a Secret with a certificate and its key, and the names of these entries.
const TLS: &str = "kubernetes.io/tls";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// The annotation that names the ServiceAccount of a token.
const ACCOUNT: &str = "kubernetes.io/service-account.name";

fn default(secret: &mut Map, _context: &Context<'_>) {
    // Entries of `stringData` overwrite those of `data`. The field is write-only.
    if let Some(Value::Object(texts)) = secret.remove("stringData") {
        let data = secret.get_or_insert_with("data", || Map::new().into());
        if let Some(data) = data.as_object_mut() {
            let encoded = |(key, text): (Str, Value)| {
                let text = text.as_str().unwrap_or("");
                (key, BASE64_STANDARD.encode(text).into())
            };
            data.insert_all(texts.into_iter().map(encoded).collect());
        }
    }
    if secret.get_str("type").is_empty() {
        secret.insert("type", OPAQUE.into());
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let ty = root.field("type");
    if let Some(old) = write.old() {
        if ty.str() != old.get_str("type") {
            errors.invalid(&ty, "field is immutable");
        }
        check_immutable(object, write, &["data"], errors);
    }
    let data = root.field("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        check_key(key, &value, errors);
        match bytes(value.value()) {
            Some(bytes) => size += bytes.len(),
            None => errors.push_with(|| FieldError::internal(value.path(), "not base64")),
        }
    }
    if size > MAX_SIZE {
        errors.push_with(|| FieldError::too_long(data.path(), MAX_SIZE));
    }
    check_type(&root, errors);
}

fn warn(object: &Value, _write: &Write<'_>, warnings: &mut Vec<String>) {
    if object.get_str("type") != TLS {
        return;
    }
    let entry = |key| object.at(["data", key]).and_then(|value| bytes(Some(value)));
    if let (Some(certificate), Some(key)) = (entry(CERTIFICATE), entry(KEY)) {
        warnings.extend(key_pair::mismatch(&certificate, &key));
    }
}

/// Checks the entries that the type of a Secret requires.
fn check_type(root: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let data = root.field("data");
    let entry = |key: &str| {
        let data = data.map()?;
        bytes(Some(data.get(key)?))
    };
    let mut require = |key: &str| errors.push_with(|| FieldError::required(&data.path().key(key), ""));
    match root.field("type").str() {
        "kubernetes.io/service-account-token" => {
            let metadata = root.field("metadata");
            let annotations = metadata.field("annotations");
            if annotations
                .map()
                .map_or("", |all| all.get_str(ACCOUNT))
                .is_empty()
            {
                errors.push_with(|| FieldError::required(&annotations.path().key(ACCOUNT), ""));
            }
        }
        "kubernetes.io/dockercfg" => check_json(&data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => check_json(&data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" => {
            let keys = ["username", "password"];
            if keys.iter().all(|key| entry(key).is_none()) {
                keys.into_iter().for_each(require);
            }
        }
        "kubernetes.io/ssh-auth" if entry("ssh-privatekey").is_none_or(|key| key.is_empty()) => {
            require("ssh-privatekey");
        }
        TLS => {
            let missing = [CERTIFICATE, KEY].into_iter().filter(|key| entry(key).is_none());
            missing.for_each(require);
        }
        _ => {}
    }
}

/// Checks an entry that must be a JSON object.
fn check_json(data: &Cursor<'_, '_>, key: &str, errors: &mut ErrorList) {
    let at = data.path().key(key);
    let entry = data.map().and_then(|data| data.get(key));
    let Some(text) = entry.and_then(|entry| bytes(Some(entry))) else {
        errors.push_with(|| FieldError::required(&at, ""));
        return;
    };
    let why = match json::decode(&text, Limits::SERVER) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::json_kind(&other)
        ),
        Err(e) => e.to_string(),
    };
    errors.push_with(|| FieldError::invalid(&at, "<secret contents redacted>", why));
}

/// The bytes of an entry; `None` if it is not base64, which decoding has refused.
fn bytes(value: Option<&Value>) -> Option<Vec<u8>> {
    match value {
        Some(Value::String(text)) => BASE64_STANDARD.decode(text).ok(),
        None | Some(Value::Null) => Some(Vec::new()),
        Some(_) => None,
    }
}
