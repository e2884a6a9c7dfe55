//! The table: packages, types, fields and resources.

mod attributes;
mod index;
mod parse;
mod resource;

pub use attributes::Attributes;
pub use parse::TableError;
pub use resource::{ApiResource, ApiSubresource, Scope};

use foldhash::HashMap;
use index::NameIndex;
use scantling_value::same_text;
use std::fmt;
use std::sync::OnceLock;

/// The files of the table, by package.
static FILES: &[(&str, &str)] = &include!("../table/files.in");

/// Fields that only Scantling has, by the package whose types they extend.
static EXTENSIONS: &[(&str, &str)] = &[
    ("apiextensions/v1", include_str!("../extensions.types")),
    ("apiextensions/v1beta1", include_str!("../extensions.types")),
];

/// A Kubernetes release in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(u8);

impl Release {
    /// The oldest release in the table: Kubernetes 1.33.
    pub const OLDEST: Release = Release(33);
    /// The newest release: Kubernetes 1.37.
    pub const LATEST: Release = Release(37);

    /// The release `1.<minor>`, if the table has it.
    pub fn new(minor: u8) -> Option<Release> {
        let release = Release(minor);
        (Self::OLDEST <= release && release <= Self::LATEST).then_some(release)
    }

    /// The minor version.
    pub fn minor(self) -> u8 {
        self.0
    }

    fn parse(text: &str) -> Option<Release> {
        text.strip_prefix("1.")?.parse().ok().and_then(Release::new)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

/// The API types and resources of one release.
#[derive(Debug)]
pub struct TypeTable {
    packages: Vec<ApiPackage>,
    definitions: Vec<TypeDef>,
    resources: Vec<ApiResource>,
    /// Types by package and name.
    names: HashMap<(&'static str, &'static str), TypeId>,
    /// Packages by group and version.
    versions: HashMap<(&'static str, &'static str), u16>,
}

/// A Go package of API types.
#[derive(Debug)]
pub struct ApiPackage {
    /// The name in the table: `apps/v1`.
    pub id: &'static str,
    /// The import path.
    pub path: &'static str,
    /// The API group, if the package is a version of one.
    pub group: Option<&'static str>,
}

impl ApiPackage {
    /// The API version, or the Go package name if the package is not one.
    pub fn version(&self) -> &'static str {
        self.id.rsplit('/').next().unwrap_or(self.id)
    }

    /// The package in OpenAPI model names: `io.k8s.api.apps.v1`.
    pub fn model(&self) -> String {
        let path = self.path.strip_prefix(Self::HOST).unwrap_or(self.path);
        format!("{}{}", Self::MODELS, path.replace('/', "."))
    }

    /// Returns whether the package has this name in OpenAPI model names.
    pub(crate) fn is_model(&self, name: &str) -> bool {
        let parts = self
            .path
            .strip_prefix(Self::HOST)
            .zip(name.strip_prefix(Self::MODELS));
        parts.is_some_and(|(path, name)| path.len() == name.len() && path.split('/').eq(name.split('.')))
    }

    const HOST: &'static str = "k8s.io/";
    const MODELS: &'static str = "io.k8s.";
}

/// Identifies a type of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(u16);

/// The definition of a type.
#[derive(Debug)]
pub struct TypeDef {
    /// The identifier.
    pub id: TypeId,
    /// The Go name.
    pub name: &'static str,
    /// The kind of type.
    pub kind: TypeKind,
    /// True if a list type is a protobuf message of its own.
    pub(crate) is_message: bool,
    /// Further attributes.
    pub attributes: Attributes,
    package: u16,
}

impl TypeDef {
    /// The fields in JSON order, including those of inlined structs; empty if the type is not a struct.
    pub fn members(&self) -> &[FieldDef] {
        match &self.kind {
            TypeKind::Struct(s) => &s.members,
            _ => &[],
        }
    }

    /// Returns whether values of the type have `apiVersion` and `kind`.
    pub fn is_object(&self) -> bool {
        let first = self
            .as_struct()
            .and_then(|s| Some((s.declared.first()?, s.members.first()?)));
        // The first field of an object is the inlined `TypeMeta`, which begins with `kind`.
        first.is_some_and(|(declared, member)| declared.is_inlined() && member.name == "kind")
    }

    /// The struct, if the type is one.
    pub fn as_struct(&self) -> Option<&StructDef> {
        match &self.kind {
            TypeKind::Struct(s) => Some(s),
            _ => None,
        }
    }
}

/// The kind of a type.
#[derive(Debug)]
pub enum TypeKind {
    /// A struct.
    Struct(StructDef),
    /// A named type with the values of another.
    Named(GoType),
    /// A type with a custom encoding.
    Custom(Codec),
}

/// The fields of a struct.
#[derive(Debug)]
pub struct StructDef {
    /// The declared fields: an inlined struct is one field.
    pub declared: Vec<FieldDef>,
    /// The JSON fields, in the same order.
    pub members: Vec<FieldDef>,
    /// Indexes of `members` by name.
    index: NameIndex,
    /// Indexes of `members` that are always written.
    always: Vec<u16>,
    /// Indexes of `declared` fields with protobuf numbers, sorted by number.
    numbered: Vec<u16>,
}

impl StructDef {
    /// Looks up a field by its JSON name.
    #[inline]
    pub fn field(&self, name: &str) -> Option<&FieldDef> {
        self.find(name).map(|(_, field)| field)
    }

    /// Looks up a field by its JSON name, with its index in `members`.
    #[inline]
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &FieldDef)> {
        let candidates = self.index.candidates(name);
        let mut fields = candidates.filter_map(|at| Some((at, self.members.get(at)?)));
        fields.find(|(_, field)| same_text(field.name, name))
    }

    /// The fields that are always written.
    pub(crate) fn always(&self) -> impl Iterator<Item = &FieldDef> {
        self.always
            .iter()
            .filter_map(|at| self.members.get(usize::from(*at)))
    }

    /// The declared fields with protobuf numbers, in order.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = &FieldDef> {
        self.numbered
            .iter()
            .filter_map(|at| self.declared.get(usize::from(*at)))
    }

    /// Looks up a declared field by its protobuf number.
    pub(crate) fn number(&self, number: u64) -> Option<&FieldDef> {
        self.declared
            .iter()
            .find(|f| f.number > 0 && u64::from(f.number) == number)
    }
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub struct FieldDef {
    /// The JSON name; empty for an inlined struct.
    pub name: &'static str,
    /// The Go name, if it is not the capitalized JSON name.
    go_name: Option<&'static str>,
    /// The type, including pointers.
    pub ty: GoType,
    /// The protobuf number; 0 if there is none.
    pub number: u32,
    /// The presence of the field in encoded objects.
    pub presence: Presence,
    /// True if OpenAPI requires the field.
    pub is_required: bool,
    /// The extension that defines the field; none for the fields of Kubernetes.
    pub extension: Extensions,
    /// The Go names of the inlined structs that the field is in, outermost first.
    pub(crate) embedded: Vec<&'static str>,
    /// All other attributes.
    pub attributes: Attributes,
}

impl FieldDef {
    /// The name in Go.
    pub fn go_name(&self) -> String {
        match self.go_name {
            Some(name) => name.to_owned(),
            None => {
                let mut rest = self.name.chars();
                let initial = rest.next().map(|c| c.to_ascii_uppercase());
                initial.into_iter().chain(rest).collect()
            }
        }
    }

    /// Returns whether the field is an inlined struct.
    pub fn is_inlined(&self) -> bool {
        self.name.is_empty()
    }
}

/// A set of extensions of Kubernetes' types that a server can enable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions(u8);

impl Extensions {
    /// No extension.
    pub const NONE: Extensions = Extensions(0);
    /// `x-kubernetes-immutable` and related keywords.
    pub const IMMUTABILITY: Extensions = Extensions(1);
    /// `x-kubernetes-unions`
    pub const UNIONS: Extensions = Extensions(2);
    /// `appliesOnCreate` of validation rules.
    pub const APPLIES_ON_CREATE: Extensions = Extensions(4);

    /// The union.
    #[must_use]
    pub fn with(self, others: Extensions) -> Extensions {
        Extensions(self.0 | others.0)
    }

    /// Returns whether all of `others` are in the set.
    pub fn contains(self, others: Extensions) -> bool {
        self.0 & others.0 == others.0
    }
}

/// When a field is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always, with its zero value if unset.
    Required,
    /// If it is not its zero value.
    OmitEmpty,
    /// If it is set, even to its zero value.
    Pointer,
}

/// A Go type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoType {
    /// `bool`
    Bool,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `float64`
    Float64,
    /// `string`
    String,
    /// `[]byte`: base64 in JSON.
    Bytes,
    /// `any`
    Any,
    /// `*T`
    Pointer(Box<GoType>),
    /// `[]T`
    List(Box<GoType>),
    /// `map[K]V`; keys are strings.
    Map(Box<(GoType, GoType)>),
    /// A named type of the table.
    Named(TypeId),
}

/// The custom encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// A time with second precision.
    Time,
    /// A time with microsecond precision.
    MicroTime,
    /// A resource quantity.
    Quantity,
    /// An integer or a string.
    IntOrString,
    /// Any value: an object of another API.
    Raw,
    /// Any value: the field set of a manager.
    Fields,
    /// Any value: part of a schema.
    Json,
    /// A schema or a boolean.
    SchemaOrBool,
    /// A schema or a list of schemas.
    SchemaOrList,
    /// A schema or a list of strings.
    SchemaOrStrings,
}

/// API machinery types that clients know as kinds of `v1`. Discovery does not always name that version.
pub const UNVERSIONED_TYPES: &[&str] = &[
    "Status",
    "APIVersions",
    "APIGroupList",
    "APIGroup",
    "APIResourceList",
];

/// API machinery types that belong to every version of every group.
pub const TYPES_OF_ALL_VERSIONS: &[&str] = &[
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
];

/// The zero time of Go, with the precisions of `Time` and `MicroTime`.
pub(crate) const ZERO_TIMES: [&str; 2] = ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"];

const META: &str = "meta/v1";

impl TypeTable {
    /// The table of the newest release.
    pub fn latest() -> &'static TypeTable {
        TypeTable::for_release(Release::LATEST)
    }

    /// The table of a release, parsed on first use.
    pub fn for_release(release: Release) -> &'static TypeTable {
        const COUNT: usize = (Release::LATEST.0 - Release::OLDEST.0 + 1) as usize;
        static TABLES: [OnceLock<TypeTable>; COUNT] = [const { OnceLock::new() }; COUNT];
        // There is no `Release` before the oldest one, so this cannot underflow.
        let at = usize::from(release.0 - Release::OLDEST.0);
        let slot = TABLES.get(at).unwrap_or(&TABLES[COUNT - 1]);
        slot.get_or_init(|| match TypeTable::parse(&[FILES, EXTENSIONS], release) {
            Ok(table) => table,
            #[expect(
                clippy::panic,
                reason = "the table is part of the program, and tests read all of it"
            )]
            Err(e) => panic!("the table of API types: {e}"),
        })
    }

    /// The definition of a type.
    pub fn get(&self, id: TypeId) -> &TypeDef {
        #[expect(
            clippy::indexing_slicing,
            reason = "only the table makes identifiers of its types"
        )]
        &self.definitions[usize::from(id.0)]
    }

    /// The package of a type.
    pub fn package(&self, definition: &TypeDef) -> &ApiPackage {
        #[expect(clippy::indexing_slicing, reason = "only the table makes definitions")]
        &self.packages[usize::from(definition.package)]
    }

    /// All packages.
    pub fn packages(&self) -> &[ApiPackage] {
        &self.packages
    }

    /// All types.
    pub fn definitions(&self) -> &[TypeDef] {
        &self.definitions
    }

    /// All resources.
    pub fn resources(&self) -> &[ApiResource] {
        &self.resources
    }

    /// Looks up a type of a package.
    pub fn find(&self, package: &str, name: &str) -> Option<&TypeDef> {
        self.names.get(&(package, name)).map(|id| self.get(*id))
    }

    /// Looks up a type that the program refers to by name.
    ///
    /// # Panics If the table does not have it.
    pub fn known(&self, package: &str, name: &str) -> &TypeDef {
        match self.find(package, name) {
            Some(definition) => definition,
            #[expect(
                clippy::panic,
                reason = "the name is a constant of the program, as the table is"
            )]
            None => panic!("the table of API types has no {package}.{name}"),
        }
    }

    /// The struct of a kind.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&TypeDef> {
        let own = self.versions.get(&(group, version)).and_then(|package| {
            let package = self.packages.get(usize::from(*package))?;
            self.find(package.id, kind)
        });
        let shared = || {
            let is_shared = TYPES_OF_ALL_VERSIONS.contains(&kind)
                || (group.is_empty() && matches!(version, "" | "v1") && UNVERSIONED_TYPES.contains(&kind));
            self.find(META, kind).filter(|_| is_shared)
        };
        let definition = own.or_else(shared)?;
        let definition = match definition.kind {
            TypeKind::Named(GoType::Named(other)) => self.get(other),
            _ => definition,
        };
        (definition.is_object() || TYPES_OF_ALL_VERSIONS.contains(&kind)).then_some(definition)
    }

    /// Resolves pointers and names: returns a basic type, a list, a map, or the name of a struct or custom
    /// type.
    pub fn underlying<'t>(&'t self, mut ty: &'t GoType) -> &'t GoType {
        loop {
            ty = match ty {
                GoType::Pointer(inner) => inner,
                GoType::Named(id) => match &self.get(*id).kind {
                    TypeKind::Named(inner) => inner,
                    TypeKind::Struct(_) | TypeKind::Custom(_) => return ty,
                },
                other => return other,
            }
        }
    }

    /// The struct of a type, behind pointers and names.
    pub fn struct_of(&self, ty: &GoType) -> Option<&StructDef> {
        match self.underlying(ty) {
            GoType::Named(id) => self.get(*id).as_struct(),
            _ => None,
        }
    }

    /// The custom encoding of a type, behind pointers and names, if it has one.
    pub fn codec_of(&self, ty: &GoType) -> Option<Codec> {
        match self.underlying(ty) {
            GoType::Named(id) => match self.get(*id).kind {
                TypeKind::Custom(codec) => Some(codec),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether a text is the zero time of Go, and the type one of times.
    pub(crate) fn is_zero_time(&self, ty: &GoType, text: &str) -> bool {
        ZERO_TIMES.contains(&text) && matches!(self.codec_of(ty), Some(Codec::Time | Codec::MicroTime))
    }

    /// Formats the type as Go prints it: `[]v1.Container`. Leading pointers are omitted.
    pub fn go_type(&self, ty: &GoType) -> String {
        match ty {
            GoType::Bool => "bool".to_owned(),
            GoType::Int32 => "int32".to_owned(),
            GoType::Int64 => "int64".to_owned(),
            GoType::Float64 => "float64".to_owned(),
            GoType::String => "string".to_owned(),
            GoType::Bytes => "[]uint8".to_owned(),
            GoType::Any => "interface {}".to_owned(),
            GoType::Pointer(inner) => self.go_type(inner),
            GoType::List(element) => format!("[]{}", self.go_element(element)),
            GoType::Map(entry) => format!("map[{}]{}", self.go_type(&entry.0), self.go_element(&entry.1)),
            GoType::Named(id) => {
                let definition = self.get(*id);
                let package = self.package(definition);
                format!("{}.{}", package.version(), definition.name)
            }
        }
    }

    fn go_element(&self, ty: &GoType) -> String {
        match ty {
            GoType::Pointer(inner) => format!("*{}", self.go_element(inner)),
            other => self.go_type(other),
        }
    }
}

#[cfg(test)]
mod tests;
