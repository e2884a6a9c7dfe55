//! Objects as text. What is stored is what clients see, but for the resource version, which the store alone knows: so
//! most objects are sent as they are stored, with their version written in between.
//!
//! Whether that holds for an entry is found out once, by bringing it into form and comparing; the entry's note
//! remembers it for the kind as it is now.

use crate::api::Call;
use crate::kind::Kind;
use crate::read::shown;
use crate::status::ApiResult;
use bytes::Bytes;
use scantling_store::{Entry, Event};
use scantling_value::Value;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};

/// The JSON of an object as a request's version shows it.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    json: Bytes,
    /// Where a resource version is missing, and which.
    version: Option<(usize, u64)>,
}

/// Tells the states of all kinds apart, for the notes on entries. Zero is nobody's.
pub(crate) fn next_serial() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
}

impl Text {
    /// The text of an entry.
    pub(crate) fn of(call: &Call<'_>, entry: &Entry) -> ApiResult<Text> {
        match Text::noted(call, entry) {
            Some(text) => Ok(text),
            None => Ok(Text::of_shown(call, entry, &shown(call, entry)?)),
        }
    }

    /// The text of an entry that is known to be shown as it is stored.
    pub(crate) fn noted(call: &Call<'_>, entry: &Entry) -> Option<Text> {
        is_in_form(call, entry).then(|| Text {
            json: without_line_feed(&entry.value),
            version: Some((
                (entry.note.get() & u64::from(u32::MAX)) as usize,
                entry.mod_revision,
            )),
        })
    }

    /// The text of an entry that has been brought into form.
    pub(crate) fn of_shown(call: &Call<'_>, entry: &Entry, object: &Value) -> Text {
        let mut json = Vec::with_capacity(entry.value.len() + 64);
        let place = write_unversioned(object, &mut json);
        let held = without_line_feed(&entry.value);
        let json = if held == json {
            if call.version.storage {
                note(call.kind, entry, place);
            }
            held
        } else {
            json.into()
        };
        Text {
            json,
            version: place.map(|at| (at, entry.mod_revision)),
        }
    }

    /// The text of an object that has its version.
    pub(crate) fn complete(object: &Value) -> Text {
        Text::raw(object.to_json().into())
    }

    /// A text that is complete as it is.
    pub(crate) fn raw(json: Bytes) -> Text {
        Text { json, version: None }
    }

    /// The same object under another version.
    pub(crate) fn at_revision(mut self, revision: u64) -> Text {
        if let Some((_, version)) = &mut self.version {
            *version = revision;
        }
        self
    }

    /// Appends the text.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let Some((before, after, revision)) = self.parts() else {
            out.extend_from_slice(&self.json);
            return;
        };
        out.extend_from_slice(before);
        if after.first() == Some(&b'}') && before.last() != Some(&b'{') {
            out.push(b',');
        }
        out.extend_from_slice(MEMBER);
        write_decimal(revision, out);
        out.push(b'"');
        if after.first() != Some(&b'}') {
            out.push(b',');
        }
        out.extend_from_slice(after);
    }

    /// How many bytes [`Text::write`] appends.
    pub(crate) fn len(&self) -> usize {
        let Some((before, after, revision)) = self.parts() else {
            return self.json.len();
        };
        let alone = after.first() == Some(&b'}') && before.last() == Some(&b'{');
        let digits = revision.checked_ilog10().unwrap_or(0) as usize + 1;
        self.json.len() + MEMBER.len() + digits + 1 + usize::from(!alone)
    }

    fn parts(&self) -> Option<(&[u8], &[u8], u64)> {
        let (at, revision) = self.version?;
        let (before, after) = self.json.split_at_checked(at)?;
        Some((before, after, revision))
    }
}

/// Values end with a line feed, as those of a kube-apiserver do: each finds unchanged what the other has written.
fn without_line_feed(value: &Bytes) -> Bytes {
    let length = value.strip_suffix(b"\n").map_or(value.len(), <[u8]>::len);
    value.slice(..length)
}

/// An object as it is stored: in the version that is stored, and without its resource version, which the store knows.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) value: Bytes,
    /// Where the resource version belongs.
    pub(crate) place: Option<usize>,
}

impl Stored {
    /// The stored form of an object of a request's version.
    pub(crate) fn of(call: &Call<'_>, object: &Value) -> Stored {
        Stored::whole(&in_stored_version(call, object))
    }

    /// The stored form of an object that is in the version that is stored.
    pub(crate) fn whole(object: &Value) -> Stored {
        let mut out = Vec::with_capacity(2048);
        let place = write_unversioned(object, &mut out);
        out.push(b'\n');
        // It stays for long.
        out.shrink_to_fit();
        Stored {
            value: out.into(),
            place,
        }
    }
}

/// An object of a request's version in the version that is stored.
pub(crate) fn in_stored_version<'o>(call: &Call<'_>, object: &'o Value) -> Cow<'o, Value> {
    if call.version.storage {
        Cow::Borrowed(object)
    } else {
        Cow::Owned(call.kind.strategy.store(call.kind, call.version, object.clone()))
    }
}

/// Notes that an entry just written is shown as it is stored, if reading it would change nothing.
pub(crate) fn note_written(call: &Call<'_>, event: &Event, object: &Value, place: Option<usize>) {
    if !call.version.storage || call.kind.built_in {
        return;
    }
    let read = call.kind.strategy.read(call.kind, call.version, object.clone());
    if read.is_ok_and(|r| r == *object)
        && let Some(entry) = event.after()
    {
        note(call.kind, entry, place);
    }
}

/// Whether an entry is known to be shown as it is stored.
pub(crate) fn is_in_form(call: &Call<'_>, entry: &Entry) -> bool {
    call.version.storage && entry.note.get() >> 32 == u64::from(call.kind.serial)
}

/// Notes that the storage version of a kind shows an entry as it is stored.
pub(crate) fn note(kind: &Kind, entry: &Entry, place: Option<usize>) {
    if let Some(place) = place.and_then(|p| u32::try_from(p).ok()) {
        entry.note.set(u64::from(kind.serial) << 32 | u64::from(place));
    }
}

const MEMBER: &[u8] = b"\"resourceVersion\":\"";

fn write_decimal(n: u64, out: &mut Vec<u8>) {
    use std::io::Write;
    // Writing to memory does not fail.
    let _ = write!(out, "{n}");
}

/// Writes an object without its resource version; returns where that belongs, if there are metadata to hold it.
fn write_unversioned(object: &Value, out: &mut Vec<u8>) -> Option<usize> {
    let Some(members) = object.as_object() else {
        object.write_json(out);
        return None;
    };
    let mut place = None;
    out.push(b'{');
    for (i, (key, value)) in members.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        Value::String(key.clone()).write_json(out);
        out.push(b':');
        match value {
            Value::Object(metadata) if key == "metadata" => {
                out.push(b'{');
                let mut first = true;
                for (key, value) in metadata.iter().filter(|(k, _)| *k != "resourceVersion") {
                    if !first {
                        out.push(b',');
                    }
                    first = false;
                    if place.is_none() && key.as_str() > "resourceVersion" {
                        place = Some(out.len());
                    }
                    Value::String(key.clone()).write_json(out);
                    out.push(b':');
                    value.write_json(out);
                }
                place = place.or(Some(out.len()));
                out.push(b'}');
            }
            value => value.write_json(out),
        }
    }
    out.push(b'}');
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_value::{Limits, json};

    #[test]
    fn the_version_stands_where_it_belongs() {
        let table = [
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"name":"a"},"spec":{"resourceVersion":"7"}}"#,
            r#"{"metadata":{"uid":"u"}}"#,
            r#"{"apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1","uid":"u"},"spec":{}}"#,
        ];
        for given in table {
            let mut object = json::decode(given.as_bytes(), Limits::SAFE).unwrap();
            let mut json = Vec::new();
            let place = write_unversioned(&object, &mut json);
            let text = Text {
                json: json.into(),
                version: place.map(|at| (at, 1234)),
            };
            let mut out = Vec::new();
            text.write(&mut out);
            crate::write::set_version(&mut object, 1234);
            assert_eq!(String::from_utf8(out.clone()).unwrap(), object.to_json());
            assert_eq!(text.len(), out.len(), "{given}");
        }
    }
}
