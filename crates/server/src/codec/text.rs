//! Objects as text. Clients see what is stored, except for the resource version, which only the store knows: most
//! objects are sent as they are stored, with their version inserted. [`EntryFacts`] says for which entries that holds.

use crate::api::ResourceRequest;
use crate::codec::cbor;
use crate::codec::media::Encoding;
use crate::rest::conversion::Converted;
use crate::rest::entry_cache::{EntryFacts, is_normalized};
use crate::rest::managed_fields;
use crate::rest::read::{object_in_version, undecodable};
use crate::rest::write::remove_version;
use crate::status::ApiResult;
use scantling_apitypes::write::{Member, MemberPosition};
use scantling_apitypes::{TypeDef, TypeTable};
use scantling_merge::apply::TypeCheck;
use scantling_store::{Entry, Event, MaybeCompressed};
use scantling_value::{Map, Value, json};
use std::sync::Arc;

/// The JSON of an object in the version of a request.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// Stored text stays compressed until it is sent.
    json: MaybeCompressed,
    /// The length of the text without the final line feed.
    length: usize,
    /// The resource version to insert.
    version: Option<RvSplice>,
}

/// A resource version to insert into a text.
#[derive(Clone, Copy, Debug)]
struct RvSplice {
    at: usize,
    revision: u64,
    /// True if it is the only field of the metadata.
    alone: bool,
}

impl RvSplice {
    /// The resource version to insert at an offset of a text.
    fn at(at: usize, json: &[u8], revision: u64) -> RvSplice {
        let around = json.get(at.saturating_sub(1)..=at);
        RvSplice {
            at,
            revision,
            alone: around == Some(b"{}"),
        }
    }
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

    /// The text of an entry that a webhook may have converted.
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
        EntryFacts::for_request(call, entry).map(|cache| Text::of_stored(entry, cache.place() as usize))
    }

    /// The text of an entry that is shown as it is stored, with the place of its resource version.
    fn of_stored(entry: &Entry, place: usize) -> Text {
        Text {
            json: entry.value.clone(),
            // Only values that end with a line feed are noted, so the subtraction cannot underflow.
            length: entry.value.len() - LINE_FEED.len(),
            version: Some(RvSplice {
                at: place,
                revision: entry.mod_revision,
                // Metadata without any other field is never noted.
                alone: false,
            }),
        }
    }

    /// The text of an entry whose object is normalized.
    pub(crate) fn of_object(call: &ResourceRequest<'_>, entry: &Entry, object: &Value) -> Text {
        let mut json = Vec::with_capacity(entry.value.len() + 64);
        let place = write_unversioned(object, &mut json);
        let version = place.map(|at| RvSplice::at(at, &json, entry.mod_revision));
        let length = json.len();
        json.extend_from_slice(LINE_FEED);
        // Equal texts: the stored one is kept, so that the list or the line shares its memory.
        let json = if entry.value == *json {
            // In another version the text is equal only by accident, and facts hold for the storage version alone.
            if call.version.storage && version.is_some_and(|v| !v.alone) {
                EntryFacts::set(call.kind, entry, place, TypeCheck::Unknown);
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

    /// A text that is complete as it is.
    pub(crate) fn raw(json: MaybeCompressed) -> Text {
        Text {
            length: json.len(),
            json,
            version: None,
        }
    }

    /// The text with another resource version.
    pub(crate) fn at_revision(mut self, revision: u64) -> Text {
        if let Some(missing) = &mut self.version {
            missing.revision = revision;
        }
        self
    }

    /// Appends the text.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.write_without(0, out);
    }

    /// Appends the text without its first members, which take that many bytes.
    fn write_without(&self, omitted: usize, out: &mut Vec<u8>) {
        let json = self.json.bytes();
        let json = json.get(..self.length).unwrap_or(&json);
        let Some((missing, (before, after))) =
            self.version.and_then(|v| Some((v, json.split_at_checked(v.at)?)))
        else {
            write_omitting(omitted, json, out);
            return;
        };
        write_omitting(omitted, before, out);
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

    /// The number of bytes that [`Text::write`] appends.
    pub(crate) fn len(&self) -> usize {
        let Some(RvSplice { revision, alone, .. }) = self.version else {
            return self.length;
        };
        let digits = revision.checked_ilog10().unwrap_or(0) as usize + 1;
        self.length + MEMBER.len() + digits + 1 + usize::from(!alone)
    }
}

/// Appends the beginning of an object without its first members, which take that many bytes.
fn write_omitting(omitted: usize, json: &[u8], out: &mut Vec<u8>) {
    match json.split_first() {
        Some((brace, members)) if omitted > 0 => {
            out.push(*brace);
            out.extend_from_slice(members.get(omitted..).unwrap_or_default());
        }
        _ => out.extend_from_slice(json),
    }
}

/// The text of an object in a list. It is small, because a slow client keeps a list in memory.
#[derive(Clone, Debug)]
pub(crate) enum Listed {
    /// An entry that is shown as it is stored, with the offset of its resource version.
    Stored { entry: Arc<Entry>, place: u32 },
    /// Any other.
    Text(Box<Text>),
}

impl Listed {
    /// The text of an entry that is known to be shown as it is stored.
    pub(crate) fn noted(call: &ResourceRequest<'_>, entry: &Arc<Entry>) -> Option<Listed> {
        let cache = EntryFacts::for_request(call, entry)?;
        Some(Listed::Stored {
            entry: Arc::clone(entry),
            place: cache.place(),
        })
    }

    /// The text of an entry whose object is normalized.
    pub(crate) fn of_object(call: &ResourceRequest<'_>, entry: &Arc<Entry>, object: &Value) -> Listed {
        // The text may have been cached.
        let text = Text::of_object(call, entry, object);
        Listed::noted(call, entry).unwrap_or_else(|| text.into())
    }

    /// Appends the text without its first members, which take that many bytes.
    pub(crate) fn write_without(&self, omitted: usize, out: &mut Vec<u8>) {
        match self {
            Listed::Stored { entry, place } => {
                Text::of_stored(entry, *place as usize).write_without(omitted, out);
            }
            Listed::Text(text) => text.write_without(omitted, out),
        }
    }

    /// The number of bytes of the whole text.
    pub(crate) fn len(&self) -> usize {
        match self {
            Listed::Stored { entry, place } => Text::of_stored(entry, *place as usize).len(),
            Listed::Text(text) => text.len(),
        }
    }

    /// The memory that it takes in addition to the store's.
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

/// Values end with a line feed, as those of kube-apiserver, so that neither rewrites the other's values.
const LINE_FEED: &[u8] = b"\n";

/// An object as it is stored: in the storage version and without its resource version.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) value: MaybeCompressed,
    /// The offset of the resource version.
    pub(crate) place: Option<usize>,
    /// The object in the storage version, if that is not the version of the request.
    converted: Option<Value>,
}

impl Stored {
    /// Encodes an object in the version of a request.
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

    /// Encodes an object in the storage version. Custom resources are stored in CBOR if it is enabled, as by
    /// kube-apiserver; the resource version then has no offset.
    fn encoded(call: &ResourceRequest<'_>, object: &Value) -> Stored {
        if call.kind.built_in || !call.api.encodings.contains(&Encoding::Cbor) {
            return Stored::whole(object);
        }
        let mut object = object.clone();
        // The store knows the revision; a stored one would be that of the previous write.
        remove_version(&mut object);
        Stored {
            value: cbor::encode(&object).into(),
            place: None,
            converted: None,
        }
    }

    /// Encodes the object without its managed fields, which `own` no longer has.
    pub(crate) fn without_managers(self, call: &ResourceRequest<'_>, own: &Value) -> Stored {
        match self.converted {
            Some(mut object) => {
                managed_fields::forget(&mut object);
                Stored::converted(call, object)
            }
            None => Stored::encoded(call, own),
        }
    }

    /// The object in the storage version.
    pub(crate) fn object<'o>(&'o self, own: &'o Value) -> &'o Value {
        self.converted.as_ref().unwrap_or(own)
    }

    /// Encodes an object in the storage version as JSON.
    pub(crate) fn whole(object: &Value) -> Stored {
        let mut out = Vec::with_capacity(2048);
        let place = write_unversioned(object, &mut out);
        out.extend_from_slice(LINE_FEED);
        Stored::of_text(out, place)
    }

    /// Replaces the members of a stored text, except for one, which is copied as it is. `before` has the current
    /// members. `None` if another server wrote the text differently.
    pub(crate) fn keeping(member: &str, text: &[u8], before: &Value, after: &Value) -> Option<Stored> {
        let before = Around::new(member, before)?;
        let after = Around::new(member, after)?;
        // The text around the member must be exactly what this server would write, so what is between is the member.
        let kept = text.strip_prefix(&*before.head)?.strip_suffix(&*before.tail)?;
        let value = [&*after.head, kept, &*after.tail].concat();
        Some(Stored::of_text(value, after.place))
    }

    fn of_text(mut text: Vec<u8>, place: Option<usize>) -> Stored {
        // It is kept for long.
        text.shrink_to_fit();
        Stored {
            value: text.into(),
            place,
            converted: None,
        }
    }
}

/// The text around the value of a member.
struct Around {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// The offset of the resource version in the head.
    place: Option<usize>,
}

impl Around {
    fn new(member: &str, object: &Value) -> Option<Around> {
        let members = in_order(object, object.as_object()?);
        let position = members.iter().position(|m| m.name() == member)?;
        let (before, rest) = members.split_at_checked(position)?;
        let (_, after) = rest.split_first()?;
        let mut head = vec![b'{'];
        let place = write_members(before, &mut head);
        if !before.is_empty() {
            head.push(b',');
        }
        json::write_key(&mut head, member);
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

/// Returns an object as it comes back from the store, without the fields that the storage version does not have. An
/// apply, a scale or a request in another version may have set such fields.
pub(crate) async fn read_back(call: &ResourceRequest<'_>, object: Value, stored: Stored) -> ApiResult<Value> {
    if call.kind.built_in {
        return Ok(object);
    }
    call.read(stored.converted.unwrap_or(object)).await
}

/// Facts about an object that was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteFacts {
    /// True if everything that the write brought in is normalized, so that reading changes nothing of it.
    pub(crate) is_normalized: bool,
    pub(crate) typed: TypeCheck,
}

/// Returns an object that was written as [`read_back`] does, and caches on its entry if that is how it is stored.
pub(crate) async fn read_written(
    call: &ResourceRequest<'_>,
    event: &Event,
    object: Value,
    stored: Stored,
    written: WriteFacts,
) -> ApiResult<Value> {
    // Such a request never shows the object as it is stored, so there is nothing to cache.
    if !call.version.storage {
        let read = read_back(call, object, stored).await;
        return read.map_err(|e| undecodable(event.revision, e));
    }
    // It is in the requested version: there is nothing to convert.
    let read = || call.kind.codec.read(call.kind, call.version, object.clone());
    // Admission returns objects of built-in kinds as they are read. The parts of a custom resource that an update
    // leaves unchanged are normalized if they were.
    let in_form = call.kind.built_in
        || (written.is_normalized && event.before().is_none_or(|old| is_normalized(call, old)));
    debug_assert!(
        !in_form || read().is_ok_and(|read| read == object),
        "{} is not normalized after a write",
        event.key()
    );
    let read = if in_form { None } else { Some(read()?) };
    if read.as_ref().is_none_or(|read| *read == object)
        && let Some(entry) = event.after()
    {
        EntryFacts::set(call.kind, entry, stored.place, written.typed);
    }
    Ok(read.unwrap_or(object))
}

const MEMBER: &[u8] = b"\"resourceVersion\":\"";

fn write_decimal(n: u64, out: &mut Vec<u8>) {
    use std::io::Write;
    // Writing to a string cannot fail.
    let _ = write!(out, "{n}");
}

/// Writes an object without its resource version; returns the offset of that, if the object has metadata. Members of
/// built-in kinds are in the order of their declarations, those of custom resources are sorted by name.
fn write_unversioned(object: &Value, out: &mut Vec<u8>) -> Option<usize> {
    let Some(members) = object.as_object() else {
        object.write_json(out);
        return None;
    };
    out.push(b'{');
    let place = write_members(&in_order(object, members), out);
    out.push(b'}');
    place
}

/// The members of an object in the order of its text.
fn in_order<'a>(object: &Value, members: &'a Map) -> Vec<Member<'a>> {
    let table = TypeTable::latest();
    let definition = table.kind_of(object).and_then(TypeDef::as_struct);
    table.members(definition, members)
}

/// Writes members of an object without the resource version; returns the offset of that.
fn write_members(members: &[Member<'_>], out: &mut Vec<u8>) -> Option<usize> {
    let mut place = None;
    for (i, member) in members.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match member.value {
            Value::Object(metadata) if member.name() == "metadata" => {
                member.write_key(out);
                place = Some(write_metadata(member, metadata, out));
            }
            _ => TypeTable::latest().write_member(member, out),
        }
    }
    place
}

/// Writes metadata without the resource version; returns the offset of that.
fn write_metadata(member: &Member<'_>, metadata: &Map, out: &mut Vec<u8>) -> usize {
    const VERSION: &str = "resourceVersion";
    let table = TypeTable::latest();
    let definition = member.field.and_then(|field| table.struct_of(&field.ty));
    let version = MemberPosition::new(definition, VERSION);
    let mut place = None;
    out.push(b'{');
    let others = table.members(definition, metadata);
    for (i, member) in others.iter().filter(|m| m.name() != VERSION).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if place.is_none() && member.position > version {
            place = Some(out.len());
        }
        table.write_member(member, out);
    }
    // All members precede the resource version, or there are none.
    let place = place.unwrap_or(out.len());
    out.push(b'}');
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_value::Limits;

    #[test]
    fn stored_members_are_copied_verbatim() {
        let decode = |text: &str| json::decode(text.as_bytes(), Limits::SAFE).unwrap();
        let before = decode(r#"{"kind":"K","metadata":{"name":"a","uid":"u"},"spec":null,"status":{"a":1}}"#);
        let after = decode(r#"{"kind":"K","metadata":{"name":"a","uid":"u"},"spec":null,"status":{}}"#);
        let keep = |member: &str, text: &str| {
            let stored = Stored::keeping(member, text.as_bytes(), &before, &after)?;
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
    fn resource_version_is_spliced_in_place() {
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
