//! The functions behind the macros `cel.bind` and `cel.block`. `cel.bind` expands to a comprehension that
//! never iterates; a block is a call that the program implements.

use crate::overload::{Library, Ty, overloads};

const T: Ty = Ty::Param("T");

/// `cel.@block`: an expression over values that are computed once.
pub static BLOCK: Library = Library {
    name: "bindings",
    overloads: overloads! {
        "cel_block_list": global "cel.@block"(List(&Dyn), T) -> T => Special;
    },
    types: &[],
};
