//! Whether the packets of a rerouted pair arrive, from what collectors report of their switches.
//!
//! That one packet does not arrive shows nothing: queues drop some, and TCP may be silent for a long time after. That
//! [several](ENOUGH) in a row do not, and none after them, shows that the path does not lead there.
//!
//! **Nothing is concluded from what was not reported.** Packets count as missing only if the collector at the destination
//! says so: that it has watched since before the first of them set out, and that nothing has arrived by a time at which all of
//! them should have. It is asked again as long as the answer is [open](Fate::Open): a report may get lost. Where no collector
//! watches, or the packets are too few, the answer is [given up](PATIENCE) in the end.

use std::collections::BTreeMap;

use thalweg_measure::collector::{ArrivalReport, Progress};
use thalweg_wire::{Nanos, Timestamp};

use crate::pair::Pair;

/// Packets that have to set out before it counts that none has arrived.
pub const ENOUGH: u32 = 3;

/// An answer that is open for so long is given up. TCP that gets nothing through has sent six segments by then (RFC 6298: after
/// 0.2, 0.6, 1.4, 3, 6.2 s with Linux's least timeout).
pub const PATIENCE: Nanos = Nanos::from_secs(10);

/// What became of packets that set out by an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They arrive.
    Arrived,
    /// They do not.
    Astray,
    /// Too few have set out, or too late, to say.
    Open,
    /// The pair goes by another address by now, or the answer was given up.
    Elsewhere,
}

/// What is known of one pair.
#[derive(Clone, Copy, Debug)]
struct Watch {
    address: u8,
    /// Nothing had arrived from the first of these times to the second.
    awaiting: Option<(Timestamp, Timestamp)>,
    /// When the first and the last of [`ENOUGH`] packets set out.
    set_out: Option<(Timestamp, Timestamp)>,
    has_arrived: bool,
    /// Packets of the pair have set out by another address since.
    is_elsewhere: bool,
    until: Timestamp,
}

/// The pairs whose packets are watched.
#[derive(Clone, Debug)]
pub struct ArrivalCheck {
    /// How long packets may be under way.
    transit: Nanos,
    most: usize,
    watches: BTreeMap<Pair, Watch>,
}

impl ArrivalCheck {
    /// Watches nothing yet, and `most` pairs at the same time, whose packets may be under way for so long.
    pub fn new(transit: Nanos, most: usize) -> ArrivalCheck {
        ArrivalCheck { transit, most, watches: BTreeMap::new() }
    }

    /// Watches a pair that is sent to an address, until the given time. `false` if there is no room.
    pub fn watch(&mut self, pair: Pair, address: u8, until: Timestamp) -> bool {
        if self.watches.len() >= self.most && !self.watches.contains_key(&pair) {
            return false;
        }
        let watch =
            Watch { address, awaiting: None, set_out: None, has_arrived: false, is_elsewhere: false, until };
        self.watches.insert(pair, watch);
        true
    }

    /// Watches nothing any more.
    pub fn clear(&mut self) {
        self.watches.clear();
    }

    /// A collector reports of a pair and an address.
    pub fn report(&mut self, pair: Pair, address: u8, report: &ArrivalReport) {
        let Some(watch) = self.watches.get_mut(&pair).filter(|watch| watch.address == address) else {
            return;
        };
        match report.progress {
            Progress::Awaiting { since } => watch.awaiting = Some((since, report.time)),
            Progress::SetOut { first, .. } => watch.set_out = Some((first, report.time)),
            Progress::Arrived => watch.has_arrived = true,
        }
    }

    /// From when on packets that set out are to be counted: if some set out before the destination was watched, from that
    /// time on.
    pub fn count_from(&self, pair: Pair) -> Timestamp {
        let known = self.watches.get(&pair).and_then(|watch| watch.set_out.zip(watch.awaiting));
        let is_early = known.filter(|((first, _), (since, _))| first < since);
        is_early.map_or(Timestamp(0), |(_, (since, _))| since)
    }

    /// Packets of a pair have set out by this address at the switch of the source.
    pub fn set_out_by(&mut self, pair: Pair, address: u8) {
        if let Some(watch) = self.watches.get_mut(&pair) {
            watch.is_elsewhere = watch.address != address;
        }
    }

    /// What became of a pair's packets by this address. Whose answer is not open is watched no more.
    pub fn fate(&mut self, pair: Pair, address: u8, now: Timestamp) -> Fate {
        let Some(watch) = self.watches.get(&pair).filter(|watch| watch.address == address) else {
            return Fate::Elsewhere;
        };
        let is_missing = watch
            .set_out
            .zip(watch.awaiting)
            .is_some_and(|((first, last), (since, until))| since <= first && until >= last + self.transit);
        let fate = match watch {
            Watch { is_elsewhere: true, .. } => Fate::Elsewhere,
            Watch { has_arrived: true, .. } => Fate::Arrived,
            _ if is_missing => Fate::Astray,
            Watch { until, .. } if *until <= now => Fate::Elsewhere,
            _ => return Fate::Open,
        };
        self.watches.remove(&pair);
        fate
    }

    /// Lets time pass: what nobody asks about any more is forgotten.
    pub fn advance(&mut self, now: Timestamp) {
        self.watches.retain(|_, watch| now < watch.until + self.transit);
    }

    /// Pairs that are watched.
    pub fn len(&self) -> usize {
        self.watches.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use thalweg_network::EndpointId;
    use thalweg_wire::EthernetAddresses;

    use super::*;

    const TRANSIT: Nanos = Nanos::from_millis(50);
    const PAIR: Pair = Pair { source: EndpointId(0), destination: EndpointId(2) };

    /// A pair that was sent to address 1, and what both switches report.
    struct Reports(ArrivalCheck);

    impl Reports {
        fn new() -> Reports {
            let mut check = ArrivalCheck::new(TRANSIT, 10);
            assert!(check.watch(PAIR, 1, at(10_000)));
            Reports(check)
        }

        fn report(&mut self, progress: Progress, address: u8, millis: u64) {
            let (ethernet, time) = (EthernetAddresses::default(), at(millis));
            self.0.report(PAIR, address, &ArrivalReport { ethernet, progress, time });
        }

        /// Three packets, the last at this time.
        fn set_out(&mut self, first: u64, last: u64) {
            self.report(Progress::SetOut { first: at(first), packets: ENOUGH }, 1, last);
        }

        /// Nothing has arrived from one time to another.
        fn awaiting(&mut self, since: u64, until: u64) {
            self.report(Progress::Awaiting { since: at(since) }, 1, until);
        }

        fn fate(&mut self, address: u8, millis: u64) -> Fate {
            self.0.fate(PAIR, address, at(millis))
        }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp(0) + Nanos::from_millis(millis)
    }

    #[test]
    fn a_packet_that_arrives_settles_it_whichever_switch_reports_first() {
        let mut its = Reports::new();
        its.report(Progress::Arrived, 1, 11);
        its.set_out(10, 12);
        // Packets of before the move are late: they take nothing back.
        its.report(Progress::Arrived, 0, 13);
        assert_eq!(its.fate(0, 90), Fate::Elsewhere);
        assert_eq!(its.fate(1, 90), Fate::Arrived);
    }

    #[test]
    fn nothing_follows_from_a_packet_or_two_that_do_not_arrive() {
        let mut its = Reports::new();
        its.awaiting(5, 499);
        assert_eq!(its.fate(1, 500), Fate::Open, "no report of enough packets");
        its.set_out(10, 500);
        its.awaiting(5, 549);
        assert_eq!(its.fate(1, 549), Fate::Open, "the third may be under way");
        its.awaiting(5, 550);
        let mut late = Reports(its.0.clone());
        assert_eq!(its.fate(1, 550), Fate::Astray);
        late.report(Progress::Arrived, 1, 551);
        assert_eq!(late.fate(1, 552), Fate::Arrived);
    }

    #[test]
    fn an_arrival_before_the_pair_was_sent_there_does_not_count() {
        let mut its = Reports::new();
        its.report(Progress::Arrived, 1, 2);
        its.0.watch(PAIR, 1, at(10_000));
        its.set_out(20, 23);
        its.awaiting(15, 100);
        assert_eq!(its.fate(1, 100), Fate::Astray);
    }

    #[test]
    fn a_report_that_is_lost_proves_nothing() {
        let mut its = Reports::new();
        its.awaiting(5, 5);
        its.set_out(10, 12);
        // It has arrived, and the report of that got lost: asked again, the collector says so.
        assert_eq!(its.fate(1, 500), Fate::Open);
        its.report(Progress::Arrived, 1, 11);
        assert_eq!(its.fate(1, 501), Fate::Arrived);
    }

    #[test]
    fn a_destination_that_nobody_watches_shows_nothing() {
        let mut its = Reports::new();
        its.set_out(10, 12);
        assert_eq!(its.fate(1, 1_000), Fate::Open);
        assert_eq!(its.fate(1, 10_000), Fate::Elsewhere, "given up");
    }

    #[test]
    fn packets_that_set_out_before_the_destination_was_watched_are_counted_anew() {
        let mut its = Reports::new();
        assert_eq!(its.0.count_from(PAIR), Timestamp(0));
        its.set_out(10, 12);
        its.awaiting(11, 100);
        assert_eq!(its.fate(1, 500), Fate::Open);
        assert_eq!(its.0.count_from(PAIR), at(11));
        its.set_out(12, 14);
        assert_eq!(its.fate(1, 501), Fate::Astray);
    }

    #[test]
    fn a_pair_that_has_gone_elsewhere_since_is_left_alone() {
        let mut its = Reports::new();
        its.set_out(10, 12);
        its.awaiting(5, 100);
        its.0.set_out_by(PAIR, 0);
        assert_eq!(its.fate(1, 500), Fate::Elsewhere);
        assert!(its.0.is_empty());
    }

    #[test]
    fn what_finds_no_room_is_not_watched() {
        let mut check = ArrivalCheck::new(TRANSIT, 1);
        assert!(check.watch(PAIR, 1, at(10)));
        assert!(check.watch(PAIR, 0, at(10)), "in its own place");
        let other = Pair { source: EndpointId(7), ..PAIR };
        assert!(!check.watch(other, 1, at(10)));
        check.advance(at(60));
        assert!(check.watch(other, 1, at(100)), "the first was forgotten");
    }
}
