//! The JSON value, strict decoding of JSON and YAML, field paths and field errors.
