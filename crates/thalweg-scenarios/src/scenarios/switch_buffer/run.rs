//! One run of a case: background traffic, and the flow beside it.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use thalweg_lab::HOST_INTERFACE;
use thalweg_lab::headroom::HeadroomProbe;
use thalweg_wire::{Nanos, Timestamp};

use super::{BACKGROUND, Case, FLOW, Parameters};
use crate::error::ScenarioError;
use crate::scenarios::isolate::Router;
use crate::scenarios::isolate::background::{Background, Departures};
use crate::scenarios::isolate::capture::Recorder;
use crate::scenarios::isolate::flow::{self, Flow, Segment, Transmissions};
use crate::session::HeadroomSum;
use crate::traffic::{Ends, Interval, Load, Server, Transfer};

/// Bursts of background traffic that start per second, as in the emulated experiment.
const BURSTS_PER_SECOND: f64 = 60.0;

/// How long background traffic runs before the flow: at least the first, and up to the second more, by the seed.
const LEAD: Duration = Duration::from_secs(1);
const MORE_LEAD_MS: u64 = 3_000;

/// A multiplier that spreads consecutive seeds (Knuth, "The Art of Computer Programming", volume 3, section 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// How long it runs after the flow.
const TAIL: Duration = Duration::from_millis(500);

const SECOND: Nanos = Nanos::from_secs(1);

/// A second of the flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Second {
    /// Payload that arrived at the receiver, in bits per second.
    pub rate_bps: f64,
    /// Packets of the flow that never arrived, by the time at which they entered the router.
    pub lost_packets: u64,
    /// Segments that TCP sent again, by iperf3.
    pub retransmitted: u64,
    /// The congestion window at the end, in bytes, by iperf3.
    pub cwnd_bytes: u64,
    /// The smoothed round trip at the end, in nanoseconds, by iperf3.
    pub round_trip_ns: u64,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// The flow by the second.
    pub seconds: Vec<Second>,
    /// Transmissions of the flow.
    pub transmissions: Transmissions,
    /// Packets that the queue of the switch dropped, of the flow and of the background traffic.
    pub queue_dropped_packets: u64,
    /// Packets that the flow's own host dropped, in front of its link.
    pub host_dropped_packets: u64,
    /// Payload of the flow that arrived, in bits per second while it lasted.
    pub flow_rate_bps: f64,
    /// Mean rate of the background traffic, in bits per second from the IP header on.
    pub background_rate_bps: f64,
    /// The most that a packet of the background traffic was sent too late.
    pub background_late_ns: u64,
    /// The most that the delay line sent an acknowledgement too late.
    pub delay_late_ns: u64,
    /// Packets that the delay line dropped.
    pub delay_dropped_packets: u64,
    /// Packets that were lost before the records.
    pub lost_frames: u64,
    /// Idle share of the CPU time, 0 to 1.
    pub idle_ratio: f64,
}

/// Runs a case.
///
/// # Errors
/// If the traffic cannot be started, or iperf3 fails.
pub(super) fn run(
    router: &Router,
    parameters: &Parameters,
    case: &Case,
    congestion_control: &str,
    duration: Duration,
    seed: u64,
    headroom_sum: &mut HeadroomSum,
) -> Result<Run, ScenarioError> {
    let lab = &router.lab;
    let (receiver, address) = (lab.host(lab.receiver()), lab.address(lab.receiver()));
    // The host holds what TCP sends: only the switch drops.
    lab.set_host_rate(FLOW, case.flow_limit, case.tcp_buffer)?;
    for host in [FLOW, lab.receiver()] {
        lab.set_tcp_buffers(host, case.tcp_buffer)?;
    }
    let delay = Duration::from_nanos(case.delay.0);
    let is_delayed = case.delay > Nanos(0);
    let line = is_delayed.then(|| lab.delay(lab.receiver(), FLOW, delay)).transpose()?;
    let ingress = Recorder::start(lab.router(), &lab.interface_to(FLOW), flow::segment)?;
    let arrived = Recorder::start(receiver.clone(), HOST_INTERFACE, |parser, frame| {
        flow::segment(parser, frame).filter(|segment| segment.is_forward)
    })?;
    let departures = Departures::with_bursts(parameters.background, BURSTS_PER_SECOND, seed)?;
    let ends = Ends {
        from: lab.host(FLOW),
        names: [format!("h{FLOW}"), format!("h{}", lab.receiver())],
        address: address.into(),
    };
    let _server = Server::start_on(&receiver, 0)?;
    let background = Background::start(&lab.host(BACKGROUND), (&receiver, address), 0, departures)?;
    router.wait(LEAD + Duration::from_millis(seed.wrapping_mul(SPREAD) % MORE_LEAD_MS))?;

    let (probe, sent_before) = (HeadroomProbe::start()?, background.sent_bytes());
    let (queue, host_queue) = (lab.link_queue()?, lab.host_queue(FLOW)?);
    let transfer = Transfer::start_reporting(&ends, 0, Load::Tcp(duration), congestion_control)?;
    let (transferred, intervals) = transfer.finish_with_intervals(|| router.is_stopped())?;
    let background_bytes = background.sent_bytes() - sent_before;
    let idle_ratio = headroom_sum.add(&probe)?.idle;
    router.wait(TAIL)?;
    let dropped = lab.link_queue()?.dropped_packets.saturating_sub(queue.dropped_packets);
    let host_dropped = lab.host_queue(FLOW)?.dropped_packets.saturating_sub(host_queue.dropped_packets);
    let background_late_ns = background.most_late().as_nanos() as u64;
    drop(background);
    let [ingress, arrived] = [ingress.finish()?, arrived.finish()?];
    let no_flow = || ScenarioError::Monitoring("no packet of the flow was seen at the router".to_owned());
    let flow = Flow::find(&ingress.packets, &arrived.packets).ok_or_else(no_flow)?;
    Ok(Run {
        case: *case,
        seconds: seconds(&flow, &arrived.packets, &intervals),
        transmissions: flow.count_all(),
        queue_dropped_packets: dropped,
        host_dropped_packets: host_dropped,
        flow_rate_bps: flow.arrived_bytes as f64 * 8.0 / flow.end.since(flow.start).as_secs_f64().max(1e-9),
        background_rate_bps: background_bytes as f64 * 8.0 / transferred.seconds.max(f64::MIN_POSITIVE),
        background_late_ns,
        delay_late_ns: line.as_ref().map_or(0, |line| line.most_late().as_nanos() as u64),
        delay_dropped_packets: line.as_ref().map_or(0, thalweg_lab::router::delay::DelayLine::dropped),
        lost_frames: ingress.lost + arrived.lost,
        idle_ratio,
    })
}

/// Returns the flow by the second, from its first packet with data on.
fn seconds(flow: &Flow, arrived: &[Segment], intervals: &[Interval]) -> Vec<Second> {
    let mut bytes = vec![0_u64; intervals.len()];
    for segment in arrived.iter().filter(|segment| segment.client_port == flow.client_port) {
        let second = segment.time.since(flow.start).0 / SECOND.0;
        if let Some(bytes) = usize::try_from(second).ok().and_then(|place| bytes.get_mut(place)) {
            *bytes += u64::from(segment.payload);
        }
    }
    let second = |((interval, bytes), number): ((&Interval, u64), u64)| {
        let from = Timestamp(flow.start.0 + number * SECOND.0);
        Second {
            rate_bps: bytes as f64 * 8.0,
            lost_packets: flow.count(from, from + SECOND).lost,
            retransmitted: interval.retransmits,
            cwnd_bytes: interval.snd_cwnd,
            round_trip_ns: interval.rtt * 1_000,
        }
    };
    intervals.iter().zip(bytes).zip(0..).map(second).collect()
}

impl Run {
    /// Whether the queue of the switch dropped packets.
    pub fn loses(&self) -> bool {
        self.queue_dropped_packets > 0
    }

    /// Returns the packets of the background traffic that the queue dropped.
    pub fn background_lost(&self) -> u64 {
        self.queue_dropped_packets.saturating_sub(self.transmissions.lost)
    }

    /// Returns the least and the greatest congestion window from `second` on, in bytes; `None` if the run was shorter.
    pub fn cwnd_range(&self, second: usize) -> Option<(u64, u64)> {
        let windows = || self.seconds.iter().skip(second).map(|second| second.cwnd_bytes);
        windows().min().zip(windows().max())
    }
}

/// `case 2: 78.1 Mbit/s, queue dropped 120 packets`
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mbps, dropped) = (self.flow_rate_bps / 1e6, self.queue_dropped_packets);
        write!(f, "case {}: {mbps:.1} Mbit/s, queue dropped {dropped} packets", self.case.number)
    }
}
