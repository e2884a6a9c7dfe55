//! Feature gates: the switchable ones, and the treatment of all others.

mod kubernetes;

use kubernetes::{KUBERNETES, KubernetesGate};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The switchable features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// `CRDValidationRatcheting`: an update may keep invalid values unchanged.
    pub ratcheting: bool,
    /// `CustomResourceValidationExpressions`: `x-kubernetes-validations`.
    pub expressions: bool,
    /// `ServerSideFieldValidation`: unknown and duplicate fields are reported.
    pub field_validation: bool,
    /// `CustomResourceImmutability`: `x-kubernetes-immutable` and related keywords.
    pub immutability: bool,
    /// `CustomResourceUnions`: `x-kubernetes-unions`.
    pub unions: bool,
    /// `CustomResourceRulesOnCreate`: `appliesOnCreate` of a rule.
    pub rules_on_create: bool,
    /// `CBORServingAndStorage`: CBOR as a media type and as the storage encoding of custom resources.
    pub cbor: bool,
}

impl Default for Gates {
    /// The defaults of kube-apiserver; features that only Scantling has are off.
    fn default() -> Self {
        Gates {
            ratcheting: true,
            expressions: true,
            field_validation: true,
            immutability: false,
            unions: false,
            rules_on_create: false,
            cbor: false,
        }
    }
}

/// The stage of a feature. `AllAlpha` and `AllBeta` set the gates of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Alpha,
    Beta,
    General,
    Deprecated,
}

/// A switchable gate: its name, its stage and its field.
type SwitchableGate = (&'static str, Stage, fn(&mut Gates) -> &mut bool);

/// The switchable gates. Kubernetes 1.37 has locked or removed the first three; they can still be set here,
/// to validate CRDs as an older cluster does.
const SWITCHES: [SwitchableGate; 7] = [
    ("CRDValidationRatcheting", Stage::General, |gates| {
        &mut gates.ratcheting
    }),
    ("CustomResourceValidationExpressions", Stage::General, |gates| {
        &mut gates.expressions
    }),
    ("ServerSideFieldValidation", Stage::General, |gates| {
        &mut gates.field_validation
    }),
    ("CBORServingAndStorage", Stage::Alpha, |gates| &mut gates.cbor),
    ("CustomResourceImmutability", Stage::Alpha, |gates| {
        &mut gates.immutability
    }),
    ("CustomResourceUnions", Stage::Alpha, |gates| &mut gates.unions),
    ("CustomResourceRulesOnCreate", Stage::Alpha, |gates| {
        &mut gates.rules_on_create
    }),
];

fn switch(name: &str) -> Option<&'static SwitchableGate> {
    SWITCHES.iter().find(|(known, ..)| *known == name)
}

/// Gates of Kubernetes with visible effects that this server always or never has, by their defaults. Other
/// gates of Kubernetes concern components that this server does not have, or have no visible effect.
const FIXED: [&str; 11] = [
    "APIResponseCompression",
    "AllowUnsafeMalformedObjectDeletion",
    "CRDObservedGenerationTracking",
    "ConstrainedImpersonation",
    "CoordinatedLeaderElection",
    "CustomResourceFieldSelectors",
    "OpenAPIEnums",
    "ShardedListAndWatch",
    "StorageVersionAPI",
    "StorageVersionHash",
    "WatchList",
];

fn known(name: &str) -> Option<&'static KubernetesGate> {
    // Requests ask for gates, so they are found without a search through all names.
    static BY_NAME: LazyLock<BTreeMap<&str, &KubernetesGate>> = LazyLock::new(|| {
        let named = |gate: &'static KubernetesGate| gate.names().map(move |name| (name, gate));
        KUBERNETES.iter().flat_map(named).collect()
    });
    BY_NAME.get(name).copied()
}

/// Returns whether a gate of Kubernetes is on by default. Gates that were removed after graduation are on.
pub fn is_on_by_default(name: &str) -> bool {
    if let Some((_, _, field)) = switch(name) {
        return *field(&mut Gates::default());
    }
    known(name).is_none_or(|known| known.default)
}

/// The result of applying settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedGates {
    /// The gates.
    pub gates: Gates,
    /// Notes about settings without effect.
    pub notes: Vec<String>,
}

/// Parses a setting such as `WatchList=true`. As for kube-apiserver, the name may have the prefix `kube:`.
pub fn parse(setting: &str) -> Result<(String, bool), String> {
    let setting = setting.trim();
    let setting = setting.strip_prefix("kube:").unwrap_or(setting);
    let Some((name, value)) = setting.split_once('=') else {
        return Err(format!("missing bool value for {setting}"));
    };
    let (name, value) = (name.trim(), value.trim());
    let on = match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
        "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
        _ => {
            let quoted = scantling_value::go::quote(value);
            return Err(format!(
                "invalid value of {name}={value}, err: strconv.ParseBool: parsing {quoted}: invalid syntax"
            ));
        }
    };
    Ok((name.to_owned(), on))
}

impl Gates {
    /// Returns whether CRDs may have fields that Kubernetes does not know.
    pub fn extend_definitions(self) -> bool {
        self.immutability || self.unions || self.rules_on_create
    }

    /// Applies settings to the defaults. A single gate takes precedence over `AllAlpha` and `AllBeta`.
    pub fn apply(settings: &BTreeMap<String, bool>) -> Result<AppliedGates, String> {
        let mut applied = AppliedGates {
            gates: Gates::default(),
            notes: Vec::new(),
        };
        // Stages come first, because a single gate takes precedence.
        for (all, stage) in [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)] {
            if let Some(on) = settings.get(all) {
                applied.set_all(all, stage, *on, settings);
            }
        }
        for (name, on) in settings {
            if !matches!(name.as_str(), "AllAlpha" | "AllBeta") {
                applied.set(name, *on)?;
            }
        }
        Ok(applied)
    }
}

impl AppliedGates {
    fn set_all(&mut self, all: &str, stage: Stage, on: bool, settings: &BTreeMap<String, bool>) {
        for (_, _, field) in SWITCHES.iter().filter(|(_, own, _)| *own == stage) {
            *field(&mut self.gates) = on;
        }
        let mut fixed = KUBERNETES
            .iter()
            .filter(|known| known.stage == stage && known.default != on);
        let names = fixed.by_ref().flat_map(KubernetesGate::names);
        let names = names.filter(|name| FIXED.contains(name) && !settings.contains_key(*name));
        let names: Vec<&str> = names.collect();
        if !names.is_empty() {
            let (is, names) = (if on { "off" } else { "on" }, names.join(", "));
            self.notes.push(format!(
                "feature gate {all}={on} does not change what is always {is} here: {names}"
            ));
        }
    }

    /// Switches a gate. A gate that has no effect here is accepted with a note.
    fn set(&mut self, name: &str, on: bool) -> Result<(), String> {
        if let Some((_, _, field)) = switch(name) {
            *field(&mut self.gates) = on;
            return Ok(());
        }
        let Some(known) = known(name) else {
            return Err(format!("unrecognized feature gate: {name}"));
        };
        if known.locked && known.default != on {
            return Err(format!(
                "cannot set feature gate {name} to {on}, feature is locked to {}",
                known.default
            ));
        }
        match FIXED.contains(&name) {
            true if known.default == on => Ok(()),
            true if on => Err(format!(
                "cannot set feature gate {name} to true: this server does not have the feature"
            )),
            true => Err(format!(
                "cannot set feature gate {name} to false: this server always has the feature"
            )),
            false => {
                self.notes
                    .push(format!("feature gate {name}={on} has no effect on this server"));
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(text: &str) -> Result<AppliedGates, String> {
        let settings: Result<BTreeMap<_, _>, _> = text.split(',').map(parse).collect();
        Gates::apply(&settings?)
    }

    #[test]
    fn gate_names_are_unique() {
        let mut names: Vec<&str> = KUBERNETES.iter().flat_map(KubernetesGate::names).collect();
        names.extend(SWITCHES.iter().map(|(name, ..)| name));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(FIXED.iter().all(|name| names.contains(name)));
    }

    #[test]
    fn a_single_gate_overrides_its_stage() {
        let on = |text: &str| {
            let gates = apply(text).expect("applied").gates;
            [
                gates.immutability,
                gates.unions,
                gates.rules_on_create,
                gates.cbor,
            ]
        };
        for (text, want) in [
            ("AllBeta=true", [false; 4]),
            ("AllAlpha=true", [true; 4]),
            (
                "AllAlpha=true,CustomResourceUnions=false",
                [true, false, true, true],
            ),
            (
                "CustomResourceUnions=false,AllAlpha=true",
                [true, false, true, true],
            ),
            (
                "AllAlpha=false,CustomResourceUnions=true",
                [false, true, false, false],
            ),
            (
                "CBORServingAndStorage=T, kube:CustomResourceUnions = 1",
                [false, true, false, true],
            ),
        ] {
            assert_eq!(on(text), want, "{text}");
        }
        assert!(
            !apply("CRDValidationRatcheting=false")
                .expect("applied")
                .gates
                .ratcheting
        );
    }

    #[test]
    fn refused_gates() {
        for (text, want) in [
            ("Nonsense=true", "unrecognized feature gate: Nonsense"),
            ("watchlist=true", "unrecognized feature gate: watchlist"),
            ("WatchList", "missing bool value for WatchList"),
            (
                "WatchList=yes",
                "invalid value of WatchList=yes, err: strconv.ParseBool: parsing \"yes\": invalid syntax",
            ),
            (
                "WatchList=false",
                "cannot set feature gate WatchList to false: this server always has the feature",
            ),
            (
                "ShardedListAndWatch=true",
                "cannot set feature gate ShardedListAndWatch to true: this server does not have the feature",
            ),
            (
                "CustomResourceFieldSelectors=false",
                "cannot set feature gate CustomResourceFieldSelectors to false, feature is locked to true",
            ),
            (
                "KMSv1=true,SeparateCacheWatchRPC=true",
                "cannot set feature gate SeparateCacheWatchRPC to true, feature is locked to false",
            ),
        ] {
            assert_eq!(apply(text), Err(want.to_owned()), "{text}");
        }
    }

    #[test]
    fn gates_without_effect() {
        for (text, want) in [
            ("WatchList=true,CustomResourceFieldSelectors=true", &[][..]),
            (
                "GracefulNodeShutdown=false",
                &["feature gate GracefulNodeShutdown=false has no effect on this server"],
            ),
            (
                "AllAlpha=true",
                &[
                    "feature gate AllAlpha=true does not change what is always off here: ShardedListAndWatch, StorageVersionAPI",
                ],
            ),
            ("AllAlpha=false", &[]),
            (
                "AllBeta=true",
                &[
                    "feature gate AllBeta=true does not change what is always off here: CoordinatedLeaderElection",
                ],
            ),
        ] {
            let notes = apply(text).expect("applied").notes;
            assert_eq!(notes, want, "{text}");
        }
    }
}
