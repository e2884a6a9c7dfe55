//! Where in a text a path of its document stands. It is looked up only for errors that are shown, so that
//! decoding pays nothing for it.

use crate::{DecodeError, Limits, PathBuf, Segment, json, yaml};

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// The position of a byte.
    pub fn of_offset(text: &[u8], offset: usize) -> Position {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let column = String::from_utf8_lossy(before.get(line_start..).unwrap_or_default());
        Position {
            line,
            column: column.chars().count() + 1,
        }
    }

    /// The position of a decoding error, where it is known.
    pub fn of_error(text: &[u8], error: &DecodeError) -> Option<Position> {
        error.offset().map(|offset| Position::of_offset(text, offset))
    }

    /// The position of a path in a JSON text: of the key for a field, of the value for an element. Where the path
    /// leaves the document (a field that is missing), it is the position of the last step that is there.
    pub fn in_json(text: &[u8], path: &PathBuf) -> Option<Position> {
        json::locate(text, path.segments()).map(|offset| Position::of_offset(text, offset))
    }

    /// The position of a path in the first document of a YAML text, as [`Position::in_json`].
    pub fn in_yaml(text: &[u8], path: &PathBuf, limits: Limits) -> Option<Position> {
        let found = Position::all_in_yaml(text, std::slice::from_ref(path), limits);
        found.into_iter().next().flatten()
    }

    /// The positions of several paths, for which the text is read once. JSON texts can be read so, too.
    pub fn all_in_yaml(text: &[u8], paths: &[PathBuf], limits: Limits) -> Vec<Option<Position>> {
        let position = |(line, column)| Position {
            line: line + 1,
            column: column + 1,
        };
        match yaml::locate(text, paths, limits) {
            Some(found) => found.into_iter().map(|at| at.map(position)).collect(),
            None => vec![None; paths.len()],
        }
    }
}

/// The member name that a step goes to, if it goes to one.
pub(crate) fn member_name<'a>(segment: Segment<'a>) -> Option<&'a str> {
    match segment {
        Segment::Field(name) | Segment::Key(name) => Some(name),
        Segment::Index(_) => None,
    }
}
