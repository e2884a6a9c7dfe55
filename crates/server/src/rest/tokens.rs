//! `serviceaccounts/token`: tokens of service accounts.

use crate::api::{check_segment, now};
use crate::auth::service_accounts::ISSUER;
use crate::http::reply::Reply;
use crate::rest::actions::action_kind;
use crate::rest::write::{Part, WriteRequest, check_namespace_matches_path, metadata_str, timestamp};
use crate::rest::{managed_fields, read};
use crate::status::{ApiError, ApiResult, GroupResource};
use jiff::Timestamp;
use scantling_schema::names::group_version;
use scantling_value::{ErrorList, FieldError, Map, Path, Value, go};

/// The default validity of a token, the minimum and the maximum, in seconds.
const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
// Kubernetes' own limits.
const MAX_SECONDS: i64 = 1 << 32;

/// The name of token requests in errors.
const TOKEN_REQUEST: GroupResource<'static> = GroupResource {
    group: "authentication.k8s.io",
    kind: "TokenRequest",
};

impl WriteRequest<'_> {
    /// POST of `serviceaccounts/token`.
    pub(crate) async fn create_token(&mut self, name: &str) -> ApiResult<Reply> {
        let call = self.call;
        let (mut request, options) = self.decode_action("authentication.k8s.io", "v1", "TokenRequest")?;
        let namespace = call.path.namespace.as_deref().unwrap_or_default();
        check_namespace_matches_path(call, &mut request)?;
        if let Some(members) = request.as_object_mut() {
            let spec = members.get_or_insert_with("spec", || Map::new().into());
            if let Some(spec) = spec.as_object_mut()
                && spec.get("expirationSeconds").is_none_or(Value::is_null)
            {
                spec.insert("expirationSeconds", DEFAULT_SECONDS.into());
            }
        }
        let kind = action_kind(TOKEN_REQUEST.group, "v1", TOKEN_REQUEST.kind)?;
        let by = self.manager(&options);
        let inner = call.of_kind(&kind)?;
        let updated = managed_fields::after_update(&inner, Part::Token, None, request, &by).await?;
        request = updated.object;
        self.admit_action(name, &mut request).await?;
        let root = Path::ROOT;
        let found = metadata_str(&request, "name");
        if !found.is_empty() && found != name {
            let why = "must match the service account name if specified";
            let error = FieldError::invalid(&root.field("metadata").field("name"), found, why);
            return Err(ApiError::invalid(TOKEN_REQUEST, name, &[error]));
        }
        let key = call.key(name)?;
        let account = read::stored(&*call.live(&key, name).await?)?;
        let uid = metadata_str(&account, "uid").to_owned();
        let asked = metadata_str(&request, "uid");
        if !asked.is_empty() && asked != uid {
            let why = format!(
                "the UID in the token request ({asked}) does not match the UID of the service account ({uid})"
            );
            return Err(ApiError::conflict(TOKEN_REQUEST, name, &why));
        }
        let seconds = request.at(["spec", "expirationSeconds"]).and_then(Value::as_int);
        let audiences = match request.list_at(["spec", "audiences"]) {
            [] => vec![Value::from(ISSUER)],
            audiences => audiences.to_vec(),
        };
        let errors = check_spec(&request, seconds, &audiences);
        if !errors.is_empty() {
            return Err(ApiError::invalid(TOKEN_REQUEST, "", &errors));
        }
        let seconds = seconds.unwrap_or(DEFAULT_SECONDS);
        let bound = self.bound_objects(&request, namespace, name).await?;
        let issued = now();
        let reference = |name: &str, uid: &str| {
            Value::Object(Map::from_iter([("name", Value::from(name)), ("uid", uid.into())]))
        };
        let mut private = Map::from_iter([
            ("namespace", Value::from(namespace)),
            ("serviceaccount", reference(name, &uid)),
        ]);
        for Bound { kind, name, uid } in &bound {
            // The uids bind the token to these very objects: one that is recreated under the name does not validate it.
            let mut reference = reference(name, uid);
            if uid.is_empty()
                && let Some(members) = reference.as_object_mut()
            {
                members.remove("uid");
            }
            private.insert(kind.to_lowercase(), reference);
        }
        let claims = Map::from_iter([
            ("aud", Value::Array(audiences.clone())),
            ("exp", Value::Int(issued.saturating_add(seconds))),
            ("iat", Value::Int(issued)),
            ("iss", ISSUER.into()),
            ("jti", uuid::Uuid::new_v4().to_string().into()),
            ("kubernetes.io", private.into()),
            ("nbf", Value::Int(issued)),
            ("sub", format!("system:serviceaccount:{namespace}:{name}").into()),
        ]);
        let token = match options.dry_run {
            // A dry run must not issue a credential.
            true => String::new(),
            false => call
                .api
                .issuer
                .sign(&claims.into())
                .map_err(ApiError::internal_error)?,
        };
        let expires = Timestamp::from_second(issued.saturating_add(seconds))
            .map_err(|e| ApiError::internal_error(e.to_string()))?;
        let status = Map::from_iter([
            ("token", Value::from(token)),
            (
                "expirationTimestamp",
                expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into(),
            ),
        ]);
        if let Some(members) = request.as_object_mut() {
            let spec = members.get_or_insert_with("spec", || Map::new().into());
            if let Some(spec) = spec.as_object_mut() {
                spec.insert("audiences", Value::Array(audiences));
                spec.insert("expirationSeconds", Value::Int(seconds));
            }
            let metadata = members.get_or_insert_with("metadata", || Map::new().into());
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("name", name.into());
                metadata.insert("namespace", namespace.into());
                metadata.insert("uid", uid.into());
                metadata.insert("creationTimestamp", timestamp().into());
            }
            members.insert("status", status.into());
        }
        call.view_renderer()?.object(201, request)
    }

    /// The object that a token is bound to. A pod's node follows it.
    async fn bound_objects(&self, request: &Value, namespace: &str, account: &str) -> ApiResult<Vec<Bound>> {
        let Some(reference) = request.at(["spec", "boundObjectRef"]).filter(|r| !r.is_null()) else {
            return Ok(Vec::new());
        };
        let text = |field| reference.get_str(field);
        let (kind, name, uid) = (text("kind"), text("name"), text("uid"));
        let (group, version) = group_version(text("apiVersion"));
        let (plural, scope) = match (group, kind) {
            ("", "Pod") => ("pods", Some(namespace)),
            ("", "Secret") => ("secrets", Some(namespace)),
            ("", "Node") => ("nodes", None),
            _ => {
                let mut why = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
                if is_webhook(reference) {
                    why.push_str(" (feature gate APIServerWebhookAuthenticationToken is disabled)");
                }
                return Err(ApiError::bad_request(why));
            }
        };
        let about = |kind| GroupResource { group: "", kind };
        let object = self.newest_object(plural, scope, name).await?;
        let object = object.ok_or_else(|| ApiError::not_found(about(plural), name))?;
        if kind == "Pod" && object.str_at(["spec", "serviceAccountName"]) != account {
            let why = format!(
                "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                go::quote(account)
            );
            return Err(ApiError::bad_request(why));
        }
        let found = metadata_str(&object, "uid");
        if !uid.is_empty() && uid != found {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            return Err(ApiError::conflict(about(kind), name, &why));
        }
        let mut bound = vec![Bound::new(kind, name, found)];
        let node = object.str_at(["spec", "nodeName"]);
        if kind == "Pod" && !node.is_empty() {
            // The name is recorded even if the node does not exist.
            let found = self.newest_object("nodes", None, node).await?;
            let uid = found.as_ref().map_or("", |found| metadata_str(found, "uid"));
            bound.push(Bound::new("Node", node, uid));
        }
        Ok(bound)
    }

    /// An object of the core group, if it exists.
    async fn newest_object(
        &self,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> ApiResult<Option<Value>> {
        check_segment(name)?;
        let api = self.call.api;
        let Ok(key) = api.keys.object("", plural, namespace, name) else {
            return Ok(None);
        };
        let entry = api.newest(&key).await?;
        entry.map(|entry| read::stored(&entry)).transpose()
    }
}

/// An object that a token names in its claims.
struct Bound {
    kind: String,
    name: String,
    uid: String,
}

impl Bound {
    fn new(kind: &str, name: &str, uid: &str) -> Bound {
        let [kind, name, uid] = [kind, name, uid].map(str::to_owned);
        Bound { kind, name, uid }
    }
}

/// Returns whether a token is to be bound to a configuration of webhooks.
fn is_webhook(reference: &Value) -> bool {
    let is_kind = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]
        .contains(&reference.get_str("kind"));
    is_kind && reference.get_str("apiVersion") == "admissionregistration.k8s.io/v1"
}

/// The attestation of tokens for webhooks.
const REVIEWED_GROUPS: &str = "admissionReviewAPIGroups";

fn check_spec(request: &Value, seconds: Option<i64>, audiences: &[Value]) -> ErrorList {
    let root = Path::ROOT;
    let spec = root.field("spec");
    let none = Value::Null;
    let attestations = request.at(["spec", "attestations"]).unwrap_or(&none);
    let reference = request.at(["spec", "boundObjectRef"]);
    let is_webhook = reference.is_some_and(is_webhook);
    let at = spec.field("attestations");
    if !is_webhook && attestations.as_object().is_some_and(|a| !a.is_empty()) {
        let why = "attestations may only be specified with a webhook bound object reference";
        return FieldError::invalid(&at, attestations.clone(), why).into();
    }
    let mut errors = ErrorList::new();
    let why = match seconds {
        Some(seconds) if seconds < MIN_SECONDS => Some("may not specify a duration less than 10 minutes"),
        Some(seconds) if seconds > MAX_SECONDS => Some("may not specify a duration larger than 2^32 seconds"),
        _ => None,
    };
    if let Some(why) = why {
        let at = spec.field("expirationSeconds");
        errors.push(FieldError::invalid(&at, Value::Int(seconds.unwrap_or(0)), why));
    }
    if !is_webhook {
        return errors;
    }
    if audiences.len() != 1 {
        let why = "must be length 1 when bound to a webhook config";
        errors.push(FieldError::invalid(
            &spec.field("audiences"),
            audiences.to_vec(),
            why,
        ));
    }
    check_attestations(attestations, &at, &mut errors);
    errors
}

/// A token for a webhook names the one API group whose objects are reviewed.
fn check_attestations(attestations: &Value, at: &Path<'_>, errors: &mut ErrorList) {
    let Some([(key, values)]) = attestations.as_object().map(Map::entries) else {
        let why = "webhook bound requests require exactly one admissionReviewAPIGroups attestation";
        return errors.push(FieldError::invalid(at, attestations.clone(), why));
    };
    let at = at.key(key);
    if key.as_str() != REVIEWED_GROUPS {
        return errors.push(FieldError::not_supported(&at, key.as_str(), [REVIEWED_GROUPS]));
    }
    let Some([group]) = values.as_array() else {
        return errors.push(FieldError::invalid(
            &at,
            values.clone(),
            "must specify a single value",
        ));
    };
    let (at, group) = (at.index(0), group.as_str().unwrap_or_default());
    if group.is_empty() {
        return errors.push(FieldError::invalid(&at, group, "may not be an empty string"));
    }
    if group != "*" {
        for why in scantling_notation::names::dns1123_subdomain(group) {
            let why = format!("must specify a valid API Group: {why}");
            errors.push(FieldError::invalid(&at, group, why));
        }
    }
}
