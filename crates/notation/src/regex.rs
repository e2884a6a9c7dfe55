//! Regular expressions with Go's syntax (RE2), semantics and error messages, matched in linear time.
//!
//! `\d`, `\w`, `\s` and `\b` are ASCII-only, `$` is the end of the text, and alternatives prefer the leftmost.
//! `parse` translates Go's syntax to the HIR of `regex-syntax`, because the `regex` crate accepts another dialect and
//! reports other errors. One of two matchers runs the HIR:
//!
//! - `scan` for anchored patterns without alternatives, which need no automaton,
//! - `regex-automata` for all others.

mod class;
mod parse;
mod scan;
mod size;

use regex_automata::meta;
use regex_syntax::hir::Hir;
use scan::PrefixScan;
use scantling_value::deadline;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A regular expression. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pattern(Arc<LazyPattern>);

#[derive(Debug)]
struct LazyPattern {
    text: Box<str>,
    /// The compiled matcher, once used.
    compiled: OnceLock<CachedMatcher>,
}

/// The memory limit for all compiled patterns of the process. A CRD may have tens of thousands of patterns of several
/// megabytes each. Beyond the limit, a pattern is compiled for each use and dropped.
const MAX_CACHED_BYTES: usize = 96 << 20;

/// The memory of all cached matchers.
static CACHED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A matcher that counts towards [`CACHED_BYTES`] while it lives.
#[derive(Debug)]
struct CachedMatcher {
    matcher: Matcher,
    bytes: usize,
}

impl CachedMatcher {
    /// Reserves memory for a matcher, or returns the matcher if the limit is reached.
    fn new(matcher: Matcher) -> Result<Self, Matcher> {
        let bytes = matcher.bytes();
        let room = |cached: usize| {
            cached
                .checked_add(bytes)
                .filter(|cached| *cached <= MAX_CACHED_BYTES)
        };
        match CACHED_BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room) {
            Ok(_) => Ok(CachedMatcher { matcher, bytes }),
            Err(_) => Err(matcher),
        }
    }
}

impl Drop for CachedMatcher {
    fn drop(&mut self) {
        CACHED_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Patterns are equal if their texts are.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

/// A compiled pattern.
#[derive(Debug)]
enum Matcher {
    Scan(PrefixScan),
    Engine(meta::Regex),
}

impl Matcher {
    /// The approximate memory in bytes.
    fn bytes(&self) -> usize {
        match self {
            Matcher::Scan(_) => 1 << 10,
            Matcher::Engine(engine) => engine_bytes(engine),
        }
    }
}

/// The approximate memory of an engine with its lazy-DFA cache.
fn engine_bytes(engine: &meta::Regex) -> usize {
    engine.memory_usage() + (64 << 10)
}

/// The size limit of the lazy-DFA cache of an engine, in bytes.
const MAX_CACHE: usize = 512 << 10;

/// The size limit of a compiled pattern, in bytes.
const MAX_COMPILED_SIZE: usize = 32 << 20;

/// The number of compiled bytes that count as one step towards the deadline.
const BYTES_PER_STEP: usize = 64;

fn compile(pattern: &str) -> Result<Matcher, PatternError> {
    let tree = parse::parse(pattern)?;
    if let Some(scan) = PrefixScan::new(&tree) {
        return Ok(Matcher::Scan(scan));
    }
    // The engine compiles up to its size limit without observing the deadline, so the steps are counted up
    // front.
    let size = size::largest(&tree).min(MAX_COMPILED_SIZE);
    deadline::tick_for(size / BYTES_PER_STEP);
    let engine = engine(&tree).map_err(|_| PatternError {
        code: ErrorCode::Large,
        at: pattern.to_owned(),
    })?;
    Ok(Matcher::Engine(engine))
}

fn engine(tree: &Hir) -> Result<meta::Regex, Box<meta::BuildError>> {
    engine_within(MAX_COMPILED_SIZE, tree)
}

fn engine_within(size: usize, tree: &Hir) -> Result<meta::Regex, Box<meta::BuildError>> {
    let config = meta::Config::new()
        .nfa_size_limit(Some(size))
        .hybrid_cache_capacity(MAX_CACHE);
    let engine = meta::Builder::new().configure(config).build_from_hir(tree);
    engine.map_err(Box::new)
}

/// A syntax error, with Go's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    code: ErrorCode,
    at: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorCode {
    CharRange,
    Escape,
    NamedCapture,
    PerlOp,
    RepeatOp,
    RepeatSize,
    MissingBracket,
    MissingParen,
    MissingRepeatArgument,
    TrailingBackslash,
    UnexpectedParen,
    NestingDepth,
    Large,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.code {
            ErrorCode::CharRange => "invalid character class range",
            ErrorCode::Escape => "invalid escape sequence",
            ErrorCode::NamedCapture => "invalid named capture",
            ErrorCode::PerlOp => "invalid or unsupported Perl syntax",
            ErrorCode::RepeatOp => "invalid nested repetition operator",
            ErrorCode::RepeatSize => "invalid repeat count",
            ErrorCode::MissingBracket => "missing closing ]",
            ErrorCode::MissingParen => "missing closing )",
            ErrorCode::MissingRepeatArgument => "missing argument to repetition operator",
            ErrorCode::TrailingBackslash => "trailing backslash at end of expression",
            ErrorCode::UnexpectedParen => "unexpected )",
            ErrorCode::NestingDepth => "expression nests too deeply",
            ErrorCode::Large => "expression too large",
        };
        write!(f, "error parsing regexp: {what}: `{}`", self.at)
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// Checks the syntax, which is much faster than compiling. Only patterns that may exceed the size limit are compiled.
    pub fn check(pattern: &str) -> Result<(), PatternError> {
        let tree = parse::parse(pattern)?;
        if size::largest(&tree) > MAX_COMPILED_SIZE {
            Self::new(pattern)?;
        }
        Ok(())
    }

    /// Compiles a regular expression.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        let cached = CachedMatcher::new(compile(pattern)?);
        Ok(Self::with(
            pattern,
            cached.map_or_else(|_| OnceLock::new(), OnceLock::from),
        ))
    }

    /// Checks the syntax and compiles on first use. Compiling is slow and takes memory, and most patterns of a cluster's
    /// CRDs are never used.
    pub fn deferred(pattern: &str) -> Result<Self, PatternError> {
        Self::check(pattern)?;
        Ok(Self::with(pattern, OnceLock::new()))
    }

    fn with(pattern: &str, compiled: OnceLock<CachedMatcher>) -> Self {
        let text = pattern.into();
        Pattern(Arc::new(LazyPattern { text, compiled }))
    }

    /// Calls `use_it` with the matcher.
    #[inline]
    fn with_matcher<R>(&self, use_it: impl FnOnce(Option<&Matcher>) -> R) -> R {
        match self.0.compiled.get() {
            Some(cached) => use_it(Some(&cached.matcher)),
            None => self.with_new_matcher(use_it),
        }
    }

    /// Compiles the matcher, and caches it if the memory limit allows.
    #[cold]
    fn with_new_matcher<R>(&self, use_it: impl FnOnce(Option<&Matcher>) -> R) -> R {
        match compile(&self.0.text).map(CachedMatcher::new) {
            // If another thread was faster, this copy is dropped, which releases its bytes.
            Ok(Ok(cached)) => use_it(Some(&self.0.compiled.get_or_init(|| cached).matcher)),
            Ok(Err(matcher)) => use_it(Some(&matcher)),
            // Not reached: the constructors have checked or compiled the pattern.
            Err(_) => use_it(None),
        }
    }

    /// Returns whether the pattern matches anywhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.with_matcher(|matcher| match matcher {
            Some(Matcher::Scan(scan)) => scan.length(text).is_some(),
            Some(Matcher::Engine(engine)) => engine.is_match(text),
            None => false,
        })
    }

    /// The leftmost match.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.with_matcher(|matcher| match matcher? {
            Matcher::Scan(scan) => scan.find(text),
            Matcher::Engine(engine) => text.get(engine.find(text)?.range()),
        })
    }

    /// The first `limit` non-overlapping matches. No empty match directly follows another match.
    pub fn matches<'t>(&self, text: &'t str, limit: usize) -> Vec<&'t str> {
        self.with_matcher(|matcher| match matcher {
            Some(Matcher::Scan(scan)) => scan.find(text).into_iter().take(limit).collect(),
            Some(Matcher::Engine(engine)) => {
                let found = engine.find_iter(text).take(limit);
                found.filter_map(|m| text.get(m.range())).collect()
            }
            None => Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn go_semantics() {
        let cases: &[(&str, &str, &[&str])] = &[
            (r"\d+", "a12\u{664}3", &["12", "3"]),
            (r"\w+", "h\u{e9}llo", &["h", "llo"]),
            (r"\s", "a\u{b}\u{a0} ", &[" "]),
            (r"\bl", "\u{e9}l", &["l"]),
            (r"(?i)k", "kK\u{212a}", &["k", "K", "\u{212a}"]),
            (r"(?i)[[:^alpha:]]", "k1\u{212a}", &["1"]),
            (r"a$", "a\n", &[]),
            (r"(?m)a$", "a\nb", &["a"]),
            (r"(?m)^b", "a\nb", &["b"]),
            (r"a.b", "a\nb", &[]),
            (r"(?s)a.b", "a\nb", &["a\nb"]),
            (r"[^a]", "a\n", &["\n"]),
            (r"a+?", "aaa", &["a", "a", "a"]),
            (r"(?U)a+", "aaa", &["a", "a", "a"]),
            (r"(?U)a+?", "aaa", &["aaa"]),
            (r"\Qa.b\E+", "a.bb", &["a.bb"]),
            (r"\Qa.b", "a.b", &["a.b"]),
            (r"\x{41}\101\x41", "AAA", &["AAA"]),
            (r"a*", "baab", &["", "aa", ""]),
            (r"(?P<n>a)(?<n>b)", "ab", &["ab"]),
            (r"a{,2}", "a{,2}", &["a{,2}"]),
            (r"a{2}{", "aa{", &["aa{"]),
            (r"x{2,}", "xxxx", &["xxxx"]),
            (r"[]a]+", "]a", &["]a"]),
            (r"[a-]+", "-a", &["-a"]),
            (r"[\d-z]+", "1-z", &["1-z"]),
            (r"\p{Greek}+", "\u{3b1}b", &["\u{3b1}"]),
            (r"\pN+", "1\u{663}", &["1\u{663}"]),
            (r"\PL+", "a12", &["12"]),
            (r"\p{^Lu}", "Aa", &["a"]),
            (r"(?i)\p{Lu}", "Aa", &["A", "a"]),
            (r"\p{Zl}", "\u{2028}", &["\u{2028}"]),
            (r"a|ab", "ab", &["a"]),
            (r"\Aa\z", "a", &["a"]),
            (r"^*", "a", &["", ""]),
            (r"(|a)+", "aa", &["", "", ""]),
            (r"[\x{D800}-\x{E000}]", "\u{e000}", &["\u{e000}"]),
            (r"(?i:a)a", "AaAA", &["Aa"]),
            (r"((?i)a)a", "AaAA", &["Aa"]),
            (r"\B", "\u{e9}", &["", ""]),
        ];
        for (pattern, text, want) in cases {
            let pattern = Pattern::new(pattern).unwrap();
            assert_eq!(pattern.matches(text, usize::MAX), *want, "{pattern:?}");
        }
    }

    #[test]
    fn the_cache_is_bounded() {
        // Each matcher takes more than a hundred kilobytes.
        let patterns: Vec<Pattern> = (0..2000)
            .map(|n| Pattern::deferred(&format!(r"(\pL|\pN){{3}}x{n}(a|b)*$")).unwrap())
            .collect();
        let mut used = 0;
        for pattern in patterns.iter().take(20) {
            assert!(!pattern.is_match("abc"));
            used += pattern.0.compiled.get().map_or(0, |cached| cached.bytes);
        }
        assert!(used > 0);
        assert!(CACHED_BYTES.load(Ordering::Relaxed) <= MAX_CACHED_BYTES);
        // Above the memory limit a pattern still matches, but is not cached.
        CACHED_BYTES.fetch_add(MAX_CACHED_BYTES, Ordering::Relaxed);
        let late = Pattern::deferred(r"(\pL|\pN){3}late$").unwrap();
        assert!(late.is_match("abclate"));
        assert_eq!(late.find("abclate"), Some("abclate"));
        CACHED_BYTES.fetch_sub(MAX_CACHED_BYTES, Ordering::Relaxed);
        assert!(CACHED_BYTES.load(Ordering::Relaxed) <= MAX_CACHED_BYTES);
    }

    #[test]
    fn deferred_patterns_are_checked() {
        for pattern in ["[a", "a", r"\pL{20}"] {
            let refusal = |made: Result<Pattern, PatternError>| made.err().map(|e| e.to_string());
            assert_eq!(
                refusal(Pattern::deferred(pattern)),
                refusal(Pattern::new(pattern)),
                "{pattern}"
            );
        }
        let pattern = Pattern::deferred("a+").unwrap();
        assert!(pattern.is_match("baab") && !pattern.is_match("b"));
        assert_eq!(pattern.find("baab"), Some("aa"));
        assert_eq!(pattern.matches("aba", usize::MAX), ["a", "a"]);
    }

    #[test]
    fn large_classes_are_checked_without_compiling() {
        // Domain names in any script, as CRDs describe them.
        let any = r"[a-zA-Z0-9\p{S}\p{L}]";
        let label = "([a-z0-9][-a-z0-9]{0,61}[a-z0-9]|[a-z0-9]{1,63})";
        let pattern = format!(
            r"^({any}((-?{any}{{0,62}})?)|({any}(([a-zA-Z0-9-\p{{S}}\p{{L}}]{{0,61}}{any})?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$|^({label}[\.]){{0,}}{label}$"
        );
        let size = size::largest(&parse::parse(&pattern).unwrap());
        assert!(size < MAX_COMPILED_SIZE, "{size}");
        assert!(size::largest(&parse::parse(r"(\pL{30}){30}").unwrap()) > MAX_COMPILED_SIZE);
    }

    #[test]
    fn errors() {
        let nested = |n: usize| format!("{}a{}", "(".repeat(n), ")".repeat(n));
        let cases = [
            ("[a", "missing closing ]: `[a`"),
            ("a[", "missing closing ]: `[`"),
            ("(a", "missing closing ): `(a`"),
            ("a)b", "unexpected ): `a)b`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a|*", "missing argument to repetition operator: `*`"),
            ("(+)", "missing argument to repetition operator: `+`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a*?+", "invalid nested repetition operator: `*?+`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
            ("(a{100}){11}", "invalid repeat count: `{11}`"),
            ("((a{10}){10}){11}?", "invalid repeat count: `{11}?`"),
            ("[b-a]", "invalid character class range: `b-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
            (r"\p{Latn}", r"invalid character class range: `\p{Latn}`"),
            (
                r"\p{Old_Italic}",
                r"invalid character class range: `\p{Old_Italic}`",
            ),
            (r"\p{Foo", r"invalid character class range: `\p{Foo`"),
            (r"\pX", r"invalid character class range: `\pX`"),
            (r"\", "trailing backslash at end of expression: ``"),
            (r"\C", r"invalid escape sequence: `\C`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\Z", r"invalid escape sequence: `\Z`"),
            (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
            (r"\xg1", r"invalid escape sequence: `\xg1`"),
            (r"[\E]", r"invalid escape sequence: `\E`"),
            (r"(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"),
            (r"(?P<ab", "invalid named capture: `(?P<ab`"),
            (r"(?<>x)", "invalid named capture: `(?<>`"),
            (r"(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            (r"(?i-)", "invalid or unsupported Perl syntax: `(?i-)`"),
            (r"(?i", "invalid or unsupported Perl syntax: `(?i`"),
            (r"(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
        ];
        for (pattern, want) in cases {
            let error = Pattern::new(pattern).map(drop).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("error parsing regexp: {want}"),
                "{pattern}"
            );
        }
        assert_eq!(
            Pattern::new(&nested(1000)).unwrap_err().code,
            ErrorCode::NestingDepth
        );
        assert!(Pattern::new(&nested(999)).is_ok());
        let deep = format!("{}x{}", "(?:a".repeat(120), "b)*".repeat(120));
        assert!(Pattern::new(&deep).is_ok());
    }

    #[test]
    fn simple_patterns_use_a_scan() {
        let is_simple = |pattern: &&&str| PrefixScan::new(&parse::parse(pattern).unwrap()).is_some();
        let simple = [
            "^",
            "^$",
            "^[^/]+",
            "^([^/]+)",
            "^a+b*$",
            "^[a-z]{2,5}-([0-9]+)$",
            r"^\d+\.\d+$",
            "^.*$",
            "^(a)*b",
            "^a{3}a",
        ];
        assert_eq!(simple.iter().find(|p| !is_simple(p)), None);
        let others = [
            "a",
            "^a*a",
            "^a?b?a",
            "^(a|b)c|d",
            "^.",
            "^[a-z\u{e9}]+",
            "^(ab)+",
            "^a+?",
            "(?m)^a",
            r"^a\b",
            "^.{2,}",
            "a^",
            "^a*$b",
        ];
        assert_eq!(others.iter().find(is_simple), None);
    }

    fn simple_pattern() -> impl Strategy<Value = String> {
        let set = prop::sample::select(vec![
            "a", "b", "[ab]", "[^a]", "[b-y]", ".", "/", "(b)", "[^/]", "(?i:a)",
        ]);
        let times = prop::sample::select(vec!["", "*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}"]);
        let end = prop::sample::select(vec!["", "$"]);
        let steps = prop::collection::vec((set, times), 0..5);
        (steps, end).prop_map(|(steps, end)| {
            let steps: String = steps.iter().flat_map(|(set, times)| [*set, *times]).collect();
            format!("^{steps}{end}")
        })
    }

    proptest! {
        #[test]
        fn scans_agree_with_the_engine(pattern in simple_pattern(), text in "[ab/\u{e9}\nA]{0,7}") {
            let tree = parse::parse(&pattern).unwrap();
            if let Some(scan) = PrefixScan::new(&tree) {
                let found = engine(&tree).unwrap().find(&text).and_then(|m| text.get(m.range()));
                prop_assert_eq!(scan.find(&text), found);
            }
        }

        #[test]
        fn the_size_estimate_is_an_upper_bound(
            part in prop::sample::select(vec![
                "a", "[a-z0-9]", "[^/]", r"\pL", r"[\p{S}\pN-]", "(a|bc|)", "\u{e9}", r"\b", ".", "(?i:k|\u{17f}t)",
                r"[a-z\p{S}\p{L}]", r"\PM", r"[^\x00-\x{ff}\p{Han}]",
            ]),
            times in prop::sample::select(vec!["", "*", "+", "?", "{7}", "{0,9}", "{3,}", "{2,5}?"]),
            pattern in r"[\[\](){}?*+|^$.,\-0-9a-z\u{e9}]{0,12}",
        ) {
            for pattern in [format!("({part}){times}{part}{times}"), format!("({pattern}|{part}){times}")] {
                if let Ok(tree) = parse::parse(&pattern) {
                    prop_assert!(engine_within(size::largest(&tree), &tree).is_ok(), "{}", pattern);
                }
            }
        }

        #[test]
        fn arbitrary_patterns_never_panic(pattern in r"[\\\[\](){}?*+|^$.,:\-0-9a-zPQExp<>=\u{e9}]{0,24}", text in ".{0,16}") {
            if let Ok(pattern) = Pattern::new(&pattern) {
                let all = pattern.matches(&text, usize::MAX);
                prop_assert_eq!(all.first().copied(), pattern.find(&text));
            }
        }
    }
}
