//! The lab of one scenario: created with the scenario's tables, removed at its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_lab::headroom::HeadroomProbe;
use thalweg_lab::{Headroom, Lab, Plan, Plane};
use thalweg_network::routing::{ForwardingTable, TreeOptions, spanning_trees};
use thalweg_network::{Forwarding, LinkState, NetworkState, Topology};
use thalweg_wire::BitRate;

use super::error::ScenarioError;
use super::openflow;

/// A lab that is removed on drop.
pub(super) struct Session {
    pub(super) lab: Lab,
    /// The topology and the rules that the controller assumes.
    pub(super) state: Arc<NetworkState>,
    /// Rate of its links.
    pub(super) rate: BitRate,
    stop: Arc<AtomicBool>,
}

impl Session {
    /// Creates a lab whose switches have these tables.
    ///
    /// # Errors
    /// If a lab with this prefix exists, or the lab cannot be created.
    pub(super) fn up(
        plan: Plan,
        tables: Vec<ForwardingTable>,
        rate: BitRate,
        stop: &Arc<AtomicBool>,
    ) -> Result<Session, ScenarioError> {
        let topology = Arc::clone(&plan.topology);
        Session::up_assuming(topology, plan, tables, rate, stop)
    }

    /// Like [`up`](Self::up), but the controller assumes `topology` instead of the plan's. Both have the same switches,
    /// hosts and numbers of ports.
    ///
    /// # Errors
    /// See [`up`](Self::up).
    pub(super) fn up_assuming(
        topology: Arc<Topology>,
        plan: Plan,
        tables: Vec<ForwardingTable>,
        rate: BitRate,
        stop: &Arc<AtomicBool>,
    ) -> Result<Session, ScenarioError> {
        if Lab::is_up(&plan.prefix) {
            return Err(ScenarioError::PrefixInUse { prefix: plan.prefix.to_string() });
        }
        let links = LinkState::new(&topology);
        let forwarding = Forwarding::tables(tables);
        let state = Arc::new(NetworkState::new(topology, links, forwarding.clone())?);
        let lab = Lab::up(plan)?;
        let session = Session { lab, state, rate, stop: Arc::clone(stop) };
        match session.lab.plan().plane {
            Plane::Ovs => openflow::forward(&session.lab, &session.state)?,
            _ => drop(session.lab.tables()?.install(&forwarding)?),
        }
        Ok(session)
    }

    /// Whether the scenario was asked to stop.
    pub(super) fn is_stopped(&self) -> bool {
        is_stopped(&self.stop)
    }

    /// Sleeps for `time`.
    ///
    /// # Errors
    /// If the scenario is asked to stop.
    pub(super) fn wait(&self, time: Duration) -> Result<(), ScenarioError> {
        wait(&self.stop, time)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The next lab of the same prefix, or `thalweg lab down`, removes what this leaves.
        let _ = Lab::down(&self.lab.plan().prefix);
    }
}

/// Whether a scenario was asked to stop.
pub(super) fn is_stopped(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}

/// Sleeps for `time`.
///
/// # Errors
/// If the scenario is asked to stop.
pub(super) fn wait(stop: &AtomicBool, time: Duration) -> Result<(), ScenarioError> {
    let until = Instant::now() + time;
    while !is_stopped(stop) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
    Err(ScenarioError::Interrupted)
}

/// Returns spanning trees to `addresses` addresses of every host.
pub(super) fn trees(topology: &Topology, addresses: u8, seed: u64) -> Vec<ForwardingTable> {
    spanning_trees(topology, &LinkState::new(topology), TreeOptions { addresses, seed })
}

/// The headroom of several measurements.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadroomSum {
    parts: Vec<Headroom>,
}

impl HeadroomSum {
    /// Ends a measurement, adds its headroom and returns it.
    ///
    /// # Errors
    /// If the kernel's statistics cannot be read.
    pub(super) fn add(&mut self, probe: &HeadroomProbe) -> Result<Headroom, ScenarioError> {
        let part = probe.finish()?;
        self.parts.push(part);
        Ok(part)
    }

    /// Returns the mean idle and stolen shares, the smallest minimum and the sum of dropped frames.
    pub(super) fn total(&self) -> Headroom {
        let count = self.parts.len().max(1) as f64;
        let mean = |share: fn(&Headroom) -> f64| self.parts.iter().map(share).sum::<f64>() / count;
        Headroom {
            idle: mean(|part| part.idle),
            stolen: mean(|part| part.stolen),
            min_idle: self.parts.iter().map(|part| part.min_idle).fold(1.0, f64::min),
            backlog_drops: self.parts.iter().map(|part| part.backlog_drops).sum(),
        }
    }
}
