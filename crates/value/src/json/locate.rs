//! Finding paths in a JSON text.

use super::parse::Cursor;
use crate::PathBuf;
use crate::position::{PathTree, TreeStep};

/// For each path, the offset of its last step that is in the text. The text is known to be valid.
pub(crate) fn locate_all(text: &[u8], paths: &[&PathBuf]) -> Vec<Option<usize>> {
    let mut tree = PathTree::new(paths);
    let mut cursor = Cursor::new(text);
    if cursor.skip_space().is_some() {
        tree.visit_root(cursor.at());
        // A text that ends early has no further places.
        let _ = walk(&mut cursor, &mut tree, PathTree::<usize>::ROOT);
    }
    tree.into_places()
}

/// Goes through a value that paths lead into. The place of a member is that of its key.
fn walk(cursor: &mut Cursor<'_>, tree: &mut PathTree<'_, usize>, here: usize) -> Option<()> {
    let is_object = match cursor.peek()? {
        b'{' => true,
        b'[' => false,
        _ => return skip_value(cursor),
    };
    cursor.advance();
    let mut index = 0;
    while !matches!(cursor.skip_space()?, b'}' | b']') {
        let at = cursor.at();
        let child = if is_object {
            cursor.advance();
            let key = cursor.string().ok()?;
            cursor.skip_space()?;
            cursor.advance();
            cursor.skip_space()?;
            tree.visit(here, TreeStep::Name(&key), at)
        } else {
            tree.visit(here, TreeStep::Index(index), at)
        };
        index += 1;
        // Recurses only where paths lead; other values are skipped without recursion.
        match child.filter(|child| tree.has_children(*child)) {
            Some(child) => walk(cursor, tree, child)?,
            None => skip_value(cursor)?,
        }
        if cursor.skip_space()? == b',' {
            cursor.advance();
        }
    }
    cursor.advance();
    Some(())
}

fn skip_value(cursor: &mut Cursor<'_>) -> Option<()> {
    let mut depth = 0usize;
    loop {
        match cursor.skip_space()? {
            b'"' => cursor.skip_string()?,
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
                // The text is known to be valid, so a number or literal reaches to the next delimiter.
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
