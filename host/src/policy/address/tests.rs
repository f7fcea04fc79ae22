//! Tables of addresses, and what must hold for all of them.

use super::*;
use proptest::prelude::*;

fn said(text: &str) -> Option<&'static str> {
    not_public(text.parse().unwrap())
}

#[test]
fn public_addresses_are_public() {
    for text in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "2001:200::1",
        "2a00::",
        "::ffff:1.1.1.1",
        "64:ff9b::808:808",
        "2002:808:808::1",
        "2a00:1:2:3:0:5efe:808:808",
    ] {
        assert_eq!(said(text), None, "{text}");
    }
}

#[test]
fn everything_else_is_named() {
    for (text, what) in [
        ("0.0.0.0", "this network"),
        ("0.255.255.255", "this network"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("100.64.0.0", "a carrier's private network"),
        ("100.127.255.255", "a carrier's private network"),
        ("100.100.100.200", "a metadata service"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.255", "loopback"),
        ("169.254.0.0", "link-local"),
        ("169.254.169.254", "a metadata service"),
        ("168.63.129.16", "a metadata service"),
        ("172.16.0.0", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.1", "reserved for protocols"),
        ("192.0.0.192", "a metadata service"),
        ("192.0.2.1", "for documentation"),
        ("192.88.99.1", "a relay"),
        ("192.168.0.0", "private"),
        ("192.168.255.255", "private"),
        ("198.18.0.0", "for benchmarks"),
        ("198.19.255.255", "for benchmarks"),
        ("198.51.100.1", "for documentation"),
        ("203.0.113.1", "for documentation"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.0", "reserved"),
        ("255.255.255.255", "reserved"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("fc00::", "private"),
        ("fd00:ec2::254", "a metadata service"),
        ("fd20:ce::254", "a metadata service"),
        ("fdff:ffff::1", "private"),
        ("fe80::1", "link-local"),
        ("febf::1", "link-local"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
        ("100::1", "a black hole"),
        ("2001::1", "reserved for protocols"),
        ("2001:0:7f00:1::", "reserved for protocols"),
        ("2001:db8::1", "for documentation"),
        ("3fff::1", "for documentation"),
        ("5f00::1", "reserved for routers"),
        ("64:ff9b:1::1", "a local translation of IPv4"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:169.254.169.254", "a metadata service"),
        ("::127.0.0.1", "loopback"),
        ("::ffff:0:10.0.0.1", "private"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b::a9fe:a9fe", "a metadata service"),
        ("2002:7f00:1::1", "loopback"),
        ("2002:c0a8:1::1", "private"),
        ("2a00:1:2:3:0:5efe:a00:1", "private"),
        ("2a00:1:2:3:200:5efe:7f00:1", "loopback"),
        ("4000::1", "not given out"),
        ("1::1", "not given out"),
    ] {
        assert_eq!(said(text), Some(what), "{text}");
    }
}

#[test]
fn ranges_are_read_or_refused_with_the_reason() {
    for (text, shown) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("fd00::/8", "fd00::/8"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("1.2.3.4/32", "1.2.3.4"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
        ("::ffff:1.2.3.4/128", "1.2.3.4"),
        ("::/0", "::/0"),
    ] {
        assert_eq!(Range::parse(text).unwrap().to_string(), shown);
    }
    for (text, part) in [
        ("10.0.0.1/8", "bits set that are not in its prefix"),
        ("10.0.0.0/33", "`/33`"),
        ("10.0.0.0/", "`/`"),
        ("fd00::/129", "128 bits"),
        ("10.0.0/8", "`10.0.0`"),
        ("", "not an IP address"),
    ] {
        let error = Range::parse(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    let all = Range::parse("0.0.0.0/0").unwrap();
    assert!(all.contains("255.1.2.3".parse().unwrap()) && all.contains("::ffff:1.2.3.4".parse().unwrap()));
    assert!(!all.contains("2a00::1".parse().unwrap()));
}

proptest! {
    #[test]
    fn an_ipv4_address_is_not_more_public_inside_ipv6(bits: u32, network: u64) {
        let inner = Ipv4Addr::from_bits(bits);
        let low = u128::from(bits);
        let carried = [
            inner.to_ipv6_mapped(),
            Ipv6Addr::from_bits(low),
            Ipv6Addr::from_bits(0xffff_0000 << 32 | low),
            Ipv6Addr::from_bits(0x0064_ff9b_u128 << 96 | low),
            Ipv6Addr::from_bits(0x2002_u128 << 112 | low << 80 | u128::from(network)),
            Ipv6Addr::from_bits(u128::from(network) << 64 | 0x5efe_u128 << 32 | low),
        ];
        if not_public(IpAddr::V4(inner)).is_some() {
            for address in carried {
                prop_assert!(not_public(IpAddr::V6(address)).is_some(), "{address}");
            }
        }
    }

    #[test]
    fn only_what_ipv6_gives_out_or_carries_is_public(bits: u128) {
        let address = Ipv6Addr::from_bits(bits);
        if not_public(IpAddr::V6(address)).is_none() {
            let [first, ..] = address.segments();
            prop_assert!(first >> 13 == 1 || matches!(first, 0 | 0x64), "{address}");
        }
    }

    #[test]
    fn a_range_has_what_begins_with_its_prefix(bits: u32, prefix in 0u8..=32, other: u32) {
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        let range = Range::parse(&format!("{}/{prefix}", Ipv4Addr::from_bits(bits & mask))).unwrap();
        prop_assert!(range.contains(IpAddr::V4(Ipv4Addr::from_bits(bits))));
        prop_assert_eq!(range.contains(IpAddr::V4(Ipv4Addr::from_bits(other))), other & mask == bits & mask);
    }
}
