//! The CEL grammar as data.

use crate::syntax::token::TokenKind as T;

macro_rules! rules {
    ($($rule:ident)*) => {
        /// A rule of the grammar.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub(super) enum GrammarRule {
            $($rule),*
        }

        impl GrammarRule {
            pub(super) const ALL: [GrammarRule; [$(stringify!($rule)),*].len()] = [$(GrammarRule::$rule),*];
        }
    };
}

rules! {
    Start Expr Or And Relation Calc Unary Member Primary ExprList ListInit FieldList OptField MapList FieldName OptExpr
    Literal
}

impl GrammarRule {
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

/// Items in the notation of grammars:
///
/// - `Role: Rule` calls a rule; `Role: Rule(2)` calls it with a precedence,
/// - `Role = Kind` is a token, `Role = [Kind Kind]` a token of several kinds,
/// - `?{…}`, `+{…}` and `*{…}` repeat items,
/// - `either{Label {…}}` has alternatives, `suffixes{1 Label {…}}` those of a left-recursive rule.
macro_rules! items {
    (@[$($item:expr,)*]) => { &[$($item),*] };
    (@[$($item:expr,)*] $role:ident: $rule:ident($precedence:literal) $($rest:tt)*) => {
        items!(@[$($item,)* GrammarItem::Call(ChildRole::$role, GrammarRule::$rule, $precedence),] $($rest)*)
    };
    (@[$($item:expr,)*] $role:ident: $rule:ident $($rest:tt)*) => {
        items!(@[$($item,)* GrammarItem::Call(ChildRole::$role, GrammarRule::$rule, 0),] $($rest)*)
    };
    (@[$($item:expr,)*] $role:ident = [$($kind:ident)*] $($rest:tt)*) => {
        items!(@[$($item,)* GrammarItem::Token(ChildRole::$role, &[$(T::$kind),*]),] $($rest)*)
    };
    (@[$($item:expr,)*] $role:ident = $kind:ident $($rest:tt)*) => {
        items!(@[$($item,)* GrammarItem::Token(ChildRole::$role, &[T::$kind]),] $($rest)*)
    };
    (@[$($item:expr,)*] ? {$($part:tt)*} $($rest:tt)*) => {
        items!(@[$($item,)* GrammarItem::Optional(items!($($part)*)),] $($rest)*)
    };
    (@[$($item:expr,)*] + {$($part:tt)*} $($rest:tt)*) => {
        items!(@[$($item,)* GrammarItem::Repeated(items!($($part)*)),] $($rest)*)
    };
    (@[$($item:expr,)*] * {$($part:tt)*} $($rest:tt)*) => {
        items!(@[$($item,)* GrammarItem::Any(items!($($part)*)),] $($rest)*)
    };
    (@[$($item:expr,)*] either {$($label:ident {$($part:tt)*})*}) => {
        &[$($item,)* GrammarItem::Either(&[$((AltLabel::$label, items!($($part)*))),*])]
    };
    (@[$($item:expr,)*] suffixes {$($precedence:literal $label:ident {$($part:tt)*})*}) => {
        &[$($item,)* GrammarItem::Suffixes(&[$(($precedence, AltLabel::$label, items!($($part)*))),*])]
    };
    ($($source:tt)*) => { items!(@[] $($source)*) };
}

/// The items of a rule.
pub(super) const fn items(of: GrammarRule) -> &'static [GrammarItem] {
    match of {
        GrammarRule::Start => items! { First: Expr Mark = End },
        GrammarRule::Expr => items! {
            First: Or ?{ Operator = Question Second: Or Mark = Colon Third: Expr }
        },
        GrammarRule::Or => items! { First: And *{ Operator = Or Second: And } },
        GrammarRule::And => items! { First: Relation *{ Operator = And Second: Relation } },
        // A precedence above that of the operator makes it left-associative.
        GrammarRule::Relation => items! {
            First: Calc suffixes {
                1 Binary {
                    Operator = [Less LessEquals GreaterEquals Greater Equals NotEquals In]
                    Second: Relation(2)
                }
            }
        },
        GrammarRule::Calc => items! {
            First: Unary suffixes {
                2 Binary { Operator = [Star Slash Percent] Second: Calc(3) }
                1 Binary { Operator = [Plus Minus] Second: Calc(2) }
            }
        },
        // The order of alternatives is that of `CEL.g4`: if several match, ANTLR takes the first. A number with a
        // sign is therefore a member, not a negation.
        GrammarRule::Unary => items! {
            either {
                Plain { First: Member }
                Not { +{ Operator = Not } First: Member }
                Negate { +{ Operator = Minus } First: Member }
            }
        },
        GrammarRule::Member => items! {
            First: Primary suffixes {
                3 Select { Operator = Dot ?{ Optional = Question } Name: FieldName }
                2 MemberCall {
                    Operator = Dot Name = Identifier Open = LeftParen ?{ Items: ExprList } Mark = RightParen
                }
                1 TokenIndex {
                    Operator = LeftBracket ?{ Optional = Question } Second: Expr Mark = RightBracket
                }
            }
        },
        // A name, a call and a message begin alike, so the prediction looks ahead to the parenthesis or brace.
        GrammarRule::Primary => items! {
            either {
                Ident { ?{ LeadingDot = Dot } Name = Identifier }
                GlobalCall {
                    ?{ LeadingDot = Dot } Name = Identifier
                    Operator = LeftParen ?{ Items: ExprList } Mark = RightParen
                }
                Nested { Mark = LeftParen First: Expr Mark = RightParen }
                List { Operator = LeftBracket ?{ Items: ListInit } ?{ Mark = Comma } Mark = RightBracket }
                Map { Operator = LeftBrace ?{ Items: MapList } ?{ Mark = Comma } Mark = RightBrace }
                Struct {
                    ?{ LeadingDot = Dot } Name = Identifier *{ Mark = Dot Name = Identifier }
                    Operator = LeftBrace ?{ Items: FieldList } ?{ Mark = Comma } Mark = RightBrace
                }
                Constant { First: Literal }
            }
        },
        GrammarRule::ExprList => items! { Value: Expr *{ Mark = Comma Value: Expr } },
        GrammarRule::ListInit => items! { Value: OptExpr *{ Mark = Comma Value: OptExpr } },
        GrammarRule::FieldList => items! {
            Key: OptField Operator = Colon Value: Expr
            *{ Mark = Comma Key: OptField Operator = Colon Value: Expr }
        },
        GrammarRule::OptField => items! { ?{ Optional = Question } Name: FieldName },
        GrammarRule::MapList => items! {
            Key: OptExpr Operator = Colon Value: Expr
            *{ Mark = Comma Key: OptExpr Operator = Colon Value: Expr }
        },
        GrammarRule::FieldName => items! {
            either {
                Simple { Name = Identifier }
                Escaped { Name = EscapedIdentifier }
            }
        },
        GrammarRule::OptExpr => items! { ?{ Optional = Question } First: Expr },
        // The sign belongs to the literal, because the smallest integer has no positive counterpart.
        GrammarRule::Literal => items! {
            either {
                Int { ?{ Sign = Minus } Literal = Int }
                Uint { Literal = Uint }
                Double { ?{ Sign = Minus } Literal = Float }
                String { Literal = String }
                Bytes { Literal = Bytes }
                True { Literal = True }
                False { Literal = False }
                Null { Literal = Null }
            }
        },
    }
}
