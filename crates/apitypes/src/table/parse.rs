//! Parses the table.

use super::{
    ApiPackage, ApiResource, ApiSubresource, Attributes, Codec, Extensions, FieldDef, GoType, NameIndex,
    Presence, Release, StructDef, TypeDef, TypeId, TypeKind, TypeTable,
};
use foldhash::HashMap;
use std::fmt;

/// A malformed line of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct TableError {
    package: String,
    line: usize,
    problem: String,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.types:{}: {}", self.package, self.line, self.problem)
    }
}

impl std::error::Error for TableError {}

impl TypeTable {
    /// Parses the table of a release.
    pub(super) fn parse(
        files: &[&'static [(&'static str, &'static str)]],
        release: Release,
    ) -> Result<TypeTable, TableError> {
        let mut parser = TableParser {
            release,
            table: TypeTable {
                packages: Vec::new(),
                definitions: Vec::new(),
                resources: Vec::new(),
                names: HashMap::default(),
                versions: HashMap::default(),
            },
            id: "",
            line: 0,
        };
        for (id, text) in files.iter().copied().flatten() {
            parser.names(id, text)?;
        }
        for (id, text) in files.iter().copied().flatten() {
            parser.package(id, text)?;
        }
        // Inlining copies fields, so it runs last.
        parser.table.keep_structs();
        match parser.table.inline() {
            Some(()) => Ok(parser.table),
            None => Err(parser.error("a struct with too many fields")),
        }
    }

    /// Go never omits empty structs, except with `omitzero`. Custom types are structs, too.
    fn keep_structs(&mut self) {
        let is_struct: Vec<bool> = self
            .definitions
            .iter()
            .map(|d| matches!(self.underlying(&GoType::Named(d.id)), GoType::Named(_)))
            .collect();
        for definition in &mut self.definitions {
            let TypeKind::Struct(s) = &mut definition.kind else {
                continue;
            };
            for field in &mut s.declared {
                let GoType::Named(id) = field.ty else { continue };
                let is_struct = is_struct.get(usize::from(id.0)) == Some(&true);
                if is_struct && field.presence == Presence::OmitEmpty && !field.attributes.has("omitzero") {
                    field.presence = Presence::Required;
                }
            }
        }
    }

    /// Expands inlined structs; fails if one has too many fields.
    fn inline(&mut self) -> Option<()> {
        // Flattening reads other definitions, so all of them are flattened before any is changed.
        let members: Vec<Vec<FieldDef>> = self.definitions.iter().map(|d| self.flattened(&d.kind)).collect();
        for (definition, members) in self.definitions.iter_mut().zip(members) {
            if let TypeKind::Struct(s) = &mut definition.kind {
                s.index = NameIndex::new(members.iter().map(|f| f.name))?;
                let number = |at: &u16| s.declared.get(usize::from(*at)).map_or(0, |f| f.number);
                let mut numbered: Vec<u16> =
                    (0..).take(s.declared.len()).filter(|at| number(at) > 0).collect();
                numbered.sort_by_key(number);
                s.numbered = numbered;
                let is_always = |at: &u16| {
                    let field = members.get(usize::from(*at));
                    field.is_some_and(|f| f.presence == Presence::Required)
                };
                s.always = (0..).take(members.len()).filter(is_always).collect();
                s.members = members;
            }
        }
        Some(())
    }

    fn flattened(&self, kind: &TypeKind) -> Vec<FieldDef> {
        let TypeKind::Struct(s) = kind else {
            return Vec::new();
        };
        let mut members = Vec::with_capacity(s.declared.len());
        for field in &s.declared {
            match self.underlying(&field.ty) {
                GoType::Named(id) if field.is_inlined() => {
                    let inlined = self.get(*id);
                    members.extend(self.flattened(&inlined.kind).into_iter().map(|mut field| {
                        field.embedded.insert(0, inlined.name);
                        field
                    }));
                }
                _ => members.push(field.clone()),
            }
        }
        members
    }
}

struct TableParser {
    release: Release,
    table: TypeTable,
    /// The current package.
    id: &'static str,
    line: usize,
}

/// A line: its leading words and its attributes.
struct TableLine {
    keyword: &'static str,
    rest: &'static str,
}

impl TableLine {
    fn new(text: &'static str) -> TableLine {
        let (keyword, rest) = text.split_once(' ').unwrap_or((text, ""));
        TableLine { keyword, rest }
    }

    fn word(&mut self) -> &'static str {
        let (word, rest) = self.rest.split_once(' ').unwrap_or((self.rest, ""));
        self.rest = rest;
        word
    }

    fn attributes(&self) -> Attributes {
        Attributes::new(self.rest)
    }
}

impl TableParser {
    fn error(&self, problem: impl Into<String>) -> TableError {
        TableError {
            package: self.id.to_owned(),
            line: self.line,
            problem: problem.into(),
        }
    }

    /// Registers the names of all types of the release first, so that types can refer to later ones.
    fn names(&mut self, id: &'static str, text: &'static str) -> Result<(), TableError> {
        self.id = id;
        for (number, line) in text.lines().enumerate() {
            self.line = number + 1;
            let mut line = TableLine::new(line);
            match line.keyword {
                "package" => {
                    let path = line.word();
                    let attributes = line.attributes();
                    if !attributes.is_in(self.release) {
                        return Ok(());
                    }
                    let package = ApiPackage {
                        id,
                        path,
                        group: attributes.value("group"),
                    };
                    let at = u16::try_from(self.table.packages.len())
                        .map_err(|_| self.error("too many packages"))?;
                    if let Some(group) = package.group {
                        self.table.versions.insert((group, package.version()), at);
                    }
                    self.table.packages.push(package);
                }
                "struct" | "type" | "custom" => {
                    let name = line.word();
                    if line.attributes().is_in(self.release) {
                        let next = u16::try_from(self.table.names.len());
                        let next = TypeId(next.map_err(|_| self.error("too many types"))?);
                        self.table.names.insert((id, name), next);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn package(&mut self, id: &'static str, text: &'static str) -> Result<(), TableError> {
        self.id = id;
        // A package that the release does not have was not registered.
        let Some(package) = self.table.packages.iter().position(|p| p.id == id) else {
            return Ok(());
        };
        let package = u16::try_from(package).map_err(|_| self.error("too many packages"))?;
        let mut lines = text.lines().enumerate().peekable();
        while let Some((number, text)) = lines.next() {
            self.line = number + 1;
            let mut line = TableLine::new(text);
            let mut indented = Vec::new();
            while let Some((number, text)) = lines.next_if(|(_, text)| text.starts_with("  ")) {
                indented.push((number + 1, text.trim_start()));
            }
            match line.keyword {
                "" | "package" => {}
                "resource" => self.resource(&mut line, package, indented),
                "struct" | "type" | "custom" => self.definition(&mut line, package, indented)?,
                "extend" => {
                    let fields = self.fields(indented)?;
                    let extended = self.table.names.get(&(self.id, line.word()));
                    let extended = extended.and_then(|id| self.table.definitions.get_mut(usize::from(id.0)));
                    match extended.map(|d| &mut d.kind) {
                        Some(TypeKind::Struct(s)) => s.declared.extend(fields),
                        _ => return Err(self.error("an extension of no struct")),
                    }
                }
                other => return Err(self.error(format!("unknown keyword {other:?}"))),
            }
        }
        Ok(())
    }

    /// Adds a resource and its subresources, if the release has it.
    fn resource(&mut self, line: &mut TableLine, package: u16, indented: Vec<(usize, &'static str)>) {
        let name = line.word();
        let attributes = line.attributes();
        if !attributes.is_in(self.release) {
            return;
        }
        let Some(package) = self.table.packages.get(usize::from(package)) else {
            return;
        };
        let subresources = indented.into_iter().map(|(_, text)| {
            let line = TableLine::new(text);
            ApiSubresource {
                name: line.keyword,
                attributes: line.attributes(),
            }
        });
        self.table.resources.push(ApiResource {
            group: package.group.unwrap_or_default(),
            version: package.version(),
            name,
            subresources: subresources
                .filter(|s| s.attributes.is_in(self.release))
                .collect(),
            attributes,
        });
    }

    /// Adds a type, if the release has it.
    fn definition(
        &mut self,
        line: &mut TableLine,
        package: u16,
        indented: Vec<(usize, &'static str)>,
    ) -> Result<(), TableError> {
        let name = line.word();
        if !line.attributes().is_in(self.release) {
            return Ok(());
        }
        let Some(id) = self.table.names.get(&(self.id, name)).copied() else {
            return Err(self.error("a type without a name"));
        };
        let kind = match line.keyword {
            "struct" => TypeKind::Struct(StructDef {
                declared: self.fields(indented)?,
                members: Vec::new(),
                index: NameIndex::default(),
                always: Vec::new(),
                numbered: Vec::new(),
            }),
            "custom" => TypeKind::Custom(self.codec(line.word())?),
            _ => TypeKind::Named(self.ty(line.word())?),
        };
        // Names got their identifiers in the order of the text, and the definitions follow in the same order.
        if usize::from(id.0) != self.table.definitions.len() {
            return Err(self.error("a type that is declared twice"));
        }
        self.table.definitions.push(TypeDef {
            id,
            name,
            kind,
            is_message: line.attributes().has("message"),
            attributes: line.attributes(),
            package,
        });
        Ok(())
    }

    fn fields(&mut self, indented: Vec<(usize, &'static str)>) -> Result<Vec<FieldDef>, TableError> {
        let mut fields = Vec::with_capacity(indented.len());
        for (number, text) in indented {
            self.line = number;
            fields.extend(self.field(text)?);
        }
        Ok(fields)
    }

    /// Parses the line of a field; `None` if the release does not have it.
    fn field(&self, text: &'static str) -> Result<Option<FieldDef>, TableError> {
        let mut line = TableLine::new(text);
        let ty = line.word();
        let attributes = line.attributes();
        if !attributes.is_in(self.release) {
            return Ok(None);
        }
        let ty = self.ty(ty)?;
        let mut number = 0;
        let (mut is_always, mut is_required, mut go_name) = (false, false, None);
        let mut extension = Extensions::NONE;
        // Tags come last and are not needed here.
        for word in attributes.words().take_while(|word| !word.starts_with('+')) {
            match word {
                "always" => is_always = true,
                "required" => is_required = true,
                _ => {
                    if let Some(text) = word.strip_prefix('#') {
                        number = text.parse().map_err(|_| self.error("a number that is none"))?;
                    } else if let Some(name) = word.strip_prefix("go=") {
                        go_name = Some(name);
                    } else if let Some(name) = word.strip_prefix("extension=") {
                        extension = self.extension(name)?;
                    }
                }
            }
        }
        let presence = match ty {
            _ if is_always => Presence::Required,
            GoType::Pointer(_) => Presence::Pointer,
            _ => Presence::OmitEmpty,
        };
        let name = if line.keyword == "inline" {
            ""
        } else {
            line.keyword
        };
        Ok(Some(FieldDef {
            name,
            go_name,
            ty,
            number,
            presence,
            is_required,
            extension,
            embedded: Vec::new(),
            attributes,
        }))
    }

    fn extension(&self, name: &str) -> Result<Extensions, TableError> {
        Ok(match name {
            "immutability" => Extensions::IMMUTABILITY,
            "unions" => Extensions::UNIONS,
            "applies-on-create" => Extensions::APPLIES_ON_CREATE,
            other => return Err(self.error(format!("unknown extension {other:?}"))),
        })
    }

    fn codec(&self, name: &str) -> Result<Codec, TableError> {
        Ok(match name {
            "time" => Codec::Time,
            "micro-time" => Codec::MicroTime,
            "quantity" => Codec::Quantity,
            "int-or-string" => Codec::IntOrString,
            "raw" => Codec::Raw,
            "fields" => Codec::Fields,
            "json" => Codec::Json,
            "schema-or-bool" => Codec::SchemaOrBool,
            "schema-or-list" => Codec::SchemaOrList,
            "schema-or-strings" => Codec::SchemaOrStrings,
            other => return Err(self.error(format!("unknown encoding {other:?}"))),
        })
    }

    /// Parses a type: `*T`, `[]T`, `map[K]V`, a basic type, or a name.
    fn ty(&self, text: &'static str) -> Result<GoType, TableError> {
        if let Some(inner) = text.strip_prefix('*') {
            return Ok(GoType::Pointer(Box::new(self.ty(inner)?)));
        }
        if let Some(element) = text.strip_prefix("[]") {
            return Ok(match element {
                "byte" => GoType::Bytes,
                _ => GoType::List(Box::new(self.ty(element)?)),
            });
        }
        if let Some(rest) = text.strip_prefix("map[") {
            let (key, value) = rest
                .split_once(']')
                .ok_or_else(|| self.error("a map without a key"))?;
            return Ok(GoType::Map(Box::new((self.ty(key)?, self.ty(value)?))));
        }
        Ok(match text {
            "bool" => GoType::Bool,
            "int32" => GoType::Int32,
            "int64" => GoType::Int64,
            "float64" => GoType::Float64,
            "string" => GoType::String,
            "any" => GoType::Any,
            name => {
                let name = name.rsplit_once('.').unwrap_or((self.id, name));
                let id = self.table.names.get(&name);
                GoType::Named(*id.ok_or_else(|| self.error(format!("unknown type {text:?}")))?)
            }
        })
    }
}
