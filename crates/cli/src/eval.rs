//! `scantling eval`: an expression against a file, or against a place in a definition.

mod repl;
mod show;

use crate::args;
use crate::catalog::{Catalog, OtherObjects};
use crate::files;
use crate::input;
use crate::problem::{Problem, Verdict};
use crate::render;
use scantling_cel::env::Env;
use scantling_cel::estimate::estimate;
use scantling_cel::kubernetes::for_stored_expressions;
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::shape::{Kind, Shape};
use scantling_cel::val::Arena;
use scantling_schema::document::Schema;
use scantling_schema::rules::{Shapes, View};
use scantling_schema::structural::Interner;
use scantling_value::Value;
use serde::Serialize;
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
    match session.answer(expression) {
        Ok(answer) => {
            let text = match flags.output {
                args::EvalForm::Text => answer.text(),
                args::EvalForm::Json => serde_json::to_string_pretty(&answer)
                    .map(|t| t + "\n")
                    .map_err(|e| Problem::new("cannot write the answer", e))?,
            };
            render::write(&text)?;
            Ok(Verdict::Well)
        }
        Err(why) => {
            Problem::plain(why).print();
            Ok(Verdict::Findings)
        }
    }
}

/// What an expression sees.
struct Session {
    env: Env,
    shape: Arc<Shape>,
    value: Option<Value>,
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
    fn text(&self) -> String {
        let mut out = String::new();
        if let Some(value) = &self.value {
            out.push_str(&format!("value: {value}\n"));
        }
        out.push_str(&format!(
            "type: {}\nestimated cost: {}\n",
            self.ty, self.estimated_cost
        ));
        if let Some(cost) = self.cost {
            out.push_str(&format!("cost: {cost}\n"));
        }
        out
    }
}

impl Session {
    fn new(flags: &args::Eval) -> Result<Self, Problem> {
        let shape = match &flags.crd {
            Some(_) => place(flags)?,
            None => Arc::new(Shape {
                kind: Kind::Dyn,
                nullable: true,
                min_serialized_size: 1,
                max_elements: 0,
            }),
        };
        let scope = Arc::new(for_stored_expressions(flags.target.kubernetes_version));
        let mut session = Session {
            env: Env::new(scope).with_variable("self", shape.ty("self")),
            shape,
            value: None,
        };
        if let Some(file) = &flags.file {
            session.value = Some(load(file)?);
        }
        if let (Some(value), Some(_)) = (&session.value, &flags.crd) {
            let found = steps(&flags.at).try_fold(value, |v, step| match step.parse::<usize>() {
                Ok(index) if v.as_array().is_some() => v.as_array()?.get(index),
                _ => v.get(step),
            });
            let found =
                found.ok_or_else(|| Problem::plain(format!("the file has nothing at {}", flags.at)))?;
            session.value = Some(found.clone());
        }
        Ok(session)
    }

    /// The type and the estimated cost of an expression, and what it gives where there is a value to look at.
    fn answer(&self, expression: &str) -> Result<Answer, String> {
        let checked = self
            .env
            .compile(expression)
            .map_err(|issues| issues.to_string())?;
        let mut answer = Answer {
            value: None,
            ty: checked.result_type().to_string(),
            estimated_cost: estimate(&checked, Some(&self.shape)).max,
            cost: None,
        };
        let input = match &self.value {
            Some(value) => Input::Json(value, &self.shape),
            None if checked.mentions("self") => return Ok(answer),
            None => Input::Absent,
        };
        let program = Program::compile(&self.env, &checked).map_err(|e| e.to_string())?;
        let arena = Arena::default();
        let outcome = program.eval(&arena, &[input], Limits::NONE);
        let value = outcome.result.map_err(|e| e.to_string())?;
        answer.value = Some(show::show(value, &arena));
        answer.cost = Some(outcome.cost);
        Ok(answer)
    }
}

/// The first document of a file.
fn load(file: &std::path::PathBuf) -> Result<Value, Problem> {
    let (sources, problems) = files::find([file]);
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem);
    }
    let source = sources
        .first()
        .ok_or_else(|| Problem::plain("there is no file"))?;
    let bytes = source.read()?;
    let (documents, problems) = input::documents(&source.name, &bytes);
    match (documents.first(), problems.into_iter().next()) {
        (Some(document), _) => document.value(&source.name),
        (None, Some(problem)) => Err(problem),
        (None, None) => Err(Problem::plain(format!("{} is empty", source.name))),
    }
}

fn steps(at: &str) -> impl Iterator<Item = &str> {
    at.split(['.', '[', ']']).filter(|step| !step.is_empty())
}

/// What expressions see at a place of a definition's schema.
fn place(flags: &args::Eval) -> Result<Arc<Shape>, Problem> {
    let (sources, problems) = files::find(&flags.crd);
    let mut catalog = Catalog::new(flags.target);
    let more = catalog.load(&sources, OtherObjects::Unexpected);
    if let Some(problem) = problems.into_iter().chain(more).next() {
        return Err(problem);
    }
    let missing = |what: String| Problem::plain(what);
    let entry = catalog
        .entries()
        .first()
        .ok_or_else(|| missing("there is no definition".to_owned()))?;
    let spec = &entry.definition.spec;
    let version = match &flags.api_version {
        Some(name) => spec.version(name),
        None => spec.storage_version(),
    };
    let version = version.ok_or_else(|| missing("the definition has no such version".to_owned()))?;
    let document = spec
        .schema_of(version)
        .ok_or_else(|| missing("the version has no schema".to_owned()))?;
    let structural = Schema::new(document)
        .structural(&mut Interner::new())
        .map_err(|e| Problem::new("the schema is not structural", e))?;
    let mut shapes = Shapes::new();
    let (mut schema, mut view) = (structural.clone(), View::of_resource(&structural, &mut shapes));
    for step in steps(&flags.at) {
        let (next, below) = if let Some(property) = schema.property(step) {
            (property.clone(), view.property(step, property, &mut shapes))
        } else if let Some(entry) = schema.items.as_ref().or(schema.additional_schema()) {
            (entry.clone(), view.entry())
        } else {
            return Err(missing(format!(
                "the schema has nothing at {}: there is no `{step}`",
                flags.at
            )));
        };
        (schema, view) = (next, below);
    }
    let shape = view.shape().cloned();
    shape.ok_or_else(|| missing(format!("expressions see nothing at {}", flags.at)))
}
