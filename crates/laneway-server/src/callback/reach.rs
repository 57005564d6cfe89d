//! Where callbacks may go: to addresses of the public network, and to those that a deployment names. Whoever may write a
//! document must not be able to make a node ask what only that node can reach. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is allowed beside the public network.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    hosts: Vec<String>,
    nets: Vec<(IpAddr, u8)>,
}

impl Reach {
    /// From names of hosts, addresses, and networks such as `10.0.0.0/8`.
    pub fn new<'a>(allowed: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut reach = Self::default();
        for text in allowed.into_iter().map(str::trim).filter(|text| !text.is_empty()) {
            let (address, bits) = match text.split_once('/') {
                Some((address, bits)) => (address, Some(bits)),
                None => (text, None),
            };
            match (address.trim_matches(['[', ']']).parse::<IpAddr>(), bits) {
                (Ok(address), bits) => {
                    let most = if address.is_ipv4() { 32 } else { 128 };
                    let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most));
                    let bits = bits.ok_or_else(|| format!("`{text}` is no network such as 10.0.0.0/8"))?;
                    reach.nets.push((address, bits));
                }
                (Err(_), None) => reach.hosts.push(text.to_ascii_lowercase()),
                (Err(_), Some(_)) => return Err(format!("`{text}` is neither a host nor a network")),
            }
        }
        Ok(reach)
    }

    /// Returns the address at which a host is refused, where that is known without asking anybody.
    pub(super) fn refused(&self, host: &str) -> Option<IpAddr> {
        let lower = host.to_ascii_lowercase();
        let is_here = lower == "localhost" || lower.ends_with(".localhost");
        let addresses: &[IpAddr] = match host.parse() {
            Ok(address) => &[address],
            Err(_) if is_here => &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)],
            Err(_) => &[],
        };
        let first = addresses.first().copied()?;
        (!addresses.iter().any(|address| self.allows(host, *address))).then_some(first)
    }

    /// Whether a host may be asked at an address that its name stands for.
    pub(super) fn allows(&self, host: &str, address: IpAddr) -> bool {
        let address = plain(address);
        is_public(address)
            || self.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
            || self.nets.iter().any(|(net, bits)| is_in(address, plain(*net), *bits))
    }
}

/// An address of the old kind is one, also in the clothes of the new.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
    }
}

fn is_in(address: IpAddr, net: IpAddr, bits: u8) -> bool {
    let same = |one: u128, other: u128, width: u32| {
        let rest = width.saturating_sub(u32::from(bits));
        rest >= 128 || one >> rest == other >> rest
    };
    match (address, net) {
        (IpAddr::V4(one), IpAddr::V4(other)) => same(one.to_bits().into(), other.to_bits().into(), 32),
        (IpAddr::V6(one), IpAddr::V6(other)) => same(one.to_bits(), other.to_bits(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => is_public_v4(four),
        IpAddr::V6(six) => is_public_v6(six),
    }
}

/// Networks that are not part of the public one (IANA's registry of special purposes).
const SPECIAL_V4: [(Ipv4Addr, u8); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

fn is_public_v4(four: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|(net, bits)| is_in(four.into(), (*net).into(), *bits))
}

/// Only what is given out is public. What carries an address of the old kind leads to that.
fn is_public_v6(six: Ipv6Addr) -> bool {
    let parts = six.segments();
    let is_given_out = parts[0] & 0xe000 == 0x2000;
    // 2001::/23 is for protocols, 2001:db8::/32 and 3fff::/20 for documentation.
    let is_special = parts[0] == 0x2001 && (parts[1] < 0x200 || parts[1] == 0xdb8)
        || parts[0] == 0x3fff && parts[1] < 0x1000;
    let carried = match parts {
        [0x2002, a, b, ..] => Some((a, b)),
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] => Some((a, b)),
        _ => None,
    };
    match carried {
        Some((a, b)) => is_public_v4(Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b))),
        None => is_given_out && !is_special,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(reach: &Reach, address: &str) -> bool {
        reach.allows("told.example", address.parse().expect("an address"))
    }

    #[test]
    fn only_the_public_network_is_reached_by_itself() {
        let reach = Reach::default();
        for public in [
            "93.184.215.14",
            "1.1.1.1",
            "2606:4700:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert!(allows(&reach, public), "{public}");
        }
        for special in [
            "127.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.31.255.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::1",
            "2001:db8::1",
            "2001::1",
            "3fff::1",
            "64:ff9b:1::1",
        ] {
            assert!(!allows(&reach, special), "{special}");
        }
    }

    #[test]
    fn host_is_judged_by_its_name_where_that_is_an_address() {
        let reach = Reach::new(["10.0.0.0/8", "near.localhost"]).expect("a reach");
        for host in ["10.1.2.3", "1.1.1.1", "a.example", "near.localhost", "127.1"] {
            assert_eq!(reach.refused(host), None, "{host}");
        }
        for (host, at) in [("192.168.0.1", "192.168.0.1"), ("localhost", "127.0.0.1"), ("::1", "::1")] {
            assert_eq!(reach.refused(host), at.parse().ok(), "{host}");
        }
    }

    #[test]
    fn deployment_names_what_else_is_reached() {
        let reach = Reach::new(["10.0.0.0/8", "fd00::/8", "127.0.0.1", "Told.Example"]).expect("a reach");
        for near in ["10.255.0.1", "fd00::1", "127.0.0.1", "192.168.0.1", "::ffff:10.0.0.1"] {
            assert!(allows(&reach, near), "{near}");
        }
        assert!(!reach.allows("other.example", "192.168.0.1".parse().expect("an address")));
        assert!(!reach.allows("other.example", "127.0.0.2".parse().expect("an address")));
        let all = Reach::new(["0.0.0.0/0", "::/0"]).expect("a reach");
        assert!(allows(&all, "127.0.0.1") && allows(&all, "::1"));
        for bad in ["10.0.0.0/33", "10.0.0.0/x", "host/8"] {
            assert!(Reach::new([bad]).is_err(), "{bad}");
        }
    }
}
