//! Port and queue statistics of a switch by OpenFlow 1.3 (`OFPMP_PORT_STATS` and `OFPMP_QUEUE`, sections 7.3.5.6 and 7.3.5.8).
//!
//! **Loss.** The loss of the primary queue needs its number: then `tx_errors`, the packets that the queue dropped, and
//! `tx_packets` are read. `tx_dropped` of the port counts all queues, or none of them: it depends on the switch.
//!
//! **Port.** A port is known by its name. Each reading requests the ports first, and then the statistics of the number that the
//! name has now. If the switch reports a change of its ports meanwhile, the reading starts again.
//!
//! **Unsupported counters** have all bits set. One that the loss needs makes the reading fail; others are missing in it.
//!
//! **Restarts.** The age of the port tells that it was created again, as `sysUpTime` does for an SNMP agent. So does the
//! age of a queue.
//!
//! **Role.** The controller requests none, so it is an equal (section 6.3.6): the master of the switch keeps its role. It sends
//! nothing that changes the switch ([`Config::reads_only`](thalweg_openflow::Config::reads_only)).
//!
//! **Connections** are shared by all sources of one address ([`Connections`]), so a switch has one for all of its ports.
//!
//! What Open vSwitch counts is in the guide `docs/guides/interface-counters.md`.

mod connections;
mod statistics;

use std::sync::Arc;
use std::time::Duration;

use thalweg_openflow::{Failure, Switch, SwitchRequestError};
use thalweg_wire::openflow::multipart::{PortStats, QueueFilter, QueueStats};
use thalweg_wire::openflow::{DatapathId, Port, PortNumber, QueueId};
use thalweg_wire::{Nanos, Timestamp};

pub use connections::{Connections, Peer};

use crate::{CounterSource, InterfaceReading, ReadError};
use statistics::Answer;

/// How often a reading starts again because the ports changed.
const ATTEMPTS: usize = 3;

/// Names in an error message.
const NAMES_SHOWN: usize = 8;

/// The longest name of a port in bytes (OFP_MAX_PORT_NAME_LEN with a zero byte, section 7.2.1).
pub const MAX_PORT_NAME: usize = 15;

/// What to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlowOptions {
    /// The switch.
    pub switch: DatapathId,
    /// Name of the port.
    pub port: String,
    /// The primary queue, if it is counted.
    pub primary: Option<QueueId>,
    /// The scavenger queue, if it is counted. Needs `primary`: what the port counts need not contain the drops of queues.
    pub scavenger: Option<QueueId>,
    /// Whether the port has only one queue, whose drops it counts. Has no effect with `primary`.
    pub has_one_queue: bool,
    /// Timeout of a request, and how long a reading waits for a connection.
    pub timeout: Duration,
}

/// Reads a port of a switch.
pub struct OpenFlow {
    options: OpenFlowOptions,
    connections: Arc<Connections>,
}

/// What a reading found.
enum Outcome {
    Reading(Box<InterfaceReading>),
    /// The ports changed meanwhile.
    PortsChanged,
}

impl OpenFlow {
    /// Creates a source that reads over these connections.
    pub fn new(options: OpenFlowOptions, connections: Arc<Connections>) -> OpenFlow {
        OpenFlow { options, connections }
    }

    fn target(&self) -> String {
        format!("switch {}", self.options.switch)
    }

    fn timeout(&self) -> Nanos {
        Nanos(u64::try_from(self.options.timeout.as_nanos()).unwrap_or(u64::MAX))
    }

    fn attempt(&self, clock: &dyn Fn() -> Timestamp) -> Result<Outcome, ReadError> {
        let connected = self.connections.switch(self.options.switch, self.options.timeout);
        let (switch, changes) =
            connected.map_err(|message| ReadError::NotConnected { target: self.target(), message })?;
        let port = self.port(&switch)?;
        let before = clock();
        let statistics = self.port_stats(&switch, &port);
        let queues = statistics.and_then(|stats| Ok((stats, self.queue_stats(&switch, port.port_no)?)));
        let after = clock();
        if self.connections.port_changes(&switch) != Some(changes) {
            return Ok(Outcome::PortsChanged);
        }
        let (stats, queues) = queues?;
        let round_trip = Nanos(after.since(before).0 / 2);
        let answer = Answer { target: self.target(), options: &self.options, port, stats, queues };
        let reading = answer.reading(before + round_trip, round_trip)?;
        let reading = InterfaceReading { agent: Some(switch.peer().ip()), ..reading };
        Ok(Outcome::Reading(Box::new(reading)))
    }

    /// Returns the port that has the name now.
    fn port(&self, switch: &Switch) -> Result<Port, ReadError> {
        let ports = switch.ports(self.timeout()).map_err(|error| self.failed("its ports", error))?;
        let name = self.options.port.as_bytes();
        let mut named = ports.iter().filter(|port| port.name.as_bytes() == name);
        let object = "port name";
        match (named.next(), named.count()) {
            (Some(port), 0) => Ok(*port),
            (Some(_), others) => Err(ReadError::Ambiguous {
                target: self.target(),
                object,
                value: self.options.port.clone(),
                count: others + 1,
            }),
            (None, _) => {
                let names: Vec<String> =
                    ports.iter().take(NAMES_SHOWN).map(|port| port.name.to_string()).collect();
                let known = if names.is_empty() { "no ports".to_owned() } else { names.join(", ") };
                let (target, value) = (self.target(), self.options.port.clone());
                Err(ReadError::NoInterface { target, object, value, known })
            }
        }
    }

    fn port_stats(&self, switch: &Switch, port: &Port) -> Result<PortStats, ReadError> {
        let number = port.port_no;
        let stats = switch
            .port_stats(number, self.timeout())
            .map_err(|error| self.failed(&format!("the counters of port {number}"), error))?;
        let missing = || ReadError::NoCounter {
            target: self.target(),
            object: format!("counters of port {number}"),
            interface: self.options.port.clone(),
        };
        stats.into_iter().find(|stats| stats.port_no == number).ok_or_else(missing)
    }

    /// Requests the queues that are needed, each alone: Open vSwitch reports the age of a queue only if it alone is requested.
    fn queue_stats(&self, switch: &Switch, port: PortNumber) -> Result<Vec<QueueStats>, ReadError> {
        let queues = self.options.primary.into_iter().chain(self.options.scavenger);
        queues.map(|queue| self.one_queue(switch, port, queue)).collect()
    }

    fn one_queue(
        &self,
        switch: &Switch,
        port_no: PortNumber,
        queue_id: QueueId,
    ) -> Result<QueueStats, ReadError> {
        let what = format!("the counters of queue {} of port {port_no}", queue_id.0);
        let answer = switch.queue_stats(QueueFilter { port_no, queue_id }, self.timeout());
        let is_it = |queue: &QueueStats| (queue.port_no, queue.queue_id) == (port_no, queue_id);
        match answer.map_err(|error| self.failed(&what, error)) {
            Ok(queues) => queues.into_iter().find(is_it).ok_or_else(|| ReadError::NoCounter {
                target: self.target(),
                object: format!("counters of queue {}", queue_id.0),
                interface: [&*self.options.port, &self.known_queues(switch, port_no)].concat(),
            }),
            Err(ReadError::Refused { target, what, message }) => {
                let message = [message, self.known_queues(switch, port_no)].concat();
                Err(ReadError::Refused { target, what, message })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the queues of a port for an error message; nothing if the switch does not report them.
    fn known_queues(&self, switch: &Switch, port_no: PortNumber) -> String {
        let filter = QueueFilter { port_no, queue_id: QueueId::ALL };
        let Ok(queues) = switch.queue_stats(filter, self.timeout()) else { return String::new() };
        let numbers: Vec<String> =
            queues.iter().take(NAMES_SHOWN).map(|queue| queue.queue_id.0.to_string()).collect();
        match numbers.is_empty() {
            true => "; the port has no queues".to_owned(),
            false => format!("; the port has queues {}", numbers.join(", ")),
        }
    }

    /// Converts an error of a request for `what`.
    fn failed(&self, what: &str, error: SwitchRequestError) -> ReadError {
        let target = self.target();
        match error {
            SwitchRequestError::Failed(Failure::Refused { error, .. }) => {
                ReadError::Refused { target, what: what.to_owned(), message: error.to_string() }
            }
            SwitchRequestError::Failed(Failure::TimedOut) => {
                let timeout = self.timeout();
                ReadError::Timeout { target, message: format!("requested {what}, waited for {timeout}") }
            }
            SwitchRequestError::Failed(Failure::Down) | SwitchRequestError::NotSent(_) => {
                let message = format!("the connection ended before the answer to the request for {what}");
                ReadError::NotConnected { target, message }
            }
            error => ReadError::Protocol { target, message: format!("request for {what}: {error}") },
        }
    }
}

impl CounterSource for OpenFlow {
    fn description(&self) -> String {
        let OpenFlowOptions { switch, port, primary, .. } = &self.options;
        let queue = primary.map_or_else(String::new, |queue| format!(", queue {}", queue.0));
        format!("OpenFlow of switch {switch} ({}), port {port}{queue}", self.connections.peer())
    }

    fn read(&mut self, clock: &dyn Fn() -> Timestamp) -> Result<InterfaceReading, ReadError> {
        for _ in 0..ATTEMPTS {
            match self.attempt(clock)? {
                Outcome::Reading(reading) => return Ok(*reading),
                Outcome::PortsChanged => {}
            }
        }
        let message = format!("its ports changed during each of {ATTEMPTS} readings");
        Err(ReadError::Protocol { target: self.target(), message })
    }
}
