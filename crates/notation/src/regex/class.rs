//! Character classes.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

/// Case sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LetterCase {
    Sensitive,
    Folded,
}

/// The characters of a range of code points, without surrogates.
pub(super) fn range(lo: u32, hi: u32, case: LetterCase) -> ClassUnicode {
    // A bound among the surrogates moves to the nearest character inside the range.
    let lo = char::from_u32(lo).unwrap_or('\u{e000}');
    let hi = char::from_u32(hi).unwrap_or('\u{d7ff}');
    let mut class = ClassUnicode::empty();
    if lo <= hi {
        class.push(ClassUnicodeRange::new(lo, hi));
    }
    folded(class, case)
}

fn folded(mut class: ClassUnicode, case: LetterCase) -> ClassUnicode {
    if case == LetterCase::Folded {
        // Case folding fails only if the Unicode tables are not compiled in.
        let _ = class.try_case_fold_simple();
    }
    class
}

fn ranges(ranges: &[(char, char)], case: LetterCase) -> ClassUnicode {
    folded(
        ClassUnicode::new(ranges.iter().map(|(lo, hi)| ClassUnicodeRange::new(*lo, *hi))),
        case,
    )
}

fn signed(mut class: ClassUnicode, negated: bool) -> ClassUnicode {
    if negated {
        class.negate();
    }
    class
}

const DIGIT: &[(char, char)] = &[('0', '9')];
const WORD: &[(char, char)] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];

/// The class of `\d`, `\s`, `\w` and their negations.
pub(super) fn perl(letter: char, case: LetterCase) -> Option<ClassUnicode> {
    // Go's `\s` has no vertical tab.
    let space: &[(char, char)] = &[('\t', '\n'), ('\u{c}', '\r'), (' ', ' ')];
    let class = match letter {
        'd' | 'D' => DIGIT,
        's' | 'S' => space,
        'w' | 'W' => WORD,
        _ => return None,
    };
    Some(signed(ranges(class, case), letter.is_ascii_uppercase()))
}

/// The class of `[:name:]`.
pub(super) fn posix(name: &str, case: LetterCase) -> Option<ClassUnicode> {
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let class: &[(char, char)] = match name {
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "ascii" => &[('\0', '\x7f')],
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "cntrl" => &[('\0', '\x1f'), ('\x7f', '\x7f')],
        "digit" => DIGIT,
        "graph" => &[('!', '~')],
        "lower" => &[('a', 'z')],
        "print" => &[(' ', '~')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "space" => &[('\t', '\r'), (' ', ' ')],
        "upper" => &[('A', 'Z')],
        "word" => WORD,
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    };
    Some(signed(ranges(class, case), negated))
}

/// The class of a Unicode category or script in `\p{name}`.
pub(super) fn unicode(name: &str, negated: bool, case: LetterCase) -> Option<ClassUnicode> {
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !negated),
        None => (name, negated),
    };
    let name = canonical(name);
    let class = match name.as_str() {
        "Any" => ranges(&[('\0', char::MAX)], LetterCase::Sensitive),
        "Ascii" => ranges(&[('\0', '\x7f')], case),
        "Assigned" => signed(property("gc=Cn")?, true),
        // Surrogates are not characters.
        "Cs" | "Surrogate" => ClassUnicode::empty(),
        _ if is_in(SCRIPTS, &name) => folded(property(&format!("sc={name}"))?, case),
        _ if is_in(CATEGORIES, &name) => folded(property(&format!("gc={name}"))?, case),
        _ => return None,
    };
    Some(signed(class, negated))
}

/// Names match regardless of case, spaces, dashes and underscores.
fn canonical(name: &str) -> String {
    let mut letters = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    letters
        .next()
        .map(|c| c.to_ascii_uppercase())
        .into_iter()
        .chain(letters.map(|c| c.to_ascii_lowercase()))
        .collect()
}

fn property(query: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(&format!("\\p{{{query}}}")).map(Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => Some(class),
        // `regex-syntax` turns a class of one character into a literal.
        Ok(HirKind::Literal(literal)) => {
            let c = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(ranges(&[(c, c)], LetterCase::Sensitive))
        }
        _ => None,
    }
}

/// Returns whether a list of names has a name.
fn is_in(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

/// The categories, by their short names and their long ones without separators.
const CATEGORIES: &str = "\
    C Casedletter Cc Cf Closepunctuation Cn Cntrl Co Combiningmark Connectorpunctuation Control \
    Currencysymbol Dashpunctuation Decimalnumber Digit Enclosingmark Finalpunctuation Format \
    Initialpunctuation L Lc Letter Letternumber Lineseparator Ll Lm Lo Lowercaseletter Lt Lu M Mark \
    Mathsymbol Mc Me Mn Modifierletter Modifiersymbol N Nd Nl No Nonspacingmark Number Openpunctuation Other \
    Otherletter Othernumber Otherpunctuation Othersymbol P Paragraphseparator Pc Pd Pe Pf Pi Po Privateuse \
    Ps Punct Punctuation S Sc Separator Sk Sm So Spaceseparator Spacingmark Symbol Titlecaseletter \
    Unassigned Uppercaseletter Z Zl Zp Zs";

/// Scripts with names of one word. UPSTREAM: Go does not find those of several words under any spelling.
const SCRIPTS: &str = "\
    Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi Braille \
    Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret \
    Devanagari Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati \
    Gurmukhi Han Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi \
    Kharoshthi Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam \
    Mandaic Manichaean Marchen Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari \
    Newa Nko Nushu Ogham Oriya Osage Osmanya Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada \
    Shavian Siddham Sinhala Sogdian Soyombo Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut \
    Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Yezidi Yi";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unicode_name_resolves() {
        let other = ["Any", "ascii", "Assigned", "Cs", "uppercase letter"];
        for name in CATEGORIES.split(' ').chain(SCRIPTS.split(' ')).chain(other) {
            assert!(unicode(name, false, LetterCase::Sensitive).is_some(), "{name}");
        }
    }
}
