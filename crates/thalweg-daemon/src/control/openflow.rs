//! The OpenFlow actuator.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use thalweg_actuators::openflow::{
    Config, Fabric, FabricEvent, MastershipChange, OpenFlowError, SwitchesReport, Tls, TlsError,
};
use thalweg_actuators::{Action, Actuator, ActuatorError};
use thalweg_control::Pair;
use thalweg_control::control_loop::Input;
use thalweg_linux::Namespace;
use thalweg_network::{NetworkState, Topology};
use thalweg_wire::Timestamp;

use crate::config::{OpenFlowConfig, TlsFiles};
use thalweg_linux::clock::realtime;

/// All switches of the network.
pub(super) struct Switches {
    fabric: Fabric,
    config: OpenFlowConfig,
    /// Network namespace of the switches, if it is not that of the daemon.
    namespace: Option<Namespace>,
    tls: Option<Tls>,
    topology: Arc<Topology>,
    /// Not yet passed to the control loop.
    inputs: Vec<Input>,
}

impl Switches {
    /// Creates the actuator and reads certificates. Does not connect yet.
    ///
    /// # Errors
    /// If certificates cannot be read.
    pub(super) fn new(
        config: &OpenFlowConfig,
        namespace: Option<Namespace>,
        topology: &Arc<Topology>,
    ) -> Result<Switches, TlsError> {
        let tls = config.tls.as_ref().map(TlsFiles::read).transpose()?;
        let fabric = Fabric::new(
            Arc::clone(topology),
            &config.members,
            Config {
                audit_interval: config.audit_interval,
                priority: config.priority,
                instance: instance(),
                master_timeout: config.master_timeout,
                ..Config::default()
            },
        );
        let (config, topology, inputs) = (config.clone(), Arc::clone(topology), Vec::new());
        Ok(Switches { fabric, config, namespace, tls, topology, inputs })
    }

    fn connect(&self) -> Result<(), OpenFlowError> {
        let fabric = &self.fabric;
        if let Some(address) = self.config.listen {
            fabric.switches().listen(address, self.tls.clone())?;
        }
        for (address, name) in &self.config.connect {
            let tls = self.tls.clone().map(|tls| (tls, name.as_str()));
            fabric.switches().connect(*address, tls)?;
        }
        Ok(())
    }
}

impl Actuator for Switches {
    fn name(&self) -> &'static str {
        "openflow"
    }

    fn reroute(&mut self, action: &Action) -> Result<(), ActuatorError> {
        self.fabric.reroute(action)
    }

    fn hold(&mut self, pair: Pair, address: u8, now: Timestamp) {
        self.fabric.hold(pair, address, now);
    }

    fn abandon(&mut self, action: &Action, from: u8) {
        self.fabric.abandon(action, from);
    }

    fn start(&mut self) -> Result<(), String> {
        // Threads stay in the namespace that they are started in, and reconnect there.
        let connected = match &self.namespace {
            None => self.connect(),
            Some(namespace) => namespace.within(|| self.connect()).map_err(|error| error.to_string())?,
        };
        connected.map_err(|error| error.to_string())
    }

    fn install(&mut self, state: &NetworkState) -> Result<(), String> {
        self.fabric.install(state);
        Ok(())
    }

    fn maintain(&mut self, _now: Timestamp) -> Result<(), String> {
        // Timeouts of switches need the clock of this machine, not packet time.
        self.fabric.maintain(realtime());
        for event in self.fabric.take_events() {
            let text = event.describe(&self.topology).to_string();
            match &event {
                FabricEvent::Up { .. } | FabricEvent::Mastership(MastershipChange::Claimed) => {
                    tracing::info!("{text}")
                }
                FabricEvent::Rerouted { .. } => tracing::debug!("{text}"),
                _ => tracing::warn!("{text}"),
            }
            self.inputs.extend(input(event));
        }
        Ok(())
    }

    fn take_inputs(&mut self) -> Vec<Input> {
        std::mem::take(&mut self.inputs)
    }

    fn switches_report(&self) -> Option<SwitchesReport> {
        self.fabric.switches_report()
    }
}

/// Returns a number that differs between daemons with high probability: the standard library seeds its hashes from the
/// operating system.
pub(crate) fn instance() -> u16 {
    RandomState::new().hash_one(std::process::id()) as u16
}

/// Returns the input of the control loop for an event, if it has one.
fn input(event: FabricEvent) -> Option<Input> {
    match event {
        FabricEvent::Repaired { router, faults } => Some(Input::RuleFaults { router, faults }),
        FabricEvent::Mastership(change) => Some(Input::Mastership { is_master: change.is_master() }),
        FabricEvent::LinkChanged { link, is_up } => Some(Input::LinkChanged { link, is_up }),
        _ => None,
    }
}
