//! `scantling upgrade`: compares two sets of CRDs, and checks the effect on existing objects.

mod changes;
mod compatibility;
mod expressions;
mod object;
mod schemas;
#[cfg(test)]
mod tests;

use crate::args;
use crate::catalog::{Catalog, CrdTexts, OtherObjects};
use crate::cluster;
use crate::files;
use crate::policy::{self, Fingerprint, Policy};
use crate::problem::{ExitStatus, Problem, note};
use crate::render::{self, RenderedItem, Report};
use crate::report::count;
use crate::stream;
use crate::walk;
use object::{ObjectUpgrade, UpgradeCheck, UpgradeOutcome};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Instant;

/// Compares the CRDs and checks the objects.
pub(crate) fn run(flags: &args::Upgrade) -> Result<ExitStatus, Problem> {
    let begun = Instant::now();
    let policy = Policy::new(&flags.control)?;
    let (from, mut problems) = files::find_schemas(&flags.from, &flags.read);
    let (to, more) = files::find_schemas(&flags.to, &flags.read);
    problems.extend(more);
    let (sources, more) = files::find(flags.filename.iter().chain(&flags.paths), &flags.read);
    problems.extend(more);
    let cluster = cluster::asked_for(&flags.cluster)?;
    let (mut before, mut after) = (
        Catalog::new(flags.target_before(), CrdTexts::Kept),
        Catalog::new(flags.target, CrdTexts::Kept),
    );
    problems.extend(after.load(&to, OtherObjects::Listed));
    match &cluster {
        Some(cluster) if flags.from.is_empty() => {
            // Other CRDs of the cluster are not part of this upgrade, and would be reported as removed.
            let wanted = |name: &str| after.entries().iter().any(|e| e.definition.name() == name);
            problems.extend(before.load_from(cluster, wanted));
        }
        _ => problems.extend(before.load(&from, OtherObjects::Listed)),
    }
    let mut report = Report::begin("UpgradeReport", "upgrade", &flags.output);
    report.section("definitions");
    let mut definitions = changes::compare(&before, &after);
    let mut baseline = BTreeSet::new();
    for definition in &mut definitions {
        definition.apply_policy(&policy);
        // After the policy: a baseline has the findings that a run reports.
        baseline.extend(definition.fingerprints());
        report.write_item(definition)?;
    }
    report.section("items");
    let check = UpgradeCheck {
        before: &before,
        after: &after,
        gates: flags.target.feature_gates,
        policy: &policy,
    };
    let renderer = report.renderer();
    let (mut unusable, mut skipped) = (Vec::new(), Vec::new());
    let mut summary = UpgradeSummary {
        definitions: definitions.len(),
        ..UpgradeSummary::default()
    };
    let fail_on = flags.output.fail_on;
    let unread = stream::each_document(
        &sources,
        |document| check.document(document, &renderer),
        |checked| match checked {
            Ok(checked) => {
                summary.record(checked.items, &mut report, fail_on, &mut baseline);
                summary.skipped += checked.skipped.len();
                if flags.output.verbose {
                    skipped.extend(checked.skipped);
                }
            }
            Err(problem) => unusable.push(problem),
        },
    );
    problems.extend(unread);
    problems.extend(unusable);
    if let Some(cluster) = &cluster {
        // Objects are listed in the version that is installed, because the new one may not be served yet.
        problems.extend(cluster.each_page(&before, |file, objects| {
            let items = check.cluster_objects(file, objects, &renderer)?;
            summary.record(items, &mut report, fail_on, &mut baseline);
            Ok(())
        }));
    }
    let all: Vec<_> = from.into_iter().chain(to).chain(sources).collect();
    let (problems, skipped_files) = walk::skip_other_files(problems, &all);
    report.write_problems(&problems)?;
    let line = summary.line(begun);
    report.end(flags.output.shows_summary().then_some((line.as_str(), &summary)))?;
    if flags.output.verbose {
        before.note_skipped();
        after.note_skipped();
        for file in &skipped_files {
            note(&format!("{}: skipped: {}", file.file, file.reason));
        }
        for object in &skipped {
            note(&format!(
                "{object}: skipped: its kind is not built in, and neither set of CRDs defines it"
            ));
        }
    }
    if let Some(file) = &flags.control.write_baseline {
        policy::write_baseline(file, &baseline)?;
    }
    let failed = summary.failed || definitions.iter().any(|definition| definition.fails(fail_on));
    Ok(ExitStatus::after(failed, &problems))
}

#[derive(Debug, Default, Serialize)]
struct UpgradeSummary {
    definitions: usize,
    ok: usize,
    ratcheted: usize,
    refused: usize,
    /// Objects of unknown kinds.
    skipped: usize,
    /// True if a finding makes the command fail.
    #[serde(skip)]
    failed: bool,
}

impl UpgradeSummary {
    fn record(
        &mut self,
        items: impl IntoIterator<Item = (ObjectUpgrade, RenderedItem)>,
        report: &mut Report,
        fail_on: args::FailOn,
        baseline: &mut BTreeSet<Fingerprint>,
    ) {
        for (item, piece) in items {
            match item.outcome {
                UpgradeOutcome::Ok => self.ok += 1,
                UpgradeOutcome::Ratcheted => self.ratcheted += 1,
                UpgradeOutcome::Refused => self.refused += 1,
            }
            self.failed |= item.fails(fail_on);
            baseline.extend(item.fingerprints());
            report.add(piece);
        }
    }

    fn line(&self, begun: Instant) -> String {
        let UpgradeSummary {
            ok,
            ratcheted,
            refused,
            skipped,
            ..
        } = self;
        let all = count(ok + ratcheted + refused, "object");
        let skipped = match skipped {
            0 => String::new(),
            skipped => format!(", {skipped} skipped"),
        };
        let definitions = count(self.definitions, "CRD");
        let line =
            format!("{definitions}, {all}: {ok} ok, {ratcheted} ratcheted, {refused} refused{skipped}");
        line + &render::elapsed(begun)
    }
}
