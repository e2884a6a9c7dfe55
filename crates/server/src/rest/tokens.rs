//! `serviceaccounts/token`: tokens of service accounts.

use crate::api::now;
use crate::auth::service_accounts::ISSUER;
use crate::http::reply::Reply;
use crate::rest::actions::action_kind;
use crate::rest::write::{Part, WriteRequest, check_namespace_matches_path, metadata_str, timestamp};
use crate::rest::{managed_fields, read};
use crate::status::{ApiError, ApiResult, GroupResource};
use jiff::Timestamp;
use scantling_schema::names::group_version;
use scantling_value::{ErrorList, FieldError, Map, Path, Value};

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
        let errors = check_spec(&request, seconds);
        if !errors.is_empty() {
            return Err(ApiError::invalid(TOKEN_REQUEST, "", &errors));
        }
        let seconds = seconds.unwrap_or(DEFAULT_SECONDS);
        let audiences = match request.list_at(["spec", "audiences"]) {
            [] => vec![Value::from(ISSUER)],
            audiences => audiences.to_vec(),
        };
        let bound = self.bound_object(&request, namespace).await?;
        let issued = now();
        let reference = |name: &str, uid: &str| {
            Value::Object(Map::from_iter([("name", Value::from(name)), ("uid", uid.into())]))
        };
        let mut private = Map::from_iter([
            ("namespace", Value::from(namespace)),
            ("serviceaccount", reference(name, &uid)),
        ]);
        if let Some((kind, name, uid)) = &bound {
            // The uids bind the token to these very objects: one that is recreated under the name does not validate it.
            private.insert(kind.to_lowercase(), reference(name, uid));
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

    /// The kind, name and uid of the object that a token is bound to.
    async fn bound_object(
        &self,
        request: &Value,
        namespace: &str,
    ) -> ApiResult<Option<(String, String, String)>> {
        let Some(reference) = request.at(["spec", "boundObjectRef"]).filter(|r| !r.is_null()) else {
            return Ok(None);
        };
        let text = |field| reference.get_str(field);
        let (kind, name, uid) = (text("kind"), text("name"), text("uid"));
        let (plural, scope) = match (text("apiVersion"), kind) {
            ("v1", "Pod") => ("pods", Some(namespace)),
            ("v1", "Secret") => ("secrets", Some(namespace)),
            ("v1", "Node") => ("nodes", None),
            (api_version, kind) => {
                let (group, version) = group_version(api_version);
                let why = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
                return Err(ApiError::bad_request(why));
            }
        };
        let about = GroupResource {
            group: "",
            kind: plural,
        };
        let api = self.call.api;
        let key = api.keys.object("", plural, scope, name);
        let key = key.map_err(|_| ApiError::not_found(about, name))?;
        let entry = api.newest(&key).await?;
        let entry = entry.ok_or_else(|| ApiError::not_found(about, name))?;
        let object = read::stored(&entry)?;
        let found = metadata_str(&object, "uid");
        if !uid.is_empty() && uid != found {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            return Err(ApiError::conflict(about, name, &why));
        }
        Ok(Some((kind.to_owned(), name.to_owned(), found.to_owned())))
    }
}

fn check_spec(request: &Value, seconds: Option<i64>) -> ErrorList {
    let root = Path::ROOT;
    let spec = root.field("spec");
    let attestations = request.at(["spec", "attestations"]).filter(|a| !a.is_null());
    let is_empty = |a: &Value| a.as_object().is_some_and(Map::is_empty);
    if let Some(attestations) = attestations.filter(|a| !is_empty(a)) {
        let why = "attestations may only be specified with a webhook bound object reference";
        return FieldError::invalid(&spec.field("attestations"), attestations.clone(), why).into();
    }
    let at = spec.field("expirationSeconds");
    let why = match seconds {
        Some(seconds) if seconds < MIN_SECONDS => "may not specify a duration less than 10 minutes",
        Some(seconds) if seconds > MAX_SECONDS => "may not specify a duration larger than 2^32 seconds",
        _ => return ErrorList::new(),
    };
    FieldError::invalid(&at, Value::Int(seconds.unwrap_or(0)), why).into()
}
