//! Builds the structural tree of a schema document.

use super::{NO_MEMBERS, Schema, number};
use crate::structural::{self, Interner, Json, ListType, MapType, Mutability, Structural, Type, Union};
use crate::structural::{Additional, Extensions, PatchStrategy, ValueValidation};
use scantling_value::{Map, Str, Value};
use std::sync::Arc;

/// The document uses a keyword that CRDs must not use, so it has no structural form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedKeyword(&'static str);

impl std::fmt::Display for UnsupportedKeyword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for UnsupportedKeyword {}

/// The purpose of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BuildMode {
    /// A structural schema: `id`, `$schema` and `definitions` are unsupported.
    Structure,
    /// Validation of values, on which these three keywords have no effect.
    Values,
}

/// The most frequent keywords of a schema, and the groups of other keywords it has. Most schemas have a type
/// and a description and need not be queried for forty others.
#[derive(Default)]
struct KeywordGroups<'a> {
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

impl<'a> KeywordGroups<'a> {
    fn scan(members: &'a Map) -> Self {
        let mut groups = KeywordGroups::default();
        for (key, value) in members.iter() {
            match key.as_str() {
                // Most of the text of a schema, without an effect on objects.
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
}

impl<'d> Schema<'d> {
    /// Builds the structural tree of this document, with nodes shared through the interner.
    pub fn structural(self, interner: &mut Interner) -> Result<Arc<Structural>, UnsupportedKeyword> {
        StructuralBuilder {
            interner,
            mode: BuildMode::Structure,
        }
        .schema(self.members)
    }

    /// Builds the tree for validating values. Schemas that are not structural have one, too: a structural
    /// schema must not have `$schema`, but validators ignore it.
    pub fn for_values(self, interner: &mut Interner) -> Result<Arc<Structural>, UnsupportedKeyword> {
        StructuralBuilder {
            interner,
            mode: BuildMode::Values,
        }
        .schema(self.members)
    }

    /// Returns the keyword that prevents validation of values, without building a tree.
    pub fn unsupported_for_values(self) -> Option<UnsupportedKeyword> {
        self.check_support(BuildMode::Values).err()
    }

    /// Returns the keyword that prevents a structural form, without building a tree.
    pub fn unsupported(self) -> Option<UnsupportedKeyword> {
        self.check_support(BuildMode::Structure).err()
    }

    /// Checks for unsupported keywords in the order in which [`Schema::structural`] refuses them.
    fn check_support(self, mode: BuildMode) -> Result<(), UnsupportedKeyword> {
        let below = |s: Schema<'d>| s.check_support(mode);
        let groups = KeywordGroups::scan(self.members);
        if groups.unsupported {
            self.supported(mode)?;
        }
        if groups.extensions {
            self.supported_extensions()?;
        }
        if groups.validation {
            for key in ["allOf", "oneOf", "anyOf"] {
                self.schemas(key).try_for_each(below)?;
            }
            self.schema("not").map_or(Ok(()), below)?;
        }
        let items = single_items(groups.items)?.map(Schema::from_members);
        items.map_or(Ok(()), below)?;
        self.properties().try_for_each(|(_, s)| below(s))?;
        self.additional_schema().map_or(Ok(()), below)
    }

    fn supported(self, mode: BuildMode) -> Result<(), UnsupportedKeyword> {
        let structure = mode == BuildMode::Structure;
        let unsupported = |text| Err(UnsupportedKeyword(text));
        let filled = |key| self.named_schemas(key).len() > 0;
        if structure && !self.string("id").is_empty() {
            return unsupported("OpenAPIV3Schema 'id' is not supported");
        }
        if structure && !self.string("$schema").is_empty() {
            return unsupported("OpenAPIV3Schema 'schema' is not supported");
        }
        if !self.string("$ref").is_empty() {
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
        if structure && filled("definitions") {
            return unsupported("OpenAPIV3Schema 'definitions' is not supported");
        }
        Ok(())
    }

    fn supported_extensions(self) -> Result<(), UnsupportedKeyword> {
        if self.tristate("x-kubernetes-preserve-unknown-fields") == Some(false) {
            return Err(UnsupportedKeyword(
                "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined",
            ));
        }
        Ok(())
    }

    fn extensions(self) -> Result<Option<Box<Extensions>>, UnsupportedKeyword> {
        self.supported_extensions()?;
        let mut x = Extensions::default();
        for (key, value) in self.members.iter() {
            let Some(key) = key.strip_prefix("x-kubernetes-") else {
                continue;
            };
            let flag = || value.as_bool().unwrap_or_default();
            let text = || value.as_str().unwrap_or_default();
            let list = || value.as_array().unwrap_or_default();
            match key {
                "preserve-unknown-fields" => x.preserve_unknown_fields = flag(),
                "embedded-resource" => x.embedded_resource = flag(),
                "int-or-string" => x.int_or_string = flag(),
                "list-type" => {
                    x.list_type = match text() {
                        "atomic" => Some(ListType::Atomic),
                        "set" => Some(ListType::Set),
                        "map" => Some(ListType::Map),
                        _ => None,
                    }
                }
                "list-map-keys" => {
                    let keys = list().iter().map(|key| key.as_str().unwrap_or_default());
                    x.list_map_keys = keys.map(Into::into).collect();
                }
                "map-type" => {
                    x.map_type = value.as_str().map(|ty| match ty {
                        "atomic" => MapType::Atomic,
                        "granular" => MapType::Granular,
                        _ => MapType::Unsupported,
                    });
                }
                "unions" => x.unions = list().iter().map(Schema::new).map(union).collect(),
                "patch-strategy" => {
                    let strategies = text().split(',').filter(|s| !s.is_empty());
                    x.patch.get_or_insert_default().strategies = strategies.map(Into::into).collect();
                }
                "patch-merge-key" => {
                    let key = Some(text()).filter(|key| !key.is_empty());
                    x.patch.get_or_insert_default().merge_key = key.map(Into::into);
                }
                _ => {}
            }
        }
        x.mutability = Mutability::ALL.into_iter().find(|m| self.flag(m.keyword()));
        // An empty strategy is the same as none; otherwise equal schemas would not be shared.
        x.patch = x.patch.filter(|patch| *patch != PatchStrategy::default());
        Ok((x != Extensions::default()).then(|| Box::new(x)))
    }

    /// Collects the keywords that constrain values; `None` if there are none.
    fn validation(
        self,
        build: &mut StructuralBuilder<'_>,
    ) -> Result<Option<Box<ValueValidation>>, UnsupportedKeyword> {
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
                "maximum" => v.maximum = number(value).map(structural::EqFloat),
                "exclusiveMaximum" => v.exclusive_maximum = flag(),
                "minimum" => v.minimum = number(value).map(structural::EqFloat),
                "exclusiveMinimum" => v.exclusive_minimum = flag(),
                "maxLength" => v.max_length = value.as_int(),
                "minLength" => v.min_length = value.as_int(),
                "pattern" => v.pattern = text(),
                "maxItems" => v.max_items = value.as_int(),
                "minItems" => v.min_items = value.as_int(),
                "uniqueItems" => v.unique_items = flag(),
                "multipleOf" => v.multiple_of = number(value).map(structural::EqFloat),
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
                    .map(|s| build.schema(s.members))
                    .collect::<Result<Box<[_]>, _>>()
            };
            v.all_of = branches("allOf")?;
            v.one_of = branches("oneOf")?;
            v.any_of = branches("anyOf")?;
            v.not = self.schema("not").map(|s| build.schema(s.members)).transpose()?;
        }
        Ok((*v != ValueValidation::default()).then_some(v))
    }
}

/// Builds the structural tree of a document.
struct StructuralBuilder<'i> {
    interner: &'i mut Interner,
    mode: BuildMode,
}

impl StructuralBuilder<'_> {
    fn schema(&mut self, members: &Map) -> Result<Arc<Structural>, UnsupportedKeyword> {
        let groups = KeywordGroups::scan(members);
        let ty = Type::parse(groups.ty);
        let unknown_type = ty.is_none() && !groups.ty.is_empty();
        let mut out = Structural {
            ty,
            nullable: groups.nullable,
            default: groups.default.cloned().map(Json::from),
            ..Structural::default()
        };
        if groups.unsupported || groups.extensions || groups.validation || unknown_type {
            let schema = Schema::from_members(members);
            if groups.unsupported {
                schema.supported(self.mode)?;
            }
            if groups.extensions {
                out.extensions = schema.extensions()?;
                out.rules = schema.rules().collect();
            }
            if groups.validation || unknown_type {
                out.validation = schema.validation(self)?;
            }
        }
        let items = single_items(groups.items)?;
        out.items = items.map(|items| self.schema(items)).transpose()?;
        out.additional = match groups.additional {
            Some(Value::Object(values)) => Some(Additional::Schema(self.schema(values)?)),
            Some(any) => Some(Additional::Any(any.as_bool().unwrap_or(false))),
            None => None,
        };
        let properties = groups.properties.into_iter().flat_map(Map::iter);
        let property = |(name, document): (&Str, &Value)| {
            let schema = self.schema(document.as_object().unwrap_or(&NO_MEMBERS))?;
            Ok((name.clone(), schema))
        };
        out.properties = properties.map(property).collect::<Result<_, _>>()?;
        Ok(self.interner.intern(out))
    }
}

/// `items` as a single schema; a list is unsupported.
fn single_items(items: Option<&Value>) -> Result<Option<&Map>, UnsupportedKeyword> {
    match items {
        Some(Value::Object(items)) => Ok(Some(items)),
        Some(Value::Array(each)) if !each.is_empty() => Err(UnsupportedKeyword(
            "OpenAPIV3Schema 'items' must be a schema, but is an array",
        )),
        _ => Ok(None),
    }
}

fn union(s: Schema<'_>) -> Union {
    let discriminator = s.string("discriminator");
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
