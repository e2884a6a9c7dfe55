//! The codes of findings: lint advice and upgrade verdicts. Each code has a page that `lint --explain` prints.

use crate::report::Severity;

/// A code and its page. The first line of the page is its title.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) id: &'static str,
    pub(crate) page: &'static str,
    /// The severity unless flags or the configuration change it. An upgrade verdict derives it from the change.
    pub(crate) severity: Option<Severity>,
}

macro_rules! codes {
    ($($id:literal $severity:expr;)*) => {
        &[$(Code { id: $id, page: include_str!(concat!("codes/pages/", $id, ".md")), severity: $severity }),*]
    };
}

const ADVICE: Option<Severity> = Some(Severity::Advice);
const WARNING: Option<Severity> = Some(Severity::Warning);

/// All codes, in order.
pub(crate) const CODES: &[Code] = codes! {
    // Cost and correctness of rules
    "SCT0101" ADVICE;
    "SCT0102" ADVICE;
    "SCT0103" ADVICE;
    "SCT0104" ADVICE;
    "SCT0105" ADVICE;
    "SCT0106" WARNING;
    "SCT0107" WARNING;
    "SCT0108" ADVICE;
    // Lists
    "SCT0201" ADVICE;
    "SCT0202" ADVICE;
    // API conventions
    "SCT0301" ADVICE;
    "SCT0302" ADVICE;
    "SCT0303" ADVICE;
    "SCT0304" ADVICE;
    "SCT0305" ADVICE;
    "SCT0306" ADVICE;
    // Fields outside the schema
    "SCT0401" ADVICE;
    "SCT0402" ADVICE;
    "SCT0403" ADVICE;
    "SCT0404" WARNING;
    // Defaults
    "SCT0501" ADVICE;
    "SCT0502" ADVICE;
    "SCT0503" ADVICE;
    // Versions
    "SCT0601" ADVICE;
    // Upgrades: the CRD
    "SCT1001" None;
    "SCT1002" None;
    "SCT1003" None;
    "SCT1004" None;
    "SCT1005" None;
    "SCT1006" None;
    "SCT1007" None;
    "SCT1008" None;
    "SCT1009" None;
    "SCT1010" None;
    "SCT1011" None;
    // Upgrades: the schema
    "SCT1101" None;
    "SCT1102" None;
    "SCT1103" None;
    "SCT1104" None;
    "SCT1105" None;
    "SCT1106" None;
    "SCT1107" None;
    "SCT1108" None;
    "SCT1109" None;
    "SCT1110" None;
    "SCT1111" None;
    "SCT1112" None;
    "SCT1113" None;
    "SCT1114" None;
    // Upgrades: objects
    "SCT1201" None;
    "SCT1202" None;
    "SCT1203" None;
    "SCT1204" None;
    "SCT1205" None;
};

/// Returns a code by its name.
pub(crate) fn find(id: &str) -> Option<&'static Code> {
    CODES.iter().find(|code| code.id.eq_ignore_ascii_case(id))
}

/// Returns whether a text is a code or a prefix of codes.
pub(crate) fn is_prefix(text: &str) -> bool {
    !text.is_empty() && CODES.iter().any(|code| code.id.starts_with(text))
}

#[cfg(test)]
mod tests {
    use super::CODES;

    #[test]
    fn codes_are_sorted_and_pages_have_titles() {
        assert!(CODES.is_sorted_by(|a, b| a.id < b.id));
        for code in CODES {
            let (title, text) = code.page.split_once("\n\n").unwrap();
            assert!(!title.contains('\n') && !text.trim().is_empty(), "{}", code.id);
        }
    }

    #[test]
    fn every_code_is_reported_somewhere() {
        let sources = [
            include_str!("lint/advice.rs"),
            include_str!("lint/advice/rules.rs"),
            include_str!("lint.rs"),
            include_str!("upgrade/object.rs"),
            include_str!("upgrade/changes.rs"),
            include_str!("upgrade/schemas.rs"),
            include_str!("upgrade/compatibility.rs"),
        ];
        let parts = sources.iter().flat_map(|source| source.split('"'));
        let mut reported: Vec<&str> = parts
            .filter(|part| part.starts_with("SCT") && part.len() == 7)
            .collect();
        reported.sort_unstable();
        reported.dedup();
        let known: Vec<&str> = CODES.iter().map(|code| code.id).collect();
        assert_eq!(reported, known);
    }
}
