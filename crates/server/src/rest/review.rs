//! Review kinds, which are evaluated and never stored: access reviews, token reviews.

use crate::api::ResourceRequest;
use crate::auth::authentication::{Credential, User};
use crate::auth::authorization::{self, Attributes, RequestTarget, Resource};
use crate::auth::service_accounts::ISSUER;
use crate::codec::media::{self, View};
use crate::codec::order;
use crate::http::reply::Reply;
use crate::rest::body::{self, DecodedBody};
use crate::rest::managed_fields;
use crate::rest::options::{WriteKind, WriteOptions};
use crate::rest::write::{
    ObjectSource, Ownership, Part, WriteRequest, check_namespace_matches_path, remove_system_fields,
    timestamp,
};
use crate::status::{ApiError, ApiResult, GroupResource};
use scantling_notation::names;
use scantling_value::{BadValue, ErrorList, FieldError, Map, Path, Value, go};

/// The kind of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewKind {
    /// `SelfSubjectAccessReview`
    Access,
    /// `SelfSubjectRulesReview`
    Rules,
    /// `SelfSubjectReview`
    User,
    /// `SubjectAccessReview`
    Subject,
    /// `LocalSubjectAccessReview`
    LocalSubject,
    /// `TokenReview`
    Token,
}

impl ReviewKind {
    /// Finds the review of a kind.
    pub(crate) fn find(group: &str, kind: &str) -> Option<ReviewKind> {
        match (group, kind) {
            ("authorization.k8s.io", "SelfSubjectAccessReview") => Some(ReviewKind::Access),
            ("authorization.k8s.io", "SelfSubjectRulesReview") => Some(ReviewKind::Rules),
            ("authentication.k8s.io", "SelfSubjectReview") => Some(ReviewKind::User),
            ("authorization.k8s.io", "SubjectAccessReview") => Some(ReviewKind::Subject),
            ("authorization.k8s.io", "LocalSubjectAccessReview") => Some(ReviewKind::LocalSubject),
            ("authentication.k8s.io", "TokenReview") => Some(ReviewKind::Token),
            _ => None,
        }
    }
}

impl WriteRequest<'_> {
    /// POST of a review.
    pub(crate) async fn answer(&mut self, review: ReviewKind) -> ApiResult<Reply> {
        let call = self.call;
        let shape = call.view_renderer()?;
        // In kube-apiserver, reviews have no table convertor, so a table is not acceptable.
        if matches!(shape.wanted.view, View::Table(_)) {
            return Err(media::not_acceptable(call.accept.encodings));
        }
        let form = self.head.body_encoding()?;
        let options = WriteOptions::parse(call.query, WriteKind::Create)?;
        let mode = options.field_validation;
        let DecodedBody { mut object, found } = body::decode(call, &self.body, form, mode)?;
        self.normalize(
            &mut object,
            &found,
            mode,
            Ownership::Update,
            ObjectSource::Body,
            None,
        )?;
        body::check_version_matches_path(call, &object)?;
        let user = self.head.user.as_deref().ok_or_else(ApiError::unauthorized)?;
        let mode = call.api.authorization;
        match review {
            ReviewKind::Access | ReviewKind::Subject | ReviewKind::LocalSubject => {
                check_namespace_matches_path(call, &mut object)?;
                remove_system_fields(&mut object);
                let by = self.manager(&options);
                object = managed_fields::after_update(call, Part::Whole, None, object, &by)
                    .await?
                    .object;
                refuse(call, &check_access(&object, review))?;
                // A self review is about the user of the request, whatever the body says.
                let subject = (review != ReviewKind::Access).then(|| reviewed_user(&object));
                let decided = authorization::decide(mode, subject.as_ref().unwrap_or(user), &asked(&object));
                let mut status = Map::from_iter([("allowed", Value::from(decided.is_ok()))]);
                if let Err(reason) = decided
                    && !reason.is_empty()
                {
                    status.insert("reason", reason.into());
                }
                set(&mut object, "status", status.into());
            }
            ReviewKind::Token => {
                check_namespace_matches_path(call, &mut object)?;
                remove_system_fields(&mut object);
                let by = self.manager(&options);
                object = managed_fields::after_update(call, Part::Whole, None, object, &by)
                    .await?
                    .object;
                let token = object.str_at(["spec", "token"]).to_owned();
                if token.is_empty() {
                    let why = "token is required for TokenReview in authentication";
                    return Err(ApiError::bad_request(why));
                }
                let status = self
                    .review_token(&token, object.list_at(["spec", "audiences"]))
                    .await;
                set(&mut object, "status", status);
            }
            ReviewKind::Rules => {
                if object.str_at(["spec", "namespace"]).is_empty() {
                    return Err(ApiError::bad_request("no namespace on request"));
                }
                // kube-apiserver answers with a new object that has only a status.
                set(&mut object, "metadata", Map::new().into());
                set(&mut object, "spec", Map::new().into());
                set(&mut object, "status", rules());
            }
            ReviewKind::User => {
                let metadata = Map::from_iter([("creationTimestamp", Value::from(timestamp()))]);
                set(&mut object, "metadata", metadata.into());
                let status = Map::from_iter([("userInfo", user_info(user))]);
                set(&mut object, "status", status.into());
            }
        }
        // Empty lists are in memory only.
        let written = call.kind.codec.managed_form(call.version, &object);
        shape.object(201, written.unwrap_or(object))
    }
}

impl WriteRequest<'_> {
    /// The status of a token review.
    async fn review_token(&self, token: &str, audiences: &[Value]) -> Value {
        let api = self.call.api;
        let refused = |error: String| {
            let status = [("user", Value::from(Map::new())), ("error", error.into())];
            Value::Object(status.into_iter().collect())
        };
        let accepted = |user: &User, audiences: Vec<&str>| {
            let audiences = audiences.into_iter().map(Value::from).collect();
            let status = [
                ("authenticated", Value::from(true)),
                ("user", user_info(user)),
                ("audiences", Value::Array(audiences)),
            ];
            Value::Object(status.into_iter().collect())
        };
        let wanted: Vec<&str> = match audiences {
            // Without audiences, the review is about the API server itself.
            [] => vec![ISSUER],
            audiences => audiences.iter().filter_map(Value::as_str).collect(),
        };
        if let Credential::Accepted(user) = api.tokens.holder(token)
            && wanted.contains(&ISSUER)
        {
            return accepted(&user, vec![ISSUER]);
        }
        const INVALID: &str = "invalid bearer token";
        let Some(claims) = api.issuer.verify(token) else {
            return refused(INVALID.to_owned());
        };
        let own = claims.audiences();
        let common: Vec<&str> = own.iter().copied().filter(|a| wanted.contains(a)).collect();
        if common.is_empty() {
            let list = |texts: &[&str]| {
                let quoted: Vec<String> = texts.iter().map(|t| go::quote(t)).collect();
                quoted.join(" ")
            };
            return refused(format!(
                "[{INVALID}, token audiences [{}] is invalid for the target audiences [{}]]",
                list(&own),
                list(&wanted)
            ));
        }
        match api.user_of_claims(&claims).await {
            Some(user) => accepted(&user, common),
            None => refused(INVALID.to_owned()),
        }
    }
}

/// The user that an access review is about.
fn reviewed_user(review: &Value) -> User {
    let texts = |list: &[Value]| list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let extra = review.at(["spec", "extra"]).and_then(Value::as_object);
    let extra = extra.into_iter().flat_map(Map::iter);
    // `AlwaysAllow` allows every named user, so the user of a review counts as authenticated.
    let user = User::authenticated(
        review.str_at(["spec", "user"]).to_owned(),
        review.str_at(["spec", "uid"]).to_owned(),
        texts(review.list_at(["spec", "groups"])),
    );
    User {
        extra: extra
            .map(|(key, values)| (key.to_string(), texts(values.as_array().unwrap_or_default())))
            .collect(),
        ..user
    }
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(field, value);
    }
}

fn refuse(call: &ResourceRequest<'_>, errors: &[FieldError]) -> ApiResult<()> {
    if errors.is_empty() {
        return Ok(());
    }
    let about = GroupResource {
        group: &call.kind.group,
        kind: "",
    };
    Err(ApiError::invalid(about, "", errors))
}

/// Checks that the metadata of an access review is empty.
fn check_metadata(object: &Value, review: ReviewKind) -> ErrorList {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let mut said = metadata.as_object().into_iter().flat_map(Map::keys);
    let root = Path::ROOT;
    let error = || {
        let found = BadValue::Raw(order::metadata_text(metadata));
        let why = match review {
            ReviewKind::LocalSubject => "must be empty except for namespace",
            _ => "must be empty",
        };
        FieldError::invalid(&root.field("metadata"), found, why)
    };
    let is_said = said.any(|field| {
        let is_own = review == ReviewKind::LocalSubject && field == "namespace";
        // The server itself sets the managed fields before validation, so they are no fault of the client.
        field != "managedFields" && !is_own
    });
    is_said.then(error).into_iter().collect()
}

/// Validates an access review.
fn check_access(object: &Value, review: ReviewKind) -> ErrorList {
    let root = Path::ROOT;
    let spec = root.field("spec");
    let asked = |name| object.at(["spec", name]);
    let (resource, path) = (asked("resourceAttributes"), asked("nonResourceAttributes"));
    let mut errors = ErrorList::new();
    if resource.is_some() == path.is_some() {
        let shown = path.map_or(Value::Null, |path| {
            let part = |name| path.get(name).cloned().unwrap_or_else(|| "".into());
            // UPSTREAM: the error shows the internal type, which has no JSON names.
            Map::from_iter([("Path", part("path")), ("Verb", part("verb"))]).into()
        });
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push_with(|| FieldError::invalid(&spec, shown, why));
    }
    let at = spec.field("resourceAttributes");
    for name in ["fieldSelector", "labelSelector"] {
        let Some(selector) = resource.and_then(|r| r.get(name)) else {
            continue;
        };
        let at = at.field(name);
        let raw = selector.get_str("rawSelector");
        match (raw, selector.list("requirements")) {
            ("", []) => {
                let why = format!(
                    "when spec.resourceAttributes.{name} is specified, requirements or rawSelector is required"
                );
                errors.push_with(|| FieldError::required(&at.field("requirements"), why));
            }
            ("", _) | (_, []) => {}
            (raw, _) => {
                let why = "may not specified at the same time as requirements";
                errors.push_with(|| FieldError::invalid(&at.field("rawSelector"), raw, why));
            }
        }
        for (i, requirement) in selector.list("requirements").iter().enumerate() {
            let list = at.field("requirements");
            check_requirement(requirement, &list.index(i), name == "labelSelector", &mut errors);
        }
    }
    if review != ReviewKind::Access {
        let user = object.str_at(["spec", "user"]);
        if user.is_empty() && object.list_at(["spec", "groups"]).is_empty() {
            let why = "at least one of user or group must be specified";
            errors.push_with(|| FieldError::invalid(&spec.field("user"), user, why));
        }
    }
    if review == ReviewKind::LocalSubject {
        let found = resource.map_or("", |r| r.get_str("namespace"));
        if resource.is_some() && found != object.str_at(["metadata", "namespace"]) {
            let why = "must match metadata.namespace";
            errors.push_with(|| FieldError::invalid(&at.field("namespace"), found, why));
        }
        if let Some(path) = path {
            let part = |name| path.get(name).cloned().unwrap_or_else(|| "".into());
            let shown: Value = Map::from_iter([("Path", part("path")), ("Verb", part("verb"))]).into();
            let why = "disallowed on this kind of request";
            errors.push_with(|| FieldError::invalid(&spec.field("nonResourceAttributes"), shown, why));
        }
    }
    errors.extend(check_metadata(object, review));
    errors
}

/// Checks a requirement of a selector. Operators that are not known are those of newer clients.
fn check_requirement(requirement: &Value, at: &Path<'_>, of_labels: bool, errors: &mut ErrorList) {
    let key = requirement.get_str("key");
    if !of_labels && key.is_empty() {
        errors.push_with(|| FieldError::required(&at.field("key"), "must be specified"));
    }
    let values = requirement.list("values");
    match requirement.get_str("operator") {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push_with(|| FieldError::required(&at.field("values"), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push_with(|| FieldError::forbidden(&at.field("values"), why));
        }
        _ => {}
    }
    if !of_labels {
        return;
    }
    for why in names::label_key(key) {
        errors.push_with(|| FieldError::invalid(&at.field("key"), key, why));
    }
    for (i, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        for why in names::label_value(value) {
            errors.push_with(|| FieldError::invalid(&at.field("values").index(i), value, why));
        }
    }
}

/// The attributes that an access review asks about.
fn asked(object: &Value) -> Attributes<'_> {
    let text = |at, name| object.str_at(["spec", at, name]);
    let resource = |name| text("resourceAttributes", name);
    let path = |name| text("nonResourceAttributes", name);
    if object.at(["spec", "nonResourceAttributes"]).is_some() {
        return Attributes {
            verb: path("verb").into(),
            target: RequestTarget::Path(path("path").into()),
        };
    }
    Attributes {
        verb: resource("verb").into(),
        target: RequestTarget::Resource(Resource {
            group: resource("group"),
            resource: resource("resource"),
            subresource: resource("subresource"),
            namespace: resource("namespace"),
            name: resource("name").into(),
        }),
    }
}

/// The rights of a user who may create reviews: all.
fn rules() -> Value {
    let all = || Value::from(vec!["*"]);
    let rules = |rule: Map| Value::Array(vec![rule.into()]);
    let resources = [("verbs", all()), ("apiGroups", all()), ("resources", all())];
    let paths = [("verbs", all()), ("nonResourceURLs", all())];
    let entries = [
        ("resourceRules", rules(resources.into_iter().collect())),
        ("nonResourceRules", rules(paths.into_iter().collect())),
        ("incomplete", false.into()),
    ];
    Value::Object(entries.into_iter().collect())
}

/// The user of the request, as a review returns it.
fn user_info(user: &User) -> Value {
    let texts = |texts: &[String]| Value::Array(texts.iter().map(|t| t.as_str().into()).collect());
    let mut info = Map::from_iter([
        ("username", Value::from(user.name.as_str())),
        ("groups", texts(&user.groups)),
    ]);
    if !user.extra.is_empty() {
        let extra = user
            .extra
            .iter()
            .map(|(key, values)| (key.as_str(), texts(values)));
        info.insert("extra", Value::Object(extra.collect()));
    }
    if !user.uid.is_empty() {
        info.insert("uid", user.uid.as_str().into());
    }
    info.into()
}
