//! `scantling compile`: turns extensions that only Scantling has into rules that every cluster accepts.

use crate::args::{self, TargetFlags};
use crate::catalog::{self, Catalog, CrdTexts};
use crate::files;
use crate::input::{Document, InputObject};
use crate::problem::{ExitStatus, Problem, note};
use crate::render;
use crate::report::count;
use crate::rules::{self, RULE_LIMIT};
use crate::stream;
use scantling_admit::Gates;
use scantling_schema::definition::{ApiVersion, Definition};
use scantling_schema::document::Schema;
use scantling_schema::lower::{Lowering, lower};
use scantling_schema::structural::Interner;
use scantling_value::{Value, yaml};
use std::sync::Arc;

/// Compiles CRDs and writes them.
pub(crate) fn run(flags: &args::Compile) -> Result<ExitStatus, Problem> {
    let (sources, mut problems) = files::find_schemas(&flags.paths, &flags.read);
    let mut compiled = Vec::new();
    problems.extend(stream::each_document(
        &sources,
        |document| compile_document(document, flags),
        |result: Result<Vec<CompiledCrd>, Problem>| compiled.push(result),
    ));
    let mut has_findings = false;
    let mut written = 0;
    for result in compiled {
        let crds = match result {
            Ok(crds) => crds,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        for crd in crds {
            for line in &crd.notes {
                note(line);
            }
            for error in &crd.errors {
                has_findings = true;
                Problem::in_file(&crd.file, None, error).print();
            }
            // A CRD with errors is not written: applying it would drop the extensions without replacement.
            if crd.errors.is_empty() {
                crd.write(flags, written)?;
                written += 1;
            }
        }
    }
    if written == 0 && !has_findings && problems.is_empty() {
        return Err(Problem::plain("no CustomResourceDefinition in the input"));
    }
    Ok(ExitStatus::after(has_findings, &problems))
}

/// A CRD after lowering.
struct CompiledCrd {
    file: Arc<str>,
    name: String,
    document: Value,
    /// The rules with their cost.
    notes: Vec<String>,
    /// The reasons why it cannot be used.
    errors: Vec<String>,
}

impl CompiledCrd {
    fn write(&self, flags: &args::Compile, before: usize) -> Result<(), Problem> {
        let text = yaml::encode(&self.document);
        match &flags.output {
            None => {
                let separator = if before > 0 { "---\n" } else { "" };
                render::write(format!("{separator}{text}"))
            }
            Some(directory) => {
                let path = directory.join(format!("{}.yaml", self.name));
                std::fs::create_dir_all(directory)
                    .and_then(|()| std::fs::write(&path, text))
                    .map_err(|e| Problem::new(format!("cannot write {}", path.display()), e))
            }
        }
    }
}

fn compile_document(document: &Document<'_>, flags: &args::Compile) -> Result<Vec<CompiledCrd>, Problem> {
    let objects = document.known_objects()?.into_iter();
    objects
        .filter(InputObject::is_definition)
        .map(|object| {
            compile_crd(document.file, object, flags)
                .map_err(|why| Problem::in_file(document.file, None, why))
        })
        .collect()
}

/// The gates of the extensions, which are what this command is about.
fn extensions() -> Gates {
    Gates {
        immutability: true,
        unions: true,
        rules_on_create: true,
        ..Gates::default()
    }
}

fn compile_crd(file: &Arc<str>, object: InputObject, flags: &args::Compile) -> Result<CompiledCrd, String> {
    let api = match object.api_version() {
        "apiextensions.k8s.io/v1" => ApiVersion::V1,
        other => {
            return Err(format!(
                "CRDs of {other} cannot be compiled: use apiextensions.k8s.io/v1"
            ));
        }
    };
    let name = object.name().to_owned();
    // The CRD must be valid with its extensions before they go.
    let extended = Definition::decode(object.value.clone(), api, extensions()).map_err(|e| e.to_string())?;
    let target = TargetFlags {
        kubernetes_version: flags.kubernetes_version,
        feature_gates: extensions(),
    };
    let mut errors = invalid(file, object.value.clone(), target)?;
    let unknown = extended.findings.iter();
    let mut notes: Vec<String> = unknown.map(|finding| format!("{name}: {finding}")).collect();
    let mut value = object.value;
    let mut lowerings = Vec::new();
    // Only valid extensions have a meaning that can be lowered.
    if errors.is_empty() {
        for (version, schema) in schemas_mut(&mut value) {
            lowerings.push((version, lower(schema)));
        }
        for (version, lowering) in &lowerings {
            let unsupported = lowering.unsupported.iter();
            errors.extend(unsupported.map(|no| {
                let field = if no.field.is_empty() {
                    "the object"
                } else {
                    &no.field
                };
                format!(
                    "{name} {version}: {field}: {} cannot be compiled: {}",
                    no.extension, no.reason
                )
            }));
        }
    }
    if errors.is_empty() {
        let plain = TargetFlags {
            feature_gates: Gates::default(),
            ..target
        };
        // Rules cost, so the result may be refused although the extensions were valid.
        let refused = invalid(file, value.clone(), plain)?;
        errors.extend(
            refused
                .iter()
                .map(|why| format!("{name}: after compilation: {why}")),
        );
        notes.extend(costs(&name, &value, &lowerings, plain)?);
    }
    Ok(CompiledCrd {
        file: Arc::clone(file),
        name,
        document: value,
        notes,
        errors,
    })
}

/// The schemas of the versions of a CRD.
fn schemas_mut(crd: &mut Value) -> impl Iterator<Item = (String, &mut Value)> {
    let spec = crd
        .as_object_mut()
        .and_then(|o| o.get_mut("spec"))
        .and_then(Value::as_object_mut);
    let versions = spec
        .and_then(|spec| spec.get_mut("versions"))
        .and_then(Value::as_array_mut);
    versions.into_iter().flatten().filter_map(|version| {
        let name = version.get_str("name").to_owned();
        let schema = version.as_object_mut()?.get_mut("schema")?.as_object_mut()?;
        Some((name, schema.get_mut("openAPIV3Schema")?))
    })
}

/// Returns the errors with which a cluster would refuse a CRD.
fn invalid(file: &Arc<str>, crd: Value, target: TargetFlags) -> Result<Vec<String>, String> {
    let object = InputObject {
        value: crd,
        found_in_text: Vec::new(),
        index: Vec::new(),
    };
    let entry = catalog::entry(file, object, target)?;
    let mut catalog = Catalog::new(target, CrdTexts::Dropped);
    catalog.add(entry);
    let errors = catalog.entries().iter().flat_map(|entry| catalog.refused(entry));
    Ok(errors.map(ToString::to_string).collect())
}

/// One line per rule that stands for an extension, with its cost.
fn costs(
    name: &str,
    crd: &Value,
    lowerings: &[(String, Lowering)],
    target: TargetFlags,
) -> Result<Vec<String>, String> {
    let definition = Definition::decode(crd.clone(), ApiVersion::V1, target.feature_gates)
        .map_err(|e| e.to_string())?
        .definition;
    let catalog = Catalog::new(target, CrdTexts::Dropped);
    let mut lines = Vec::new();
    // Every version of a valid CRD in v1 has a schema, so both lists run in parallel.
    for (version, (version_name, lowering)) in definition.spec.versions().iter().zip(lowerings) {
        let Some(schema) = definition.spec.schema_of(version) else {
            continue;
        };
        let structural = Schema::new(schema)
            .structural(&mut Interner::new())
            .map_err(|why| why.to_string())?;
        let estimates = rules::rules(&structural, catalog.environments());
        for rule in &lowering.rules {
            // Equal rules at several fields have different costs; the highest one decides.
            let total = estimates
                .iter()
                .filter(|e| e.text == rule.rule)
                .map(|e| e.total)
                .max();
            let total = total.unwrap_or(0);
            let share = total as f64 * 100.0 / RULE_LIMIT as f64;
            let field = if rule.field.is_empty() {
                "the object"
            } else {
                &rule.field
            };
            lines.push(format!(
                "{name} {version_name}: {field}: {} became `{}` (cost {total}, {share:.1}% of the limit)",
                rule.extension, rule.rule
            ));
        }
    }
    if lines.is_empty() {
        lines.push(format!("{name}: {} to compile", count(0, "extension")));
    }
    Ok(lines)
}
