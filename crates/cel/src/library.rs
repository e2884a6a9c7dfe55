//! Function libraries: tables of overloads.

pub mod standard;
