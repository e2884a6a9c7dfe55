//! A page for each piece of advice.

macro_rules! pages {
    ($($code:literal)*) => {
        [$(($code, include_str!(concat!("pages/", $code, ".md")))),*]
    };
}

/// The codes with their pages, in order.
pub(super) const PAGES: [(&str, &str); 20] = pages! {
    "SCT0101" "SCT0102" "SCT0103" "SCT0104" "SCT0105"
    "SCT0201" "SCT0202"
    "SCT0301" "SCT0302" "SCT0303" "SCT0304" "SCT0305" "SCT0306"
    "SCT0401" "SCT0402" "SCT0403"
    "SCT0501" "SCT0502" "SCT0503"
    "SCT0601"
};

#[cfg(test)]
mod tests {
    use super::PAGES;

    #[test]
    fn codes_ascend() {
        assert!(PAGES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn every_code_has_a_page_and_every_page_its_advice() {
        let advice = include_str!("advice.rs").split('"');
        let mut given: Vec<&str> = advice.filter(|part| part.starts_with("SCT")).collect();
        given.sort_unstable();
        given.dedup();
        assert_eq!(given, PAGES.map(|(code, _)| code));
    }
}
