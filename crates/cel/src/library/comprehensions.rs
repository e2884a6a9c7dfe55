//! The functions behind the two-variable comprehensions: `transformMap` and `transformMapEntry` build a map.

use crate::overload::{Library, Ty, overloads};
use crate::val::{Arena, EvalError, Map, Res, Val};

const K: Ty = Ty::Param("K");
const V: Ty = Ty::Param("V");
const MAP: Ty = Ty::Map(&K, &V);

/// `cel.@mapInsert`
pub static COMPREHENSIONS: Library = Library {
    name: "comprehensions",
    overloads: overloads! {
        "@mapInsert_map_map": global "cel.@mapInsert"(MAP, MAP) -> MAP => Binary(insert_all);
        "@mapInsert_map_key_value": global "cel.@mapInsert"(MAP, K, V) -> MAP => Ternary(insert);
    },
    types: &[],
};

fn insert<'a>(arena: &'a Arena, map: Val<'a>, key: Val<'a>, value: Val<'a>) -> Res<'a> {
    // Copies the map, because values are immutable. The interpreter collects the entries of the macros itself.
    let mut entries = entries(arena, map.map()?)?;
    add(&mut entries, arena, map.map()?, key, value)?;
    arena.map(entries)
}

fn insert_all<'a>(arena: &'a Arena, map: Val<'a>, other: Val<'a>) -> Res<'a> {
    let mut all = entries(arena, map.map()?)?;
    for (key, value) in other.map()?.entries(arena) {
        add(&mut all, arena, map.map()?, key, value?)?;
    }
    arena.map(all)
}

type Entries<'a> = Vec<(Val<'a>, Val<'a>)>;

fn entries<'a>(arena: &'a Arena, map: Map<'a>) -> Result<Entries<'a>, EvalError> {
    map.entries(arena).map(|(key, value)| Ok((key, value?))).collect()
}

fn add<'a>(
    entries: &mut Entries<'a>,
    arena: &'a Arena,
    map: Map<'a>,
    key: Val<'a>,
    value: Val<'a>,
) -> Result<(), EvalError> {
    // By equality of numbers, so that `1` and `1u` collide.
    if map.get(arena, key).is_some() {
        return Err(EvalError::message(format!(
            "insert failed: key {key} already exists"
        )));
    }
    entries.push((key, value));
    Ok(())
}
