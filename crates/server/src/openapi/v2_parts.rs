//! The OpenAPI v2 document contains all kinds. Each kind's part is rendered once, and again when the kind changes. The
//! document is assembled while it is sent. Parts are kept compressed: paths of kinds resemble each other, and there may
//! be thousands.

use super::{gnostic, v2};
use crate::codec::protobuf;
use crate::codec::text::{Listed, Text};
use crate::kinds::kind::{Kind, Kinds};
use crate::rest::listing::Listing;
use scantling_store::MaybeCompressed;
use scantling_value::{Map, Value, deadline};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DocumentFormat {
    Json,
    Protobuf,
}

/// The cost of a part, in steps of the deadline.
const STEPS: u32 = 64;

/// The rendered paths and definitions of a kind, or of no kind in particular.
#[derive(Debug, Default)]
struct KindPart {
    paths: Vec<DocumentMember>,
    definitions: Vec<DocumentMember>,
}

#[derive(Debug)]
struct DocumentMember {
    name: String,
    written: MaybeCompressed,
}

impl DocumentFormat {
    fn part(self, paths: &Map, definitions: &Map) -> KindPart {
        let members = |all: &Map, protobuf: fn(&str, &Value) -> Vec<u8>| {
            let member = |(name, value): (&scantling_value::Str, &Value)| {
                let mut written = match self {
                    DocumentFormat::Json => json_member(name, value),
                    DocumentFormat::Protobuf => protobuf(name, value),
                };
                // It is kept for long, so excess capacity is released.
                written.shrink_to_fit();
                DocumentMember {
                    name: name.to_string(),
                    written: written.into(),
                }
            };
            all.iter().map(member).collect()
        };
        KindPart {
            paths: members(paths, gnostic::named_path),
            definitions: members(definitions, gnostic::named_schema),
        }
    }
}

fn json_member(name: &str, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    Value::from(name).write_json(&mut out);
    out.push(b':');
    value.write_json(&mut out);
    out
}

/// The rendered parts, by format and state of a kind; zero is the part of no kind in particular.
#[derive(Debug, Default)]
pub(super) struct V2Parts {
    written: Mutex<BTreeMap<(DocumentFormat, u32), Arc<KindPart>>>,
}

impl V2Parts {
    /// The document.
    pub(super) fn document(&self, kinds: &Kinds, format: DocumentFormat) -> Result<Listing, String> {
        let shared = self.part(format, 0, || {
            let (paths, definitions) = v2::shared(kinds);
            Ok(format.part(&paths, &definitions))
        })?;
        let mut parts = vec![shared];
        let mut current = BTreeSet::from([0]);
        for kind in kinds.all() {
            parts.push(self.of_kind(kind, format)?);
            current.insert(kind.serial);
            // Thousands of parts take long, so each counts towards the deadline.
            deadline::tick_by(STEPS);
        }
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        // Kinds that changed have other serials, so their old parts would stay forever.
        written.retain(|(_, serial), _| current.contains(serial));
        drop(written);
        let paths = sorted(&parts, |p| &p.paths);
        let definitions = sorted(&parts, |p| &p.definitions);
        Ok(match format {
            DocumentFormat::Json => json(&paths, &definitions),
            DocumentFormat::Protobuf => protobuf(&paths, &definitions),
        })
    }

    fn of_kind(&self, kind: &Kind, format: DocumentFormat) -> Result<Arc<KindPart>, String> {
        self.part(format, kind.serial, || {
            let (paths, definitions) = v2::of_kind(kind)?;
            Ok(format.part(&paths, &definitions))
        })
    }

    fn part(
        &self,
        format: DocumentFormat,
        serial: u32,
        write: impl FnOnce() -> Result<KindPart, String>,
    ) -> Result<Arc<KindPart>, String> {
        let written = || self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = written().get(&(format, serial)) {
            return Ok(Arc::clone(part));
        }
        // Without the lock: rendering takes long, and another request may need a part that exists.
        let part = Arc::new(write()?);
        written().insert((format, serial), Arc::clone(&part));
        Ok(part)
    }
}

/// All members by name, without duplicates.
fn sorted(parts: &[Arc<KindPart>], members: impl Fn(&KindPart) -> &[DocumentMember]) -> Vec<MaybeCompressed> {
    let mut all: Vec<&DocumentMember> = parts.iter().flat_map(|p| members(p)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    // A stable sort: of equal names, the one of the part that comes first stays, and shared parts come first.
    all.dedup_by(|a, b| a.name == b.name);
    all.into_iter().map(|m| m.written.clone()).collect()
}

fn json(paths: &[MaybeCompressed], definitions: &[MaybeCompressed]) -> Listing {
    let mut pieces = Vec::with_capacity(2 * (paths.len() + definitions.len()) + 8);
    let members = |pieces: &mut Vec<Listed>, members: &[MaybeCompressed]| {
        for (i, member) in members.iter().enumerate() {
            if i > 0 {
                pieces.push(Text::raw(MaybeCompressed::from(",")).into());
            }
            pieces.push(Text::raw(member.clone()).into());
        }
    };
    members(&mut pieces, definitions);
    let (security, ways) = v2::security();
    let written = |before: &str, value: &Value, after: &str| {
        let mut out = before.as_bytes().to_vec();
        value.write_json(&mut out);
        out.extend_from_slice(after.as_bytes());
        out
    };
    let mut between = written("},\"info\":", &v2::info(), ",");
    let parameters = v2::shared_parameters().into();
    between.extend(written("\"parameters\":", &parameters, ",\"paths\":{"));
    pieces.push(Text::raw(between.into()).into());
    members(&mut pieces, paths);
    let mut after = written("},\"security\":", &security, ",");
    after.extend(written("\"securityDefinitions\":", &ways, ","));
    after.extend(written("\"swagger\":", &v2::SWAGGER.into(), "}"));
    Listing::joined(b"{\"definitions\":{".to_vec(), pieces, after, b"")
}

fn protobuf(paths: &[MaybeCompressed], definitions: &[MaybeCompressed]) -> Listing {
    let head = |field: u64, members: &[MaybeCompressed]| {
        let mut out = Vec::new();
        protobuf::length(&mut out, field, members.iter().map(MaybeCompressed::len).sum());
        Listed::from(Text::raw(out.into()))
    };
    let texts = |members: &[MaybeCompressed]| {
        members
            .iter()
            .cloned()
            .map(|m| Text::raw(m).into())
            .collect::<Vec<_>>()
    };
    let mut pieces = Vec::with_capacity(paths.len() + definitions.len() + 2);
    pieces.push(head(8, paths));
    pieces.extend(texts(paths));
    pieces.push(head(9, definitions));
    pieces.extend(texts(definitions));
    let end = gnostic::end(v2::shared_parameters(), v2::security());
    Listing::joined(gnostic::beginning(v2::SWAGGER, v2::info()), pieces, end, b"")
}
