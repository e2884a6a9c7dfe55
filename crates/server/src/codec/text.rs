//! Objects as text. What is stored is what clients see, but for the resource version, which the store alone knows: so
//! most objects are sent as they are stored, with their version written in between.
//!
//! Whether that holds for an entry is found out once, by bringing it into form and comparing; the entry's note
//! remembers it for the kind as it is now.

use crate::api::ResourceRequest;
use crate::codec::cbor;
use crate::codec::media::Encoding;
use crate::kinds::kind::Kind;
use crate::rest::conversion::Converted;
use crate::rest::managed;
use crate::rest::read::{object_in_version, undecodable};
use crate::rest::write::remove_version;
use crate::status::ApiResult;
use scantling_merge::apply::TypeCheck;
use scantling_store::{Entry, Event, MaybeCompressed};
use scantling_value::{Map, Str, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The JSON of an object as a request's version shows it.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// What is stored of it stays packed until it is written.
    json: MaybeCompressed,
    /// How many bytes of it count.
    length: usize,
    /// Where a resource version is missing, and which.
    version: Option<RvSplice>,
}

/// A resource version that a text lacks.
#[derive(Clone, Copy, Debug)]
struct RvSplice {
    at: usize,
    revision: u64,
    /// Whether it will be the only one of the metadata.
    alone: bool,
}

impl RvSplice {
    /// What is missing at a place of a text.
    fn at(at: usize, json: &[u8], revision: u64) -> RvSplice {
        let around = json.get(at.saturating_sub(1)..=at);
        RvSplice {
            at,
            revision,
            alone: around == Some(b"{}"),
        }
    }
}

/// Tells the states of all kinds apart, for the notes on entries. Zero is nobody's.
pub(crate) fn next_serial() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
}

impl Text {
    /// The text of an entry.
    pub(crate) async fn for_entry(call: &ResourceRequest<'_>, entry: &Entry) -> ApiResult<Text> {
        match Text::noted(call, entry) {
            Some(text) => Ok(text),
            None => Ok(Text::of_object(
                call,
                entry,
                &object_in_version(call, entry).await?,
            )),
        }
    }

    /// The text of an entry that a webhook was asked about, if there is one.
    pub(crate) fn of_converted(
        call: &ResourceRequest<'_>,
        entry: &Entry,
        converted: &Converted,
    ) -> ApiResult<Text> {
        match Text::noted(call, entry) {
            Some(text) => Ok(text),
            None => Ok(Text::of_object(call, entry, &converted.object(call, entry)?)),
        }
    }

    /// The text of an entry that is known to be shown as it is stored.
    pub(crate) fn noted(call: &ResourceRequest<'_>, entry: &Entry) -> Option<Text> {
        noted(call, entry).map(|note| Text::of_stored(entry, (note & PLACE) as usize))
    }

    /// The text of an entry that is shown as it is stored, with the place of its resource version.
    fn of_stored(entry: &Entry, place: usize) -> Text {
        Text {
            json: entry.value.clone(),
            length: entry.value.len() - LINE_FEED.len(),
            version: Some(RvSplice {
                at: place,
                revision: entry.mod_revision,
                alone: false,
            }),
        }
    }

    /// The text of an entry that has been brought into form.
    pub(crate) fn of_object(call: &ResourceRequest<'_>, entry: &Entry, object: &Value) -> Text {
        let mut json = Vec::with_capacity(entry.value.len() + 64);
        let place = write_unversioned(object, &mut json);
        let version = place.map(|at| RvSplice::at(at, &json, entry.mod_revision));
        let length = json.len();
        json.extend_from_slice(LINE_FEED);
        let json = if entry.value == *json {
            if call.version.storage && version.is_some_and(|v| !v.alone) {
                cache_normalized(call.kind, entry, place, TypeCheck::Unknown);
            }
            entry.value.clone()
        } else {
            MaybeCompressed::uncompressed(json.into())
        };
        Text {
            json,
            length,
            version,
        }
    }

    /// The text of an object that has its version.
    pub(crate) fn complete(object: &Value) -> Text {
        Text::raw(MaybeCompressed::uncompressed(object.to_json().into()))
    }

    /// A text that is complete as it is.
    pub(crate) fn raw(json: MaybeCompressed) -> Text {
        Text {
            length: json.len(),
            json,
            version: None,
        }
    }

    /// The same object under another version.
    pub(crate) fn at_revision(mut self, revision: u64) -> Text {
        if let Some(missing) = &mut self.version {
            missing.revision = revision;
        }
        self
    }

    /// Appends the text.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let json = self.json.bytes();
        let json = json.get(..self.length).unwrap_or(&json);
        let Some((missing, (before, after))) =
            self.version.and_then(|v| Some((v, json.split_at_checked(v.at)?)))
        else {
            out.extend_from_slice(json);
            return;
        };
        out.extend_from_slice(before);
        if after.first() == Some(&b'}') && !missing.alone {
            out.push(b',');
        }
        out.extend_from_slice(MEMBER);
        write_decimal(missing.revision, out);
        out.push(b'"');
        if after.first() != Some(&b'}') {
            out.push(b',');
        }
        out.extend_from_slice(after);
    }

    /// How many bytes [`Text::write`] appends.
    pub(crate) fn len(&self) -> usize {
        let Some(RvSplice { revision, alone, .. }) = self.version else {
            return self.length;
        };
        let digits = revision.checked_ilog10().unwrap_or(0) as usize + 1;
        self.length + MEMBER.len() + digits + 1 + usize::from(!alone)
    }
}

/// The text of an object in a list. It is small, because a list may wait for long until a client reads it.
#[derive(Clone, Debug)]
pub(crate) enum Listed {
    /// That of an entry that is shown as it is stored, and where the resource version belongs.
    Stored { entry: Arc<Entry>, place: u32 },
    /// Any other.
    Text(Box<Text>),
}

impl Listed {
    /// The text of an entry that is known to be shown as it is stored.
    pub(crate) fn noted(call: &ResourceRequest<'_>, entry: &Arc<Entry>) -> Option<Listed> {
        let note = noted(call, entry)?;
        Some(Listed::Stored {
            entry: Arc::clone(entry),
            place: u32::try_from(note & PLACE).ok()?,
        })
    }

    /// The text of an entry that has been brought into form.
    pub(crate) fn of_object(call: &ResourceRequest<'_>, entry: &Arc<Entry>, object: &Value) -> Listed {
        // Bringing it into form may have led to a note.
        let text = Text::of_object(call, entry, object);
        Listed::noted(call, entry).unwrap_or_else(|| text.into())
    }

    /// Appends the text.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Listed::Stored { entry, place } => Text::of_stored(entry, *place as usize).write(out),
            Listed::Text(text) => text.write(out),
        }
    }

    /// The number of bytes that [`Listed::write`] appends.
    pub(crate) fn len(&self) -> usize {
        match self {
            Listed::Stored { entry, place } => Text::of_stored(entry, *place as usize).len(),
            Listed::Text(text) => text.len(),
        }
    }

    /// The bytes of memory that it takes in addition to the store's.
    pub(crate) fn held(&self) -> usize {
        let text = match self {
            Listed::Stored { .. } => 0,
            Listed::Text(text) => size_of::<Text>() + text.json.memory_bytes(),
        };
        size_of::<Listed>() + text
    }
}

impl From<Text> for Listed {
    fn from(text: Text) -> Listed {
        Listed::Text(Box::new(text))
    }
}

/// Values end with a line feed, as those of a kube-apiserver do: each finds unchanged what the other has written.
const LINE_FEED: &[u8] = b"\n";

/// An object as it is stored: in the version that is stored, and without its resource version, which the store knows.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) value: MaybeCompressed,
    /// Where the resource version belongs.
    pub(crate) place: Option<usize>,
    /// The object, where the version that is stored is not that of the request.
    converted: Option<Value>,
}

impl Stored {
    /// The stored form of an object of a request's version.
    pub(crate) async fn encode(call: &ResourceRequest<'_>, object: &Value) -> ApiResult<Stored> {
        if call.version.storage {
            return Ok(Stored::encoded(call, object));
        }
        let converted = call.store(object.clone()).await?;
        Ok(Stored::converted(call, converted))
    }

    fn converted(call: &ResourceRequest<'_>, object: Value) -> Stored {
        let mut stored = Stored::encoded(call, &object);
        stored.converted = Some(object);
        stored
    }

    /// The stored form of an object that is in the version that is stored. Custom resources are stored in CBOR where
    /// CBOR is enabled, as by a kube-apiserver; no text says where in it the resource version would belong.
    fn encoded(call: &ResourceRequest<'_>, object: &Value) -> Stored {
        if call.kind.built_in || !call.api.encodings.contains(&Encoding::Cbor) {
            return Stored::whole(object);
        }
        let mut object = object.clone();
        remove_version(&mut object);
        Stored {
            value: cbor::encode(&object).into(),
            place: None,
            converted: None,
        }
    }

    /// The stored form of the same object without its managers, which are gone from the object of the request's version.
    pub(crate) fn without_managers(self, call: &ResourceRequest<'_>, own: &Value) -> Stored {
        match self.converted {
            Some(mut object) => {
                managed::forget(&mut object);
                Stored::converted(call, object)
            }
            None => Stored::encoded(call, own),
        }
    }

    /// The object in the version that is stored; its own, if that is the same.
    pub(crate) fn object<'o>(&'o self, own: &'o Value) -> &'o Value {
        self.converted.as_ref().unwrap_or(own)
    }

    /// The stored form, as JSON, of an object that is in the version that is stored.
    pub(crate) fn whole(object: &Value) -> Stored {
        let mut out = Vec::with_capacity(2048);
        let place = write_unversioned(object, &mut out);
        out.extend_from_slice(LINE_FEED);
        Stored::of_text(out, place)
    }

    /// The stored form of an object of which one member stays as it is in a stored text. That member need not be known:
    /// it is what stands between the others, which are those of `before`. None if the text is not written so.
    pub(crate) fn keeping(member: &str, text: &[u8], before: &Map, after: &Map) -> Option<Stored> {
        let before = Around::new(member, before)?;
        let after = Around::new(member, after)?;
        let kept = text.strip_prefix(&*before.head)?.strip_suffix(&*before.tail)?;
        let value = [&*after.head, kept, &*after.tail].concat();
        Some(Stored::of_text(value, after.place))
    }

    fn of_text(mut text: Vec<u8>, place: Option<usize>) -> Stored {
        // It stays for long.
        text.shrink_to_fit();
        Stored {
            value: text.into(),
            place,
            converted: None,
        }
    }
}

/// What stands around the value of a member in a stored text.
struct Around {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Where in the head the resource version belongs.
    place: Option<usize>,
}

impl Around {
    fn new(member: &str, object: &Map) -> Option<Around> {
        let position = object.position(member)?;
        let (before, rest) = object.entries().split_at_checked(position)?;
        let (_, after) = rest.split_first()?;
        let mut head = vec![b'{'];
        let place = write_members(before, &mut head);
        if !before.is_empty() {
            head.push(b',');
        }
        Value::from(member).write_json(&mut head);
        head.push(b':');
        let mut tail = Vec::new();
        if !after.is_empty() {
            tail.push(b',');
        }
        write_members(after, &mut tail);
        tail.push(b'}');
        tail.extend_from_slice(LINE_FEED);
        Some(Around { head, tail, place })
    }
}

/// An object of a request's version as it comes back from the store: what the stored version does not know is gone. An
/// apply or a scale may have brought such fields in, or a request in another version.
pub(crate) async fn read_back(call: &ResourceRequest<'_>, object: Value, stored: Stored) -> ApiResult<Value> {
    if call.kind.built_in {
        return Ok(object);
    }
    call.read(stored.converted.unwrap_or(object)).await
}

/// What is known about an object that was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) brought: Normalized,
    pub(crate) typed: TypeCheck,
}

/// Whether a write is known to bring in nothing that reading would change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Normalized {
    /// All of it was brought into form before.
    InForm,
    /// It may hold what the stored version does not know.
    Anything,
}

/// What [`read_back`] makes of an object just written; notes on its entry if that is as it is stored.
pub(crate) async fn read_written(
    call: &ResourceRequest<'_>,
    event: &Event,
    object: Value,
    stored: Stored,
    known: Known,
) -> ApiResult<Value> {
    if !call.version.storage || call.kind.built_in {
        let read = read_back(call, object, stored).await;
        return read.map_err(|e| undecodable(event.revision, e));
    }
    // It is in the version that is asked for, so that there is nothing to convert.
    let read = || call.kind.strategy.read(call.kind, call.version, object.clone());
    // What an update leaves as it was is in form if it was.
    let in_form =
        known.brought == Normalized::InForm && event.before().is_some_and(|old| is_in_form(call, old));
    debug_assert!(
        !in_form || read().is_ok_and(|read| read == object),
        "{} is not in form after an update",
        event.key()
    );
    let read = if in_form { None } else { Some(read()?) };
    if read.as_ref().is_none_or(|read| *read == object)
        && let Some(entry) = event.after()
    {
        cache_normalized(call.kind, entry, stored.place, known.typed);
    }
    Ok(read.unwrap_or(object))
}

/// What is noted on an entry about the kind as it is now.
fn noted(call: &ResourceRequest<'_>, entry: &Entry) -> Option<u64> {
    let noted = call.version.storage && is_noted(call.kind, entry);
    noted.then(|| entry.reader_cache.get())
}

/// Whether the storage version of a kind is known to show an entry as it is stored.
pub(crate) fn is_noted(kind: &Kind, entry: &Entry) -> bool {
    entry.reader_cache.get() >> 32 == u64::from(kind.serial)
}

/// Notes that what a request has stored is shown so.
pub(crate) fn note_in_form(call: &ResourceRequest<'_>, event: &Event, place: Option<usize>) {
    if let Some(entry) = event.after().filter(|_| call.version.storage) {
        cache_normalized(call.kind, entry, place, TypeCheck::Unknown);
    }
}

/// Whether an entry is known to be shown as it is stored.
pub(crate) fn is_in_form(call: &ResourceRequest<'_>, entry: &Entry) -> bool {
    noted(call, entry).is_some()
}

/// Whether what is stored is known to have the type by which its fields are owned.
pub(crate) fn known_type(call: &ResourceRequest<'_>, entry: &Entry) -> TypeCheck {
    match noted(call, entry) {
        Some(note) if note & TYPED != 0 => TypeCheck::Verified,
        _ => TypeCheck::Unknown,
    }
}

/// The part of a note that says where the resource version belongs.
const PLACE: u64 = (1 << 31) - 1;
/// The part of a note that says that what is stored has its type.
const TYPED: u64 = 1 << 31;

/// Notes that the storage version of a kind shows an entry as it is stored, and what is known about it.
pub(crate) fn cache_normalized(kind: &Kind, entry: &Entry, place: Option<usize>, typed: TypeCheck) {
    let place = place.and_then(|place| u64::try_from(place).ok());
    if let Some(place) = place.filter(|place| *place <= PLACE) {
        let typed = match typed {
            TypeCheck::Unknown => 0,
            TypeCheck::Verified => TYPED,
        };
        entry
            .reader_cache
            .set(u64::from(kind.serial) << 32 | typed | place);
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
    out.push(b'{');
    let place = write_members(members.entries(), out);
    out.push(b'}');
    place
}

/// Writes members of an object in the same way.
fn write_members(members: &[(Str, Value)], out: &mut Vec<u8>) -> Option<usize> {
    let mut place = None;
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
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_value::{Limits, json};

    #[test]
    fn a_member_stays_as_it_is_stored() {
        let decode = |text: &str| json::decode(text.as_bytes(), Limits::SAFE).unwrap();
        let before = decode(r#"{"kind":"K","metadata":{"name":"a","uid":"u"},"spec":null,"status":{"a":1}}"#);
        let after = decode(r#"{"kind":"K","metadata":{"name":"a","uid":"u"},"spec":null,"status":{}}"#);
        let keep = |member: &str, text: &str| {
            let [before, after] = [&before, &after].map(|v| v.as_object().unwrap());
            let stored = Stored::keeping(member, text.as_bytes(), before, after)?;
            Some((
                String::from_utf8(stored.value.bytes().to_vec()).unwrap(),
                stored.place,
            ))
        };
        let given = r#"{"kind":"K","metadata":{"name":"a","uid":"u"},"spec":{"b": 2},"status":{"a":1}}"#;
        let whole = Stored::whole(&after);
        let wanted = String::from_utf8(whole.value.bytes().to_vec()).unwrap();
        let wanted = wanted.replace("null", r#"{"b": 2}"#);
        assert_eq!(keep("spec", &format!("{given}\n")), Some((wanted, whole.place)));
        assert_eq!(keep("spec", given), None, "no line feed");
        assert_eq!(
            keep("spec", &format!("{}\n", given.replace("\"a\":1", "\"a\":2"))),
            None
        );
        assert_eq!(keep("other", &format!("{given}\n")), None);
    }

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
                version: place.map(|at| RvSplice::at(at, &json, 1234)),
                length: json.len(),
                json: MaybeCompressed::uncompressed(json.into()),
            };
            let mut out = Vec::new();
            text.write(&mut out);
            crate::rest::write::set_version(&mut object, 1234);
            assert_eq!(String::from_utf8(out.clone()).unwrap(), object.to_json());
            assert_eq!(text.len(), out.len(), "{given}");
        }
    }
}
