//! CRDs themselves in the pipeline: decoded by `scantling_schema`, which also validates them.

use crate::builtin::stored;
use crate::metadata::{keep_system_fields, metadata_mut};
use crate::pipeline::{Admitted, NormalizeMode, Rejected, StageResult, report_findings};
use crate::{AdmissionError, AdmitOptions, Gates, Stats, Warning, WriteOperation};
use scantling_schema::definition::{Accepted, ApiVersion, Definition, ValidationContext};
use scantling_schema::rules::Environments;
use scantling_value::{Finding, FindingList, Map, Value};

/// One served version of CustomResourceDefinitions.
#[derive(Clone, Debug)]
pub struct DefinitionResource {
    api: ApiVersion,
    gates: Gates,
    environments: Environments,
}

impl DefinitionResource {
    /// The version, with the environments in which rules compile.
    pub fn new(api: ApiVersion, gates: Gates, environments: Environments) -> DefinitionResource {
        DefinitionResource {
            api,
            gates,
            environments,
        }
    }

    fn decode(&self, object: Value) -> Result<Definition, AdmissionError> {
        let decoded = Definition::decode(object, self.api, self.gates);
        let decoded = decoded.map_err(|e| AdmissionError::Undecodable(e.to_string()))?;
        Ok(decoded.definition)
    }

    /// Normalizes a CRD: decodes it by its type, fills in defaults, reports findings.
    pub(crate) fn normalize(
        &self,
        object: &mut Value,
        findings: &[Finding],
        mode: NormalizeMode,
        options: &AdmitOptions<'_>,
    ) -> Result<FindingList, AdmissionError> {
        let decoded = Definition::decode(std::mem::take(object), self.api, self.gates);
        let decoded = decoded.map_err(|e| AdmissionError::Undecodable(e.to_string()))?;
        // Validation decodes this document again and must see the same empty lists.
        *object = decoded.definition.into_held_document(self.api);
        report_findings(
            FindingList::join(findings, decoded.findings),
            mode.field_validation(options),
        )
    }

    /// Sets the metadata that a request cannot write.
    pub(crate) fn prepare(
        &self,
        operation: WriteOperation<'_>,
        object: &mut Value,
    ) -> Result<(), AdmissionError> {
        let Some(object) = object.as_object_mut() else {
            return Err(AdmissionError::Internal("a CRD that is not an object".to_owned()));
        };
        let metadata = metadata_mut(object);
        if let WriteOperation::Create(meta) = operation {
            meta.apply_to(metadata);
        }
        let old = stored(operation).and_then(|old| old.get("metadata")?.as_object());
        if let Some(old) = old {
            keep_system_fields(metadata, old);
            if let (WriteOperation::UpdateStatus(_), Some(generation)) = (operation, old.get("generation")) {
                // A write to the status may change labels; only a change of the spec increments the generation.
                metadata.insert("generation", generation.clone());
            }
        }
        Ok(())
    }

    /// Validates a CRD.
    pub(crate) fn validate(
        &self,
        operation: WriteOperation<'_>,
        object: Value,
        mut warnings: Vec<Warning>,
        options: &AdmitOptions<'_>,
    ) -> StageResult<Admitted> {
        // The error names the CRD.
        let name = name_of(&object);
        let started = options.clock.map(|clock| clock());
        let accepted = self.accept(operation, object);
        let took = options
            .clock
            .zip(started)
            .map(|(clock, started)| clock().saturating_sub(started));
        let stats = Stats {
            compilation: took.filter(|_| !matches!(operation, WriteOperation::UpdateStatus(_))),
            ..Stats::default()
        };
        match accepted {
            Ok((definition, more)) => {
                warnings.extend(more.into_iter().map(Warning::Text));
                Ok(Admitted {
                    object: definition.into_inner().into_document(self.api),
                    warnings,
                    stats,
                })
            }
            Err(error) => Err(Box::new(Rejected {
                object: name,
                error,
                warnings,
                stats,
            })),
        }
    }

    /// Decodes a CRD and validates it against the stored one.
    fn accept(
        &self,
        operation: WriteOperation<'_>,
        object: Value,
    ) -> Result<(Accepted, Vec<String>), AdmissionError> {
        let new = self.decode(object)?;
        let old = stored(operation)
            .map(|old| self.decode(old.clone()))
            .transpose()?;
        let old = old.map(Accepted::assume_accepted);
        let context = ValidationContext {
            api: self.api,
            gates: self.gates,
            environments: &self.environments,
        };
        let accepted = match (operation, &old) {
            (WriteOperation::UpdateStatus(_), Some(old)) => {
                return Accepted::update_status(new, old)
                    .map(|accepted| (accepted, Vec::new()))
                    .map_err(AdmissionError::Invalid);
            }
            (_, Some(old)) => Accepted::update(new, old, &context),
            (_, None) => Accepted::create(new, &context),
        };
        let accepted = accepted.map_err(AdmissionError::Invalid)?;
        Ok((accepted.accepted, accepted.warnings))
    }
}

/// The kind and the name of a document.
fn name_of(document: &Value) -> Value {
    let name = document.at(["metadata", "name"]).cloned().unwrap_or(Value::Null);
    let kind = document.get("kind").cloned().unwrap_or(Value::Null);
    let metadata = Map::from_iter([("name", name)]);
    Map::from_iter([("kind", kind), ("metadata", metadata.into())]).into()
}
