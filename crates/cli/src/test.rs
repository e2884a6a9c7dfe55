//! `scantling test`: table tests for CRDs.

mod branches;
mod coverage;
mod openshift;
mod run;
mod suite;
mod update;
mod watch;

use crate::args;
use crate::catalog::{self, Catalog, CrdTexts, OtherObjects};
use crate::files::{self, InputSource};
use crate::input::{Document, InputObject};
use crate::locate::{DocumentLocator, Location};
use crate::problem::{ExitStatus, Problem};
use crate::render::Report;
use crate::report::{Finding, ReportItem, ReportSubject, Severity, count};
use crate::stream;
use crate::walk;
use coverage::{Coverage, CoveragePlan};
use rayon::prelude::*;
use run::{CaseOutcome, CaseRunner};
use scantling_value::Value;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use suite::{Suite, TestCase};

/// Runs test files; with `--watch`, again whenever one of them or of their CRDs changes.
pub(crate) fn run(flags: &args::Test) -> Result<ExitStatus, Problem> {
    if flags.watch {
        watch::run(flags)
    } else {
        let (sources, problems) = files::find(&flags.paths, &flags.read);
        run_suites(flags, &sources, problems).map(|outcome| outcome.status)
    }
}

/// The outcome of a run.
struct RunOutcome {
    status: ExitStatus,
    /// The files that each test file reads its CRDs from.
    crds: BTreeMap<Arc<str>, Vec<PathBuf>>,
}

/// Runs the test files among sources.
fn run_suites(
    flags: &args::Test,
    sources: &[InputSource],
    mut problems: Vec<Problem>,
) -> Result<RunOutcome, Problem> {
    let (crds, more) = files::find_schemas(&flags.crds, &flags.read);
    problems.extend(more);
    let mut shared = Catalog::new(flags.target, CrdTexts::Dropped);
    if !crds.is_empty() {
        problems.extend(shared.load(&crds, OtherObjects::Listed));
    }
    let mut results = Vec::new();
    let tests = Tests {
        flags,
        shared: &shared,
        explicit: flags
            .paths
            .iter()
            .filter(|path| !path.is_dir())
            .cloned()
            .collect(),
    };
    problems.extend(stream::each_document(
        sources,
        |document| (Arc::clone(document.file), tests.document(document)),
        |found: (Arc<str>, FileResults)| results.push(found),
    ));
    let mut report = Report::begin("TestReport", "test", &flags.output);
    report.section("items");
    let mut summary = TestSummary::default();
    let mut coverage = Coverage::default();
    let mut crds: BTreeMap<Arc<str>, Vec<PathBuf>> = BTreeMap::new();
    for (file, result) in results {
        for item in &result.items {
            summary.count(item);
            report.write_item(item)?;
        }
        coverage.add(result.coverage);
        problems.extend(result.problems);
        crds.entry(file).or_default().extend(result.crds);
    }
    report.write_problems(&problems)?;
    let mut unexercised = 0;
    if flags.coverage {
        report.section("coverage");
        for item in coverage.items() {
            unexercised += 1;
            report.write_item(&item)?;
        }
    }
    let mut line = summary.line();
    if flags.coverage {
        line.push_str(&format!(", {} not exercised", count(unexercised, "constraint")));
    }
    report.end(Some((line.as_str(), &summary)))?;
    // A run without cases would pass in CI although a renamed file silently dropped its tests.
    if summary.passed + summary.failed == 0 && problems.is_empty() {
        let hint = "test files end in .test.yaml, _test.yaml or .testsuite.yaml, or are named one by one";
        return Err(Problem::plain("no test cases").hint(hint));
    }
    Ok(RunOutcome {
        status: ExitStatus::after(summary.failed > 0, &problems),
        crds,
    })
}

/// The results of a test file.
#[derive(Default)]
struct FileResults {
    items: Vec<CaseReport>,
    coverage: Coverage,
    problems: Vec<Problem>,
    /// The files that the CRDs were read from.
    crds: Vec<PathBuf>,
}

/// A CRD under test, and its catalog.
struct TestTarget {
    /// The manifest, for suites that run against several.
    title: String,
    document: Option<Value>,
    catalog: Catalog,
}

struct Tests<'a> {
    flags: &'a args::Test,
    shared: &'a Catalog,
    /// The files named by the user: they are test files whatever their names.
    explicit: Vec<PathBuf>,
}

/// The target of a case.
enum Against<'a> {
    Shared(&'a Catalog),
    Own(&'a TestTarget),
}

impl<'a> Against<'a> {
    fn catalog(&self) -> &'a Catalog {
        match self {
            Against::Shared(catalog) => catalog,
            Against::Own(target) => &target.catalog,
        }
    }

    /// The CRD, if the suite runs against several.
    fn document(&self) -> Option<&'a Value> {
        match self {
            Against::Shared(_) => None,
            Against::Own(target) => target.document.as_ref(),
        }
    }

    /// The manifest after the name of the suite.
    fn title(&self) -> String {
        match self {
            Against::Own(target) if !target.title.is_empty() => format!(" [{}]", target.title),
            _ => String::new(),
        }
    }
}

impl Tests<'_> {
    /// Returns whether a file is a test file.
    fn is_test_file(&self, file: &str) -> bool {
        const ENDS: [&str; 6] = [
            ".test.yaml",
            ".test.yml",
            "_test.yaml",
            "_test.yml",
            ".testsuite.yaml",
            ".testsuite.yml",
        ];
        let path = Path::new(file);
        let is_openshift = || {
            // Suites of openshift/api are `tests/<crd>/<name>.yaml`: only the folder distinguishes them.
            let folder = path.parent().and_then(Path::parent).and_then(Path::file_name);
            folder.is_some_and(|name| name == "tests")
        };
        ENDS.iter().any(|end| file.ends_with(end))
            || self.explicit.iter().any(|p| p == path)
            || is_openshift()
    }

    /// Runs the cases of a document.
    fn document(&self, document: &Document<'_>) -> FileResults {
        let mut results = FileResults::default();
        if !self.is_test_file(document.file) {
            return results;
        }
        let value = match document.value() {
            // An empty document, such as the one before a leading `---`, has no suite and is not an error.
            Ok(Value::Null) => return results,
            Ok(value) => value,
            Err(problem) => {
                results.problems.push(problem);
                return results;
            }
        };
        if openshift::is_suite(&value) {
            if let Err(why) = self.openshift(document, &value, &mut results) {
                results.problems.push(Problem::in_file(document.file, None, why));
            }
            return results;
        }
        let suite = match Suite::read(&value) {
            Ok(suite) => suite,
            Err(error) => {
                let locator = DocumentLocator::new(document);
                let place = locator.locations(&[locator.path(&[], &error.at)]).pop().flatten();
                results
                    .problems
                    .push(Problem::in_file(document.file, place, &error.message));
                return results;
            }
        };
        match self.targets(document.file, &suite, &mut results.crds) {
            Ok(targets) => self.suite(document, &suite, &targets, &mut results),
            Err(problems) => results.problems.extend(problems),
        }
        results
    }

    /// The CRDs that a suite names; `None` if it uses those of `--crds`.
    fn targets(
        &self,
        file: &str,
        suite: &Suite,
        crds: &mut Vec<PathBuf>,
    ) -> Result<Vec<TestTarget>, Vec<Problem>> {
        if suite.crds.is_empty() {
            return Ok(Vec::new());
        }
        // CRDs are relative to the suite, so that a suite runs from any working directory.
        let folder = Path::new(file).parent().unwrap_or(Path::new("."));
        let paths: Vec<PathBuf> = suite
            .crds
            .iter()
            .map(|path| walk::lexically_joined(folder, path))
            .collect();
        let (sources, mut problems) = files::find(&paths, &self.flags.read);
        crds.extend(sources.iter().map(|source| PathBuf::from(&*source.name)));
        let mut catalog = Catalog::new(self.flags.target, CrdTexts::Dropped);
        problems.extend(catalog.load(&sources, OtherObjects::Listed));
        // A suite with a broken CRD does not run: its failures would only repeat the problem.
        match problems.is_empty() {
            true => Ok(vec![TestTarget {
                title: String::new(),
                document: None,
                catalog,
            }]),
            false => Err(problems),
        }
    }

    fn openshift(
        &self,
        document: &Document<'_>,
        value: &Value,
        results: &mut FileResults,
    ) -> Result<(), String> {
        let suite = openshift::read(value)?;
        let limit = self.flags.read.max_input_bytes;
        let read = |path: &Path| files::read(path, limit).map_err(|e| format!("{}: {e}", path.display()));
        let mut targets = Vec::new();
        for manifest in openshift::manifests(&suite, Path::new(&**document.file), &read)? {
            let title = manifest
                .file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            results.crds.push(manifest.file.clone());
            let crd = openshift::with_version(manifest.document, suite.version.as_deref())?;
            let catalog = self.catalog_of(&title, crd.clone())?;
            targets.push(TestTarget {
                title,
                document: Some(crd),
                catalog,
            });
        }
        self.suite(document, &suite.suite, &targets, results);
        Ok(())
    }

    /// A catalog of one CRD.
    fn catalog_of(&self, file: &str, crd: Value) -> Result<Catalog, String> {
        let object = InputObject {
            value: crd,
            found_in_text: Vec::new(),
            index: Vec::new(),
        };
        let entry = catalog::entry(&file.into(), object, self.flags.target)?;
        let mut catalog = Catalog::new(self.flags.target, CrdTexts::Dropped);
        catalog.add(entry);
        Ok(catalog)
    }

    fn suite(
        &self,
        document: &Document<'_>,
        suite: &Suite,
        targets: &[TestTarget],
        results: &mut FileResults,
    ) {
        let locator = DocumentLocator::new(document);
        let spots: Vec<_> = suite
            .cases
            .iter()
            .map(|case| locator.path(&[], &case.at))
            .collect();
        let places = locator.locations(&spots);
        let against: Vec<Against<'_>> = match targets {
            [] => vec![Against::Shared(self.shared)],
            targets => targets.iter().map(Against::Own).collect(),
        };
        let mut updates = Vec::new();
        // The items whose expectations are rewritten. A refused CRD and a case that cannot run stay failures.
        let mut updated_items = Vec::new();
        for against in &against {
            results.items.extend(self.refused_crds(document, suite, against));
            let plan = match self.coverage_plan(against.catalog()) {
                Ok(plan) => plan,
                Err(why) => {
                    results.problems.push(Problem::in_file(document.file, None, why));
                    None
                }
            };
            let runs: Vec<(CaseOutcome, Coverage)> = suite
                .cases
                .par_iter()
                .map(|case| self.case(case, against, plan.as_ref()))
                .collect();
            for ((case, (outcome, covered)), place) in suite.cases.iter().zip(runs).zip(&places) {
                results.coverage.add(covered);
                if self.flags.update
                    // Several manifests share the cases of a file, and may need different expectations.
                    && targets.iter().all(|t| t.title.is_empty())
                    && !outcome.failures.is_empty()
                    && outcome.has_run
                {
                    updates.push(update::NewExpectation::new(case, &outcome));
                    updated_items.push(results.items.len());
                }
                results.items.push(CaseReport {
                    file: Arc::clone(document.file),
                    suite: format!("{}{}", suite.name, against.title()),
                    name: case.name.clone(),
                    passed: outcome.failures.is_empty(),
                    older_message: outcome.has_older_message,
                    failures: outcome.failures,
                    cel_cost: outcome.cost,
                    place: place.clone(),
                });
            }
        }
        if !updates.is_empty() {
            let updated = update::apply(Path::new(&**document.file), document.start.line, &updates);
            match updated {
                Ok(()) => {
                    for at in updated_items {
                        if let Some(item) = results.items.get_mut(at) {
                            item.passed = true;
                            item.failures.clear();
                        }
                    }
                }
                Err(why) => results.problems.push(Problem::in_file(document.file, None, why)),
            }
        }
    }

    /// The CRDs of a suite that a cluster refuses. Its cases still run, because they show what the rest of
    /// the CRD does.
    fn refused_crds(&self, document: &Document<'_>, suite: &Suite, against: &Against<'_>) -> Vec<CaseReport> {
        let catalog = against.catalog();
        let refused = catalog.entries().iter().filter_map(|entry| {
            let errors = catalog.refused(entry);
            (!errors.is_empty()).then(|| CaseReport {
                file: Arc::clone(document.file),
                suite: format!("{}{}", suite.name, against.title()),
                name: format!("a cluster accepts the CRD {}", entry.definition.name()),
                passed: false,
                older_message: false,
                failures: errors.iter().map(ToString::to_string).collect(),
                cel_cost: 0,
                place: None,
            })
        });
        refused.collect()
    }

    /// The constraints of CRDs, if coverage is requested.
    fn coverage_plan(&self, catalog: &Catalog) -> Result<Option<CoveragePlan>, String> {
        match self.flags.coverage {
            true => CoveragePlan::new(catalog, self.flags.target).map(Some),
            false => Ok(None),
        }
    }

    fn case(
        &self,
        case: &TestCase,
        against: &Against<'_>,
        plan: Option<&CoveragePlan>,
    ) -> (CaseOutcome, Coverage) {
        let (catalog, document) = (against.catalog(), against.document());
        let initial = match self.initial_catalog(case, catalog, document) {
            Ok(initial) => initial,
            Err(why) => {
                let outcome = CaseOutcome {
                    failures: vec![why],
                    ..CaseOutcome::default()
                };
                return (outcome, Coverage::default());
            }
        };
        let runner = CaseRunner {
            catalog,
            initial: initial.as_ref(),
            gates: self.flags.target.feature_gates,
        };
        let outcome = runner.run(case);
        let Some(plan) = plan else {
            return (outcome, Coverage::default());
        };
        let variants = plan.branches.as_ref().map(|branches| CaseRunner {
            catalog: &branches.catalog,
            // The stored object precedes the write under test, so it meets the original rules and not the variants.
            initial: Some(initial.as_ref().unwrap_or(catalog)),
            ..runner
        });
        let variants = variants.map_or_else(Vec::new, |runner| runner.run(case).errors);
        let covered = plan.of_case(case, &outcome, &variants);
        (outcome, covered)
    }

    /// The CRD under which the object of a case was stored, if the case changes it.
    fn initial_catalog(
        &self,
        case: &TestCase,
        catalog: &Catalog,
        document: Option<&Value>,
    ) -> Result<Option<Catalog>, String> {
        let Some(patch) = &case.initial_crd_patch else {
            return Ok(None);
        };
        let document = match document {
            Some(document) => document.clone(),
            None => {
                // With several CRDs, it would be ambiguous which one the patch changes.
                let [entry] = catalog.entries() else {
                    return Err("`initialCrdPatch` needs a suite with exactly one CRD".into());
                };
                // Encoded in its own API version, because the paths of the patch are written for the file.
                entry.definition.encode(entry.api)
            }
        };
        let crd = run::patched(&document, patch)?;
        self.catalog_of("patched CRD", crd).map(Some)
    }
}

/// The result of a case.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CaseReport {
    file: Arc<str>,
    suite: String,
    name: String,
    passed: bool,
    /// True if the case expects a message of an older release of Kubernetes.
    older_message: bool,
    failures: Vec<String>,
    cel_cost: u64,
    #[serde(flatten)]
    place: Option<Location>,
}

impl ReportItem for CaseReport {
    fn subject(&self) -> ReportSubject {
        let place = self.place.as_ref();
        let finding = |text: &String| Finding::new(Severity::Error, "TestFailure", text.clone(), place);
        let name = match self.suite.is_empty() {
            true => self.name.clone(),
            false => format!("{}: {}", self.suite, self.name),
        };
        ReportSubject {
            file: Arc::clone(&self.file),
            location: self.place.clone(),
            name,
            findings: self.failures.iter().map(finding).collect(),
            outcome: match self.older_message {
                true => "passed, with the message of an older release of Kubernetes".to_owned(),
                false => "passed".to_owned(),
            },
            details: vec![format!("rules cost {}", self.cel_cost)],
            ..ReportSubject::default()
        }
    }
}

/// The numbers of a run.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct TestSummary {
    passed: usize,
    failed: usize,
    /// The number of passed cases that expect a message of an older release.
    older_messages: usize,
}

impl TestSummary {
    fn count(&mut self, item: &CaseReport) {
        self.older_messages += usize::from(item.older_message);
        match item.passed {
            true => self.passed += 1,
            false => self.failed += 1,
        }
    }

    fn line(&self) -> String {
        let mut line = format!("{} passed, {} failed", self.passed, self.failed);
        if self.older_messages > 0 {
            line.push_str(&format!(
                " ({} with messages of older releases of Kubernetes)",
                self.older_messages
            ));
        }
        line
    }
}
