//! Sites, their hosts, and the routers between sites.
//!
//! Laboratories and universities are autonomous systems, assigned to the routers in turn. A path starts at the router
//! of the source and ends at that of the destination; it is always the same for two sites. Numbers are from ranges for
//! private use and for documentation (RFC 6996, RFC 1918, RFC 3849, RFC 2544).

use thalweg_wire::flow_export::Address;

use super::options::MAX_PATH;
use crate::random::Random;

/// Number of sites that are laboratories, which send most transfers (section 2.3.1).
const LABORATORIES: u64 = 5;

/// Number of all sites.
const SITES: u64 = 200;

/// Data transfer nodes per laboratory and per university.
const LABORATORY_DTNS: u64 = 48;
const UNIVERSITY_DTNS: u64 = 8;

/// First autonomous system number for private use.
const FIRST_AS: u32 = 64_512;

/// Other hosts of a site have numbers from here to 65,534.
const FIRST_ORDINARY_HOST: u64 = 256;
const ORDINARY_HOSTS: u64 = 65_534 - FIRST_ORDINARY_HOST + 1;

/// Share of transfers sent by a laboratory: Tables 2.2 and 2.4 have three to ten times as many as received.
const OUTBOUND_SHARE: f64 = 0.8;

/// Prefix length of a site.
pub(super) const V4_PREFIX_LENGTH: u8 = 16;
pub(super) const V6_PREFIX_LENGTH: u8 = 48;

/// A site's number.
pub(super) type Site = u8;

/// A router's number.
pub(super) type Router = u8;

/// A host of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Host {
    pub site: Site,
    number: u16,
}

/// Routers in the order that packets traverse them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    routers: [Router; MAX_PATH as usize],
    length: u8,
}

impl Path {
    /// Returns the routers.
    #[inline]
    pub(super) fn routers(&self) -> &[Router] {
        &self.routers[..usize::from(self.length)]
    }
}

/// The number of routers, and of those on a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub routers: u8,
    pub path_routers: u8,
}

impl Network {
    /// Draws two data transfer nodes for a transfer.
    pub(super) fn transfer(&self, random: &mut Random) -> (Host, Host) {
        let laboratory = random.zipf(LABORATORIES);
        let other = loop {
            // A university, or sometimes another laboratory.
            let other = match random.chance(0.15) {
                true => random.below(LABORATORIES),
                false => LABORATORIES + random.zipf(SITES - LABORATORIES),
            };
            if self.are_apart(laboratory, other) {
                break other;
            }
        };
        let ends = (transfer_node(laboratory, random), transfer_node(other, random));
        if random.chance(OUTBOUND_SHARE) { ends } else { (ends.1, ends.0) }
    }

    /// Draws two hosts for a background flow.
    #[inline]
    pub(super) fn background(&self, random: &mut Random) -> (Host, Host) {
        let site = random.zipf(SITES);
        let other = loop {
            let other = random.below(SITES);
            if self.are_apart(site, other) {
                break other;
            }
        };
        let mut host = |site: u64| Host {
            site: site as Site,
            number: (FIRST_ORDINARY_HOST + random.zipf(ORDINARY_HOSTS)) as u16,
        };
        let ends = (host(site), host(other));
        if random.chance(0.5) { ends } else { (ends.1, ends.0) }
    }

    /// Whether two sites have a path of the right length.
    fn are_apart(&self, site: u64, other: u64) -> bool {
        let is_apart = site % u64::from(self.routers) != other % u64::from(self.routers);
        site != other && (is_apart || self.path_routers == 1)
    }

    /// Returns the path between two sites.
    #[inline]
    pub(super) fn path(&self, from: Site, to: Site) -> Path {
        let mut path = Path { routers: [from % self.routers; MAX_PATH as usize], length: self.path_routers };
        let length = usize::from(self.path_routers);
        if length == 1 {
            return path;
        }
        path.routers[length - 1] = to % self.routers;
        // Between the ends, start at a router that depends on both sites and skip those already on the path.
        let mut router = (u32::from(from) * 31 + u32::from(to) * 17) as u8 % self.routers;
        for hop in 1..length - 1 {
            while path.routers[..hop].contains(&router) || path.routers[length - 1] == router {
                router = (router + 1) % self.routers;
            }
            path.routers[hop] = router;
        }
        path
    }

    /// Whether transfers on the path are half as fast, as on the long path of Figure 2.1.
    pub(super) fn is_long(&self, from: Site, to: Site) -> bool {
        (u32::from(from) * 7 + u32::from(to) * 13) % 3 == 0
    }
}

fn transfer_node(site: u64, random: &mut Random) -> Host {
    let nodes = if site < LABORATORIES { LABORATORY_DTNS } else { UNIVERSITY_DTNS };
    Host { site: site as Site, number: 1 + random.zipf(nodes) as u16 }
}

/// Returns an address in 10.SITE.0.0/16.
#[inline]
pub(super) fn v4(host: Host) -> Address {
    Address::v4(10 << 24 | u32::from(host.site) << 16 | u32::from(host.number))
}

/// Returns an address in 2001:db8:SITE::/48.
#[inline]
pub(super) fn v6(host: Host) -> Address {
    Address(0x2001_0db8 << 96 | u128::from(host.site) << 80 | u128::from(host.number))
}

/// Returns the autonomous system of a site.
#[inline]
pub(super) fn autonomous_system(site: Site) -> u32 {
    FIRST_AS + u32::from(site)
}

/// Returns the address of a router as an exporter, in 198.18.0.0/24.
#[inline]
pub fn exporter(router: u8) -> Address {
    Address::v4(0xC612_0001 + u32::from(router))
}

/// Returns the IPv6 address of the same router.
#[inline]
pub(super) fn exporter_v6(router: Router) -> Address {
    Address((0x2001_0db8_ffff << 80) | (u128::from(router) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_its_length_without_loops_between_its_sites() {
        for (routers, path_routers) in [(66, 3), (3, 3), (8, 8), (2, 2), (1, 1), (254, 8)] {
            let network = Network { routers, path_routers };
            let mut random = Random::new(1);
            for _ in 0..1_000 {
                let (from, to) = network.background(&mut random);
                let path = network.path(from.site, to.site);
                let mut distinct = path.routers().to_vec();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(distinct.len(), usize::from(path_routers));
                assert_eq!(path.routers()[0], from.site % routers);
                if path_routers > 1 {
                    assert_eq!(path.routers()[distinct.len() - 1], to.site % routers);
                }
            }
        }
    }
}
