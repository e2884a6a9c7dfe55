//! Finding a path in a JSON text.

use super::parse::Cursor;
use crate::Segment;
use crate::position::member_name;

/// The offset of the last step of the path that is in the text. The text is known to be valid.
pub(crate) fn locate<'p>(text: &[u8], path: impl Iterator<Item = Segment<'p>>) -> Option<usize> {
    let mut cursor = Cursor::new(text);
    cursor.skip_space()?;
    let mut found = cursor.at();
    for segment in path {
        let step = match (cursor.peek(), segment) {
            (Some(b'{'), _) => member(&mut cursor, member_name(segment)),
            (Some(b'['), Segment::Index(index)) => element(&mut cursor, index),
            _ => None,
        };
        match step {
            Some(offset) => found = offset,
            None => break,
        }
    }
    Some(found)
}

/// Goes to the value of a member, and returns the offset of its key. Of repeated keys the last one counts.
fn member(cursor: &mut Cursor<'_>, name: Option<&str>) -> Option<usize> {
    let mut found = None;
    cursor.advance();
    while cursor.skip_space()? == b'"' {
        let key_at = cursor.at();
        cursor.advance();
        let key = cursor.string().ok()?;
        cursor.skip_space();
        cursor.advance();
        cursor.skip_space();
        if name == Some(key.as_str()) {
            found = Some((key_at, cursor.at()));
        }
        skip_value(cursor)?;
        if cursor.skip_space()? == b',' {
            cursor.advance();
        }
    }
    let (key_at, value_at) = found?;
    cursor.seek(value_at);
    Some(key_at)
}

/// Goes to an element, and returns its offset.
fn element(cursor: &mut Cursor<'_>, index: usize) -> Option<usize> {
    cursor.advance();
    for _ in 0..index {
        if cursor.skip_space()? == b']' {
            return None;
        }
        skip_value(cursor)?;
        if cursor.skip_space()? == b',' {
            cursor.advance();
        }
    }
    (cursor.skip_space()? != b']').then(|| cursor.at())
}

fn skip_value(cursor: &mut Cursor<'_>) -> Option<()> {
    let mut depth = 0usize;
    loop {
        match cursor.skip_space()? {
            b'"' => {
                cursor.advance();
                cursor.string().ok()?;
            }
            b'{' | b'[' => {
                depth += 1;
                cursor.advance();
                continue;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                cursor.advance();
            }
            b',' | b':' => {
                cursor.advance();
                continue;
            }
            _ => {
                while !matches!(
                    cursor.peek(),
                    None | Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
                ) {
                    cursor.advance();
                }
            }
        }
        if depth == 0 {
            return Some(());
        }
    }
}
