//! Which addresses belong to the public internet, and what the others are.
//!
//! Whatever is not known to be public is refused: a guest that was granted a name must not reach the host's own network
//! because somebody answers that name with an address in it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bits that precede an IPv4 address in IPv6.
const MAPPED_BITS: u8 = 96;

/// A range of addresses, `10.0.0.0/8`. A single address is a range, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    first: IpAddr,
    bits: u8,
}

impl Range {
    /// The range of this address alone. One that stands for an IPv4 address in IPv6 is that IPv4 address.
    pub fn single(address: IpAddr) -> Self {
        let first = address.to_canonical();
        Self { first, bits: width(first) }
    }

    /// Reads `10.0.0.0/8`, `fd00::/8` or an address alone, or says what is wrong with it. `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| format!("`{address}` is not an IP address"))?;
        let Some(bits) = bits else { return Ok(Self::single(first)) };
        let range = bits.parse().ok().filter(|bits| *bits <= width(first)).map(|bits| Self { first, bits });
        let Some(range) = range else { return Err(format!("`/{bits}` is not a prefix of an address with {} bits", width(first))) };
        if range.masked(first) != number(first) {
            return Err(format!("`{text}` has bits set that are not in its prefix"));
        }
        // One of addresses that stand for IPv4 addresses in IPv6, which are compared as what they stand for.
        match (first.to_canonical(), range.bits.checked_sub(MAPPED_BITS)) {
            (first @ IpAddr::V4(_), Some(bits)) if range.first.is_ipv6() => Ok(Self { first, bits }),
            _ => Ok(range),
        }
    }

    /// Whether the address is in the range; one that stands for an IPv4 address in IPv6 is that IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        width(address) == width(self.first) && self.masked(address) == number(self.first)
    }

    /// Whether everything in the other range is in this one.
    pub fn covers(&self, other: &Range) -> bool {
        self.bits <= other.bits && self.contains(other.first)
    }

    fn masked(&self, address: IpAddr) -> u128 {
        let free = u32::from(width(address) - self.bits);
        number(address) & u128::MAX.checked_shl(free).unwrap_or(0)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bits == width(self.first) { self.first.fmt(f) } else { write!(f, "{}/{}", self.first, self.bits) }
    }
}

fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Range {
    Range { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
}

const fn v6(segments: [u16; 8], bits: u8) -> Range {
    let [a, b, c, d, e, f, g, h] = segments;
    Range { first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), bits }
}

/// IPv4 that is not the public internet, the special before the general.
const V4: [(Range, &str); 19] = [
    (v4(169, 254, 169, 254, 32), "a metadata service"),
    (v4(168, 63, 129, 16, 32), "a metadata service"),
    (v4(100, 100, 100, 200, 32), "a metadata service"),
    (v4(192, 0, 0, 192, 32), "a metadata service"),
    (v4(0, 0, 0, 0, 8), "this network"),
    (v4(10, 0, 0, 0, 8), "private"),
    (v4(100, 64, 0, 0, 10), "a carrier's private network"),
    (v4(127, 0, 0, 0, 8), "loopback"),
    (v4(169, 254, 0, 0, 16), "link-local"),
    (v4(172, 16, 0, 0, 12), "private"),
    (v4(192, 0, 0, 0, 24), "reserved for protocols"),
    (v4(192, 0, 2, 0, 24), "for documentation"),
    (v4(192, 88, 99, 0, 24), "a relay"),
    (v4(192, 168, 0, 0, 16), "private"),
    (v4(198, 18, 0, 0, 15), "for benchmarks"),
    (v4(198, 51, 100, 0, 24), "for documentation"),
    (v4(203, 0, 113, 0, 24), "for documentation"),
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(240, 0, 0, 0, 4), "reserved"),
];

/// IPv6 that is not the public internet, the special before the general. What is outside 2000::/3 is not public anyway.
const V6: [(Range, &str); 14] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "unspecified"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback"),
    (v6([0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254], 128), "a metadata service"),
    (v6([0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254], 128), "a metadata service"),
    (v6([0x0064, 0xff9b, 0x0001, 0, 0, 0, 0, 0], 48), "a local translation of IPv4"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "private"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link-local"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "site-local"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast"),
    // Teredo, benchmarks, ORCHID and what else is not a place on the internet.
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "reserved for protocols"),
    (v6([0x2001, 0x0db8, 0, 0, 0, 0, 0, 0], 32), "for documentation"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "for documentation"),
    (v6([0x0100, 0, 0, 0, 0, 0, 0, 0], 64), "a black hole"),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), "reserved for routers"),
];

/// The addresses that IPv6 gives out.
const GLOBAL: Range = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Prefixes of 96 bits after which an IPv4 address stands: compatible, mapped, translated, NAT64.
const CARRIERS: [Range; 4] = [
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96),
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96),
    v6([0x0064, 0xff9b, 0, 0, 0, 0, 0, 0], 96),
];

/// 6to4, where the IPv4 address stands right after the prefix.
const SIX_TO_FOUR: Range = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);

/// What the address is, where it is not on the public internet; None where it is.
pub fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    named(&V4, IpAddr::V4(address))
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    let whole = IpAddr::V6(address);
    if let Some(what) = named(&V6, whole) {
        return Some(what);
    }
    let [.., e, f, g, h] = address.segments();
    let last = join(g, h);
    if CARRIERS.iter().any(|carrier| carrier.masked(whole) == number(carrier.first)) {
        return not_public_v4(last);
    }
    if SIX_TO_FOUR.contains(whole) {
        let [_, a, b, ..] = address.segments();
        return not_public_v4(join(a, b));
    }
    // ISATAP puts an IPv4 address into the lower half of any network's addresses.
    if matches!((e, f), (0 | 0x0200, 0x5efe))
        && let Some(what) = not_public_v4(last)
    {
        return Some(what);
    }
    (!GLOBAL.contains(whole)).then_some("not given out")
}

fn join(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

fn named(table: &[(Range, &'static str)], address: IpAddr) -> Option<&'static str> {
    // Not `contains`, which would take a mapped address for IPv4.
    let within = |range: &Range| width(range.first) == width(address) && range.masked(address) == number(range.first);
    table.iter().find(|(range, _)| within(range)).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests;
