//! The Common Expression Language: syntax, types, checker, cost, programs and function libraries.
//!
//! The pipeline is named in the modules: `syntax` turns text into an [`ast::Ast`]; `check` resolves names and
//! overloads against an `env` and types every node; `estimate` bounds the cost of the checked expression;
//! `program` compiles it into something that runs over borrowed values, counting its cost as it goes.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-cel is pure"
)]

pub mod ast;
pub mod check;
pub mod data;
pub mod env;
pub mod estimate;
pub mod issue;
pub mod kubernetes;
pub mod library;
pub mod overload;
pub mod program;
pub mod run;
pub mod shape;
pub mod syntax;
pub mod types;
pub mod val;
pub mod validate;
