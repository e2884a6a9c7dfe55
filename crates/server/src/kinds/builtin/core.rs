//! How objects of the core kinds are read, decided and deleted.

use super::{
    Model, config_map, event, findings, keep_system_fields, lease, namespace, report_joined_findings, secret,
    selectable,
};
use crate::discovery::api_version;
use crate::kinds::kind::{Kind, Version};
use crate::kinds::strategy::Strategy;
use crate::rest::body::DecodedBody;
use crate::rest::write::metadata_mut;
use crate::status::{ApiError, ApiResult};
use scantling_admit::{FieldValidation, Identity, Operation, Outcome, Refusal, Stats};
use scantling_merge::typed::ObjectType;
use scantling_schema::core::CoreKind;
use scantling_schema::meta::{self, NameRule, Scope};
use scantling_schema::structural::Structural;
use scantling_value::{ErrorList, Map, Path, Value};
use std::collections::BTreeSet;

/// A core kind.
#[derive(Debug)]
pub(super) struct Core {
    kind: CoreKind,
    model: Model,
}

/// What the objects of a core kind have to be like.
pub(super) struct RestStrategy {
    pub(super) scope: Scope,
    pub(super) names: NameRule,
    /// The fields that selectors may use.
    pub(super) selectable: &'static [&'static str],
    /// Whether finalizers have to be known ones, or to name whose they are.
    pub(super) qualifies_finalizers: bool,
    /// Whether an update makes an object that is not there.
    pub(super) creates_on_update: bool,
    /// Whether an update may come without a resource version.
    pub(super) unconditional_update: bool,
    /// Whether a server keeps the objects in memory, and reads them there.
    pub(super) kept_in_memory: bool,
    /// Completes what was sent or made with what it leaves to be understood.
    pub(super) complete: fn(&mut Value),
    /// Takes from a new state what clients may not set; what is stored comes along, if anything is.
    pub(super) prepare: fn(&mut Map, Option<&Value>),
    /// What is wrong with an object, beyond what is asked of all metadata.
    pub(super) check: fn(&ValidationContext<'_>) -> ErrorList,
    /// What is odd about an object that nothing is wrong with.
    pub(super) warn: fn(&Map) -> Vec<String>,
}

/// An object that is to be ctx.
pub(super) struct ValidationContext<'a> {
    pub(super) part: WritePart,
    /// All but its metadata.
    pub(super) object: &'a Map,
    pub(super) metadata: &'a Map,
    /// What is stored, if anything is.
    pub(super) old: Option<&'a Value>,
}

/// Reviews are not stored: nothing is asked of them.
static OF_REVIEWS: RestStrategy = RestStrategy {
    scope: Scope::Cluster,
    names: NameRule::PathSegment,
    selectable: &[],
    qualifies_finalizers: false,
    creates_on_update: false,
    unconditional_update: true,
    kept_in_memory: true,
    complete: |_| {},
    prepare: |_, _| {},
    check: |_| ErrorList::new(),
    warn: |_| Vec::new(),
};

/// What of an object a write is about.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum WritePart {
    New,
    Whole,
    Status,
    Finalizers,
}

impl WritePart {
    /// Whether the write is to the object itself, not to one of its endpoints.
    fn is_whole(self) -> bool {
        matches!(self, WritePart::New | WritePart::Whole)
    }

    /// What stays as it was of a namespace: its status and what holds it have endpoints of their own.
    fn kept(self) -> &'static [&'static str] {
        match self {
            WritePart::New => &[],
            WritePart::Whole => &["spec", "status"],
            WritePart::Status => &["spec"],
            WritePart::Finalizers => &["status"],
        }
    }
}

impl Core {
    /// The kind of that group and name.
    pub(super) fn new(kind: CoreKind, group: &'static str, name: &'static str) -> Core {
        let model = Model::new(group, "v1", name);
        Core { kind, model }
    }

    fn strategy(&self) -> &'static RestStrategy {
        match self.kind {
            CoreKind::Namespace => &namespace::PARTICULARS,
            CoreKind::Event => &event::PARTICULARS,
            CoreKind::NewEvent => &event::NEW_PARTICULARS,
            CoreKind::Lease => &lease::PARTICULARS,
            CoreKind::Secret => &secret::PARTICULARS,
            CoreKind::ConfigMap => &config_map::PARTICULARS,
            _ => &OF_REVIEWS,
        }
    }

    fn is_namespace(&self) -> bool {
        self.kind == CoreKind::Namespace
    }

    fn is_event(&self) -> bool {
        matches!(self.kind, CoreKind::Event | CoreKind::NewEvent)
    }

    /// In which form objects are that name the kind otherwise, by another group or a version that was served once.
    fn form(&self, api_version: &str) -> Option<CoreKind> {
        match (self.kind, api_version) {
            (CoreKind::Event | CoreKind::NewEvent, "v1") => Some(CoreKind::Event),
            (CoreKind::Event | CoreKind::NewEvent, "events.k8s.io/v1" | "events.k8s.io/v1beta1") => {
                Some(CoreKind::NewEvent)
            }
            (CoreKind::Lease, "coordination.k8s.io/v1beta1") => Some(CoreKind::Lease),
            _ => None,
        }
    }

    fn judge(&self, part: WritePart, operation: Operation<'_>, object: Value) -> Outcome {
        let (mut object, mut metadata) = match parts(object) {
            Ok(parts) => parts,
            Err(object) => {
                let why = format!(
                    "a {} without members or metadata that are an object",
                    self.model.kind
                );
                return Outcome {
                    object,
                    refusal: Some(Refusal::Internal(why)),
                    warnings: Vec::new(),
                    stats: Stats::default(),
                };
            }
        };
        let strategy = self.strategy();
        let old = match operation {
            Operation::Create(_) => None,
            Operation::Update(old) | Operation::UpdateStatus(old) => Some(old),
        };
        (strategy.prepare)(&mut object, old);
        let mut errors = match operation {
            Operation::Create(identity) => self.create(identity, &mut object, &mut metadata),
            Operation::Update(old) | Operation::UpdateStatus(old) => {
                self.update(part, old, &mut object, &mut metadata)
            }
        };
        let particular = (strategy.check)(&ValidationContext {
            part,
            object: &object,
            metadata: &metadata,
            old,
        });
        if part == WritePart::New && strategy.names == NameRule::PathSegment && !particular.is_empty() {
            // Where there is no rule for names but the one that all kinds share, new metadata are looked at once the
            // rest is right.
            errors = ErrorList::new();
        }
        if strategy.qualifies_finalizers {
            errors.extend(unqualified_finalizers(&metadata));
        }
        errors.extend(particular);
        let errors = once(errors);
        let warnings = match errors.is_empty() {
            true => (strategy.warn)(&object),
            false => Vec::new(),
        };
        object.insert("metadata", metadata.into());
        Outcome {
            object: object.into(),
            refusal: (!errors.is_empty()).then_some(Refusal::Invalid(errors)),
            warnings,
            stats: Stats::default(),
        }
    }

    /// Completes a new object; returns what is wrong with its metadata.
    fn create(&self, identity: &Identity, object: &mut Map, metadata: &mut Map) -> ErrorList {
        identity.mark(metadata);
        if self.is_namespace() {
            namespace::complete(object, metadata);
        }
        let RestStrategy { scope, names, .. } = *self.strategy();
        let at = Path::ROOT.field("metadata");
        meta::check_new(Some(&Value::Object(metadata.clone())), scope, names, &at)
    }

    /// Puts what a write may not change back as it was; returns what is wrong with the metadata.
    fn update(&self, part: WritePart, old: &Value, object: &mut Map, metadata: &mut Map) -> ErrorList {
        let before = old
            .get("metadata")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        keep_system_fields(metadata, &before);
        keep(metadata, &before, "generation");
        if let Some(version) = before.get("resourceVersion") {
            metadata.get_or_insert_with("resourceVersion", || version.clone());
        }
        if self.is_namespace()
            && let Some(old) = old.as_object()
        {
            for field in part.kept() {
                keep(object, old, field);
            }
        }
        let (new, old) = (Value::Object(metadata.clone()), Value::Object(before));
        let at = Path::ROOT.field("metadata");
        let RestStrategy { scope, names, .. } = *self.strategy();
        let mut errors = meta::check_common(Some(&new), scope, &at);
        if part.is_whole() {
            errors.extend(meta::check_new(Some(&new), scope, names, &at));
        }
        errors.extend(meta::check_update(Some(&new), Some(&old), &at));
        errors
    }
}

/// Errors that several checks find are told once.
fn once(mut errors: ErrorList) -> ErrorList {
    let mut told = BTreeSet::new();
    errors.retain(|error| told.insert(error.to_string()));
    errors
}

/// The finalizers of an object that belong to nobody.
pub(super) fn unqualified_finalizers(metadata: &Map) -> ErrorList {
    let metadata_at = Path::ROOT.field("metadata");
    let at = metadata_at.field("finalizers");
    let finalizers = crate::rest::delete::finalizers_in(Some(metadata));
    let indexed = finalizers.iter().enumerate();
    indexed
        .filter_map(|(i, finalizer)| namespace::unqualified(finalizer, &at.index(i)))
        .collect()
}

/// Leaves a field as it was, be it that there was none.
fn keep(object: &mut Map, old: &Map, field: &str) {
    match old.get(field) {
        Some(value) => object.insert(field, value.clone()),
        None => object.remove(field),
    };
}

impl Strategy for Core {
    fn read(&self, _kind: &Kind, _version: &Version, stored: Value) -> ApiResult<Value> {
        // Another server may have ctx it, in a form that leaves out what is empty.
        let decoded = match self.is_event() {
            true => event::convert(stored, self.kind),
            false => self.kind.decode(stored).map(|decoded| decoded.members.into()),
        };
        decoded.map_err(|e| ApiError::internal_error("a stored object cannot be read").private(e.to_string()))
    }

    fn store(&self, _kind: &Kind, version: &Version, object: Value) -> ApiResult<Value> {
        Ok(match version.storage {
            true => object,
            false => event::stored(object),
        })
    }

    fn receive(
        &self,
        _version: &Version,
        object: &mut Value,
        found: &[String],
        mode: FieldValidation,
    ) -> Result<Vec<String>, Refusal> {
        let decoded = self
            .kind
            .decode(std::mem::take(object))
            .map_err(|e| Refusal::Undecodable(e.to_string()))?;
        *object = decoded.members.into();
        (self.strategy().complete)(object);
        report_joined_findings(found, findings(&decoded.findings), mode)
    }

    fn convert(&self, _version: &Version, object: &mut Value) -> Result<Vec<String>, String> {
        let unknown = self.kind.convert(object).map_err(|e| e.to_string())?;
        Ok(findings(&unknown))
    }

    fn read_text(&self, _version: &Version, text: &[u8]) -> Option<Result<DecodedBody, String>> {
        let sent = self.kind.decode_text(text).map(|decoded| DecodedBody {
            object: decoded.members.into(),
            found: findings(&decoded.findings),
        });
        Some(sent.map_err(|e| e.to_string()))
    }

    fn decide(&self, _version: &Version, operation: Operation<'_>, object: Value) -> Outcome {
        let part = match operation {
            Operation::Create(_) => WritePart::New,
            Operation::Update(_) => WritePart::Whole,
            Operation::UpdateStatus(_) => WritePart::Status,
        };
        self.judge(part, operation, object)
    }

    fn finalize(&self, old: &Value, object: Value) -> Outcome {
        self.judge(WritePart::Finalizers, Operation::Update(old), object)
    }

    fn kept_by_status(&self) -> &'static [&'static str] {
        WritePart::Status.kept()
    }

    fn object_type(&self, _version: &str) -> Option<&ObjectType> {
        Some(self.model.object_type())
    }

    fn is_also(&self, api_version: &str) -> bool {
        self.form(api_version).is_some()
    }

    fn of_other(&self, api_version: &str, object: Value) -> Result<DecodedBody, String> {
        let form = self.form(api_version).unwrap_or(self.kind);
        let read = form.decode(object).and_then(|decoded| {
            let object = decoded.members.into();
            Ok(DecodedBody {
                object: match self.is_event() {
                    true => event::convert(object, self.kind)?,
                    false => object,
                },
                found: findings(&decoded.findings),
            })
        });
        read.map_err(|e| e.to_string())
    }

    fn empty_object(&self, version: &Version) -> Option<Value> {
        let members = [
            (
                "apiVersion",
                Value::from(api_version(self.model.group, &version.name)),
            ),
            ("kind", self.model.kind.into()),
        ];
        let blank = self.kind.decode(Value::Object(members.into_iter().collect()));
        blank.ok().map(|blank| blank.members.into())
    }

    fn selectable(&self, _kind: &Kind, _version: &Version, field: &str) -> Result<(), String> {
        selectable(field, self.strategy().selectable)
    }

    fn unconditional_update(&self) -> bool {
        self.strategy().unconditional_update
    }

    fn is_kept_in_memory(&self) -> bool {
        self.strategy().kept_in_memory
    }

    fn creates_on_update(&self) -> bool {
        self.strategy().creates_on_update
    }

    fn field(&self, object: &Value, field: &str) -> String {
        let text = |field: &str| object.at(field.split('.')).and_then(Value::as_str);
        let found = match (self.kind, field) {
            // The source of events of the new style is who reports them.
            (CoreKind::Event, "source") => text("source.component").or_else(|| text("reportingComponent")),
            (_, field) => text(field),
        };
        found.unwrap_or_default().to_owned()
    }

    fn strategic_schema(&self) -> Option<&Structural> {
        Some(self.model.strategic())
    }

    fn mark(&self, stored: Value, now: &str) -> Result<Option<Value>, String> {
        if !self.is_namespace() {
            return Ok(None);
        }
        mark_namespace(stored, now)
            .map(Some)
            .ok_or_else(|| "the metadata or the status of the namespace is not an object".to_owned())
    }

    fn precondition_failed(&self) -> Option<&'static str> {
        self.is_namespace().then_some("Precondition failed")
    }

    fn protects(&self, name: &str) -> Option<&'static str> {
        let protected = self.is_namespace() && matches!(name, "default" | "kube-system" | "kube-public");
        protected.then_some("this namespace may not be deleted")
    }

    fn is_held(&self, object: &Value) -> bool {
        self.is_namespace() && !crate::controllers::namespaces::finalizers(object.get("spec")).is_empty()
    }

    fn has_dependents(&self) -> bool {
        !self.is_event()
    }

    fn deletes_collections(&self) -> bool {
        !self.is_namespace()
    }
}

/// A stored namespace that is being deleted; none if its metadata or its status is not an object.
fn mark_namespace(mut stored: Value, now: &str) -> Option<Value> {
    metadata_mut(&mut stored)?.insert("deletionTimestamp", now.into());
    let status = stored
        .as_object_mut()?
        .get_or_insert_with("status", || Map::new().into());
    status.as_object_mut()?.insert("phase", "Terminating".into());
    Some(stored)
}

/// The members of an object, and those of its metadata apart; the object itself if either is something else.
fn parts(object: Value) -> Result<(Map, Map), Value> {
    let Value::Object(mut members) = object else {
        return Err(object);
    };
    match members.remove("metadata") {
        None | Some(Value::Null) => Ok((members, Map::new())),
        Some(Value::Object(metadata)) => Ok((members, metadata)),
        Some(other) => {
            members.insert("metadata", other);
            Err(members.into())
        }
    }
}
