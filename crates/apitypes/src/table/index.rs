//! Finds fields by their names.

/// A hash table of positions by name. The names stay with the fields.
#[derive(Debug, Default)]
pub(super) struct NameIndex {
    /// The positions; a power of two of slots, at most half of them used.
    slots: Box<[Option<u8>]>,
}

impl NameIndex {
    /// The index of a list of names; `None` if it is too long.
    pub(super) fn new<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> Option<NameIndex> {
        let mut slots = vec![None; (2 * names.len()).next_power_of_two()];
        for (position, name) in names.enumerate() {
            let start = hash(name) & (slots.len() - 1);
            // At least half of the slots are free, so one is found.
            let (before, from) = slots.split_at_mut_checked(start)?;
            let free = from.iter_mut().chain(before).find(|slot| slot.is_none())?;
            *free = Some(u8::try_from(position).ok()?);
        }
        let slots = slots.into();
        Some(NameIndex { slots })
    }

    /// The positions that a name may have.
    #[inline]
    pub(super) fn candidates(&self, name: &str) -> impl Iterator<Item = usize> {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = hash(name);
        std::iter::from_fn(move || {
            let position = (*self.slots.get(at & last)?)?;
            at += 1;
            Some(usize::from(position))
        })
    }
}

/// The length and the first and last bytes of a name tell fields apart.
#[inline]
fn hash(name: &str) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let bytes = name.as_bytes();
    let word = if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(31)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
    } else {
        bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
    };
    // The high bits of the product depend on all bits of the word.
    let mixed = (word ^ name.len() as u64).wrapping_mul(ODD) >> 40;
    mixed as usize
}
