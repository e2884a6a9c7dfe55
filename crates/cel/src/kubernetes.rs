//! The CEL environments of Kubernetes versions.

use crate::env::{BaseEnv, EnvOptions, ReservedFields, Semantics, Validation};
use crate::library::{
    authz, comprehensions, format, lists, net, optional, quantity, regex, semver, sets, standard, strings,
    url,
};
use crate::overload::{Library, Ty};
use crate::syntax::{Macros, ParseOptions};

/// A version of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    /// `1`
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

impl KubernetesVersion {
    /// The newest supported version.
    pub const LATEST: KubernetesVersion = KubernetesVersion::new(1, 37);

    /// Creates a version.
    pub const fn new(major: u32, minor: u32) -> Self {
        KubernetesVersion { major, minor }
    }

    /// The previous minor version. New expressions may only use its libraries, so that a downgrade remains possible.
    const fn previous_minor(self) -> Self {
        KubernetesVersion::new(self.major, self.minor.saturating_sub(1))
    }
}

/// The environment of a server of that version for new expressions.
pub fn for_new_expressions(version: KubernetesVersion) -> BaseEnv {
    scope(version.previous_minor())
}

/// The environment of a server of that version for new selectors of devices, which may bind names (`cel.bind`).
pub fn for_new_selectors(version: KubernetesVersion) -> BaseEnv {
    scope_with(version.previous_minor(), Macros::BIND)
}

/// The environment of a server of that version for expressions that are already stored.
pub fn for_stored_expressions(version: KubernetesVersion) -> BaseEnv {
    scope(version)
}

/// Libraries and the range of versions that have them. Overloads are tried in this order.
struct LibraryRange {
    since: KubernetesVersion,
    until: Option<KubernetesVersion>,
    libraries: &'static [&'static Library],
}

const fn since(minor: u32, libraries: &'static [&'static Library]) -> LibraryRange {
    LibraryRange {
        since: KubernetesVersion::new(1, minor),
        until: None,
        libraries,
    }
}

const fn until(minor: u32, libraries: &'static [&'static Library]) -> LibraryRange {
    LibraryRange {
        since: KubernetesVersion::new(1, 0),
        until: Some(KubernetesVersion::new(1, minor)),
        libraries,
    }
}

/// Type names that only the checker knows; evaluating them is an error.
static SCHEMA_TYPES: Library = Library {
    name: "schema types",
    overloads: &[],
    types: &[("duration", Ty::Duration), ("timestamp", Ty::Timestamp)],
};

// The order is that of kube-apiserver's base environment, because it decides the order of candidate overloads.
static LIBRARY_RANGES: &[LibraryRange] = &[
    since(0, &standard::STANDARD),
    since(0, &[&SCHEMA_TYPES]),
    since(0, &[&url::URLS, &regex::REGEX]),
    // Since 1.37 the base environment adds the list functions last, together with `includes`.
    until(37, &[&lists::KUBERNETES]),
    since(27, &[&authz::AUTHORIZATION]),
    since(
        28,
        &[
            &standard::CROSS_TYPE_ORDER,
            &optional::OPTIONALS,
            &quantity::QUANTITIES,
        ],
    ),
    since(0, &[&strings::BASE]),
    since(29, &[&strings::FORMAT]),
    since(29, &[&sets::SETS]),
    since(30, &[&net::IPS, &net::CIDRS]),
    since(31, &[&format::FORMATS, &format::CONSTANTS]),
    since(31, &[&authz::AUTHORIZATION_SELECTORS]),
    since(32, &[&comprehensions::COMPREHENSIONS]),
    since(33, &[&semver::VERSIONS, &semver::NORMALIZING]),
    since(34, &[&lists::EXTENDED]),
    since(37, &[&lists::KUBERNETES, &lists::KUBERNETES_INCLUDES]),
];

fn scope(version: KubernetesVersion) -> BaseEnv {
    scope_with(version, Macros::NONE)
}

fn scope_with(version: KubernetesVersion, more: Macros) -> BaseEnv {
    let has = |minor| version >= KubernetesVersion::new(1, minor);
    // Macros are not rows of a library, because the parser expands them before functions are looked up.
    let mut macros = Macros::STANDARD | more;
    for (minor, more) in [
        (28, Macros::OPT_MAP | Macros::OPT_FLAT_MAP),
        (32, Macros::TWO_VARIABLES),
        (34, Macros::SORT_BY),
    ] {
        if has(minor) {
            macros = macros | more;
        }
    }
    let options = EnvOptions {
        parse: ParseOptions {
            macros,
            optional_syntax: has(28),
            ..ParseOptions::default()
        },
        reserved_fields: if has(31) {
            ReservedFields::Raw
        } else {
            ReservedFields::Escaped
        },
        // Lists and maps of mixed types are refused in every version; constants are validated since 1.29.
        validation: if has(29) {
            Validation::Constants
        } else {
            Validation::Aggregates
        },
        semantics: Semantics::Kubernetes,
    };
    LIBRARY_RANGES
        .iter()
        .filter(|range| version >= range.since && range.until.is_none_or(|until| version < until))
        .flat_map(|range| range.libraries)
        .fold(BaseEnv::new(options), |scope, library| scope.with(library))
}
