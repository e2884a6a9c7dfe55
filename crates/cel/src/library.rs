//! Function libraries: tables of overloads.

pub mod authz;
pub mod standard;
