//! Kinds as data, their codecs and their rules: custom resources, CRDs and built-in kinds.

pub(crate) mod builtin;
pub(crate) mod codec;
pub(crate) mod custom;
pub(crate) mod definitions;
pub(crate) mod kind;
pub(crate) mod rules;
