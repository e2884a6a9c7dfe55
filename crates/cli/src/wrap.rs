//! Texts in lines of a limited width.

use unicode_width::UnicodeWidthStr as _;

/// The width of lines.
const WIDTH: usize = 96;

/// Appends a text in lines that begin with a prefix. Line breaks of the text stay.
pub(crate) fn push_wrapped(text: &str, prefix: &str, out: &mut String) {
    for paragraph in text.lines() {
        let mut used = 0;
        for word in paragraph.split_whitespace() {
            if used > 0 && prefix.len() + used + 1 + word.len() > WIDTH {
                out.push('\n');
                used = 0;
            }
            if used == 0 {
                out.push_str(prefix);
            } else {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += word.len();
        }
        // An empty line of a comment keeps its mark, without a space at its end.
        if used == 0 {
            out.push_str(prefix.trim_end());
        }
        out.push('\n');
    }
}

/// The indentation of further lines of a message.
const INDENT: &str = "      ";

/// Wraps a message to a width, after a prefix of `head` columns. Nothing is cut: long words may exceed the width.
pub(crate) fn wrapped_message(text: &str, head: usize, width: usize) -> String {
    let (mut out, mut used) = (String::new(), head);
    for (n, word) in text.split(' ').enumerate() {
        if n > 0 && used + 1 + word.width() > width {
            out.push('\n');
            out.push_str(INDENT);
            used = INDENT.len();
        } else if n > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used = match word.rsplit_once('\n') {
            Some((_, last)) => last.width(),
            None => used + word.width(),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{push_wrapped, wrapped_message};

    #[test]
    fn lines_break_between_words() {
        let mut out = String::new();
        push_wrapped(&format!("one\n\n{} end", "word ".repeat(19)), "# ", &mut out);
        let words = vec!["word"; 19].join(" ");
        assert_eq!(out, format!("# one\n#\n# {words}\n# end\n"));
    }

    #[test]
    fn messages_break_between_words() {
        let wrapped = |text| wrapped_message(text, 6, 20);
        assert_eq!(wrapped("name the CRDs"), "name the CRDs");
        assert_eq!(
            wrapped("name the CRDs with --crds"),
            "name the CRDs\n      with --crds"
        );
        assert_eq!(
            wrapped("a\nbbbbbbbbbbbbbbbbbb cc"),
            "a\nbbbbbbbbbbbbbbbbbb\n      cc"
        );
    }
}
