//! Measures the cost of rules on real objects.

use crate::args;
use crate::catalog::Catalog;
use crate::cluster::Cluster;
use crate::files::InputSource;
use crate::input::InputObject;
use crate::problem::Problem;
use crate::report::{ReportItem, ReportSubject};
use crate::rules::{SchemaStep, schema_path};
use crate::stream;
use crate::validate::title;
use crate::validate::validator::{InvalidCrds, MissingSchemas, Validator};
use rayon::prelude::*;
use scantling_value::{Path, Segment};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The measured cost of one rule.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Measured {
    /// The number of evaluations.
    pub(super) evaluations: u64,
    /// The most expensive evaluation.
    pub(super) max_cost: u64,
    /// The sum of all evaluations.
    pub(super) total_cost: u64,
}

impl Measured {
    fn add(&mut self, other: &Measured) {
        self.evaluations += other.evaluations;
        self.max_cost = self.max_cost.max(other.max_cost);
        self.total_cost = self.total_cost.saturating_add(other.total_cost);
    }
}

/// The cost of the rules of an object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectCost {
    file: Arc<str>,
    kind: String,
    namespace: String,
    name: String,
    cel_cost: u64,
}

impl ReportItem for ObjectCost {
    fn subject(&self) -> ReportSubject {
        ReportSubject {
            file: Arc::clone(&self.file),
            name: title(&self.kind, &self.namespace, &self.name),
            outcome: format!("the rules that ran cost {}", self.cel_cost),
            ..ReportSubject::default()
        }
    }
}

/// Identifies a rule: CRD, version, path of its schema, index.
type RuleKey = (String, String, String, usize);

/// All measurements.
#[derive(Debug, Default)]
pub(super) struct Measurements {
    rules: BTreeMap<RuleKey, Measured>,
    pub(super) objects: Vec<ObjectCost>,
}

impl Measurements {
    /// The cost of a rule.
    pub(super) fn rule(&self, name: &str, version: &str, path: &str, index: usize) -> Measured {
        let key = (name.to_owned(), version.to_owned(), path.to_owned(), index);
        // A rule without measurements did not run, which is reported as zero evaluations.
        self.rules.get(&key).copied().unwrap_or_default()
    }

    /// Measures all objects in some files.
    pub(super) fn measure_files(
        &mut self,
        catalog: &Catalog,
        sources: &[InputSource],
        target: args::TargetFlags,
    ) -> Vec<Problem> {
        let validator = validator(catalog, target);
        let mut failed = Vec::new();
        let mut problems = stream::each_document(
            sources,
            |document| {
                let objects = document.objects()?.into_iter();
                let all = objects.map(|object| measure(&validator, document.file, object));
                all.collect::<Result<Vec<_>, Problem>>()
            },
            |measured| match measured {
                Ok(all) => all.into_iter().flatten().for_each(|one| self.add(one)),
                Err(problem) => failed.push(problem),
            },
        );
        problems.extend(failed);
        problems
    }

    /// Measures all objects of the CRDs in a cluster.
    pub(super) fn measure_cluster(
        &mut self,
        catalog: &Catalog,
        cluster: &Cluster,
        target: args::TargetFlags,
    ) -> Vec<Problem> {
        let validator = validator(catalog, target);
        let each = |file: &Arc<str>, objects: Vec<InputObject>| {
            let all = objects.into_par_iter().map(|o| measure(&validator, file, o));
            let all: Vec<_> = all.collect::<Result<_, Problem>>()?;
            all.into_iter().flatten().for_each(|one| self.add(one));
            Ok(())
        };
        cluster.each_page(catalog, each)
    }

    fn add(&mut self, (object, rules): ObjectMeasurement) {
        self.objects.push(object);
        for (key, measured) in rules {
            self.rules.entry(key).or_default().add(&measured);
        }
    }
}

/// The measurements of one object.
type ObjectMeasurement = (ObjectCost, BTreeMap<RuleKey, Measured>);

fn validator(catalog: &Catalog, target: args::TargetFlags) -> Validator<'_> {
    Validator {
        missing: MissingSchemas::Skipped,
        // CRDs that a cluster refuses are measured too: the user is probably lowering the cost of one.
        invalid_crds: InvalidCrds::Used,
        ..Validator::new(catalog, target)
    }
}

fn measure(
    validator: &Validator<'_>,
    file: &Arc<str>,
    object: InputObject,
) -> Result<Option<ObjectMeasurement>, Problem> {
    let Some(found) = validator.catalog.find(object.api_version(), object.kind()) else {
        return Ok(None);
    };
    let definition = found.entry.definition.name().to_owned();
    let version = found.version().map(|v| v.name.to_string()).unwrap_or_default();
    // A meter is a shared closure, but one object is validated on one thread.
    let rules = RefCell::new(BTreeMap::<RuleKey, Measured>::new());
    let meter = |at: &Path<'_>, index: usize, cost: u64| {
        // The path without indices and keys: evaluations for all elements belong to the one rule.
        let key = (definition.clone(), version.clone(), value_schema_path(at), index);
        let run = Measured {
            evaluations: 1,
            max_cost: cost,
            total_cost: cost,
        };
        rules.borrow_mut().entry(key).or_default().add(&run);
    };
    let report = validator.object(file, object, &meter)?;
    let rules = rules.into_inner();
    Ok(report.map(|report| {
        let object = ObjectCost {
            file: report.file,
            kind: report.kind,
            namespace: report.namespace,
            name: report.name,
            cel_cost: report.cel_cost,
        };
        (object, rules)
    }))
}

/// The schema of the value at a path.
fn value_schema_path(at: &Path<'_>) -> String {
    let steps = at.segments().into_iter().map(|segment| match segment {
        Segment::Field(name) => SchemaStep::Property(name.to_owned()),
        Segment::Key(_) => SchemaStep::Additional,
        Segment::Index(_) => SchemaStep::Items,
    });
    schema_path(&steps.collect::<Vec<_>>())
}
