//! `ConversionReview`: the request to a webhook and the validation of its response, with kube-apiserver's errors.

use super::client::WebhookResponse;
use crate::codec::scheme::Scheme;
use crate::kinds::definitions::GROUP;
use crate::rest::body::well_formed_type_meta;
use scantling_admit::decode_typed;
use scantling_apitypes::TypeTable;
use scantling_schema::meta;
use scantling_schema::names::group_version;
use scantling_value::{ErrorList, Limits, Map, Path, Value, aggregate, go, json, yaml};

/// A version of the review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    /// The first supported version.
    pub(super) fn choose<'v>(versions: impl IntoIterator<Item = &'v str>) -> Option<ReviewVersion> {
        versions.into_iter().find_map(|version| match version {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1Beta1),
            _ => None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "v1",
            ReviewVersion::V1Beta1 => "v1beta1",
        }
    }

    fn api_version(self) -> String {
        format!("{GROUP}/{}", self.name())
    }
}

const KIND: &str = "ConversionReview";

/// A request to convert an object.
#[derive(Debug)]
pub(super) struct ConversionRequest<'a> {
    pub(super) version: ReviewVersion,
    pub(super) uid: &'a str,
    pub(super) object: &'a Value,
    /// The wanted `apiVersion`.
    pub(super) wanted: &'a str,
}

/// The reason why a conversion failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WebhookError {
    /// The webhook cannot be called, or its response is not a review.
    Call(String),
    /// The review has no response, or reports a failure.
    Malformed(String),
    /// It has another number of objects than the request.
    Count(usize),
    /// An object is not the converted one.
    Object(String),
}

impl WebhookError {
    /// The label in metrics.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            WebhookError::Call(_) => "conversion_webhook_call_failure",
            WebhookError::Malformed(_) => "conversion_webhook_malformed_response_failure",
            WebhookError::Count(_) => "conversion_webhook_partial_response_failure",
            WebhookError::Object(_) => "conversion_webhook_invalid_converted_object_failure",
        }
    }
}

impl ConversionRequest<'_> {
    /// The text of the request.
    pub(super) fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(2048);
        out.extend_from_slice(b"{\"kind\":\"ConversionReview\",\"apiVersion\":");
        Value::from(self.version.api_version()).write_json(&mut out);
        out.extend_from_slice(b",\"request\":{\"uid\":");
        Value::from(self.uid).write_json(&mut out);
        out.extend_from_slice(b",\"desiredAPIVersion\":");
        Value::from(self.wanted).write_json(&mut out);
        out.extend_from_slice(b",\"objects\":[");
        self.object.write_json(&mut out);
        out.extend_from_slice(
            // Go marshals the whole type: the empty response, and the final line break of its JSON encoder.
            b"]},\"response\":{\"uid\":\"\",\"convertedObjects\":null,\"result\":{\"metadata\":{}}}}\n",
        );
        out
    }

    /// Returns the converted object of a response.
    pub(super) fn read(&self, answer: &WebhookResponse) -> Result<Value, WebhookError> {
        let review = body(answer).map_err(WebhookError::Call)?;
        // Requests contain one object, so one is expected.
        let [object] = <[Value; 1]>::try_from(self.objects(review)?)
            .map_err(|objects| WebhookError::Count(objects.len()))?;
        let object = identified(object).map_err(WebhookError::Object)?;
        self.accept(object)
            .map_err(|why| WebhookError::Object(self.failed(&why)))
    }

    /// The error about a failed conversion.
    pub(super) fn failed(&self, why: &str) -> String {
        let said = |field| self.object.get_str(field);
        let (api_version, kind) = (said("apiVersion"), said("kind"));
        format!(
            "conversion webhook for {} {why}",
            group_version_kind(api_version, kind)
        )
    }

    /// The objects in the response of a review.
    fn objects(&self, mut review: Value) -> Result<Vec<Value>, WebhookError> {
        let wanted = self.version.api_version();
        let (api_version, kind) = well_formed_type_meta(&review).map_err(WebhookError::Call)?;
        let said = group_version_kind(api_version, kind);
        let filled = |said: &str, otherwise: &str| if said.is_empty() { otherwise } else { said }.to_owned();
        let (api_version, kind) = (filled(api_version, &wanted), filled(kind, KIND));
        // Go's decoder fills in an absent type, and fails on another one before the strict check below sees it.
        if (api_version.as_str(), kind.as_str()) != (&wanted, KIND) {
            let ty = format!("{}.{KIND}", self.version.name());
            return Err(WebhookError::Call(Scheme::Webhook.mismatch(
                &api_version,
                &kind,
                &ty,
            )));
        }
        // The objects are decoded later, at any depth.
        let objects = take_objects(&mut review);
        let table = TypeTable::latest();
        let read = decode_typed(table, table.known("apiextensions/v1", "ConversionReview"), review);
        let read = read.map_err(|e| WebhookError::Call(e.to_string()))?.object;
        let expected = group_version_kind(&wanted, KIND);
        let is_strict = self.version == ReviewVersion::V1;
        if is_strict && said != expected {
            let why = format!("expected webhook response of {expected}, got {said}");
            return Err(WebhookError::Malformed(why));
        }
        let Some(response) = read.get("response") else {
            return Err(WebhookError::Malformed("no response provided".to_owned()));
        };
        let text = |path: &[&str]| response.str_at(path.iter().copied()).to_owned();
        let uid = text(&["uid"]);
        if is_strict && uid != self.uid {
            let why = format!(
                "expected response.uid={}, got {}",
                go::quote(self.uid),
                go::quote(&uid)
            );
            return Err(WebhookError::Malformed(why));
        }
        let (status, message) = (text(&["result", "status"]), text(&["result", "message"]));
        if status != "Success" {
            return Err(WebhookError::Malformed(match message.as_str() {
                "" => format!("response.result.status was '{status}', not 'Success'"),
                _ => message,
            }));
        }
        Ok(objects)
    }

    /// Checks that an object is the one that was sent, in the wanted version, and restores its metadata: only labels
    /// and annotations may change.
    fn accept(&self, mut converted: Value) -> Result<Value, String> {
        let (original, wanted) = (self.object, self.wanted);
        let said = |object: &'_ Value, field: &str| object.get_str(field).to_owned();
        let found = said(&converted, "apiVersion");
        if found != wanted {
            return Err(format!(
                "returned invalid object at index 0: invalid groupVersion (expected {wanted}, received {found})"
            ));
        }
        let (kind, found) = (said(original, "kind"), said(&converted, "kind"));
        if kind != found {
            return Err(format!(
                "returned invalid object at index 0: invalid kind (expected {kind}, received {found})"
            ));
        }
        for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
            let text = |object: &'_ Value| meta::string_field(object.get("metadata"), field).to_owned();
            let (before, after) = (text(original), text(&converted));
            if before != after {
                let why = format!("must have the same {name}: {before} != {after}");
                return Err(format!("returned invalid object: {why}"));
            }
        }
        restore_metadata(original, &mut converted)
            .map_err(|why| format!("returned invalid metadata: {why}"))?;
        Ok(converted)
    }
}

/// Takes the objects out of a review; nulls stay in their place.
fn take_objects(review: &mut Value) -> Vec<Value> {
    let response = review
        .as_object_mut()
        .and_then(|review| review.get_mut("response"));
    let objects = response.and_then(|response| response.as_object_mut()?.get_mut("convertedObjects"));
    let objects = objects.and_then(Value::as_array_mut);
    objects.map(std::mem::take).unwrap_or_default()
}

/// Decodes the body of a response.
fn body(answer: &WebhookResponse) -> Result<Value, String> {
    // The range that client-go accepts as a success.
    if !(200..=206).contains(&answer.status) {
        return Err(refusal(answer));
    }
    if answer.body.is_empty() {
        return Err(format!(
            "0-length response with status code: {} and content type: {}",
            answer.status,
            answer.content_type().unwrap_or("application/json")
        ));
    }
    document(&answer.body)
}

/// Decodes a text as JSON, or as YAML if it does not look like JSON.
fn document(text: &[u8]) -> Result<Value, String> {
    if text.trim_ascii_start().starts_with(b"{") {
        json::decode(text, Limits::SERVER)
            .map_err(|e| format!("couldn't get version/kind; json parse error: {e}"))
    } else {
        yaml::decode(text, Limits::SERVER).map_err(|e| e.to_string())
    }
}

/// The error about a response with an error code: its own message, if it has one.
fn refusal(answer: &WebhookResponse) -> String {
    let status = document(&answer.body).ok();
    let status = status.filter(|s| s.get("kind").and_then(Value::as_str) == Some("Status"));
    let message = status.as_ref().and_then(|s| s.get("message")?.as_str());
    if let Some(message) = message {
        return message.to_owned();
    }
    let is_text = answer.content_type().is_none_or(|ty| ty.starts_with("text/"));
    let said = match is_text {
        true => String::from_utf8_lossy(&answer.body).trim().to_owned(),
        false => "unknown".to_owned(),
    };
    // The texts are those of `NewGenericServerResponse` in Kubernetes' apimachinery.
    let why = match answer.status {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => return said,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if matches!(said.as_str(), "" | "unknown") => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => return said,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => {
            let said = go::quote(&said);
            return format!("an error on the server ({said}) has prevented the request from succeeding");
        }
        other => {
            return format!(
                "the server responded with the status code {other} but did not return more information"
            );
        }
    };
    why.to_owned()
}

/// Checks that an object has an `apiVersion` and a `kind`.
fn identified(object: Value) -> Result<Value, String> {
    match &object {
        Value::Null => Err("unexpected end of JSON input".to_owned()),
        Value::Object(members) => match members.get("kind") {
            Some(Value::String(kind)) if !kind.is_empty() => Ok(object),
            _ => Err(format!("Object 'Kind' is missing in '{}'", object.to_json())),
        },
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::json_kind(other)
        )),
    }
}

/// Restores the metadata of the original, except for labels and annotations.
fn restore_metadata(original: &Value, converted: &mut Value) -> Result<(), String> {
    let members = converted.as_object_mut();
    let Some(answered) = members.and_then(|members| members.get_mut("metadata")) else {
        return Err("missing metadata in converted object".to_owned());
    };
    let Some(answered_members) = answered.as_object_mut() else {
        let ty = go::value_type(answered);
        return Err(format!("invalid metadata of type {ty} in converted object"));
    };
    let mut restored = match original.get("metadata") {
        Some(Value::Object(metadata)) => metadata.clone(),
        _ => Map::new(),
    };
    for field in ["labels", "annotations"] {
        match answered_members.remove(field) {
            None | Some(Value::Null) => {
                restored.remove(field);
            }
            Some(texts) => {
                // As in kube-apiserver, only changed ones are validated.
                if restored.get(field) != Some(&texts) {
                    check_texts(field, &texts)?;
                }
                restored.insert(field, texts);
            }
        }
    }
    *answered = restored.into();
    Ok(())
}

/// Checks labels or annotations that a conversion changed.
fn check_texts(field: &str, texts: &Value) -> Result<(), String> {
    let Some(members) = texts.as_object() else {
        let ty = go::value_type(texts);
        return Err(format!(
            "invalid metadata.{field} of type {ty} in converted object"
        ));
    };
    if let Some((key, value)) = members.iter().find(|(_, value)| value.as_str().is_none()) {
        let ty = go::value_type(value);
        return Err(format!(
            "metadata.{field}[{key}] must be a string, but is {ty} in converted object"
        ));
    }
    let mut errors = ErrorList::new();
    let at = Path::ROOT;
    let at = at.field("metadata");
    match field {
        "labels" => meta::check_labels(Some(texts), &at.field("labels"), &mut errors),
        // kube-apiserver's path says `annotation`, in the singular.
        _ => meta::check_annotations(Some(texts), &at.field("annotation"), &mut errors),
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(aggregate(&errors)),
    }
}

/// Version and kind as errors name them: `example.com/v1, Kind=Widget`.
pub(crate) fn group_version_kind(api_version: &str, kind: &str) -> String {
    let (group, version) = group_version(api_version);
    format!("{group}/{version}, Kind={kind}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use hyper::HeaderMap;

    fn decoded(text: &str) -> Value {
        json::decode(text.as_bytes(), Limits::SAFE).unwrap()
    }

    fn answer(status: u16, content_type: Option<&'static str>, body: &str) -> WebhookResponse {
        let mut headers = HeaderMap::new();
        if let Some(ty) = content_type {
            headers.insert("content-type", ty.parse().unwrap());
        }
        WebhookResponse {
            status,
            headers,
            body: body.to_owned().into(),
            _charge: None,
        }
    }

    #[test]
    fn the_first_supported_review_version_is_chosen() {
        let table = [
            (&["v1", "v1beta1"] as &[&str], Some(ReviewVersion::V1)),
            (&["v9", "v1beta1", "v1"], Some(ReviewVersion::V1Beta1)),
            (&["v9"], None),
            (&[], None),
        ];
        for (given, chosen) in table {
            assert_eq!(ReviewVersion::choose(given.iter().copied()), chosen);
        }
    }

    #[test]
    fn conversion_review_requests_and_responses() {
        let object = decoded(
            r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a","uid":"u","labels":{"l":"1"},"generation":3}}"#,
        );
        let request = ConversionRequest {
            version: ReviewVersion::V1Beta1,
            uid: "7",
            object: &object,
            wanted: "g/v2",
        };
        expect![[r#"
            {"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1beta1","request":{"uid":"7","desiredAPIVersion":"g/v2","objects":[{"apiVersion":"g/v1","kind":"K","metadata":{"generation":3,"labels":{"l":"1"},"name":"a","uid":"u"}}]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}
        "#]]
        .assert_eq(&String::from_utf8(request.to_json()).unwrap());
        // In this version, uid and type of the response are not checked. Metadata stays, except for labels and
        // annotations.
        let text = r#"{"response":{"result":{"status":"Success"},"convertedObjects":[{"apiVersion":"g/v2","kind":"K",
            "metadata":{"name":"a","uid":"u","generation":9,"annotations":{"b":"2"}},"spec":{"x":1}}]}}"#;
        let read = request.read(&answer(200, None, text)).unwrap();
        expect![[
            r#"{"apiVersion":"g/v2","kind":"K","metadata":{"annotations":{"b":"2"},"generation":3,"name":"a","uid":"u"},"spec":{"x":1}}"#
        ]]
        .assert_eq(&read.to_json());
        let strict = ConversionRequest {
            version: ReviewVersion::V1,
            ..request
        };
        let why = "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=";
        assert_eq!(
            strict.read(&answer(200, None, text)),
            Err(WebhookError::Malformed(why.to_owned()))
        );
    }

    #[test]
    fn malformed_converted_objects() {
        let table = [
            ("null", "unexpected end of JSON input"),
            (
                "17",
                "json: cannot unmarshal number into Go value of type map[string]interface {}",
            ),
            (
                "[]",
                "json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (r#"{"a":1}"#, r#"Object 'Kind' is missing in '{"a":1}'"#),
        ];
        for (object, why) in table {
            assert_eq!(identified(decoded(object)), Err(why.to_owned()));
        }
    }

    #[test]
    fn review_errors() {
        let text = Some("text/plain");
        let table = [
            (
                400,
                text,
                "x",
                "the server rejected our request for an unknown reason",
            ),
            (
                401,
                text,
                "x",
                "the server has asked for the client to provide credentials",
            ),
            (403, text, " x\n", "x"),
            (409, text, "x", "the server reported a conflict"),
            (
                418,
                text,
                "x",
                "the server responded with the status code 418 but did not return more information",
            ),
            (
                422,
                None,
                "x",
                "the server rejected our request due to an error in our request",
            ),
            (
                429,
                None,
                "x",
                "the server has received too many requests and has asked us to try again later",
            ),
            (
                500,
                Some("application/json"),
                "x",
                "an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (
                502,
                None,
                "x\"",
                "an error on the server (\"x\\\"\") has prevented the request from succeeding",
            ),
            (
                503,
                text,
                "x",
                "the server is currently unable to handle the request",
            ),
            (500, text, r#"{"kind":"Status","message":"told"}"#, "told"),
        ];
        for (status, ty, body, why) in table {
            assert_eq!(refusal(&answer(status, ty, body)), why, "{status}");
        }
    }
}
