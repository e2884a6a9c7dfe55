//! Splits a file into documents.

use crate::input::{Document, Notation, Start, undecodable};
use crate::problem::Problem;
use scantling_value::yaml;
use std::sync::Arc;

/// Splits a whole file.
pub(crate) fn documents<'a>(file: &'a Arc<str>, bytes: &'a [u8]) -> (Vec<Document<'a>>, Vec<Problem>) {
    let bytes = without_mark(bytes);
    let (notation, first) = begin(bytes, InputEnd::Here);
    let notation = notation.unwrap_or(Notation::Yaml);
    let whole = first.is_some_and(|end| bytes.get(end..).is_some_and(|rest| rest.trim_ascii().is_empty()));
    if notation == Notation::Json && whole {
        // Most files have one document, whose end need not be searched.
        let document = Document {
            file,
            text: bytes,
            start: Start::default(),
            notation,
            within: None,
        };
        return (vec![document], Vec::new());
    }
    split(file, bytes, notation, Start::default())
}

/// The position of the input's end relative to the known text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEnd {
    /// It ends there.
    Here,
    /// It continues.
    Later,
}

/// Removes a byte order mark.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Detects the notation of a file from its beginning; `None` if more is needed.
pub(crate) fn notation(bytes: &[u8], end: InputEnd) -> Option<Notation> {
    begin(bytes, end).0
}

/// Detects the notation of a file, and the end of its first document if that is a JSON object or list. It is
/// JSON if it consists only of consecutive objects with quoted keys; YAML flow mappings and JSON between YAML
/// separators are YAML.
fn begin(bytes: &[u8], end: InputEnd) -> (Option<Notation>, Option<usize>) {
    let begun = bytes.trim_ascii_start();
    let Some(inside) = begun.strip_prefix(b"{") else {
        let known = end == InputEnd::Here || !begun.is_empty();
        return (known.then_some(Notation::Yaml), None);
    };
    let first = inside.trim_ascii_start().first();
    let Some(length) = value_end(bytes) else {
        let notation = match (end, first) {
            // The end is needed to tell JSON from a flow mapping before a YAML separator.
            (InputEnd::Later, _) => None,
            (InputEnd::Here, Some(b'"')) => Some(Notation::Json),
            (InputEnd::Here, _) => Some(Notation::Yaml),
        };
        return (notation, None);
    };
    let quoted = matches!(first, Some(b'"' | b'}'));
    let after = bytes.get(length..).unwrap_or_default().trim_ascii_start();
    let notation = match after.first() {
        None if end == InputEnd::Later => None,
        None | Some(b'{') if quoted => Some(Notation::Json),
        _ => Some(Notation::Yaml),
    };
    (notation, Some(length))
}

/// Splits a text that ends with its last document.
pub(crate) fn split<'a>(
    file: &'a Arc<str>,
    bytes: &'a [u8],
    notation: Notation,
    start: Start,
) -> (Vec<Document<'a>>, Vec<Problem>) {
    split_at(file, bytes, notation, start, &[])
}

/// The same for a text whose JSON document ends are known.
pub(crate) fn split_at<'a>(
    file: &'a Arc<str>,
    bytes: &'a [u8],
    notation: Notation,
    start: Start,
    ends: &[usize],
) -> (Vec<Document<'a>>, Vec<Problem>) {
    let (mut documents, mut problems) = (Vec::new(), Vec::new());
    match notation {
        Notation::Json => {
            let (mut rest, mut start) = (bytes, start);
            let mut ends = ends.iter();
            while !rest.trim_ascii_start().is_empty() {
                // The ends count from the beginning of the text, and `rest` is its tail.
                let known = ends.next().map(|end| end + rest.len() - bytes.len());
                // An unfinished value is a document as well: the decoder reports its error.
                let end = known.or_else(|| value_end(rest)).unwrap_or(rest.len());
                let (text, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
                documents.push(Document {
                    file,
                    text,
                    start,
                    notation,
                    within: None,
                });
                rest = after;
                if rest.is_empty() {
                    break;
                }
                start = start.after(text);
            }
        }
        Notation::Yaml => {
            for document in yaml::documents(bytes) {
                match document {
                    Ok(d) => documents.push(Document {
                        file,
                        text: d.text,
                        start: Start {
                            line: start.line + d.line,
                            column: 0,
                        },
                        notation,
                        within: None,
                    }),
                    Err(e) => problems.push(undecodable(file, bytes, start, &e)),
                }
            }
        }
    }
    (documents, problems)
}

/// The ends of the complete documents of a text that continues; for YAML, only the end of the last one.
pub(crate) fn whole_documents(bytes: &[u8], notation: Notation) -> Vec<usize> {
    match notation {
        // A `---` in a block scalar at column 0 ends it as well, so the text need not be parsed.
        Notation::Yaml => memchr::memmem::rfind(bytes, b"\n---")
            .map(|at| at + 1)
            .into_iter()
            .collect(),
        Notation::Json => {
            let (mut ends, mut end) = (Vec::new(), 0);
            while let Some(length) = value_end(bytes.get(end..).unwrap_or_default()) {
                end += length;
                ends.push(end);
            }
            ends
        }
    }
}

/// The number of line ends.
pub(crate) fn lines(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// The length of the first JSON value, with the whitespace before it. Anything but an object or a list ends
/// with its line; the decoder reports the error.
pub(crate) fn value_end(bytes: &[u8]) -> Option<usize> {
    let start = bytes.iter().position(|b| !b.is_ascii_whitespace())?;
    if !matches!(bytes.get(start), Some(b'{' | b'[')) {
        let end = memchr::memchr(b'\n', bytes.get(start..)?)?;
        return Some(start + end);
    }
    let (mut at, mut depth) = (start, 0usize);
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The position of the closing quote of a JSON string, given that of the opening one.
pub(crate) fn string_end(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::{InputEnd, notation, split, value_end, whole_documents};
    use crate::input::Notation::{Json, Yaml};
    use crate::input::Start;
    use std::sync::Arc;

    #[test]
    fn json_and_yaml_are_detected_by_the_first_character() {
        let cases = [
            ("{\"a\": 1}", Some(Json)),
            ("  {}\n{}", Some(Json)),
            ("{a: 1}", Some(Yaml)),
            ("{\"a\": 1}\n---\n{\"a\": 2}", Some(Yaml)),
            ("a: 1", Some(Yaml)),
            ("", Some(Yaml)),
            ("{\"a\": ", Some(Json)),
            ("{a: ", Some(Yaml)),
        ];
        for (text, wanted) in cases {
            assert_eq!(notation(text.as_bytes(), InputEnd::Here), wanted, "{text}");
        }
        for text in ["", "  ", "{\"a\": ", "{\"a\": 1}", "{\"a\": 1}\n"] {
            assert_eq!(notation(text.as_bytes(), InputEnd::Later), None, "{text}");
        }
    }

    #[test]
    fn values_end_at_their_closing_bracket() {
        let cases = [
            (" {\"a\": \"}\\\"\"} {}", Some(13)),
            ("[{}, [1]]x", Some(9)),
            ("{\"a\": {", None),
            ("{\"a\": \"\\", None),
            ("nonsense\n{}", Some(8)),
            ("  ", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(value_end(text.as_bytes()), wanted, "{text}");
        }
    }

    #[test]
    fn documents_have_line_offsets() {
        let file: Arc<str> = "f".into();
        let lines = |text: &str, notation| -> Vec<usize> {
            let (documents, _) = split(&file, text.as_bytes(), notation, Start { line: 10, column: 0 });
            documents.iter().map(|d| d.start.line).collect()
        };
        // Line breaks between two values belong to the second one.
        assert_eq!(lines("{}\n{\n}\n{}\n", Json), [10, 10, 12]);
        assert_eq!(lines("a: 1\n---\nb: 1\n", Yaml), [10, 12]);
    }

    #[test]
    fn blocks_end_at_document_boundaries() {
        assert_eq!(whole_documents(b"{} {} {", Json), [2, 5]);
        assert_eq!(whole_documents(b"a: 1\n---\nb: 1\n", Yaml), [5]);
        assert_eq!(whole_documents(b"a: 1\nb: 1\n", Yaml), [0usize; 0]);
    }
}
