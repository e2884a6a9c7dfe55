//! The functions behind the macros `cel.bind` and `cel.block`. `cel.bind` expands to a comprehension that
//! never iterates; a block is a call that the program implements.

use crate::overload::{Library, Overload, Ty};
use crate::run::Run;

const T: Ty = Ty::Param("T");

/// `cel.@block`: an expression over values that are computed once.
pub static BLOCK: Library = Library {
    name: "bindings",
    overloads: &[Overload::global(
        "cel_block_list",
        "cel.@block",
        &[Ty::List(&Ty::Dyn), T],
        T,
        Run::Special,
    )],
    types: &[],
};
