//! The value that an expression is evaluated for.

use crate::args;
use crate::catalog::{Catalog, CrdTexts, OtherObjects};
use crate::files;
use crate::problem::Problem;
use crate::split;
use scantling_admit::Resource;
use scantling_cel::shape::{Shape, ShapeKind};
use scantling_schema::rules::{Shapes, VisibleShape};
use scantling_value::Value;
use std::path::Path;
use std::sync::Arc;

/// A field of a CRD and of objects of its kind or, without a CRD, any document.
pub(super) struct EvalTarget {
    /// The shape that expressions see.
    pub(super) shape: Arc<Shape>,
    resource: Option<Arc<Resource>>,
    at: String,
    read: args::ReadFlags,
}

impl EvalTarget {
    /// Finds the field that the flags name.
    pub(super) fn find(flags: &args::Eval) -> Result<Self, Problem> {
        let resource = flags.crd.as_deref().map(|crd| resource(crd, flags)).transpose()?;
        let shape = match &resource {
            Some(resource) => shape(resource, &flags.at)?,
            None => Arc::new(Shape {
                // Without a CRD, expressions see any JSON, as `dyn`.
                kind: ShapeKind::Dyn,
                nullable: true,
                min_serialized_size: 1,
                max_elements: 0,
            }),
        };
        Ok(EvalTarget {
            shape,
            resource,
            at: flags.at.clone(),
            read: flags.read.clone(),
        })
    }

    /// Returns the value of the field in the first document of a file. Rules see an object as it is stored: pruned and
    /// defaulted.
    pub(super) fn value_in(&self, file: &Path) -> Result<Value, Problem> {
        let mut document = first_document(file, &self.read)?;
        let Some(resource) = &self.resource else {
            return Ok(document);
        };
        scantling_admit::prune_and_default_stored(resource, &mut document)
            .map_err(|why| Problem::plain(format!("{}: {why}", file.display())))?;
        let found = steps(&self.at)
            .into_iter()
            .try_fold(&document, |v, step| match step.parse::<usize>() {
                // In a map, a number is an ordinary key.
                Ok(index) if v.as_array().is_some() => v.as_array()?.get(index),
                _ => v.get(step),
            });
        let nothing = || Problem::plain(format!("{} has nothing at {}", file.display(), self.at));
        found.cloned().ok_or_else(nothing)
    }
}

/// The segments of a path such as `spec.rules[].filters[0]['a.b']`; `[]` is the first element of a list.
fn steps(at: &str) -> Vec<&str> {
    let (mut steps, mut rest) = (Vec::new(), at.trim_start_matches('.'));
    while !rest.is_empty() {
        let (step, after) = if let Some(inside) = rest.strip_prefix("['") {
            inside.split_once("']").unwrap_or((inside, ""))
        } else if let Some(inside) = rest.strip_prefix('[') {
            let (step, after) = inside.split_once(']').unwrap_or((inside, ""));
            (if step.is_empty() { "0" } else { step }, after)
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            rest.split_at_checked(end).unwrap_or((rest, ""))
        };
        steps.push(step);
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    steps
}

fn first_document(file: &Path, read: &args::ReadFlags) -> Result<Value, Problem> {
    let (sources, problems) = files::find([file], read);
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem);
    }
    let source = sources
        .first()
        .ok_or_else(|| Problem::plain(format!("there is no file in {}", file.display())))?;
    let bytes = source.read()?;
    let (documents, problems) = split::documents(&source.name, &bytes);
    match (documents.first(), problems.into_iter().next()) {
        (Some(document), _) => document.value(),
        (None, Some(problem)) => Err(problem),
        (None, None) => Err(Problem::plain(format!("{} is empty", source.name))),
    }
}

/// Returns the version of the CRD that the flags name.
fn resource(crd: &Path, flags: &args::Eval) -> Result<Arc<Resource>, Problem> {
    let (sources, problems) = files::find([crd], &flags.read);
    let mut catalog = Catalog::new(flags.target, CrdTexts::Dropped);
    let more = catalog.load(&sources, OtherObjects::Listed);
    if let Some(problem) = problems.into_iter().chain(more).next() {
        return Err(problem);
    }
    let entry = catalog
        .entries()
        .first()
        .ok_or_else(|| Problem::plain(format!("no definition in {}", crd.display())))?;
    let spec = &entry.definition.spec;
    let version = entry.version(flags.api_version.as_deref())?;
    let found = catalog.find(&format!("{}/{}", spec.group, version.name), &spec.names.kind);
    let resource = catalog.usable(found.ok_or_else(|| entry.unusable("its kind is not in the catalog"))?)?;
    Ok(Arc::clone(resource))
}

/// Returns the shape of a field of a schema.
fn shape(resource: &Resource, at: &str) -> Result<Arc<Shape>, Problem> {
    let mut schema = Arc::clone(resource.plan.root().schema());
    let mut shapes = Shapes::new();
    // Rules of the root see `metadata`, `apiVersion` and `kind` whether the schema declares them or not.
    let mut view = VisibleShape::of_resource(&schema, &mut shapes);
    for step in steps(at) {
        let (next, below) = if let Some(property) = schema.property(step) {
            (property.clone(), view.property(step, property, &mut shapes))
        } else if let Some(entry) = schema.items.as_ref().or(schema.additional_schema()) {
            (entry.clone(), view.entry())
        } else {
            let what = format!("the schema has nothing at {at}: there is no `{step}`");
            return Err(Problem::plain(what));
        };
        (schema, view) = (next, below);
    }
    let nothing = || Problem::plain(format!("expressions see nothing at {at}"));
    view.shape().cloned().ok_or_else(nothing)
}
