//! Macros: calls that are replaced by other expressions while parsing.
//!
//! The expansion determines the cost of an expression, and the offsets of its nodes determine the positions in error
//! messages. Therefore the expansions match the reference implementation node by node, in the order of identifiers.

mod fold;
mod namespaced;
mod optional;

use super::builder::{Builder, NOWHERE};
use crate::ast::{Comprehension, Expr, ExprId, ExprKind, Literal};
use fold::{FoldArgs, IDENTIFIER, SIMPLE, Variables};
use std::borrow::Cow;
use std::ops::BitOr;
use std::sync::Arc;

/// A set of macros; `|` is the union.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Macros(u16);

impl Macros {
    /// None.
    pub const NONE: Macros = Macros(0);
    /// `has`, `all`, `exists`, `exists_one`, `map`, `filter`.
    pub const STANDARD: Macros = Macros(1);
    /// The macros with two variables, `transformList`, `transformMap`, `transformMapEntry`.
    pub const TWO_VARIABLES: Macros = Macros(1 << 1);
    /// `optMap`
    pub const OPT_MAP: Macros = Macros(1 << 2);
    /// `optFlatMap`
    pub const OPT_FLAT_MAP: Macros = Macros(1 << 3);
    /// `sortBy`
    pub const SORT_BY: Macros = Macros(1 << 4);
    /// `cel.bind`
    pub const BIND: Macros = Macros(1 << 5);
    /// `cel.block`, `cel.index`, `cel.iterVar`, `cel.accuVar`.
    pub const BLOCK: Macros = Macros(1 << 6);
    /// `math.least`, `math.greatest`.
    pub const MATH: Macros = Macros(1 << 7);
    /// `existsOne`, a newer name of `exists_one`. It is not a standard macro with one variable.
    pub const EXISTS_ONE: Macros = Macros(1 << 8);

    /// Returns whether `other` is a subset.
    pub const fn contains(self, other: Macros) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union.
    pub const fn and(self, other: Macros) -> Macros {
        Macros(self.0 | other.0)
    }
}

impl BitOr for Macros {
    type Output = Macros;
    fn bitor(self, other: Macros) -> Macros {
        self.and(other)
    }
}

/// The accumulator variable, which no expression can name.
const ACCUMULATOR: &str = "@result";
/// The former name of the accumulator, which is still not allowed as a variable.
const FORMER_ACCUMULATOR: &str = "__result__";
/// The variable of a comprehension over an empty list.
const UNUSED: &str = "#unused";

/// The maximum number of nodes that expansions copy. A chain of macros that copy their receiver grows exponentially.
const MAX_NODES: usize = 1 << 20;

/// Invalid arguments of a macro.
#[derive(Debug)]
pub(crate) struct MacroError {
    /// The node.
    pub(crate) offset: Option<u32>,
    pub(crate) message: Cow<'static, str>,
}

type ExpandResult = Result<Expr, MacroError>;

/// The call style and the expansion function of a macro.
enum Expand {
    Global1(fn(&mut Expander<'_>, [Expr; 1]) -> ExpandResult),
    Member1(fn(&mut Expander<'_>, Expr, [Expr; 1]) -> ExpandResult),
    Member2(fn(&mut Expander<'_>, Expr, [Expr; 2]) -> ExpandResult),
    Member3(fn(&mut Expander<'_>, Expr, [Expr; 3]) -> ExpandResult),
    MemberAny(fn(&mut Expander<'_>, Expr, Vec<Expr>) -> ExpandResult),
    /// A comprehension: `range.name(variables, transform)`.
    Fold(Variables, fold::Build),
    /// A comprehension with a predicate: `range.name(variables, predicate, transform)`.
    Filtered(Variables, fold::Build),
}

struct MacroDef {
    macros: Macros,
    /// The name of the receiver, for macros of a namespace.
    namespace: Option<&'static str>,
    name: &'static str,
    expand: Expand,
}

macro_rules! macro_defs {
    (@namespace) => { None };
    (@namespace $namespace:literal) => { Some($namespace) };
    ($($set:ident $name:literal $(in $namespace:literal)? => $expand:ident($($code:expr),*);)*) => {
        &[$(MacroDef {
            macros: Macros::$set,
            namespace: macro_defs!(@namespace $($namespace)?),
            name: $name,
            expand: Expand::$expand($($code),*),
        }),*]
    };
}

// The parser takes the first row that matches. Rows of one name differ in their arity or call style.
static ROWS: &[MacroDef] = macro_defs! {
    STANDARD "has" => Global1(fold::has);
    STANDARD "all" => Fold(SIMPLE, fold::all);
    STANDARD "exists" => Fold(SIMPLE, fold::exists);
    STANDARD "exists_one" => Fold(SIMPLE, fold::exists_one);
    EXISTS_ONE "existsOne" => Fold(SIMPLE, fold::exists_one);
    STANDARD "map" => Fold(IDENTIFIER, fold::map);
    STANDARD "map" => Filtered(IDENTIFIER, fold::map);
    STANDARD "filter" => Member2(fold::filter);
    TWO_VARIABLES "all" => Fold(Variables::Two, fold::all);
    TWO_VARIABLES "exists" => Fold(Variables::Two, fold::exists);
    TWO_VARIABLES "existsOne" => Fold(Variables::Two, fold::exists_one);
    TWO_VARIABLES "exists_one" => Fold(Variables::Two, fold::exists_one);
    TWO_VARIABLES "transformList" => Fold(Variables::Two, fold::transform_list);
    TWO_VARIABLES "transformList" => Filtered(Variables::Two, fold::transform_list);
    TWO_VARIABLES "transformMap" => Fold(Variables::Two, fold::transform_map);
    TWO_VARIABLES "transformMap" => Filtered(Variables::Two, fold::transform_map);
    TWO_VARIABLES "transformMapEntry" => Fold(Variables::Two, fold::transform_map_entry);
    TWO_VARIABLES "transformMapEntry" => Filtered(Variables::Two, fold::transform_map_entry);
    OPT_MAP "optMap" => Member2(optional::opt_map);
    OPT_FLAT_MAP "optFlatMap" => Member2(optional::opt_flat_map);
    SORT_BY "sortBy" => Member2(fold::sort_by);
    BIND "bind" in "cel" => Member3(namespaced::bind);
    BLOCK "block" in "cel" => Member2(namespaced::block);
    BLOCK "index" in "cel" => Member1(namespaced::index);
    BLOCK "iterVar" in "cel" => Member2(namespaced::iter_var);
    BLOCK "accuVar" in "cel" => Member2(namespaced::accu_var);
    MATH "least" in "math" => MemberAny(namespaced::least);
    MATH "greatest" in "math" => MemberAny(namespaced::greatest);
};

impl MacroDef {
    fn matches(&self, macros: Macros, name: &str, target: Option<&Expr>, args: usize) -> bool {
        let (member, arity) = match self.expand {
            Expand::Global1(_) => (false, Some(1)),
            Expand::Member1(_) => (true, Some(1)),
            Expand::Member2(_) => (true, Some(2)),
            Expand::Member3(_) => (true, Some(3)),
            Expand::MemberAny(_) => (true, None),
            Expand::Fold(variables, _) => (true, Some(variables.count() + 1)),
            Expand::Filtered(variables, _) => (true, Some(variables.count() + 2)),
        };
        self.name == name
            && macros.contains(self.macros)
            // Another number of arguments is not an error of the macro but a call of a function of that name.
            && arity.is_none_or(|n| n == args)
            && match target {
                // With another receiver, `x.bind(…)` is an ordinary call.
                Some(target) => member && self.namespace.is_none_or(|n| ident(target) == Some(n)),
                None => !member,
            }
    }
}

/// Expands the macro of that name and style, or builds a call.
pub(crate) fn call_or_macro(
    builder: &mut Builder,
    macros: Macros,
    id: ExprId,
    name: &str,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> ExpandResult {
    let row = ROWS
        .iter()
        .find(|row| row.matches(macros, name, target.as_ref(), args.len()));
    let Some(row) = row else {
        return Ok(match target {
            Some(target) => builder.member_call(id, name, target, args),
            None => builder.call(id, name, args),
        });
    };
    let mut expander = Expander {
        offset: builder.offset(id),
        builder,
    };
    // The nodes are built before the number of the call is released, as in cel-go: they must not reuse it.
    let expanded = expander.expand(&row.expand, target, args);
    builder.release(id);
    expanded
}

/// The name, if the expression is an identifier.
fn ident(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name),
        _ => None,
    }
}

/// The name, if the expression is an identifier.
fn into_ident(expr: Expr) -> Result<Arc<str>, ExprId> {
    match expr.kind {
        ExprKind::Ident(name) => Ok(name),
        _ => Err(expr.id),
    }
}

/// The parts of a comprehension.
struct FoldParts {
    range: Expr,
    iter_var: Arc<str>,
    iter_var2: Option<Arc<str>>,
    accu_var: Arc<str>,
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
}

/// Builds the nodes of an expansion, at the offset of the call.
struct Expander<'b> {
    builder: &'b mut Builder,
    offset: u32,
}

impl Expander<'_> {
    fn expand(&mut self, expand: &Expand, target: Option<Expr>, args: Vec<Expr>) -> ExpandResult {
        match (expand, target) {
            (Expand::Global1(f), None) => f(self, fixed(args)?),
            (Expand::Member1(f), Some(target)) => f(self, target, fixed(args)?),
            (Expand::Member2(f), Some(target)) => f(self, target, fixed(args)?),
            (Expand::Member3(f), Some(target)) => f(self, target, fixed(args)?),
            (Expand::MemberAny(f), Some(target)) => f(self, target, args),
            (Expand::Fold(variables, build) | Expand::Filtered(variables, build), Some(range)) => {
                let mut args = args.into_iter();
                let vars = variables.read(self, &mut args)?;
                let is_filtered = matches!(expand, Expand::Filtered(..));
                let args = FoldArgs {
                    range,
                    vars,
                    filter: is_filtered.then(|| args.next()).flatten(),
                    body: args.next().ok_or(MISMATCH)?,
                };
                Ok(build(self, args))
            }
            _ => Err(MISMATCH),
        }
    }

    fn error(&self, at: ExprId, message: impl Into<Cow<'static, str>>) -> MacroError {
        let offset = self.builder.offset(at);
        MacroError {
            offset: (offset != NOWHERE).then_some(offset),
            message: message.into(),
        }
    }

    fn node(&mut self, kind: ExprKind) -> Expr {
        Expr {
            id: self.builder.id(self.offset),
            kind,
        }
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        self.node(ExprKind::Literal(literal))
    }

    fn bool(&mut self, value: bool) -> Expr {
        self.literal(Literal::Bool(value))
    }

    fn int(&mut self, value: i64) -> Expr {
        self.literal(Literal::Int(value))
    }

    fn ident(&mut self, name: &Arc<str>) -> Expr {
        self.node(ExprKind::Ident(Arc::clone(name)))
    }

    fn ident_named(&mut self, name: &str) -> Expr {
        self.builder.ident(self.offset, name)
    }

    /// The accumulator.
    fn accu(&mut self) -> Expr {
        self.ident_named(ACCUMULATOR)
    }

    fn list(&mut self, elements: Vec<Expr>) -> Expr {
        self.node(ExprKind::List {
            elements,
            optional: Vec::new(),
        })
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        let id = self.builder.id(self.offset);
        self.builder.call(id, function, args)
    }

    fn member_call(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        let id = self.builder.id(self.offset);
        self.builder.member_call(id, function, target, args)
    }

    fn copy(&mut self, expr: &Expr) -> ExpandResult {
        // cel-go has no such limit. Without it, a short expression could exhaust the memory of the server.
        if self.builder.copy_exceeds(expr, MAX_NODES) {
            let message = format!("the expansion of macros makes more than {MAX_NODES} nodes");
            return Err(self.error(expr.id, message));
        }
        Ok(self.builder.copy(expr, self.offset))
    }

    fn fold(&mut self, fold: FoldParts) -> Expr {
        self.node(ExprKind::Comprehension(Box::new(Comprehension {
            range: fold.range,
            iter_var: fold.iter_var,
            iter_var2: fold.iter_var2,
            accu_var: fold.accu_var,
            accu_init: fold.init,
            condition: fold.condition,
            step: fold.step,
            result: fold.result,
        })))
    }

    /// Binds a variable to `value` in `result`, as a comprehension over an empty list.
    fn bound(&mut self, range: Expr, var: Arc<str>, value: Expr, result: Expr) -> Expr {
        let condition = self.bool(false);
        let step = self.ident(&var);
        self.fold(FoldParts {
            range,
            // No expression can name the variable, because identifiers have no `#`.
            iter_var: UNUSED.into(),
            iter_var2: None,
            accu_var: var,
            init: value,
            condition,
            step,
            result,
        })
    }
}

/// The error for the wrong number of arguments. Lookup by arity makes it unreachable.
const MISMATCH: MacroError = MacroError {
    offset: None,
    message: Cow::Borrowed("macro called with a wrong number of arguments"),
};

fn fixed<const N: usize>(args: Vec<Expr>) -> Result<[Expr; N], MacroError> {
    args.try_into().map_err(|_| MISMATCH)
}
