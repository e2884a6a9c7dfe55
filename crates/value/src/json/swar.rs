//! Eight bytes of a text at once: which of them are of some sort. A mark is the high bit of a byte.

const ONES: u64 = u64::MAX / 255;
/// The marks of all bytes.
pub(super) const ALL: u64 = ONES * 0x80;

/// The first bytes of a text, as one word whose lowest byte is the first.
#[inline]
pub(super) fn load_word(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<8>().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Marks bytes below a limit of at most 0x80. Bytes above a mark may be marked falsely: the lowest mark is right.
#[inline]
pub(super) const fn bytes_below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * limit as u64) & !word & ALL
}

/// Marks bytes of a value. Bytes above a mark may be marked falsely: the lowest mark is right.
#[inline]
pub(super) const fn bytes_equal(word: u64, byte: u8) -> u64 {
    bytes_below(word ^ (ONES * byte as u64), 1)
}

/// Marks bytes of a value or of that value without a bit, as [`bytes_equal`] does.
#[inline]
pub(super) const fn bytes_equal_ignoring(word: u64, byte: u8, bit: u8) -> u64 {
    bytes_equal(word | (ONES * bit as u64), byte)
}

/// How many bytes are in front of the lowest mark.
#[inline]
pub(super) const fn bytes_before_mark(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}
