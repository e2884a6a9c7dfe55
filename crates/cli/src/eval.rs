//! `scantling eval`: evaluates an expression against a file, or against a field of a CRD.

mod complete;

mod repl;
mod show;
mod target;

use crate::args;
use crate::problem::{ExitStatus, Problem};
use crate::render;
use scantling_cel::env::Env;
use scantling_cel::estimate::estimate;
use scantling_cel::kubernetes::for_stored_expressions;
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::val::Arena;
use scantling_value::Value;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use target::EvalTarget;

/// Evaluates an expression, or starts a session.
pub(crate) fn run(flags: &args::Eval) -> Result<ExitStatus, Problem> {
    let mut session = Session::new(flags)?;
    if flags.repl {
        repl::run(&mut session)?;
        return Ok(ExitStatus::Success);
    }
    let Some(expression) = &flags.expression else {
        return Err(Problem::plain("no expression is given"));
    };
    match (session.answer(expression), flags.output) {
        (Ok(answer), args::EvalFormat::Text) => render::write(answer.to_text())?,
        (Ok(answer), form) => write(&answer, form)?,
        (Err(why), args::EvalFormat::Text) => {
            Problem::plain(why).print();
            return Ok(ExitStatus::Findings);
        }
        (Err(error), form) => {
            write(&Failure { error }, form)?;
            return Ok(ExitStatus::Findings);
        }
    }
    Ok(ExitStatus::Success)
}

/// Prints a result as JSON or YAML.
fn write(result: &impl Serialize, form: args::EvalFormat) -> Result<(), Problem> {
    render::write(match form {
        args::EvalFormat::Yaml => render::yaml_of(result)?,
        args::EvalFormat::Json | args::EvalFormat::Text => render::json_text(result)? + "\n",
    })
}

/// The reason why an expression has no result.
#[derive(Debug, Serialize)]
struct Failure {
    error: String,
}

/// The context of expressions.
struct Session {
    env: Env,
    target: EvalTarget,
    value: Option<Arc<Value>>,
    old: Option<Arc<Value>>,
}

/// The result of an expression.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Evaluation {
    /// The value; `None` without an input.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(rename = "type")]
    ty: String,
    estimated_cost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
}

impl Evaluation {
    /// The estimated cost as text.
    fn estimate(&self) -> String {
        match self.estimated_cost {
            u64::MAX => "unbounded".to_owned(),
            cost => cost.to_string(),
        }
    }

    fn to_text(&self) -> String {
        let mut out = String::new();
        if let Some(value) = &self.value {
            out.push_str(&format!("value: {value}\n"));
        }
        out.push_str(&format!(
            "type: {}\nestimated cost: {}\n",
            self.ty,
            self.estimate()
        ));
        if let Some(cost) = self.cost {
            out.push_str(&format!("cost: {cost}\n"));
        }
        out
    }
}

impl Session {
    fn new(flags: &args::Eval) -> Result<Self, Problem> {
        let target = EvalTarget::find(flags)?;
        // The environment of stored rules is the larger one: expressions of both kinds can be tried.
        let scope = Arc::new(for_stored_expressions(flags.target.kubernetes_version));
        let env = Env::new(scope)
            .with_variable("self", target.shape.ty("self"))
            .with_variable("oldSelf", target.shape.ty("self"));
        let read = |file: &Option<PathBuf>| file.as_deref().map(|f| target.value_in(f)).transpose();
        let (value, old) = (read(&flags.file)?.map(Arc::new), read(&flags.old)?.map(Arc::new));
        Ok(Session {
            env,
            target,
            value,
            old,
        })
    }

    /// Loads another file as `self`.
    fn load(&mut self, file: &Path) -> Result<(), Problem> {
        self.value = Some(Arc::new(self.target.value_in(file)?));
        Ok(())
    }

    /// Returns the type and the estimated cost of an expression, and its value if there is an input.
    fn answer(&self, expression: &str) -> Result<Evaluation, String> {
        let shape = &self.target.shape;
        let checked = self
            .env
            .compile(expression)
            .map_err(|issues| issues.to_string())?;
        let mut answer = Evaluation {
            value: None,
            ty: checked.result_type().to_string(),
            estimated_cost: estimate(&checked, Some(shape)).max,
            cost: None,
        };
        let mut inputs = [Input::Absent, Input::Absent];
        let known = [("self", &self.value), ("oldSelf", &self.old)];
        for (input, (name, value)) in inputs.iter_mut().zip(known) {
            match value {
                Some(value) => *input = Input::Json(value, shape),
                // Without a value, only the type and the estimate can be told.
                None if checked.mentions(name) => return Ok(answer),
                None => {}
            }
        }
        let program = Program::compile(&self.env, &checked).map_err(|e| e.to_string())?;
        let arena = Arena::default();
        // No budget: the expression is the user's own, on the user's own machine.
        let outcome = program.eval(&arena, &inputs, Limits::NONE);
        let value = outcome.result.map_err(|e| e.to_string())?;
        answer.value = Some(show::show(value, &arena));
        answer.cost = Some(outcome.cost);
        Ok(answer)
    }
}
