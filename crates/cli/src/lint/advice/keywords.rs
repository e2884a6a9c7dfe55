//! Rules that keywords of a schema can replace.

use scantling_cel::ast::{Expr, ExprKind, Literal};
use scantling_schema::structural::{Structural, Type};
use scantling_value::Value;
use std::fmt;

/// A keyword with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Keyword {
    Required(String),
    /// The pattern, as JSON.
    Pattern(String),
    /// The values, as JSON.
    Enum(Vec<String>),
    Maximum {
        bound: f64,
        exclusive: bool,
    },
    Minimum {
        bound: f64,
        exclusive: bool,
    },
    /// `maxLength`, `maxItems` or `maxProperties`.
    MaxSize(&'static str, i64),
    /// `minLength`, `minItems` or `minProperties`.
    MinSize(&'static str, i64),
}

impl fmt::Display for Keyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keyword::Required(name) => write!(f, "required: [{name}]"),
            Keyword::Pattern(pattern) => write!(f, "pattern: {pattern}"),
            Keyword::Enum(values) => write!(f, "enum: [{}]", values.join(", ")),
            Keyword::Maximum {
                bound,
                exclusive: false,
            } => write!(f, "maximum: {bound}"),
            Keyword::Maximum {
                bound,
                exclusive: true,
            } => write!(f, "maximum: {bound} with exclusiveMaximum"),
            Keyword::Minimum {
                bound,
                exclusive: false,
            } => write!(f, "minimum: {bound}"),
            Keyword::Minimum {
                bound,
                exclusive: true,
            } => write!(f, "minimum: {bound} with exclusiveMinimum"),
            Keyword::MaxSize(what, bound) => write!(f, "max{what}: {bound}"),
            Keyword::MinSize(what, bound) => write!(f, "min{what}: {bound}"),
        }
    }
}

impl Keyword {
    /// Returns whether a schema has the keyword, with this value or a stricter one.
    pub(super) fn is_in(&self, schema: &Structural) -> bool {
        let Some(limits) = schema.validation.as_deref() else {
            return false;
        };
        let size = |what: &str, [length, items, properties]: [Option<i64>; 3]| match what {
            "Length" => length,
            "Items" => items,
            _ => properties,
        };
        // `has(self.a)` demands presence as `required` does; a default is reported elsewhere.
        match self {
            Keyword::Required(name) => limits.required.iter().any(|r| **r == **name),
            // Only an equal pattern counts: whether another one is stricter is not decided.
            Keyword::Pattern(pattern) => Value::from(&*limits.pattern).to_json() == *pattern,
            Keyword::Enum(values) => {
                !limits.enumeration.is_empty()
                    && limits.enumeration.iter().all(|v| values.contains(&v.0.to_json()))
            }
            Keyword::Maximum { bound, exclusive } => limits.maximum.as_ref().is_some_and(|max| {
                max.0 < *bound || max.0 <= *bound && (!exclusive || limits.exclusive_maximum)
            }),
            Keyword::Minimum { bound, exclusive } => limits.minimum.as_ref().is_some_and(|min| {
                min.0 > *bound || min.0 >= *bound && (!exclusive || limits.exclusive_minimum)
            }),
            Keyword::MaxSize(what, bound) => {
                size(what, [limits.max_length, limits.max_items, limits.max_properties])
                    .is_some_and(|max| max <= *bound)
            }
            Keyword::MinSize(what, bound) => {
                size(what, [limits.min_length, limits.min_items, limits.min_properties])
                    .is_some_and(|min| min >= *bound)
            }
        }
    }
}

/// Returns keywords as a text.
pub(super) fn join(keywords: &[Keyword]) -> String {
    let texts: Vec<String> = keywords.iter().map(ToString::to_string).collect();
    texts.join(" and ")
}

/// Returns the keywords that replace a rule on values of a type.
pub(super) fn instead_of(rule: &Expr, ty: Type) -> Option<Vec<Keyword>> {
    match &rule.kind {
        // Fields whose names are not identifiers are written differently in rules.
        ExprKind::Select {
            operand,
            field,
            test: true,
        } => (is_self(operand) && !field.contains("__")).then(|| vec![Keyword::Required(field.to_string())]),
        ExprKind::Call {
            function,
            target,
            args,
        } => match (&**function, target.as_deref(), args.as_slice()) {
            ("_&&_", None, [a, b]) => {
                let mut both = instead_of(a, ty)?;
                both.extend(instead_of(b, ty)?);
                Some(both)
            }
            // Both `matches` and `pattern` search anywhere in the text, with the syntax of RE2.
            ("matches", Some(text), [pattern]) | ("matches", None, [text, pattern]) if is_self(text) => {
                Some(vec![Keyword::Pattern(constant(pattern)?)])
            }
            ("@in", None, [value, list]) if is_self(value) => enumeration(list).map(|keyword| vec![keyword]),
            (operator, None, [a, b]) => comparison(operator, a, b, ty)
                .or_else(|| comparison(turned(operator)?, b, a, ty))
                .map(|keyword| vec![keyword]),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the keyword for `value operator bound`, where the value is `self` or its size.
fn comparison(operator: &str, value: &Expr, bound: &Expr, ty: Type) -> Option<Keyword> {
    if is_self(value) {
        return match (operator, ty) {
            // Doubles are left out: `1` and `1.0` are equal, but differ as JSON values of an enumeration.
            ("_==_", Type::String | Type::Integer) => Some(Keyword::Enum(vec![constant(bound)?])),
            ("_!=_", Type::String) if constant(bound)? == "\"\"" => Some(Keyword::MinSize("Length", 1)),
            ("_<=_" | "_<_", Type::Integer | Type::Number) => Some(Keyword::Maximum {
                bound: number(bound)?,
                exclusive: operator == "_<_",
            }),
            ("_>=_" | "_>_", Type::Integer | Type::Number) => Some(Keyword::Minimum {
                bound: number(bound)?,
                exclusive: operator == "_>_",
            }),
            _ => None,
        };
    }
    let ExprKind::Literal(Literal::Int(bound)) = bound.kind else {
        return None;
    };
    let what = match ty {
        _ if !is_size_of_self(value) => return None,
        Type::String => "Length",
        Type::Array => "Items",
        Type::Object => "Properties",
        _ => return None,
    };
    Some(match operator {
        "_<=_" => Keyword::MaxSize(what, bound),
        // `size(self) < -9223372036854775808` has no keyword.
        "_<_" => Keyword::MaxSize(what, bound.checked_sub(1)?),
        "_>=_" => Keyword::MinSize(what, bound),
        "_>_" => Keyword::MinSize(what, bound.checked_add(1)?),
        "_!=_" if bound == 0 => Keyword::MinSize(what, 1),
        _ => return None,
    })
}

fn number(value: &Expr) -> Option<f64> {
    match value.kind {
        ExprKind::Literal(Literal::Int(n)) => Some(n as f64),
        ExprKind::Literal(Literal::Double(n)) => Some(n),
        _ => None,
    }
}

/// Returns the operator with its sides exchanged.
fn turned(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "_==_" => "_==_",
        "_!=_" => "_!=_",
        "_<=_" => "_>=_",
        "_<_" => "_>_",
        "_>=_" => "_<=_",
        "_>_" => "_<_",
        _ => return None,
    })
}

fn enumeration(list: &Expr) -> Option<Keyword> {
    let ExprKind::List { elements, optional } = &list.kind else {
        return None;
    };
    let values: Option<Vec<String>> = elements.iter().map(constant).collect();
    // An empty enumeration means no constraint, but a rule with an empty list accepts nothing.
    let values = values.filter(|values| !values.is_empty() && optional.is_empty())?;
    Some(Keyword::Enum(values))
}

/// Returns a constant as JSON.
fn constant(value: &Expr) -> Option<String> {
    match &value.kind {
        ExprKind::Literal(Literal::String(text)) => Some(Value::from(&**text).to_json()),
        ExprKind::Literal(Literal::Int(n)) => Some(n.to_string()),
        ExprKind::Literal(Literal::Double(n)) => Some(n.to_string()),
        _ => None,
    }
}

fn is_self(value: &Expr) -> bool {
    matches!(&value.kind, ExprKind::Ident(name) if &**name == "self")
}

/// `size(self)`, `self.size()`
fn is_size_of_self(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Call {
            function,
            target,
            args,
        } if &**function == "size" => match (target, args.as_slice()) {
            (Some(of), []) => is_self(of),
            (None, [of]) => is_self(of),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{instead_of, join};
    use scantling_cel::syntax::{ParseOptions, parse};
    use scantling_schema::structural::Type;

    #[test]
    fn keywords_replace_rules() {
        let cases = [
            ("has(self.a)", Type::Object, Some("required: [a]")),
            (
                "has(self.a) && has(self.b)",
                Type::Object,
                Some("required: [a] and required: [b]"),
            ),
            ("has(self.a.b)", Type::Object, None),
            ("self.matches('^a$')", Type::String, Some(r#"pattern: "^a$""#)),
            ("matches(self, 'a')", Type::String, Some(r#"pattern: "a""#)),
            ("self in ['a', 'b']", Type::String, Some(r#"enum: ["a", "b"]"#)),
            ("self in [1]", Type::Integer, Some("enum: [1]")),
            ("self in []", Type::String, None),
            ("self in self.names", Type::Object, None),
            (
                "self >= 0 && self <= 10",
                Type::Integer,
                Some("minimum: 0 and maximum: 10"),
            ),
            (
                "0 < self",
                Type::Integer,
                Some("minimum: 0 with exclusiveMinimum"),
            ),
            (
                "self < -1.5",
                Type::Number,
                Some("maximum: -1.5 with exclusiveMaximum"),
            ),
            ("self.size() <= 63", Type::String, Some("maxLength: 63")),
            ("size(self) > 0", Type::Array, Some("minItems: 1")),
            ("10 > size(self)", Type::Object, Some("maxProperties: 9")),
            ("self != ''", Type::String, Some("minLength: 1")),
            ("self == 'a'", Type::String, Some(r#"enum: ["a"]"#)),
            ("self == oldSelf", Type::String, None),
            ("self.a >= 0", Type::Object, None),
            ("self >= 0 || self == -5", Type::Integer, None),
        ];
        for (rule, ty, keywords) in cases {
            let ast = parse(rule, &ParseOptions::default()).unwrap();
            let found = instead_of(&ast.root, ty).map(|found| join(&found));
            assert_eq!(found.as_deref(), keywords, "{rule}");
        }
    }
}
