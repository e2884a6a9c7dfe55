//! Splits large lists into their elements, which are then decoded independently on all cores.
//!
//! A list is split only if the result equals decoding it as a whole; anything unusual stays unsplit.

use crate::input::{Document, Notation, ParentList};
use crate::split;
use scantling_value::{Limits, json, yaml};
use std::ops::Range;
use std::sync::Arc;

/// Smaller lists are not worth splitting.
const LARGE: usize = 256 << 10;

/// A unit of decoding: a document, or an element of a list.
#[derive(Debug)]
pub(crate) struct DocumentPart<'a> {
    document: Document<'a>,
    /// The column of the dash before an element in YAML's block style.
    dash: Option<usize>,
}

impl DocumentPart<'_> {
    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.document.text.len()
    }

    /// Calls a function with the document, or with the element as if it were a document, at its position.
    pub(crate) fn with<T>(&self, work: impl Fn(&Document<'_>) -> T) -> T {
        let Some(dash) = self.dash else {
            return work(&self.document);
        };
        // A space instead of the dash keeps every column, so locations stay correct.
        let mut text = self.document.text.to_vec();
        if let Some(byte) = text.get_mut(dash) {
            *byte = b' ';
        }
        work(&Document {
            file: self.document.file,
            text: &text,
            start: self.document.start,
            notation: self.document.notation,
            within: self.document.within.clone(),
        })
    }
}

/// Splits large lists in documents.
pub(crate) fn split_large_lists(documents: Vec<Document<'_>>) -> Vec<DocumentPart<'_>> {
    let mut all = Vec::with_capacity(documents.len());
    for document in documents {
        let found = if document.text.len() < LARGE {
            None
        } else {
            elements(&document)
        };
        match found {
            Some(cuts) => all.extend(cuts),
            None => all.push(DocumentPart { document, dash: None }),
        }
    }
    all
}

/// The positions of the elements of a list.
struct Elements {
    /// The range of each element.
    ranges: Vec<Range<usize>>,
    /// The range to replace by an empty list, so that the rest of the document parses.
    all: Range<usize>,
    dash: Option<usize>,
}

fn elements<'a>(document: &Document<'a>) -> Option<Vec<DocumentPart<'a>>> {
    let text = document.text;
    let Elements { ranges, all, dash } = match document.notation {
        Notation::Json => in_json(text)?,
        Notation::Yaml => in_yaml(text)?,
    };
    // Everything around the elements must still decode, and decide that this is a list of objects.
    let mut frame = text.get(..all.start)?.to_vec();
    frame.extend_from_slice(b" []\n");
    frame.extend_from_slice(text.get(all.end..)?);
    let frame = match document.notation {
        Notation::Json => json::decode_strict(&frame, Limits::SERVER),
        Notation::Yaml => yaml::decode_strict(&frame, Limits::SERVER),
    };
    // Duplicates are reported for the whole document, which needs the whole document.
    let frame = frame.ok().filter(|frame| frame.duplicates.is_empty())?.value;
    let said = |name: &str| frame.get_str(name);
    // As in `flatten`: only kinds that end in `List` stand for their elements.
    let kind = said("kind").strip_suffix("List")?;
    frame.get("items").filter(|items| items.as_array().is_some())?;
    let (kind, api_version): (Arc<str>, Arc<str>) = (kind.into(), said("apiVersion").into());
    let (mut cuts, mut start, mut at) = (Vec::with_capacity(ranges.len()), document.start, 0);
    // Each start continues from the previous one: counting from the beginning would be quadratic.
    for (index, range) in ranges.into_iter().enumerate() {
        start = start.after(text.get(at..range.start)?);
        at = range.start;
        cuts.push(DocumentPart {
            document: Document {
                file: document.file,
                text: text.get(range)?,
                start,
                notation: document.notation,
                within: Some(ParentList {
                    kind: Arc::clone(&kind),
                    api_version: Arc::clone(&api_version),
                    index,
                }),
            },
            dash,
        });
    }
    Some(cuts)
}

/// The elements of `items` in a JSON object.
fn in_json(text: &[u8]) -> Option<Elements> {
    let open = skip_space(text, 0);
    let mut at = (text.get(open)? == &b'{').then_some(open + 1)?;
    loop {
        let name = skip_space(text, at);
        let name_end = value_end(text, name)?;
        let colon = skip_space(text, name_end);
        let value = (text.get(colon)? == &b':').then(|| skip_space(text, colon + 1))?;
        // An escaped spelling of the name does not match; then the list stays whole.
        if text.get(name..name_end)? == b"\"items\"" {
            return in_json_list(text, value);
        }
        let comma = skip_space(text, value_end(text, value)?);
        at = (text.get(comma)? == &b',').then_some(comma + 1)?;
    }
}

fn in_json_list(text: &[u8], open: usize) -> Option<Elements> {
    let mut at = (text.get(open)? == &b'[').then_some(open + 1)?;
    let mut ranges: Vec<Range<usize>> = Vec::new();
    loop {
        let start = skip_space(text, at);
        let end = value_end(text, start)?;
        ranges.push(start..end);
        let after = skip_space(text, end);
        match text.get(after)? {
            b',' => at = after + 1,
            b']' => {
                let all = open..after + 1;
                return Some(Elements {
                    ranges,
                    all,
                    dash: None,
                });
            }
            _ => return None,
        }
    }
}

fn skip_space(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|b| b.is_ascii_whitespace()).count()
}

/// The end of the value that begins at an offset.
fn value_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let length = match rest.first()? {
        b'{' | b'[' => split::value_end(rest)?,
        b'"' => split::string_end(rest, 0)? + 1,
        _ => {
            let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b',' | b']' | b'}' | b':');
            rest.iter().position(ends).filter(|length| *length > 0)?
        }
    };
    Some(at + length)
}

/// The elements of `items` in a block mapping, if each begins with a field.
fn in_yaml(text: &[u8]) -> Option<Elements> {
    // An anchor in one element could be referenced in another.
    if memchr::memmem::find(text, b" &").is_some() {
        return None;
    }
    let start = begin_of_items(text)?;
    let mut found: Vec<usize> = Vec::new();
    let (mut at, mut dash) = (start, None);
    // One pass over the lines, without decoding: any line that does not fit leaves the list whole.
    while at < text.len() {
        let rest = text.get(at..)?;
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |n| n + 1);
        let line = rest.get(..length)?.trim_ascii_end();
        let indent = line.iter().take_while(|b| **b == b' ').count();
        let content = line.get(indent..)?;
        let column = *dash.get_or_insert(indent);
        match content.first() {
            // Comments and blank lines may have any indentation.
            None | Some(b'#') => {}
            Some(b'-') if indent == column => {
                begins_with_field(content)?;
                found.push(at);
            }
            Some(_) if indent > column => {}
            // If dashes are at the column of the key, the next key ends the list.
            Some(_) if indent == 0 => break,
            Some(_) => return None,
        }
        at += length;
    }
    let ends = found.iter().skip(1).copied().chain([at]);
    let ranges: Vec<Range<usize>> = found.iter().copied().zip(ends).map(|(a, b)| a..b).collect();
    (!ranges.is_empty()).then_some(Elements {
        ranges,
        // The line break belongs to the key.
        all: start.saturating_sub(1)..at,
        dash,
    })
}

/// The start of the line after `items:`.
fn begin_of_items(text: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"items:";
    let starts = memchr::memmem::find_iter(text, NAME);
    // Only at the beginning of a line: an indented `items` belongs to another field.
    let mut starts = starts.filter(|at| at.checked_sub(1).is_none_or(|b| text.get(b) == Some(&b'\n')));
    let after = starts.next()? + NAME.len();
    let rest = text.get(after..)?;
    let length = memchr::memchr(b'\n', rest)?;
    let only_space = rest.get(..length)?.iter().all(u8::is_ascii_whitespace);
    only_space.then_some(after + length + 1)
}

/// Checks that an element begins like an object: `- apiVersion: …`.
fn begins_with_field(content: &[u8]) -> Option<()> {
    let field = content.strip_prefix(b"- ")?;
    let name = field.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let colon = name > 0 && field.get(name) == Some(&b':');
    let ends = matches!(field.get(name + 1), None | Some(b' '));
    (colon && ends).then_some(())
}

#[cfg(test)]
mod tests {
    use super::{LARGE, split_large_lists};
    use crate::input::{Notation, Start};
    use crate::locate::DocumentLocator;
    use crate::split;
    use expect_test::expect;
    use scantling_value::{Path, PathBuf};
    use std::fmt::Write as _;
    use std::sync::Arc;

    /// The objects of a text, each with the position of its `spec`, and the number of parts they came from.
    fn objects(text: &str, notation: Notation) -> (usize, String) {
        let file: Arc<str> = "f".into();
        let (documents, problems) = split::split(&file, text.as_bytes(), notation, Start::default());
        assert!(problems.is_empty());
        let cuts = split_large_lists(documents);
        let mut out = String::new();
        for cut in &cuts {
            cut.with(|document| document.objects().unwrap())
                .into_iter()
                .for_each(|object| {
                    let spec = PathBuf::from(&Path::ROOT.field("spec"));
                    let places = cut.with(|document| {
                        let locator = DocumentLocator::new(document);
                        locator.locations(&[locator.path(&object.index, &spec)])
                    });
                    let place = places.into_iter().next().flatten().unwrap();
                    let (kind, version, name) = (object.kind(), object.api_version(), object.name());
                    writeln!(out, "{version} {kind} {name} {}:{}", place.line, place.column).unwrap();
                });
        }
        (cuts.len(), out)
    }

    /// The same with enough whitespace to make the list large, which must not matter.
    fn large(text: &str, notation: Notation) -> (usize, String) {
        let (count, small) = objects(text, notation);
        assert_eq!(count, 1);
        let (count, large) = objects(&padded(text, notation), notation);
        assert_eq!(small, large);
        (count, large)
    }

    /// A text padded at its end to be large. Padding after the last bracket of JSON does not count.
    fn padded(text: &str, notation: Notation) -> String {
        let space = "\n".repeat(LARGE);
        match notation {
            Notation::Json => format!("{}{space}}}", text.strip_suffix('}').unwrap()),
            Notation::Yaml => format!("{text}{space}"),
        }
    }

    #[test]
    fn split_elements_equal_decoded_ones() {
        let cases = [
            (
                Notation::Json,
                "{\n  \"kind\": \"List\", \"apiVersion\": \"v1\",\n  \"items\": [\n    {\"apiVersion\": \"a/v1\", \"kind\": \"A\",\n     \"metadata\": {\"name\": \"]}\"}, \"spec\": 1}, {\"apiVersion\": \"a/v1\", \"kind\": \"B\", \"spec\": 1}]}",
            ),
            (
                Notation::Json,
                "{\"items\":[{\"metadata\":{\"name\":\"é\"},\"spec\":{}},{\"spec\":{}}],\"kind\":\"AList\",\"apiVersion\":\"a/v1\"}",
            ),
            (
                Notation::Json,
                "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"kind\":\"AList\",\"apiVersion\":\"a/v1\",\"items\":[{\"spec\":1}]}]}",
            ),
            (
                Notation::Yaml,
                "apiVersion: v1\nitems:\n- apiVersion: a/v1\n  kind: A\n  metadata: {name: x}\n  spec: |\n    - apiVersion: 1\n# next\n- kind: B\n  spec:\n  - apiVersion: a\n  apiVersion: a/v1\nkind: List\nmetadata: {}\n",
            ),
            (
                Notation::Yaml,
                "kind: AList\napiVersion: a/v1\nitems:\n  - metadata:\n      name: x\n    spec: {}\n\n  - spec: {}\n",
            ),
        ];
        let mut all = String::new();
        for (notation, text) in cases {
            let (count, found) = large(text, notation);
            writeln!(all, "{count} cuts\n{found}").unwrap();
        }
        expect![[r#"
            2 cuts
            a/v1 A ]} 5:34
            a/v1 B  5:82

            2 cuts
            a/v1 A é 1:36
            a/v1 A  1:48

            1 cuts
            a/v1 A  1:89

            2 cuts
            a/v1 A x 6:3
            a/v1 B  10:3

            2 cuts
            a/v1 A x 6:5
            a/v1 A  8:5

        "#]]
        .assert_eq(&all);
    }

    #[test]
    fn unusual_lists_are_not_split() {
        let cases = [
            (Notation::Json, "{\"kind\": \"A\", \"items\": [{}, {}]}"),
            (
                Notation::Json,
                "{\"kind\": \"List\", \"kind\": \"List\", \"items\": [{}, {}]}",
            ),
            (Notation::Json, "{\"kind\": \"List\", \"items\": [{}, {},]}"),
            (Notation::Json, "{\"kind\": \"List\", \"items\": [{}, {}] 1}"),
            (Notation::Json, "{\"kind\": \"List\", \"items\": []}"),
            (Notation::Yaml, "kind: List\nitems:\n- &a {kind: A}\n- *a\n"),
            (Notation::Yaml, "kind: List\nitems:\n- kind: A\n- - 1\n"),
            (Notation::Yaml, "kind: List\nitems:\n  - kind: A\n - kind: B\n"),
            (Notation::Yaml, "kind: List\nitems: [{kind: A}, {kind: B}]\n"),
            (
                Notation::Yaml,
                "spec:\n  items:\n  - kind: A\n  - kind: B\nkind: List\n",
            ),
            (Notation::Yaml, "items:\n- kind: A\n- kind: B\nkind: Box\n"),
            (
                Notation::Yaml,
                "items:\n- kind: A\n- kind: B\nkind: List\nitems: []\n",
            ),
        ];
        let file: Arc<str> = "f".into();
        for (notation, text) in cases {
            let text = padded(text, notation);
            let (documents, _) = split::split(&file, text.as_bytes(), notation, Start::default());
            assert_eq!(split_large_lists(documents).len(), 1, "{}", text.trim_end());
        }
    }
}
