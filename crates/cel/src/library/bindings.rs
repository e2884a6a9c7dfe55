//! What the macros `cel.bind` and `cel.block` need. `cel.bind` is a comprehension that never iterates; a block is a
//! call that the program treats itself.

use crate::overload::{Library, Overload, Ty};
use crate::run::Run;

const T: Ty = Ty::Param("T");

/// `cel.@block`: values that are computed once, and an expression over them.
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
