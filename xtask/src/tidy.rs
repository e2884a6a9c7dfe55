//! `cargo xtask tidy`: the rules that the tree sets itself, each with the reason in its message.

use crate::run::{cargo, output, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Which of our crates a crate may use, and what it must never reach. Dependencies point downward only.
struct Layer {
    name: &'static str,
    may: &'static [&'static str],
    pure: bool,
}

const LAYERS: &[Layer] = &[
    Layer {
        name: "scantling-value",
        may: &[],
        pure: true,
    },
    Layer {
        name: "scantling-notation",
        may: &["scantling-value"],
        pure: true,
    },
    Layer {
        name: "scantling-cel",
        may: &["scantling-value", "scantling-notation"],
        pure: true,
    },
    Layer {
        name: "scantling-apitypes",
        may: &["scantling-value", "scantling-notation"],
        pure: true,
    },
    Layer {
        name: "scantling-schema",
        may: &["scantling-value", "scantling-apitypes", "scantling-cel"],
        pure: true,
    },
    Layer {
        name: "scantling-merge",
        may: &["scantling-value", "scantling-cel", "scantling-schema"],
        pure: true,
    },
    Layer {
        name: "scantling-admit",
        may: &["scantling-value", "scantling-cel", "scantling-schema"],
        pure: true,
    },
    Layer {
        name: "scantling-store",
        may: &[],
        pure: false,
    },
    Layer {
        name: "scantling-server",
        may: &[
            "scantling-value",
            "scantling-apitypes",
            "scantling-cel",
            "scantling-schema",
            "scantling-admit",
            "scantling-merge",
            "scantling-store",
        ],
        pure: false,
    },
];

/// What a pure crate never depends on.
const IMPURE: &[&str] = &[
    "tokio", "hyper", "http", "tracing", "rand", "reqwest", "kube", "rayon",
];

const LONGEST_FILE: usize = 1000;

/// Checks everything and reports all findings at once.
pub(crate) fn tidy() -> Result<(), String> {
    let mut found = layers()?;
    found.extend(sources(&root())?);
    if found.is_empty() {
        println!("tidy: no findings");
        return Ok(());
    }
    Err(found.join("\n"))
}

fn layers() -> Result<Vec<String>, String> {
    let (ok, text) = output(&mut cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ]))?;
    if !ok {
        return Err("cargo metadata failed".to_owned());
    }
    let metadata: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| format!("cargo metadata: {e}"))?;
    let mut found = Vec::new();
    let list =
        |v: &serde_json::Value, key: &str| v.get(key).and_then(|l| l.as_array()).cloned().unwrap_or_default();
    let text =
        |v: &serde_json::Value, key: &str| v.get(key).and_then(|t| t.as_str()).unwrap_or_default().to_owned();
    for package in list(&metadata, "packages") {
        let Some(layer) = LAYERS.iter().find(|l| text(&package, "name") == l.name) else {
            continue;
        };
        for dependency in list(&package, "dependencies") {
            if !text(&dependency, "kind").is_empty() {
                continue; // Tests may use what they like.
            }
            let name = text(&dependency, "name");
            let name = name.as_str();
            if name.starts_with("scantling-") && !layer.may.contains(&name) {
                found.push(format!(
                    "{} depends on {name}: dependencies point downward only",
                    layer.name
                ));
            }
            if layer.pure && IMPURE.contains(&name) {
                found.push(format!(
                    "{} depends on {name}: layers 0 to 2 are pure functions",
                    layer.name
                ));
            }
        }
    }
    Ok(found)
}

fn sources(root: &Path) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    for folder in ["attack", "crates", "xtask", "bench", "fuzz"] {
        collect(&root.join(folder), &mut files)?;
    }
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let text = fs::read_to_string(&file).map_err(|e| format!("{name}: {e}"))?;
        let n = text.lines().count();
        if n > LONGEST_FILE {
            found.push(format!(
                "{name}: {n} lines are more than a reader can hold in mind: find a seam to split at"
            ));
        }
        if !text.starts_with("//!") && !text.starts_with("#!") {
            found.push(format!(
                "{name}: begins without a module comment that says what it is for"
            ));
        }
        if text.contains(concat!("#[ign", "ore")) {
            found.push(format!(
                "{name}: an ignored test hides what is wrong; assert the present behaviour instead"
            ));
        }
        if file.file_name().is_some_and(|f| f == "mod.rs") {
            found.push(format!("{name}: modules are `name.rs` beside `name/`"));
        }
    }
    Ok(found)
}

fn collect(folder: &Path, out: &mut Vec<PathBuf>) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|n| n != "target") {
                collect(&path, out)?;
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
    out.sort();
    Ok(())
}
