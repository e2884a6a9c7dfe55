//! The grammar of the language.

use crate::syntax::token::TokenKind as T;

/// A rule of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Rule {
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

impl Rule {
    pub(super) const ALL: [Rule; 17] = [
        Rule::Start,
        Rule::Expr,
        Rule::Or,
        Rule::And,
        Rule::Relation,
        Rule::Calc,
        Rule::Unary,
        Rule::Member,
        Rule::Primary,
        Rule::ExprList,
        Rule::ListInit,
        Rule::FieldList,
        Rule::OptField,
        Rule::MapList,
        Rule::FieldName,
        Rule::OptExpr,
        Rule::Literal,
    ];

    /// Whether the rule repeats on its left side, with alternatives that bind more or less tightly.
    pub(super) fn is_recursive(self) -> bool {
        matches!(self, Rule::Relation | Rule::Calc | Rule::Member)
    }
}

/// What a node of the tree is: the alternative of its rule that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// No alternative was taken, because of a mistake.
    Undecided,
    /// The rule has one alternative only.
    Plain,
    /// An operator between two operands.
    Binary,
    Not,
    Negate,
    Select,
    MemberCall,
    Index,
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

/// What a token or node is to the node above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Of no interest.
    Mark,
    /// The operator, or the token at which the node stands.
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
    /// The first or only operand; the left side of what repeats on its left.
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

/// A piece of a rule.
pub(super) enum Item {
    /// One token of these kinds.
    Token(Part, &'static [T]),
    /// Another rule, with the precedence that its alternatives must have.
    Call(Part, Rule, u8),
    /// The items or nothing.
    Optional(&'static [Item]),
    /// The items any number of times, at least once.
    Repeated(&'static [Item]),
    /// The items any number of times, perhaps never.
    Any(&'static [Item]),
    /// What may follow the left side of a recursive rule, any number of times: alternatives that bind as tightly as
    /// their number says.
    Suffixes(&'static [(u8, Form, &'static [Item])]),
    /// One of several alternatives.
    Either(&'static [(Form, &'static [Item])]),
}

use Item::{Any, Call, Either, Optional, Repeated, Suffixes, Token};

const OPTIONAL: Item = Optional(&[Token(Part::Optional, &[T::Question])]);
const LEADING_DOT: Item = Optional(&[Token(Part::LeadingDot, &[T::Dot])]);
const TRAILING_COMMA: Item = Optional(&[Token(Part::Mark, &[T::Comma])]);
const SIGN: Item = Optional(&[Token(Part::Sign, &[T::Minus])]);
const NAME: Item = Token(Part::Name, &[T::Identifier]);

/// What a rule consists of.
pub(super) const fn items(of: Rule) -> &'static [Item] {
    match of {
        Rule::Start => &[Call(Part::First, Rule::Expr, 0), Token(Part::Mark, &[T::End])],
        Rule::Expr => &[
            Call(Part::First, Rule::Or, 0),
            Optional(&[
                Token(Part::Operator, &[T::Question]),
                Call(Part::Second, Rule::Or, 0),
                Token(Part::Mark, &[T::Colon]),
                Call(Part::Third, Rule::Expr, 0),
            ]),
        ],
        Rule::Or => &[
            Call(Part::First, Rule::And, 0),
            Any(&[Token(Part::Operator, &[T::Or]), Call(Part::Second, Rule::And, 0)]),
        ],
        Rule::And => &[
            Call(Part::First, Rule::Relation, 0),
            Any(&[
                Token(Part::Operator, &[T::And]),
                Call(Part::Second, Rule::Relation, 0),
            ]),
        ],
        Rule::Relation => &[
            Call(Part::First, Rule::Calc, 0),
            Suffixes(&[(
                1,
                Form::Binary,
                &[
                    Token(
                        Part::Operator,
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
                    Call(Part::Second, Rule::Relation, 2),
                ],
            )]),
        ],
        Rule::Calc => &[
            Call(Part::First, Rule::Unary, 0),
            Suffixes(&[
                (
                    2,
                    Form::Binary,
                    &[
                        Token(Part::Operator, &[T::Star, T::Slash, T::Percent]),
                        Call(Part::Second, Rule::Calc, 3),
                    ],
                ),
                (
                    1,
                    Form::Binary,
                    &[
                        Token(Part::Operator, &[T::Plus, T::Minus]),
                        Call(Part::Second, Rule::Calc, 2),
                    ],
                ),
            ]),
        ],
        Rule::Unary => &[Either(&[
            (Form::Plain, &[Call(Part::First, Rule::Member, 0)]),
            (
                Form::Not,
                &[
                    Repeated(&[Token(Part::Operator, &[T::Not])]),
                    Call(Part::First, Rule::Member, 0),
                ],
            ),
            (
                Form::Negate,
                &[
                    Repeated(&[Token(Part::Operator, &[T::Minus])]),
                    Call(Part::First, Rule::Member, 0),
                ],
            ),
        ])],
        Rule::Member => &[
            Call(Part::First, Rule::Primary, 0),
            Suffixes(&[
                (
                    3,
                    Form::Select,
                    &[
                        Token(Part::Operator, &[T::Dot]),
                        OPTIONAL,
                        Call(Part::Name, Rule::FieldName, 0),
                    ],
                ),
                (
                    2,
                    Form::MemberCall,
                    &[
                        Token(Part::Operator, &[T::Dot]),
                        NAME,
                        Token(Part::Open, &[T::LeftParen]),
                        Optional(&[Call(Part::Items, Rule::ExprList, 0)]),
                        Token(Part::Mark, &[T::RightParen]),
                    ],
                ),
                (
                    1,
                    Form::Index,
                    &[
                        Token(Part::Operator, &[T::LeftBracket]),
                        OPTIONAL,
                        Call(Part::Second, Rule::Expr, 0),
                        Token(Part::Mark, &[T::RightBracket]),
                    ],
                ),
            ]),
        ],
        Rule::Primary => &[Either(&[
            (Form::Ident, &[LEADING_DOT, NAME]),
            (
                Form::GlobalCall,
                &[
                    LEADING_DOT,
                    NAME,
                    Token(Part::Operator, &[T::LeftParen]),
                    Optional(&[Call(Part::Items, Rule::ExprList, 0)]),
                    Token(Part::Mark, &[T::RightParen]),
                ],
            ),
            (
                Form::Nested,
                &[
                    Token(Part::Mark, &[T::LeftParen]),
                    Call(Part::First, Rule::Expr, 0),
                    Token(Part::Mark, &[T::RightParen]),
                ],
            ),
            (
                Form::List,
                &[
                    Token(Part::Operator, &[T::LeftBracket]),
                    Optional(&[Call(Part::Items, Rule::ListInit, 0)]),
                    TRAILING_COMMA,
                    Token(Part::Mark, &[T::RightBracket]),
                ],
            ),
            (
                Form::Map,
                &[
                    Token(Part::Operator, &[T::LeftBrace]),
                    Optional(&[Call(Part::Items, Rule::MapList, 0)]),
                    TRAILING_COMMA,
                    Token(Part::Mark, &[T::RightBrace]),
                ],
            ),
            (
                Form::Struct,
                &[
                    LEADING_DOT,
                    NAME,
                    Any(&[Token(Part::Mark, &[T::Dot]), NAME]),
                    Token(Part::Operator, &[T::LeftBrace]),
                    Optional(&[Call(Part::Items, Rule::FieldList, 0)]),
                    TRAILING_COMMA,
                    Token(Part::Mark, &[T::RightBrace]),
                ],
            ),
            (Form::Constant, &[Call(Part::First, Rule::Literal, 0)]),
        ])],
        Rule::ExprList => &[
            Call(Part::Value, Rule::Expr, 0),
            Any(&[Token(Part::Mark, &[T::Comma]), Call(Part::Value, Rule::Expr, 0)]),
        ],
        Rule::ListInit => &[
            Call(Part::Value, Rule::OptExpr, 0),
            Any(&[
                Token(Part::Mark, &[T::Comma]),
                Call(Part::Value, Rule::OptExpr, 0),
            ]),
        ],
        Rule::FieldList => &[
            Call(Part::Key, Rule::OptField, 0),
            Token(Part::Operator, &[T::Colon]),
            Call(Part::Value, Rule::Expr, 0),
            Any(&[
                Token(Part::Mark, &[T::Comma]),
                Call(Part::Key, Rule::OptField, 0),
                Token(Part::Operator, &[T::Colon]),
                Call(Part::Value, Rule::Expr, 0),
            ]),
        ],
        Rule::OptField => &[OPTIONAL, Call(Part::Name, Rule::FieldName, 0)],
        Rule::MapList => &[
            Call(Part::Key, Rule::OptExpr, 0),
            Token(Part::Operator, &[T::Colon]),
            Call(Part::Value, Rule::Expr, 0),
            Any(&[
                Token(Part::Mark, &[T::Comma]),
                Call(Part::Key, Rule::OptExpr, 0),
                Token(Part::Operator, &[T::Colon]),
                Call(Part::Value, Rule::Expr, 0),
            ]),
        ],
        Rule::FieldName => &[Either(&[
            (Form::Simple, &[NAME]),
            (Form::Escaped, &[Token(Part::Name, &[T::EscapedIdentifier])]),
        ])],
        Rule::OptExpr => &[OPTIONAL, Call(Part::First, Rule::Expr, 0)],
        Rule::Literal => &[Either(&[
            (Form::Int, &[SIGN, Token(Part::Literal, &[T::Int])]),
            (Form::Uint, &[Token(Part::Literal, &[T::Uint])]),
            (Form::Double, &[SIGN, Token(Part::Literal, &[T::Float])]),
            (Form::String, &[Token(Part::Literal, &[T::String])]),
            (Form::Bytes, &[Token(Part::Literal, &[T::Bytes])]),
            (Form::True, &[Token(Part::Literal, &[T::True])]),
            (Form::False, &[Token(Part::Literal, &[T::False])]),
            (Form::Null, &[Token(Part::Literal, &[T::Null])]),
        ])],
    }
}
