//! `scantling eval`: an expression against a file, or against a place in a definition.

mod complete;
mod place;
mod repl;
mod show;

use crate::args;
use crate::problem::{Problem, Verdict};
use crate::render;
use place::Place;
use scantling_cel::env::Env;
use scantling_cel::estimate::estimate;
use scantling_cel::kubernetes::for_stored_expressions;
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::val::Arena;
use scantling_value::Value;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Evaluates an expression, or begins a session.
pub(crate) fn run(flags: &args::Eval) -> Result<Verdict, Problem> {
    let mut session = Session::new(flags)?;
    if flags.repl {
        repl::run(&mut session)?;
        return Ok(Verdict::Well);
    }
    let Some(expression) = &flags.expression else {
        return Err(Problem::plain("no expression is given"));
    };
    match (session.answer(expression), flags.output) {
        (Ok(answer), args::EvalForm::Text) => render::write(answer.text())?,
        (Ok(answer), form) => write(&answer, form)?,
        (Err(why), args::EvalForm::Text) => {
            Problem::plain(why).print();
            return Ok(Verdict::Findings);
        }
        (Err(error), form) => {
            write(&Failure { error }, form)?;
            return Ok(Verdict::Findings);
        }
    }
    Ok(Verdict::Well)
}

/// Writes a result for programs.
fn write(result: &impl Serialize, form: args::EvalForm) -> Result<(), Problem> {
    render::write(match form {
        args::EvalForm::Yaml => render::yaml_of(result)?,
        args::EvalForm::Json | args::EvalForm::Text => render::json_text(result)? + "\n",
    })
}

/// Why nothing came of an expression.
#[derive(Debug, Serialize)]
struct Failure {
    error: String,
}

/// What an expression sees.
struct Session {
    env: Env,
    place: Place,
    value: Option<Arc<Value>>,
    old: Option<Arc<Value>>,
}

/// What came of an expression.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    /// The value; none where there was nothing to look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(rename = "type")]
    ty: String,
    estimated_cost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
}

impl Answer {
    /// The estimated cost in words.
    fn estimate(&self) -> String {
        match self.estimated_cost {
            u64::MAX => "unbounded".to_owned(),
            cost => cost.to_string(),
        }
    }

    fn text(&self) -> String {
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
        let place = Place::find(flags)?;
        let scope = Arc::new(for_stored_expressions(flags.target.kubernetes_version));
        let env = Env::new(scope)
            .with_variable("self", place.shape.ty("self"))
            .with_variable("oldSelf", place.shape.ty("self"));
        let read = |file: &Option<PathBuf>| file.as_deref().map(|f| place.value_in(f)).transpose();
        let (value, old) = (read(&flags.file)?.map(Arc::new), read(&flags.old)?.map(Arc::new));
        Ok(Session {
            env,
            place,
            value,
            old,
        })
    }

    /// Takes another file as `self`.
    fn load(&mut self, file: &Path) -> Result<(), Problem> {
        self.value = Some(Arc::new(self.place.value_in(file)?));
        Ok(())
    }

    /// The type and the estimated cost of an expression, and what it gives where there are values to look at.
    fn answer(&self, expression: &str) -> Result<Answer, String> {
        let shape = &self.place.shape;
        let checked = self
            .env
            .compile(expression)
            .map_err(|issues| issues.to_string())?;
        let mut answer = Answer {
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
                None if checked.mentions(name) => return Ok(answer),
                None => {}
            }
        }
        let program = Program::compile(&self.env, &checked).map_err(|e| e.to_string())?;
        let arena = Arena::default();
        let outcome = program.eval(&arena, &inputs, Limits::NONE);
        let value = outcome.result.map_err(|e| e.to_string())?;
        answer.value = Some(show::show(value, &arena));
        answer.cost = Some(outcome.cost);
        Ok(answer)
    }
}
