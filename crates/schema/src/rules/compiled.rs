//! Rules that are compiled on first use.

use super::compile::{Environments, programs};
use super::shape::Shapes;
use crate::field_path::{self, BracketSyntax, PathStep};
use crate::structural::{Structural, Type, ValidationRule};
use scantling_cel::program::Program;
use scantling_cel::shape::Shape;
use scantling_value::deadline;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The state shared by the rules of all CRDs.
#[derive(Debug)]
pub(crate) struct RuleContext {
    environments: Environments,
    shapes: Mutex<Shapes>,
}

impl RuleContext {
    pub(crate) fn new(environments: Environments) -> Self {
        RuleContext {
            environments,
            shapes: Mutex::default(),
        }
    }

    /// Drops the shapes of dropped schemas.
    pub(crate) fn sweep(&self) {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner).sweep();
    }
}

/// The rules of a node. They are compiled when the first value is validated: most rules of a cluster's CRDs
/// never run, and a program takes more memory than its text.
#[derive(Debug)]
pub(crate) struct LazyRules {
    context: Arc<RuleContext>,
    scope: RuleScope,
    compiled_rules: OnceLock<Option<CompiledRules>>,
}

/// The scope of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RuleScope {
    /// The root of a CRD: its rules also see `apiVersion`, `kind` and names.
    Root,
    /// Anywhere below.
    Nested,
}

/// Compiled rules, and the shape they see.
#[derive(Debug)]
pub(crate) struct CompiledRules {
    pub(crate) shape: Arc<Shape>,
    /// The rules, in the order of the schema.
    pub(crate) rules: Box<[ExecutableRule]>,
}

#[derive(Debug)]
pub(crate) struct ExecutableRule {
    /// `None` if the rule is blank.
    pub(crate) program: Option<Result<Program, String>>,
    pub(crate) message: Option<Program>,
    pub(crate) uses_old_self: bool,
    /// The path below the value that a failure is reported at, in the notation of errors.
    pub(crate) field_path: Option<Box<str>>,
}

impl LazyRules {
    pub(crate) fn new(context: Arc<RuleContext>, scope: RuleScope) -> Self {
        LazyRules {
            context,
            scope,
            compiled_rules: OnceLock::new(),
        }
    }

    /// The compiled rules; `None` if expressions cannot see such values.
    pub(crate) fn compiled(&self, schema: &Arc<Structural>) -> Option<&CompiledRules> {
        // Other threads wait for the same rules, so compiling must not be interrupted.
        let compile = || deadline::suspended(|| self.compile(schema));
        self.compiled_rules.get_or_init(compile).as_ref()
    }

    fn compile(&self, schema: &Arc<Structural>) -> Option<CompiledRules> {
        // The lock is released before the rules are compiled, so that other nodes need not wait.
        let shape = {
            let mut shapes = self.context.shapes.lock().unwrap_or_else(PoisonError::into_inner);
            match self.scope {
                RuleScope::Root => shapes.of_resource(schema)?,
                RuleScope::Nested => shapes.of_schema(schema)?,
            }
        };
        let compiled = programs(&schema.rules, &shape, &self.context.environments);
        let rules = schema
            .rules
            .iter()
            .zip(compiled)
            .map(|(rule, compiled)| ExecutableRule {
                program: compiled.rule,
                // A message expression that does not compile is ignored; the failure has the rule's message.
                message: compiled.message.and_then(Result::ok),
                uses_old_self: compiled.uses_old_self,
                field_path: error_path(rule, schema),
            });
        Some(CompiledRules {
            rules: rules.collect(),
            shape,
        })
    }
}

fn error_path(rule: &ValidationRule, schema: &Arc<Structural>) -> Option<Box<str>> {
    // Without a valid path, failures are reported at the value itself.
    let path = rule.field_path.as_str();
    let resolved = field_path::resolve(path, schema, BracketSyntax::Allowed)
        .ok()
        .filter(|_| !path.is_empty())?;
    let mut out = String::new();
    for step in &resolved.steps {
        // Writing to a string cannot fail.
        let _ = match step {
            PathStep::Field(name) if out.is_empty() => write!(out, "{name}"),
            PathStep::Field(name) => write!(out, ".{name}"),
            PathStep::Key(key) => write!(out, "[{key}]"),
        };
    }
    Some(out.into())
}

/// Returns whether expressions can see values of a schema. Fields that they cannot see have no rules.
pub(crate) fn is_visible(schema: &Structural) -> bool {
    if schema.is_int_or_string() {
        return true;
    }
    match schema.ty {
        None => false,
        Some(Type::Array) => schema.items.as_ref().is_some_and(|items| is_visible(items)),
        Some(Type::Object) => schema.additional_schema().is_none_or(|values| is_visible(values)),
        Some(Type::String | Type::Integer | Type::Number | Type::Boolean) => true,
    }
}

/// Returns whether expressions can see the fields of a schema: only those of objects.
pub(crate) fn shows_fields(schema: &Structural) -> bool {
    schema.ty == Some(Type::Object) && !schema.is_int_or_string()
}
