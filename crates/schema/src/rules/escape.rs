//! Escapes field names to identifiers of expressions.

use scantling_cel::shape::is_reserved;

/// The identifier of a field in expressions; `None` if it cannot be an identifier.
pub(crate) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '_' if rest.next_if_eq(&'_').is_some() => escaped.push_str("__underscores__"),
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            c if c == '_' || c.is_ascii_alphanumeric() => escaped.push(c),
            _ => return None,
        }
    }
    Some(escaped)
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names() {
        for (name, escaped) in [
            ("plain", Some("plain")),
            ("snake_case", Some("snake_case")),
            ("__a___b", Some("__underscores__a__underscores___b")),
            ("a.b-c/d", Some("a__dot__b__dash__c__slash__d")),
            ("namespace", Some("__namespace__")),
            ("namespaces", Some("namespaces")),
            ("while", Some("__while__")),
            ("int", Some("int")),
            ("1st", None),
            ("", None),
            ("$ref", None),
            ("a-ü", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }
}
