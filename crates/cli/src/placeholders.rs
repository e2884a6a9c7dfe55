//! Values that are not final in a repository: variables of Flux (`${NAME}`) and secrets encrypted by SOPS.

use crate::args::Variable;
use scantling_value::Value;
use std::borrow::Cow;

/// Replaces variables as Flux does after a build: `${NAME}`, `${NAME:-default}`, `${NAME:=default}`.
/// `$${NAME}` is the literal text `${NAME}`. A variable without value and default stays unchanged.
pub(crate) fn substitute<'t>(text: &'t [u8], variables: &[Variable]) -> Cow<'t, [u8]> {
    if variables.is_empty() || memchr::memmem::find(text, b"${").is_none() {
        return Cow::Borrowed(text);
    }
    let Ok(text) = std::str::from_utf8(text) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let is_escaped = before.ends_with('$');
        out.push_str(before);
        rest = after;
        match parse(after) {
            Some(reference) if !is_escaped => {
                let known = variables.iter().rev().find(|v| v.name == reference.name);
                match known.map(|v| v.value.as_str()).or(reference.default) {
                    Some(value) => {
                        out.push_str(value);
                        rest = reference.rest;
                    }
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

/// Returns whether a value contains a variable or encrypted text, so that it is not final.
pub(crate) fn is_unresolved(value: &Value) -> bool {
    match value {
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
    use super::{is_unresolved, substitute};
    use crate::args::Variable;
    use scantling_value::Value;

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
    fn unresolved_values_are_recognised() {
        for (text, wanted) in [
            ("a ${B} c", true),
            ("ENC[AES256_GCM,data:x]", true),
            ("$(B) ${", false),
            ("${}", false),
        ] {
            assert_eq!(is_unresolved(&Value::from(text)), wanted, "{text}");
        }
    }
}
