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
    ($($severity:expr => $($id:literal)*;)*) => {
        &[$($(Code { id: $id, page: include_str!(concat!("codes/pages/", $id, ".md")), severity: $severity }),*),*]
    };
}

const ADVICE: Option<Severity> = Some(Severity::Advice);
const WARNING: Option<Severity> = Some(Severity::Warning);

/// All codes, in order.
pub(crate) const CODES: &[Code] = codes! {
    // Cost and correctness of rules
    ADVICE => "SCT0101" "SCT0102" "SCT0103" "SCT0104" "SCT0105";
    WARNING => "SCT0106" "SCT0107";
    ADVICE => "SCT0108";
    // Lists
    ADVICE => "SCT0201" "SCT0202";
    // API conventions
    ADVICE => "SCT0301" "SCT0302" "SCT0303" "SCT0304" "SCT0305" "SCT0306";
    // Fields outside the schema
    ADVICE => "SCT0401" "SCT0402" "SCT0403";
    WARNING => "SCT0404";
    // Defaults
    ADVICE => "SCT0501" "SCT0502" "SCT0503";
    // Versions
    ADVICE => "SCT0601";
    // Upgrades: the CRD
    None => "SCT1001" "SCT1002" "SCT1003" "SCT1004" "SCT1005" "SCT1006" "SCT1007" "SCT1008" "SCT1009" "SCT1010" "SCT1011";
    // Upgrades: the schema
    None => "SCT1101" "SCT1102" "SCT1103" "SCT1104" "SCT1105" "SCT1106" "SCT1107";
    None => "SCT1108" "SCT1109" "SCT1110" "SCT1111" "SCT1112" "SCT1113" "SCT1114";
    // Upgrades: objects
    None => "SCT1201" "SCT1202" "SCT1203" "SCT1204" "SCT1205";
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
