//! The notation of values in the recordings.

use scantling_cel::val::{Arena, Val};
use scantling_notation::{duration, timestamp};
use scantling_value::go;

/// Formats a value as the recordings do; unreadable values are `<error>`.
pub(crate) fn show<'a>(arena: &'a Arena, value: Val<'a>) -> String {
    let part = |v: Result<Val<'a>, _>| v.map_or_else(|_| "<error>".to_owned(), |v| show(arena, v));
    if let Some(list) = value.as_list() {
        let items: Vec<_> = list.iter(arena).map(part).collect();
        return format!("[{}]", items.join(", "));
    }
    if let Some(map) = value.as_map() {
        let entries = map.keys().map(|k| {
            let value = map.get(arena, k).map_or_else(|| "<error>".to_owned(), part);
            format!("{}: {value}", show(arena, k))
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort();
        return format!("{{{}}}", entries.join(", "));
    }
    match value {
        Val::Null => "null".to_owned(),
        Val::Bool(b) => b.to_string(),
        Val::Int(n) => n.to_string(),
        Val::Uint(n) => format!("{n}u"),
        Val::Double(n) => format!("{}d", go::float_v(n)),
        Val::Str(s) => go::quote(s),
        Val::Bytes(b) => b.iter().fold("b".to_owned(), |out, b| format!("{out}{b:02x}")),
        Val::Duration(d) => duration::format(d.nanos),
        Val::Timestamp(t) => timestamp::format(timestamp::Moment {
            seconds: t.seconds,
            nanos: t.nanos,
            offset: t.offset,
        }),
        Val::Optional(Some(v)) => format!("optional({})", show(arena, *v)),
        Val::Optional(None) => "none".to_owned(),
        other => format!("<{}>", other.type_name()),
    }
}
