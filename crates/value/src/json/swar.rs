//! SIMD within a register: classifies eight bytes of a text at once. A mark is the high bit of a byte.

const ONES: u64 = u64::MAX / 255;
/// The mark bit of every byte.
pub(super) const ALL: u64 = ONES * 0x80;

/// Loads the first eight bytes of a text as a little-endian word.
#[inline]
pub(super) fn load_word(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<8>().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Marks bytes below a limit of at most 0x80. Bytes above the lowest mark may be marked falsely.
#[inline]
pub(super) const fn bytes_below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * limit as u64) & !word & ALL
}

/// Marks bytes equal to `byte`. Bytes above the lowest mark may be marked falsely.
#[inline]
pub(super) const fn bytes_equal(word: u64, byte: u8) -> u64 {
    bytes_below(word ^ (ONES * byte as u64), 1)
}

/// Marks bytes equal to `byte`, ignoring one bit. Bytes above the lowest mark may be marked falsely.
#[inline]
pub(super) const fn bytes_equal_ignoring(word: u64, byte: u8, bit: u8) -> u64 {
    bytes_equal(word | (ONES * bit as u64), byte)
}

/// The number of bytes before the lowest mark.
#[inline]
pub(super) const fn bytes_before_mark(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}
