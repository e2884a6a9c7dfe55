//! Values in memory. Large documents are repetitive: compressed with LZ4 they take a fifth of the memory, and
//! decompressing one costs less than sending it.

use std::fmt;

use bytes::Bytes;

/// Values from this size on are compressed. Smaller values are read often and would save little.
const MIN_COMPRESSED_BYTES: usize = 8 << 10;

/// The highest compression ratio of LZ4. A larger claim is damage.
const MAX_RATIO: usize = 255;

/// Immutable bytes, compressed if that saves at least half of them.
#[derive(Clone)]
pub struct MaybeCompressed(CompressedRepr);

#[derive(Clone)]
enum CompressedRepr {
    Plain(Bytes),
    /// An LZ4 block and its uncompressed length. Every block has been decompressed once.
    Block {
        block: Bytes,
        length: usize,
    },
}

impl MaybeCompressed {
    /// Compresses bytes if that saves enough.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        if bytes.len() >= MIN_COMPRESSED_BYTES {
            let block = lz4_flex::block::compress(&bytes);
            if block.len() <= bytes.len() / 2 {
                return Self(CompressedRepr::Block {
                    // A copy has no spare capacity.
                    block: Bytes::copy_from_slice(&block),
                    length: bytes.len(),
                });
            }
        }
        Self(CompressedRepr::Plain(bytes))
    }

    /// Wraps bytes without compression, for values that are soon dropped.
    #[must_use]
    pub fn uncompressed(bytes: Bytes) -> Self {
        Self(CompressedRepr::Plain(bytes))
    }

    /// Rebuilds a compressed value from [`MaybeCompressed::parts`]; `None` if it does not decompress.
    pub(crate) fn from_block(block: &[u8], length: usize) -> Option<Self> {
        // A damaged length must not make the decompressor allocate gigabytes.
        if length / MAX_RATIO > block.len() {
            return None;
        }
        let unpacked = lz4_flex::block::decompress(block, length).ok()?;
        (unpacked.len() == length).then(|| {
            Self(CompressedRepr::Block {
                block: Bytes::copy_from_slice(block),
                length,
            })
        })
    }

    /// Returns the stored bytes, and the uncompressed length if they are compressed.
    pub(crate) fn parts(&self) -> (&[u8], Option<usize>) {
        match &self.0 {
            CompressedRepr::Plain(bytes) => (bytes, None),
            CompressedRepr::Block { block, length } => (block, Some(*length)),
        }
    }

    /// Returns the bytes. Uncompressed values are not copied.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        match &self.0 {
            CompressedRepr::Plain(bytes) => bytes.clone(),
            CompressedRepr::Block { .. } => self.decompress().unwrap_or_else(|| {
                // The reader fails and reports the key, because empty text is not an object.
                tracing::error!("a value in memory cannot be unpacked");
                Bytes::new()
            }),
        }
    }

    /// Returns the bytes for durable copies, or `None` if they cannot be decompressed: empty text must not replace a value.
    ///
    /// INVARIANT: this process has compressed or decompressed every block, so this does not fail.
    pub(crate) fn decompress(&self) -> Option<Bytes> {
        match &self.0 {
            CompressedRepr::Plain(bytes) => Some(bytes.clone()),
            CompressedRepr::Block { block, length } => {
                let bytes = lz4_flex::block::decompress(block, *length).ok()?;
                (bytes.len() == *length).then(|| bytes.into())
            }
        }
    }

    /// Returns the uncompressed length.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            CompressedRepr::Plain(bytes) => bytes.len(),
            CompressedRepr::Block { length, .. } => *length,
        }
    }

    /// Returns whether the value is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of memory that the value occupies.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.parts().0.len()
    }
}

impl Default for MaybeCompressed {
    fn default() -> Self {
        Self::uncompressed(Bytes::new())
    }
}

impl From<Bytes> for MaybeCompressed {
    fn from(bytes: Bytes) -> Self {
        Self::new(bytes)
    }
}

impl From<Vec<u8>> for MaybeCompressed {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes.into())
    }
}

impl From<String> for MaybeCompressed {
    fn from(text: String) -> Self {
        Self::new(text.into())
    }
}

impl From<&'static str> for MaybeCompressed {
    fn from(text: &'static str) -> Self {
        Self::new(text.into())
    }
}

impl fmt::Debug for MaybeCompressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

impl PartialEq for MaybeCompressed {
    fn eq(&self, other: &Self) -> bool {
        // Equal bytes may have different encodings: another release may have compressed them differently.
        self.len() == other.len() && (self.parts() == other.parts() || self.bytes() == other.bytes())
    }
}

impl Eq for MaybeCompressed {}

impl PartialEq<[u8]> for MaybeCompressed {
    fn eq(&self, other: &[u8]) -> bool {
        self.len() == other.len() && self.bytes() == other
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_unpacks(word in "[a-z]{1,40}", times in 0..2_000_usize, noise: Vec<u8>) {
            let mut bytes = word.repeat(times).into_bytes();
            bytes.extend(noise);
            let packed = MaybeCompressed::new(bytes.clone().into());
            prop_assert_eq!(packed.len(), bytes.len());
            prop_assert_eq!(packed.bytes(), &bytes);
            prop_assert!(packed == *bytes);
            prop_assert!(packed.memory_bytes() == bytes.len() || packed.memory_bytes() <= bytes.len() / 2);
            if let (block, Some(length)) = packed.parts() {
                prop_assert!(length >= MIN_COMPRESSED_BYTES);
                prop_assert_eq!(MaybeCompressed::from_block(block, length), Some(packed.clone()));
                prop_assert_eq!(MaybeCompressed::from_block(block, length - 1), None);
            }
        }
    }
}
