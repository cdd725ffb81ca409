//! A lab for the time of a scenario: made with the tables that it needs, and removed when it is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_lab::headroom::Begun;
use thalweg_lab::{Headroom, Lab, Plan, Plane};
use thalweg_network::routing::{ForwardingTable, TreeOptions, spanning_trees};
use thalweg_network::{Forwarding, LinkState, NetworkState, Topology};
use thalweg_wire::BitRate;

use super::error::ScenarioError;
use super::openflow;

/// A lab that goes when this does.
pub(super) struct Session {
    pub(super) lab: Lab,
    /// What its switches have installed.
    pub(super) state: Arc<NetworkState>,
    /// Of its links.
    pub(super) rate: BitRate,
    stop: Arc<AtomicBool>,
}

impl Session {
    /// Makes a lab whose switches have these tables.
    ///
    /// # Errors
    /// If there is one of this prefix already, or it cannot be made.
    pub(super) fn up(
        plan: Plan,
        tables: Vec<ForwardingTable>,
        rate: BitRate,
        stop: &Arc<AtomicBool>,
    ) -> Result<Session, ScenarioError> {
        let topology = Arc::clone(&plan.topology);
        Session::up_believing(topology, plan, tables, rate, stop)
    }

    /// As [`up`](Self::up), with another topology than that of the plan for whoever steers, which has the same switches and
    /// hosts, and as many ports.
    ///
    /// # Errors
    /// As of [`up`](Self::up).
    pub(super) fn up_believing(
        topology: Arc<Topology>,
        plan: Plan,
        tables: Vec<ForwardingTable>,
        rate: BitRate,
        stop: &Arc<AtomicBool>,
    ) -> Result<Session, ScenarioError> {
        if Lab::find(&plan.prefix).is_ok() {
            return Err(ScenarioError::Taken { prefix: plan.prefix.to_string() });
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

    /// Whether somebody wants it to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits.
    ///
    /// # Errors
    /// If somebody wants it to end.
    pub(super) fn wait(&self, time: Duration) -> Result<(), ScenarioError> {
        let until = Instant::now() + time;
        while !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        Err(ScenarioError::Interrupted)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What stays behind goes with the next one of the same prefix, or with `thalweg lab down`.
        let _ = Lab::down(&self.lab.plan().prefix);
    }
}

/// Trees to so many addresses of every host.
pub(super) fn trees(topology: &Topology, addresses: u8, seed: u64) -> Vec<ForwardingTable> {
    spanning_trees(topology, &LinkState::new(topology), TreeOptions { addresses, seed })
}

/// What the machine had left over several measurements.
#[derive(Clone, Debug, Default)]
pub(super) struct Spare {
    parts: Vec<Headroom>,
}

impl Spare {
    /// A measurement is over.
    ///
    /// # Errors
    /// If the kernel's statistics cannot be read.
    pub(super) fn add(&mut self, begun: &Begun) -> Result<Headroom, ScenarioError> {
        let part = begun.end()?;
        self.parts.push(part);
        Ok(part)
    }

    /// All of them as one: the mean of what was idle and of what was stolen, the least of what was least, the sum of what
    /// was lost.
    pub(super) fn all(&self) -> Headroom {
        let count = self.parts.len().max(1) as f64;
        let mean = |share: fn(&Headroom) -> f64| self.parts.iter().map(share).sum::<f64>() / count;
        Headroom {
            idle: mean(|part| part.idle),
            stolen: mean(|part| part.stolen),
            least_idle: self.parts.iter().map(|part| part.least_idle).fold(1.0, f64::min),
            backlog_drops: self.parts.iter().map(|part| part.backlog_drops).sum(),
        }
    }
}
