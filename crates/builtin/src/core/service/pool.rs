//! Free addresses and ports.
//!
//! The lower part of a range is reserved for services that request a specific address or port, until the
//! upper part is full.

use crate::checks::ip::Cidr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The size of the part of a range that is reserved for requests of specific numbers.
fn reserved(size: u128, step: u128, most: u128) -> u128 {
    // kube-apiserver's formula: services that need a fixed number rarely conflict with allocated ones.
    const LEAST: u128 = 16;
    match size <= LEAST {
        true => 0,
        false => (size / step).clamp(LEAST, most),
    }
}

/// Finds a number that is free: from the start on and around, in the upper part, then in the lower part.
fn pick(size: u128, reserved: u128, seed: u64, is_used: impl Fn(u128) -> bool) -> Option<u128> {
    let parts = [(reserved, size - reserved), (0, reserved)];
    parts.into_iter().find_map(|(start, length)| {
        // `checked_rem` skips a part that has no numbers.
        let first = u128::from(seed).checked_rem(length)?;
        let mut candidates = (first..length).chain(0..first).map(|offset| start + offset);
        candidates.find(|number| !is_used(*number))
    })
}

/// Picks a free port.
pub(super) fn pick_port(
    range: &RangeInclusive<u16>,
    seed: u64,
    is_used: impl Fn(u16) -> bool,
) -> Option<u16> {
    let size = u128::try_from(range.len()).unwrap_or(0);
    let port = |number: u128| u16::try_from(u128::from(*range.start()) + number).ok();
    let number = pick(size, reserved(size, 32, 128), seed, |n| {
        // A number outside the range counts as used.
        port(n).is_none_or(&is_used)
    })?;
    port(number)
}

/// The addresses of a network that services may have.
pub(super) struct AddressRange {
    /// The network.
    pub(super) cidr: Cidr,
    first: u128,
    size: u128,
}

impl AddressRange {
    /// All addresses of a network but the first one and, for IPv4, the last one.
    pub(super) fn new(cidr: Cidr) -> Self {
        let network = number_of(cidr.network().address);
        let bits = if cidr.address.is_ipv4() { 32 } else { 128 } - u32::from(cidr.prefix);
        // A larger network has more addresses than will ever be used.
        let all = 1_u128 << bits.min(64);
        let excluded = if cidr.address.is_ipv4() { 2 } else { 1 };
        AddressRange {
            cidr,
            first: network + 1,
            size: all.saturating_sub(excluded),
        }
    }

    /// The IP family.
    pub(super) fn family(&self) -> &'static str {
        if self.cidr.address.is_ipv4() {
            "IPv4"
        } else {
            "IPv6"
        }
    }

    fn address(&self, number: u128) -> Option<IpAddr> {
        let number = self.first.checked_add(number)?;
        Some(match self.cidr.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(number).ok()?)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(number)),
        })
    }

    /// Returns whether services may have an address.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        let number = number_of(address).checked_sub(self.first);
        address.is_ipv4() == self.cidr.address.is_ipv4() && number.is_some_and(|n| n < self.size)
    }

    /// Picks a free address.
    pub(super) fn pick(&self, seed: u64, is_used: impl Fn(&IpAddr) -> bool) -> Option<IpAddr> {
        let is_used = |n: u128| self.address(n).is_none_or(|a| is_used(&a));
        let number = pick(self.size, reserved(self.size, 16, 256), seed, is_used)?;
        self.address(number)
    }
}

fn number_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}
