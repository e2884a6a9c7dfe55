//! A parser for the subset of Go that the API type files of Kubernetes use.
//!
//! The files are formatted by gofmt, so each declaration or field is on one line. It parses imports, struct
//! and other type declarations, their comments, and constants of string types.

use std::collections::BTreeMap;

/// The declarations of a package.
#[derive(Debug, Default)]
pub(super) struct GoPackage {
    /// Markers (`+name=value`) of the package.
    pub(super) markers: Vec<String>,
    pub(super) types: BTreeMap<String, Declaration>,
    /// String constants of named types.
    pub(super) constants: Vec<Constant>,
}

/// A string constant.
#[derive(Debug, PartialEq)]
pub(super) struct Constant {
    pub(super) name: String,
    pub(super) ty: String,
    pub(super) value: ConstantValue,
}

/// The value of a string constant.
#[derive(Debug, PartialEq)]
pub(super) enum ConstantValue {
    Text(String),
    /// That of a constant of another package, with the path of the package.
    Same(String),
}

/// A type declaration.
#[derive(Debug)]
pub(super) struct Declaration {
    /// Its position: the file and the line.
    pub(super) place: (String, usize),
    pub(super) markers: Vec<String>,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Struct(Vec<GoField>),
    /// A type defined by another one. Names of other packages are qualified by their import paths:
    /// `<path>.Name`.
    Named(String),
    /// An alias of a type.
    Alias(String),
}

/// A field of a struct.
#[derive(Debug)]
pub(super) struct GoField {
    pub(super) name: String,
    pub(super) ty: String,
    /// The tag: `json:"…" protobuf:"…"`.
    pub(super) tag: String,
    pub(super) markers: Vec<String>,
}

impl GoField {
    /// The value of a key of the tag.
    pub(super) fn tag(&self, key: &str) -> Option<&str> {
        let (_, rest) = self.tag.split_once(&format!("{key}:\""))?;
        rest.split('"').next()
    }
}

impl GoPackage {
    /// Parses one file of the package.
    pub(super) fn read(&mut self, file: &str, text: &str) {
        GoReader {
            file,
            package: self,
            imports: BTreeMap::new(),
        }
        .read(text);
    }
}

struct GoReader<'p> {
    file: &'p str,
    package: &'p mut GoPackage,
    /// Import paths by their local names.
    imports: BTreeMap<String, String>,
}

/// The context of the current line.
enum GoContext {
    File,
    Imports,
    Constants,
    Struct(Declaration, String, Vec<GoField>),
    /// Skipped up to the closing line.
    Other,
}

impl GoReader<'_> {
    fn read(&mut self, text: &str) {
        let mut context = GoContext::File;
        // Comments of the following declaration or field. A declaration also has those of the block before
        // it.
        let mut comments: Vec<String> = Vec::new();
        let mut blanks = 0;
        for (number, line) in without_block_comments(text).lines().enumerate() {
            let trimmed = line.trim();
            if let Some(comment) = trimmed.strip_prefix("//") {
                // One blank line may separate a marker such as `+genclient` from its declaration, but not two.
                if blanks > 1 || (blanks > 0 && !matches!(context, GoContext::File)) {
                    comments.clear();
                }
                blanks = 0;
                comments.push(comment.trim().to_owned());
                continue;
            }
            if trimmed.is_empty() {
                blanks += 1;
                continue;
            }
            if blanks > 1 || (blanks > 0 && !matches!(context, GoContext::File)) {
                comments.clear();
            }
            blanks = 0;
            let markers: Vec<String> = std::mem::take(&mut comments)
                .into_iter()
                .filter_map(|c| c.strip_prefix('+').map(str::to_owned))
                .collect();
            context = match context {
                GoContext::File => self.declaration(line, number + 1, markers),
                GoContext::Imports if trimmed == ")" => GoContext::File,
                GoContext::Imports => {
                    self.import(trimmed);
                    GoContext::Imports
                }
                GoContext::Constants if trimmed == ")" => GoContext::File,
                GoContext::Constants => {
                    self.constant(trimmed);
                    GoContext::Constants
                }
                GoContext::Struct(declaration, name, fields) if line == "}" => {
                    let body = Body::Struct(fields);
                    let declaration = Declaration { body, ..declaration };
                    self.package.types.insert(name, declaration);
                    GoContext::File
                }
                // Only at the first column: a field of an anonymous struct also ends with a brace.
                GoContext::Struct(declaration, name, mut fields) => {
                    fields.extend(self.field(trimmed, markers));
                    GoContext::Struct(declaration, name, fields)
                }
                GoContext::Other if line.starts_with('}') || line.starts_with(')') => GoContext::File,
                GoContext::Other => GoContext::Other,
            };
        }
    }

    fn declaration(&mut self, line: &str, number: usize, markers: Vec<String>) -> GoContext {
        if line.starts_with("package ") {
            self.package.markers.extend(markers);
            return GoContext::File;
        }
        if line == "import (" {
            return GoContext::Imports;
        }
        if let Some(import) = line.strip_prefix("import ") {
            self.import(import);
            return GoContext::File;
        }
        if line == "const (" {
            return GoContext::Constants;
        }
        if let Some(constant) = line.strip_prefix("const ") {
            self.constant(constant);
            return GoContext::File;
        }
        // Groups of types (`type (`) do not occur in the API packages.
        if let Some((name, body)) = line.strip_prefix("type ").and_then(|rest| rest.split_once(' ')) {
            let name = name.to_owned();
            let declaration = |body| Declaration {
                place: (self.file.to_owned(), number),
                markers,
                body,
            };
            let body = body.split(" //").next().unwrap_or(body).trim();
            match body {
                "struct {" => {
                    return GoContext::Struct(declaration(Body::Struct(Vec::new())), name, Vec::new());
                }
                "struct{}" => {
                    let declaration = declaration(Body::Struct(Vec::new()));
                    self.package.types.insert(name, declaration);
                    return GoContext::File;
                }
                _ if body.starts_with("interface") || body.starts_with("func") => {}
                _ => {
                    let body = match body.strip_prefix("= ") {
                        Some(other) => Body::Alias(self.qualified(other)),
                        None => Body::Named(self.qualified(body)),
                    };
                    let declaration = declaration(body);
                    self.package.types.insert(name, declaration);
                    return GoContext::File;
                }
            }
        }
        // Functions, methods and other blocks are skipped to their closing line.
        if line.ends_with('{') || line.ends_with('(') {
            return GoContext::Other;
        }
        GoContext::File
    }

    /// `name "path"` or `"path"`.
    fn import(&mut self, line: &str) {
        let Some((before, rest)) = line.split_once('"') else {
            return;
        };
        let path = rest.split('"').next().unwrap_or(rest);
        // By convention, a package has the last name of its path; others are imported by name.
        let name = match before.trim() {
            "" => path.rsplit('/').next().unwrap_or(path),
            name => name,
        };
        self.imports.insert(name.to_owned(), path.to_owned());
    }

    /// `Name Type = "value"`, `Name = Type("value")` or `Name = Type(package.Name)`.
    fn constant(&mut self, line: &str) {
        let Some((left, right)) = line.split_once('=') else {
            return;
        };
        let right = right.trim();
        let (name, ty, right) = match left.split_whitespace().collect::<Vec<_>>()[..] {
            [name, ty] => (name, ty, right),
            [name] => match right.split_once('(') {
                Some((ty, value)) => (name, ty, value),
                None => return,
            },
            _ => return,
        };
        let value = match right.strip_prefix('"') {
            Some(text) => text
                .split_once('"')
                .map(|(text, _)| ConstantValue::Text(text.to_owned())),
            None => right
                .strip_suffix(')')
                .filter(|other| other.contains('.'))
                .map(|other| ConstantValue::Same(self.qualified(other))),
        };
        if let Some(value) = value {
            self.package.constants.push(Constant {
                name: name.to_owned(),
                ty: ty.to_owned(),
                value,
            });
        }
    }

    /// ``Name Type `tag` `` or, for an embedded struct, ``Type `tag` ``.
    fn field(&self, line: &str, markers: Vec<String>) -> Option<GoField> {
        let (declared, tag) = line.split_once('`')?;
        let tag = tag.split('`').next().unwrap_or(tag).to_owned();
        let mut words = declared.split_whitespace();
        let (first, second) = (words.next()?, words.next());
        let (name, ty) = match second {
            Some(ty) => (first, ty),
            // An embedded field is named like its type.
            None => (first.rsplit(['.', '*']).next().unwrap_or(first), first),
        };
        Some(GoField {
            name: name.to_owned(),
            ty: self.qualified(ty),
            tag,
            markers,
        })
    }

    /// A type in which names of other packages are qualified by import paths.
    fn qualified(&self, ty: &str) -> String {
        let start = ty.rfind(['*', ']']).map_or(0, |at| at + 1);
        let (prefix, name) = ty.split_at(start);
        let prefix = match prefix.split_once("map[") {
            Some((before, key)) => match key.split_once(']') {
                Some((key, after)) => format!("{before}map[{}]{after}", self.qualified(key)),
                None => prefix.to_owned(),
            },
            None => prefix.to_owned(),
        };
        match name.split_once('.') {
            Some((package, name)) => {
                let path = self.imports.get(package).map_or(package, String::as_str);
                format!("{prefix}{path}.{name}")
            }
            None => format!("{prefix}{name}"),
        }
    }
}

/// Replaces block comments by blanks and keeps line breaks, so that line numbers stay.
fn without_block_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_inside = false;
    for line in text.lines() {
        let start = line.trim_start();
        if !is_inside && start.starts_with("/*") {
            is_inside = true;
        }
        if is_inside {
            // Blank lines would separate a marker from its declaration.
            out.push_str("//");
        } else {
            out.push_str(line);
        }
        if is_inside && line.contains("*/") {
            is_inside = false;
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
/*
Licence.
*/

// +groupName=example.dev
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient

// Widget is a widget.
// +kind
type Widget struct {
	metav1.TypeMeta `json:""`
	// +listType=map
	Parts map[string]*metav1.Time `json:"parts,omitempty" protobuf:"bytes,2,rep,name=parts"`
}

// +enum
type Mode string

const (
	// On.
	On Mode = "On"
	Off = Mode("Off")
	Standby = Mode(metav1.Standby)
)

func (w *Widget) Get() {
	type inner struct {
	}
}
"#;

    #[test]
    fn declarations_are_read() {
        let mut package = GoPackage::default();
        package.read("types.go", FILE);
        assert_eq!(package.markers, ["groupName=example.dev"]);
        let constant = |name: &str, value: ConstantValue| Constant {
            name: name.to_owned(),
            ty: "Mode".to_owned(),
            value,
        };
        let text = |text: &str| ConstantValue::Text(text.to_owned());
        let standby = "k8s.io/apimachinery/pkg/apis/meta/v1.Standby";
        assert_eq!(
            package.constants,
            [
                constant("On", text("On")),
                constant("Off", text("Off")),
                constant("Standby", ConstantValue::Same(standby.to_owned())),
            ]
        );
        let widget = &package.types["Widget"];
        assert_eq!(widget.markers, ["genclient", "kind"]);
        let Body::Struct(fields) = &widget.body else {
            panic!("{widget:?}");
        };
        assert_eq!(fields[0].name, "TypeMeta");
        assert_eq!(fields[0].ty, "k8s.io/apimachinery/pkg/apis/meta/v1.TypeMeta");
        assert_eq!(
            fields[1].ty,
            "map[string]*k8s.io/apimachinery/pkg/apis/meta/v1.Time"
        );
        assert_eq!(fields[1].tag("protobuf"), Some("bytes,2,rep,name=parts"));
        assert_eq!(fields[1].markers, ["listType=map"]);
        assert!(matches!(&package.types["Mode"].body, Body::Named(ty) if ty == "string"));
    }
}
