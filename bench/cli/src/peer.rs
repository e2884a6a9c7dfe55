//! kubeconform on the same YAML files, with schemas made of the same definitions.

use crate::{Taken, best, yaml};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MODULE: &str = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0";
/// The location of a kind's schema, in kubeconform's syntax.
const TEMPLATE: &str = "schemas/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json";

/// Prints objects per second of processor time, for many small files and for one file of many documents.
pub(crate) fn compare(program: &Path, at: &Path, definitions: &str, objects: &[String], times: usize) {
    let Some(peer) = install(at) else {
        println!("kubeconform cannot be installed: no comparison");
        return;
    };
    for definition in definitions.lines() {
        write_schemas(&serde_json::from_str(definition).unwrap(), at);
    }
    fs::create_dir(at.join("small")).unwrap();
    let mut documents = String::new();
    for (n, object) in objects.iter().enumerate() {
        let mut text = String::new();
        yaml(&serde_json::from_str(object).unwrap(), 0, &mut text);
        for copy in 0..5 {
            fs::write(at.join(format!("small/{n:05}-{copy}.yaml")), &text).unwrap();
        }
        documents.push_str("---\n");
        documents.push_str(&text);
    }
    fs::write(at.join("documents.yaml"), documents.repeat(times)).unwrap();
    println!(
        "\n{:44} {:>10} {:>12} {:>7}",
        "objects per second of processor time", "ours", "kubeconform", "ratio"
    );
    for (what, input, count) in [
        ("many small files", "small", objects.len() * 5),
        (
            "one file of many documents",
            "documents.yaml",
            objects.len() * times,
        ),
    ] {
        let crds = ["validate", "-q", "--crds", "definitions.json", input];
        let schemas = ["-ignore-missing-schemas", "-schema-location", TEMPLATE, input];
        let rate = |taken: Taken| count as f64 / taken.cpu.as_secs_f64();
        let ours = rate(best(Command::new(program), at, &crds));
        let theirs = rate(best(Command::new(&peer), at, &schemas));
        println!("{what:44} {ours:10.0} {theirs:12.0} {:7.1}", ours / theirs);
    }
}

fn install(at: &Path) -> Option<PathBuf> {
    // A program that is installed already spares the download.
    if let Ok(installed) = std::env::var("KUBECONFORM") {
        return Some(installed.into());
    }
    let status = Command::new("go")
        .args(["install", MODULE])
        .env("GOBIN", at)
        .status();
    status.ok().filter(|status| status.success())?;
    Some(at.join("kubeconform"))
}

/// Writes the schema of each version of a definition where kubeconform looks for it.
fn write_schemas(definition: &Value, at: &Path) {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = at.join("schemas").join(text(&spec["group"]));
    fs::create_dir_all(&group).unwrap();
    let kind = text(&spec["names"]["kind"]).to_lowercase();
    for version in spec["versions"].as_array().into_iter().flatten() {
        let schema = &version["schema"]["openAPIV3Schema"];
        let file = group.join(format!("{kind}_{}.json", text(&version["name"])));
        fs::write(file, schema.to_string()).unwrap();
    }
}
