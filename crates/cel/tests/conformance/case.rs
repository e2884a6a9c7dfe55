//! One test of the suite.

use crate::textproto::{Message, Value};
use scantling_cel::check::{CheckedExpr, check};
use scantling_cel::env::{BaseEnv, Env, EnvOptions, Semantics};
use scantling_cel::library::{bindings, comprehensions, encoders, math, net, optional, standard, strings};
use scantling_cel::overload::{Library, Overload, Ty};
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::run::Run;
use scantling_cel::syntax::{Macros, ParseOptions, parse};
use scantling_cel::types::CelType;
use scantling_cel::val::{Arena, Duration, Owned, Timestamp, Val, equal};
use std::sync::Arc;

/// A test of the suite.
pub(crate) struct Case {
    expression: String,
    container: String,
    variables: Vec<(String, CelType)>,
    bindings: Vec<(String, Binding)>,
    checked: bool,
    check_only: bool,
    macros: bool,
    network: bool,
    functions: Option<&'static Library>,
    expected: Expected,
}

enum Binding {
    Value(Owned),
    Error,
}

enum Expected {
    Value(Owned),
    Error,
    Type(CelType, Option<Owned>),
    /// The harness does not understand the test.
    Unreadable(String),
}

impl Case {
    pub(crate) fn read(file: &str, test: &Message) -> Case {
        let variables = test.messages("type_env").filter_map(|decl| {
            let ty = decl.message("ident")?.message("type")?;
            Some((decl.text("name"), read_type(ty)))
        });
        let bindings = test.messages("bindings").map(|entry| {
            let value = entry.message("value").and_then(|v| v.message("value"));
            let binding = value.and_then(read_value).map_or(Binding::Error, Binding::Value);
            (entry.text("key"), binding)
        });
        let expected = if let Some(value) = test.message("value") {
            read_value(value).map_or_else(|| Expected::Unreadable(format!("{value:?}")), Expected::Value)
        } else if let Some(typed) = test.message("typed_result") {
            let ty = typed.message("deduced_type").map_or(CelType::Dyn, read_type);
            Expected::Type(ty, typed.message("result").and_then(read_value))
        } else if test.get("eval_error").is_some() {
            Expected::Error
        } else {
            Expected::Value(Owned::Bool(true))
        };
        Case {
            expression: test.text("expr"),
            container: test.text("container"),
            variables: variables.collect(),
            bindings: bindings.collect(),
            checked: !test.flag("disable_check"),
            check_only: test.flag("check_only"),
            macros: !test.flag("disable_macros"),
            network: file == "network_ext",
            functions: read_functions(test),
            expected,
        }
    }

    fn env(&self) -> Env {
        let macros = Macros::STANDARD
            | Macros::EXISTS_ONE
            | Macros::TWO_VARIABLES
            | Macros::OPT_MAP
            | Macros::OPT_FLAT_MAP
            | Macros::BIND
            | Macros::BLOCK
            | Macros::MATH;
        let mut scope = BaseEnv::new(EnvOptions {
            parse: ParseOptions {
                macros: if self.macros { macros } else { Macros::NONE },
                optional_syntax: true,
                escaped_identifiers: true,
            },
            semantics: Semantics::Specification,
            ..EnvOptions::default()
        })
        .within(&self.container);
        let libraries = standard::STANDARD.into_iter().chain([
            &standard::CROSS_TYPE_ORDER,
            &optional::OPTIONALS,
            &comprehensions::COMPREHENSIONS,
            &bindings::BLOCK,
            &encoders::ENCODERS,
            &math::EXTREMES,
            &math::ROUNDING_AND_BITS,
            &math::ROOTS,
            &strings::BASE,
            &strings::REVERSE,
            &strings::NEWEST,
        ]);
        for library in libraries {
            scope = scope.with(library);
        }
        if self.network {
            for library in [&net::IPS, &net::CIDRS, &net::IS_MASK] {
                scope = scope.with(library);
            }
        }
        if let Some(library) = self.functions {
            scope = scope.with(library);
        }
        let mut env = Env::new(Arc::new(scope));
        for (name, ty) in &self.variables {
            env = env.with_variable(name.as_str(), ty.clone());
        }
        for (name, _) in &self.bindings {
            if !self.variables.iter().any(|(n, _)| n == name) {
                env = env.with_variable(name.as_str(), CelType::Dyn);
            }
        }
        env
    }

    pub(crate) fn run(&self) -> Result<(), String> {
        let env = self.env();
        let ast = match parse(&self.expression, &env.base().options().parse) {
            Ok(ast) => ast,
            Err(_) if matches!(self.expected, Expected::Error) => return Ok(()),
            Err(issues) => return Err(issues.to_string()),
        };
        let checked = if self.checked {
            match check(&env, ast) {
                Ok(checked) => checked,
                Err(_) if matches!(self.expected, Expected::Error) => return Ok(()),
                Err(issues) => return Err(issues.to_string()),
            }
        } else {
            CheckedExpr::unchecked(&env, ast)
        };
        let expected = match &self.expected {
            Expected::Type(ty, value) => {
                let deduced = checked.result_type();
                if deduced != ty {
                    return Err(format!("deduced {deduced}, expected {ty}"));
                }
                match value {
                    Some(value) if !self.check_only => Some(value),
                    _ => return Ok(()),
                }
            }
            Expected::Value(value) => Some(value),
            Expected::Error => None,
            Expected::Unreadable(what) => return Err(format!("not understood: {what}")),
        };
        let arena = Arena::new();
        let program = match Program::compile(&env, &checked) {
            Ok(program) => program,
            Err(_) if expected.is_none() => return Ok(()),
            Err(e) => return Err(format!("no program: {e}")),
        };
        let inputs: Vec<Input<'_>> = env
            .variables()
            .iter()
            .map(|(name, _)| self.input(&arena, name))
            .collect();
        let result = program.eval(&arena, &inputs, Limits::NONE).result;
        match (result, expected) {
            (Err(_), None) => Ok(()),
            (Ok(v), None) => Err(format!("gave {v:?}, expected an error")),
            (Err(e), Some(expected)) => Err(format!("failed: {e}; expected {expected:?}")),
            (Ok(v), Some(expected)) => {
                let wanted = expected.val(&arena).map_err(|e| e.to_string())?;
                if same(&arena, v, wanted) {
                    Ok(())
                } else {
                    Err(format!("gave {v:?}, expected {expected:?}"))
                }
            }
        }
    }

    fn input<'a>(&'a self, arena: &'a Arena, name: &str) -> Input<'a> {
        match self.bindings.iter().find(|(n, _)| n == name) {
            Some((_, Binding::Value(value))) => value.val(arena).map_or(Input::Absent, Input::Val),
            _ => Input::Absent,
        }
    }
}

/// Returns whether two values are identical. Stricter than equality: types count, and NaN equals itself.
fn same<'a>(arena: &'a Arena, a: Val<'a>, b: Val<'a>) -> bool {
    if let (Some(a), Some(b)) = (a.as_list(), b.as_list()) {
        return a.len() == b.len()
            && a.iter(arena).zip(b.iter(arena)).all(|(a, b)| match (a, b) {
                (Ok(a), Ok(b)) => same(arena, a, b),
                _ => false,
            });
    }
    if let (Some(a), Some(b)) = (a.as_map(), b.as_map()) {
        return a.len() == b.len()
            && a.entries(arena).all(|(k, v)| match (v, b.get(arena, k)) {
                (Ok(v), Some(Ok(other))) => same(arena, v, other),
                _ => false,
            });
    }
    match (a, b) {
        (Val::Double(a), Val::Double(b)) if a.is_nan() => b.is_nan(),
        (a, b) => a.type_name() == b.type_name() && equal(arena, a, b) == Ok(true),
    }
}

fn read_value(message: &Message) -> Option<Owned> {
    let (name, value) = message.0.first()?;
    Some(match (name.as_str(), value) {
        ("null_value", _) => Owned::Null,
        ("bool_value", Value::Word(w)) => Owned::Bool(w == "true"),
        ("int64_value", Value::Word(w)) => Owned::Int(read_int(w)?),
        ("uint64_value", Value::Word(w)) => Owned::Uint(w.parse().ok()?),
        ("double_value", Value::Word(w)) => {
            Owned::Double(w.to_lowercase().replace("infinity", "inf").parse().ok()?)
        }
        ("string_value", Value::Bytes(b)) => Owned::Str(String::from_utf8(b.clone()).ok()?.into()),
        ("bytes_value", Value::Bytes(b)) => Owned::Bytes(b.as_slice().into()),
        ("type_value", Value::Bytes(b)) => Owned::Type(String::from_utf8(b.clone()).ok()?.into()),
        ("list_value", Value::Message(list)) => {
            Owned::List(list.messages("values").map(read_value).collect::<Option<_>>()?)
        }
        ("map_value", Value::Message(map)) => Owned::map(
            map.messages("entries")
                .map(|e| Some((read_value(e.message("key")?)?, read_value(e.message("value")?)?)))
                .collect::<Option<_>>()?,
        ),
        ("object_value", Value::Message(object)) => read_time(object)?,
        _ => return None,
    })
}

fn read_int(word: &str) -> Option<i64> {
    match word.strip_prefix("0x") {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Reads a duration or timestamp, the only messages that are CEL values.
fn read_time(object: &Message) -> Option<Owned> {
    let (name, value) = object.0.first()?;
    let fields = value.as_message()?;
    let number = |name| fields.get(name).map_or(Some(0), |v| read_int(v.as_word()));
    let (seconds, nanos) = (number("seconds")?, number("nanos")?);
    match name.as_str() {
        "[type.googleapis.com/google.protobuf.Duration]" => Some(Owned::Duration(Duration {
            nanos: seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?,
        })),
        "[type.googleapis.com/google.protobuf.Timestamp]" => {
            Timestamp::new(seconds, u32::try_from(nanos).ok()?)
                .ok()
                .map(Owned::Timestamp)
        }
        _ => None,
    }
}

/// Declares the functions of a test, which have types but no implementation. The rows are leaked.
fn read_functions(test: &Message) -> Option<&'static Library> {
    let mut rows = Vec::new();
    for decl in test.messages("type_env") {
        let name: &'static str = decl.text("name").leak();
        for overload in decl.messages("function").flat_map(|f| f.messages("overloads")) {
            let params: Vec<Ty> = overload
                .messages("params")
                .map(|ty| describe(&read_type(ty)))
                .collect();
            let result = overload
                .message("result_type")
                .map_or(Ty::Dyn, |ty| describe(&read_type(ty)));
            let id = overload.text("overload_id").leak();
            rows.push(Overload::global(id, name, params.leak(), result, Run::Special));
        }
    }
    (!rows.is_empty()).then(|| {
        let library: &'static Library = Box::leak(Box::new(Library {
            name: "declared by the test",
            overloads: rows.leak(),
            types: &[],
        }));
        library
    })
}

fn describe(ty: &CelType) -> Ty {
    let leak = |ty: &CelType| -> &'static Ty { Box::leak(Box::new(describe(ty))) };
    match ty {
        CelType::Bool => Ty::Bool,
        CelType::Int => Ty::Int,
        CelType::Uint => Ty::Uint,
        CelType::Double => Ty::Double,
        CelType::String => Ty::String,
        CelType::Bytes => Ty::Bytes,
        CelType::List(element) => Ty::List(leak(element)),
        CelType::Map(entry) => Ty::Map(leak(&entry.0), leak(&entry.1)),
        CelType::Param(name) => Ty::Param(name.to_string().leak()),
        CelType::Opaque(name, params) => {
            let params: Vec<Ty> = params.iter().map(describe).collect();
            Ty::Parametric(name.to_string().leak(), params.leak())
        }
        _ => Ty::Dyn,
    }
}

fn read_type(message: &Message) -> CelType {
    let Some((name, value)) = message.0.first() else {
        return CelType::Dyn;
    };
    let inner = |field: &str| {
        value
            .as_message()
            .and_then(|m| m.message(field))
            .map_or(CelType::Dyn, read_type)
    };
    match name.as_str() {
        "null" => CelType::Null,
        "primitive" => primitive(value.as_word()),
        "wrapper" => CelType::Wrapper(Arc::new(primitive(value.as_word()))),
        "well_known" => match value.as_word() {
            "TIMESTAMP" => CelType::Timestamp,
            "DURATION" => CelType::Duration,
            _ => CelType::Dyn,
        },
        "list_type" => CelType::list(inner("elem_type")),
        "map_type" => CelType::map(inner("key_type"), inner("value_type")),
        "type" => match value.as_message() {
            Some(of) if !of.0.is_empty() => CelType::of_type(read_type(of)),
            _ => CelType::Type(None),
        },
        "type_param" => match value {
            Value::Bytes(b) => CelType::Param(String::from_utf8_lossy(b).as_ref().into()),
            _ => CelType::Dyn,
        },
        "abstract_type" => {
            let Some(of) = value.as_message() else {
                return CelType::Dyn;
            };
            let params: Vec<CelType> = of.messages("parameter_types").map(read_type).collect();
            CelType::Opaque(of.text("name").into(), params.into())
        }
        _ => CelType::Dyn,
    }
}

fn primitive(word: &str) -> CelType {
    match word {
        "BOOL" => CelType::Bool,
        "INT64" => CelType::Int,
        "UINT64" => CelType::Uint,
        "DOUBLE" => CelType::Double,
        "STRING" => CelType::String,
        "BYTES" => CelType::Bytes,
        _ => CelType::Dyn,
    }
}
