//! The API types of one release, from its Go packages.

use super::git::Repository;
use super::go::{self, Body};
use std::collections::{BTreeMap, BTreeSet};

/// The types of a release, by package. Packages are named by the last two parts of their import paths
/// (`core/v1`), unversioned packages of the API machinery by the last one (`intstr`).
pub(super) type Release = BTreeMap<String, Package>;

/// A package of API types.
#[derive(Debug)]
pub(super) struct Package {
    /// The import path.
    pub(super) path: String,
    /// The API group, if the package is one version of it.
    pub(super) group: Option<String>,
    /// The types, in the order of the sources.
    pub(super) types: Vec<Type>,
}

/// A type.
#[derive(Clone, Debug)]
pub(super) struct Type {
    pub(super) name: String,
    pub(super) form: TypeForm,
    /// Further attributes, as written.
    pub(super) facts: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) enum TypeForm {
    Struct(Vec<Field>),
    /// A named type, defined by another.
    Named(String),
    /// A type with a custom encoding.
    Custom(&'static str),
}

/// A field, or the fields of an inlined struct.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// The JSON name; `None` for an inlined struct.
    pub(super) json: Option<String>,
    pub(super) ty: String,
    pub(super) facts: Vec<String>,
}

impl Field {
    /// Identifies the field within its struct.
    pub(super) fn key(&self) -> &str {
        self.json.as_deref().unwrap_or(&self.ty)
    }
}

/// Types with custom encodings.
const CUSTOM: &[(&str, &str)] = &[
    ("meta/v1.Time", "time"),
    ("meta/v1.MicroTime", "micro-time"),
    ("meta/v1.Duration", "duration"),
    ("meta/v1.FieldsV1", "fields"),
    ("resource.Quantity", "quantity"),
    ("intstr.IntOrString", "int-or-string"),
    ("runtime.RawExtension", "raw"),
    ("apiextensions/v1.JSON", "json"),
    ("apiextensions/v1.JSONSchemaPropsOrBool", "schema-or-bool"),
    ("apiextensions/v1.JSONSchemaPropsOrArray", "schema-or-list"),
    (
        "apiextensions/v1.JSONSchemaPropsOrStringArray",
        "schema-or-strings",
    ),
    ("apiextensions/v1beta1.JSON", "json"),
    ("apiextensions/v1beta1.JSONSchemaPropsOrBool", "schema-or-bool"),
    ("apiextensions/v1beta1.JSONSchemaPropsOrArray", "schema-or-list"),
    (
        "apiextensions/v1beta1.JSONSchemaPropsOrStringArray",
        "schema-or-strings",
    ),
];

/// The folders with API types.
const FOLDERS: &[&str] = &[
    "staging/src/k8s.io/api",
    "staging/src/k8s.io/apimachinery/pkg/apis/meta",
    "staging/src/k8s.io/apimachinery/pkg/api/resource",
    "staging/src/k8s.io/apimachinery/pkg/runtime",
    "staging/src/k8s.io/apimachinery/pkg/types",
    "staging/src/k8s.io/apimachinery/pkg/util/intstr",
    "staging/src/k8s.io/apimachinery/pkg/version",
    "staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions",
    "staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration",
];

/// Markers for code generators, which say nothing about the API.
const GENERATORS: &[&str] = &[
    "k8s:deepcopy-gen",
    "k8s:conversion-gen",
    "k8s:conversion-fn",
    "k8s:defaulter-gen",
    "k8s:openapi-gen",
    "k8s:prerelease-lifecycle-gen",
    "k8s:validation-gen",
    "k8s:protobuf-gen",
    "k8s:openapi-model",
];

/// Reads the types of a release.
pub(super) fn read(repository: &Repository, commit: &str) -> Result<Release, String> {
    let files = repository.files(commit, FOLDERS, |path| {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        // Test packages have types that no server serves.
        let depth_fits =
            !folder.ends_with("/testing") && !folder.contains("/testdata") && package_id(folder).is_some();
        depth_fits
            && file.ends_with(".go")
            && !file.ends_with("_test.go")
            // Generated files have functions and no types.
            && !file.starts_with("zz_generated")
            && !file.ends_with(".pb.go")
    })?;
    let mut sources: BTreeMap<String, go::GoPackage> = BTreeMap::new();
    for (path, text) in &files {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        sources
            .entry(import_path(folder).to_owned())
            .or_default()
            .read(file, text);
    }
    // Constants of all packages first: one may equal that of a package that comes later.
    let mut texts: BTreeMap<String, &str> = BTreeMap::new();
    for (path, source) in &sources {
        for constant in &source.constants {
            if let go::ConstantValue::Text(text) = &constant.value {
                texts.insert(format!("{path}.{}", constant.name), text);
            }
        }
    }
    let mut release = Release::new();
    for (path, source) in &sources {
        let Some(id) = package_id(path) else { continue };
        release.insert(id.clone(), package(&id, path, source, &texts));
    }
    keep_reachable(&mut release);
    Ok(release)
}

fn import_path(folder: &str) -> &str {
    folder.strip_prefix("staging/src/").unwrap_or(folder)
}

/// The name of a package; `None` for packages without versioned types.
fn package_id(folder: &str) -> Option<String> {
    let path = import_path(folder);
    let rest = match path.strip_prefix("k8s.io/apimachinery/pkg/") {
        Some("api/resource") => return Some("resource".to_owned()),
        Some("util/intstr") => return Some("intstr".to_owned()),
        Some(other @ ("runtime" | "types" | "version")) => return Some(other.to_owned()),
        Some(rest) => rest.strip_prefix("apis/")?,
        None => path
            .strip_prefix("k8s.io/api/")
            .or_else(|| path.strip_prefix("k8s.io/apiextensions-apiserver/pkg/apis/"))
            .or_else(|| path.strip_prefix("k8s.io/kube-aggregator/pkg/apis/"))?,
    };
    let (group, version) = rest.split_once('/')?;
    let is_version =
        version.starts_with('v') && !version.contains('/') && version.chars().any(|c| c.is_ascii_digit());
    is_version.then(|| format!("{group}/{version}"))
}

/// The types of a package, given the texts of the constants of all packages.
fn package(id: &str, path: &str, source: &go::GoPackage, texts: &BTreeMap<String, &str>) -> Package {
    let marked = source.markers.iter().find_map(|m| m.strip_prefix("groupName="));
    let group = id
        .split_once('/')
        .map(|(folder, _)| marked.unwrap_or(folder).to_owned());
    let mut declarations: Vec<_> = source.types.iter().collect();
    // In the order of the sources: the map is sorted by name.
    declarations.sort_by_key(|(_, d)| &d.place);
    let mut types = Vec::new();
    for (name, declaration) in declarations {
        let full = format!("{id}.{name}");
        let mut facts = Vec::new();
        let form = match (
            // A custom encoding hides the declared structure.
            CUSTOM.iter().find(|(custom, _)| *custom == full),
            &declaration.body,
        ) {
            (Some((_, codec)), _) => TypeForm::Custom(codec),
            (None, Body::Struct(fields)) => {
                TypeForm::Struct(fields.iter().filter_map(|f| field(f, id, source)).collect())
            }
            (None, Body::Named(ty) | Body::Alias(ty)) => TypeForm::Named(localized(ty, id)),
        };
        if matches!(declaration.body, Body::Alias(_)) {
            facts.push("alias".to_owned());
        }
        if declaration.markers.iter().any(|m| m == "protobuf.nullable=true") {
            facts.push("message".to_owned());
        }
        if declaration.markers.iter().any(|m| m == "protobuf=false") {
            facts.push("no-protobuf".to_owned());
        }
        // Only this older marker makes OpenAPI list the values.
        let is_published = declaration.markers.iter().any(|m| m == "enum");
        let is_enum = is_published || declaration.markers.iter().any(|m| m.ends_with("k8s:enum"));
        // An alias has the constants of its target, where they are listed already.
        if is_enum && !matches!(declaration.body, Body::Alias(_)) {
            let constants = source.constants.iter().filter(|c| c.ty == *name);
            let values: BTreeSet<&str> = constants
                .filter_map(|constant| match &constant.value {
                    go::ConstantValue::Text(text) => Some(text.as_str()),
                    go::ConstantValue::Same(other) => texts.get(other).copied(),
                })
                .collect();
            let values: Vec<String> = values.into_iter().map(quoted).collect();
            let fact = if is_published { "enum" } else { "values" };
            facts.push(format!("{fact}={}", values.join(",")));
        }
        facts.extend(shared_facts(&declaration.markers, source));
        types.push(Type {
            name: name.clone(),
            form,
            facts,
        });
    }
    Package {
        path: path.to_owned(),
        group,
        types,
    }
}

/// A type with short package names; without the package name for types of the same package.
fn localized(ty: &str, id: &str) -> String {
    let start = ty.rfind(['*', ']']).map_or(0, |at| at + 1);
    let (prefix, name) = ty.split_at(start);
    let prefix = match prefix.split_once("map[") {
        Some((before, key)) => match key.split_once(']') {
            Some((key, after)) => format!("{before}map[{}]{after}", localized(key, id)),
            None => prefix.to_owned(),
        },
        None => prefix.to_owned(),
    };
    // From the right: an import path contains dots as well.
    let name = match name.rsplit_once('.') {
        Some((path, name)) => match package_id(path) {
            Some(package) if package == id => name.to_owned(),
            Some(package) => format!("{package}.{name}"),
            None => format!("{path}.{name}"),
        },
        None => name.replace("interface{}", "any"),
    };
    format!("{prefix}{name}")
}

fn field(field: &go::GoField, id: &str, source: &go::GoPackage) -> Option<Field> {
    // Fields without a tag are not part of the API.
    let mut json = field.tag("json")?.split(',');
    let name = json.next().unwrap_or_default();
    // encoding/json ignores such a field.
    if name == "-" {
        return None;
    }
    let options: Vec<&str> = json.collect();
    let is_inlined = name.is_empty();
    let ty = localized(&field.ty, id);
    let mut facts = Vec::new();
    let number = field.tag("protobuf").and_then(|tag| tag.split(',').nth(1));
    if let Some(number) = number {
        facts.push(format!("#{number}"));
    }
    if !is_inlined {
        let mut initial = name.chars();
        let expected: String = initial
            .next()
            .map(|c| c.to_ascii_uppercase())
            .into_iter()
            .chain(initial)
            .collect();
        if expected != field.name {
            facts.push(format!("go={}", field.name));
        }
        let is_omitted = options.contains(&"omitempty") || options.contains(&"omitzero");
        // encoding/json writes such a field even if it has its zero value.
        if !is_omitted {
            facts.push("always".to_owned());
        }
        if options.contains(&"omitzero") {
            facts.push("omitzero".to_owned());
        }
        if is_required(&field.markers, is_omitted) {
            facts.push("required".to_owned());
        }
    }
    let strategy = field.tag("patchStrategy");
    if let Some(strategy) = strategy {
        let key = field.tag("patchMergeKey").map(|key| format!("({key})"));
        facts.push(format!("patch={strategy}{}", key.unwrap_or_default()));
    }
    facts.extend(shared_facts(&field.markers, source));
    Some(Field {
        json: (!is_inlined).then(|| name.to_owned()),
        ty,
        facts,
    })
}

fn is_required(markers: &[String], is_omitted: bool) -> bool {
    // In kube-openapi, too, an explicit marker wins over `omitempty`.
    let has = |name: &str| markers.iter().any(|m| m == name);
    if has("required") {
        return true;
    }
    if has("optional") {
        return false;
    }
    !is_omitted
}

/// The attributes that types and fields share: list and map types, defaults, unions, and declarative
/// validation.
fn shared_facts(markers: &[String], source: &go::GoPackage) -> Vec<String> {
    let value = |name: &str| {
        let mut found = markers
            .iter()
            .filter_map(|m| m.strip_prefix(name)?.strip_prefix('='));
        found.next()
    };
    let mut facts = Vec::new();
    if let Some(list) = value("listType") {
        let keys: Vec<&str> = markers
            .iter()
            .filter_map(|m| m.strip_prefix("listMapKey="))
            .collect();
        facts.push(match keys.as_slice() {
            [] => format!("list={list}"),
            keys => format!("list={list}({})", keys.join(",")),
        });
    }
    for (marker, fact) in [("mapType", "map"), ("structType", "struct")] {
        if let Some(found) = value(marker) {
            facts.push(format!("{fact}={found}"));
        }
    }
    if let Some(default) = value("default") {
        // A default may be a constant of the package.
        let name = default
            .strip_prefix("ref(")
            .and_then(|rest| rest.strip_suffix(')'));
        let constant = source.constants.iter().find(|c| Some(c.name.as_str()) == name);
        facts.push(match constant.map(|constant| &constant.value) {
            Some(go::ConstantValue::Text(text)) => format!("default={text:?}"),
            _ => format!("default={}", compact(default)),
        });
    }
    for marker in ["nullable", "union", "unionDiscriminator"] {
        if markers.iter().any(|m| m == marker) {
            facts.push(marker.to_owned());
        }
    }
    for gate in markers.iter().filter_map(|m| m.strip_prefix("featureGate=")) {
        facts.push(format!("gate={gate}"));
    }
    for marker in markers {
        if marker.starts_with("k8s:") && !GENERATORS.iter().any(|g| marker.starts_with(g)) {
            facts.push(format!("+{}", compact(&marker.replace("k8s:", ""))));
        }
    }
    facts
}

/// Removes spaces outside quotes, so that the text is one word.
fn compact(text: &str) -> String {
    let mut is_quoted = false;
    let keep = |c: &char| {
        is_quoted ^= matches!(c, '"' | '`');
        is_quoted || !c.is_whitespace()
    };
    text.chars().filter(keep).collect()
}

/// Quotes a value in a list if it is not a single word.
fn quoted(value: &str) -> String {
    let is_plain = !value.is_empty() && !value.contains([' ', ',', '"', '\\']);
    if is_plain {
        value.to_owned()
    } else {
        format!("{value:?}")
    }
}

/// The names of the types that a type refers to.
fn references(ty: &str) -> Vec<&str> {
    ty.split(['*', '[', ']'])
        .filter(|part| !part.is_empty() && *part != "map")
        .collect()
}

/// Removes types that no versioned type of a group refers to.
fn keep_reachable(release: &mut Release) {
    let mut reached: BTreeSet<(String, String)> = BTreeSet::new();
    let mut pending: Vec<(String, String)> = Vec::new();
    for (id, package) in release.iter() {
        for ty in &package.types {
            let is_object = match &ty.form {
                TypeForm::Struct(fields) if id.starts_with("meta/") => {
                    fields.iter().any(|f| f.json.is_none())
                        || matches!(ty.name.as_str(), "WatchEvent" | "Patch")
                }
                TypeForm::Struct(fields) => {
                    (package.group.is_some() || id == "version") && !fields.is_empty()
                }
                // Kinds of a newer version that an older version also serves.
                TypeForm::Named(_) => id.starts_with("meta/") && ty.facts.iter().any(|f| f == "alias"),
                TypeForm::Custom(_) => false,
            };
            // Only used by Go clients, not by the server.
            let is_internal = matches!(ty.name.as_str(), "InternalEvent" | "TableOptions" | "RootPaths");
            if is_object && !is_internal {
                pending.push((id.clone(), ty.name.clone()));
            }
        }
    }
    while let Some((id, name)) = pending.pop() {
        // Types refer to themselves, such as JSONSchemaProps.
        if !reached.insert((id.clone(), name.clone())) {
            continue;
        }
        let Some(ty) = release
            .get(&id)
            .and_then(|p| p.types.iter().find(|t| t.name == name))
        else {
            continue;
        };
        let mut refer = |ty: &str| {
            for reference in references(ty) {
                pending.push(match reference.rsplit_once('.') {
                    Some((package, name)) => (package.to_owned(), name.to_owned()),
                    None => (id.clone(), reference.to_owned()),
                });
            }
        };
        match &ty.form {
            TypeForm::Struct(fields) => fields.iter().for_each(|f| refer(&f.ty)),
            TypeForm::Named(ty) => refer(ty),
            // These contain schemas.
            TypeForm::Custom(codec) if codec.starts_with("schema") => refer("JSONSchemaProps"),
            TypeForm::Custom(_) => {}
        }
    }
    for (id, package) in release.iter_mut() {
        package
            .types
            .retain(|t| reached.contains(&(id.clone(), t.name.clone())));
    }
    release.retain(|_, package| !package.types.is_empty());
}
