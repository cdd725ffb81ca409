//! How strict the priority of the primary queue is: what the scavenger queue gets while the primary queue fills the link.
//!
//! HTB serves guaranteed rates before it lends what is left, by priority. So a class with a guaranteed rate gets that rate
//! whatever its priority. Here the primary queue is offered 1.2 times the link by UDP, the scavenger queue half of it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::Serialize;
use thalweg_control::isolate::message::QueueReading;
use thalweg_emulator::workloads::burst_process::PACKET_BYTES;
use thalweg_wire::{BitRate, FlowKey};

use super::background::{Background, Departure, FIRST_PORT, RECEIVER_PORT};
use super::daemon::{Daemon, Detects};
use super::{BACKGROUND, FLOW, Isolation, Parameters, Router};
use crate::error::ScenarioError;

/// Offered rates, as shares of the link.
const PRIMARY_OFFERED: f64 = 1.2;
const SCAVENGER_OFFERED: f64 = 0.5;

/// Time until both queues are full, and of the measurement.
const WARM_UP: Duration = Duration::from_secs(1);
const TIME: Duration = Duration::from_secs(2);

/// What the scavenger queue gets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The queueing.
    pub isolation: Isolation,
    /// Bytes that left the primary queue, link layer included.
    pub primary_bytes: u64,
    /// Bytes that left the scavenger queue.
    pub scavenger_bytes: u64,
    /// The scavenger queue's share of both, 0 to 1.
    pub scavenger_ratio: f64,
    /// Packets that the primary queue dropped: it was full.
    pub primary_dropped: u64,
    /// Packets that the scavenger queue dropped.
    pub scavenger_dropped: u64,
}

/// Measures both queueings.
///
/// # Errors
/// If the daemon or the traffic cannot be started.
pub(super) fn measure(router: &Router, parameters: &Parameters) -> Result<Vec<Share>, ScenarioError> {
    let queueings = Isolation::ALL.into_iter().filter(|isolation| *isolation != Isolation::None);
    queueings.map(|isolation| measure_one(router, parameters, isolation)).collect()
}

fn measure_one(
    router: &Router,
    parameters: &Parameters,
    isolation: Isolation,
) -> Result<Share, ScenarioError> {
    let lab = &router.lab;
    let (receiver, address) = (lab.host(lab.receiver()), lab.address(lab.receiver()));
    router.set_queues(parameters, isolation)?;
    let daemon = Daemon::start(&router.prefix, parameters, isolation, Detects::Nothing)?;
    daemon.redirect(key(lab.address(FLOW), address)?)?;
    let start = |from, number, share| {
        let departures = evenly(parameters.share(share));
        Background::start(&lab.host(from), (&receiver, address), number, departures)
    };
    let _primary = start(BACKGROUND, 0, PRIMARY_OFFERED)?;
    let _scavenger = start(FLOW, 1, SCAVENGER_OFFERED)?;
    router.wait(WARM_UP)?;
    let before = queues(&daemon)?;
    router.wait(TIME)?;
    let after = queues(&daemon)?;
    Ok(Share::new(isolation, before, after))
}

/// Returns the scavenger and the primary queue.
fn queues(daemon: &Daemon) -> Result<(QueueReading, QueueReading), ScenarioError> {
    let report = daemon.report();
    let unread = || ScenarioError::Daemon(report.error.clone().unwrap_or("queues not read".to_owned()));
    report.queues.ok_or_else(unread)
}

/// Returns the flow that is redirected by hand.
fn key(from: Ipv4Addr, to: Ipv4Addr) -> Result<FlowKey, ScenarioError> {
    let [from, to] = [(from, FIRST_PORT), (to, RECEIVER_PORT + 1)];
    let [from, to] = [from, to].map(|(ip, port)| SocketAddr::new(IpAddr::V4(ip), port));
    format!("udp {from} > {to}")
        .parse()
        .map_err(|error: thalweg_wire::flow_key::ParseFlowKeyError| ScenarioError::Daemon(error.to_string()))
}

/// Packets of one flow at a constant rate.
fn evenly(rate: BitRate) -> impl Iterator<Item = Departure> + Send + 'static {
    let gap_ns = u64::from(PACKET_BYTES) * 8 * 1_000_000_000 / rate.0.max(1);
    (0..).map(move |number: u64| Departure { at: Duration::from_nanos(number * gap_ns), port: 0 })
}

impl Share {
    fn new(
        isolation: Isolation,
        before: (QueueReading, QueueReading),
        after: (QueueReading, QueueReading),
    ) -> Share {
        let sent =
            |before: QueueReading, after: QueueReading| after.sent_bytes.saturating_sub(before.sent_bytes);
        let dropped = |before: QueueReading, after: QueueReading| {
            after.dropped_packets.saturating_sub(before.dropped_packets)
        };
        let (scavenger_bytes, primary_bytes) = (sent(before.0, after.0), sent(before.1, after.1));
        Share {
            isolation,
            primary_bytes,
            scavenger_bytes,
            scavenger_ratio: scavenger_bytes as f64 / (scavenger_bytes + primary_bytes).max(1) as f64,
            primary_dropped: dropped(before.1, after.1),
            scavenger_dropped: dropped(before.0, after.0),
        }
    }
}
