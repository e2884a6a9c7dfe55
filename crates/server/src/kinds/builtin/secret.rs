//! What is particular about secrets.

mod pair;

use super::config_map::{MAX_SIZE, changes_of_immutable, key_errors};
use super::core::{RestStrategy, ValidationContext};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use scantling_schema::meta::{NameRule, Scope};
use scantling_value::{ErrorList, FieldError, Limits, Map, Path, Value, go, json};

/// The type of those that say none.
const OPAQUE: &str = "Opaque";

/// The type of those that hold a certificate and its key, and the names of these.
const TLS: &str = "kubernetes.io/tls";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// The annotation that names whose token a secret holds.
const ACCOUNT: &str = "kubernetes.io/service-account.name";

pub(super) static PARTICULARS: RestStrategy = RestStrategy {
    scope: Scope::Namespaced,
    names: NameRule::Subdomain,
    selectable: &["metadata.name", "metadata.namespace", "type"],
    qualifies_finalizers: true,
    creates_on_update: false,
    unconditional_update: true,
    kept_in_memory: true,
    complete,
    prepare: |_, _| {},
    check,
    warn,
};

/// What is ctx as text becomes data, and counts more than the data of the same name; a secret that says no type is
/// of the one that means nothing.
fn complete(secret: &mut Value) {
    let Some(members) = secret.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(texts)) = members.remove("stringData") {
        let data = members.get_or_insert_with("data", || Map::new().into());
        if let Some(data) = data.as_object_mut() {
            for (key, text) in texts {
                let text = text.as_str().unwrap_or_default();
                data.insert(key, BASE64_STANDARD.encode(text).into());
            }
        }
    }
    if members.text("type").is_empty() {
        members.insert("type", OPAQUE.into());
    }
}

fn check(ctx: &ValidationContext<'_>) -> ErrorList {
    let secret = ctx.object;
    let mut errors = ErrorList::new();
    let root = Path::ROOT;
    let ty = secret.text("type");
    if let Some(old) = ctx.old {
        if ty != old.text("type") {
            errors.push_with(|| FieldError::invalid(&root.field("type"), ty, "field is immutable"));
        }
        errors.extend(changes_of_immutable(old, secret, &["data"]));
    }
    let data = secret.get("data").and_then(Value::as_object);
    let at = root.field("data");
    let mut size = 0;
    for (key, value) in data.into_iter().flat_map(Map::iter) {
        errors.extend(key_errors(key, &at.key(key)));
        match bytes(value) {
            Some(bytes) => size += bytes.len(),
            None => errors.push_with(|| FieldError::internal(&at.key(key), "not base64")),
        }
    }
    if size > MAX_SIZE {
        errors.push_with(|| FieldError::too_long(&at, MAX_SIZE));
    }
    errors.extend(asked_by_type(ty, data, ctx.metadata));
    errors
}

/// What the type of a secret asks for, and is not there.
fn asked_by_type(ty: &str, data: Option<&Map>, metadata: &Map) -> ErrorList {
    let root = Path::ROOT;
    let at = root.field("data");
    let held = |key: &str| data.and_then(|data| data.get(key)).and_then(bytes);
    let missing = |key: &str| FieldError::required(&at.key(key), "");
    let document = |key: &str| {
        let Some(text) = held(key) else {
            return missing(key).into();
        };
        let wrong = no_map(&text).into_iter();
        wrong
            .map(|why| FieldError::invalid(&at.key(key), "<secret contents redacted>", why))
            .collect()
    };
    match ty {
        "kubernetes.io/service-account-token" => {
            let metadata_at = root.field("metadata");
            match metadata.get("annotations").map_or("", |all| all.text(ACCOUNT)) {
                "" => FieldError::required(&metadata_at.field("annotations").key(ACCOUNT), "").into(),
                _ => ErrorList::new(),
            }
        }
        "kubernetes.io/dockercfg" => document(".dockercfg"),
        "kubernetes.io/dockerconfigjson" => document(".dockerconfigjson"),
        "kubernetes.io/basic-auth" => {
            let keys = ["username", "password"];
            match keys.iter().any(|key| held(key).is_some()) {
                true => ErrorList::new(),
                false => keys.into_iter().map(missing).collect(),
            }
        }
        "kubernetes.io/ssh-auth" => {
            let keys = ["ssh-privatekey"].into_iter();
            let empty = keys.filter(|key| held(key).is_none_or(|key| key.is_empty()));
            empty.map(missing).collect()
        }
        TLS => {
            let keys = [CERTIFICATE, KEY].into_iter();
            keys.filter(|key| held(key).is_none()).map(missing).collect()
        }
        _ => ErrorList::new(),
    }
}

/// The bytes of an entry. Reading has refused what is not base64.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => BASE64_STANDARD.decode(text).ok(),
        Value::Null => Some(Vec::new()),
        _ => None,
    }
}

/// A certificate and a key should belong together.
fn warn(secret: &Map) -> Vec<String> {
    if secret.text("type") != TLS {
        return Vec::new();
    }
    let data = secret.get("data");
    let held = |key: &str| data.and_then(|data| data.get(key)).and_then(bytes);
    let held = held(CERTIFICATE).zip(held(KEY));
    let fault = held.and_then(|(certificate, key)| pair::fault(&certificate, &key));
    fault.into_iter().collect()
}

/// Why a text is no JSON object, if it is none.
fn no_map(text: &[u8]) -> Option<String> {
    match json::decode(text, Limits::SERVER) {
        Ok(Value::Object(_) | Value::Null) => None,
        Ok(other) => Some(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::json_kind(&other)
        )),
        Err(e) => Some(e.to_string()),
    }
}
