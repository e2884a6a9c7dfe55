//! Texts in lines of a fixed width.

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
        if used == 0 {
            out.push_str(prefix.trim_end());
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::push_wrapped;

    #[test]
    fn lines_break_between_words() {
        let mut out = String::new();
        push_wrapped(&format!("one\n\n{} end", "word ".repeat(19)), "# ", &mut out);
        let words = vec!["word"; 19].join(" ");
        assert_eq!(out, format!("# one\n#\n# {words}\n# end\n"));
    }
}
