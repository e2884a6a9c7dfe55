//! Indented JSON, for requests with `pretty` and for interactive clients.

use crate::api::RequestMeta;
use crate::codec::media;

/// The interactive clients, by the beginnings of their names.
const BY_HAND: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];

/// Returns whether a request asks for indented JSON.
pub(crate) fn is_wanted(head: &RequestMeta) -> bool {
    if media::pretty(head.accept.as_deref()) {
        return true;
    }
    match head.query.get("pretty") {
        None | Some("") => BY_HAND.iter().any(|c| head.user_agent.starts_with(c)),
        // The texts that Go's `strconv.ParseBool` takes for true; any other counts as false.
        Some(asked) => matches!(asked, "1" | "t" | "T" | "TRUE" | "true" | "True"),
    }
}

/// Indents JSON that arrives in pieces.
#[derive(Debug)]
pub(crate) struct Indenter {
    depth: usize,
    /// True if a bracket was opened and nothing followed it yet.
    opened: bool,
    in_text: bool,
    escaped: bool,
    /// The remaining budget for white space, in bytes.
    room: usize,
}

/// The budget for white space of any document, in bytes.
const FREE_SPACE: usize = 16 << 20;

/// The additional budget for white space per byte of text. Indentation grows with the depth, so it could be thousands
/// of times the text; once the budget is spent, the rest is not indented.
const SPACE_PER_BYTE: usize = 4;

impl Default for Indenter {
    fn default() -> Self {
        Indenter {
            depth: 0,
            opened: false,
            in_text: false,
            escaped: false,
            room: FREE_SPACE,
        }
    }
}

impl Indenter {
    /// Appends a piece, indented.
    pub(crate) fn write(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.room += SPACE_PER_BYTE * piece.len();
        for &byte in piece {
            if self.in_text {
                out.push(byte);
                self.in_text = self.escaped || byte != b'"';
                self.escaped = !self.escaped && byte == b'\\';
                continue;
            }
            // Existing white space, such as the final line feed, is replaced.
            if byte.is_ascii_whitespace() {
                continue;
            }
            if matches!(byte, b'}' | b']') {
                self.depth = self.depth.saturating_sub(1);
                if !self.opened {
                    self.line(out);
                }
                self.opened = false;
                out.push(byte);
                continue;
            }
            if self.opened {
                self.opened = false;
                self.line(out);
            }
            out.push(byte);
            match byte {
                b'{' | b'[' => {
                    self.depth += 1;
                    self.opened = true;
                }
                b',' => self.line(out),
                b':' => out.push(b' '),
                b'"' => self.in_text = true,
                _ => {}
            }
        }
    }

    fn line(&mut self, out: &mut Vec<u8>) {
        let space = 1 + 2 * self.depth;
        if let Some(room) = self.room.checked_sub(space) {
            self.room = room;
            out.push(b'\n');
            out.extend(std::iter::repeat_n(b' ', space - 1));
        } else {
            // Later lines stay unindented, too, even if a shorter one would fit.
            self.room = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Indenter;

    #[test]
    fn indentation_depth_is_bounded() {
        let depth = 9_000;
        let text = "[".repeat(depth) + &"0,".repeat(100_000) + "0" + &"]".repeat(depth);
        let (mut indenter, mut out) = (Indenter::default(), Vec::new());
        indenter.write(text.as_bytes(), &mut out);
        assert!(
            out.len() <= super::FREE_SPACE + (1 + super::SPACE_PER_BYTE) * text.len(),
            "{} bytes",
            out.len()
        );
        out.retain(|byte| !byte.is_ascii_whitespace());
        assert!(out == text.as_bytes());
    }

    #[test]
    fn indents_chunks_of_any_size() {
        let text = br#"{"a":[],"b":{},"c":[1,{"d":"x,\"{\\"}],"e":null}"#;
        let want = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": \"x,\\\"{\\\\\"\n    }\n  ],\n  \
                    \"e\": null\n}";
        for size in 1..=text.len() {
            let (mut indenter, mut out) = (Indenter::default(), Vec::new());
            for piece in text.chunks(size) {
                indenter.write(piece, &mut out);
            }
            assert_eq!(String::from_utf8_lossy(&out), want, "in pieces of {size}");
        }
    }
}
