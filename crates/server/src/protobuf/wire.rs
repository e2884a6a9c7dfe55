//! What protobuf messages are made of.

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// The beginning of a field whose content of that length follows.
pub(crate) fn length(out: &mut Vec<u8>, field: u64, length: usize) {
    varint(out, field << 3 | 2);
    varint(out, length as u64);
}

pub(crate) fn bytes(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    length(out, field, content.len());
    out.extend_from_slice(content);
}

pub(crate) fn string(out: &mut Vec<u8>, field: u64, text: &str) {
    bytes(out, field, text.as_bytes());
}

pub(crate) fn number(out: &mut Vec<u8>, field: u64, n: i64) {
    varint(out, field << 3);
    varint(out, n.cast_unsigned());
}

pub(crate) fn boolean(out: &mut Vec<u8>, field: u64, b: bool) {
    number(out, field, i64::from(b));
}

pub(crate) fn double(out: &mut Vec<u8>, field: u64, n: f64) {
    varint(out, field << 3 | 1);
    out.extend_from_slice(&n.to_le_bytes());
}

/// What a field of a message holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Held<'b> {
    Varint(u64),
    Fixed([u8; 8]),
    Bytes(&'b [u8]),
    /// Four bytes, which no message of ours has.
    Other,
}

/// The fields of a message, in their order; the last one is an error where it is malformed.
pub(super) fn fields(rest: &[u8]) -> impl Iterator<Item = Result<(u64, Held<'_>), String>> {
    let mut rest = rest;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = next(&mut rest);
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

fn next<'b>(rest: &mut &'b [u8]) -> Result<(u64, Held<'b>), String> {
    let cut = || "unexpected EOF".to_owned();
    let tag = read_varint(rest).ok_or_else(cut)?;
    let held = match tag & 7 {
        0 => Held::Varint(read_varint(rest).ok_or_else(cut)?),
        1 => {
            let (content, after) = rest.split_first_chunk().ok_or_else(cut)?;
            *rest = after;
            Held::Fixed(*content)
        }
        2 => {
            let length = read_varint(rest).and_then(|n| usize::try_from(n).ok());
            let parts = length.and_then(|n| rest.split_at_checked(n));
            let (content, after) = parts.ok_or_else(cut)?;
            *rest = after;
            Held::Bytes(content)
        }
        5 => {
            let (_, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            *rest = after;
            Held::Other
        }
        other => return Err(format!("proto: illegal wireType {other}")),
    };
    Ok((tag >> 3, held))
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
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
