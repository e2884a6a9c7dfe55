//! Any bytes decode as JSON or fail with an error; documents round-trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scantling_value::{Escape, Limits, Position, json};

fuzz_target!(|text: &[u8]| {
    match json::decode_strict(text, Limits::SAFE) {
        Ok(decoded) => {
            let written = decoded.value.to_json();
            let read = json::decode(written.as_bytes(), Limits::SAFE).expect("what was written can be read");
            // Whole floats are encoded as integers, and so is -0.0 (as `-0`); from here on nothing changes.
            assert_eq!(
                json::decode(read.to_json().as_bytes(), Limits::SAFE).as_ref(),
                Ok(&read)
            );
            let minimal = read.to_json_with(Escape::Minimal);
            assert_eq!(json::decode(minimal.as_bytes(), Limits::SAFE).as_ref(), Ok(&read));
            // The strict decoder of Kubernetes also lists at most 100.
            assert!(decoded.duplicates.len() <= 100);
        }
        Err(error) => assert!(Position::of_error(text, &error).is_some(), "{error}"),
    }
});
