//! Rules that say what keywords of a schema can say.

use scantling_cel::ast::{Expr, ExprKind, Literal};
use scantling_cel::syntax::{ParseOptions, parse};
use scantling_schema::structural::Type;
use scantling_value::Value;

/// The keywords that say what a rule on values of a type says, as they would be written.
pub(super) fn instead_of(rule: &str, ty: Type) -> Option<String> {
    keywords(&parse(rule, &ParseOptions::default()).ok()?.root, ty)
}

fn keywords(rule: &Expr, ty: Type) -> Option<String> {
    match &rule.kind {
        ExprKind::Select {
            operand,
            field,
            test: true,
            // Fields whose names are no identifiers are written in another way in rules.
        } => (is_self(operand) && !field.contains("__")).then(|| format!("required: [{field}]")),
        ExprKind::Call {
            function,
            target,
            args,
        } => match (&**function, target.as_deref(), args.as_slice()) {
            ("_&&_", None, [a, b]) => Some(format!("{} and {}", keywords(a, ty)?, keywords(b, ty)?)),
            ("matches", Some(text), [pattern]) | ("matches", None, [text, pattern]) if is_self(text) => {
                Some(format!("pattern: {}", constant(pattern)?))
            }
            ("@in", None, [value, list]) if is_self(value) => enumeration(list),
            (operator, None, [a, b]) => {
                comparison(operator, a, b, ty).or_else(|| comparison(turned(operator)?, b, a, ty))
            }
            _ => None,
        },
        _ => None,
    }
}

/// What `value operator bound` says, of the value itself or of its size.
fn comparison(operator: &str, value: &Expr, bound: &Expr, ty: Type) -> Option<String> {
    if is_self(value) {
        return match (operator, ty) {
            ("_==_", Type::String | Type::Integer) => Some(format!("enum: [{}]", constant(bound)?)),
            ("_!=_", Type::String) if constant(bound)? == "\"\"" => Some("minLength: 1".to_owned()),
            ("_<=_", Type::Integer | Type::Number) => Some(format!("maximum: {}", constant(bound)?)),
            ("_>=_", Type::Integer | Type::Number) => Some(format!("minimum: {}", constant(bound)?)),
            ("_<_", Type::Integer | Type::Number) => {
                Some(format!("maximum: {} with exclusiveMaximum", constant(bound)?))
            }
            ("_>_", Type::Integer | Type::Number) => {
                Some(format!("minimum: {} with exclusiveMinimum", constant(bound)?))
            }
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
        "_<=_" => format!("max{what}: {bound}"),
        "_<_" => format!("max{what}: {}", bound.checked_sub(1)?),
        "_>=_" => format!("min{what}: {bound}"),
        "_>_" => format!("min{what}: {}", bound.checked_add(1)?),
        "_!=_" if bound == 0 => format!("min{what}: 1"),
        _ => return None,
    })
}

/// The operator that says the same with its sides exchanged.
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

fn enumeration(list: &Expr) -> Option<String> {
    let ExprKind::List { elements, optional } = &list.kind else {
        return None;
    };
    let values: Option<Vec<String>> = elements.iter().map(constant).collect();
    let values = values.filter(|values| !values.is_empty() && optional.is_empty())?;
    Some(format!("enum: [{}]", values.join(", ")))
}

/// A constant as a schema writes it.
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
    use super::*;

    #[test]
    fn keywords_say_what_rules_say() {
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
            ("self >=", Type::Integer, None),
        ];
        for (rule, ty, keywords) in cases {
            assert_eq!(instead_of(rule, ty).as_deref(), keywords, "{rule}");
        }
    }
}
