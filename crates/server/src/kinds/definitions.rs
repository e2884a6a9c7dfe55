//! CustomResourceDefinitions as a kind of their own. [`controllers::crd`](crate::controllers::crd) turns them into
//! served kinds.

mod pending;

pub(crate) use pending::PendingDefinitions;

use crate::kinds::builtin::{self, Model};
use crate::kinds::codec::KindCodec;
use crate::kinds::custom::Compiler;
use crate::kinds::kind::{Kind, Version};
use crate::kinds::rules::KindRules;
use crate::rest::body::DecodedBody;
use crate::status::{ApiError, ApiResult};
use scantling_admit::{AnyResource, DefinitionResource, Gates};
use scantling_apitypes::TypeTable;
use scantling_builtin::{KindBehavior, KindFacts};
use scantling_merge::typed::ObjectType;
use scantling_schema::definition::{ApiVersion, Definition};
use scantling_schema::names::group_version;
use scantling_schema::structural::Structural;
use scantling_store::Entry;
use scantling_value::{FindingList, Map, Value};

/// The group of CRDs.
pub(crate) const GROUP: &str = "apiextensions.k8s.io";
/// The plural name of CRDs.
pub(crate) const PLURAL: &str = "customresourcedefinitions";

/// The behavior of CRDs, beside what `scantling_schema` decides.
pub(crate) static BEHAVIOR: KindBehavior = KindBehavior::new(KindFacts {
    unconditional_update: false,
    ..KindFacts::new(GROUP, "CustomResourceDefinition")
});

/// Decodes a CRD of the store.
pub(crate) fn decode(entry: &Entry, gates: Gates) -> Result<Definition, String> {
    let stored = crate::rest::read::stored(entry).map_err(|e| e.message().to_owned())?;
    let written_as = ApiVersion::of_document(&stored);
    let received = Definition::decode(stored, written_as, gates).map_err(|e| e.to_string())?;
    Ok(received.definition)
}

/// The reason why CRDs are not encoded in protobuf while extensions are enabled. Kubernetes' message has no fields for
/// the extensions, and Go clients drop unknown fields: a client that reads a CRD and writes it back would remove them.
const LOSSY_PROTOBUF: &str = "the protobuf form of CustomResourceDefinition cannot hold x-kubernetes-immutable and its \
     relatives, x-kubernetes-unions and appliesOnCreate, whose feature gates are on: use JSON, YAML or CBOR";

/// The codec and the rules of CRDs.
#[derive(Debug)]
pub(crate) struct Definitions {
    gates: Gates,
    v1: DefinitionVersion,
    v1beta1: DefinitionVersion,
}

#[derive(Debug)]
struct DefinitionVersion {
    resource: DefinitionResource,
    model: Model,
}

fn api_version(version: &str) -> ApiVersion {
    match version {
        "v1beta1" => ApiVersion::V1Beta1,
        _ => ApiVersion::V1,
    }
}

impl Definitions {
    /// The CRDs that a compiler accepts.
    pub(crate) fn new(compiler: &Compiler) -> Definitions {
        let table = TypeTable::latest();
        let version = |api: ApiVersion, package| DefinitionVersion {
            resource: DefinitionResource::new(api, compiler.gates, compiler.environments.clone()),
            model: Model::new(table.known(package, "CustomResourceDefinition")),
        };
        Definitions {
            gates: compiler.gates,
            v1: version(ApiVersion::V1, "apiextensions/v1"),
            v1beta1: version(ApiVersion::V1Beta1, "apiextensions/v1beta1"),
        }
    }

    /// The reason why CRDs are not encoded in protobuf, if they are not.
    pub(crate) fn lossy_protobuf(&self) -> Option<&'static str> {
        self.gates.extend_definitions().then_some(LOSSY_PROTOBUF)
    }

    fn version(&self, name: &str) -> &DefinitionVersion {
        match api_version(name) {
            ApiVersion::V1Beta1 => &self.v1beta1,
            ApiVersion::V1 => &self.v1,
        }
    }

    fn decode(&self, object: Value, api: ApiVersion) -> Result<Definition, String> {
        let decoded = Definition::decode(object, api, self.gates).map_err(|e| e.to_string())?;
        Ok(decoded.definition)
    }
}

impl KindCodec for Definitions {
    fn read(&self, _kind: &Kind, version: &Version, stored: Value) -> ApiResult<Value> {
        let written_as = ApiVersion::of_document(&stored);
        let definition = self
            .decode(stored, written_as)
            .map_err(|e| ApiError::internal_error("a stored definition cannot be read").private(e))?;
        Ok(definition.into_document(api_version(&version.name)))
    }

    fn store(&self, _kind: &Kind, version: &Version, object: Value) -> ApiResult<Value> {
        // Admission normalized the document already.
        if version.storage {
            return Ok(object);
        }
        let decoded = self.decode(object, api_version(&version.name));
        let definition = decoded.map_err(|why| {
            tracing::error!(error = why, "a definition that was accepted cannot be decoded");
            ApiError::internal_error(why)
        })?;
        Ok(definition.into_document(ApiVersion::V1))
    }

    fn decode_text(&self, version: &Version, text: &[u8]) -> Option<Result<DecodedBody, String>> {
        let api = api_version(&version.name);
        let decoded = Definition::decode_text(text, api, self.gates).map(|decoded| DecodedBody {
            object: decoded.definition.into_held_document(api),
            found: decoded.findings,
        });
        Some(decoded.map_err(|e| e.to_string()))
    }

    fn convert(&self, version: &Version, object: &mut Value) -> Result<FindingList, String> {
        Definition::convert(object, api_version(&version.name), self.gates).map_err(|e| e.to_string())
    }

    fn in_version(&self, _kind: &Kind, object: Value, wanted: &str) -> Result<Value, String> {
        let wanted = api_version(group_version(wanted).1);
        // The common case costs no decoding of large schemas.
        if ApiVersion::of_document(&object) == wanted {
            return Ok(object);
        }
        Definition::document_in(object, wanted, self.gates).map_err(|e| e.to_string())
    }

    fn managed_form(&self, version: &Version, object: &Value) -> Option<Value> {
        Definition::to_version(object, api_version(&version.name))
    }

    fn empty_object(&self, version: &Version) -> Option<Value> {
        Some(Definition::default().into_document(api_version(&version.name)))
    }

    fn bookmark_object(&self, version: &Version) -> Option<Value> {
        let api = api_version(&version.name);
        let definition = self.decode(Map::new().into(), api).ok()?;
        let mut bookmark = definition.into_document(api);
        // Bookmarks have no defaults.
        let spec = bookmark.as_object_mut()?.get_mut("spec")?;
        spec.as_object_mut()?.remove("conversion");
        Some(bookmark)
    }

    fn object_type(&self, version: &str) -> Option<&ObjectType> {
        Some(self.version(version).model.object_type())
    }

    fn strategic_schema(&self, _version: &Version) -> Option<&Structural> {
        Some(self.v1.model.strategic())
    }
}

impl KindRules for Definitions {
    fn resource(&self, version: &Version) -> Result<AnyResource<'_>, String> {
        Ok((&self.version(&version.name).resource).into())
    }

    fn weight(&self, _version: &Version) -> u32 {
        // A few bytes of a schema or a rule may take long to check.
        u32::MAX
    }

    fn check_selectable(&self, _kind: &Kind, _version: &Version, field: &str) -> Result<(), String> {
        builtin::check_selectable(field, &builtin::NAMES)
    }

    fn mark_deleted(&self, stored: Value, now: &str) -> Result<Option<Value>, String> {
        let written_as = ApiVersion::of_document(&stored);
        let mut definition = self.decode(stored, written_as)?;
        definition.metadata.insert("deletionTimestamp", now.into());
        let finalizers = definition
            .metadata
            .get_or_insert_with("finalizers", || Value::Array(Vec::new()));
        let cleanup = Value::from(crate::controllers::crd::CLEANUP);
        if let Some(list) = finalizers.as_array_mut()
            // Another server, or an earlier deletion, may have added the finalizer.
            && !list.contains(&cleanup)
        {
            list.push(cleanup);
        }
        let condition = crate::controllers::crd::terminating(
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        );
        definition.set_condition(condition, now);
        Ok(Some(definition.into_document(ApiVersion::V1)))
    }
}
