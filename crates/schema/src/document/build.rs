//! From a schema document to the structural tree.

use super::{Additional, Items, Schema};
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
    unsupported: bool,
    extensions: bool,
    validation: bool,
}

impl<'a> Groups<'a> {
    fn of(schema: Schema<'a>) -> Self {
        let mut groups = Groups::default();
        for (key, value) in schema.members.iter() {
            match key.as_str() {
                "description" | "items" | "additionalProperties" | "title" => {}
                "type" => groups.ty = value.as_str().unwrap_or_default(),
                "nullable" => groups.nullable = value.as_bool().unwrap_or_default(),
                "default" => groups.default = Some(value).filter(|v| !v.is_null()),
                "properties" => groups.properties = value.as_object(),
                "id" | "$schema" | "$ref" | "patternProperties" | "dependencies" | "additionalItems"
                | "definitions" => groups.unsupported = true,
                key if key.starts_with("x-kubernetes-") => groups.extensions = true,
                _ => groups.validation = true,
            }
        }
        groups
    }
}

impl Schema<'_> {
    /// The structural tree of this document, its nodes shared through the interner.
    pub fn structural(self, interner: &mut Interner) -> Result<Arc<Structural>, Unsupported> {
        let groups = Groups::of(self);
        if groups.unsupported {
            self.supported()?;
        }
        let extensions = if groups.extensions {
            self.extensions()?
        } else {
            None
        };
        let ty = Type::parse(groups.ty);
        let unknown_type = ty.is_none() && !groups.ty.is_empty();
        let validation = if groups.validation || unknown_type {
            self.validation(interner)?
        } else {
            None
        };
        let schema = Structural {
            ty,
            nullable: groups.nullable,
            default: groups.default.cloned().map(Json::from),
            extensions: extensions.map(Box::new),
            rules: if groups.extensions {
                self.rules().collect()
            } else {
                Box::default()
            },
            validation: validation.map(Box::new),
            items: self.single_items()?.map(|s| s.structural(interner)).transpose()?,
            properties: properties(groups.properties, interner)?.into(),
            additional: match self.additional() {
                Some(Additional::Schema(s)) => Some(structural::Additional::Schema(s.structural(interner)?)),
                Some(Additional::Any(b)) => Some(structural::Additional::Any(b)),
                None => None,
            },
        };
        Ok(interner.intern(schema))
    }

    /// Why this document has no structural form, without making one.
    pub fn unsupported(self) -> Option<Unsupported> {
        self.check_support().err()
    }

    /// Looks for what [`Schema::structural`] refuses, in the order in which it does.
    fn check_support(self) -> Result<(), Unsupported> {
        let groups = Groups::of(self);
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
        self.single_items()?.map_or(Ok(()), Schema::check_support)?;
        self.properties().try_for_each(|(_, s)| s.check_support())?;
        self.additional_schema().map_or(Ok(()), Schema::check_support)
    }

    /// `items`, which may be no list.
    fn single_items(self) -> Result<Option<Self>, Unsupported> {
        match self.items() {
            Some(Items::One(s)) => Ok(Some(s)),
            Some(Items::Each([_, ..])) => Err(Unsupported(
                "OpenAPIV3Schema 'items' must be a schema, but is an array",
            )),
            _ => Ok(None),
        }
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

    fn validation(self, interner: &mut Interner) -> Result<Option<ValueValidation>, Unsupported> {
        let mut junctor = |key| {
            self.schemas(key)
                .map(|s| s.structural(interner))
                .collect::<Result<Box<[_]>, _>>()
        };
        let unknown_type = Some(self.ty()).filter(|ty| Type::parse(ty).is_none());
        let v = ValueValidation {
            unknown_type: unknown_type.unwrap_or_default().into(),
            all_of: junctor("allOf")?,
            one_of: junctor("oneOf")?,
            any_of: junctor("anyOf")?,
            not: self.schema("not").map(|s| s.structural(interner)).transpose()?,
            format: self.text("format").into(),
            maximum: self.number("maximum").map(Number),
            exclusive_maximum: self.flag("exclusiveMaximum"),
            minimum: self.number("minimum").map(Number),
            exclusive_minimum: self.flag("exclusiveMinimum"),
            max_length: self.integer("maxLength"),
            min_length: self.integer("minLength"),
            pattern: self.text("pattern").into(),
            max_items: self.integer("maxItems"),
            min_items: self.integer("minItems"),
            unique_items: self.flag("uniqueItems"),
            multiple_of: self.number("multipleOf").map(Number),
            enumeration: self.list("enum").iter().cloned().map(Json::from).collect(),
            max_properties: self.integer("maxProperties"),
            min_properties: self.integer("minProperties"),
            required: self.texts("required").map(Into::into).collect(),
        };
        Ok((v != ValueValidation::default()).then_some(v))
    }
}

fn properties(
    documents: Option<&Map>,
    interner: &mut Interner,
) -> Result<Vec<(Str, Arc<Structural>)>, Unsupported> {
    let mut properties = Vec::with_capacity(documents.map_or(0, Map::len));
    for (name, document) in documents.into_iter().flat_map(Map::iter) {
        properties.push((name.clone(), Schema::new(document).structural(interner)?));
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
