//! `scantling sample`: an object of a CRD that a cluster accepts.

mod generate;
mod write;

use crate::args;
use crate::catalog::{Catalog, CatalogEntry, CrdTexts, OtherObjects};
use crate::files;
use crate::problem::{ExitStatus, Problem};
use crate::render;
use crate::validate::metadata::apply_request_context;
use generate::Generator;
use scantling_admit::{AdmitOptions, NewObjectMeta, Request, Resource, WriteOperation, admit};
use scantling_schema::meta::Scope;
use scantling_value::{FieldError, Map, Value};
pub(crate) use write::facts;

/// Prints a sample of each CRD.
pub(crate) fn run(flags: &args::Sample) -> Result<ExitStatus, Problem> {
    let (sources, mut problems) = files::find_schemas(&flags.paths, &flags.read);
    let mut catalog = Catalog::new(flags.target, CrdTexts::Dropped);
    problems.extend(catalog.load(&sources, OtherObjects::Listed));
    let mut samples = Vec::new();
    for entry in catalog.entries() {
        match sample(&catalog, entry, flags) {
            Ok(sample) => samples.push(sample),
            Err(problem) => problems.push(problem),
        }
    }
    render::write(samples.join("---\n"))?;
    Ok(ExitStatus::after(false, &problems))
}

fn sample(catalog: &Catalog, entry: &CatalogEntry, flags: &args::Sample) -> Result<String, Problem> {
    let errors = catalog.refused(entry);
    if let Some(error) = errors.first() {
        return Err(entry.unusable(&error.to_string()));
    }
    let spec = &entry.definition.spec;
    let version = entry.version(flags.api_version.as_deref())?;
    let api_version = format!("{}/{}", spec.group, version.name);
    let Some(found) = catalog.find(&api_version, &spec.names.kind) else {
        return Err(entry.unusable("its kind is not in the catalog"));
    };
    let resource = catalog.usable(found)?;
    let schema = spec.schema_of(version).map(|schema| &**schema);
    let kind = SampleKind {
        resource,
        options: AdmitOptions {
            gates: flags.target.feature_gates,
            ..AdmitOptions::default()
        },
    };
    let head = kind.head(&api_version, &spec.names.kind);
    let validate = |object: &Value| kind.errors(object);
    let generator = Generator::new(schema, head, &validate);
    let object = match flags.full {
        true => generator.full(),
        false => generator.smallest(),
    };
    let object = object.map_err(|why| {
        let (file, name) = (&entry.file, entry.definition.name());
        Problem::plain(format!(
            "{file}: no valid object of the CRD {name} was found: {why}"
        ))
        .hint("values are derived from keywords; rules are satisfied by trial, which does not always succeed")
    })?;
    Ok(match flags.full {
        true => write::commented(&object, schema),
        false => write::plain(&object),
    })
}

/// The kind of a sample.
struct SampleKind<'a> {
    resource: &'a Resource,
    options: AdmitOptions<'a>,
}

impl SampleKind<'_> {
    /// The fields that every object of the kind begins with.
    fn head(&self, api_version: &str, kind: &str) -> Map {
        let mut metadata = Map::new();
        metadata.insert("name", "example".into());
        if self.resource.scope == Scope::Namespaced {
            metadata.insert("namespace", "default".into());
        }
        let mut head = Map::new();
        head.insert("apiVersion", api_version.into());
        head.insert("kind", kind.into());
        head.insert("metadata", metadata.into());
        head
    }

    /// The errors of an object; empty if a cluster accepts it.
    fn errors(&self, object: &Value) -> Vec<FieldError> {
        let meta = NewObjectMeta {
            uid: "00000000-0000-0000-0000-000000000000".into(),
            created: "1970-01-01T00:00:00Z".into(),
            suffix: "00000".into(),
        };
        let mut object = object.clone();
        apply_request_context(self.resource, &mut object, None);
        let request = Request {
            operation: WriteOperation::Create(&meta),
            object,
            findings: &[],
        };
        let outcome = admit(self.resource, request, &self.options);
        match outcome.error {
            None => Vec::new(),
            Some(error) if error.errors().is_empty() => {
                vec![FieldError::internal(
                    &scantling_value::Path::ROOT,
                    format!("{error:?}"),
                )]
            }
            Some(error) => error.errors().to_vec(),
        }
    }
}
