//! Mistakes in rules: optional fields that are read without a test, rules that are always true, rules that repeat a
//! keyword.

use super::keywords;
use crate::rules::{SchemaStep, field_path};
use scantling_cel::ast::{Comprehension, Expr, ExprKind, Literal};
use scantling_cel::syntax::{ParseOptions, parse};
use scantling_schema::structural::{Structural, Type};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Returns the codes and texts of the mistakes in a rule of a schema. `is_resource` tells whether the schema is that of a
/// whole object, whose metadata always exist.
pub(super) fn mistakes(
    rule: &str,
    schema: &Arc<Structural>,
    is_resource: bool,
) -> Vec<(&'static str, String)> {
    // A rule that does not parse is an error of the CRD.
    let Ok(ast) = parse(rule, &ParseOptions::default()) else {
        return Vec::new();
    };
    let rule = &ast.root;
    if is_always_true(rule, schema) {
        return vec![("SCT0107", "the rule is always true".to_owned())];
    }
    // A rule that is a keyword reads nothing but `self`, so the checks below would find nothing.
    if let Some(found) = schema.ty.and_then(|ty| keywords::instead_of(rule, ty)) {
        let text = keywords::join(&found);
        return vec![if found.iter().all(|keyword| keyword.is_in(schema)) {
            ("SCT0108", format!("the rule repeats {text} of the schema"))
        } else {
            (
                "SCT0105",
                format!("the rule can be replaced by {text}, which costs nothing"),
            )
        }];
    }
    let mut reads = Reads {
        schema,
        is_resource,
        bound: Vec::new(),
        found: Vec::new(),
    };
    reads.visit(rule, &KnownFields::new());
    let text = |path: ReadPath| {
        let name = field_path(&path.steps);
        let name = format!("{}.{name}", path.root);
        format!(
            "the rule reads {name} without has({name}), and the field is optional: objects without it are rejected with \"no such key\""
        )
    };
    reads
        .found
        .into_iter()
        .map(|path| ("SCT0106", text(path)))
        .collect()
}

/// A field below `self` or `oldSelf`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReadPath {
    root: &'static str,
    steps: Vec<SchemaStep>,
}

/// The fields that exist wherever an expression is evaluated.
type KnownFields = BTreeSet<ReadPath>;

/// Finds reads of optional fields that nothing guards.
struct Reads<'s> {
    schema: &'s Arc<Structural>,
    is_resource: bool,
    /// The variables of comprehensions, with the elements that they stand for, if known.
    bound: Vec<(Arc<str>, Option<ReadPath>)>,
    found: Vec<ReadPath>,
}

impl Reads<'_> {
    fn visit(&mut self, expression: &Expr, facts: &KnownFields) {
        match &expression.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select { operand, test, .. } => {
                // `has(self.a)` does not read `a`, but it reads `self`.
                if !test && let Some(path) = self.path(expression) {
                    self.check(&path, facts);
                }
                self.visit(operand, facts);
            }
            ExprKind::Call {
                function,
                target,
                args,
            } => match (&**function, args.as_slice()) {
                // An error in one operand does not matter if the other one decides, on either side.
                ("_&&_", [a, b]) => {
                    self.visit(a, &union(facts, self.facts(b, true)));
                    self.visit(b, &union(facts, self.facts(a, true)));
                }
                ("_||_", [a, b]) => {
                    self.visit(a, &union(facts, self.facts(b, false)));
                    self.visit(b, &union(facts, self.facts(a, false)));
                }
                ("_?_:_", [condition, then, otherwise]) => {
                    self.visit(condition, facts);
                    self.visit(then, &union(facts, self.facts(condition, true)));
                    self.visit(otherwise, &union(facts, self.facts(condition, false)));
                }
                // Other calls evaluate all of their arguments.
                (_, args) => target
                    .iter()
                    .map(|t| &**t)
                    .chain(args)
                    .for_each(|e| self.visit(e, facts)),
            },
            ExprKind::Comprehension(fold) => self.fold(fold, facts),
            _ => {
                let mut children = Vec::new();
                expression.for_each_child(|child| children.push(child));
                children.into_iter().for_each(|child| self.visit(child, facts));
            }
        }
    }

    fn fold(&mut self, fold: &Comprehension, facts: &KnownFields) {
        // The range is evaluated outside, where the variables are not yet bound.
        self.visit(&fold.range, facts);
        self.visit(&fold.accu_init, facts);
        let range = self.path(&fold.range);
        let element = range.and_then(|mut path| {
            let schema = self.at(&path)?;
            let step = match (&schema.items, schema.additional_schema()) {
                (Some(_), _) => SchemaStep::Items,
                // With one variable, a map gives its keys.
                (None, Some(_)) if fold.iter_var2.is_some() => SchemaStep::Additional,
                _ => return None,
            };
            path.steps.push(step);
            Some(path)
        });
        let depth = self.bound.len();
        match &fold.iter_var2 {
            Some(value) => {
                self.bound.push((Arc::clone(&fold.iter_var), None));
                self.bound.push((Arc::clone(value), element));
            }
            None => self.bound.push((Arc::clone(&fold.iter_var), element)),
        }
        self.bound.push((Arc::clone(&fold.accu_var), None));
        self.visit(&fold.step, facts);
        self.visit(&fold.result, facts);
        self.bound.truncate(depth);
    }

    /// Returns the field that a chain of selections reads.
    fn path(&self, expression: &Expr) -> Option<ReadPath> {
        match &expression.kind {
            ExprKind::Ident(name) => {
                // Inner variables shadow outer ones and `self`.
                if let Some((_, path)) = self.bound.iter().rev().find(|(bound, _)| bound == name) {
                    return path.clone();
                }
                let root = match &**name {
                    "self" => "self",
                    "oldSelf" => "oldSelf",
                    _ => return None,
                };
                Some(ReadPath {
                    root,
                    steps: Vec::new(),
                })
            }
            ExprKind::Select { operand, field, .. } => {
                let mut path = self.path(operand)?;
                // Names that are not identifiers are written differently in rules.
                if field.contains("__") {
                    return None;
                }
                path.steps.push(SchemaStep::Property(field.to_string()));
                Some(path)
            }
            ExprKind::Call { function, args, .. } if &**function == "_[_]" => {
                let mut path = self.path(args.first()?)?;
                // An index into a map reads an entry, which no schema declares as a property.
                self.at(&path)?.items.as_ref()?;
                path.steps.push(SchemaStep::Items);
                Some(path)
            }
            _ => None,
        }
    }

    fn at(&self, path: &ReadPath) -> Option<&Arc<Structural>> {
        path.steps
            .iter()
            .try_fold(self.schema, |schema, step| step.below(schema))
    }

    fn check(&mut self, path: &ReadPath, facts: &KnownFields) {
        let Some((SchemaStep::Property(name), above)) = path.steps.split_last() else {
            return;
        };
        let parent = ReadPath {
            root: path.root,
            steps: above.to_vec(),
        };
        // kube-apiserver sets these fields of every whole object, required or not.
        let in_metadata = match path.steps.first() {
            Some(SchemaStep::Property(first)) => {
                self.is_resource && matches!(first.as_str(), "metadata" | "apiVersion" | "kind")
            }
            _ => false,
        };
        let (Some(object), Some(field)) = (self.at(&parent), self.at(path)) else {
            return;
        };
        let is_optional = object
            .properties
            .iter()
            .any(|(known, _)| &**known == name.as_str())
            && !is_required(object, name)
            && field.default.is_none();
        if is_optional && !in_metadata && !facts.contains(path) && !self.found.contains(path) {
            self.found.push(path.clone());
        }
    }

    /// Returns the fields that exist if an expression has a value.
    fn facts(&self, expression: &Expr, value: bool) -> KnownFields {
        match &expression.kind {
            ExprKind::Select { test: true, .. } if value => {
                // A test of `self.a.b` that is true has also found `self.a`.
                let mut facts = KnownFields::new();
                let mut here = Some(expression);
                while let Some(read) = here {
                    facts.extend(self.path(read));
                    here = match &read.kind {
                        ExprKind::Select { operand, .. } => Some(operand),
                        _ => None,
                    };
                }
                facts
            }
            ExprKind::Call { function, args, .. } => match (&**function, args.as_slice()) {
                ("!_", [inner]) => self.facts(inner, !value),
                ("_&&_" | "_||_", [a, b]) => {
                    let (a, b) = (self.facts(a, value), self.facts(b, value));
                    // If `a && b` is true, both operands are. If it is false, one of them is, so only what both imply
                    // is known.
                    if (&**function == "_&&_") == value {
                        union(&a, b)
                    } else {
                        a.intersection(&b).cloned().collect()
                    }
                }
                // A comparison of a field that has a value has read the field.
                _ => KnownFields::new(),
            },
            _ => KnownFields::new(),
        }
    }
}

fn union(facts: &KnownFields, more: KnownFields) -> KnownFields {
    let mut all = more;
    all.extend(facts.iter().cloned());
    all
}

fn is_required(object: &Structural, name: &str) -> bool {
    let limits = object.validation.as_deref();
    limits.is_some_and(|limits| limits.required.iter().any(|required| &**required == name))
}

/// Returns whether an expression is true for every object of a schema.
fn is_always_true(expression: &Expr, schema: &Arc<Structural>) -> bool {
    match &expression.kind {
        ExprKind::Literal(Literal::Bool(value)) => *value,
        ExprKind::Select {
            operand,
            field,
            test: true,
        } => {
            let is_self = matches!(&operand.kind, ExprKind::Ident(name) if &**name == "self");
            is_self && schema.ty == Some(Type::Object) && is_required(schema, field)
        }
        ExprKind::Call { function, args, .. } => match (&**function, args.as_slice()) {
            ("_&&_", [a, b]) => is_always_true(a, schema) && is_always_true(b, schema),
            ("_||_", [a, b]) => {
                let is_negation = |a: &Expr, b: &Expr| match &a.kind {
                    ExprKind::Call { function, args, .. } if &**function == "!_" => {
                        args.first().is_some_and(|inner| is_same(inner, b)) && has_value(b, schema)
                    }
                    _ => false,
                };
                // The other operand may fail, but CEL ignores an error if one operand is true.
                is_always_true(a, schema)
                    || is_always_true(b, schema)
                    || is_negation(a, b)
                    || is_negation(b, a)
            }
            ("_==_" | "_<=_" | "_>=_", [a, b]) if is_same(a, b) => has_value(a, schema),
            ("_>=_", [a, b]) => {
                is_size(a, schema) && matches!(b.kind, ExprKind::Literal(Literal::Int(n)) if n <= 0)
            }
            ("_<=_", [a, b]) => {
                is_size(b, schema) && matches!(a.kind, ExprKind::Literal(Literal::Int(n)) if n <= 0)
            }
            _ => false,
        },
        _ => false,
    }
}

fn is_size(expression: &Expr, schema: &Arc<Structural>) -> bool {
    match &expression.kind {
        ExprKind::Call {
            function,
            target,
            args,
        } => {
            &**function == "size"
                && target
                    .as_deref()
                    .into_iter()
                    .chain(args)
                    .all(|e| has_value(e, schema))
        }
        _ => false,
    }
}

/// Returns whether an expression has a value for every object of a schema: it certainly does not fail.
fn has_value(expression: &Expr, schema: &Arc<Structural>) -> bool {
    match &expression.kind {
        ExprKind::Literal(_) => true,
        ExprKind::Select {
            operand, test: true, ..
        } => always_read(operand, schema).is_some(),
        ExprKind::Call { function, args, .. } => {
            let is_total = matches!(&**function, "!_" | "_&&_" | "_||_" | "_==_" | "_!=_");
            is_total && args.iter().all(|arg| has_value(arg, schema))
        }
        _ => always_read(expression, schema).is_some(),
    }
}

/// Returns the schema of a field that every object has, and that is never null.
fn always_read<'s>(expression: &Expr, schema: &'s Arc<Structural>) -> Option<&'s Arc<Structural>> {
    let found = match &expression.kind {
        ExprKind::Ident(name) if &**name == "self" => schema,
        ExprKind::Select {
            operand,
            field,
            test: false,
        } => {
            let object = always_read(operand, schema)?;
            let found = SchemaStep::Property(field.to_string()).below(object)?;
            (is_required(object, field) || found.default.is_some()).then_some(found)?
        }
        _ => return None,
    };
    (!found.nullable).then_some(found)
}

/// Returns whether two expressions are written alike.
fn is_same(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (ExprKind::Literal(a), ExprKind::Literal(b)) => a == b,
        (ExprKind::Ident(a), ExprKind::Ident(b)) => a == b,
        (
            ExprKind::Select {
                operand: a,
                field,
                test,
            },
            ExprKind::Select {
                operand: b,
                field: other,
                test: tested,
            },
        ) => field == other && test == tested && is_same(a, b),
        (
            ExprKind::Call {
                function,
                target,
                args,
            },
            ExprKind::Call {
                function: other,
                target: on,
                args: others,
            },
        ) => {
            let targets = match (target, on) {
                (Some(a), Some(b)) => is_same(a, b),
                (None, None) => true,
                _ => false,
            };
            function == other
                && targets
                && args.len() == others.len()
                && args.iter().zip(others).all(|(a, b)| is_same(a, b))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::mistakes;
    use scantling_schema::document::Schema;
    use scantling_schema::structural::Interner;
    use scantling_value::{Limits, yaml};

    #[test]
    fn mistakes_in_rules_are_found() {
        let schema = yaml::decode(
            b"type: object
required: [must, 'null']
properties:
  'null': {type: string, nullable: true}
  must: {type: string}
  may: {type: string}
  defaulted: {type: string, default: a}
  child: {type: object, properties: {may: {type: string}}}
  list:
    type: array
    items: {type: object, required: [name], properties: {name: {type: string}, may: {type: string}}}
",
            Limits::SAFE,
        )
        .unwrap();
        let schema = Schema::new(&schema).structural(&mut Interner::new()).unwrap();
        let cases: [(&str, &[&str]); 29] = [
            ("self.must == 'a'", &[]),
            ("self.defaulted == 'a'", &[]),
            ("self.may == 'a'", &["SCT0106 self.may"]),
            ("!has(self.may) || self.may == 'a'", &[]),
            ("self.may == 'a' || !has(self.may)", &[]),
            ("has(self.may) && self.may == 'a'", &[]),
            ("has(self.may) || self.may == 'a'", &["SCT0106 self.may"]),
            ("has(self.may) ? self.may == 'a' : true", &[]),
            ("!has(self.may) ? true : self.may == 'a'", &[]),
            ("!(has(self.may) && self.must == '') || self.may == 'a'", &[]),
            ("has(self.may) == has(oldSelf.may)", &[]),
            ("self.may == oldSelf.must", &["SCT0106 self.may"]),
            (
                "has(self.child) && self.child.may == 'a'",
                &["SCT0106 self.child.may"],
            ),
            ("has(self.child.may)", &["SCT0106 self.child"]),
            (
                "has(self.child) && has(self.child.may) && self.child.may == ''",
                &[],
            ),
            ("self.?may.orValue('') != 'a'", &[]),
            ("!has(self.list) || self.list.all(x, x.name != '')", &[]),
            (
                "!has(self.list) || self.list.all(x, x.may != '')",
                &["SCT0106 self.list[].may"],
            ),
            (
                "!has(self.list) || self.list.exists(x, has(x.may) && x.may != '')",
                &[],
            ),
            ("true", &["SCT0107 "]),
            ("self.must == self.must", &["SCT0107 "]),
            ("self.defaulted == self.defaulted", &["SCT0107 "]),
            ("self.may == self.may", &["SCT0106 self.may"]),
            ("self.null <= self.null", &[]),
            ("self.list.size() >= 0", &["SCT0106 self.list"]),
            (
                "has(self.child.may) || !has(self.child.may)",
                &["SCT0106 self.child"],
            ),
            ("has(self.must)", &["SCT0107 "]),
            ("has(self.may) || !has(self.may)", &["SCT0107 "]),
            ("has(self.may)", &["SCT0105 "]),
        ];
        for (rule, wanted) in cases {
            let found = mistakes(rule, &schema, false);
            let found: Vec<String> = found
                .iter()
                .map(|(code, text)| {
                    let read = text
                        .strip_prefix("the rule reads ")
                        .and_then(|t| t.split(' ').next());
                    format!("{code} {}", read.unwrap_or_default())
                })
                .collect();
            assert_eq!(found, wanted, "{rule}");
        }
    }
}
