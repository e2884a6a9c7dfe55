//! Validates names: DNS labels, subdomains, qualified names and label values.
//!
//! Each check returns kube-apiserver's error messages; empty if the name is valid. kube-apiserver measures
//! lengths in bytes, but only the messages about label keys and values say so.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// Checks a lower-case label of at most 63 characters (`my-name`).
pub fn dns1123_label(s: &str) -> Vec<String> {
    let mut errors = too_long(s, 63, "characters");
    // A name that is a subdomain but not a label has dots; kube-apiserver has a shorter message for it.
    if is_subdomain(s) {
        if s.contains('.') {
            errors.push("must not contain dots".into());
        }
    } else {
        errors.push(format_message(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
             end with an alphanumeric character",
            &["my-name", "123-abc"],
            LABEL,
        ));
    }
    errors
}

/// Checks lower-case labels joined by dots, at most 253 characters (`example.com`).
pub fn dns1123_subdomain(s: &str) -> Vec<String> {
    subdomain(s, "characters")
}

fn subdomain(s: &str, unit: &str) -> Vec<String> {
    let mut errors = too_long(s, 253, unit);
    if !is_subdomain(s) {
        errors.push(format_message(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            &["example.com"],
            &format!("{LABEL}(\\.{LABEL})*"),
        ));
    }
    errors
}

/// Checks a lower-case label of at most 63 characters that begins with a letter (`my-name`).
pub fn dns1035_label(s: &str) -> Vec<String> {
    let mut errors = too_long(s, 63, "characters");
    if !is_label(s) {
        errors.push(format_message(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            &["my-name", "abc-123"],
            "[a-z]([-a-z0-9]*[a-z0-9])?",
        ));
    }
    errors
}

/// Checks the key of a config map, which may become a file name.
pub fn config_key(s: &str) -> Vec<String> {
    let mut errors = too_long(s, 253, "characters");
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if s.is_empty() || !s.bytes().all(is_plain) {
        errors.push(format_message(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            &["key.name", "KEY_NAME", "key-name"],
            "[-._a-zA-Z0-9]+",
        ));
    }
    match s {
        "." | ".." => errors.push(format!("must not be '{s}'")),
        _ if s.starts_with("..") => errors.push("must not start with '..'".into()),
        _ => {}
    }
    errors
}

/// Checks the key of a label or annotation: a name with an optional subdomain before a slash
/// (`example.com/MyName`).
pub fn label_key(s: &str) -> Vec<String> {
    const FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character";
    const EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
    let mut errors = Vec::new();
    let name = match s.split_once('/') {
        None => s,
        Some((prefix, name)) if !name.contains('/') => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".into());
            } else {
                errors.extend(
                    subdomain(prefix, "bytes")
                        .into_iter()
                        .map(|e| format!("prefix part {e}")),
                );
            }
            name
        }
        _ => {
            let text = format_message(&format!("a valid label key {FORM}"), EXAMPLES, QUALIFIED);
            return vec![format!(
                "{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".into());
    } else {
        errors.extend(
            too_long(name, 63, "bytes")
                .into_iter()
                .map(|e| format!("name part {e}")),
        );
    }
    if !is_qualified(name) {
        errors.push(format!("name part {}", format_message(FORM, EXAMPLES, QUALIFIED)));
    }
    errors
}

/// Checks the value of a label: empty, or a qualified name without prefix.
pub fn label_value(s: &str) -> Vec<String> {
    let mut errors = too_long(s, 63, "bytes");
    if !s.is_empty() && !is_qualified(s) {
        errors.push(format_message(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &["MyValue", "my_value", "12345"],
            &format!("({QUALIFIED})?"),
        ));
    }
    errors
}

/// Returns whether a text is a label that begins with a letter.
fn is_label(s: &str) -> bool {
    s.starts_with(|c: char| c.is_ascii_lowercase())
        && s.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && s.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Returns whether a text is one or more labels joined by dots. Takes one pass.
fn is_subdomain(s: &str) -> bool {
    let is_end = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut before = b'.';
    for b in s.bytes() {
        let fits = is_end(b)
            || match b {
                b'-' => before != b'.',
                b'.' => is_end(before),
                _ => false,
            };
        if !fits {
            return false;
        }
        before = b;
    }
    is_end(before)
}

fn is_qualified(s: &str) -> bool {
    s.starts_with(|c: char| c.is_ascii_alphanumeric())
        && s.ends_with(|c: char| c.is_ascii_alphanumeric())
        && s.bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn too_long(s: &str, max: usize, unit: &str) -> Vec<String> {
    if s.len() > max {
        vec![format!("must be no more than {max} {unit}")]
    } else {
        Vec::new()
    }
}

/// Formats the error that describes the required syntax, with examples and the pattern.
pub fn format_message(rule: &str, examples: &[&str], pattern: &str) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    let examples = match examples.is_empty() {
        true => String::new(),
        false => format!("e.g. {}", examples.join(" or ")),
    };
    format!("{rule} ({examples}regex used for validation is '{pattern}')")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn name_errors() {
        let mut out = String::new();
        for (check, cases) in [
            (
                dns1035_label as fn(&str) -> Vec<String>,
                &["a", "a-1", "1a", "a-", "A", ""][..],
            ),
            (dns1123_label, &["1a", "-a", "a.b"]),
            (dns1123_subdomain, &["a.b-c", "a..b", "a.-b", &"a".repeat(254)]),
            (label_key, &["A_b", "a.b/C", "/c", "a/", "a/b/c", "a b"]),
            (label_value, &["", "a_B", "-"]),
        ] {
            for case in cases {
                let display: String = case.chars().take(8).collect();
                out += &format!("{display:?}: {:?}\n", check(case));
            }
        }
        expect![[r#"
            "a": []
            "a-1": []
            "1a": ["a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"]
            "a-": ["a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"]
            "A": ["a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"]
            "": ["a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"]
            "1a": []
            "-a": ["a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"]
            "a.b": ["must not contain dots"]
            "a.b-c": []
            "a..b": ["a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]
            "a.-b": ["a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"]
            "aaaaaaaa": ["must be no more than 253 characters"]
            "A_b": []
            "a.b/C": []
            "/c": ["prefix part must be non-empty"]
            "a/": ["name part must be non-empty", "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"]
            "a/b/c": ["a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
            "a b": ["name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"]
            "": []
            "a_B": []
            "-": ["a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"]
        "#]].assert_eq(&out);
    }
}
