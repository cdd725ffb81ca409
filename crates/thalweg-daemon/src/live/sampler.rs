//! Reads the links and flows of all collectors.
//!
//! All collectors are asked before the first reply is awaited: a collector without packets looks into its mailbox a few dozen times a
//! second, and twenty of them in turn would take longer than a frame.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_measure::collector::{LinkDirection, LinkReport};
use thalweg_wire::{FlowKey, Timestamp};

use super::frame::{Frame, LinkList, UNKNOWN};
use crate::collectors::{CollectorHandle, CollectorList};
use crate::link_name::link_name;

/// How long to wait for the links of all collectors together.
const LINKS_TIMEOUT: Duration = Duration::from_millis(80);

/// How long to wait for the flows of all collectors together.
const FLOWS_TIMEOUT: Duration = Duration::from_millis(400);

/// What is known of a collector.
#[derive(Debug)]
struct Watched {
    name: Arc<str>,
    sides: Vec<LinkDirection>,
    loads: Vec<i16>,
}

/// Reads links and flows.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    watched: Vec<Watched>,
    list: Arc<LinkList>,
    packet_time: Timestamp,
}

impl Sampler {
    /// Returns the latest packet time of a collector; zero before the first packet.
    pub(super) fn packet_time(&self) -> Timestamp {
        self.packet_time
    }

    /// Reads the links of all collectors into the frame after `previous`. Loads of collectors that do not respond are unknown.
    pub(super) fn frame(&mut self, collectors: &CollectorList, previous: &Frame, now: Timestamp) -> Frame {
        let until = Instant::now() + LINKS_TIMEOUT;
        let handles = collectors.all();
        let pending: Vec<_> = handles.iter().map(CollectorHandle::begin_links).collect();
        let mut latest = Timestamp::default();
        let reports = pending.into_iter().map(|pending| {
            let reply = pending.ok()?.recv_timeout(until.saturating_duration_since(Instant::now())).ok()?;
            latest = latest.max(reply.time);
            Some(reply.value)
        });
        let reports: Vec<Option<Vec<LinkReport>>> = reports.collect();
        self.packet_time = latest.max(self.packet_time);
        if self.update(&handles, &reports) {
            self.list = Arc::new(LinkList::after(&self.list, self.names(&handles)));
        }
        let loads = self.watched.iter().flat_map(|watched| watched.loads.iter().copied()).collect();
        Frame::after(previous, now, Arc::clone(&self.list), loads)
    }

    /// Takes over reports. Returns whether the list of links has changed.
    fn update(&mut self, handles: &[CollectorHandle], reports: &[Option<Vec<LinkReport>>]) -> bool {
        let mut has_changed = self.watched.len() != handles.len();
        let mut before = std::mem::take(&mut self.watched).into_iter();
        for (handle, reports) in handles.iter().zip(reports) {
            let name = &handle.description().name;
            let old = before.next().filter(|old| old.name == *name);
            has_changed |= old.is_none();
            let old_sides = old.map(|old| old.sides).unwrap_or_default();
            let (sides, loads) = match reports {
                Some(reports) => (
                    reports.iter().map(|report| report.side).collect(),
                    reports.iter().map(|report| thousandths(report.utilisation)).collect(),
                ),
                None => (old_sides.clone(), vec![UNKNOWN; old_sides.len()]),
            };
            has_changed |= sides != old_sides;
            self.watched.push(Watched { name: Arc::clone(name), sides, loads });
        }
        has_changed
    }

    fn names(&self, handles: &[CollectorHandle]) -> Vec<String> {
        let of_collector = |(watched, handle): (&Watched, &CollectorHandle)| {
            let switch = Arc::clone(&handle.description().switch);
            let sides = watched.sides.clone().into_iter();
            sides.map(move |side| link_name(&switch, side).to_string())
        };
        self.watched.iter().zip(handles).flat_map(of_collector).collect()
    }
}

/// Converts a utilisation, at most 1, to thousandths.
fn thousandths(utilisation: f64) -> i16 {
    (utilisation * 1_000.0).round().clamp(0.0, 1_000.0) as i16
}

/// Returns the fastest flows of all collectors with their rates in bits per second, the fastest first: at most `count`, in which a flow
/// counts once for each collector that sees it. It has the greatest of its rates.
pub(super) fn fastest_flows(collectors: &CollectorList, count: usize) -> Vec<(FlowKey, f32)> {
    let until = Instant::now() + FLOWS_TIMEOUT;
    // The slowest on top, which a faster flow replaces. A flow may be in it once per collector.
    let mut fastest: BinaryHeap<Slowest> = BinaryHeap::new();
    for collector in collectors.all() {
        let left = until.saturating_duration_since(Instant::now());
        // Flows of a collector that does not respond are missing for this second.
        let _ = collector.flows(left, |report| {
            let rate = report.rate.and_then(|rate| rate.known_value()).unwrap_or(0.0) as f32;
            if rate > 0.0 && (fastest.len() < count || fastest.peek().is_some_and(|slowest| slowest.0 < rate))
            {
                if fastest.len() >= count {
                    fastest.pop();
                }
                fastest.push(Slowest(rate, report.key));
            }
        });
    }
    let mut flows: Vec<_> = fastest.into_iter().map(|Slowest(rate, key)| (key, rate)).collect();
    flows.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    flows.dedup_by_key(|flow| flow.0);
    flows.sort_by(|a, b| b.1.total_cmp(&a.1));
    flows
}

/// A flow with its rate. Slower ones are greater.
struct Slowest(f32, FlowKey);

impl Ord for Slowest {
    fn cmp(&self, other: &Slowest) -> Ordering {
        other.0.total_cmp(&self.0).then_with(|| self.1.cmp(&other.1))
    }
}

impl PartialOrd for Slowest {
    fn partial_cmp(&self, other: &Slowest) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Slowest {
    fn eq(&self, other: &Slowest) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Slowest {}
