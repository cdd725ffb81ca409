//! `reroute-latency`: how soon packets take another path, by ARP and by OpenFlow (Planck, figure 16).
//!
//! Two flows collide and are taken apart as in [`collide`], once in each of three labs: with eBPF switches and ARP, which is
//! what costs least, and with switches of Open vSwitch by OpenFlow and by ARP. The last two differ in the means alone; the
//! first and the last in the switches alone.
//!
//! The paper counts from the notice of congestion to the first packet with the new address at a collector, and so do
//! we; what was before the decision is the same by any means, and is shown apart. By ARP the first such packet comes from
//! the host, behind what its queue holds already; by OpenFlow it is the next one that the first switch forwards. What
//! waits in the monitor port's queue counts in both.

use thalweg_lab::Plane;
use thalweg_wire::BitRate;

use super::{Setting, collide};
use crate::configuration::By;
use crate::error::ScenarioError;

/// Switches and means, in the order in which they are tried.
const COURSES: [(Plane, By); 3] = [(Plane::Ebpf, By::Arp), (Plane::Ovs, By::OpenFlow), (Plane::Ovs, By::Arp)];

/// What came of it with one kind of switch and one means.
#[derive(Clone, Debug)]
pub struct Course {
    /// The switches.
    pub plane: Plane,
    /// The means.
    pub by: By,
    /// All trials.
    pub collisions: collide::Results,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Results {
    /// Of the links.
    pub rate: BitRate,
    /// In the order in which they were tried.
    pub courses: Vec<Course>,
}

/// Runs it, so many trials each.
///
/// # Errors
/// If a lab cannot be had, or iperf3 fails.
pub fn run(trials: u32, setting: &mut Setting<'_>) -> Result<Results, ScenarioError> {
    let mut courses = Vec::with_capacity(COURSES.len());
    for (plane, by) in COURSES {
        (setting.hear)(&Course::name_of(plane, by));
        let collisions = collide::run_on(plane, by, trials, setting)?;
        courses.push(Course { plane, by, collisions });
    }
    Ok(Results { rate: setting.rate, courses })
}

impl Course {
    /// As people read it: `OpenFlow, Open vSwitch`.
    pub fn name(&self) -> String {
        Course::name_of(self.plane, self.by)
    }

    fn name_of(plane: Plane, by: By) -> String {
        let switches = if plane == Plane::Ovs { "Open vSwitch" } else { "eBPF" };
        format!("{}, {switches}", by.name())
    }
}
