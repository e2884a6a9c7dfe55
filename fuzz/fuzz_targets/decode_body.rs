//! Any bytes are a body in CBOR or in protobuf, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| scantling_server::fuzzing::read_body(bytes));
