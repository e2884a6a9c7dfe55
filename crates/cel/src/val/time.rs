//! Durations and timestamps as values; their notations are in [`scantling_notation`].

use super::EvalError;
use scantling_notation::timestamp::Moment;

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    /// Its length.
    pub nanos: i64,
}

/// A point in time, and the offset from UTC at which it was written.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds after that, below 1 000 000 000.
    pub nanos: u32,
    /// The offset from UTC in seconds; only visible in text.
    pub offset: i32,
}

const NANOS: i128 = 1_000_000_000;

impl Timestamp {
    /// 0001-01-01T00:00:00Z
    pub const MIN_SECONDS: i64 = -62_135_596_800;
    /// 9999-12-31T23:59:59Z
    pub const MAX_SECONDS: i64 = 253_402_300_799;

    /// Creates a timestamp in UTC, if it is in range.
    pub fn new(seconds: i64, nanos: u32) -> Result<Self, EvalError> {
        if (Self::MIN_SECONDS..=Self::MAX_SECONDS).contains(&seconds) {
            Ok(Timestamp {
                seconds,
                nanos,
                offset: 0,
            })
        } else {
            Err(EvalError::TimestampOverflow)
        }
    }

    /// Checks that the timestamp is in range. Input may be out of range, computed values may not.
    pub fn in_range(self) -> Result<Self, EvalError> {
        Timestamp::new(self.seconds, self.nanos).map(|_| self)
    }

    fn total(self) -> i128 {
        // 128 bits, because the range of a timestamp in nanoseconds exceeds 64 bits.
        i128::from(self.seconds) * NANOS + i128::from(self.nanos)
    }

    /// Adds nanoseconds, which may be negative.
    pub fn shifted(self, nanos: i128) -> Result<Self, EvalError> {
        let total = self.total() + nanos;
        let seconds = i64::try_from(total.div_euclid(NANOS)).map_err(|_| EvalError::TimestampOverflow)?;
        let nanos = u32::try_from(total.rem_euclid(NANOS)).map_err(|_| EvalError::TimestampOverflow)?;
        Ok(Timestamp {
            offset: self.offset,
            ..Timestamp::new(seconds, nanos)?
        })
    }

    /// The duration since an earlier timestamp.
    pub fn since(self, earlier: Timestamp) -> Result<Duration, EvalError> {
        i64::try_from(self.total() - earlier.total())
            .map(|nanos| Duration { nanos })
            .map_err(|_| EvalError::IntOverflow)
    }
}

impl From<Moment> for Timestamp {
    fn from(moment: Moment) -> Self {
        Timestamp {
            seconds: moment.seconds,
            nanos: moment.nanos,
            offset: moment.offset,
        }
    }
}

impl From<Timestamp> for Moment {
    fn from(t: Timestamp) -> Self {
        Moment {
            seconds: t.seconds,
            nanos: t.nanos,
            offset: t.offset,
        }
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        // Without the offset: the same moment is equal however it was written.
        self.total() == other.total()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.total().cmp(&other.total())
    }
}
