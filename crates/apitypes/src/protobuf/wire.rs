//! The wire format of protobuf.

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Writes the tag and length of a length-delimited field.
pub fn length(out: &mut Vec<u8>, field: u64, length: usize) {
    varint(out, field << 3 | 2);
    varint(out, length as u64);
}

/// Writes a field of bytes, or a message.
pub fn bytes(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    length(out, field, content.len());
    out.extend_from_slice(content);
}

/// Writes a string field.
pub fn string(out: &mut Vec<u8>, field: u64, text: &str) {
    bytes(out, field, text.as_bytes());
}

/// Writes an integer field.
pub fn number(out: &mut Vec<u8>, field: u64, n: i64) {
    varint(out, field << 3);
    varint(out, n.cast_unsigned());
}

/// Writes a boolean field.
pub fn boolean(out: &mut Vec<u8>, field: u64, b: bool) {
    number(out, field, i64::from(b));
}

/// Writes a floating-point field.
pub fn double(out: &mut Vec<u8>, field: u64, n: f64) {
    varint(out, field << 3 | 1);
    out.extend_from_slice(&n.to_le_bytes());
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum WireValue<'b> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'b [u8]),
    /// Four bytes; no API type has such a field.
    Fixed32,
}

impl WireValue<'_> {
    /// The number of the wire type.
    pub(super) fn wire_type(self) -> u8 {
        match self {
            WireValue::Varint(_) => 0,
            WireValue::Fixed64(_) => 1,
            WireValue::Bytes(_) => 2,
            WireValue::Fixed32 => 5,
        }
    }
}

/// The fields of a message in order; ends with an error if the message is malformed.
pub(super) fn fields(rest: &[u8]) -> impl Iterator<Item = Result<(u64, WireValue<'_>), String>> {
    let mut rest = rest;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = next(&mut rest);
        // After an error, the start of the next field is unknown.
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

fn next<'b>(rest: &mut &'b [u8]) -> Result<(u64, WireValue<'b>), String> {
    let cut = || "unexpected EOF".to_owned();
    let tag = read_varint(rest).ok_or_else(cut)?;
    let content = match tag & 7 {
        0 => WireValue::Varint(read_varint(rest).ok_or_else(cut)?),
        1 => {
            let (content, after) = rest.split_first_chunk().ok_or_else(cut)?;
            *rest = after;
            WireValue::Fixed64(*content)
        }
        2 => {
            let length = read_varint(rest).and_then(|n| usize::try_from(n).ok());
            let parts = length.and_then(|n| rest.split_at_checked(n));
            let (content, after) = parts.ok_or_else(cut)?;
            *rest = after;
            WireValue::Bytes(content)
        }
        5 => {
            let (_, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            *rest = after;
            WireValue::Fixed32
        }
        other => return Err(format!("proto: illegal wireType {other}")),
    };
    Ok((tag >> 3, content))
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    // 64 bits take at most ten bytes.
    for shift in (0..64).step_by(7) {
        let (first, after) = rest.split_first()?;
        *rest = after;
        n |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}
