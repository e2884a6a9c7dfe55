//! The REST verbs: decoding bodies, reads, lists, watches, writes, patches, deletions and their options.

pub(crate) mod actions;
pub(crate) mod admission;
pub(crate) mod body;
pub(crate) mod connect;
pub(crate) mod conversion;
pub(crate) mod delete;
mod entries;
pub(crate) mod entry_cache;
pub(crate) mod event_encoding_cache;
pub(crate) mod listing;
pub(crate) mod managed_fields;
pub(crate) mod options;
pub(crate) mod page;
pub(crate) mod patch;
pub(crate) mod pods;
pub(crate) mod read;
pub(crate) mod related_objects_cache;
pub(crate) mod render;
pub(crate) mod review;
pub(crate) mod scale;
pub(crate) mod selector;
pub(crate) mod services;
pub(crate) mod tokens;
pub(crate) mod view;
pub(crate) mod watch;
pub(crate) mod write;
