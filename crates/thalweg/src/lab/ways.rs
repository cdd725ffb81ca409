//! Where packets set out and arrive: by which of its destination's addresses a pair goes, and whether it gets there.
//!
//! That one packet does not arrive shows nothing: queues drop some, and TCP may be silent for a long time after. That
//! several in a row do not, and none after them, shows that the way does not lead there.

use std::collections::BTreeMap;

use thalweg_control::Pair;
use thalweg_network::{RouterId, Topology};
use thalweg_wire::{EthernetAddresses, Nanos, Timestamp};

/// So many packets have to have set out until it counts that none has arrived.
const ENOUGH: u32 = 3;

/// What has been seen of all pairs.
#[derive(Debug)]
pub(super) struct Ways {
    /// How long packets may be under way.
    transit: Nanos,
    latest: BTreeMap<Pair, Latest>,
    arrived: BTreeMap<(Pair, u8), Timestamp>,
}

/// What has set out by the address that a pair has now.
#[derive(Debug)]
struct Latest {
    address: u8,
    since: Timestamp,
    packets: u32,
    /// When there were [`ENOUGH`].
    enough: Timestamp,
}

/// What became of packets that set out by an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// They arrive.
    Arrived,
    /// They do not.
    Astray,
    /// Too few have set out, or too late, to say.
    Open,
    /// The pair goes by another address by now.
    Elsewhere,
}

impl Ways {
    /// With nothing seen, where packets may be under way for so long.
    pub(super) fn new(transit: Nanos) -> Ways {
        Ways { transit, latest: BTreeMap::new(), arrived: BTreeMap::new() }
    }

    /// A switch has a packet.
    pub(super) fn take(
        &mut self,
        topology: &Topology,
        router: RouterId,
        ethernet: &EthernetAddresses,
        time: Timestamp,
    ) {
        let Some((pair, address)) = Pair::of(topology, ethernet) else { return };
        if topology.router_of(pair.source) == router {
            let begun = || Latest { address, since: time, packets: 0, enough: time };
            let latest = self.latest.entry(pair).or_insert_with(begun);
            if latest.address != address {
                *latest = begun();
            }
            latest.packets = latest.packets.saturating_add(1);
            if latest.packets <= ENOUGH {
                latest.enough = time;
            }
        }
        if topology.router_of(pair.destination) == router {
            self.arrived.insert((pair, address), time);
        }
    }

    /// What became of a pair's packets by this address.
    pub(super) fn fate(&self, pair: Pair, address: u8, now: Timestamp) -> Fate {
        let Some(latest) = self.latest.get(&pair).filter(|latest| latest.address == address) else {
            return Fate::Elsewhere;
        };
        if self.arrived.get(&(pair, address)).is_some_and(|&time| time >= latest.since) {
            return Fate::Arrived;
        }
        let is_told = latest.packets >= ENOUGH && now >= latest.enough + self.transit;
        if is_told { Fate::Astray } else { Fate::Open }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_network::EndpointId;
    use thalweg_network::topology::shapes::{Tiers, leaf_spine};

    use super::*;

    const TRANSIT: Nanos = Nanos::from_millis(50);
    const PAIR: Pair = Pair { source: EndpointId(0), destination: EndpointId(2) };

    /// Two hosts a leaf, two leaves: both switches' sights of packets of the pair.
    struct Sights {
        topology: Topology,
        ways: Ways,
    }

    impl Sights {
        fn new() -> Sights {
            let topology = leaf_spine(2, 2, 2, Tiers::default()).unwrap();
            Sights { topology, ways: Ways::new(TRANSIT) }
        }

        fn at(&mut self, end: EndpointId, address: u8, millis: u64) {
            let router = self.topology.router_of(end);
            let ethernet = EthernetAddresses {
                destination: self.topology.mac(PAIR.destination, address),
                source: self.topology.mac(PAIR.source, 0),
            };
            self.ways.take(&self.topology, router, &ethernet, at(millis));
        }

        fn sets_out(&mut self, address: u8, millis: u64) {
            self.at(PAIR.source, address, millis);
        }

        fn arrives(&mut self, address: u8, millis: u64) {
            self.at(PAIR.destination, address, millis);
        }

        fn fate(&self, address: u8, millis: u64) -> Fate {
            self.ways.fate(PAIR, address, at(millis))
        }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp(0) + Nanos::from_millis(millis)
    }

    #[test]
    fn what_arrives_has_arrived_whichever_switch_is_heard_first() {
        let mut sights = Sights::new();
        sights.arrives(1, 11);
        sights.sets_out(1, 10);
        assert_eq!(sights.fate(1, 12), Fate::Arrived);
        // Packets of before the move are late: they take nothing back.
        sights.arrives(0, 13);
        assert_eq!(sights.fate(1, 90), Fate::Arrived);
        assert_eq!(sights.fate(0, 90), Fate::Elsewhere);
    }

    #[test]
    fn that_a_packet_or_two_do_not_arrive_shows_nothing() {
        let mut sights = Sights::new();
        sights.sets_out(1, 10);
        sights.sets_out(1, 11);
        assert_eq!(sights.fate(1, 500), Fate::Open);
        sights.sets_out(1, 500);
        assert_eq!(sights.fate(1, 549), Fate::Open, "the third may be under way");
        assert_eq!(sights.fate(1, 550), Fate::Astray);
        sights.sets_out(1, 551);
        assert_eq!(sights.fate(1, 552), Fate::Astray, "whatever else sets out");
        sights.arrives(1, 553);
        assert_eq!(sights.fate(1, 553), Fate::Arrived);
    }

    #[test]
    fn what_arrived_when_the_pair_was_there_before_does_not_count() {
        let mut sights = Sights::new();
        sights.sets_out(1, 1);
        sights.arrives(1, 2);
        sights.sets_out(0, 10);
        (20..23).for_each(|millis| sights.sets_out(1, millis));
        assert_eq!(sights.fate(1, 100), Fate::Astray);
    }
}
