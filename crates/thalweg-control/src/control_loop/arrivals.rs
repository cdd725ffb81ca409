//! Checks that the packets of a rerouted pair arrive, from collector reports.
//!
//! One missing packet proves nothing: queues drop packets, and TCP may stay silent for long after a loss. If
//! [several](MIN_PACKETS) packets in a row are missing and none after them arrives, the path is broken.
//!
//! **Missing reports prove nothing.** Packets count as missing only if the collector at the destination says so. It
//! must have watched since before the first of them was sent, and seen nothing until all of them should have arrived.
//! While the status is [unknown](ArrivalStatus::Unknown), the collector is asked again, because reports may get lost.
//! Without a collector, or with too few packets, the check is [given up](GIVE_UP_AFTER).

use std::collections::BTreeMap;

use thalweg_measure::collector::{ArrivalReport, Progress};
use thalweg_wire::{Nanos, Timestamp};

use crate::pair::Pair;

/// Number of packets that must be sent before missing arrivals count.
pub const MIN_PACKETS: u32 = 3;

/// A check without a result is given up after this time. By then TCP without acknowledgements has sent six segments
/// (RFC 6298: after 0.2, 0.6, 1.4, 3, 6.2 s with Linux's minimum timeout).
pub const GIVE_UP_AFTER: Nanos = Nanos::from_secs(10);

/// Whether packets sent to an address arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalStatus {
    /// They arrive.
    Arrived,
    /// They do not arrive.
    Missing,
    /// Too few packets were sent, or too recently, to say.
    Unknown,
    /// The pair has another address by now, or the check was given up.
    Abandoned,
}

/// The reports of one pair.
#[derive(Clone, Copy, Debug)]
struct Watch {
    address: u8,
    /// Nothing arrived from the first of these times to the second.
    awaiting: Option<(Timestamp, Timestamp)>,
    /// When the first and the last of [`MIN_PACKETS`] packets were sent.
    sent: Option<(Timestamp, Timestamp)>,
    has_arrived: bool,
    /// The source has sent packets to another address since.
    has_other_address: bool,
    until: Timestamp,
}

/// Arrival checks of rerouted pairs.
#[derive(Clone, Debug)]
pub struct ArrivalCheck {
    /// Maximum time that packets may be in transit.
    transit: Nanos,
    max_pairs: usize,
    watches: BTreeMap<Pair, Watch>,
}

impl ArrivalCheck {
    /// Creates an empty check for at most `max_pairs` pairs at once, whose packets may be in transit for `transit`.
    pub fn new(transit: Nanos, max_pairs: usize) -> ArrivalCheck {
        ArrivalCheck { transit, max_pairs, watches: BTreeMap::new() }
    }

    /// Starts checking a pair that was moved to an address, until the given time. Returns `false` if the limit on
    /// pairs is reached.
    pub fn watch(&mut self, pair: Pair, address: u8, until: Timestamp) -> bool {
        if self.watches.len() >= self.max_pairs && !self.watches.contains_key(&pair) {
            return false;
        }
        let watch = Watch {
            address,
            awaiting: None,
            sent: None,
            has_arrived: false,
            has_other_address: false,
            until,
        };
        self.watches.insert(pair, watch);
        true
    }

    /// Ends all checks.
    pub fn clear(&mut self) {
        self.watches.clear();
    }

    /// Takes a collector's report on a pair and an address.
    pub fn report(&mut self, pair: Pair, address: u8, report: &ArrivalReport) {
        let Some(watch) = self.watches.get_mut(&pair).filter(|watch| watch.address == address) else {
            return;
        };
        match report.progress {
            Progress::Awaiting { since } => watch.awaiting = Some((since, report.time)),
            Progress::Departed { first, .. } => watch.sent = Some((first, report.time)),
            Progress::Arrived => watch.has_arrived = true,
        }
    }

    /// Returns the time from which to count sent packets: the time at which the destination came under observation,
    /// if packets were sent before that.
    pub fn count_from(&self, pair: Pair) -> Timestamp {
        let known = self.watches.get(&pair).and_then(|watch| watch.sent.zip(watch.awaiting));
        let is_early = known.filter(|((first, _), (since, _))| first < since);
        is_early.map_or(Timestamp(0), |(_, (since, _))| since)
    }

    /// Records that the source of a pair sends to this address.
    pub fn source_uses(&mut self, pair: Pair, address: u8) {
        if let Some(watch) = self.watches.get_mut(&pair) {
            watch.has_other_address = watch.address != address;
        }
    }

    /// Returns whether a pair's packets to this address arrive. Ends the check unless the status is unknown.
    pub fn status(&mut self, pair: Pair, address: u8, now: Timestamp) -> ArrivalStatus {
        let Some(watch) = self.watches.get(&pair).filter(|watch| watch.address == address) else {
            return ArrivalStatus::Abandoned;
        };
        let is_missing = watch
            .sent
            .zip(watch.awaiting)
            .is_some_and(|((first, last), (since, until))| since <= first && until >= last + self.transit);
        let status = match watch {
            Watch { has_other_address: true, .. } => ArrivalStatus::Abandoned,
            Watch { has_arrived: true, .. } => ArrivalStatus::Arrived,
            _ if is_missing => ArrivalStatus::Missing,
            Watch { until, .. } if *until <= now => ArrivalStatus::Abandoned,
            _ => return ArrivalStatus::Unknown,
        };
        self.watches.remove(&pair);
        status
    }

    /// Removes checks that timed out at `now`.
    pub fn advance(&mut self, now: Timestamp) {
        self.watches.retain(|_, watch| now < watch.until + self.transit);
    }

    /// Returns the number of pairs under check.
    pub fn len(&self) -> usize {
        self.watches.len()
    }

    /// Returns whether no pair is under check.
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

    /// A pair that was moved to address 1, and the reports of both switches.
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

        /// Reports that three packets were sent, the last at this time.
        fn set_out(&mut self, first: u64, last: u64) {
            self.report(Progress::Departed { first: at(first), packets: MIN_PACKETS }, 1, last);
        }

        /// Reports that nothing arrived from one time to another.
        fn awaiting(&mut self, since: u64, until: u64) {
            self.report(Progress::Awaiting { since: at(since) }, 1, until);
        }

        fn status(&mut self, address: u8, millis: u64) -> ArrivalStatus {
            self.0.status(PAIR, address, at(millis))
        }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp(0) + Nanos::from_millis(millis)
    }

    #[test]
    fn one_arrival_proves_the_path_whichever_switch_reports_first() {
        let mut reports = Reports::new();
        reports.report(Progress::Arrived, 1, 11);
        reports.set_out(10, 12);
        // Packets from before the move arrive late and change nothing.
        reports.report(Progress::Arrived, 0, 13);
        assert_eq!(reports.status(0, 90), ArrivalStatus::Abandoned);
        assert_eq!(reports.status(1, 90), ArrivalStatus::Arrived);
    }

    #[test]
    fn too_few_missing_packets_prove_nothing() {
        let mut reports = Reports::new();
        reports.awaiting(5, 499);
        assert_eq!(reports.status(1, 500), ArrivalStatus::Unknown, "no report of enough packets");
        reports.set_out(10, 500);
        reports.awaiting(5, 549);
        assert_eq!(reports.status(1, 549), ArrivalStatus::Unknown, "the third may be in transit");
        reports.awaiting(5, 550);
        let mut late = Reports(reports.0.clone());
        assert_eq!(reports.status(1, 550), ArrivalStatus::Missing);
        late.report(Progress::Arrived, 1, 551);
        assert_eq!(late.status(1, 552), ArrivalStatus::Arrived);
    }

    #[test]
    fn an_arrival_before_the_move_does_not_count() {
        let mut reports = Reports::new();
        reports.report(Progress::Arrived, 1, 2);
        reports.0.watch(PAIR, 1, at(10_000));
        reports.set_out(20, 23);
        reports.awaiting(15, 100);
        assert_eq!(reports.status(1, 100), ArrivalStatus::Missing);
    }

    #[test]
    fn a_lost_report_proves_nothing() {
        let mut reports = Reports::new();
        reports.awaiting(5, 5);
        reports.set_out(10, 12);
        // The packet arrived and the report got lost: asked again, the collector repeats it.
        assert_eq!(reports.status(1, 500), ArrivalStatus::Unknown);
        reports.report(Progress::Arrived, 1, 11);
        assert_eq!(reports.status(1, 501), ArrivalStatus::Arrived);
    }

    #[test]
    fn a_destination_without_a_collector_proves_nothing() {
        let mut reports = Reports::new();
        reports.set_out(10, 12);
        assert_eq!(reports.status(1, 1_000), ArrivalStatus::Unknown);
        assert_eq!(reports.status(1, 10_000), ArrivalStatus::Abandoned, "given up");
    }

    #[test]
    fn packets_sent_before_the_destination_was_observed_are_recounted() {
        let mut reports = Reports::new();
        assert_eq!(reports.0.count_from(PAIR), Timestamp(0));
        reports.set_out(10, 12);
        reports.awaiting(11, 100);
        assert_eq!(reports.status(1, 500), ArrivalStatus::Unknown);
        assert_eq!(reports.0.count_from(PAIR), at(11));
        reports.set_out(12, 14);
        assert_eq!(reports.status(1, 501), ArrivalStatus::Missing);
    }

    #[test]
    fn a_pair_that_has_moved_again_is_not_checked() {
        let mut reports = Reports::new();
        reports.set_out(10, 12);
        reports.awaiting(5, 100);
        reports.0.source_uses(PAIR, 0);
        assert_eq!(reports.status(1, 500), ArrivalStatus::Abandoned);
        assert!(reports.0.is_empty());
    }

    #[test]
    fn pairs_over_the_limit_are_not_checked() {
        let mut check = ArrivalCheck::new(TRANSIT, 1);
        assert!(check.watch(PAIR, 1, at(10)));
        assert!(check.watch(PAIR, 0, at(10)), "replaces its own check");
        let other = Pair { source: EndpointId(7), ..PAIR };
        assert!(!check.watch(other, 1, at(10)));
        check.advance(at(60));
        assert!(check.watch(other, 1, at(100)), "the first has timed out");
    }
}
