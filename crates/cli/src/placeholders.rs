//! Values that are not final in a repository: placeholders of tools that render manifests, such as `${NAME}` of Flux, and
//! secrets encrypted by SOPS.

use crate::args::Variable;
use scantling_value::Value;
use std::borrow::Cow;

/// Replaces variables as Flux does after a build: `${NAME}`, `${NAME:-default}`, `${NAME:=default}`.
/// `$${NAME}` is the literal text `${NAME}`. A variable without value and default stays unchanged.
pub(crate) fn substitute<'t>(text: &'t [u8], variables: &[Variable]) -> Cow<'t, [u8]> {
    if variables.is_empty() || memchr::memmem::find(text, b"${").is_none() {
        return Cow::Borrowed(text);
    }
    // The decoder reports invalid UTF-8 with its position.
    let Ok(text) = std::str::from_utf8(text) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        // The dollar sign of `$${` belongs to the escape, and is dropped below.
        let is_escaped = before.ends_with('$');
        out.push_str(before);
        rest = after;
        match parse(after) {
            Some(reference) if !is_escaped => {
                // The last of several values of a variable wins, as with all flags.
                let known = variables.iter().rev().find(|v| v.name == reference.name);
                match known.map(|v| v.value.as_str()).or(reference.default) {
                    Some(value) => {
                        out.push_str(value);
                        rest = reference.rest;
                    }
                    // Without a value, the reference stays, so that it is still recognized as not final.
                    None => out.push_str("${"),
                }
            }
            Some(_) => {
                out.pop();
                out.push_str("${");
            }
            None => out.push_str("${"),
        }
    }
    out.push_str(rest);
    Cow::Owned(out.into_bytes())
}

struct VariableReference<'t> {
    name: &'t str,
    default: Option<&'t str>,
    /// The text after the closing brace.
    rest: &'t str,
}

/// Parses a reference after its opening brace.
fn parse(text: &str) -> Option<VariableReference<'_>> {
    let (inside, rest) = text.split_once('}')?;
    let end = inside
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(inside.len());
    let (name, operator) = inside.split_at_checked(end)?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let default = match operator {
        "" => None,
        _ => Some(
            [":=", ":-", "=", "-"]
                .iter()
                .find_map(|op| operator.strip_prefix(op))?,
        ),
    };
    is_name.then_some(VariableReference { name, default, rest })
}

/// Returns whether an error about a value may disappear once the value is final. A text counts if it has any placeholder,
/// a list or an object only if it contains a variable or encrypted text: manifests are full of other texts in braces
/// that are final.
pub(crate) fn is_open(value: &Value) -> bool {
    match value {
        Value::String(text) => is_unresolved(value) || has_placeholder(text),
        _ => is_unresolved(value),
    }
}

/// Returns whether a value contains a variable or encrypted text.
pub(crate) fn is_unresolved(value: &Value) -> bool {
    match value {
        // SOPS encrypts values only, never the names of fields.
        Value::String(text) => text.starts_with("ENC[") || has_variable(text),
        Value::Array(items) => items.iter().any(is_unresolved),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| has_variable(name) || is_unresolved(value)),
        _ => false,
    }
}

fn has_variable(text: &str) -> bool {
    let mut references = text.match_indices("${");
    references.any(|(at, _)| text.get(at + 2..).and_then(parse).is_some())
}

/// The texts around the name of a placeholder, and what may be a name.
type Placeholder = (&'static str, &'static str, fn(&str) -> bool);

/// The placeholders of other tools.
const PLACEHOLDERS: [Placeholder; 8] = [
    // Helm, Jinja.
    ("{{", "}}", |inside| !inside.trim().is_empty()),
    // Chainsaw.
    ("($", ")", is_dotted_name),
    // Kustomize, templates of OpenShift.
    ("$(", ")", is_dotted_name),
    // Terraform, Maven.
    ("${", "}", is_dotted_name),
    // Concourse.
    ("((", "))", is_dotted_name),
    // Scripts.
    ("@", "@", is_constant),
    ("{", "}", is_constant),
    ("__", "__", is_constant),
];

/// Returns whether a text has a placeholder that a tool replaces before a cluster gets the text.
pub(crate) fn has_placeholder(text: &str) -> bool {
    PLACEHOLDERS.iter().any(|(begin, end, is_name)| {
        let mut found = text.match_indices(begin);
        found.any(|(at, _)| {
            let inside = text.get(at + begin.len()..).and_then(|rest| rest.split_once(end));
            inside.is_some_and(|(inside, _)| is_name(inside))
        })
    })
}

/// Returns whether a line has a placeholder that makes it invalid as YAML: `name: @NAME@`, `clusterIP: {PREFIX}.16`.
pub(crate) fn has_unquoted_placeholder(line: &[u8]) -> bool {
    let Some((_, value)) = std::str::from_utf8(line)
        .ok()
        .and_then(|line| line.split_once(": "))
    else {
        return false;
    };
    // YAML reserves `@` and `%` at the beginning of a value, and reads braces as a mapping.
    [('@', '@'), ('{', '}'), ('%', '%')].iter().any(|(begin, end)| {
        let inside = value
            .trim_start()
            .strip_prefix(*begin)
            .and_then(|rest| rest.split_once(*end));
        inside.is_some_and(|(inside, _)| is_constant(inside))
    })
}

/// Returns whether a text is a name in capital letters, as scripts replace: `IMAGE_TAG`.
fn is_constant(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase())
        && text
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn is_dotted_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Returns whether a text asks its reader to replace it: `<your-domain>`.
pub(crate) fn asks_for_value(text: &str) -> bool {
    let mut found = text.match_indices('<');
    found.any(|(at, _)| {
        let inside = text.get(at + 1..).and_then(|rest| rest.split_once('>'));
        inside.is_some_and(|(inside, _)| {
            inside.starts_with(|c: char| c.is_ascii_alphabetic())
                && inside
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' '))
        })
    })
}

/// Replaces texts that are not final by null, which every field can be decoded from, below the field that `names` lead
/// to; a name stands for the members of all elements of a list. Returns whether there were any.
pub(crate) fn blank(value: &mut Value, names: &[&str]) -> bool {
    match (value, names) {
        // Every element is visited, so `any` does not do.
        (Value::Array(items), names) => {
            items
                .iter_mut()
                .filter_map(|item| blank(item, names).then_some(()))
                .count()
                > 0
        }
        (Value::Object(members), [name, rest @ ..]) => {
            members.get_mut(name).is_some_and(|member| blank(member, rest))
        }
        (Value::Object(members), []) => {
            let blanked = members
                .iter_mut()
                .filter_map(|(_, member)| blank(member, &[]).then_some(()));
            blanked.count() > 0
        }
        (text @ Value::String(_), []) if is_open(text) => {
            *text = Value::Null;
            true
        }
        _ => false,
    }
}

/// Removes the metadata of SOPS from an encrypted object, which Flux removes when it decrypts the object. Returns whether
/// the object is encrypted.
pub(crate) fn remove_sops(object: &mut Value) -> bool {
    let is_encrypted = object.at(["sops", "mac"]).is_some() || object.at(["sops", "lastmodified"]).is_some();
    if is_encrypted && let Some(members) = object.as_object_mut() {
        members.remove("sops");
    }
    is_encrypted
}

#[cfg(test)]
mod tests {
    use super::{asks_for_value, blank, has_placeholder, is_unresolved, substitute};
    use crate::args::Variable;
    use scantling_value::{Limits, Value};

    #[test]
    fn variables_are_replaced_as_flux_does() {
        let variables = ["A=1".parse::<Variable>().unwrap(), "B=".parse().unwrap()];
        let cases = [
            ("x: ${A}", "x: 1"),
            ("x: ${A:=2}-${B}.", "x: 1-."),
            ("x: ${C:=2} ${C:-3} ${C}", "x: 2 3 ${C}"),
            ("x: $${A} $A", "x: ${A} $A"),
            ("x: ${A", "x: ${A"),
            ("x: ${.A} ${A.b}", "x: ${.A} ${A.b}"),
        ];
        for (text, wanted) in cases {
            let found = substitute(text.as_bytes(), &variables);
            assert_eq!(std::str::from_utf8(&found).unwrap(), wanted);
        }
        assert_eq!(&*substitute(b"${A:=2}", &[]), b"${A:=2}");
    }

    #[test]
    fn placeholders_are_recognised() {
        for (text, is_variable, is_placeholder, asks) in [
            ("a ${B} c", true, true, false),
            ("${a.b}", false, true, false),
            ("{{ .Values.name }}-a", false, true, false),
            ("{{}}", false, false, false),
            ("$(NAME)", false, true, false),
            ("($test.metadata.name)", false, true, false),
            ("cost ($5)", false, false, false),
            ("a@IMAGE_TAG@", false, true, false),
            ("a@example.com, b@example.com", false, false, false),
            ("<your-domain>.example.com", false, false, true),
            ("a < b > c", false, false, false),
            ("__HOST__", false, true, false),
            ("{HOST}.16", false, true, false),
            ("((host))", false, true, false),
            ("__init__", false, false, false),
            ("${", false, false, false),
            ("${}", false, false, false),
        ] {
            let value = Value::from(text);
            let found = (is_unresolved(&value), has_placeholder(text), asks_for_value(text));
            assert_eq!(found, (is_variable, is_placeholder, asks), "{text}");
        }
        assert!(is_unresolved(&Value::from("ENC[AES256_GCM,data:x]")));
    }

    #[test]
    fn only_texts_that_are_not_final_are_blanked() {
        let text = br#"{"a": [{"b": "${X}", "c": "${X}"}, {"b": "y"}], "d": {"e": "$(X)", "f": 1}}"#;
        let mut value = scantling_value::yaml::decode(text, Limits::SERVER).unwrap();
        assert!(blank(&mut value, &["a", "b"]));
        assert!(!blank(&mut value, &["a", "b"]));
        assert!(!blank(&mut value, &["d", "f"]));
        assert_eq!(
            value.to_json(),
            r#"{"a":[{"b":null,"c":"${X}"},{"b":"y"}],"d":{"e":"$(X)","f":1}}"#
        );
        assert!(blank(&mut value, &[]));
        assert_eq!(
            value.to_json(),
            r#"{"a":[{"b":null,"c":null},{"b":"y"}],"d":{"e":null,"f":1}}"#
        );
    }
}
