//! Any bytes decode as YAML or fail with an error; YAML documents are valid JSON; JSON documents have the
//! same meaning as YAML.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scantling_value::{Limits, PathBuf, Position, json, yaml};

fuzz_target!(|text: &[u8]| {
    if let Ok(decoded) = yaml::decode_strict(text, Limits::SAFE) {
        let written = decoded.value.to_json();
        assert_eq!(json::decode(written.as_bytes(), Limits::SAFE), Ok(decoded.value));
        // A position is optional; this only must not panic.
        let _ = Position::in_yaml(text, &PathBuf::default(), Limits::SAFE);
    }
    let mut end = 0;
    for document in yaml::documents(text).map_while(Result::ok) {
        assert!(document.offset >= end, "documents do not overlap");
        end = document.offset + document.text.len();
    }
    assert!(end <= text.len());
});
