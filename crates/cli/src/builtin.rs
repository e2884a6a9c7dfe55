//! Validation of built-in kinds, from the table of API types and the rules of `scantling_builtin`.

use scantling_admit::{AdmissionError, AdmitOutcome, FieldValidation, NewObjectMeta, Stats};
use scantling_apitypes::decode::Finding;
use scantling_apitypes::{ApiResource, Extensions, Release, Scope as ApiScope, TypeDef, TypeTable};
use scantling_builtin::{BuiltinKind, Context, KindFacts, Operation, Subresource, User, Write};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::gates::is_on_by_default;
use scantling_schema::meta::{self, NameRule, Scope};
use scantling_schema::names::group_version;
use scantling_value::{ErrorList, Map, Path, Value};

/// The built-in kinds of a Kubernetes release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuiltinKinds {
    release: Release,
}

/// The result of looking for a built-in kind.
#[derive(Debug)]
pub(crate) enum BuiltinLookup {
    Found(BuiltinMatch),
    /// Other releases have the kind: the text says which.
    OtherRelease(String),
    Unknown,
}

/// A built-in kind in one of its versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuiltinMatch {
    release: Release,
    resource: &'static ApiResource,
    behavior: Option<&'static dyn BuiltinKind>,
}

/// A write of an object of a built-in kind.
pub(crate) struct BuiltinWrite<'a> {
    pub(crate) object: Value,
    /// Duplicate fields of the text.
    pub(crate) found_in_text: &'a [String],
    /// The stored object, on an update.
    pub(crate) old: Option<Value>,
    pub(crate) status: bool,
    pub(crate) field_validation: FieldValidation,
    pub(crate) identity: &'a NewObjectMeta,
}

impl BuiltinKinds {
    /// The kinds of a Kubernetes version; the table begins with 1.33 and ends with 1.37.
    pub(crate) fn new(version: KubernetesVersion) -> Self {
        let minor = u8::try_from(version.minor).unwrap_or(u8::MAX);
        let minor = minor.clamp(Release::OLDEST.minor(), Release::LATEST.minor());
        BuiltinKinds {
            release: Release::new(minor).unwrap_or(Release::LATEST),
        }
    }

    /// Finds a kind.
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> BuiltinLookup {
        if let Some(resource) = resource(self.release, api_version, kind) {
            return BuiltinLookup::Found(BuiltinMatch {
                release: self.release,
                resource,
                behavior: scantling_builtin::kind(resource.group, kind),
            });
        }
        let have: Vec<Release> = releases()
            .filter(|r| resource(*r, api_version, kind).is_some())
            .collect();
        match (have.first(), have.last()) {
            (Some(first), _) if *first > self.release => BuiltinLookup::OtherRelease(format!(
                "the kind exists since Kubernetes {first}; --kubernetes-version is {}",
                self.release
            )),
            (_, Some(last)) => BuiltinLookup::OtherRelease(format!(
                "the kind exists up to Kubernetes {last}; --kubernetes-version is {}",
                self.release
            )),
            _ => BuiltinLookup::Unknown,
        }
    }
}

fn releases() -> impl Iterator<Item = Release> {
    (Release::OLDEST.minor()..=Release::LATEST.minor()).filter_map(Release::new)
}

fn resource(release: Release, api_version: &str, kind: &str) -> Option<&'static ApiResource> {
    let (group, version) = group_version(api_version);
    let mut resources = TypeTable::for_release(release).resources().iter();
    resources.find(|r| r.group == group && r.version == version && r.kind() == kind)
}

/// The version in which rules apply: the newest stable one. Events of both groups are stored in the core group.
fn hub(resource: &ApiResource) -> Option<&'static TypeDef> {
    let table = TypeTable::latest();
    if resource.kind() == "Event" {
        return table.kind("", "v1", "Event");
    }
    let is_stable = |version: &str| !version.contains("alpha") && !version.contains("beta");
    let same = table.resources().iter();
    let same = same.filter(|r| r.group == resource.group && r.kind() == resource.kind());
    let versions = same.map(|r| r.version);
    let newest = versions.clone().filter(|v| is_stable(v)).max().or(versions.max());
    table.kind(resource.group, newest?, resource.kind())
}

impl BuiltinMatch {
    /// Whether objects have a namespace.
    pub(crate) fn scope(&self) -> Scope {
        match self.resource.scope() {
            ApiScope::Namespaced => Scope::Namespaced,
            ApiScope::Cluster => Scope::Cluster,
        }
    }

    /// The title for the details of a result.
    pub(crate) fn title(&self) -> String {
        format!("built-in kind of Kubernetes {}", self.release)
    }

    /// Returns the releases that have a field which this one does not: `since Kubernetes 1.36`.
    pub(crate) fn field_exists(&self, object: &Value, finding: &str) -> Option<String> {
        let lacks = |release: Release| {
            let definition = self.definition(release)?;
            let decoded = TypeTable::for_release(release)
                .decode(definition, object.clone(), Extensions::NONE)
                .ok()?;
            Some(decoded.findings.iter().any(|f| f.to_string() == finding))
        };
        let have: Vec<Release> = releases().filter(|r| lacks(*r) == Some(false)).collect();
        match (have.first(), have.last()) {
            (Some(first), _) if *first > self.release => {
                Some(format!("the field exists since Kubernetes {first}"))
            }
            (_, Some(last)) if *last < self.release => {
                Some(format!("the field exists up to Kubernetes {last}"))
            }
            _ => None,
        }
    }

    fn definition(&self, release: Release) -> Option<&'static TypeDef> {
        TypeTable::for_release(release).kind(self.resource.group, self.resource.version, self.resource.kind())
    }

    /// Validates a write, as the server does: decode, default, prepare, validate.
    pub(crate) fn admit(&self, write: BuiltinWrite<'_>) -> AdmitOutcome {
        match self.steps(write) {
            Ok(outcome) => outcome,
            Err(error) => refused(error),
        }
    }

    fn steps(&self, write: BuiltinWrite<'_>) -> Result<AdmitOutcome, AdmissionError> {
        let missing =
            || AdmissionError::Internal(format!("the table of API types has no {}", self.resource.kind()));
        let definition = self.definition(self.release).ok_or_else(missing)?;
        let hub = hub(self.resource).ok_or_else(missing)?;
        let table = TypeTable::for_release(self.release);
        let decode = |object: Value| {
            let decoded = table.decode(definition, object, Extensions::NONE);
            decoded.map_err(|e| AdmissionError::Undecodable(e.to_string()))
        };
        let decoded = decode(write.object)?;
        let warnings = self.findings(write.found_in_text, &decoded.findings, write.field_validation)?;
        let object = self.normalized(table.canonical(definition, decoded.members), hub)?;
        let old = match write.old {
            Some(old) => {
                let old = decode(old)?;
                Some(self.normalized(table.canonical(definition, old.members), hub)?)
            }
            None => None,
        };
        let mut outcome = self.decide(object, old.as_ref(), write.status, write.identity);
        outcome.warnings.splice(..0, warnings);
        Ok(outcome)
    }

    /// Unknown and duplicate fields: an error, warnings, or nothing.
    fn findings(
        &self,
        in_text: &[String],
        unknown: &[Finding],
        mode: FieldValidation,
    ) -> Result<Vec<String>, AdmissionError> {
        let all: Vec<String> = in_text
            .iter()
            .cloned()
            .chain(unknown.iter().map(ToString::to_string))
            .collect();
        match mode {
            FieldValidation::Strict if !all.is_empty() => Err(AdmissionError::Strict(all)),
            FieldValidation::Ignore => Ok(Vec::new()),
            _ => Ok(all),
        }
    }

    /// Converts an object to the hub version and fills in defaults.
    fn normalized(&self, members: Map, hub: &TypeDef) -> Result<Value, AdmissionError> {
        let mut object = Value::Object(members);
        let (table, own) = (TypeTable::latest(), self.definition(Release::LATEST));
        if own.is_none_or(|own| own.id != hub.id) {
            if let Some(behavior) = self.behavior {
                object = behavior.version_to_hub(self.resource.version, object);
            }
            let decoded = table.decode(hub, object, Extensions::NONE);
            let decoded = decoded.map_err(|e| AdmissionError::Undecodable(e.to_string()))?;
            object = Value::Object(table.canonical(hub, decoded.members));
        }
        if let (Some(behavior), Some(members)) = (self.behavior, object.as_object_mut()) {
            behavior.default(members, &context(""));
        }
        Ok(object)
    }

    fn decide(
        &self,
        object: Value,
        old: Option<&Value>,
        status: bool,
        identity: &NewObjectMeta,
    ) -> AdmitOutcome {
        let Value::Object(mut members) = object else {
            return refused(AdmissionError::Internal("the object has no members".to_owned()));
        };
        let metadata = members.get_or_insert_with("metadata", || Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            match old.and_then(|old| old.get("metadata")) {
                None => identity.apply_to(metadata),
                Some(before) => keep_system_metadata(metadata, before),
            }
        }
        let write = Write {
            operation: old.map_or(Operation::Create, Operation::Update),
            subresource: if status {
                Subresource::Status
            } else {
                Subresource::None
            },
            context: context(&identity.created),
        };
        if let Some(behavior) = self.behavior {
            behavior.prepare(&mut members, &write);
        }
        let object = Value::Object(members);
        let mut own = ErrorList::new();
        if let Some(behavior) = self.behavior {
            behavior.validate(&object, &write, &mut own);
        }
        let facts = self.behavior.map(BuiltinKind::facts);
        let mut errors = if old.is_some() || own.is_empty() || facts.is_none_or(|f| f.validates_metadata) {
            self.check_metadata(&object, old, status, facts)
        } else {
            ErrorList::new()
        };
        errors.extend(own);
        let mut seen = std::collections::BTreeSet::new();
        errors.retain(|error| seen.insert(error.to_string()));
        let mut warnings = Vec::new();
        if errors.is_empty()
            && let Some(behavior) = self.behavior
        {
            behavior.warn(&object, &write, &mut warnings);
        }
        AdmitOutcome {
            object,
            error: (!errors.is_empty()).then_some(AdmissionError::Invalid(errors)),
            warnings,
            stats: Stats::default(),
        }
    }

    fn check_metadata(
        &self,
        object: &Value,
        old: Option<&Value>,
        status: bool,
        facts: Option<&KindFacts>,
    ) -> ErrorList {
        let at = Path::ROOT.field("metadata");
        let (scope, names) = (self.scope(), facts.map_or(NameRule::Subdomain, |f| f.names));
        let metadata = object.get("metadata");
        let Some(old) = old else {
            return meta::check_new(metadata, scope, names, &at);
        };
        let mut errors = meta::check_common(metadata, scope, &at);
        if !status {
            errors.extend(meta::check_new(metadata, scope, names, &at));
        }
        errors.extend(meta::check_update(metadata, old.get("metadata"), &at));
        errors
    }
}

/// Keeps the metadata that only the server writes.
fn keep_system_metadata(metadata: &mut Map, before: &Value) {
    for name in [
        "uid",
        "creationTimestamp",
        "generation",
        "resourceVersion",
        "deletionTimestamp",
        "selfLink",
    ] {
        match before.get(name) {
            Some(value) => {
                metadata.insert(name, value.clone());
            }
            None => {
                metadata.remove(name);
            }
        }
    }
}

/// Rules see the default feature gates.
fn context(now: &str) -> Context<'_> {
    Context {
        enabled: is_on_by_default,
        now,
        user: User::default(),
    }
}

fn refused(error: AdmissionError) -> AdmitOutcome {
    AdmitOutcome {
        object: Value::Null,
        error: Some(error),
        warnings: Vec::new(),
        stats: Stats::default(),
    }
}
