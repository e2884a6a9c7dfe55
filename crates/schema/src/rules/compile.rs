//! Compiles rules to programs and estimates their cost.

use super::shape::MAX_REQUEST_BYTES;
use crate::structural::ValidationRule;
use scantling_cel::check::CheckedExpr;
use scantling_cel::env::{BaseEnv, Env};
use scantling_cel::estimate::estimate;
use scantling_cel::kubernetes::{self, KubernetesVersion};
use scantling_cel::program::Program;
use scantling_cel::shape::Shape;
use scantling_cel::types::CelType;
use scantling_value::Str;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The CEL environments of a Kubernetes version.
#[derive(Clone, Debug)]
pub struct Environments {
    /// For new expressions: only what the previous version understands, so that a downgrade is possible.
    new: Arc<BaseEnv>,
    /// For expressions that were accepted before.
    stored: Arc<BaseEnv>,
}

impl Environments {
    /// The environments of a Kubernetes version.
    pub fn for_version(version: KubernetesVersion) -> Self {
        Environments {
            new: Arc::new(kubernetes::for_new_expressions(version)),
            stored: Arc::new(kubernetes::for_stored_expressions(version)),
        }
    }
}

/// The expressions that were accepted before.
#[derive(Clone, Copy, Debug)]
pub enum PreviouslyAccepted<'a> {
    /// None: the CRD is new.
    None,
    /// All: a stored CRD is compiled.
    All,
    /// Those of the stored CRD that is updated.
    These(&'a Expressions),
}

/// The expressions of a CRD.
#[derive(Debug, Default)]
pub struct Expressions {
    /// The rules.
    pub rules: BTreeSet<Str>,
    /// The message expressions.
    pub messages: BTreeSet<Str>,
}

/// A compiled rule: expressions with their costs, or programs only.
#[derive(Debug)]
pub struct CompiledRule<E = Expression> {
    /// The rule; `None` if it is blank.
    pub rule: Option<Result<E, String>>,
    /// The message expression; `None` if there is none, or if the rule does not compile.
    pub message: Option<Result<E, String>>,
    /// True if the rule uses the old value.
    pub uses_old_self: bool,
    /// The maximum number of evaluations, as limited by the size of requests.
    pub max_cardinality: u64,
}

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    /// The program; its inputs are `self` and `oldSelf`.
    pub program: Program,
    /// The maximum estimated cost of one evaluation.
    pub max_cost: u64,
}

/// The type name of `self`. kube-apiserver appends a number that changes with every compilation.
const SELF_TYPE: &str = "selfType1";

/// Compiles the rules of a schema node; `shape` is the shape of `self`.
pub fn compile(
    rules: &[ValidationRule],
    shape: &Arc<Shape>,
    environments: &Environments,
    accepted: PreviouslyAccepted<'_>,
) -> Vec<CompiledRule> {
    let compiler = RuleCompiler::new(shape, environments, accepted);
    let estimated = |program, checked: &CheckedExpr| Expression {
        program,
        max_cost: estimate(checked, Some(shape)).max,
    };
    rules.iter().map(|rule| compiler.rule(rule, &estimated)).collect()
}

/// Compiles the rules of an accepted schema node for evaluation, without estimating their cost.
pub(super) fn programs(
    rules: &[ValidationRule],
    shape: &Arc<Shape>,
    environments: &Environments,
) -> Vec<CompiledRule<Program>> {
    let compiler = RuleCompiler::new(shape, environments, PreviouslyAccepted::All);
    let program = |program, _: &CheckedExpr| program;
    rules.iter().map(|rule| compiler.rule(rule, &program)).collect()
}

struct RuleCompiler<'a> {
    shape: &'a Arc<Shape>,
    self_type: CelType,
    environments: &'a Environments,
    accepted: PreviouslyAccepted<'a>,
}

impl<'a> RuleCompiler<'a> {
    fn new(shape: &'a Arc<Shape>, environments: &'a Environments, accepted: PreviouslyAccepted<'a>) -> Self {
        RuleCompiler {
            shape,
            self_type: shape.ty(SELF_TYPE),
            environments,
            accepted,
        }
    }

    /// Compiles a rule; `make` converts each program and its checked expression to the result.
    fn rule<E>(&self, rule: &ValidationRule, make: &impl Fn(Program, &CheckedExpr) -> E) -> CompiledRule<E> {
        let mut compiled = CompiledRule {
            rule: None,
            message: None,
            uses_old_self: false,
            max_cardinality: 0,
        };
        if rule.rule.trim().is_empty() {
            return compiled;
        }
        let is_stored = |select: fn(&Expressions) -> &BTreeSet<Str>, text: &Str| match self.accepted {
            PreviouslyAccepted::None => false,
            PreviouslyAccepted::All => true,
            PreviouslyAccepted::These(expressions) => select(expressions).contains(text),
        };
        let env = self.env(rule, is_stored(|e| &e.rules, &rule.rule));
        let expression = self.checked(&env, &rule.rule, &RULE).and_then(|checked| {
            // Set even if no program can be made: the use of `oldSelf` is checked in any case.
            compiled.uses_old_self = checked.mentions("oldSelf");
            Ok(make(program(&env, &checked, &RULE)?, &checked))
        });
        if expression.is_ok() {
            compiled.max_cardinality = max_cardinality(self.shape);
            if !rule.message_expression.is_empty() {
                let env = self.env(rule, is_stored(|e| &e.messages, &rule.message_expression));
                let checked = self.checked(&env, &rule.message_expression, &MESSAGE);
                let message = checked.and_then(|c| Ok(make(program(&env, &c, &MESSAGE)?, &c)));
                compiled.message = Some(message);
            }
        }
        compiled.rule = Some(expression);
        compiled
    }

    fn env(&self, rule: &ValidationRule, stored: bool) -> Env {
        let scope = if stored {
            &self.environments.stored
        } else {
            &self.environments.new
        };
        let self_type = self.self_type.clone();
        let old_self = if rule.optional_old_self == Some(true) {
            CelType::optional(self_type.clone())
        } else if rule.applies_on_create {
            // A wrapper type can be compared with null.
            CelType::Wrapper(Arc::new(self_type.clone()))
        } else {
            self_type.clone()
        };
        Env::new(Arc::clone(scope))
            .with_variable("self", self_type)
            .with_variable("oldSelf", old_self)
    }

    fn checked(&self, env: &Env, text: &str, role: &ExpressionRole) -> Result<CheckedExpr, String> {
        let checked = env
            .compile(text)
            .map_err(|issues| format!("{}: {issues}", role.not_compiled))?;
        if *checked.result_type() != role.ty {
            return Err(role.wrong_type.to_owned());
        }
        Ok(checked)
    }
}

fn program(env: &Env, checked: &CheckedExpr, role: &ExpressionRole) -> Result<Program, String> {
    let failed = |problem: String| format!("{}: {problem}", role.not_made);
    if let Some(name) = checked.undefined_type() {
        return Err(failed(format!("reference to undefined type: {name}")));
    }
    Program::compile(env, checked).map_err(|e| failed(e.to_string()))
}

/// The purpose of an expression: its required type, and its error messages.
struct ExpressionRole {
    ty: CelType,
    wrong_type: &'static str,
    not_compiled: &'static str,
    not_made: &'static str,
}

const RULE: ExpressionRole = ExpressionRole {
    ty: CelType::Bool,
    wrong_type: "cel expression must evaluate to a bool",
    not_compiled: "compilation failed",
    not_made: "program instantiation failed",
};

const MESSAGE: ExpressionRole = ExpressionRole {
    ty: CelType::String,
    wrong_type: "messageExpression must evaluate to a string",
    not_compiled: "messageExpression compilation failed",
    not_made: "messageExpression instantiation failed",
};

/// The number of values of a shape that fit into a request, each followed by a comma.
fn max_cardinality(shape: &Shape) -> u64 {
    MAX_REQUEST_BYTES.unsigned_abs() / (shape.min_serialized_size + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Schema;
    use crate::rules::Shapes;
    use crate::structural::Interner;
    use scantling_value::{Limits, json};

    fn compiled(schema: &str, rule: &ValidationRule) -> CompiledRule {
        let document = json::decode(schema.as_bytes(), Limits::default()).unwrap();
        let schema = Schema::new(&document).structural(&mut Interner::new()).unwrap();
        let shape = Shapes::new().of_schema(&schema).unwrap();
        let environments = Environments::for_version(KubernetesVersion::LATEST);
        compile(
            std::slice::from_ref(rule),
            &shape,
            &environments,
            PreviouslyAccepted::None,
        )
        .remove(0)
    }

    #[test]
    fn applies_on_create_allows_null_old_self() {
        for schema in [
            r#"{"type": "string"}"#,
            r#"{"type": "array", "items": {"type": "string"}}"#,
            r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#,
        ] {
            let mut rule = ValidationRule {
                rule: "oldSelf == null || size(oldSelf) <= size(self)".into(),
                ..ValidationRule::default()
            };
            let always = compiled(schema, &rule);
            assert!(matches!(always.rule, Some(Err(_))), "{schema}: {always:?}");
            rule.applies_on_create = true;
            let on_create = compiled(schema, &rule);
            assert!(matches!(on_create.rule, Some(Ok(_))), "{schema}: {on_create:?}");
            assert!(on_create.uses_old_self);
        }
    }

    #[test]
    fn new_expressions_use_the_previous_version() {
        let rule = ValidationRule {
            rule: "self.includes('a')".into(),
            ..ValidationRule::default()
        };
        let schema = r#"{"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 3}}"#;
        assert!(matches!(compiled(schema, &rule).rule, Some(Err(_))));
        let known = Expressions {
            rules: [rule.rule.clone()].into(),
            ..Expressions::default()
        };
        let document = json::decode(schema.as_bytes(), Limits::default()).unwrap();
        let schema = Schema::new(&document).structural(&mut Interner::new()).unwrap();
        let shape = Shapes::new().of_schema(&schema).unwrap();
        let environments = Environments::for_version(KubernetesVersion::LATEST);
        for accepted in [PreviouslyAccepted::All, PreviouslyAccepted::These(&known)] {
            let compiled = compile(std::slice::from_ref(&rule), &shape, &environments, accepted).remove(0);
            assert!(matches!(compiled.rule, Some(Ok(_))), "{accepted:?}");
        }
    }
}
