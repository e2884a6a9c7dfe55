//! The Common Expression Language: syntax, types, checker, cost, programs and function libraries.
//!
//! An expression passes through these stages:
//! 1. [`syntax`] parses text to an [`ast::Ast`].
//! 2. [`check`] resolves names and overloads against an [`mod@env`] and infers types.
//! 3. [`estimate`] bounds the cost.
//! 4. [`program`] compiles the checked expression and evaluates it over borrowed values.
//!
//! The function libraries are in [`library`], and [`kubernetes`] selects those of a Kubernetes version. One row of
//! [`overload::Overload`] holds all facts about a function: signature, implementation, estimated and actual cost.
//!
//! ```
//! use scantling_cel::env::Env;
//! use scantling_cel::kubernetes::{KubernetesVersion, for_new_expressions};
//! use scantling_cel::program::{Input, Limits, Program};
//! use scantling_cel::types::CelType;
//! use scantling_cel::val::{Arena, Val};
//! use std::sync::Arc;
//!
//! let scope = Arc::new(for_new_expressions(KubernetesVersion::LATEST));
//! let env = Env::new(scope).with_variable("name", CelType::String);
//! let checked = env.compile("name.startsWith('web-') && name.size() < 10")?;
//! assert_eq!(checked.result_type(), &CelType::Bool);
//!
//! let program = Program::compile(&env, &checked)?;
//! let arena = Arena::default();
//! let outcome = program.eval(&arena, &[Input::Val(Val::Str("web-1"))], Limits::NONE);
//! assert_eq!(outcome.result?.to_string(), "true");
//! assert_eq!(outcome.cost, 5);
//!
//! let issues = env.compile("name + 1").unwrap_err();
//! assert_eq!(
//!     issues.to_string(),
//!     "ERROR: <input>:1:6: found no matching overload for '_+_' applied to '(string, int)'\n | name + 1\n | .....^",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-cel is pure"
)]

pub mod ast;
pub mod check;
pub mod env;
pub mod estimate;
pub mod issue;
pub mod kubernetes;
pub mod library;
mod message;
pub mod overload;
pub mod program;
pub mod run;
pub mod shape;
mod stack;
pub mod syntax;
pub mod types;
pub mod val;
pub mod validate;
