//! Any patch applies to any document or is refused; field sets round-trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scantling_merge::fields::Set;
use scantling_merge::patch::{Patch, PatchDecoding, PatchType};
use scantling_value::{Limits, json};

fuzz_target!(|text: &[u8]| {
    // The first line is the document, the rest is the patch.
    let mut parts = text.splitn(2, |b| *b == b'\n');
    let (document, patch) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Ok(document) = json::decode(document, Limits::SAFE) else {
        return;
    };
    if let Ok(set) = Set::from_fields(document.clone()) {
        assert_eq!(Set::from_fields(set.clone().into_fields()), Ok(set));
    }
    for ty in [PatchType::Json, PatchType::Merge, PatchType::Apply] {
        if let Ok(patch) = Patch::decode(ty, patch, PatchDecoding::Strict, Limits::SAFE)
            && patch.apply(&document, None).is_ok()
        {
            // Only the absence of panics is checked: both texts are for messages.
            let _ = patch.result_findings(|| document.to_json());
            let _ = patch.describe_result(&document.to_json());
        }
    }
});
