//! Any bytes decode as CBOR and protobuf, or fail with an error.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| scantling_server::fuzzing::read_body(bytes));
