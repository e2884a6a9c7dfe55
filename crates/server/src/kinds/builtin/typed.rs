//! The codec and the rules of built-in kinds, which `scantling_admit` and the table of API types implement.

use super::{Model, NAMES, check_selectable};
use crate::discovery::api_version;
use crate::kinds::codec::KindCodec;
use crate::kinds::kind::{Kind, Version};
use crate::kinds::rules::KindRules;
use crate::rest::body::DecodedBody;
use crate::rest::write::metadata_mut;
use crate::status::{ApiError, ApiResult};
use scantling_admit::{AnyResource, BuiltinResource, TypedObject};
use scantling_apitypes::TypeTable;
use scantling_apitypes::decode::decode_raw;
use scantling_builtin::KindBehavior;
use scantling_merge::typed::ObjectType;
use scantling_schema::DecodeError;
use scantling_schema::meta::Scope;
use scantling_schema::names::group_version;
use scantling_schema::structural::Structural;
use scantling_value::{FindingList, Map, Value, go};
use std::sync::OnceLock;

/// The codec and the rules of a built-in kind.
#[derive(Debug)]
pub(super) struct Typed {
    group: &'static str,
    kind: &'static str,
    scope: Scope,
    /// The served versions.
    versions: Vec<TypedVersion>,
    /// The group and version in which objects are stored.
    hub: (&'static str, &'static str),
}

/// A served version of a built-in kind.
#[derive(Debug)]
struct TypedVersion {
    name: &'static str,
    resource: BuiltinResource,
    model: Model,
    /// The object without any fields but those that every object has; computed for the first write.
    empty: OnceLock<Option<Value>>,
}

impl Typed {
    /// Returns a kind with its served versions; `None` if the table does not have one of them.
    pub(super) fn new(
        group: &'static str,
        kind: &'static str,
        scope: Scope,
        versions: &[&'static str],
        hub: (&'static str, &'static str),
    ) -> Option<Typed> {
        let table = TypeTable::latest();
        let version = |name: &&'static str| {
            Some(TypedVersion {
                name,
                resource: BuiltinResource::new(table, (group, name, kind), hub, scope)?,
                model: Model::new(table.kind(group, name, kind)?),
                empty: OnceLock::new(),
            })
        };
        Some(Typed {
            group,
            kind,
            scope,
            versions: versions.iter().map(version).collect::<Option<_>>()?,
            hub,
        })
    }

    /// The behavior of the kind.
    pub(super) fn behavior(&self) -> Option<&'static KindBehavior> {
        Some(self.versions.first()?.resource.behavior())
    }

    fn version(&self, name: &str) -> Option<&TypedVersion> {
        self.versions.iter().find(|v| v.name == name)
    }

    fn resource(&self, version: &str) -> Result<&BuiltinResource, String> {
        let found = self.version(version).map(|v| &v.resource);
        found.ok_or_else(|| format!("{} has no version {version}", self.kind))
    }

    /// A version by its `apiVersion`, also if it is no longer or not yet served.
    fn alias(&self, of: &str) -> Option<BuiltinResource> {
        let (group, version) = group_version(of);
        // Both event groups are one kind in kube-apiserver's scheme: either accepts objects of the other.
        let is_own = group == self.group || (self.kind == "Event" && matches!(group, "" | super::EVENTS));
        let table = TypeTable::latest();
        BuiltinResource::new(table, (group, version, self.kind), self.hub, self.scope).filter(|_| is_own)
    }

    fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.kind == "Namespace"
    }
}

fn decoded_body(decoded: TypedObject) -> DecodedBody {
    DecodedBody {
        object: decoded.object,
        found: decoded.findings,
    }
}

impl KindCodec for Typed {
    fn read(&self, _kind: &Kind, version: &Version, stored: Value) -> ApiResult<Value> {
        let unreadable =
            |why: String| ApiError::internal_error("a stored object cannot be read").private(why);
        let resource = self.resource(&version.name).map_err(unreadable)?;
        resource.load(stored).map_err(|e| unreadable(e.to_string()))
    }

    fn store(&self, _kind: &Kind, version: &Version, object: Value) -> ApiResult<Value> {
        let resource = self.resource(&version.name).map_err(ApiError::internal_error)?;
        let converted = resource.version_to_hub(object);
        converted.map_err(|e| ApiError::internal_error(e.to_string()))
    }

    fn decode_text(&self, version: &Version, text: &[u8]) -> Option<Result<DecodedBody, String>> {
        let decode = |resource: &BuiltinResource| {
            let decoded = decode_raw(text).and_then(|text| resource.decode(text));
            decoded.map(decoded_body).map_err(|e| e.to_string())
        };
        Some(self.resource(&version.name).and_then(decode))
    }

    fn convert(&self, version: &Version, object: &mut Value) -> Result<FindingList, String> {
        let resource = self.resource(&version.name)?;
        resource.convert(object).map_err(|e| e.to_string())
    }

    fn in_version(&self, _kind: &Kind, mut object: Value, of: &str) -> Result<Value, String> {
        let from = object.get_str("apiVersion").to_owned();
        let ((group, from), (to_group, to)) = (group_version(&from), group_version(of));
        // Other groups and versions that were served once only get the name: their fields are taken as they are.
        if group == self.group && to_group == group && from != to {
            let text = |e: DecodeError| e.to_string();
            if let Some(from) = self.version(from) {
                object = from.resource.version_to_hub(object).map_err(text)?;
            }
            if let Some(to) = self.version(to) {
                object = to.resource.hub_to_version(object).map_err(text)?;
            }
        }
        if let Some(members) = object.as_object_mut() {
            members.insert("apiVersion", of.into());
        }
        Ok(object)
    }

    fn is_alias(&self, api_version: &str) -> bool {
        self.alias(api_version).is_some()
    }

    fn decode_alias(&self, version: &Version, of: &str, object: Value) -> Result<DecodedBody, String> {
        let text = |e: DecodeError| e.to_string();
        let Some(alias) = self.alias(of) else {
            return Err(format!("{of} is no other version of the kind"));
        };
        let decoded = alias.decode(object).map_err(text)?;
        let hub = alias.version_to_hub(decoded.object).map_err(text)?;
        let object = self.resource(&version.name)?.hub_to_version(hub).map_err(text)?;
        Ok(decoded_body(TypedObject { object, ..decoded }))
    }

    fn managed_form(&self, version: &Version, object: &Value) -> Option<Value> {
        self.version(&version.name)?.resource.encoded(object)
    }

    fn empty_object(&self, version: &Version) -> Option<Value> {
        let version = self.version(&version.name)?;
        // Decoding applies what Go's types always write, so the result is not simply an empty object.
        let empty = version.empty.get_or_init(|| {
            let members = [
                ("apiVersion", Value::from(api_version(self.group, version.name))),
                ("kind", self.kind.into()),
            ];
            let empty = version
                .resource
                .decode(Value::Object(members.into_iter().collect()));
            empty.ok().map(|empty| empty.object)
        });
        empty.clone()
    }

    fn object_type(&self, version: &str) -> Option<&ObjectType> {
        self.version(version).map(|v| v.model.object_type())
    }

    fn strategic_schema(&self, version: &Version) -> Option<&Structural> {
        self.version(&version.name).map(|v| v.model.strategic())
    }
}

impl KindRules for Typed {
    fn resource(&self, version: &Version) -> Result<AnyResource<'_>, String> {
        Ok(Typed::resource(self, &version.name)?.into())
    }

    fn check_selectable(&self, kind: &Kind, _version: &Version, field: &str) -> Result<(), String> {
        let is_selectable = match field {
            "metadata.name" => true,
            "metadata.namespace" => kind.namespaced,
            field => kind.behavior.facts.selectable.contains(&field),
        };
        if is_selectable {
            return Ok(());
        }
        // kube-apiserver has three texts, which depend on how a kind registers its fields.
        Err(match (self.group, self.kind) {
            ("batch", "Job") => format!("field label {} not supported for Job", go::quote(field)),
            ("", "Pod" | "Node" | "ReplicationController" | "Event" | "Namespace" | "Secret" | "Service")
            | ("events.k8s.io" | "certificates.k8s.io", _) => {
                format!("field label not supported: {field}")
            }
            ("resource.k8s.io", "ResourceSlice") => {
                format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}")
            }
            // Other kinds register the names of objects and of namespaces, whatever their scope.
            _ => return check_selectable(field, &NAMES),
        })
    }

    fn is_held(&self, object: &Value) -> bool {
        self.is_namespace() && !crate::controllers::namespaces::finalizers(object.get("spec")).is_empty()
    }

    fn mark_deleted(&self, stored: Value, now: &str) -> Result<Option<Value>, String> {
        if !self.is_namespace() {
            return Ok(None);
        }
        mark_namespace(stored, now)
            .map(Some)
            .ok_or_else(|| "the metadata or the status of the namespace is not an object".to_owned())
    }
}

/// Returns a stored namespace that is being deleted; `None` if its metadata or its status is not an object.
fn mark_namespace(mut stored: Value, now: &str) -> Option<Value> {
    metadata_mut(&mut stored)?.insert("deletionTimestamp", now.into());
    let status = stored
        .as_object_mut()?
        .get_or_insert_with("status", || Map::new().into());
    status.as_object_mut()?.insert("phase", "Terminating".into());
    Some(stored)
}
