//! The sort of Go's `sort.Slice`, which is not stable: the order of elements with equal keys is part of a result.
//!
//! It is a pattern-defeating quicksort: insertion sort for short ranges, a pivot of several medians, heapsort after too
//! many bad pivots. Every comparison and exchange counts, so the constants are Go's.

use std::ops::Range;

/// Ranges up to this length are sorted by insertion.
const SHORT: usize = 12;
/// From this length on, more elements take part in the choice of a pivot, and few misplaced ones are inserted.
const LONG: usize = 50;
/// The number of exchanges in the choice of a pivot that shows a descending range.
const MAX_EXCHANGES: u32 = 12;

/// Sorts elements; `less` need not be an order.
pub(super) fn sort<T>(items: &mut [T], less: impl Fn(&T, &T) -> bool) {
    let (range, limit) = (0..items.len(), usize::BITS - items.len().leading_zeros());
    Quicksort { items, less }.quicksort(range, limit);
}

struct Quicksort<'s, T, L> {
    items: &'s mut [T],
    less: L,
}

impl<T, L: Fn(&T, &T) -> bool> Quicksort<'_, T, L> {
    fn less(&self, a: usize, b: usize) -> bool {
        let pair = self.items.get(a).zip(self.items.get(b));
        pair.is_some_and(|(a, b)| (self.less)(a, b))
    }

    fn swap(&mut self, a: usize, b: usize) {
        // Both are within the range, so nothing is left out.
        if a.max(b) < self.items.len() {
            self.items.swap(a, b);
        }
    }

    fn quicksort(&mut self, mut range: Range<usize>, mut limit: u32) {
        let (mut balanced, mut partitioned) = (true, true);
        while range.len() > SHORT {
            if limit == 0 {
                return self.heapsort(range);
            }
            if !balanced {
                self.scatter(&range);
                limit -= 1;
            }
            let (mut pivot, exchanges) = self.pivot(&range);
            if exchanges == MAX_EXCHANGES {
                if let Some(descending) = self.items.get_mut(range.clone()) {
                    descending.reverse();
                }
                pivot = range.end - 1 - (pivot - range.start);
            }
            let is_ascending = exchanges == 0 || exchanges == MAX_EXCHANGES;
            if balanced && partitioned && is_ascending && self.insert_few(&range) {
                return;
            }
            // The element before the range is not less than the pivot: the pivot is the minimum, with many equals.
            if range.start > 0 && !self.less(range.start - 1, pivot) {
                range.start = self
                    .divide(&range, pivot, |sort, first, at| !sort.less(first, at))
                    .0;
                continue;
            }
            let (end, exchanged) = self.divide(&range, pivot, |sort, first, at| sort.less(at, first));
            let middle = end - 1;
            self.swap(middle, range.start);
            partitioned = !exchanged;
            let (left, right) = (middle - range.start, range.end - middle);
            balanced = left.min(right) >= range.len() / 8;
            // The smaller part recurses, which bounds the depth.
            let (left_part, right_part) = (range.start..middle, middle + 1..range.end);
            let (small, large) = match left < right {
                true => (left_part, right_part),
                false => (right_part, left_part),
            };
            self.quicksort(small, limit);
            range = large;
        }
        self.insertion_sort(range);
    }

    /// Moves the pivot to the start, and the elements that belong to the left before all others. Returns the end of the
    /// left part, and whether elements were exchanged.
    fn divide(
        &mut self,
        range: &Range<usize>,
        pivot: usize,
        is_left: fn(&Self, usize, usize) -> bool,
    ) -> (usize, bool) {
        let first = range.start;
        self.swap(first, pivot);
        let (mut low, mut high, mut exchanged) = (first + 1, range.end, false);
        loop {
            while low < high && is_left(self, first, low) {
                low += 1;
            }
            while low < high && !is_left(self, first, high - 1) {
                high -= 1;
            }
            if low >= high {
                return (low, exchanged);
            }
            exchanged = true;
            high -= 1;
            self.swap(low, high);
            low += 1;
        }
    }

    /// The pivot, and the number of exchanges that its choice took.
    fn pivot(&self, range: &Range<usize>) -> (usize, u32) {
        let quarter = range.len() / 4;
        let mut exchanges = 0;
        let mut median = |mut a: usize, mut b: usize, mut c: usize| {
            let mut order = |a: &mut usize, b: &mut usize| {
                if self.less(*b, *a) {
                    exchanges += 1;
                    std::mem::swap(a, b);
                }
            };
            order(&mut a, &mut b);
            order(&mut b, &mut c);
            order(&mut a, &mut b);
            b
        };
        let mut places = [1, 2, 3].map(|n| range.start + quarter * n);
        if range.len() >= LONG {
            places = places.map(|at| median(at - 1, at, at + 1));
        }
        let [a, b, c] = places;
        (median(a, b, c), exchanges)
    }

    /// Sorts a range with few elements out of place; returns false if it gives up.
    fn insert_few(&mut self, range: &Range<usize>) -> bool {
        const MAX_INSERTED: usize = 5;
        let mut at = range.start + 1;
        for _ in 0..MAX_INSERTED {
            while at < range.end && !self.less(at, at - 1) {
                at += 1;
            }
            if at == range.end {
                return true;
            }
            if range.len() < LONG {
                return false;
            }
            self.swap(at, at - 1);
            if at - range.start >= 2 {
                self.sink(at - 1, 1);
            }
            let mut above = at + 1;
            while above < range.end && self.less(above, above - 1) {
                self.swap(above, above - 1);
                above += 1;
            }
        }
        false
    }

    /// Moves an element down as long as it is less than the one before it.
    fn sink(&mut self, mut at: usize, end: usize) {
        while at >= end && self.less(at, at - 1) {
            self.swap(at, at - 1);
            at -= 1;
        }
    }

    fn insertion_sort(&mut self, range: Range<usize>) {
        for at in range.clone().skip(1) {
            self.sink(at, range.start + 1);
        }
    }

    /// Exchanges three elements in the middle with others, chosen by a xorshift generator.
    fn scatter(&mut self, range: &Range<usize>) {
        let length = range.len();
        let mask = (length + 1).next_power_of_two() - 1;
        let middle = range.start + length / 4 * 2;
        let mut random = length as u64;
        for at in middle - 1..=middle + 1 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = usize::try_from(random & mask as u64).unwrap_or(0);
            self.swap(
                at,
                range.start + if other < length { other } else { other - length },
            );
        }
    }

    fn heapsort(&mut self, range: Range<usize>) {
        for root in (0..range.len().div_ceil(2)).rev() {
            self.sift_down(&range, root, range.len());
        }
        for end in (0..range.len()).rev() {
            self.swap(range.start, range.start + end);
            self.sift_down(&range, 0, end);
        }
    }

    fn sift_down(&mut self, range: &Range<usize>, mut root: usize, end: usize) {
        let first = range.start;
        while 2 * root + 1 < end {
            let mut child = 2 * root + 1;
            if child + 1 < end && self.less(first + child, first + child + 1) {
                child += 1;
            }
            if !self.less(first + root, first + child) {
                return;
            }
            self.swap(first + root, first + child);
            root = child;
        }
    }
}
