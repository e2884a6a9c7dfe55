//! The findings of strict decoding: unknown and duplicate fields.

use crate::{BoundedItem, FindingList, Path, PathBuf, go};
use std::fmt;

/// A field that strict decoding rejects; `Display` is the text of a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A field that the type of a decoder does not have.
    UnknownField(PathBuf),
    /// A field that the schema does not have and that pruning or conversion removed.
    PrunedField(PathBuf),
    /// A field that occurs more than once in a JSON object.
    DuplicateField(PathBuf),
    /// A key that occurs more than once in a YAML mapping.
    DuplicateKey {
        /// The line of the later value, from 1.
        line: usize,
        /// The key as Go prints it: `"size"`, `1`.
        key: String,
    },
    /// A finding in the text of a JSON patch.
    JsonPatch(Box<Finding>),
    /// The number of further findings that a list has no room for.
    Omitted(usize),
}

impl Finding {
    /// Returns the finding about an unknown field that pruning or conversion removed.
    pub fn pruned(at: &Path<'_>) -> Self {
        Finding::PrunedField(at.into())
    }

    /// Returns the path of the unknown or duplicate field, unless it is one of a patch.
    pub fn field(&self) -> Option<&PathBuf> {
        match self {
            Finding::UnknownField(at) | Finding::PrunedField(at) | Finding::DuplicateField(at) => Some(at),
            Finding::DuplicateKey { .. } | Finding::JsonPatch(_) | Finding::Omitted(_) => None,
        }
    }

    /// Returns the path of the unknown field, if it is a finding about one.
    pub fn unknown_field(&self) -> Option<&PathBuf> {
        match self {
            Finding::UnknownField(at) | Finding::PrunedField(at) => Some(at),
            _ => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::UnknownField(at) => write!(f, "unknown field {}", go::quote(&at.listed())),
            // kube-apiserver puts these between quotation marks as they are.
            Finding::PrunedField(at) => write!(f, "unknown field \"{}\"", at.listed()),
            Finding::DuplicateField(at) => write!(f, "duplicate field {}", go::quote(&at.listed())),
            Finding::DuplicateKey { line, key } => write!(f, "line {line}: key {key} already set in map"),
            Finding::JsonPatch(finding) => write!(f, "json patch {finding}"),
            Finding::Omitted(count) => write!(f, "{count} more were omitted"),
        }
    }
}

impl BoundedItem for Finding {
    fn bytes(&self) -> usize {
        match self {
            Finding::UnknownField(at) | Finding::PrunedField(at) | Finding::DuplicateField(at) => at.bytes(),
            Finding::DuplicateKey { key, .. } => key.len(),
            Finding::JsonPatch(finding) => finding.bytes(),
            Finding::Omitted(_) => 0,
        }
    }

    fn omission(count: usize) -> Self {
        Finding::Omitted(count)
    }

    fn omitted(&self) -> usize {
        match self {
            Finding::Omitted(count) => *count,
            _ => 0,
        }
    }
}

impl FindingList {
    /// Joins the findings of a text with those of decoding its value. A decoder skips unknown fields as a whole, so
    /// duplicates inside them are not reported.
    pub fn join(in_text: &[Finding], decoded: impl IntoIterator<Item = Finding>) -> Self {
        let decoded: FindingList = decoded.into_iter().collect();
        let is_skipped = |finding: &Finding| match finding {
            Finding::DuplicateField(at) => {
                // Both lists are bounded, so this search needs no index.
                let mut unknown = decoded.iter().filter_map(Finding::unknown_field);
                unknown.any(|unknown| at.starts_with(unknown))
            }
            _ => false,
        };
        let seen = in_text.iter().filter(|finding| !is_skipped(finding));
        let mut all: FindingList = seen.cloned().collect();
        all.append(decoded);
        all
    }

    /// Returns the text of the error about the findings. The keys of a YAML text are one error.
    pub fn strict_error(&self) -> String {
        let is_key = |finding: &&Finding| matches!(finding, Finding::DuplicateKey { .. });
        let keys: Vec<String> = self.iter().filter(is_key).map(Finding::to_string).collect();
        let yaml = (!keys.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", keys.join("\n  ")));
        let others = self
            .iter()
            .filter(|finding| !is_key(finding))
            .map(Finding::to_string);
        yaml.into_iter().chain(others).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_inside_unknown_fields_are_not_reported() {
        let spec = Path::ROOT.field("spec");
        let (a, ab) = (spec.field("a"), spec.field("ab"));
        let in_text = [&a.field("x"), &a.index(0), &a, &ab].map(|at| Finding::DuplicateField(at.into()));
        let joined = FindingList::join(&in_text, [Finding::UnknownField((&a).into())]);
        assert_eq!(
            joined.strict_error(),
            r#"duplicate field "spec.ab", unknown field "spec.a""#
        );
    }
}
