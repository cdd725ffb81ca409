//! One run: ping and background traffic, and then the flow beside them, with or without isolation.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;
use thalweg_control::isolate::RedirectionReport;
use thalweg_daemon::isolation::IsolationReport;
use thalweg_lab::HOST_INTERFACE;
use thalweg_lab::headroom::HeadroomProbe;
use thalweg_lab::router::marks::MarkedPackets;
use thalweg_wire::{Nanos, Timestamp};

use super::background::{Background, Departures};
use super::capture::Recorder;
use super::daemon::{Daemon, Detects};
use super::flow::{self, Flow, MOVE_LEAD, MOVE_WINDOW, Transmissions};
use super::ping::{self, Delay, Period, Ping};
use super::{Actuator, BACKGROUND, BACKGROUND_SHARE, FLOW, Isolation, Options, PING, Parameters, Router};
use crate::error::ScenarioError;
use crate::session::HeadroomSum;
use crate::traffic::{Ends, Load, PORT, Server, Transfer};

/// How long ping and background traffic run before and after the flow.
const LEAD: Duration = Duration::from_secs(1);
const TAIL: Duration = Duration::from_secs(1);

/// The period after the start of the flow in which isolation acts.
const FIRST: Nanos = Nanos::from_secs(1);

/// A ping suffers if it takes longer than this, a sixteenth of a full queue.
pub const SUFFERS_ABOVE: Nanos = Nanos::from_millis(1);

/// The times from the threshold to the scavenger queue, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// From the packet that crosses the threshold until isolation requests the redirection.
    pub detection_ns: u64,
    /// From there until the entry is written.
    pub redirection_ns: u64,
    /// From there until the first packet of the flow enters the scavenger queue.
    pub packet_ns: u64,
    /// The whole. Not always the sum: a packet may see the entry before the daemon has noted that it is written.
    pub total_ns: u64,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// How the flow was isolated.
    pub isolation: Isolation,
    /// The ping before the flow.
    pub before: Period,
    /// The ping in the first second of the flow.
    pub first_second: Period,
    /// The ping in the rest of the flow.
    pub settled: Period,
    /// The ping after the flow.
    pub after: Period,
    /// For how long the ping suffers in the first second of the flow.
    pub first_second_suffering_ns: u64,
    /// For how long it suffers while the flow lasts.
    pub suffering_ns: u64,
    /// From the threshold to the scavenger queue; null without isolation.
    pub latency: Option<Latency>,
    /// Transmissions of the flow from 5 ms before its first packet in the scavenger queue until 50 ms after it; null without isolation.
    #[serde(rename = "move")]
    pub moved: Option<Transmissions>,
    /// Packets that arrived after one that entered the router later, and in the time of `move`.
    pub overtaken_by_move: u64,
    /// Transmissions of the flow.
    pub transmissions: Transmissions,
    /// Payload of the flow that arrived, in bits per second while it lasted.
    pub flow_rate_bps: f64,
    /// Mean rate of the background traffic, in bits per second from the IP header on.
    pub background_rate_bps: f64,
    /// The most that a packet of the background traffic was sent too late.
    pub background_late_ns: u64,
    /// Other flows that were redirected, or would have been.
    pub other_redirections: u64,
    /// Packets that were lost before collectors or records.
    pub lost_frames: u64,
    /// Idle share of the CPU time, 0 to 1.
    pub idle_ratio: f64,
    /// Delays over time, in nanoseconds from the start of the flow.
    #[serde(skip)]
    pub curve: Vec<(f64, f64)>,
    /// When the flow moved, in nanoseconds from its start.
    pub moved_at_ns: Option<u64>,
}

/// Runs once.
///
/// # Errors
/// If the daemon or the traffic cannot be started.
pub(super) fn run(
    router: &Router,
    parameters: &Parameters,
    isolation: Isolation,
    congestion_control: &str,
    options: &Options,
    seed: u64,
    headroom_sum: &mut HeadroomSum,
) -> Result<Run, ScenarioError> {
    let lab = &router.lab;
    let (receiver, address) = (lab.host(lab.receiver()), lab.address(lab.receiver()));
    router.set_queues(parameters, isolation)?;
    let marked = match parameters.actuator {
        Actuator::Tc => None,
        Actuator::OpenFlow => Some(MarkedPackets::record(lab)?),
    };
    let daemon = Daemon::start(&router.prefix, parameters, isolation, Detects::Cheetahs)?;
    let echoes = Recorder::start(lab.host(PING), HOST_INTERFACE, |_, frame| ping::echo(frame))?;
    let ingress = Recorder::start(lab.router(), &lab.interface_to(FLOW), flow::segment)?;
    let arrived = Recorder::start(receiver.clone(), HOST_INTERFACE, |parser, frame| {
        flow::segment(parser, frame).filter(|segment| segment.is_forward)
    })?;
    let departures = Departures::new(parameters.share(BACKGROUND_SHARE), seed)?;
    let ends = Ends {
        from: lab.host(FLOW),
        names: [format!("h{FLOW}"), format!("h{}", lab.receiver())],
        address: address.into(),
    };
    let _server = Server::start_on(&receiver, 0)?;
    let background = Background::start(&lab.host(BACKGROUND), (&receiver, address), 0, departures)?;
    let ping = Ping::start(&lab.host(PING), address)?;
    router.wait(LEAD)?;

    let (probe, sent_before) = (HeadroomProbe::start()?, background.sent_bytes());
    let load = Load::Tcp(options.duration);
    let transfer = Transfer::start_between(&ends, 0, load, Some(congestion_control))?;
    let transferred = transfer.finish(|| router.is_stopped())?;
    let background_bytes = background.sent_bytes() - sent_before;
    let idle_ratio = headroom_sum.add(&probe)?.idle;
    router.wait(TAIL)?;
    drop(ping);
    let background_late_ns = background.most_late().as_nanos() as u64;
    drop(background);

    let [ingress, arrived] = [ingress.finish()?, arrived.finish()?];
    let echoes = echoes.finish()?;
    let lost_frames = daemon.lost_frames() + ingress.lost + arrived.lost + echoes.lost;
    let report = daemon.report();
    drop(daemon);
    let no_flow = || ScenarioError::Monitoring("no packet of the flow was seen at the router".to_owned());
    let flow = Flow::find(&ingress.packets, &arrived.packets).ok_or_else(no_flow)?;
    let of_flow = |it: &&RedirectionReport| it.key.src_port == flow.client_port && it.key.dst_port == PORT;
    let all = || report.active.iter().chain(&report.ended);
    let is_of_host = |it: &&RedirectionReport| it.key.src() == IpAddr::V4(lab.address(FLOW));
    let redirection = all().filter(is_of_host).find(of_flow);
    let moved = match (&marked, redirection) {
        (Some(marked), Some(redirection)) => marked.first(&redirection.key)?,
        _ => redirection.and_then(|it| it.counters?.first),
    };
    let of_move = moved.map(|at| (Timestamp(at.0.saturating_sub(MOVE_LEAD.0)), at + MOVE_WINDOW));
    let delays = ping::delays(&echoes);
    let before = Period::of(&delays, Timestamp(0), flow.start);
    let settled = flow.start + FIRST;
    let end = flow.end.max(settled);
    let volume = parameters.rate_threshold.amount_in(parameters.flight_duration);
    let crossing = flow.crossing(parameters.flight_duration, volume);
    let seconds = transferred.seconds.max(f64::MIN_POSITIVE);
    Ok(Run {
        isolation,
        before,
        first_second: Period::of(&delays, flow.start, settled),
        settled: Period::of(&delays, settled, end),
        after: Period::of(&delays, end, Timestamp(u64::MAX)),
        first_second_suffering_ns: ping::suffering(&delays, SUFFERS_ABOVE, flow.start, settled).0,
        suffering_ns: ping::suffering(&delays, SUFFERS_ABOVE, flow.start, end).0,
        latency: redirection
            .zip(crossing)
            .zip(moved)
            .and_then(|((it, crossing), first)| Latency::of(it, crossing, first)),
        moved: of_move.map(|(from, until)| flow.count(from, until)),
        overtaken_by_move: of_move.map_or(0, |(from, until)| flow.overtaken(from, until)),
        transmissions: flow.count_all(),
        flow_rate_bps: flow.arrived_bytes as f64 * 8.0 / flow.end.since(flow.start).as_secs_f64().max(1e-9),
        background_rate_bps: background_bytes as f64 * 8.0 / seconds,
        background_late_ns,
        other_redirections: others(&report, redirection),
        lost_frames,
        idle_ratio,
        curve: curve(&delays, flow.start),
        moved_at_ns: moved.map(|at| at.since(flow.start).0),
    })
}

/// Returns the number of redirections of other flows.
fn others(report: &IsolationReport, of_flow: Option<&RedirectionReport>) -> u64 {
    (report.active.len() + report.ended.len()) as u64 - u64::from(of_flow.is_some())
}

/// Returns the delays over time; lost requests are left out.
fn curve(delays: &[Delay], start: Timestamp) -> Vec<(f64, f64)> {
    let point = |delay: &Delay| {
        let at = delay.sent.0 as i64 - start.0 as i64;
        Some((at as f64, delay.delay?.0 as f64))
    };
    delays.iter().filter_map(point).collect()
}

impl Latency {
    /// Returns the times of a redirection, whose flow crossed the threshold at `crossing` and whose first packet reached the
    /// scavenger queue at `first`; `None` if the redirection was not carried out.
    pub fn of(redirection: &RedirectionReport, crossing: Timestamp, first: Timestamp) -> Option<Latency> {
        let redirected = redirection.redirected?;
        Some(Latency {
            detection_ns: redirection.requested.since(crossing).0,
            redirection_ns: redirected.since(redirection.requested).0,
            packet_ns: first.since(redirected).0,
            total_ns: first.since(crossing).0,
        })
    }
}

/// `borrow: ping settled p50 0.11 ms, p99 1.20 ms; redirected after 0.40 ms`
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        let delays = &self.settled.delays;
        let (p50, p99) = (ms(delays.p50_ns), ms(delays.p99_ns));
        write!(f, "{}: ping p50 {p50:.2} ms, p99 {p99:.2} ms", self.isolation.name())?;
        match self.latency {
            Some(latency) => write!(f, "; redirected after {:.2} ms", ms(latency.total_ns)),
            None => write!(f, "; not redirected"),
        }
    }
}
