//! The CEL grammar as data.

use crate::syntax::token::TokenKind as T;

/// A rule of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum GrammarRule {
    Start,
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    ExprList,
    ListInit,
    FieldList,
    OptField,
    MapList,
    FieldName,
    OptExpr,
    Literal,
}

impl GrammarRule {
    pub(super) const ALL: [GrammarRule; 17] = [
        GrammarRule::Start,
        GrammarRule::Expr,
        GrammarRule::Or,
        GrammarRule::And,
        GrammarRule::Relation,
        GrammarRule::Calc,
        GrammarRule::Unary,
        GrammarRule::Member,
        GrammarRule::Primary,
        GrammarRule::ExprList,
        GrammarRule::ListInit,
        GrammarRule::FieldList,
        GrammarRule::OptField,
        GrammarRule::MapList,
        GrammarRule::FieldName,
        GrammarRule::OptExpr,
        GrammarRule::Literal,
    ];

    /// Returns whether the rule is left-recursive, with suffixes of different precedence.
    pub(super) fn is_recursive(self) -> bool {
        matches!(
            self,
            GrammarRule::Relation | GrammarRule::Calc | GrammarRule::Member
        )
    }
}

/// The label of a parse node: the alternative of its rule that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AltLabel {
    /// No alternative was taken, because of a syntax error.
    Undecided,
    /// The rule has one alternative only.
    Plain,
    /// An operator between two operands.
    Binary,
    Not,
    Negate,
    Select,
    MemberCall,
    TokenIndex,
    Ident,
    GlobalCall,
    Nested,
    List,
    Map,
    Struct,
    Constant,
    Simple,
    Escaped,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    True,
    False,
    Null,
}

/// The role of a token or node in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildRole {
    /// None.
    Mark,
    /// The operator, or the token that determines the position of the node.
    Operator,
    /// The question mark of optional syntax.
    Optional,
    /// The dot before an absolute name.
    LeadingDot,
    /// A name.
    Name,
    /// The parenthesis of a member call.
    Open,
    /// The arguments, elements or entries.
    Items,
    /// The first or only operand; the left operand of a left-recursive rule.
    First,
    /// The second operand, or all operands but the first of a chain.
    Second,
    /// The third operand.
    Third,
    /// A key or field of an entry.
    Key,
    /// A value of an entry.
    Value,
    /// The sign of a number.
    Sign,
    /// A literal.
    Literal,
}

/// An item of a rule.
pub(super) enum GrammarItem {
    /// One token of these kinds.
    Token(ChildRole, &'static [T]),
    /// Another rule, with the precedence that its alternatives must have.
    Call(ChildRole, GrammarRule, u8),
    /// Optional items.
    Optional(&'static [GrammarItem]),
    /// Items repeated one or more times.
    Repeated(&'static [GrammarItem]),
    /// Items repeated zero or more times.
    Any(&'static [GrammarItem]),
    /// The suffixes of a left-recursive rule, repeated zero or more times, with their precedence.
    Suffixes(&'static [(u8, AltLabel, &'static [GrammarItem])]),
    /// One of several alternatives.
    Either(&'static [(AltLabel, &'static [GrammarItem])]),
}

use GrammarItem::{Any, Call, Either, Optional, Repeated, Suffixes, Token};

const OPTIONAL: GrammarItem = Optional(&[Token(ChildRole::Optional, &[T::Question])]);
const LEADING_DOT: GrammarItem = Optional(&[Token(ChildRole::LeadingDot, &[T::Dot])]);
const TRAILING_COMMA: GrammarItem = Optional(&[Token(ChildRole::Mark, &[T::Comma])]);
const SIGN: GrammarItem = Optional(&[Token(ChildRole::Sign, &[T::Minus])]);
const NAME: GrammarItem = Token(ChildRole::Name, &[T::Identifier]);

/// The items of a rule.
pub(super) const fn items(of: GrammarRule) -> &'static [GrammarItem] {
    match of {
        GrammarRule::Start => &[
            Call(ChildRole::First, GrammarRule::Expr, 0),
            Token(ChildRole::Mark, &[T::End]),
        ],
        GrammarRule::Expr => &[
            Call(ChildRole::First, GrammarRule::Or, 0),
            Optional(&[
                Token(ChildRole::Operator, &[T::Question]),
                Call(ChildRole::Second, GrammarRule::Or, 0),
                Token(ChildRole::Mark, &[T::Colon]),
                Call(ChildRole::Third, GrammarRule::Expr, 0),
            ]),
        ],
        GrammarRule::Or => &[
            Call(ChildRole::First, GrammarRule::And, 0),
            Any(&[
                Token(ChildRole::Operator, &[T::Or]),
                Call(ChildRole::Second, GrammarRule::And, 0),
            ]),
        ],
        GrammarRule::And => &[
            Call(ChildRole::First, GrammarRule::Relation, 0),
            Any(&[
                Token(ChildRole::Operator, &[T::And]),
                Call(ChildRole::Second, GrammarRule::Relation, 0),
            ]),
        ],
        GrammarRule::Relation => &[
            Call(ChildRole::First, GrammarRule::Calc, 0),
            Suffixes(&[(
                1,
                AltLabel::Binary,
                &[
                    Token(
                        ChildRole::Operator,
                        &[
                            T::Less,
                            T::LessEquals,
                            T::GreaterEquals,
                            T::Greater,
                            T::Equals,
                            T::NotEquals,
                            T::In,
                        ],
                    ),
                    // A precedence above that of the operator makes it left-associative.
                    Call(ChildRole::Second, GrammarRule::Relation, 2),
                ],
            )]),
        ],
        GrammarRule::Calc => &[
            Call(ChildRole::First, GrammarRule::Unary, 0),
            Suffixes(&[
                (
                    2,
                    AltLabel::Binary,
                    &[
                        Token(ChildRole::Operator, &[T::Star, T::Slash, T::Percent]),
                        Call(ChildRole::Second, GrammarRule::Calc, 3),
                    ],
                ),
                (
                    1,
                    AltLabel::Binary,
                    &[
                        Token(ChildRole::Operator, &[T::Plus, T::Minus]),
                        Call(ChildRole::Second, GrammarRule::Calc, 2),
                    ],
                ),
            ]),
        ],
        GrammarRule::Unary => &[Either(&[
            // The order of alternatives is that of `CEL.g4`: if several match, ANTLR takes the first. A number with a
            // sign is therefore a member, not a negation.
            (AltLabel::Plain, &[Call(ChildRole::First, GrammarRule::Member, 0)]),
            (
                AltLabel::Not,
                &[
                    Repeated(&[Token(ChildRole::Operator, &[T::Not])]),
                    Call(ChildRole::First, GrammarRule::Member, 0),
                ],
            ),
            (
                AltLabel::Negate,
                &[
                    Repeated(&[Token(ChildRole::Operator, &[T::Minus])]),
                    Call(ChildRole::First, GrammarRule::Member, 0),
                ],
            ),
        ])],
        GrammarRule::Member => &[
            Call(ChildRole::First, GrammarRule::Primary, 0),
            Suffixes(&[
                (
                    3,
                    AltLabel::Select,
                    &[
                        Token(ChildRole::Operator, &[T::Dot]),
                        OPTIONAL,
                        Call(ChildRole::Name, GrammarRule::FieldName, 0),
                    ],
                ),
                (
                    2,
                    AltLabel::MemberCall,
                    &[
                        Token(ChildRole::Operator, &[T::Dot]),
                        NAME,
                        Token(ChildRole::Open, &[T::LeftParen]),
                        Optional(&[Call(ChildRole::Items, GrammarRule::ExprList, 0)]),
                        Token(ChildRole::Mark, &[T::RightParen]),
                    ],
                ),
                (
                    1,
                    AltLabel::TokenIndex,
                    &[
                        Token(ChildRole::Operator, &[T::LeftBracket]),
                        OPTIONAL,
                        Call(ChildRole::Second, GrammarRule::Expr, 0),
                        Token(ChildRole::Mark, &[T::RightBracket]),
                    ],
                ),
            ]),
        ],
        GrammarRule::Primary => &[Either(&[
            // A name, a call and a message begin alike, so the prediction looks ahead to the parenthesis or brace.
            (AltLabel::Ident, &[LEADING_DOT, NAME]),
            (
                AltLabel::GlobalCall,
                &[
                    LEADING_DOT,
                    NAME,
                    Token(ChildRole::Operator, &[T::LeftParen]),
                    Optional(&[Call(ChildRole::Items, GrammarRule::ExprList, 0)]),
                    Token(ChildRole::Mark, &[T::RightParen]),
                ],
            ),
            (
                AltLabel::Nested,
                &[
                    Token(ChildRole::Mark, &[T::LeftParen]),
                    Call(ChildRole::First, GrammarRule::Expr, 0),
                    Token(ChildRole::Mark, &[T::RightParen]),
                ],
            ),
            (
                AltLabel::List,
                &[
                    Token(ChildRole::Operator, &[T::LeftBracket]),
                    Optional(&[Call(ChildRole::Items, GrammarRule::ListInit, 0)]),
                    TRAILING_COMMA,
                    Token(ChildRole::Mark, &[T::RightBracket]),
                ],
            ),
            (
                AltLabel::Map,
                &[
                    Token(ChildRole::Operator, &[T::LeftBrace]),
                    Optional(&[Call(ChildRole::Items, GrammarRule::MapList, 0)]),
                    TRAILING_COMMA,
                    Token(ChildRole::Mark, &[T::RightBrace]),
                ],
            ),
            (
                AltLabel::Struct,
                &[
                    LEADING_DOT,
                    NAME,
                    Any(&[Token(ChildRole::Mark, &[T::Dot]), NAME]),
                    Token(ChildRole::Operator, &[T::LeftBrace]),
                    Optional(&[Call(ChildRole::Items, GrammarRule::FieldList, 0)]),
                    TRAILING_COMMA,
                    Token(ChildRole::Mark, &[T::RightBrace]),
                ],
            ),
            (
                AltLabel::Constant,
                &[Call(ChildRole::First, GrammarRule::Literal, 0)],
            ),
        ])],
        GrammarRule::ExprList => &[
            Call(ChildRole::Value, GrammarRule::Expr, 0),
            Any(&[
                Token(ChildRole::Mark, &[T::Comma]),
                Call(ChildRole::Value, GrammarRule::Expr, 0),
            ]),
        ],
        GrammarRule::ListInit => &[
            Call(ChildRole::Value, GrammarRule::OptExpr, 0),
            Any(&[
                Token(ChildRole::Mark, &[T::Comma]),
                Call(ChildRole::Value, GrammarRule::OptExpr, 0),
            ]),
        ],
        GrammarRule::FieldList => &[
            Call(ChildRole::Key, GrammarRule::OptField, 0),
            Token(ChildRole::Operator, &[T::Colon]),
            Call(ChildRole::Value, GrammarRule::Expr, 0),
            Any(&[
                Token(ChildRole::Mark, &[T::Comma]),
                Call(ChildRole::Key, GrammarRule::OptField, 0),
                Token(ChildRole::Operator, &[T::Colon]),
                Call(ChildRole::Value, GrammarRule::Expr, 0),
            ]),
        ],
        GrammarRule::OptField => &[OPTIONAL, Call(ChildRole::Name, GrammarRule::FieldName, 0)],
        GrammarRule::MapList => &[
            Call(ChildRole::Key, GrammarRule::OptExpr, 0),
            Token(ChildRole::Operator, &[T::Colon]),
            Call(ChildRole::Value, GrammarRule::Expr, 0),
            Any(&[
                Token(ChildRole::Mark, &[T::Comma]),
                Call(ChildRole::Key, GrammarRule::OptExpr, 0),
                Token(ChildRole::Operator, &[T::Colon]),
                Call(ChildRole::Value, GrammarRule::Expr, 0),
            ]),
        ],
        GrammarRule::FieldName => &[Either(&[
            (AltLabel::Simple, &[NAME]),
            (
                AltLabel::Escaped,
                &[Token(ChildRole::Name, &[T::EscapedIdentifier])],
            ),
        ])],
        GrammarRule::OptExpr => &[OPTIONAL, Call(ChildRole::First, GrammarRule::Expr, 0)],
        GrammarRule::Literal => &[Either(&[
            // The sign belongs to the literal, because the smallest integer has no positive counterpart.
            (AltLabel::Int, &[SIGN, Token(ChildRole::Literal, &[T::Int])]),
            (AltLabel::Uint, &[Token(ChildRole::Literal, &[T::Uint])]),
            (AltLabel::Double, &[SIGN, Token(ChildRole::Literal, &[T::Float])]),
            (AltLabel::String, &[Token(ChildRole::Literal, &[T::String])]),
            (AltLabel::Bytes, &[Token(ChildRole::Literal, &[T::Bytes])]),
            (AltLabel::True, &[Token(ChildRole::Literal, &[T::True])]),
            (AltLabel::False, &[Token(ChildRole::Literal, &[T::False])]),
            (AltLabel::Null, &[Token(ChildRole::Literal, &[T::Null])]),
        ])],
    }
}
