//! The kinds that can be explained: those of CRDs, and those that are built in.

use crate::args;
use crate::builtin::{exists, releases};
use crate::catalog::{Catalog, CatalogEntry, is_version};
use crate::problem::Problem;
use scantling_apitypes::openapi::{self, COMPONENTS};
use scantling_apitypes::{ApiResource, Extensions, FieldDef, Release, TypeDef, TypeTable};
use scantling_schema::definition::CrdVersion;
use scantling_schema::document::Schema;
use scantling_schema::structural::{Interner, Structural};
use scantling_value::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// A version of a kind.
pub(super) enum ExplainedKind<'c> {
    Custom {
        entry: &'c CatalogEntry,
        version: &'c CrdVersion,
    },
    Builtin {
        release: Release,
        resource: &'static ApiResource,
        descriptions: KindDescriptions,
    },
}

/// The descriptions of built-in types and their fields.
#[derive(Default)]
pub(super) struct KindDescriptions(scantling_descriptions::Descriptions);

impl openapi::Descriptions for KindDescriptions {
    fn get(&self, model: &str, field: Option<&str>) -> Option<Cow<'_, str>> {
        let found = |model: &str| self.0.get(model, field).map(Cow::Borrowed);
        // There are none for old versions.
        found(model).or_else(|| found(&model.replace(".v1beta1.", ".v1.")))
    }
}

/// A schema, and the API type that it describes.
pub(super) struct SchemaNode {
    pub(super) schema: Value,
    definition: Option<&'static TypeDef>,
}

/// Finds the kind that an argument begins with, and returns it with the rest, which is the path of a field. CRDs come
/// before built-in kinds; the longest name wins.
pub(super) fn find<'c, 'f>(
    catalog: &'c Catalog,
    flags: &'f args::Explain,
) -> Result<(ExplainedKind<'c>, &'f str), Problem> {
    let release = catalog.builtin_kinds().release;
    let custom = catalog.entries().iter().filter_map(|entry| {
        let spec = &entry.definition.spec;
        // Any name that kubectl accepts for the resource.
        let names = &spec.names;
        let short = names.short_names.iter().flatten().map(|name| &**name);
        let all = [
            &*names.kind,
            &*names.plural,
            &*names.singular,
            entry.definition.name(),
        ];
        let rest = after_name(&flags.field, all.into_iter().chain(short))?;
        Some((rest, entry))
    });
    // The full name of a CRD contains dots and begins with its plural, so the longest match wins.
    if let Some((rest, entry)) = custom.min_by_key(|(rest, _)| rest.len()) {
        let version = entry.version(flags.api_version.as_deref())?;
        return Ok((ExplainedKind::Custom { entry, version }, rest));
    }
    if let Some((resource, rest)) = builtin(release, flags) {
        let kind = ExplainedKind::Builtin {
            release,
            resource,
            descriptions: KindDescriptions::default(),
        };
        return Ok((kind, rest));
    }
    let (name, _) = flags.field.split_once('.').unwrap_or((&flags.field, ""));
    let problem = Problem::plain(format!("no CRD or built-in kind is called {name}"));
    let others = releases().filter(|other| builtin(*other, flags).is_some());
    let others: Vec<Release> = others.collect();
    Err(match exists(&others, release) {
        Some(when) => problem.hint(format!(
            "the kind exists {when}; --kubernetes-version is {release}"
        )),
        None => match similar(catalog, release, name) {
            Some(similar) => problem.hint(format!("did you mean {similar}?")),
            None => problem.hint("name the files with CRDs with --crds"),
        },
    })
}

/// Returns the name of a resource that a misspelt one resembles.
fn similar<'c>(catalog: &'c Catalog, release: Release, name: &str) -> Option<&'c str> {
    let name = name.to_ascii_lowercase();
    let custom = catalog.entries().iter().flat_map(|entry| {
        let names = &entry.definition.spec.names;
        [&*names.plural, &*names.singular]
    });
    let builtin = TypeTable::for_release(release).resources().iter();
    let builtin = builtin.flat_map(|resource| [resource.name, resource.singular()]);
    let known = custom.chain(builtin);
    let near = known
        .map(|known| (strsim::osa_distance(known, &name), known))
        .min()?;
    (near.0 <= 2).then_some(near.1)
}

/// Finds a built-in kind: in the version that is asked for, or in the most stable one.
fn builtin(release: Release, flags: &args::Explain) -> Option<(&'static ApiResource, &str)> {
    let resources = TypeTable::for_release(release).resources().iter();
    let found = resources.filter_map(|resource| {
        let full = format!("{}.{}", resource.name, resource.group);
        let names = [resource.kind(), resource.name, resource.singular(), &full];
        let rest = after_name(&flags.field, names.into_iter().chain(resource.short_names()))?;
        let wanted = flags.api_version.as_ref();
        let is_wanted = wanted.is_none_or(|wanted| is_version(wanted, resource.group, resource.version));
        is_wanted.then_some((resource, rest))
    });
    let rank = |resource: &ApiResource| match resource.version {
        version if version.contains("alpha") => 2,
        version if version.contains("beta") => 1,
        _ => 0,
    };
    // The most stable version comes first, as in discovery.
    found.min_by_key(|(resource, rest)| {
        let newest = std::cmp::Reverse(resource.version);
        (rest.len(), rank(resource), resource.group, newest)
    })
}

/// Returns the path after the longest name that a text begins with.
fn after_name<'t, 'n>(text: &'t str, names: impl Iterator<Item = &'n str>) -> Option<&'t str> {
    let after = |name: &str| {
        // A name ends at a dot or at the end: `pods` must not match `podsecurity`.
        let (begin, rest) = text.split_at_checked(name.len())?;
        let rest = match rest {
            "" => rest,
            rest => rest.strip_prefix('.')?,
        };
        (!name.is_empty() && begin.eq_ignore_ascii_case(name)).then_some(rest)
    };
    names.filter_map(after).min_by_key(|rest| rest.len())
}

impl ExplainedKind<'_> {
    pub(super) fn name(&self) -> &str {
        match self {
            ExplainedKind::Custom { entry, .. } => &entry.definition.spec.names.kind,
            ExplainedKind::Builtin { resource, .. } => resource.kind(),
        }
    }

    pub(super) fn api_version(&self) -> String {
        match self {
            ExplainedKind::Custom { entry, version } => {
                format!("{}/{}", entry.definition.spec.group, version.name)
            }
            ExplainedKind::Builtin { resource, .. } if resource.group.is_empty() => {
                resource.version.to_owned()
            }
            ExplainedKind::Builtin { resource, .. } => format!("{}/{}", resource.group, resource.version),
        }
    }

    /// The schema of objects.
    pub(super) fn root(&self) -> Result<SchemaNode, Problem> {
        match self {
            ExplainedKind::Custom { entry, version } => {
                let schema = entry.definition.spec.schema_of(version);
                let schema = schema.ok_or_else(|| entry.unusable("the version has no schema"))?;
                Ok(SchemaNode {
                    schema: (**schema).clone(),
                    definition: None,
                })
            }
            ExplainedKind::Builtin {
                release,
                resource,
                descriptions,
            } => {
                let table = TypeTable::for_release(*release);
                let definition = table.kind(resource.group, resource.version, resource.kind());
                let definition = definition.ok_or_else(|| {
                    Problem::plain(format!("the table of API types has no {}", resource.kind()))
                })?;
                Ok(model(table, definition, descriptions))
            }
        }
    }

    /// The structural schema of objects, if rules can be estimated.
    pub(super) fn structural(&self) -> Result<Option<Arc<Structural>>, Problem> {
        let ExplainedKind::Custom { entry, version } = self else {
            return Ok(None);
        };
        let schema = entry.definition.spec.schema_of(version);
        let structural = schema.map(|schema| Schema::new(schema).structural(&mut Interner::new()));
        structural
            .transpose()
            .map_err(|why| entry.unusable(&why.to_string()))
    }

    /// Follows the reference of a schema. The keywords next to the reference are kept.
    pub(super) fn resolve(&self, schema: &Value) -> SchemaNode {
        let ExplainedKind::Builtin {
            release,
            descriptions,
            ..
        } = self
        else {
            return SchemaNode {
                schema: schema.clone(),
                definition: None,
            };
        };
        let table = TypeTable::for_release(*release);
        let mut node = match reference(schema).and_then(|name| table.model(name)) {
            Some(definition) => model(table, definition, descriptions),
            None => SchemaNode {
                schema: schema.clone(),
                definition: None,
            },
        };
        // Keywords beside the reference describe the field, those of the model its type.
        if let (Some(members), Some(own)) = (node.schema.as_object_mut(), schema.as_object()) {
            for (name, value) in own
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "$ref" | "allOf"))
            {
                members.insert(name.clone(), value.clone());
            }
            // OpenAPI names the zero value of fields that are always written.
            let is_zero = |value: &Value| matches!(value.to_json().as_str(), "{}" | "\"\"" | "0" | "false");
            if members.get("default").is_some_and(is_zero) {
                members.remove("default");
            }
        }
        node
    }

    /// Returns which releases have a field that this one does not.
    pub(super) fn other_release(&self, node: &SchemaNode, field: &str) -> Option<String> {
        let (ExplainedKind::Builtin { release, .. }, Some(definition)) = (self, node.definition) else {
            return None;
        };
        let package = TypeTable::for_release(*release).package(definition).id;
        let has = |release: &Release| {
            let definition = TypeTable::for_release(*release).find(package, definition.name);
            definition.is_some_and(|d| member(d, field).is_some())
        };
        let have: Vec<Release> = releases().filter(has).collect();
        let when = exists(&have, *release)?;
        Some(format!(
            "the field exists {when}; --kubernetes-version is {release}"
        ))
    }
}

impl SchemaNode {
    /// The releases that have a field, if not all do, and its feature gate.
    pub(super) fn releases(&self, field: &str) -> Option<String> {
        let attributes = member(self.definition?, field)?.attributes;
        let since = attributes
            .since()
            .map(|release| format!("since Kubernetes {release}"));
        let until = attributes
            .until()
            .map(|release| format!("up to Kubernetes {release}"));
        let gate = attributes
            .value("gate")
            .map(|gate| format!("feature gate {gate}"));
        let all: Vec<String> = [since, until, gate].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

fn member<'d>(definition: &'d TypeDef, name: &str) -> Option<&'d FieldDef> {
    definition.members().iter().find(|field| field.name == name)
}

fn model(
    table: &'static TypeTable,
    definition: &'static TypeDef,
    descriptions: &KindDescriptions,
) -> SchemaNode {
    SchemaNode {
        schema: table.schema(definition, Extensions::NONE, descriptions),
        definition: Some(definition),
    }
}

/// The model that a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    let beside = || schema.list("allOf").first()?.get("$ref");
    schema
        .get("$ref")
        .or_else(beside)?
        .as_str()?
        .strip_prefix(COMPONENTS)
}

/// The type of a schema as people write it: `[]string`, `map[string]object`, `PodSpec`.
pub(super) fn type_of(schema: &Value) -> String {
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return "integer or string".to_owned();
    }
    if let Some(model) = reference(schema) {
        return model.rsplit('.').next().unwrap_or(model).to_owned();
    }
    match schema.get_str("type") {
        "array" => {
            let items = schema.get("items").map(type_of);
            format!("[]{}", items.unwrap_or_else(|| "any".to_owned()))
        }
        "object" => match super::values_of(schema) {
            Some(values) => format!("map[string]{}", type_of(values)),
            None => "object".to_owned(),
        },
        "" => "any".to_owned(),
        ty => ty.to_owned(),
    }
}
