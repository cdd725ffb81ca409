//! Isolation by an OpenFlow 1.3 switch whose port leads to the link (the heavy-hitter dissertation, University of Virginia 2018,
//! section 3.2.2: a controller adds a rule for each cheetah flow, and deletes it when the flow has ended).
//!
//! A rule matches the 5-tuple. It writes a DSCP, selects a queue of the output port, and forwards as before ([`rule`]). Which of
//! both reaches the scavenger queue depends on the switch: Open vSwitch in user space accepts `set_queue` and ignores it, and its
//! port classifies by DSCP instead. So the counters of the scavenger queue are read (OFPMP_QUEUE), and show a redirection without
//! effect.
//!
//! | module | contents |
//! |---|---|
//! | [`rule`] | the entry of one flow |
//! | `rules` | all entries, as decisions |
//! | `control` | mastership, readings, and what is sent |
//!
//! Connections, mastership, reading back and audits are those of [`crate::openflow`]. **Only the master** writes. Without the
//! connection or the role, flows are not redirected, and the reason is reported; existing rules stay.
//!
//! **Adoption.** Entries of an earlier run are offered to the caller as adopted redirections, and deleted if it does not take them.
//! Entries with other cookies are neither read nor changed.
//!
//! **Draining.** OpenFlow does not report the bytes in a queue. The caller has to wait until the flow was silent for long enough.
//! A release is not conditional in the switch: packets between the last reading and the release are counted.
//!
//! **Cost.** Every audit interval: one request for the entries of all redirections, and one for the queues of the port.

mod control;
pub mod rule;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::net::SocketAddr;

use thalweg_control::isolate::{Command, Input, Reading, RedirectionId};
use thalweg_linux::Namespace;
use thalweg_wire::openflow::{DatapathId, QueueId};
use thalweg_wire::{FlowKey, Nanos, Timestamp};

use super::{Isolator, IsolatorCounters};
use crate::openflow::{Config, OpenFlowError, PortReference, Switches, Tls};
use control::Control;
use rule::RulePlan;

/// Maximum time to wait for the deletion of all rules when the daemon stops.
const REMOVE_TIMEOUT: Nanos = Nanos::from_secs(1);

/// Options of isolation by a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlowOptions {
    /// The switch.
    pub switch: DatapathId,
    /// The port that leads to the link.
    pub port: PortReference,
    /// The scavenger queue of the port.
    pub queue: QueueId,
    /// The form of all rules.
    pub rules: RulePlan,
    /// Listen address for the switch.
    pub listen: Option<SocketAddr>,
    /// Address of the switch to connect to, and the name that its certificate must have.
    pub connect: Option<(SocketAddr, String)>,
    /// Settings of connections. `read_back` is ignored.
    pub connection: Config,
    /// Whether rules stay when the daemon stops, until the next start or the idle timeout.
    pub keeps_at_stop: bool,
}

/// Isolation by a switch.
pub struct OpenFlow {
    options: OpenFlowOptions,
    tls: Option<Tls>,
    /// The network namespace of the connections, if it is not that of the daemon.
    namespace: Option<Namespace>,
    /// `None` after the stop. Dropping it ends the connections.
    switches: Option<Switches>,
    control: Control,
    /// The bound listen address.
    address: Option<SocketAddr>,
    failed_checks: u64,
}

impl OpenFlow {
    /// Creates the isolator. It does not connect before [`Isolator::start`].
    pub fn new(options: OpenFlowOptions, tls: Option<Tls>, namespace: Option<Namespace>) -> OpenFlow {
        let (switches, events) =
            Switches::new(Config { read_back: rule::COOKIES, ..options.connection.clone() });
        let control = Control::new(&options, events);
        OpenFlow {
            options,
            tls,
            namespace,
            switches: Some(switches),
            control,
            address: None,
            failed_checks: 0,
        }
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    fn refresh(&mut self, id: RedirectionId, key: FlowKey) {
        if self.control.write_problem().is_none() {
            self.control.rules.refresh(id, key);
        }
    }

    /// Listens, and connects.
    fn connect(&self) -> Result<Option<SocketAddr>, OpenFlowError> {
        let Some(switches) = &self.switches else { return Ok(None) };
        let listen = |address| switches.listen(address, self.tls.clone());
        let bound = self.options.listen.map(listen).transpose()?;
        if let Some((address, name)) = &self.options.connect {
            switches.connect(*address, self.tls.clone().map(|tls| (tls, name.as_str())))?;
        }
        Ok(bound)
    }
}

impl Isolator for OpenFlow {
    fn name(&self) -> &'static str {
        "openflow"
    }

    fn reads_counters(&self) -> bool {
        true
    }

    fn start(&mut self) -> Result<(), String> {
        // Threads stay in the namespace that they are started in, and reconnect there.
        let connected = match &self.namespace {
            None => self.connect(),
            Some(namespace) => namespace.within(|| self.connect()).map_err(|error| error.to_string())?,
        };
        self.address = connected.map_err(|error| error.to_string())?;
        Ok(())
    }

    fn execute(&mut self, command: Command, _now: Timestamp) -> Option<Input> {
        match command {
            Command::Redirect(id, key) if rule::matching(&key).is_none() => {
                let error = format!("cannot match protocol {}: expected tcp, udp or sctp", key.protocol);
                Some(Input::Failed(id, error))
            }
            Command::Redirect(id, key) => match self.control.problem() {
                Some(problem) => Some(Input::Failed(id, problem)),
                None => self.control.rules.redirect(id, key),
            },
            Command::Refresh(redirections) => {
                redirections.into_iter().for_each(|(id, key)| self.refresh(id, key));
                None
            }
            Command::Restore(id, key) => {
                self.refresh(id, key);
                None
            }
            Command::Release { id, key, if_packets } => match self.control.write_problem() {
                Some(problem) => {
                    self.control.rules.release_later(&key);
                    Some(Input::ReleaseFailed(id, problem))
                }
                None => self.control.rules.release(id, key, if_packets),
            },
        }
    }

    fn answers(&mut self) -> Vec<Input> {
        self.control.exchange();
        self.control.take_answers()
    }

    fn adopted(&mut self) -> Vec<FlowKey> {
        // Known once the switch is connected: see `answers`.
        Vec::new()
    }

    /// A switch sends the counters of all entries at once.
    fn read(&mut self, flows: &[FlowKey], now: Timestamp) -> Result<Option<Reading>, String> {
        self.control.advance(now);
        let Some(mut reading) = self.control.take_reading() else { return Ok(None) };
        let found: HashSet<FlowKey> = reading.flows.iter().map(|(key, _)| *key).collect();
        reading.flows.extend(flows.iter().filter(|key| !found.contains(key)).map(|key| (*key, None)));
        Ok(Some(reading))
    }

    fn maintain(&mut self, _now: Timestamp) -> Result<Vec<String>, String> {
        match self.control.problem() {
            None => Ok(self.control.rules.take_repaired()),
            Some(problem) => {
                self.failed_checks += 1;
                Err(problem)
            }
        }
    }

    fn stop(&mut self) -> Result<(), String> {
        let removed = match self.options.keeps_at_stop {
            true => {
                self.control.release();
                Ok(())
            }
            false => self.control.remove(REMOVE_TIMEOUT),
        };
        self.switches = None;
        let seconds = self.options.rules.idle_timeout;
        removed.map_err(|error| format!("{error}; each ends when its flow is silent for {seconds} s"))
    }

    fn counters(&self) -> IsolatorCounters {
        let rules = self.control.rules.counters();
        IsolatorCounters {
            redirected_packets: self.control.rules.packets(),
            released_packets: rules.late_packets,
            repairs: rules.repairs,
            failed_checks: self.failed_checks,
            calls: rules.done + rules.failed,
            failed_calls: rules.failed,
            ..IsolatorCounters::default()
        }
    }
}
