//! `flow_series`: chosen flows at times, and what they did in between.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thalweg_emulator::hosts::{FlowStatus, Hosts, Observation, PathDelay, Reading};
use thalweg_emulator::workloads::compose::Merged;
use thalweg_emulator::{Slot, SlotClock};
use thalweg_network::{LinkState, Node};

use super::output::{KeptRows, Rows};
use super::path_delay::PathDelays;
use crate::files::{Output, WriteError};
use crate::plan::{FlowSeriesPlan, MAX_KEPT_ROWS, Plan};
use crate::results::SeriesUse;
use crate::results::series_rows::FlowSeriesRow;

/// Samples flows.
pub(super) struct FlowSeries {
    clock: SlotClock,
    wanted: FlowSeriesPlan,
    /// The slot of the next sample of all flows.
    next: Slot,
    /// By endpoint.
    names: Vec<Arc<str>>,
    paths: PathDelays,
    /// The sampled flows that are active.
    active: BTreeMap<u32, Sampled>,
    /// With `largest`, the largest flows so far by size; of equal ones the first.
    largest: BTreeSet<(u64, Reverse<u32>)>,
    kept: KeptRows,
    rows: Rows<FlowSeriesRow>,
    /// Buffers that are reused in each slot.
    flows: Vec<u32>,
    ended: Vec<Reading>,
}

/// A sampled flow at its previous row.
struct Sampled {
    workload: u16,
    time_ns: u64,
    /// `None` before the first row.
    status: Option<FlowStatus>,
}

impl FlowSeries {
    pub(super) fn create(
        plan: &Plan,
        wanted: &FlowSeriesPlan,
        hosts: &mut Hosts,
        output: Output<'_>,
    ) -> Result<FlowSeries, WriteError> {
        hosts.observe(wanted.changes);
        let topology = &plan.topology;
        Ok(FlowSeries {
            clock: plan.blueprint().clock,
            wanted: wanted.clone(),
            next: Slot(wanted.interval_slots.unwrap_or(u64::MAX)),
            names: topology.endpoint_ids().map(|id| super::name(topology, Node::Endpoint(id))).collect(),
            paths: PathDelays::new(plan),
            active: BTreeMap::new(),
            largest: BTreeSet::new(),
            kept: KeptRows::new(MAX_KEPT_ROWS),
            rows: Rows::create(output)?,
            flows: Vec::new(),
            ended: Vec::new(),
        })
    }

    /// Samples what is due after a slot. `now` is the next slot.
    pub(super) fn slot(&mut self, now: Slot, hosts: &mut Hosts, workloads: &Merged) {
        let time_ns = self.clock.start_of(now).0;
        self.sample_ended(time_ns, hosts);
        self.choose_started(time_ns, hosts, workloads);
        if self.wanted.changes {
            self.sample_changed(time_ns, hosts);
        }
        if now >= self.next {
            self.sample_active(time_ns, hosts);
            self.next = now + self.wanted.interval_slots.unwrap_or(u64::MAX - now.0);
        }
    }

    fn sample_ended(&mut self, time_ns: u64, hosts: &mut Hosts) {
        let mut ended = std::mem::take(&mut self.ended);
        hosts.take_ended(&mut ended);
        for reading in ended.drain(..) {
            self.sample(time_ns, &reading);
            self.active.remove(&reading.0.flow);
        }
        self.ended = ended;
    }

    fn choose_started(&mut self, time_ns: u64, hosts: &mut Hosts, workloads: &Merged) {
        let mut started = std::mem::take(&mut self.flows);
        hosts.take_started(&mut started);
        for flow in started.drain(..) {
            let Some(status) = hosts.flow(flow) else { continue };
            let workload = workloads.part_of(flow).unwrap_or(0);
            if !self.wanted.includes(&status, workload) || !self.is_large_enough(&status) {
                continue;
            }
            hosts.choose(flow, self.path(&status));
            let workload = u16::try_from(workload + 1).unwrap_or(u16::MAX);
            self.active.insert(flow, Sampled { workload, time_ns: status.start.0, status: None });
            if self.wanted.changes {
                self.sample(time_ns, &(status, Observation::default()));
            }
        }
        self.flows = started;
    }

    fn path(&self, status: &FlowStatus) -> PathDelay {
        self.paths.of(status.source, status.destination, status.flow).unwrap_or_default()
    }

    /// Whether the flow is among the largest so far. Then it replaces the smallest of them.
    fn is_large_enough(&mut self, status: &FlowStatus) -> bool {
        let Some(most) = self.wanted.largest else { return true };
        self.largest.insert((status.bytes, Reverse(status.flow)));
        if self.largest.len() <= most {
            return true;
        }
        let Some((_, Reverse(smallest))) = self.largest.pop_first() else { return true };
        if smallest != status.flow {
            self.active.remove(&smallest);
            self.kept.forget(smallest);
        }
        smallest != status.flow
    }

    fn sample_changed(&mut self, time_ns: u64, hosts: &mut Hosts) {
        let mut touched = std::mem::take(&mut self.flows);
        hosts.take_touched(&mut touched);
        for flow in touched.drain(..) {
            let window = |status: &FlowStatus| (status.cwnd, status.ssthresh);
            let Some(before) = self.active.get(&flow) else { continue };
            let Some(reading) =
                hosts.read_if(flow, |status| before.status.as_ref().map(window) != Some(window(status)))
            else {
                continue;
            };
            self.sample(time_ns, &reading);
        }
        self.flows = touched;
    }

    fn sample_active(&mut self, time_ns: u64, hosts: &mut Hosts) {
        let mut flows = std::mem::take(&mut self.flows);
        flows.extend(
            self.active.iter().filter(|(_, sampled)| sampled.time_ns < time_ns).map(|(&flow, _)| flow),
        );
        for flow in flows.drain(..) {
            if let Some(reading) = hosts.read(flow) {
                self.sample(time_ns, &reading);
            }
        }
        self.flows = flows;
    }

    /// Adds a row.
    fn sample(&mut self, time_ns: u64, (status, seen): &Reading) {
        let Some(sampled) = self.active.get_mut(&status.flow) else { return };
        let row = row(time_ns, status, seen, sampled, &self.names);
        (sampled.time_ns, sampled.status) = (time_ns, Some(*status));
        match self.wanted.largest {
            Some(_) => self.kept.push(row),
            None => self.rows.push(row),
        }
    }

    /// Paths have changed: later packets are compared with the new ones.
    pub(super) fn rewired(&mut self, links: &LinkState, hosts: &mut Hosts) {
        self.paths.rewire(links);
        for &flow in self.active.keys() {
            if let Some(status) = hosts.flow(flow) {
                hosts.choose(flow, self.path(&status));
            }
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.rows.has_failed()
    }

    pub(super) fn finish(mut self, now: Slot, hosts: &mut Hosts) -> Result<SeriesUse, WriteError> {
        self.sample_active(self.clock.start_of(now).0, hosts);
        let (kept, lost) = self.kept.finish();
        kept.into_iter().for_each(|row| self.rows.push(row));
        self.rows.finish(lost)
    }
}

impl FlowSeriesPlan {
    fn includes(&self, status: &FlowStatus, workload: usize) -> bool {
        let has = |some: &Option<Vec<_>>, endpoint| {
            some.as_ref().is_none_or(|some| some.binary_search(endpoint).is_ok())
        };
        has(&self.sources, &status.source)
            && has(&self.destinations, &status.destination)
            && self.workload.is_none_or(|wanted| wanted == workload)
            && self.dscp.is_none_or(|dscp| dscp == status.dscp)
            && status.bytes >= self.min_size
    }
}

fn row(
    time_ns: u64,
    status: &FlowStatus,
    seen: &Observation,
    sampled: &Sampled,
    names: &[Arc<str>],
) -> FlowSeriesRow {
    let since = |of: fn(&FlowStatus) -> u64| of(status) - sampled.status.as_ref().map_or(0, of);
    let arrived = seen.arrived.packets;
    FlowSeriesRow {
        time_ns,
        interval_ns: time_ns.saturating_sub(sampled.time_ns),
        flow: status.flow,
        workload: sampled.workload,
        src: names[status.source.index()].clone(),
        dst: names[status.destination.index()].clone(),
        dscp: status.dscp,
        cwnd_packets: status.cwnd as f64 / status.mss as f64,
        cwnd_bytes: status.cwnd,
        ssthresh_bytes: (status.ssthresh < u64::MAX).then_some(status.ssthresh),
        srtt_ns: status.srtt.map(|srtt| srtt.0),
        rtt_ns: seen.rtt.map(|rtt| rtt.0),
        in_flight_bytes: status.in_flight,
        sent_packets: since(|status| status.segments_sent),
        retransmissions: since(|status| status.retransmissions),
        timeouts: since(|status| status.timeouts),
        acked_bytes: since(|status| status.acknowledged),
        received_packets: arrived,
        received_bytes: seen.arrived.bytes,
        marked_packets: since(|status| status.marks),
        delivered_bytes: since(|status| status.delivered),
        queueing_delay_mean_ns: seen.queueing.0.checked_div(arrived),
        queueing_delay_max_ns: (arrived > 0).then_some(seen.max_queueing.0),
    }
}
