//! `reroute-latency`: the latency of a reroute by ARP and by OpenFlow (Planck, figure 16).
//!
//! Two flows collide and are rerouted as in [`collide`], in three labs: eBPF switches with ARP, which costs the least
//! CPU time, and Open vSwitch with OpenFlow and with ARP. The last two differ only in the actuator, the first and the
//! last only in the switches.
//! As in the paper, latency runs from the congestion event to the first packet with the new address at a collector. The
//! time before the decision does not depend on the actuator and is listed separately. With ARP the first such packet
//! leaves the host behind its queue; with OpenFlow it is the next packet that the first switch forwards. Both include
//! the monitor port's queue.

use thalweg_lab::{Lab, Plane};
use thalweg_wire::BitRate;

use super::{Setting, collide};
use crate::configuration::ActuatorKind;
use crate::error::ScenarioError;

/// Switches and actuators, in the order of the runs.
const CASES: [(Plane, ActuatorKind); 3] =
    [(Plane::Ebpf, ActuatorKind::Arp), (Plane::Ovs, ActuatorKind::OpenFlow), (Plane::Ovs, ActuatorKind::Arp)];

/// The results of one type of switch and one actuator.
#[derive(Clone, Debug)]
pub struct TestCase {
    /// Type of the switches.
    pub plane: Plane,
    /// How flows are rerouted.
    pub actuator: ActuatorKind,
    /// All trials.
    pub collisions: collide::Results,
}

/// The results of all cases.
#[derive(Clone, Debug)]
pub struct Results {
    /// Rate of the links.
    pub rate: BitRate,
    /// The cases, in the order of the runs.
    pub cases: Vec<TestCase>,
}

/// Runs all cases with `trials` trials each.
///
/// # Errors
/// If a lab cannot be created, or iperf3 fails.
pub fn run(trials: u32, setting: &mut Setting<'_>) -> Result<Results, ScenarioError> {
    for (plane, _) in CASES {
        Lab::check_machine(plane)?;
    }
    let mut cases = Vec::with_capacity(CASES.len());
    for (plane, actuator) in CASES {
        (setting.on_progress)(&TestCase::name_of(plane, actuator));
        let collisions = collide::run_on(plane, actuator, trials, setting)?;
        cases.push(TestCase { plane, actuator, collisions });
    }
    Ok(Results { rate: setting.rate, cases })
}

impl TestCase {
    /// Returns the name for people: `OpenFlow, Open vSwitch`.
    pub fn name(&self) -> String {
        TestCase::name_of(self.plane, self.actuator)
    }

    fn name_of(plane: Plane, actuator: ActuatorKind) -> String {
        let switches = if plane == Plane::Ovs { "Open vSwitch" } else { "eBPF" };
        format!("{}, {switches}", actuator.name())
    }
}
