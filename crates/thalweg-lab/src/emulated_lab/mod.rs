//! A lab whose hosts are connected by an emulated network.
//!
//! ```text
//!    tw-h0                tw-fabric                            tw-h1
//!  ┌─────────────┐      ┌────────────────────────────────┐   ┌─────────────┐
//!  │ iperf3      │      │            bridge              │   │      iperf3 │
//!  │ eth0 ───────┼──────┤ p0 ─────────┴────────────── p1 ├───┼─────── eth0 │
//!  │  │ thalweg0 │      │                                │   │ thalweg0  │ │
//!  └──┼──────┼───┘      │                                │   └────┼──────┼─┘
//!     └──► endpoint 0 ──┼──────────► arbiter ◄───────────┼── endpoint 1 ◄┘
//!                       └────────────────────────────────┘
//! ```
//!
//! - A **host** is a network namespace with one interface, `eth0`, and with IPv4 and IPv6 addresses. All hosts are at one bridge, so every
//!   host is a neighbour of every other. Links have no rate and no delay.
//! - An **endpoint** (`thalweg endpoint`) holds each packet that a host sends until the **arbiter** (`thalweg emulate --real-time`) has decided
//!   on it. So the hosts see rates, delays, losses and marks of the emulated network, and real packets take none of its paths.
//! - The arbiter may have a processor of its own ([`EmulatedPlan::processor`]), which endpoints and what runs on hosts leave to it.
//! - Endpoints and arbiter run in the **fabric**, the namespace of the bridge, and use its loopback interface. Labs do not disturb
//!   each other, and nothing outside can reach an arbiter.
//!
//! The processes are those of a program that the caller names ([`EmulatedPlan::program`]): this crate knows how to start it, and does not emulate
//! itself.
//!
//! # Cleanup
//! [`Lab::down`](crate::Lab::down) ends endpoints and arbiter, and removes everything, also after a crash: `emulation` says how they are found.

mod make;
mod plan;
mod status;

use std::process::{Child, Command};

use nix::unistd::geteuid;
use thalweg_linux::Namespace;
use thalweg_linux::process::{ProcessIdentity, boot_id};
use thalweg_network::topology::Node;
use thalweg_network::{EndpointId, Topology};

use crate::emulation::record::EmulationRecord;
use crate::emulation::{self, EndedProcesses};
use crate::error::LabError;
use crate::lab::Lab;
use crate::plan::{FABRIC, Prefix};
use crate::record;

pub use plan::{EmulatedPlan, HostAddresses};
pub use status::{ArbiterStatus, EmulatedHost, EmulatedStatus, ProcessStatus};

/// An emulated lab that is up. It belongs to no process: dropping this value leaves it up.
#[derive(Clone, Debug)]
pub struct EmulatedLab {
    record: EmulationRecord,
    topology: Topology,
}

impl EmulatedLab {
    /// Creates a lab, after removing any lab or remains with the same prefix. Returns once the arbiter answers all endpoints. If creation
    /// fails, everything is removed again.
    ///
    /// # Errors
    /// If the plan is not valid, this machine cannot run it, the kernel refuses an operation, or the arbiter or an endpoint ends.
    pub fn up(plan: &EmulatedPlan) -> Result<EmulatedLab, LabError> {
        plan.check()?;
        EmulatedLab::check_machine()?;
        Lab::down(&plan.prefix)?;
        let made = {
            let _lock = record::lock()?;
            make::make(plan)
        };
        let record = made.inspect_err(|_| {
            // Report the first error; the next attempt removes what is left.
            let _ = Lab::down(&plan.prefix);
        })?;
        Ok(EmulatedLab { topology: (*plan.topology).clone(), record })
    }

    /// Checks that this machine can run emulated labs. [`up`](Self::up) does so too.
    ///
    /// # Errors
    /// If the process is not root, the kernel is too old, or has no TAP interfaces.
    pub fn check_machine() -> Result<(), LabError> {
        match geteuid().is_root() {
            true => make::check_kernel(),
            false => Err(LabError::NotRoot),
        }
    }

    /// Finds an emulated lab that is up, even if its arbiter or an endpoint has ended; `None` if there is none with this prefix.
    ///
    /// # Errors
    /// If the process is not root, or only remains of the lab exist.
    pub fn find(prefix: &Prefix) -> Result<Option<EmulatedLab>, LabError> {
        let Some(record) = EmulationRecord::read(prefix)? else { return Ok(None) };
        let not_up = |reason: String| LabError::NotUp {
            prefix: prefix.to_string(),
            reason: format!("{reason}; remove what is left with `thalweg lab down`"),
        };
        if boot_id().is_ok_and(|now| now != record.boot_id) {
            return Err(not_up("it was created before the machine restarted".to_owned()));
        }
        let fabric = record.prefix.name(FABRIC);
        let mut names = record.host_namespaces().into_iter().chain([fabric]);
        if let Some(name) = names.find(|name| !Namespace::named(name).exists()) {
            return Err(not_up(format!("the namespace {name} is missing")));
        }
        let topology = record.topology()?;
        if !record.has_endpoints_of(&topology) {
            return Err(not_up("its creation was interrupted".to_owned()));
        }
        if !geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        Ok(Some(EmulatedLab { topology, record }))
    }

    /// Starts the arbiter and the endpoints again that have ended, and returns their names. Endpoints that hold packets request them again.
    ///
    /// # Errors
    /// If a process cannot be started, ends again, or an endpoint does not hear from an arbiter.
    pub fn restart(&mut self) -> Result<Vec<String>, LabError> {
        let _lock = record::lock()?;
        make::restart(&mut self.record, &self.topology)
    }

    /// Returns the processors that the arbiters of labs with other prefixes have for themselves.
    pub fn processors_in_use(prefix: &Prefix) -> Vec<(Prefix, usize)> {
        // Without a folder of records there are no labs.
        let others = boot_id().ok().and_then(|boot| EmulationRecord::others(prefix, &boot).ok());
        let is_up =
            |it: &EmulationRecord| it.identities(|_| true).into_iter().any(ProcessIdentity::is_running);
        let in_use = |it: EmulationRecord| it.processor.map(|processor| (it.prefix, processor));
        others.unwrap_or_default().into_iter().filter(is_up).filter_map(in_use).collect()
    }

    /// Ends the processes of users on the hosts, the endpoints and the arbiter, which writes its report. Namespaces and logs stay until
    /// [`Lab::down`](crate::Lab::down).
    ///
    /// # Errors
    /// If a process cannot be ended.
    pub fn stop(&self) -> Result<EndedProcesses, LabError> {
        let _lock = record::lock()?;
        emulation::stop_processes(&self.record.prefix)
    }

    /// Returns the prefix of its names.
    pub fn prefix(&self) -> &Prefix {
        &self.record.prefix
    }

    /// Returns the emulated network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the namespace of the bridge, the arbiter and the endpoints.
    pub fn fabric(&self) -> Namespace {
        Namespace::named(self.record.prefix.name(FABRIC))
    }

    /// Returns the namespace of a host. What runs there leaves the arbiter's processor to it.
    ///
    /// # Panics
    /// If the topology has no such endpoint.
    pub fn host(&self, endpoint: EndpointId) -> Namespace {
        let name = self.record.prefix.name(&self.topology.endpoints()[endpoint.index()].name);
        Namespace::named(name).avoiding(self.record.processor)
    }

    /// Starts a command on the host with this name.
    ///
    /// # Errors
    /// If no host has this name, or the command cannot be started.
    pub fn exec(&self, host: &str, command: &mut Command) -> Result<Child, LabError> {
        match self.topology.node_named(host) {
            Some(Node::Endpoint(endpoint)) => Ok(self.host(endpoint).spawn(command)?),
            _ => Err(LabError::UnknownHost { name: host.to_owned() }),
        }
    }
}
