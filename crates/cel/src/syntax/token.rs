//! The tokens of the language.

/// The kinds of tokens, each with its name in messages about expected tokens.
macro_rules! token_kinds {
    ($($kind:ident $name:literal)*) => {
        /// The kind of a token.
        ///
        /// The order is that of the ANTLR grammar, in which messages list expected tokens.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub(crate) enum TokenKind {
            $($kind),*
        }

        impl TokenKind {
            /// All kinds, in order.
            pub(crate) const ALL: &[TokenKind] = &[$(TokenKind::$kind),*];

            /// The name in messages about expected tokens.
            pub(crate) fn display_name(self) -> &'static str {
                match self {
                    $(TokenKind::$kind => $name),*
                }
            }
        }
    };
}

token_kinds! {
    End "<EOF>"
    Equals "'=='"
    NotEquals "'!='"
    In "'in'"
    Less "'<'"
    LessEquals "'<='"
    GreaterEquals "'>='"
    Greater "'>'"
    And "'&&'"
    Or "'||'"
    LeftBracket "'['"
    RightBracket "']'"
    LeftBrace "'{'"
    RightBrace "'}'"
    LeftParen "'('"
    RightParen "')'"
    Dot "'.'"
    Comma "','"
    Minus "'-'"
    Not "'!'"
    Question "'?'"
    Colon "':'"
    Plus "'+'"
    Star "'*'"
    Slash "'/'"
    Percent "'%'"
    True "'true'"
    False "'false'"
    Null "'null'"
    Whitespace "WHITESPACE"
    Comment "COMMENT"
    Float "NUM_FLOAT"
    Int "NUM_INT"
    Uint "NUM_UINT"
    String "STRING"
    Bytes "BYTES"
    Identifier "IDENTIFIER"
    EscapedIdentifier "ESC_IDENTIFIER"
}

impl TokenKind {
    /// Returns whether the parser skips it.
    pub(crate) fn is_hidden(self) -> bool {
        matches!(self, TokenKind::Whitespace | TokenKind::Comment)
    }
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// The start in code points.
    pub(crate) offset: u32,
    /// The start in bytes.
    pub(crate) start: u32,
    /// The end in bytes.
    pub(crate) end: u32,
}

impl Token {
    /// Its text in the source.
    pub(crate) fn text(self, source: &str) -> &str {
        source
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// A set of kinds of token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TokenSet(u64);

impl TokenSet {
    pub(crate) const EMPTY: TokenSet = TokenSet(0);

    pub(crate) const fn from_kinds(kinds: &[TokenKind]) -> TokenSet {
        let mut bits = 0;
        let mut rest = kinds;
        while let [kind, others @ ..] = rest {
            // All kinds fit the 64 bits of the set: there are fewer than 40.
            bits |= 1 << *kind as u8;
            rest = others;
        }
        TokenSet(bits)
    }

    pub(crate) const fn contains(self, kind: TokenKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    pub(crate) const fn union(self, other: TokenSet) -> TokenSet {
        TokenSet(self.0 | other.0)
    }

    pub(crate) const fn is_disjoint(self, other: TokenSet) -> bool {
        self.0 & other.0 == 0
    }

    /// The kinds in the set, in grammar order.
    pub(crate) fn iter(self) -> impl Iterator<Item = TokenKind> {
        TokenKind::ALL
            .iter()
            .copied()
            .filter(move |kind| self.contains(*kind))
    }
}

/// `'('`, or `{'(', '['}` for several.
impl std::fmt::Display for TokenSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let several = self.0.count_ones() > 1;
        // ANTLR writes a set of one token without braces.
        f.write_str(if several { "{" } else { "" })?;
        for (n, kind) in self.iter().enumerate() {
            f.write_str(if n > 0 { ", " } else { "" })?;
            f.write_str(kind.display_name())?;
        }
        f.write_str(if several { "}" } else { "" })
    }
}
