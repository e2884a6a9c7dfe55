//! The table of attacks, by the resource they try to exhaust.

mod builtin;
mod compute;
mod connections;
mod decoding;
mod expansion;
mod fairness;
mod files;
mod growth;
mod identity;
mod output;
mod patches;
mod publishing;
mod reading;

use crate::plan::Attack;

/// All attacks.
pub(crate) fn all() -> Vec<Attack> {
    let tables = [
        patches::table(),
        compute::table(),
        decoding::table(),
        output::table(),
        growth::table(),
        expansion::table(),
        publishing::table(),
        reading::table(),
        connections::table(),
        identity::table(),
        fairness::table(),
        files::table(),
        builtin::table(),
    ];
    tables.into_iter().flatten().collect()
}
