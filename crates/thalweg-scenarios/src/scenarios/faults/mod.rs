//! `faults`: something befalls the network or its controller while two flows are steered; after it forwarding is whole, and
//! the loop goes on.
//!
//! Each fault has a lab of its own, with the flows of [`collide`](super::collide). It strikes while both send, and when they
//! have been taken apart. After it three things have to hold:
//! - **Forwarding is whole**: each pair's packets, by each address, are walked over the rules read back from the switches, and
//!   arrive over links that are up;
//! - **everybody reaches everybody**, by TCP;
//! - **the loop resumes**: the next collision is resolved.
//!
//! | fault | what befalls |
//! |---|---|
//! | `switch-restart` | a switch loses its power, its table and its counters |
//! | `controller-killed` | in the middle of installing other trees; another controller begins |
//! | `events-lost` | of what collectors tell, a fifth does not arrive |
//! | `events-reordered` | it arrives in another order |
//! | `deaf-host` | the host that is to send another way takes no notice of ARP |
//! | `link-failure` | a link that the flows meet on fails, and returns |
//! | `wrong-topology` | two cables are swapped, and nobody knows |
//!
//! Where there is a choice, of a switch or of how far the controller comes, the seed makes it.

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

/// What befalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A switch loses its power, its table and its counters.
    SwitchRestart,
    /// A controller ends in the middle of an installation, and another one begins.
    ControllerKilled,
    /// A fifth of what collectors tell is lost.
    EventsLost,
    /// What collectors tell arrives in another order.
    EventsReordered,
    /// A host takes no notice of ARP.
    DeafHost,
    /// A link fails, and returns.
    LinkFailure,
    /// Two cables are swapped, and the topology file does not have it.
    WrongTopology,
}

/// What was asked for is no fault.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no fault {text:?}: expected {}", Fault::ALL.map(Fault::name).join(", "))]
pub struct ParseFaultError {
    text: String,
}

impl Fault {
    /// All, in the order in which they are tried.
    pub const ALL: [Fault; 7] = [
        Fault::SwitchRestart,
        Fault::ControllerKilled,
        Fault::EventsLost,
        Fault::EventsReordered,
        Fault::DeafHost,
        Fault::LinkFailure,
        Fault::WrongTopology,
    ];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Fault::SwitchRestart => "switch-restart",
            Fault::ControllerKilled => "controller-killed",
            Fault::EventsLost => "events-lost",
            Fault::EventsReordered => "events-reordered",
            Fault::DeafHost => "deaf-host",
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

/// What came of a fault.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which.
    pub fault: Fault,
    /// What befell, and what was made of it.
    pub story: Vec<String>,
    /// What does not hold of what is special to the fault.
    pub broken: Vec<String>,
    /// From the fault's end until forwarding was whole; `None` if it was not in time.
    pub whole_after: Option<Nanos>,
    /// Pairs and addresses that do not lead there in the end, in words.
    pub astray: Vec<String>,
    /// Pairs that do not reach each other in the end.
    pub unreachable: Vec<String>,
    /// How long the next collision lasted; `None` if it was not resolved.
    pub next: Option<Nanos>,
    /// What the machine had left.
    pub headroom: Headroom,
}

impl Outcome {
    /// Whether all holds that has to.
    pub fn is_survived(&self) -> bool {
        self.whole_after.is_some()
            && self.next.is_some()
            && [&self.broken, &self.astray, &self.unreachable].into_iter().all(Vec::is_empty)
    }

    /// What it comes to.
    pub fn row(&self) -> Row<'_> {
        Row {
            fault: self.fault.name(),
            survived: self.is_survived(),
            whole_after_ns: self.whole_after.map(|time| time.0),
            next_collision_ns: self.next.map(|time| time.0),
            astray: &self.astray,
            unreachable: &self.unreachable,
            broken: &self.broken,
            story: &self.story,
            idle: self.headroom.idle,
            conclusive: self.headroom.verdict() == Verdict::Conclusive,
        }
    }
}

/// A row of the results.
#[derive(Clone, Debug, Serialize)]
pub struct Row<'a> {
    /// The fault.
    pub fault: &'static str,
    /// Whether all holds that has to.
    pub survived: bool,
    /// From the fault's end until forwarding was whole.
    pub whole_after_ns: Option<u64>,
    /// From the next collision to the first packet on another path.
    pub next_collision_ns: Option<u64>,
    /// Pairs and addresses that do not lead there in the end.
    pub astray: &'a [String],
    /// Pairs that do not reach each other in the end.
    pub unreachable: &'a [String],
    /// What else does not hold.
    pub broken: &'a [String],
    /// What befell, and what was made of it.
    pub story: &'a [String],
    /// Part of the processors' time that was idle.
    pub idle: f64,
    /// Whether that was enough for times to mean something.
    pub conclusive: bool,
}

/// What all faults came to.
#[derive(Clone, Debug)]
pub struct Results {
    /// Of the links.
    pub rate: BitRate,
    /// What was left to chance.
    pub seed: u64,
    /// In the order asked for.
    pub outcomes: Vec<Outcome>,
}

/// Tries some faults, one after the other.
///
/// # Errors
/// If a lab cannot be had, or iperf3 fails.
pub fn run(faults: &[Fault], seed: u64, setting: &mut Setting<'_>) -> Result<Results, ScenarioError> {
    traffic::check()?;
    let mut outcomes = Vec::new();
    for &fault in faults {
        let outcome = one(fault, seed, setting)?;
        let verdict = if outcome.is_survived() { "survived" } else { "not survived" };
        (setting.hear)(&format!("{}: {verdict}", fault.name()));
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
        Fault::DeafHost => cases::deaf_host(&mut testbed)?,
        Fault::LinkFailure => cases::link_failure(&mut testbed)?,
        Fault::WrongTopology => cases::wrong_topology(&mut testbed)?,
    }
    testbed.end(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_they_are_written() {
        for fault in Fault::ALL {
            assert_eq!(fault.name().parse(), Ok(fault));
        }
        assert!("fire".parse::<Fault>().unwrap_err().to_string().contains("deaf-host, link-failure"));
    }

    #[test]
    fn a_fault_is_survived_if_all_holds_and_not_otherwise() {
        let headroom = Headroom { idle: 0.0, least_idle: 0.0, stolen: 0.0, backlog_drops: 1 };
        let whole = Outcome {
            fault: Fault::DeafHost,
            story: vec!["it was deaf".to_owned()],
            broken: Vec::new(),
            whole_after: Some(Nanos(0)),
            astray: Vec::new(),
            unreachable: Vec::new(),
            next: Some(Nanos(1)),
            headroom,
        };
        assert!(whole.is_survived(), "whatever times are worth");
        let words = || vec!["h0 > h1".to_owned()];
        for broken in [
            Outcome { broken: words(), ..whole.clone() },
            Outcome { astray: words(), ..whole.clone() },
            Outcome { unreachable: words(), ..whole.clone() },
            Outcome { whole_after: None, ..whole.clone() },
            Outcome { next: None, ..whole.clone() },
        ] {
            assert!(!broken.is_survived() && !broken.row().survived, "{broken:?}");
        }
    }
}
