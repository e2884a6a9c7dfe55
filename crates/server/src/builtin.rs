//! The core kinds that clients cannot do without.

use crate::discovery::api_version;
use crate::kind::{Kind, Version};
use crate::openapi::models;
use crate::review::Question;
use crate::status::{ApiError, ApiResult};
use crate::strategy::Strategy;
use crate::table::{Columns, core};
use scantling_admit::{FieldValidation, Operation, Outcome, Refusal, Stats};
use scantling_cel::data::names;
use scantling_merge::typed::ObjectType;
use scantling_schema::core::CoreKind;
use scantling_schema::meta::{self, NameRule, Scope};
use scantling_schema::publish::Format;
use scantling_schema::structural::Structural;
use scantling_value::{FieldError, Map, Path, Value};
use std::sync::{Arc, OnceLock};

/// The groups whose kinds are built in, in the order in which servers list them.
pub(crate) const GROUPS: [&str; 4] = ["", AUTHENTICATION, AUTHORIZATION, crate::definitions::GROUP];

/// The place of a group among all; those that definitions make stand last.
pub(crate) fn rank(group: &str) -> usize {
    let place = GROUPS.iter().position(|g| *g == group);
    place.unwrap_or(GROUPS.len())
}

/// Whether the kinds of a group are built in.
pub(crate) fn has_group(group: &str) -> bool {
    GROUPS.contains(&group)
}

/// The group of reviews of who asks.
pub(crate) const AUTHENTICATION: &str = "authentication.k8s.io";

/// The group of reviews of what one may do.
pub(crate) const AUTHORIZATION: &str = "authorization.k8s.io";

/// Whether a group and version has kinds that are built in.
pub(crate) fn serves(group: &str, version: &str) -> bool {
    match group {
        "" | AUTHENTICATION | AUTHORIZATION => version == "v1",
        crate::definitions::GROUP => matches!(version, "v1" | "v1beta1"),
        _ => false,
    }
}

/// The kinds that are there before any definition.
pub(crate) fn kinds(compiler: &crate::definitions::Compiler) -> Vec<Kind> {
    let version = |name: &str, storage: bool, status: bool, columns: Columns| Version {
        name: name.to_owned(),
        served: true,
        storage,
        deprecation: None,
        status,
        scale: None,
        finalize: false,
        columns,
        selectable: Vec::new(),
    };
    let kind = |group: &str,
                plural: &str,
                singular: &str,
                kind: &str,
                short: &[&str],
                namespaced,
                versions,
                strategy,
                question| Kind {
        group: group.to_owned(),
        plural: plural.to_owned(),
        singular: singular.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        short_names: short.iter().map(|s| (*s).to_owned()).collect(),
        categories: if group == crate::definitions::GROUP {
            vec!["api-extensions".to_owned()]
        } else {
            Vec::new()
        },
        namespaced,
        versions,
        strategy,
        terminating: false,
        question,
        servable: true,
        built_in: true,
        mark: env!("CARGO_PKG_VERSION").to_owned(),
        serial: crate::text::next_serial(),
        end: crate::kind::End::default(),
    };
    let strategy = |kind, group, name| -> Arc<dyn Strategy> {
        let model = Model::new(group, "v1", name);
        Arc::new(Core { kind, model })
    };
    let review = |group, plural: &str, name, core, question| {
        kind(
            group,
            plural,
            plural.trim_end_matches('s'),
            name,
            &[],
            false,
            vec![version("v1", true, false, Columns::new(&[]))],
            strategy(core, group, name),
            Some(question),
        )
    };
    let definitions: Arc<dyn Strategy> = Arc::new(crate::definitions::Definitions::new(compiler.clone()));
    let namespace = vec![Version {
        finalize: true,
        ..version("v1", true, true, core::namespaces())
    }];
    let events = vec![version("v1", true, false, core::events())];
    let both = vec![
        version("v1", true, true, core::definitions()),
        version("v1beta1", false, true, core::definitions()),
    ];
    vec![
        kind(
            "",
            "namespaces",
            "namespace",
            "Namespace",
            &["ns"],
            false,
            namespace,
            strategy(CoreKind::Namespace, "", "Namespace"),
            None,
        ),
        kind(
            "",
            "events",
            "event",
            "Event",
            &["ev"],
            true,
            events,
            strategy(CoreKind::Event, "", "Event"),
            None,
        ),
        kind(
            crate::definitions::GROUP,
            crate::definitions::PLURAL,
            "customresourcedefinition",
            "CustomResourceDefinition",
            &["crd", "crds"],
            false,
            both,
            definitions,
            None,
        ),
        review(
            AUTHORIZATION,
            "selfsubjectaccessreviews",
            "SelfSubjectAccessReview",
            CoreKind::AccessReview,
            Question::Access,
        ),
        review(
            AUTHORIZATION,
            "selfsubjectrulesreviews",
            "SelfSubjectRulesReview",
            CoreKind::RulesReview,
            Question::Rules,
        ),
        review(
            AUTHENTICATION,
            "selfsubjectreviews",
            "SelfSubjectReview",
            CoreKind::SelfReview,
            Question::User,
        ),
    ]
}

/// Whether a built-in kind has this selectable field.
pub(crate) fn selectable(field: &str, known: &[&str]) -> Result<(), String> {
    if known.contains(&field) {
        return Ok(());
    }
    Err(format!("field label not supported: {field}"))
}

/// What becomes of unknown and duplicate fields: a refusal, warnings, or nothing.
pub(crate) fn settle_findings(
    found: &[String],
    unknown: Vec<String>,
    mode: FieldValidation,
) -> Result<Vec<String>, Refusal> {
    // What is unknown is passed over as a whole: nobody sees what stands twice in it.
    let mut found: Vec<String> = found
        .iter()
        .filter(|finding| !unknown.iter().any(|unknown| is_within(finding, unknown)))
        .cloned()
        .collect();
    found.extend(unknown);
    match mode {
        FieldValidation::Strict if !found.is_empty() => Err(Refusal::Strict(found)),
        FieldValidation::Ignore => Ok(Vec::new()),
        _ => Ok(found),
    }
}

/// Whether a field that stands twice is one that is unknown, or stands in it.
fn is_within(finding: &str, unknown: &str) -> bool {
    let twice = finding.strip_prefix("duplicate field \"");
    let rest = unknown
        .strip_prefix("unknown field \"")
        .and_then(|unknown| twice?.strip_prefix(unknown.strip_suffix('"')?));
    rest.is_some_and(|rest| rest == "\"" || rest.starts_with(['.', '[']))
}

/// How objects of a version of a built-in kind merge: by its published schema, read when the first patch comes along.
#[derive(Debug)]
pub(crate) struct Model {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    read: OnceLock<(Arc<Structural>, ObjectType)>,
}

impl Model {
    /// The model of a version of a kind.
    pub(crate) fn new(group: &'static str, version: &'static str, kind: &'static str) -> Model {
        let read = OnceLock::new();
        Model {
            group,
            version,
            kind,
            read,
        }
    }

    fn read(&self) -> &(Arc<Structural>, ObjectType) {
        self.read.get_or_init(|| {
            let schema = models::structural(self.group, self.version, self.kind);
            (Arc::clone(&schema), ObjectType::new(schema))
        })
    }

    /// The schema by which strategic merge patches merge.
    pub(crate) fn strategic(&self) -> &Structural {
        &self.read().0
    }

    /// The type by which fields are owned.
    pub(crate) fn object_type(&self) -> &ObjectType {
        &self.read().1
    }
}

/// A core kind.
#[derive(Debug)]
struct Core {
    kind: CoreKind,
    model: Model,
}

/// What of an object a write is about.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    New,
    Whole,
    Status,
    Finalizers,
}

impl Part {
    /// What stays as it was of a namespace: its status and what holds it have endpoints of their own.
    fn kept(self) -> &'static [&'static str] {
        match self {
            Part::New => &[],
            Part::Whole => &["spec", "status"],
            Part::Status => &["spec"],
            Part::Finalizers => &["status"],
        }
    }
}

impl Core {
    /// What is wrong with an object beside its metadata.
    fn check(&self, part: Part, object: &Map, metadata: &Map) -> Vec<FieldError> {
        match self.kind {
            CoreKind::Namespace => check_namespace(part, object, metadata),
            CoreKind::Event => check_event(object, metadata),
            _ => Vec::new(),
        }
    }

    fn judged(&self, part: Part, operation: Operation<'_>, object: Value) -> Outcome {
        let mut outcome = Outcome {
            object,
            refusal: None,
            warnings: Vec::new(),
            stats: Stats::default(),
        };
        outcome.refusal = self.judge(part, operation, &mut outcome).err();
        outcome
    }

    fn judge(&self, part: Part, operation: Operation<'_>, outcome: &mut Outcome) -> Result<(), Refusal> {
        let mut object = match std::mem::take(&mut outcome.object) {
            Value::Object(m) => m,
            _ => Map::new(),
        };
        let root = Path::ROOT;
        let at = root.field("metadata");
        let scope = if self.kind == CoreKind::Namespace {
            Scope::Cluster
        } else {
            Scope::Namespaced
        };
        let mut metadata = match object.remove("metadata") {
            Some(Value::Object(m)) => m,
            _ => Map::new(),
        };
        let errors = match operation {
            Operation::Create(identity) => {
                for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
                    metadata.remove(field);
                }
                metadata.insert("uid", Value::from(identity.uid.clone()));
                metadata.insert("creationTimestamp", Value::from(identity.created.clone()));
                if metadata.get("name").is_none()
                    && let Some(prefix) = metadata.get("generateName").and_then(Value::as_str)
                {
                    let name = format!("{prefix}{}", identity.suffix);
                    metadata.insert("name", name.into());
                }
                if self.kind == CoreKind::Namespace {
                    new_namespace(&mut object, &mut metadata);
                }
                let names = match self.kind {
                    CoreKind::Namespace => NameRule::Label,
                    _ => NameRule::PathSegment,
                };
                let mut errors = meta::check_new(Some(&Value::Object(metadata.clone())), scope, names, &at);
                errors.extend(self.check(part, &object, &metadata));
                errors
            }
            Operation::Update(old) | Operation::UpdateStatus(old) => {
                let before = old
                    .get("metadata")
                    .and_then(Value::as_object)
                    .cloned()
                    .unwrap_or_default();
                for field in [
                    "creationTimestamp",
                    "deletionTimestamp",
                    "uid",
                    "deletionGracePeriodSeconds",
                    "generation",
                ] {
                    // A uid that is asked for stays, to be compared.
                    let asked = field == "uid" && metadata.get(field).is_some();
                    if let Some(v) = before.get(field).filter(|_| !asked) {
                        metadata.insert(field, v.clone());
                    }
                }
                if self.kind == CoreKind::Namespace {
                    for field in part.kept() {
                        match old.get(field) {
                            Some(v) => object.insert(*field, v.clone()),
                            None => object.remove(field),
                        };
                    }
                }
                if let Some(version) = before.get("resourceVersion") {
                    metadata.get_or_insert_with("resourceVersion", || version.clone());
                }
                let (a, b) = (Value::Object(metadata.clone()), Value::Object(before));
                let mut errors = meta::check_update(Some(&a), Some(&b), &at);
                errors.extend(self.check(part, &object, &metadata));
                errors
            }
        };
        object.insert("metadata", metadata.into());
        outcome.object = object.into();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Refusal::Invalid(errors))
        }
    }
}

/// What is wrong with a namespace, beyond what is asked of all metadata.
fn check_namespace(part: Part, object: &Map, metadata: &Map) -> Vec<FieldError> {
    let root = Path::ROOT;
    let meta = root.field("metadata");
    let mut errors: Vec<FieldError> = crate::delete::finalizers_in(Some(metadata))
        .iter()
        .enumerate()
        .filter_map(|(i, f)| unqualified(f, &meta.field("finalizers").index(i)))
        .collect();
    let spec = root.field("spec");
    let at = spec.field("finalizers");
    let finalizers = crate::namespaces::finalizers(object.get("spec"));
    let mut check = |finalizer: &str, at: &Path<'_>| {
        let malformed = names::label_key(finalizer).into_iter();
        errors.extend(malformed.map(|why| FieldError::invalid(at, finalizer, why)));
        errors.extend(unqualified(finalizer, at));
    };
    match part {
        Part::New => finalizers.iter().for_each(|f| check(f, &at)),
        Part::Finalizers => {
            let indexed = finalizers.iter().enumerate();
            indexed.for_each(|(i, f)| check(f, &at.index(i)));
        }
        Part::Whole | Part::Status => {}
    }
    if part == Part::Status {
        let phase = object.get("status").and_then(|s| s.get("phase")?.as_str());
        let (only, when) = match metadata.get("deletionTimestamp") {
            None => ("Active", "is empty"),
            Some(_) => ("Terminating", "is not empty"),
        };
        if let Some(found) = phase.filter(|phase| !phase.is_empty() && *phase != only) {
            let why = format!("may only be '{only}' if `deletionTimestamp` {when}");
            let status = root.field("status");
            errors.push(FieldError::invalid(&status.field("Phase"), found, why));
        }
    }
    errors
}

/// A finalizer that belongs to nobody: neither one of those that every server knows nor one with a domain.
fn unqualified(finalizer: &str, at: &Path<'_>) -> Option<FieldError> {
    let known = matches!(finalizer, KUBERNETES | "orphan" | "foregroundDeletion");
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    (!known && !finalizer.contains('/')).then(|| FieldError::invalid(at, finalizer, why))
}

/// What is wrong with an event beside its metadata. Those that say when they happened to the microsecond are of the new
/// style, of which more is asked.
fn check_event(event: &Map, metadata: &Map) -> Vec<FieldError> {
    let of = |v: Option<&Value>| v.and_then(Value::as_str).unwrap_or_default().to_owned();
    let field = |name: &str| of(event.get(name));
    let involved = of(event.get("involvedObject").and_then(|o| o.get("namespace")));
    let own = of(metadata.get("namespace"));
    let is_new = !field("eventTime").is_empty();
    let fits = match involved.is_empty() {
        true => own == "default" || (is_new && own == "kube-system"),
        false => is_new || involved == own,
    };
    let root = Path::ROOT;
    let mut errors = Vec::new();
    if !fits {
        let at = root.field("involvedObject");
        let why = "does not match event.namespace";
        errors.push(FieldError::invalid(
            &at.field("namespace"),
            involved.as_str(),
            why,
        ));
    }
    if !is_new {
        return errors;
    }
    let (at, component) = (root.field("reportingComponent"), field("reportingComponent"));
    if component.is_empty() {
        errors.push(FieldError::required(&at, ""));
    }
    let wrong = names::label_key(&component).into_iter();
    errors.extend(wrong.map(|why| FieldError::invalid(&at, component.as_str(), why)));
    for (name, most) in [
        ("reportingInstance", 128),
        ("action", 128),
        ("reason", 128),
        ("message", 1024),
    ] {
        let (at, text) = (root.field(name), field(name));
        if text.is_empty() && name != "message" {
            errors.push(FieldError::required(&at, ""));
        }
        if text.len() > most {
            let why = format!("can have at most {most} characters");
            errors.push(FieldError::invalid(&at, "", why));
        }
    }
    errors
}

/// The finalizer that every namespace has.
const KUBERNETES: &str = "kubernetes";

fn new_namespace(object: &mut Map, metadata: &mut Map) {
    let mut finalizers = crate::namespaces::finalizers(object.get("spec"));
    if !finalizers.iter().any(|f| f == KUBERNETES) {
        finalizers.push(KUBERNETES.to_owned());
    }
    let spec = Map::from_iter([("finalizers", Value::from(finalizers))]);
    object.insert("spec", spec.into());
    object.insert(
        "status",
        Map::from_iter([("phase", Value::from("Active"))]).into(),
    );
    label_with_name(metadata);
}

/// Every namespace that has a name has it as a label, too.
fn label_with_name(metadata: &mut Map) {
    let Some(name @ Value::String(_)) = metadata.get("name").cloned() else {
        return;
    };
    if !matches!(metadata.get("labels"), Some(Value::Object(_))) {
        metadata.insert("labels", Map::new().into());
    }
    if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
        labels.insert("kubernetes.io/metadata.name", name);
    }
}

impl Strategy for Core {
    fn read(&self, _kind: &Kind, _version: &Version, stored: Value) -> ApiResult<Value> {
        // Another server may have written it, in a form that leaves out what is empty.
        let decoded = self
            .kind
            .decode(stored)
            .map_err(|e| ApiError::internal_error("a stored object cannot be read").private(e.to_string()))?;
        Ok(decoded.members.into())
    }

    fn store(&self, _kind: &Kind, _version: &Version, object: Value) -> Value {
        object
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
        if self.kind == CoreKind::Namespace
            && let Some(metadata) = object.as_object_mut().and_then(|m| m.get_mut("metadata"))
            && let Some(metadata) = metadata.as_object_mut()
        {
            label_with_name(metadata);
        }
        let unknown = decoded
            .unknown
            .iter()
            .map(|p| format!("unknown field \"{p}\""))
            .collect();
        settle_findings(found, unknown, mode)
    }

    fn decide(&self, _version: &Version, operation: Operation<'_>, object: Value) -> Outcome {
        let part = match operation {
            Operation::Create(_) => Part::New,
            Operation::Update(_) => Part::Whole,
            Operation::UpdateStatus(_) => Part::Status,
        };
        self.judged(part, operation, object)
    }

    fn finalize(&self, old: &Value, object: Value) -> Outcome {
        self.judged(Part::Finalizers, Operation::Update(old), object)
    }

    fn kept_by_status(&self) -> &'static [&'static str] {
        Part::Status.kept()
    }

    fn object_type(&self, _version: &str) -> Option<&ObjectType> {
        Some(self.model.object_type())
    }

    fn blank(&self, version: &Version) -> Option<Value> {
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

    fn convert(&self, _kind: &Kind, _version: &str, object: Value) -> Value {
        object
    }

    fn published(&self, kind: &Kind, version: &Version, _format: Format) -> Value {
        models::published(&kind.group, &version.name, &kind.kind)
    }

    fn selectable(&self, _kind: &Kind, _version: &Version, field: &str) -> Result<(), String> {
        match self.kind {
            CoreKind::Namespace => selectable(field, &["metadata.name", "status.phase"]),
            CoreKind::Event => selectable(
                field,
                &[
                    "metadata.name",
                    "metadata.namespace",
                    "involvedObject.kind",
                    "involvedObject.namespace",
                    "involvedObject.name",
                    "involvedObject.uid",
                    "involvedObject.apiVersion",
                    "involvedObject.resourceVersion",
                    "involvedObject.fieldPath",
                    "reason",
                    "reportingComponent",
                    "source",
                    "type",
                ],
            ),
            _ => selectable(field, &[]),
        }
    }

    fn unconditional_update(&self) -> bool {
        true
    }

    fn creates_on_update(&self) -> bool {
        self.kind == CoreKind::Event
    }

    fn field(&self, object: &Value, field: &str) -> String {
        let field = match (self.kind, field) {
            (CoreKind::Event, "source") => "source.component",
            (_, field) => field,
        };
        let found = object.at(field.split('.')).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    }

    fn strategic_schema(&self) -> Option<&Structural> {
        Some(self.model.strategic())
    }

    fn mark(&self, mut stored: Value, now: &str) -> Option<Value> {
        if self.kind != CoreKind::Namespace {
            return None;
        }
        crate::write::metadata_mut(&mut stored)?.insert("deletionTimestamp", now.into());
        let status = stored
            .as_object_mut()?
            .get_or_insert_with("status", || Map::new().into());
        status.as_object_mut()?.insert("phase", "Terminating".into());
        Some(stored)
    }

    fn precondition_failed(&self) -> Option<&'static str> {
        (self.kind == CoreKind::Namespace).then_some("Precondition failed")
    }

    fn protects(&self, name: &str) -> Option<&'static str> {
        let protected =
            self.kind == CoreKind::Namespace && matches!(name, "default" | "kube-system" | "kube-public");
        protected.then_some("this namespace may not be deleted")
    }

    fn is_held(&self, object: &Value) -> bool {
        self.kind == CoreKind::Namespace && !crate::namespaces::finalizers(object.get("spec")).is_empty()
    }

    fn deletes_collections(&self) -> bool {
        self.kind != CoreKind::Namespace
    }
}
