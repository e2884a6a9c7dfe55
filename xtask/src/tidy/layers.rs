//! The layers of the workspace.

use super::{array, string};
use serde_json::Value;

/// The crates of ours that a crate may use, and those that it must never reach. Dependencies point downward
/// only.
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
        name: "scantling-descriptions",
        may: &[],
        pure: true,
    },
    Layer {
        name: "scantling-schema",
        may: &[
            "scantling-value",
            "scantling-notation",
            "scantling-apitypes",
            "scantling-cel",
        ],
        pure: true,
    },
    Layer {
        name: "scantling-merge",
        may: &[
            "scantling-value",
            "scantling-notation",
            "scantling-apitypes",
            "scantling-cel",
            "scantling-schema",
        ],
        pure: true,
    },
    Layer {
        name: "scantling-builtin",
        may: &[
            "scantling-value",
            "scantling-notation",
            "scantling-apitypes",
            "scantling-cel",
            "scantling-schema",
        ],
        pure: true,
    },
    Layer {
        name: "scantling-admit",
        may: &[
            "scantling-value",
            "scantling-notation",
            "scantling-apitypes",
            "scantling-cel",
            "scantling-schema",
            "scantling-builtin",
        ],
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
            "scantling-notation",
            "scantling-builtin",
            "scantling-apitypes",
            "scantling-descriptions",
            "scantling-cel",
            "scantling-schema",
            "scantling-admit",
            "scantling-merge",
            "scantling-store",
        ],
        pure: false,
    },
];

/// Dependencies that pure crates must not have.
const IMPURE: &[&str] = &[
    "tokio", "hyper", "http", "tracing", "rand", "reqwest", "kube", "rayon",
];

/// Checks that dependencies between our crates point downward, and that pure crates stay pure.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    for package in array(metadata, "packages") {
        // Binaries and tools may use every crate, so only libraries have a layer.
        let Some(layer) = LAYERS.iter().find(|layer| string(package, "name") == layer.name) else {
            continue;
        };
        // Tests may use any crate.
        let normal = array(package, "dependencies")
            .iter()
            .filter(|d| string(d, "kind").is_empty());
        for name in normal.map(|dependency| string(dependency, "name")) {
            if name.starts_with("scantling-") && !layer.may.contains(&name) {
                findings.push(format!(
                    "{} depends on {name}: dependencies point downward only",
                    layer.name
                ));
            }
            if layer.pure && IMPURE.contains(&name) {
                findings.push(format!(
                    "{} depends on {name}: layers 0 to 2 are pure",
                    layer.name
                ));
            }
        }
    }
    findings
}
