//! Encoding, decoding, and errors.

use super::*;
use proptest::prelude::*;
use scantling_value::{Limits, json};

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn documents_encode_as_kube_apiserver_stores_them() {
    let table = [
        ("null", "f6"),
        (
            "[true,false,0,23,24,-1,-25,65536]",
            "88f5f4001718182038181a00010000",
        ),
        ("[-9223372036854775808]", "813b7fffffffffffffff"),
        (
            "[1.5,0.1,1e300,3.4028234663852886e+38]",
            "84f93e00fb3fb999999999999afb7e37e43c8800759cfa7f7fffff",
        ),
        (r#""\u00e9""#, "42c3a9"),
        // Shorter keys come first.
        (r#"{"aa":1,"b":{},"c":[]}"#, "a34162a041638042616101"),
    ];
    for (text, wanted) in table {
        let value = json::decode(text.as_bytes(), Limits::SAFE).unwrap();
        let wanted = format!("d9d9f7{wanted}");
        assert_eq!(scantling_value::go::hex(&encode(&value)), wanted, "{text}");
    }
}

#[test]
fn documents_decode() {
    let table = [
        ("a1616101", r#"{"a":1}"#),
        ("d9d9f7a1416101", r#"{"a":1}"#),
        (
            "bf61617f6162626364ff61659f01fbc000000000000000ffff",
            r#"{"a":"bcd","e":[1,-2]}"#,
        ),
        ("a16161d6420102", r#"{"a":"AQI="}"#),
        ("a16161d542ff02", r#"{"a":"_wI"}"#),
        ("a16161d742ff02", r#"{"a":"ff02"}"#),
        (
            "a16161c0781d323032302d30312d30315430303a30303a30302e3530302b30303a3030",
            r#"{"a":"2020-01-01T00:00:00.5Z"}"#,
        ),
        ("a16161c11a5e0be100", r#"{"a":"2020-01-01T00:00:00Z"}"#),
        ("a16161c1fbbff8000000000000", r#"{"a":"1969-12-31T23:59:58.5Z"}"#),
        ("a1f601", r#"{"":1}"#),
    ];
    for (hex, wanted) in table {
        let read = decode(&bytes(hex)).map(|v| v.to_json());
        let read = read.unwrap_or_else(|why| panic!("{hex}: {why}"));
        assert_eq!(read, wanted, "{hex}");
    }
}

#[test]
fn errors_match_kube_apiserver() {
    let table = [
        ("", "EOF"),
        ("a1", "unexpected EOF"),
        ("a16161", "unexpected EOF"),
        (
            "a1616102 03",
            "cbor: 1 bytes of extraneous data starting at index 4",
        ),
        (
            "1c",
            "cbor: invalid additional information 28 for type positive integer",
        ),
        ("df", "cbor: invalid additional information 31 for type tag"),
        ("f803", "cbor: invalid simple value 3 for type primitives"),
        ("ff", "cbor: unexpected \"break\" code"),
        ("bf6161ff", "cbor: unexpected \"break\" code"),
        (
            "7f41ffff",
            "cbor: wrong element type byte string for indefinite-length UTF-8 text string",
        ),
        (
            "5f5fffff",
            "cbor: indefinite-length byte string chunk is not definite-length",
        ),
        (
            "a16161f97e00",
            "cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN",
        ),
        (
            "a16161f97c00",
            "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity",
        ),
        (
            "a16161c24101",
            "cbor: data item of cbor type tag is not accepted by protocol: bignum",
        ),
        (
            "a16161f7",
            "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized",
        ),
        ("a161ff01", "cbor: invalid UTF-8 string"),
        (
            "a2616101616102",
            r#"cbor: found duplicate map key "a" at map element index 1"#,
        ),
        (
            "a10102",
            "cbor: cannot unmarshal positive integer into Go value of type string",
        ),
        (
            "a161611b8000000000000000",
            "cbor: cannot unmarshal positive integer into Go value of type int64 (9223372036854775808 overflows Go's int64)",
        ),
        (
            "a161613bffffffffffffffff",
            "cbor: cannot unmarshal negative integer into Go value of type int64 (-18446744073709551616 overflows Go's int64)",
        ),
        (
            "a16161c001",
            "cbor: tag number 0 must be followed by text string, got positive integer",
        ),
        (
            "80",
            "cbor: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
    ];
    for (hex, wanted) in table {
        let read = decode(&bytes(&hex.replace(' ', "")));
        assert_eq!(read.unwrap_err(), wanted, "{hex}");
    }
}

#[test]
fn depth_is_bounded() {
    let deepest = |n: usize, head: u8| [vec![head; n], vec![0xf6]].concat();
    let most = Limits::SERVER.depth;
    let run = move || {
        for head in [0x81, 0xc6] {
            assert!(scan::Scanner::new(&deepest(most, head)).is_ok());
            let why = scan::Scanner::new(&deepest(most + 1, head)).err();
            assert_eq!(why.unwrap(), "cbor: exceeded max nested level 10000");
        }
    };
    let thread = std::thread::Builder::new().stack_size(Limits::SERVER_STACK);
    thread.spawn(run).unwrap().join().unwrap();
}

#[test]
fn diagnostic_notation() {
    let table = [
        ("a2616101626162f4", r#"{"a": 1, "ab": false}"#),
        ("d9d9f7f6", "55799(null)"),
        ("84f93e0020446869270af94000", r#"[1.5, -1, 'hi\'\n', 2.0]"#),
        ("8241ff40", "[h'ff', h'']"),
        ("9f62c3a964f09f9a80ff", r#"[_ "\u00e9", "\ud83d\ude80"]"#),
    ];
    for (hex, wanted) in table {
        assert_eq!(notation(&bytes(hex)), wanted);
    }
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        prop::num::f64::NORMAL.prop_map(Value::Float),
        ".{0,12}".prop_map(|s| Value::String(s.into())),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map(".{0,6}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn cbor_round_trips(value in document()) {
        let object = Value::Object([("a", value)].into_iter().collect());
        prop_assert_eq!(decode(&encode(&object)), Ok(object.clone()));
        prop_assert_eq!(decode_object(&encode(&object)), Ok(object));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        let whole = [&[0xa1, 0x61, 0x61][..], &bytes].concat();
        for bytes in [&*bytes, &*whole] {
            let _ = (decode(bytes), decode_object(bytes), notation(bytes));
        }
    }
}
