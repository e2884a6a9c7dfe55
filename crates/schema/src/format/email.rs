//! Mail addresses (RFC 5322) as Go parses them: with or without a name, with comments, as a group of one.

use super::address;

/// Returns whether the text is one address.
pub(super) fn is_address(s: &str) -> bool {
    let mut rest = AddressParser(s);
    let one = rest.address(GroupSyntax::Allowed) == Some(1);
    one && rest.skip_comments().is_some() && rest.0.is_empty()
}

/// The treatment of groups of addresses.
#[derive(Clone, Copy, PartialEq)]
enum GroupSyntax {
    Allowed,
    Refused,
}

/// The text left to parse. Methods consume from its front; `None` means that the element is not there.
#[derive(Clone, Copy)]
struct AddressParser<'s>(&'s str);

impl<'s> AddressParser<'s> {
    /// Parses an address or a group and returns the number of addresses.
    fn address(&mut self, groups: GroupSyntax) -> Option<usize> {
        self.skip_space();
        if self.0.is_empty() {
            return None;
        }
        // As in Go, an address without a name is tried first, on a copy.
        let mut bare = *self;
        if bare.spec().is_some() {
            *self = bare;
            self.skip_space();
            if self.take('(') {
                self.comment()?;
            }
            return Some(1);
        }
        if !self.0.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if groups == GroupSyntax::Allowed && self.take(':') {
            return self.group();
        }
        (self.take('<') && self.spec().is_some() && self.take('>')).then_some(1)
    }

    /// Parses the addresses of a group and its end.
    fn group(&mut self) -> Option<usize> {
        let mut members = 0;
        self.skip_space();
        while !self.take(';') {
            if members > 0 && !self.take(',') {
                return None;
            }
            members += self.address(GroupSyntax::Refused)?;
            self.skip_comments()?;
        }
        self.skip_comments()?;
        Some(members)
    }

    /// Parses `local@domain`.
    fn spec(&mut self) -> Option<()> {
        self.skip_space();
        if self.0.starts_with('"') {
            self.quoted().filter(|text| !text.is_empty())?;
        } else {
            self.dot_atom()?;
        }
        if !self.take('@') {
            return None;
        }
        self.skip_space();
        if !self.take('[') {
            return self.dot_atom();
        }
        let (literal, rest) = self.0.split_once(']')?;
        self.0 = rest;
        let plain = literal.chars().all(|c| visible(c) && !matches!(c, '[' | '\\'));
        (plain && address::is_ip(literal)).then_some(())
    }

    /// Parses one or more words.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if words > 0 {
                self.skip_comments()?;
            }
            self.skip_space();
            if self.0.is_empty() {
                return Some(());
            }
            let mut word = *self;
            let found = if word.0.starts_with('"') {
                word.quoted().is_some()
            } else {
                word.atom().is_some()
            };
            if !found {
                return (words > 0).then_some(());
            }
            *self = word;
            words += 1;
        }
    }

    fn atom(&mut self) -> Option<&'s str> {
        const SPECIAL: [char; 12] = ['(', ')', '<', '>', '[', ']', ':', ';', '@', '\\', ',', '"'];
        let end = self
            .0
            .find(|c| !visible(c) || SPECIAL.contains(&c))
            .unwrap_or(self.0.len());
        let (atom, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        Some(atom).filter(|atom| !atom.is_empty())
    }

    fn dot_atom(&mut self) -> Option<()> {
        let atom = self.atom()?;
        let dotted = atom.starts_with('.') || atom.ends_with('.') || atom.contains("..");
        (!dotted).then_some(())
    }

    /// Parses a quoted string and returns its content.
    fn quoted(&mut self) -> Option<&'s str> {
        let inner = self.0.strip_prefix('"')?;
        let mut escaped = false;
        for (i, c) in inner.char_indices() {
            if c == '"' && !escaped {
                let (text, rest) = inner.split_at_checked(i)?;
                self.0 = rest.strip_prefix('"')?;
                return Some(text);
            }
            if !visible(c) && !matches!(c, ' ' | '\t') {
                return None;
            }
            escaped = c == '\\' && !escaped;
        }
        None
    }

    /// Parses the rest of a comment after its first parenthesis.
    fn comment(&mut self) -> Option<()> {
        let mut depth = 1;
        let mut escaped = false;
        for (i, c) in self.0.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.0 = self.0.get(i + 1..)?;
                return Some(());
            }
        }
        None
    }

    fn skip_comments(&mut self) -> Option<()> {
        self.skip_space();
        while self.take('(') {
            self.comment()?;
            self.skip_space();
        }
        Some(())
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, c: char) -> bool {
        let rest = self.0.strip_prefix(c);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}

fn visible(c: char) -> bool {
    matches!(c, '!'..='~') || !c.is_ascii()
}
