//! Kinds as data, and the behaviour of custom, CRD and built-in kinds.

pub(crate) mod builtin;
pub(crate) mod custom;
pub(crate) mod definitions;
pub(crate) mod kind;
pub(crate) mod strategy;
