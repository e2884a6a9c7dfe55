//! The constructor: turns nodes into a value, as Kubernetes does: YAML to JSON first, then as JSON.

use super::Problem;
use super::compose::{NodeId, NodeKind, YamlDocument};
use super::fast_path::{Builder, Place};
use super::resolve::{ResolvedScalar, TAG_PREFIX, non_string, resolve};
use super::scan::Style;
use crate::{Finding, FindingList, Limits, Map, Str, Value, go};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Builds the value of a document on the fast path, which has no key twice.
#[derive(Debug, Default)]
pub(super) struct ValueBuilder {
    /// The entries of all open mappings and sequences, the innermost last.
    members: Vec<(Str, Value)>,
    items: Vec<Value>,
}

impl Builder for ValueBuilder {
    type Node = Value;
    type Key = Str;
    /// The start of the entries in `members` and in `items`.
    type Frame = (usize, usize);
    const PLACES: bool = false;

    fn open(&mut self) -> Self::Frame {
        (self.members.len(), self.items.len())
    }

    fn begin_member(&mut self, key: Cow<'_, str>, _: Place) -> Str {
        key.into()
    }

    fn member(&mut self, key: Str, value: Value) {
        self.members.push((key, value));
    }

    fn mapping(&mut self, (start, _): Self::Frame) -> Option<Value> {
        let entries = self.members.split_off(start);
        let count = entries.len();
        let members = Map::from_unsorted(entries);
        // A repeated key is a finding with a line, which only the scanner's path records.
        (members.len() == count).then_some(Value::Object(members))
    }

    fn begin_element(&mut self, _: &mut Self::Frame, _: Place) {}

    fn element(&mut self, value: Value) {
        self.items.push(value);
    }

    fn sequence(&mut self, (_, start): Self::Frame) -> Value {
        Value::Array(self.items.split_off(start))
    }

    fn scalar(&mut self, text: Cow<'_, str>, style: Style) -> Option<Value> {
        match non_string(&text).filter(|_| style == Style::Plain) {
            // Infinities and NaN are errors, which the scanner's path words.
            Some(scalar) => scalar.into_value().ok(),
            None => Some(Value::String(text.into())),
        }
    }
}

/// Builds the value of a document and lists repeated keys.
pub(super) fn construct(
    document: &YamlDocument<'_>,
    limits: Limits,
) -> Result<(Value, Vec<Finding>), Problem> {
    let mut constructor = Constructor {
        document,
        limits,
        depth: 0,
        // The decoder of Kubernetes (go-yaml) counts the document as a node.
        decoded: 1,
        from_aliases: 0,
        copied: 0,
        open_aliases: Vec::new(),
        duplicates: FindingList::new(),
        not_json: None,
    };
    let value = constructor.value(document.root)?;
    match constructor.not_json {
        Some(problem) => Err(problem),
        None => Ok((value, constructor.duplicates.into_vec())),
    }
}

/// The maximum size of text that aliases may add to a document: the size limit of a request.
const MAX_COPIED: usize = 3 << 20;

/// The type of a key before it becomes a string: `1` and `"1"` are different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KeyKind {
    Int,
    Float,
    Bool,
    String,
}

type MappingEntries = BTreeMap<(Str, KeyKind), Value>;

struct Constructor<'d, 'a> {
    document: &'d YamlDocument<'a>,
    limits: Limits,
    depth: usize,
    /// Nodes built in total, and inside aliases. Their ratio detects alias bombs.
    decoded: usize,
    from_aliases: usize,
    /// The bytes of text inside aliases.
    copied: usize,
    open_aliases: Vec<NodeId>,
    duplicates: FindingList,
    /// The first value that JSON cannot represent. YAML errors take precedence, wherever they occur.
    not_json: Option<Problem>,
}

/// The share of nodes that may come from aliases: almost all in small documents, a tenth in very large ones.
fn allowed_alias_share(decoded: usize) -> f64 {
    const LOW: usize = 400_000;
    const HIGH: usize = 4_000_000;
    match decoded {
        ..=LOW => 0.99,
        HIGH.. => 0.10,
        #[expect(clippy::cast_precision_loss, reason = "both are small")]
        n => 0.99 - 0.89 * ((n - LOW) as f64 / (HIGH - LOW) as f64),
    }
}

impl Constructor<'_, '_> {
    fn count(&mut self) -> Result<(), Problem> {
        self.decoded += 1;
        if !self.open_aliases.is_empty() {
            self.from_aliases += 1;
        }
        // The thresholds are those of go-yaml, so that the same documents are rejected.
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        if self.from_aliases > 100
            && self.decoded > 1000
            && self.from_aliases as f64 / self.decoded as f64 > allowed_alias_share(self.decoded)
        {
            return Err(excessive_aliasing());
        }
        Ok(())
    }

    /// Counts text that may be inside an alias. kube-apiserver counts only nodes, and shares their text until
    /// it writes it; here every alias copies.
    fn count_copied(&mut self, bytes: usize) -> Result<(), Problem> {
        if !self.open_aliases.is_empty() {
            self.copied += bytes;
            if self.copied > MAX_COPIED {
                return Err(excessive_aliasing());
            }
        }
        Ok(())
    }

    fn value(&mut self, id: NodeId) -> Result<Value, Problem> {
        self.count()?;
        let document = self.document;
        match document.node(id).map(|n| &n.kind) {
            // Every id comes from the composer, so the node exists.
            None => Ok(Value::Null),
            Some(NodeKind::ResolvedScalar { value, tag, implicit }) => {
                self.count_copied(value.len())?;
                let scalar = resolve(value, tag.as_deref(), *implicit)?;
                Ok(self.scalar_value(scalar))
            }
            Some(NodeKind::Sequence(items)) => {
                self.enter('[')?;
                let items = items
                    .iter()
                    .map(|item| self.value(*item))
                    .collect::<Result<_, _>>()?;
                self.depth -= 1;
                Ok(Value::Array(items))
            }
            Some(NodeKind::Mapping(members)) => {
                self.enter('{')?;
                let mut out = MappingEntries::new();
                self.members(members, &mut out)?;
                self.depth -= 1;
                // Keys that differ only in type collide. kube-apiserver keeps a random one of them; here the
                // string wins.
                let entries = out.into_iter().map(|((key, _), value)| (key, value)).collect();
                Ok(Value::Object(Map::from_unsorted(entries)))
            }
            Some(NodeKind::Alias { name, to }) => {
                self.open_alias(id, name)?;
                let value = self.value(*to)?;
                self.open_aliases.pop();
                Ok(value)
            }
        }
    }

    fn scalar_value(&mut self, scalar: ResolvedScalar) -> Value {
        scalar.into_value().unwrap_or_else(|f| {
            let text = format!("json: unsupported value: {}", go::float_v(f));
            self.not_json.get_or_insert_with(|| Problem::json(text));
            Value::Null
        })
    }

    fn open_alias(&mut self, id: NodeId, name: &str) -> Result<(), Problem> {
        if self.open_aliases.contains(&id) {
            return Err(Problem::plain(format!("anchor '{name}' value contains itself")));
        }
        self.open_aliases.push(id);
        Ok(())
    }

    /// Descends one level. Aliases nest without nesting in the text, so the depth is checked here, too. The
    /// message is that of the JSON decoder, to which kube-apiserver would pass the result.
    fn enter(&mut self, opening: char) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > self.limits.depth {
            return Err(Problem::json(format!(
                "invalid character '{opening}' exceeded max depth"
            )));
        }
        Ok(())
    }

    fn members(&mut self, members: &[(NodeId, NodeId)], out: &mut MappingEntries) -> Result<(), Problem> {
        for &(key, value) in members {
            if self.is_merge(key) {
                self.merge(value, out)?;
                continue;
            }
            let key = self.key(key, value)?;
            let built = self.value(value)?;
            if out.contains_key(&key) {
                // The line is that of the value, as in go-yaml: the value may begin on a later line than its key.
                let line = self.document.node(value).map_or(0, |n| n.mark.line) + 1;
                self.duplicates.push_with(|| {
                    let key = match key.1 {
                        KeyKind::String => go::quote(&key.0),
                        _ => key.0.to_string(),
                    };
                    Finding::DuplicateKey { line, key }
                });
            }
            out.insert(key, built);
        }
        Ok(())
    }

    fn is_merge(&self, id: NodeId) -> bool {
        match self.document.node(id).map(|n| &n.kind) {
            Some(NodeKind::ResolvedScalar { value, tag, implicit }) => {
                let merge_tag = |t: &String| t.strip_prefix(TAG_PREFIX) == Some("merge");
                value == "<<" && (*implicit || tag.as_ref().is_some_and(merge_tag))
            }
            _ => false,
        }
    }

    /// `<<`: merges the members of a mapping, or of several mappings, where the first one wins. They override
    /// members before the `<<`.
    fn merge(&mut self, id: NodeId, out: &mut MappingEntries) -> Result<(), Problem> {
        let document = self.document;
        match document.node(id).map(|n| &n.kind) {
            Some(NodeKind::Sequence(items)) => {
                // Later members override earlier ones, so the first mapping is merged last.
                for item in items.iter().rev() {
                    self.merge_one(*item, out)?;
                }
                Ok(())
            }
            _ => self.merge_one(id, out),
        }
    }

    fn merge_one(&mut self, id: NodeId, out: &mut MappingEntries) -> Result<(), Problem> {
        let document = self.document;
        self.count()?;
        match document.node(id).map(|n| &n.kind) {
            Some(NodeKind::Mapping(members)) => self.members(members, out),
            Some(NodeKind::Alias { name, to }) => {
                let Some(NodeKind::Mapping(members)) = document.node(*to).map(|n| &n.kind) else {
                    return Err(want_map());
                };
                self.open_alias(id, name)?;
                self.count()?;
                self.members(members, out)?;
                self.open_aliases.pop();
                Ok(())
            }
            _ => Err(want_map()),
        }
    }

    fn key(&mut self, key: NodeId, value: NodeId) -> Result<(Str, KeyKind), Problem> {
        let built = self.key_scalar(key)?;
        Ok(match built {
            ResolvedScalar::String(s) => (s, KeyKind::String),
            ResolvedScalar::Int(i) => (i.to_string().into(), KeyKind::Int),
            ResolvedScalar::Bool(b) => (if b { "true" } else { "false" }.into(), KeyKind::Bool),
            ResolvedScalar::Float(f) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a server writes such keys in 32 bits"
                )]
                let text = match f {
                    _ if f.is_nan() => ".nan".into(),
                    f64::INFINITY => ".inf".into(),
                    f64::NEG_INFINITY => "-.inf".into(),
                    _ => go::float32_g(f as f32),
                };
                (text.into(), KeyKind::Float)
            }
            // sigs.k8s.io/yaml does not convert keys of these types; its message shows Go's formatting of them.
            other @ (ResolvedScalar::Uint(_) | ResolvedScalar::Null) => {
                let (kind, shown) = match other {
                    ResolvedScalar::Uint(u) => ("uint64", format!("{u:#x}")),
                    _ => ("%!s(<nil>)", "<nil>".into()),
                };
                let value = self.value(value)?;
                self.not_json.get_or_insert_with(|| {
                    let value = go_syntax(&value);
                    let text = format!("unsupported map key of type: {kind}, key: {shown}, value: {value}");
                    Problem::json(text)
                });
                (Str::default(), KeyKind::String)
            }
        })
    }

    /// The scalar of a key, which may be an alias. Other nodes cannot be keys, because JSON has only strings there.
    fn key_scalar(&mut self, id: NodeId) -> Result<ResolvedScalar, Problem> {
        let document = self.document;
        match document.node(id).map(|n| &n.kind) {
            Some(NodeKind::ResolvedScalar { value, tag, implicit }) => {
                self.count()?;
                self.count_copied(value.len())?;
                resolve(value, tag.as_deref(), *implicit)
            }
            Some(NodeKind::Alias { name, to }) => {
                self.count()?;
                self.open_alias(id, name)?;
                let scalar = self.key_scalar(*to)?;
                self.open_aliases.pop();
                Ok(scalar)
            }
            _ => {
                let value = self.value(id)?;
                Err(Problem::plain(format!(
                    "invalid map key: {}",
                    go::value_syntax_of_yaml(&value)
                )))
            }
        }
    }
}

fn excessive_aliasing() -> Problem {
    Problem::plain("document contains excessive aliasing")
}

fn want_map() -> Problem {
    Problem::plain("map merge requires map or sequence of maps as the value")
}

/// Formats a value in Go syntax.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        other => go::value_syntax_of_yaml(other),
    }
}
