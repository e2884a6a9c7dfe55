//! The stages of a write as types: [`Normalized`] → [`Prepared`] → [`Admitted`].
//!
//! A caller acts between stages on the object of the stage: a server records field ownership on a normalized object and
//! runs mutating admission plugins on it. [`admit`](crate::admit) runs all stages in a row.

use crate::builtin::{self, BuiltinResource};
use crate::definition::DefinitionResource;
use crate::{
    AdmissionError, AdmitOptions, AdmitOutcome, FieldValidation, Resource, Stats, Warning, WriteOperation,
    custom, normalize,
};
use scantling_schema::immutable::UnchangedElements;
use scantling_value::{Finding, FindingList, Value};
use std::sync::Arc;

/// A kind whose objects can be written: compiled from a CRD, built in, or CRDs themselves.
#[derive(Clone, Copy, Debug)]
pub enum AnyResource<'r> {
    /// A version of a kind that a CRD defines.
    Custom(&'r Resource),
    /// A version of a built-in kind.
    Builtin(&'r BuiltinResource),
    /// A version of CRDs themselves.
    Definition(&'r DefinitionResource),
}

impl<'r> From<&'r Resource> for AnyResource<'r> {
    fn from(resource: &'r Resource) -> Self {
        AnyResource::Custom(resource)
    }
}

impl<'r> From<&'r Arc<Resource>> for AnyResource<'r> {
    fn from(resource: &'r Arc<Resource>) -> Self {
        AnyResource::Custom(resource)
    }
}

impl<'r> From<&'r BuiltinResource> for AnyResource<'r> {
    fn from(resource: &'r BuiltinResource) -> Self {
        AnyResource::Builtin(resource)
    }
}

impl<'r> From<&'r DefinitionResource> for AnyResource<'r> {
    fn from(resource: &'r DefinitionResource) -> Self {
        AnyResource::Definition(resource)
    }
}

/// The mode of normalization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NormalizeMode {
    /// The object of a create, an update or a patch: metadata is coerced, unknown fields are pruned and reported,
    /// defaults are filled in.
    #[default]
    Request,
    /// The result of a server-side apply: defaults are filled in. Unknown fields and malformed metadata stay, so that
    /// validation sees them.
    Applied,
    /// An object of another kind than the requested one: only its metadata is coerced, since it will be rejected for
    /// its kind.
    OtherKind,
    /// An object in a version that the kind does not have: every field but the metadata is unknown.
    UnknownVersion,
    /// A list of another kind: nothing is changed, since it will be rejected for its kind.
    List,
}

impl NormalizeMode {
    /// The field validation of objects with a type. The result of an apply is not what the client sent, so its fields are
    /// not reported.
    pub(crate) fn field_validation(self, options: &AdmitOptions<'_>) -> FieldValidation {
        match self {
            NormalizeMode::Applied => FieldValidation::Ignore,
            _ => options.field_validation,
        }
    }
}

/// A write that was rejected.
#[derive(Debug)]
pub struct Rejected {
    /// The object as far as it was processed.
    pub object: Value,
    /// The reason.
    pub error: AdmissionError,
    /// Warnings for the client.
    pub warnings: Vec<Warning>,
    /// The work done.
    pub stats: Stats,
}

/// The result of a stage. The error is boxed because it is large and rare.
pub type StageResult<T> = Result<T, Box<Rejected>>;

/// An object in the form of its schema or type, with findings reported.
#[derive(Debug)]
pub struct Normalized<'r> {
    resource: AnyResource<'r>,
    object: Value,
    findings: FindingList,
}

impl<'r> Normalized<'r> {
    /// Normalizes the object of a request. `findings` are those of decoding its text.
    pub fn new(
        resource: impl Into<AnyResource<'r>>,
        mut object: Value,
        findings: &[Finding],
        mode: NormalizeMode,
        options: &AdmitOptions<'_>,
    ) -> StageResult<Normalized<'r>> {
        let resource = resource.into();
        let reported = match resource {
            AnyResource::Custom(resource) => {
                normalize::custom(resource, &mut object, findings, mode, options)
            }
            AnyResource::Builtin(resource) => resource.normalize(&mut object, findings, mode, options),
            AnyResource::Definition(resource) => resource.normalize(&mut object, findings, mode, options),
        };
        match reported {
            Ok(findings) => Ok(Normalized {
                resource,
                object,
                findings,
            }),
            Err(error) => Err(Box::new(Rejected {
                object,
                error,
                warnings: Vec::new(),
                stats: Stats::default(),
            })),
        }
    }

    /// Resumes the pipeline with an object that was normalized before, without its findings.
    pub fn resume(resource: impl Into<AnyResource<'r>>, object: Value) -> Normalized<'r> {
        Normalized {
            resource: resource.into(),
            object,
            findings: FindingList::new(),
        }
    }

    /// The object.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// The object, to record field ownership.
    pub fn object_mut(&mut self) -> &mut Value {
        &mut self.object
    }

    /// Returns the object, and the findings that are warnings.
    pub fn into_parts(self) -> (Value, FindingList) {
        (self.object, self.findings)
    }

    /// Sets the fields that a request cannot write. The object of a built-in kind is in the hub version from here on.
    pub fn prepare<'o>(
        self,
        operation: WriteOperation<'o>,
        options: &'o AdmitOptions<'o>,
    ) -> StageResult<Prepared<'r, 'o>> {
        let Normalized {
            resource,
            mut object,
            findings,
        } = self;
        let warnings = findings.into_iter().map(Warning::Finding).collect();
        let prepared = match resource {
            AnyResource::Custom(resource) => {
                custom::prepare(resource, operation, &mut object, options).map(Preparation::Custom)
            }
            AnyResource::Builtin(resource) => {
                let prepared = resource.prepare(operation, &mut object, options);
                prepared.map(|old| Preparation::Builtin(old.map(Box::new)))
            }
            AnyResource::Definition(resource) => resource
                .prepare(operation, &mut object)
                .map(|()| Preparation::Definition),
        };
        match prepared {
            Ok(preparation) => Ok(Prepared {
                resource,
                operation,
                options,
                object,
                warnings,
                preparation,
            }),
            Err(error) => Err(Box::new(Rejected {
                object,
                error,
                warnings,
                stats: Stats::default(),
            })),
        }
    }
}

/// The results of preparation that validation uses.
#[derive(Debug)]
enum Preparation {
    /// The elements that the update is known to leave unchanged.
    Custom(UnchangedElements),
    /// The stored object in the hub version, if it had to be converted.
    Builtin(Option<Box<Value>>),
    Definition,
}

/// An object with all its system fields, ready to be validated.
#[derive(Debug)]
pub struct Prepared<'r, 'o> {
    resource: AnyResource<'r>,
    operation: WriteOperation<'o>,
    options: &'o AdmitOptions<'o>,
    object: Value,
    warnings: Vec<Warning>,
    preparation: Preparation,
}

impl Prepared<'_, '_> {
    /// The object.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// The object, for admission plugins to change.
    pub fn object_mut(&mut self) -> &mut Value {
        // A plugin may change any element.
        if let Preparation::Custom(unchanged) = &mut self.preparation {
            *unchanged = UnchangedElements::default();
        }
        &mut self.object
    }

    /// Validates the object.
    pub fn validate(self) -> StageResult<Admitted> {
        let Prepared {
            resource,
            operation,
            options,
            object,
            mut warnings,
            preparation,
        } = self;
        match (resource, preparation) {
            (AnyResource::Custom(resource), Preparation::Custom(unchanged)) => {
                let result = custom::validate(resource, operation, &object, &unchanged, options);
                warnings.extend(result.warnings.into_iter().map(Warning::Text));
                if !result.errors.is_empty() {
                    return Err(Box::new(Rejected {
                        object,
                        error: AdmissionError::Invalid(result.errors),
                        warnings,
                        stats: result.stats,
                    }));
                }
                Ok(Admitted {
                    object,
                    warnings,
                    stats: result.stats,
                })
            }
            (AnyResource::Builtin(resource), Preparation::Builtin(old)) => {
                let old = old.as_deref().or(builtin::stored(operation));
                resource.validate(operation, old, object, warnings, options)
            }
            (AnyResource::Definition(resource), Preparation::Definition) => {
                resource.validate(operation, object, warnings, options)
            }
            // `Normalized::prepare` creates both, so they always match.
            _ => Err(Box::new(Rejected {
                object,
                error: AdmissionError::Internal("a preparation of another kind of resource".into()),
                warnings,
                stats: Stats::default(),
            })),
        }
    }
}

/// An object that may be stored.
#[derive(Debug)]
pub struct Admitted {
    /// The object.
    pub object: Value,
    /// Warnings for the client.
    pub warnings: Vec<Warning>,
    /// The work done.
    pub stats: Stats,
}

impl Admitted {
    /// Encodes the object for the store.
    pub fn encode(&self) -> String {
        self.object.to_json()
    }
}

impl From<StageResult<Admitted>> for AdmitOutcome {
    fn from(result: StageResult<Admitted>) -> Self {
        match result {
            Ok(admitted) => AdmitOutcome {
                object: admitted.object,
                error: None,
                warnings: admitted.warnings,
                stats: admitted.stats,
            },
            Err(rejected) => AdmitOutcome {
                object: rejected.object,
                error: Some(rejected.error),
                warnings: rejected.warnings,
                stats: rejected.stats,
            },
        }
    }
}

/// Turns findings into an error, into warnings, or drops them, as field validation asks.
pub fn report_findings(findings: FindingList, mode: FieldValidation) -> Result<FindingList, AdmissionError> {
    match mode {
        FieldValidation::Strict if !findings.is_empty() => Err(AdmissionError::Strict(findings)),
        FieldValidation::Ignore => Ok(FindingList::new()),
        FieldValidation::Strict | FieldValidation::Warn => Ok(findings),
    }
}
