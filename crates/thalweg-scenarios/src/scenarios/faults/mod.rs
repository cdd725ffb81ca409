//! `faults`: fault injection. After a fault of the network or the controller, forwarding recovers and the control loop
//! resumes.
//!
//! Each fault has its own lab, with the flows of [`collide`](super::collide). It is injected while both send, after one
//! has been rerouted. Afterwards three conditions must hold:
//!
//! - **No broken path**: each pair's packets, by each address, follow the rules read back from the switches to their
//!   destination over links that are up;
//! - **Full connectivity**: every host connects to every other by TCP;
//! - **The loop resumes**: it resolves the next collision.
//!
//! | fault | what happens |
//! |---|---|
//! | `switch-restart` | a switch loses power, its table and its counters |
//! | `controller-killed` | the controller is killed while it installs other trees; another one starts |
//! | `events-lost` | a fifth of the collectors' reports is lost |
//! | `events-reordered` | the collectors' reports arrive out of order |
//! | `unresponsive-host` | the host to be rerouted ignores ARP |
//! | `link-failure` | the link on which the flows collide fails and is restored |
//! | `wrong-topology` | two cables are swapped, unknown to the controller |
//!
//! The seed selects the switch, and how many changes the killed controller makes.

mod cases;
mod miswired;
mod testbed;

use std::str::FromStr;

use serde::Serialize;
use thalweg_lab::{Headroom, Verdict};
use thalweg_wire::{BitRate, Nanos};
use thiserror::Error;

use super::Setting;
use crate::error::ScenarioError;
use crate::traffic;
use testbed::Testbed;

/// A fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A switch loses power, its table and its counters.
    SwitchRestart,
    /// The controller is killed while it installs rules, and another one starts.
    ControllerKilled,
    /// A fifth of the collectors' reports is lost.
    EventsLost,
    /// The collectors' reports arrive out of order.
    EventsReordered,
    /// A host ignores ARP.
    UnresponsiveHost,
    /// A link fails and is restored.
    LinkFailure,
    /// Two cables are swapped, and the topology file is wrong.
    WrongTopology,
}

/// The text is not the name of a fault.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown fault {text:?}: expected {}", Fault::ALL.map(Fault::name).join(", "))]
pub struct ParseFaultError {
    text: String,
}

impl Fault {
    /// All faults, in the order of the runs.
    pub const ALL: [Fault; 7] = [
        Fault::SwitchRestart,
        Fault::ControllerKilled,
        Fault::EventsLost,
        Fault::EventsReordered,
        Fault::UnresponsiveHost,
        Fault::LinkFailure,
        Fault::WrongTopology,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Fault::SwitchRestart => "switch-restart",
            Fault::ControllerKilled => "controller-killed",
            Fault::EventsLost => "events-lost",
            Fault::EventsReordered => "events-reordered",
            Fault::UnresponsiveHost => "unresponsive-host",
            Fault::LinkFailure => "link-failure",
            Fault::WrongTopology => "wrong-topology",
        }
    }
}

impl FromStr for Fault {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Fault, ParseFaultError> {
        let named = Fault::ALL.into_iter().find(|fault| fault.name() == text);
        named.ok_or_else(|| ParseFaultError { text: text.to_owned() })
    }
}

/// The outcome of a fault.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The fault.
    pub fault: Fault,
    /// What happened, in order.
    pub log: Vec<String>,
    /// Conditions of this fault that did not hold.
    pub failures: Vec<String>,
    /// Time from the end of the fault until no path was broken; `None` if it took too long.
    pub recovery: Option<Nanos>,
    /// Broken paths at the end: pair, address and reason.
    pub misrouted: Vec<String>,
    /// Pairs that cannot connect at the end.
    pub unreachable: Vec<String>,
    /// Time to resolve the next collision; `None` if it was not resolved.
    pub next_collision: Option<Nanos>,
    /// Headroom of the machine.
    pub headroom: Headroom,
}

impl Outcome {
    /// Whether all conditions held.
    pub fn is_survived(&self) -> bool {
        self.recovery.is_some()
            && self.next_collision.is_some()
            && [&self.failures, &self.misrouted, &self.unreachable].into_iter().all(Vec::is_empty)
    }

    /// Returns the row of the results.
    pub fn row(&self) -> Row<'_> {
        Row {
            fault: self.fault.name(),
            survived: self.is_survived(),
            recovery_ns: self.recovery.map(|time| time.0),
            next_collision_ns: self.next_collision.map(|time| time.0),
            misrouted: &self.misrouted,
            unreachable: &self.unreachable,
            failures: &self.failures,
            log: &self.log,
            idle_ratio: self.headroom.idle,
            conclusive: self.headroom.verdict() == Verdict::Conclusive,
        }
    }
}

/// A row of the results.
#[derive(Clone, Debug, Serialize)]
pub struct Row<'a> {
    /// The fault.
    pub fault: &'static str,
    /// Whether all conditions held.
    pub survived: bool,
    /// Time from the end of the fault until no path was broken.
    pub recovery_ns: Option<u64>,
    /// Time from the next collision to the first packet on another path.
    pub next_collision_ns: Option<u64>,
    /// Broken paths at the end.
    pub misrouted: &'a [String],
    /// Pairs that cannot connect at the end.
    pub unreachable: &'a [String],
    /// Other conditions that did not hold.
    pub failures: &'a [String],
    /// What happened, in order.
    pub log: &'a [String],
    /// Idle share of the CPU time, 0 to 1.
    pub idle_ratio: f64,
    /// Whether the headroom was sufficient for the times to be valid.
    pub conclusive: bool,
}

/// The results of all faults.
#[derive(Clone, Debug)]
pub struct Results {
    /// Rate of the links.
    pub rate: BitRate,
    /// Seed of the random choices.
    pub seed: u64,
    /// The outcomes, in the order requested.
    pub outcomes: Vec<Outcome>,
}

/// Injects faults one after the other, each in its own lab.
///
/// # Errors
/// If a lab cannot be created, or iperf3 fails.
pub fn run(faults: &[Fault], seed: u64, setting: &mut Setting<'_>) -> Result<Results, ScenarioError> {
    traffic::check()?;
    let mut outcomes = Vec::new();
    for &fault in faults {
        let outcome = one(fault, seed, setting)?;
        let verdict = if outcome.is_survived() { "survived" } else { "not survived" };
        (setting.on_progress)(&format!("{}: {verdict}", fault.name()));
        outcomes.push(outcome);
    }
    Ok(Results { rate: setting.rate, seed, outcomes })
}

fn one(fault: Fault, seed: u64, setting: &Setting<'_>) -> Result<Outcome, ScenarioError> {
    let mut testbed = match fault {
        Fault::WrongTopology => Testbed::up_miswired(setting)?,
        _ => Testbed::up(setting)?,
    };
    match fault {
        Fault::SwitchRestart => cases::switch_restart(&mut testbed, seed)?,
        Fault::ControllerKilled => cases::controller_killed(&mut testbed, seed)?,
        Fault::EventsLost => cases::events_lost(&mut testbed, seed)?,
        Fault::EventsReordered => cases::events_reordered(&mut testbed, seed)?,
        Fault::UnresponsiveHost => cases::unresponsive_host(&mut testbed)?,
        Fault::LinkFailure => cases::link_failure(&mut testbed)?,
        Fault::WrongTopology => cases::wrong_topology(&mut testbed)?,
    }
    testbed.end(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_names_parse() {
        for fault in Fault::ALL {
            assert_eq!(fault.name().parse(), Ok(fault));
        }
        assert!("fire".parse::<Fault>().unwrap_err().to_string().contains("unresponsive-host, link-failure"));
    }

    #[test]
    fn fault_is_survived_only_if_every_condition_holds() {
        let headroom = Headroom { idle: 0.0, min_idle: 0.0, stolen: 0.0, backlog_drops: 1 };
        let survived = Outcome {
            fault: Fault::UnresponsiveHost,
            log: vec!["h0 ignored ARP".to_owned()],
            failures: Vec::new(),
            recovery: Some(Nanos(0)),
            misrouted: Vec::new(),
            unreachable: Vec::new(),
            next_collision: Some(Nanos(1)),
            headroom,
        };
        assert!(survived.is_survived(), "however inconclusive its times");
        let one = || vec!["h0 > h1".to_owned()];
        for failed in [
            Outcome { failures: one(), ..survived.clone() },
            Outcome { misrouted: one(), ..survived.clone() },
            Outcome { unreachable: one(), ..survived.clone() },
            Outcome { recovery: None, ..survived.clone() },
            Outcome { next_collision: None, ..survived.clone() },
        ] {
            assert!(!failed.is_survived() && !failed.row().survived, "{failed:?}");
        }
    }
}
