//! Formats values in CEL syntax.

use scantling_cel::val::{Arena, Val};
use scantling_value::Value;

/// Formats a value.
pub(super) fn show<'a>(value: Val<'a>, arena: &'a Arena) -> String {
    let entry = |v: Result<Val<'a>, _>| match v {
        Ok(v) => show(v, arena),
        Err(e) => {
            let e: scantling_cel::val::EvalError = e;
            format!("<{e}>")
        }
    };
    match value {
        Val::Null => "null".to_owned(),
        Val::Str(s) => Value::from(s).to_json(),
        Val::Uint(u) => format!("{u}u"),
        Val::Optional(Some(v)) => format!("optional.of({})", show(*v, arena)),
        Val::Optional(None) => "optional.none()".to_owned(),
        other => {
            if let Some(list) = other.as_list() {
                let items: Vec<String> = list.iter(arena).map(entry).collect();
                format!("[{}]", items.join(", "))
            } else if let Some(map) = other.as_map() {
                let items: Vec<String> = map
                    .entries(arena)
                    .map(|(k, v)| format!("{}: {}", show(k, arena), entry(v)))
                    .collect();
                format!("{{{}}}", items.join(", "))
            } else {
                other.to_string()
            }
        }
    }
}
