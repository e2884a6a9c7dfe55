//! From a schema document to the structural tree.

use super::{NO_MEMBERS, Schema, number};
use crate::structural::{
    self, Interner, Json, ListType, MapType, Mutability, Number, Structural, Type, Union,
};
use crate::structural::{Extensions, PatchStrategy, ValueValidation};
use scantling_value::{Map, Str, Value};
use std::sync::Arc;

/// Why a document has no structural form: it uses a keyword that definitions may not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported(&'static str);

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Unsupported {}

/// What a schema has of the most frequent keywords, and the groups of others that it has any of. Most schemas have a
/// type and a description, and need not be asked for forty others.
#[derive(Default)]
struct Groups<'a> {
    ty: &'a str,
    nullable: bool,
    default: Option<&'a Value>,
    properties: Option<&'a Map>,
    items: Option<&'a Value>,
    additional: Option<&'a Value>,
    unsupported: bool,
    extensions: bool,
    validation: bool,
}

impl<'a> Groups<'a> {
    fn of(members: &'a Map) -> Self {
        let mut groups = Groups::default();
        for (key, value) in members.iter() {
            match key.as_str() {
                "description" | "title" => {}
                "type" => groups.ty = value.as_str().unwrap_or_default(),
                "nullable" => groups.nullable = value.as_bool().unwrap_or_default(),
                "default" => groups.default = Some(value).filter(|v| !v.is_null()),
                "properties" => groups.properties = value.as_object().filter(|p| !p.is_empty()),
                "items" => groups.items = Some(value),
                "additionalProperties" => groups.additional = Some(value).filter(|v| !v.is_null()),
                "id" | "$schema" | "$ref" | "patternProperties" | "dependencies" | "additionalItems"
                | "definitions" => groups.unsupported = true,
                key if key.starts_with("x-kubernetes-") => groups.extensions = true,
                _ => groups.validation = true,
            }
        }
        groups
    }

    /// Whether there is no more to the schema than a type.
    fn is_type_alone(&self) -> bool {
        let Groups {
            ty: _,
            nullable: _,
            default,
            properties,
            items,
            additional,
            unsupported,
            extensions,
            validation,
        } = self;
        let others = *unsupported || *extensions || *validation;
        !others && default.is_none() && properties.is_none() && items.is_none() && additional.is_none()
    }
}

impl Schema<'_> {
    /// The structural tree of this document, its nodes shared through the interner.
    pub fn structural(self, interner: &mut Interner) -> Result<Arc<Structural>, Unsupported> {
        structural(self.members, interner)
    }

    /// Why this document has no structural form, without making one.
    pub fn unsupported(self) -> Option<Unsupported> {
        self.check_support().err()
    }

    /// Looks for what [`Schema::structural`] refuses, in the order in which it does.
    fn check_support(self) -> Result<(), Unsupported> {
        let groups = Groups::of(self.members);
        if groups.unsupported {
            self.supported()?;
        }
        if groups.extensions {
            self.supported_extensions()?;
        }
        if groups.validation {
            for key in ["allOf", "oneOf", "anyOf"] {
                self.schemas(key).try_for_each(Schema::check_support)?;
            }
            self.schema("not").map_or(Ok(()), Schema::check_support)?;
        }
        let items = single_items(groups.items)?.map(Schema::of);
        items.map_or(Ok(()), Schema::check_support)?;
        self.properties().try_for_each(|(_, s)| s.check_support())?;
        self.additional_schema().map_or(Ok(()), Schema::check_support)
    }

    fn supported(self) -> Result<(), Unsupported> {
        let unsupported = |text| Err(Unsupported(text));
        let filled = |key| self.named(key).len() > 0;
        if !self.text("id").is_empty() {
            return unsupported("OpenAPIV3Schema 'id' is not supported");
        }
        if !self.text("$schema").is_empty() {
            return unsupported("OpenAPIV3Schema 'schema' is not supported");
        }
        if !self.text("$ref").is_empty() {
            return unsupported("OpenAPIV3Schema '$ref' is not supported");
        }
        if filled("patternProperties") {
            return unsupported("OpenAPIV3Schema 'patternProperties' is not supported");
        }
        if filled("dependencies") {
            return unsupported("OpenAPIV3Schema 'dependencies' is not supported");
        }
        if self.get("additionalItems").is_some() {
            return unsupported("OpenAPIV3Schema 'additionalItems' is not supported");
        }
        if filled("definitions") {
            return unsupported("OpenAPIV3Schema 'definitions' is not supported");
        }
        Ok(())
    }

    fn supported_extensions(self) -> Result<(), Unsupported> {
        if self.tristate("x-kubernetes-preserve-unknown-fields") == Some(false) {
            return Err(Unsupported(
                "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined",
            ));
        }
        Ok(())
    }

    fn extensions(self) -> Result<Option<Extensions>, Unsupported> {
        self.supported_extensions()?;
        let x = Extensions {
            preserve_unknown_fields: self.flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: self.flag("x-kubernetes-embedded-resource"),
            int_or_string: self.flag("x-kubernetes-int-or-string"),
            list_type: self.list_type().and_then(|t| match t {
                "atomic" => Some(ListType::Atomic),
                "set" => Some(ListType::Set),
                "map" => Some(ListType::Map),
                _ => None,
            }),
            list_map_keys: self.texts("x-kubernetes-list-map-keys").map(Into::into).collect(),
            map_type: self.map_type().map(|t| match t {
                "atomic" => MapType::Atomic,
                "granular" => MapType::Granular,
                _ => MapType::Unsupported,
            }),
            mutability: Mutability::ALL.into_iter().find(|m| self.flag(m.keyword())),
            unions: self.schemas("x-kubernetes-unions").map(union).collect(),
            patch: self.patch_strategy(),
        };
        Ok((x != Extensions::default()).then_some(x))
    }

    fn patch_strategy(self) -> Option<PatchStrategy> {
        let strategies = self.text("x-kubernetes-patch-strategy");
        let merge_key = self.text("x-kubernetes-patch-merge-key");
        let patch = PatchStrategy {
            strategies: strategies
                .split(',')
                .filter(|s| !s.is_empty())
                .map(Into::into)
                .collect(),
            merge_key: (!merge_key.is_empty()).then(|| merge_key.into()),
        };
        (patch != PatchStrategy::default()).then_some(patch)
    }

    fn validation(self, interner: &mut Interner) -> Result<Option<Box<ValueValidation>>, Unsupported> {
        let mut v = Box::<ValueValidation>::default();
        let mut has_junctors = false;
        for (key, value) in self.members.iter() {
            let text = || value.as_str().unwrap_or_default().into();
            let flag = || value.as_bool().unwrap_or_default();
            let list = || value.as_array().unwrap_or_default();
            match key.as_str() {
                "type" => {
                    let unknown = value.as_str().filter(|ty| Type::parse(ty).is_none());
                    v.unknown_type = unknown.unwrap_or_default().into();
                }
                "format" => v.format = text(),
                "maximum" => v.maximum = number(value).map(Number),
                "exclusiveMaximum" => v.exclusive_maximum = flag(),
                "minimum" => v.minimum = number(value).map(Number),
                "exclusiveMinimum" => v.exclusive_minimum = flag(),
                "maxLength" => v.max_length = value.as_int(),
                "minLength" => v.min_length = value.as_int(),
                "pattern" => v.pattern = text(),
                "maxItems" => v.max_items = value.as_int(),
                "minItems" => v.min_items = value.as_int(),
                "uniqueItems" => v.unique_items = flag(),
                "multipleOf" => v.multiple_of = number(value).map(Number),
                "enum" => v.enumeration = list().iter().cloned().map(Json::from).collect(),
                "maxProperties" => v.max_properties = value.as_int(),
                "minProperties" => v.min_properties = value.as_int(),
                "required" => {
                    let names = list().iter().map(|name| name.as_str().unwrap_or_default());
                    v.required = names.map(Into::into).collect();
                }
                "allOf" | "oneOf" | "anyOf" | "not" => has_junctors = true,
                _ => {}
            }
        }
        if has_junctors {
            let mut branches = |key| {
                self.schemas(key)
                    .map(|s| s.structural(interner))
                    .collect::<Result<Box<[_]>, _>>()
            };
            v.all_of = branches("allOf")?;
            v.one_of = branches("oneOf")?;
            v.any_of = branches("anyOf")?;
            v.not = self.schema("not").map(|s| s.structural(interner)).transpose()?;
        }
        Ok((*v != ValueValidation::default()).then_some(v))
    }
}

/// The structural tree of a document. It is read member by member: most schemas have two or three of them.
fn structural(members: &Map, interner: &mut Interner) -> Result<Arc<Structural>, Unsupported> {
    let groups = Groups::of(members);
    let ty = Type::parse(groups.ty);
    let unknown_type = ty.is_none() && !groups.ty.is_empty();
    if groups.is_type_alone() && !unknown_type {
        return Ok(interner.type_alone(ty, groups.nullable));
    }
    detailed(members, &groups, ty, interner)
}

/// The structural tree of a document that says more than a type.
#[inline(never)]
fn detailed(
    members: &Map,
    groups: &Groups<'_>,
    ty: Option<Type>,
    interner: &mut Interner,
) -> Result<Arc<Structural>, Unsupported> {
    let unknown_type = ty.is_none() && !groups.ty.is_empty();
    let mut extensions = None;
    let mut rules = Box::default();
    let mut validation = None;
    if groups.unsupported || groups.extensions || groups.validation || unknown_type {
        let schema = Schema::of(members);
        if groups.unsupported {
            schema.supported()?;
        }
        if groups.extensions {
            extensions = schema.extensions()?;
            rules = schema.rules().collect();
        }
        if groups.validation || unknown_type {
            validation = schema.validation(interner)?;
        }
    }
    let items = single_items(groups.items)?;
    let schema = Structural {
        ty,
        nullable: groups.nullable,
        default: groups.default.cloned().map(Json::from),
        extensions: extensions.map(Box::new),
        rules,
        validation,
        items: items.map(|items| structural(items, interner)).transpose()?,
        properties: properties(groups.properties, interner)?.into(),
        additional: match groups.additional {
            Some(Value::Object(values)) => {
                Some(structural::Additional::Schema(structural(values, interner)?))
            }
            Some(any) => Some(structural::Additional::Any(any.as_bool().unwrap_or(false))),
            None => None,
        },
    };
    Ok(interner.intern(schema))
}

/// `items`, which may be no list.
fn single_items(items: Option<&Value>) -> Result<Option<&Map>, Unsupported> {
    match items {
        Some(Value::Object(items)) => Ok(Some(items)),
        Some(Value::Array(each)) if !each.is_empty() => Err(Unsupported(
            "OpenAPIV3Schema 'items' must be a schema, but is an array",
        )),
        _ => Ok(None),
    }
}

fn properties(
    documents: Option<&Map>,
    interner: &mut Interner,
) -> Result<Vec<(Str, Arc<Structural>)>, Unsupported> {
    let mut properties = Vec::with_capacity(documents.map_or(0, Map::len));
    for (name, document) in documents.into_iter().flat_map(Map::iter) {
        let document = document.as_object().unwrap_or(&NO_MEMBERS);
        properties.push((name.clone(), structural(document, interner)?));
    }
    Ok(properties)
}

fn union(s: Schema<'_>) -> Union {
    let discriminator = s.text("discriminator");
    let fields = s.get("fields").and_then(Value::as_object);
    Union {
        discriminator: (!discriminator.is_empty()).then(|| discriminator.into()),
        fields: fields
            .into_iter()
            .flat_map(Map::iter)
            .map(|(name, v)| (name.clone(), v.as_str().unwrap_or("").into()))
            .collect(),
    }
}
