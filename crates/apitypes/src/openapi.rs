//! OpenAPI schemas of API types, as kube-apiserver publishes them in OpenAPI v3.
//!
//! The same schemas define how server-side apply and strategic merge patches merge objects.

use crate::{Codec, Extensions, FieldDef, GoType, StructDef, TypeDef, TypeKind, TypeTable, table};
use scantling_value::{Limits, Map, Value, json};
use std::borrow::Cow;

/// The prefix of references in OpenAPI v3.
pub const COMPONENTS: &str = "#/components/schemas/";

/// Descriptions of types and fields, which the table does not have.
pub trait Descriptions {
    /// The description of a model, or of one of its fields.
    fn get(&self, model: &str, field: Option<&str>) -> Option<Cow<'_, str>>;
}

/// No descriptions.
#[derive(Clone, Copy, Debug)]
pub struct Undescribed;

impl Descriptions for Undescribed {
    fn get(&self, _: &str, _: Option<&str>) -> Option<Cow<'_, str>> {
        None
    }
}

impl TypeTable {
    /// The name of a type's OpenAPI model: `io.k8s.api.apps.v1.Deployment`.
    pub fn model_name(&self, definition: &TypeDef) -> String {
        format!("{}.{}", self.package(definition).model(), definition.name)
    }

    /// The type of a model.
    pub fn model(&self, name: &str) -> Option<&TypeDef> {
        let (package, name) = name.rsplit_once('.')?;
        let package = self.packages().iter().find(|p| p.is_model(package))?;
        self.find(package.id, name)
    }

    /// The schema of a type.
    pub fn schema(
        &self,
        definition: &TypeDef,
        extensions: Extensions,
        descriptions: &impl Descriptions,
    ) -> Value {
        let model = self.model_name(definition);
        let mut schema = match (&definition.kind, self.struct_of(&GoType::Named(definition.id))) {
            (TypeKind::Custom(codec), _) => custom_schema(*codec),
            (TypeKind::Named(ty), None) => self.type_schema(ty),
            (_, Some(s)) => {
                let mut schema = self.struct_schema(s, &model, extensions, descriptions);
                merge_facts(definition.attributes, &mut schema);
                let kinds = self.group_version_kinds(definition);
                if !kinds.is_empty() {
                    schema.insert("x-kubernetes-group-version-kind", kinds.into());
                }
                if definition.attributes.has("union") {
                    schema.insert("x-kubernetes-unions", Value::Array(vec![union(s)]));
                }
                schema
            }
            (TypeKind::Struct(_), None) => Map::new(),
        };
        if let Some(text) = descriptions.get(&model, None) {
            schema.insert("description", text.as_ref().into());
        }
        schema.into()
    }

    fn struct_schema(
        &self,
        s: &StructDef,
        model: &str,
        extensions: Extensions,
        descriptions: &impl Descriptions,
    ) -> Map {
        let mut schema = Map::from_iter([("type", Value::from("object"))]);
        let mut properties = Map::new();
        let mut required: Vec<Value> = Vec::new();
        for field in s.members.iter().filter(|f| extensions.contains(f.extension)) {
            let property = self.property(field, descriptions.get(model, Some(field.name)).as_deref());
            properties.insert(field.name, property.into());
            if field.is_required {
                required.push(field.name.into());
            }
        }
        if !properties.is_empty() {
            schema.insert("properties", properties.into());
        }
        if !required.is_empty() {
            schema.insert("required", required.into());
        }
        schema
    }

    /// Returns whether the type is a kind of every version of every group. Documents differ in the versions that they list.
    pub fn is_in_every_version(&self, definition: &TypeDef) -> bool {
        table::TYPES_OF_ALL_VERSIONS.contains(&definition.name)
    }

    /// The kinds whose objects have the type.
    fn group_version_kinds(&self, definition: &TypeDef) -> Vec<Value> {
        let name = definition.name;
        if self.is_in_every_version(definition) {
            return Vec::new();
        }
        let packages = self
            .packages()
            .iter()
            .filter_map(|p| Some((p.group?, p.version())));
        let mut kinds: Vec<(&str, &str)> = packages
            .filter(|(group, version)| {
                self.kind(group, version, name)
                    .is_some_and(|d| d.id == definition.id)
            })
            .filter(|(group, _)| group.is_empty() || !table::UNVERSIONED_TYPES.contains(&name))
            .collect();
        kinds.sort_unstable();
        let kind = |(group, version): (&str, &str)| {
            let members = [("group", group), ("kind", name), ("version", version)];
            Value::from(Map::from_iter(members.map(|(k, v)| (k, Value::from(v)))))
        };
        kinds.into_iter().map(kind).collect()
    }

    /// The schema of a field.
    fn property(&self, field: &FieldDef, description: Option<&str>) -> Map {
        let mut schema = self.type_schema(&field.ty);
        if let Some(text) = description {
            let values = schema.get("enum").and_then(Value::as_array);
            schema.insert(
                "description",
                with_values(text, values.unwrap_or_default()).into(),
            );
        }
        if let Some(default) = self.default(field) {
            schema.insert("default", default);
        }
        merge_facts(field.attributes, &mut schema);
        if let Some((strategy, key)) = field.attributes.patch() {
            schema.insert("x-kubernetes-patch-strategy", strategy.into());
            if let Some(key) = key {
                schema.insert("x-kubernetes-patch-merge-key", key.into());
            }
        }
        if field.attributes.has("nullable") {
            schema.insert("nullable", true.into());
        }
        // OpenAPI ignores siblings of a reference, so it is wrapped in `allOf`.
        if schema.len() > 1
            && let Some(reference) = schema.remove("$ref")
        {
            let reference = Map::from_iter([("$ref", reference)]);
            schema.insert("allOf", Value::Array(vec![reference.into()]));
        }
        schema
    }

    /// The default in OpenAPI: the declared one, or the zero value of a field that is always present.
    fn default(&self, field: &FieldDef) -> Option<Value> {
        if let Some(text) = field.attributes.default() {
            return json::decode(text.as_bytes(), Limits::SAFE).ok();
        }
        let is_omitted = !field.attributes.has("always");
        match &field.ty {
            GoType::Pointer(_) => None,
            ty => match self.underlying(ty) {
                GoType::Named(id) => match &self.get(*id).kind {
                    // Go never omits an empty struct, so kube-openapi gives it a default even with `omitempty`.
                    TypeKind::Struct(_) => Some(Map::new().into()),
                    _ => None,
                },
                GoType::Bytes | GoType::List(_) | GoType::Map(_) | GoType::Any | GoType::Pointer(_) => None,
                _ if is_omitted => None,
                scalar => Some(self.zero(scalar)),
            },
        }
    }

    fn type_schema(&self, ty: &GoType) -> Map {
        let of = |members: &[(&str, &str)]| -> Map {
            members.iter().map(|(k, v)| (*k, Value::from(*v))).collect()
        };
        match ty {
            GoType::Bool => of(&[("type", "boolean")]),
            GoType::Int32 => of(&[("type", "integer"), ("format", "int32")]),
            GoType::Int64 => of(&[("type", "integer"), ("format", "int64")]),
            GoType::Float64 => of(&[("type", "number"), ("format", "double")]),
            GoType::String => of(&[("type", "string")]),
            GoType::Bytes => of(&[("type", "string"), ("format", "byte")]),
            GoType::Any => of(&[("type", "object")]),
            GoType::Pointer(inner) => self.type_schema(inner),
            GoType::List(element) => Map::from_iter([
                ("type", Value::from("array")),
                ("items", self.type_schema(element).into()),
            ]),
            GoType::Map(entry) => Map::from_iter([
                ("type", Value::from("object")),
                ("additionalProperties", self.type_schema(&entry.1).into()),
            ]),
            GoType::Named(id) => {
                let definition = self.get(*id);
                let is_alias = definition.attributes.has("alias");
                let is_struct = self.struct_of(ty).is_some();
                match &definition.kind {
                    // A named struct is a model of its own, unless it is an alias.
                    TypeKind::Named(inner) if is_alias || !is_struct => {
                        let mut schema = self.type_schema(inner);
                        if let Some(values) = definition.attributes.enumeration() {
                            let values: Vec<Value> = values.into_iter().map(Value::from).collect();
                            schema.insert("enum", values.into());
                        }
                        schema
                    }
                    _ => Map::from_iter([(
                        "$ref",
                        Value::from(format!("{COMPONENTS}{}", self.model_name(definition))),
                    )]),
                }
            }
        }
    }
}

/// A description followed by the values of an enumeration, as kube-apiserver lists them, without their descriptions.
fn with_values(description: &str, values: &[Value]) -> String {
    let mut out = description.to_owned();
    if !values.is_empty() {
        out.push_str("\n\nPossible enum values:");
    }
    for value in values {
        out.push_str("\n - `");
        out.push_str(&value.to_json());
        out.push('`');
    }
    out
}

/// A union of all fields, with its discriminator, if there is one.
fn union(s: &StructDef) -> Value {
    let mut out = Map::new();
    let mut fields = Map::new();
    for field in &s.members {
        if field.attributes.has("unionDiscriminator") {
            out.insert("discriminator", field.name.into());
        } else {
            fields.insert(field.name, field.go_name().into());
        }
    }
    out.insert("fields-to-discriminateBy", fields.into());
    out.into()
}

/// Adds the merge strategies of lists, maps and structs.
fn merge_facts(attributes: crate::Attributes, schema: &mut Map) {
    if let Some((list, keys)) = attributes.list() {
        schema.insert("x-kubernetes-list-type", list.into());
        if !keys.is_empty() {
            let keys: Vec<Value> = keys.into_iter().map(Value::from).collect();
            schema.insert("x-kubernetes-list-map-keys", keys.into());
        }
    }
    if let Some(map) = attributes.value("map").or_else(|| attributes.value("struct")) {
        schema.insert("x-kubernetes-map-type", map.into());
    }
}

fn custom_schema(codec: Codec) -> Map {
    let alternatives = |types: [&str; 2]| {
        let schema = |name: &str| Value::from(Map::from_iter([("type", Value::from(name))]));
        Value::Array(types.map(schema).to_vec())
    };
    match codec {
        Codec::Time | Codec::MicroTime => {
            Map::from_iter([("type", Value::from("string")), ("format", "date-time".into())])
        }
        Codec::Quantity => Map::from_iter([("oneOf", alternatives(["string", "number"]))]),
        Codec::IntOrString => Map::from_iter([
            ("oneOf", alternatives(["integer", "string"])),
            ("format", "int-or-string".into()),
        ]),
        Codec::Raw | Codec::Fields => Map::from_iter([("type", Value::from("object"))]),
        Codec::Json | Codec::SchemaOrBool | Codec::SchemaOrList | Codec::SchemaOrStrings => Map::new(),
    }
}
