//! Which links are down, from all signals, with damping of links that flap.
//!
//! **Signals.** A link is down while a source says so: its switches, the carrier of a local interface, or a user. A source
//! that has said nothing about a link counts as up.
//!
//! **Damping**, after the idea of RFC 2439 for routes: a link that has failed [`DampingOptions::failures`] times within
//! [`DampingOptions::window`] is held down until it has not failed for a hold time. The hold time doubles with each hold
//! that follows within [`DampingOptions::max_hold`] of the last one, up to that. So a link that keeps flapping changes
//! routes a bounded number of times. RFC 2439 lets a penalty decay exponentially; counted failures are easier to
//! configure and to explain.
//!
//! A hold ends early if nodes cannot reach each other without the link while its signals say that it is up.
//!
//! Memory: about 100 bytes for each link that has failed. O(log n) per signal.

use std::collections::{BTreeMap, VecDeque};

use thalweg_network::{LinkId, LinkState, Node, Topology};
use thalweg_wire::{Nanos, Timestamp};

/// A source of link states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSource {
    /// The switches at its ends, or the emulation.
    Switches = 1,
    /// The carrier of a local interface.
    Carrier = 2,
    /// A user, or a monitoring system, through the API.
    User = 4,
}

/// When a flapping link is held down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DampingOptions {
    /// Number of failures within the window from which a link is held down; 0 for never. Default 3.
    pub failures: usize,
    /// The window. Default 10 s.
    pub window: Nanos,
    /// The first hold time, from the last failure on. Default 5 s.
    pub hold: Nanos,
    /// The longest hold time, and the time without a hold after which the hold time is the first one again. Default
    /// 5 min.
    pub max_hold: Nanos,
}

impl Default for DampingOptions {
    fn default() -> DampingOptions {
        DampingOptions {
            failures: 3,
            window: Nanos::from_secs(10),
            hold: Nanos::from_secs(5),
            max_hold: Nanos::from_secs(300),
        }
    }
}

/// Counters of link signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Failures of links, according to all signals.
    pub failures: u64,
    /// Times that a link was held down because it flapped.
    pub holds: u64,
    /// Failures of links while they were held down.
    pub damped: u64,
}

/// The signals of all links that have failed.
#[derive(Debug)]
pub struct LinkSignals {
    options: DampingOptions,
    links: BTreeMap<LinkId, Signals>,
    counters: LinkCounters,
}

/// The signals of one link.
#[derive(Debug, Default)]
struct Signals {
    /// The sources that say that it is down, as a set of bits.
    down: u8,
    /// The latest failures, at most [`DampingOptions::failures`].
    failures: VecDeque<Timestamp>,
    /// Until when it is held down.
    held_until: Option<Timestamp>,
    /// The end of the last hold, and its number in a row.
    last_hold: Option<(Timestamp, u32)>,
}

impl Signals {
    fn is_up(&self) -> bool {
        self.down == 0 && self.held_until.is_none()
    }

    fn end_hold(&mut self, now: Timestamp) {
        self.held_until = None;
        self.failures.clear();
        let number = self.last_hold.map_or(0, |(_, number)| number);
        self.last_hold = Some((now, number));
    }
}

/// The parts of a network whose nodes reach each other (disjoint sets, Tarjan 1975).
struct Parts {
    endpoints: usize,
    parents: Vec<usize>,
}

impl Parts {
    /// Each node on its own.
    fn new(topology: &Topology) -> Parts {
        let endpoints = topology.endpoints().len();
        Parts { endpoints, parents: (0..endpoints + topology.router_ids().count()).collect() }
    }

    /// Adds a link. Returns whether it connects two parts.
    fn connect(&mut self, topology: &Topology, link: LinkId) -> bool {
        let [one, other] = topology.links()[link.index()].ends.map(|end| match end.node {
            Node::Endpoint(endpoint) => endpoint.index(),
            Node::Router(router) => self.endpoints + router.index(),
        });
        let (one, other) = (self.root(one), self.root(other));
        self.parents[one] = other;
        one != other
    }

    fn root(&mut self, mut node: usize) -> usize {
        while self.parents[node] != node {
            self.parents[node] = self.parents[self.parents[node]];
            node = self.parents[node];
        }
        node
    }
}

impl LinkSignals {
    /// Creates the state in which nothing has been reported.
    pub fn new(options: DampingOptions) -> LinkSignals {
        LinkSignals { options, links: BTreeMap::new(), counters: LinkCounters::default() }
    }

    /// Handles a signal about a link of the network. Returns whether the link counts as up now.
    pub fn report(&mut self, link: LinkId, source: LinkSource, is_up: bool, now: Timestamp) -> bool {
        if is_up && !self.links.contains_key(&link) {
            return true;
        }
        let signals = self.links.entry(link).or_default();
        let was_down = signals.down != 0;
        match is_up {
            true => signals.down &= !(source as u8),
            false => signals.down |= source as u8,
        }
        if !was_down && signals.down != 0 {
            self.counters.failures += 1;
            fail(signals, self.options, now, &mut self.counters);
        }
        signals.is_up()
    }

    /// Handles the state of all links according to their switches. Returns what counts.
    pub fn report_all(&mut self, links: &LinkState, now: Timestamp) -> LinkState {
        let down: Vec<LinkId> =
            self.links.keys().copied().filter(|link| link.index() < links.links()).collect();
        for link in down {
            self.report(link, LinkSource::Switches, links.is_up(link), now);
        }
        for link in links.failed() {
            self.report(link, LinkSource::Switches, false, now);
        }
        let mut links = links.clone();
        for link in self.down() {
            // Links that the network does not have are ignored.
            let _ = links.fail(link);
        }
        links
    }

    /// Ends holds that are due. Returns the links that count as up now.
    pub fn advance(&mut self, now: Timestamp) -> Vec<LinkId> {
        let mut up = Vec::new();
        for (&link, signals) in &mut self.links {
            if signals.held_until.is_some_and(|until| until <= now) {
                signals.end_hold(now);
                up.extend((signals.down == 0).then_some(link));
            }
        }
        up
    }

    /// Ends the holds of links that are up and without which nodes cannot reach each other. `links` is what counts now. Returns
    /// the links.
    pub fn end_needed_holds(
        &mut self,
        topology: &Topology,
        links: &LinkState,
        now: Timestamp,
    ) -> Vec<LinkId> {
        let is_up = |signals: &Signals| signals.down == 0 && signals.held_until.is_some();
        let held: Vec<LinkId> =
            self.links.iter().filter(|(_, signals)| is_up(signals)).map(|(&link, _)| link).collect();
        if held.is_empty() {
            return held;
        }
        let mut parts = Parts::new(topology);
        for link in (0..topology.links().len() as u32).map(LinkId).filter(|link| links.is_up(*link)) {
            parts.connect(topology, link);
        }
        let needed: Vec<LinkId> = held.into_iter().filter(|link| parts.connect(topology, *link)).collect();
        for link in &needed {
            self.links.entry(*link).or_default().end_hold(now);
        }
        needed
    }

    /// Returns the links that count as down.
    pub fn down(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.links.iter().filter(|(_, signals)| !signals.is_up()).map(|(&link, _)| link)
    }

    /// Returns the links that are held down because they flapped, and until when if they do not fail again.
    pub fn held(&self) -> impl Iterator<Item = (LinkId, Timestamp)> + '_ {
        self.links.iter().filter_map(|(&link, signals)| Some((link, signals.held_until?)))
    }

    /// Returns the counters.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }
}

/// Records a failure. Begins or extends a hold if there are too many.
fn fail(signals: &mut Signals, options: DampingOptions, now: Timestamp, counters: &mut LinkCounters) {
    if options.failures == 0 {
        return;
    }
    if signals.held_until.is_some() {
        counters.damped += 1;
    } else {
        signals.failures.push_back(now);
        while signals.failures.len() > options.failures
            || signals.failures.front().is_some_and(|&first| now.since(first) > options.window)
        {
            signals.failures.pop_front();
        }
        if signals.failures.len() < options.failures {
            return;
        }
        counters.holds += 1;
        let follows = signals.last_hold.filter(|&(ended, _)| now.since(ended) <= options.max_hold);
        signals.last_hold = Some((now, follows.map_or(0, |(_, number)| number.saturating_add(1))));
    }
    let number = signals.last_hold.map_or(0, |(_, number)| number);
    let factor = 1_u64.checked_shl(number).unwrap_or(u64::MAX);
    let hold = Nanos(options.hold.0.saturating_mul(factor)).min(options.max_hold);
    signals.held_until = Some(now + hold);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkId = LinkId(3);

    fn at(ms: u64) -> Timestamp {
        Timestamp(ms * 1_000_000)
    }

    /// Fails and repairs the link every 50 ms, from this time on. Returns how often it counted as up after a failure, and
    /// the time of the last failure.
    fn flap(signals: &mut LinkSignals, from_ms: u64, times: u64) -> (usize, u64) {
        let mut ups = 0;
        for time in 0..times {
            let ms = from_ms + time * 50;
            signals.advance(at(ms));
            assert!(!signals.report(LINK, LinkSource::Switches, false, at(ms)));
            ups += usize::from(signals.report(LINK, LinkSource::Switches, true, at(ms + 25)));
        }
        (ups, from_ms + (times - 1) * 50)
    }

    #[test]
    fn a_link_that_flaps_without_end_is_held_down() {
        let mut signals = LinkSignals::new(DampingOptions::default());
        let (ups, last) = flap(&mut signals, 0, 1_200);
        assert_eq!(ups, 2, "up after the first two failures only, in a minute of 20 failures per second");
        let LinkCounters { failures, holds, damped } = signals.counters();
        assert_eq!((failures, holds, damped), (1_200, 1, 1_197));
        assert_eq!(signals.held().collect::<Vec<_>>(), [(LINK, at(last + 5_000))]);
        assert_eq!(signals.advance(at(last + 4_999)), []);
        assert_eq!(signals.advance(at(last + 5_000)), [LINK]);
        assert_eq!(signals.down().count(), 0);
    }

    #[test]
    fn the_hold_time_grows_and_is_reset_after_a_quiet_time() {
        let mut signals = LinkSignals::new(DampingOptions::default());
        let mut start = 0;
        for expected in [5, 10, 20, 40, 80, 160, 300, 300] {
            let (_, last) = flap(&mut signals, start, 3);
            assert_eq!(signals.held().next().unwrap().1, at(last + expected * 1_000), "{expected} s");
            start = last + expected * 1_000;
            assert_eq!(signals.advance(at(start)), [LINK]);
        }
        let (_, last) = flap(&mut signals, start + 300_001, 3);
        assert_eq!(signals.held().next().unwrap().1, at(last + 5_000));
    }

    #[test]
    fn rare_failures_are_not_damped() {
        let mut signals = LinkSignals::new(DampingOptions::default());
        for failure in 0..100 {
            let ms = failure * 6_000;
            assert!(!signals.report(LINK, LinkSource::User, false, at(ms)));
            assert!(signals.report(LINK, LinkSource::User, true, at(ms + 1_000)));
        }
        assert_eq!(signals.counters(), LinkCounters { failures: 100, holds: 0, damped: 0 });
        let never = DampingOptions { failures: 0, ..DampingOptions::default() };
        let mut signals = LinkSignals::new(never);
        assert_eq!(flap(&mut signals, 0, 100).0, 100);
    }

    #[test]
    fn a_link_is_down_while_one_source_says_so() {
        let mut signals = LinkSignals::new(DampingOptions::default());
        assert!(!signals.report(LINK, LinkSource::Switches, false, at(0)));
        assert!(!signals.report(LINK, LinkSource::User, false, at(1)));
        assert!(!signals.report(LINK, LinkSource::Switches, true, at(2)));
        assert!(!signals.report(LINK, LinkSource::Carrier, true, at(3)));
        assert!(signals.report(LINK, LinkSource::User, true, at(4)));
        assert_eq!(signals.counters().failures, 1);
    }

    #[test]
    fn a_link_that_is_down_when_its_hold_ends_comes_up_with_its_next_signal() {
        let mut signals = LinkSignals::new(DampingOptions::default());
        flap(&mut signals, 0, 3);
        signals.report(LINK, LinkSource::Switches, false, at(1_000));
        assert_eq!(signals.advance(at(6_000)), []);
        assert_eq!(signals.down().collect::<Vec<_>>(), [LINK]);
        assert!(signals.report(LINK, LinkSource::Switches, true, at(7_000)));
    }
}
