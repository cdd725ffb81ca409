//! Creates, finds, queries and removes labs.

mod faults;
mod make;
mod parts;

use std::collections::BTreeMap;
use std::process::{Child, Command};

use nix::unistd::geteuid;
use thalweg_linux::namespace::{self, Namespace};
use thalweg_linux::netlink::{Netlink, Traffic};
use thalweg_linux::tc::QueueCounters;
use thalweg_network::topology::Node;
use thalweg_network::{EndpointId, PortIndex, RouterId, Topology};

use crate::ebpf::{self, Maps, SwitchCounters, Tables};
use crate::emulation::{self, EndedProcesses};
use crate::error::LabError;
use crate::layout::{self, Layout};
use crate::ovs::{OpenFlowSwitch, Ovs};
use crate::plan::{Plan, PlanError, Plane, Prefix};
use crate::record::{self, Record};
use crate::status::{HostStatus, PortStatus, Status, SwitchStatus, link_name};
use crate::sysctl::{self, SysctlChange};
use parts::{Parts, Switching, fabric, host, namespaces};

/// A lab that is up. It belongs to no process: dropping this value leaves it up.
///
/// Its methods block on the kernel: call them from a blocking thread in asynchronous code.
pub struct Lab {
    plan: Plan,
    parts: Parts,
}

/// Counts of what [`Lab::down`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Network namespaces removed.
    pub namespaces: usize,
    /// Processes killed in them, and arbiters and endpoints that were ended.
    pub processes: usize,
}

impl Lab {
    /// Creates a lab, after removing any lab or remains with the same prefix. If creation fails, everything is removed
    /// again.
    ///
    /// # Errors
    /// If the plan is not valid, the process is not root, or the kernel refuses an operation.
    pub fn up(plan: Plan) -> Result<Lab, LabError> {
        plan.check()?;
        check_prerequisites(&plan)?;
        let _lock = record::lock()?;
        remove(&plan.prefix)?;
        let parts = make::make(&plan).inspect_err(|_| {
            // Report the first error; the next attempt removes what is left.
            let _ = remove(&plan.prefix);
        })?;
        Ok(Lab { plan, parts })
    }

    /// Checks that this machine has what labs with these switches need. [`up`](Self::up) does so too.
    ///
    /// # Errors
    /// If the process is not root, or a program is missing.
    pub fn check_machine(plane: Plane) -> Result<(), LabError> {
        match plane {
            _ if !geteuid().is_root() => Err(LabError::NotRoot),
            Plane::Ebpf if !ebpf::is_built() => Err(LabError::NoSwitchProgram),
            Plane::Ebpf => Ok(()),
            Plane::Ovs => Ovs::check(),
        }
    }

    /// Whether a lab with this prefix is up, with switches or over an emulated network.
    pub fn is_up(prefix: &Prefix) -> bool {
        matches!(Lab::find(prefix), Ok(_) | Err(LabError::Emulated { .. }))
    }

    /// Finds a lab with switches that is up.
    ///
    /// # Errors
    /// If no lab with this prefix is up, it is incomplete, or its network is emulated ([`EmulatedLab`](crate::EmulatedLab)).
    pub fn find(prefix: &Prefix) -> Result<Lab, LabError> {
        let not_up = |reason: String| LabError::NotUp { prefix: prefix.to_string(), reason };
        if emulation::has_record(prefix) {
            return Err(LabError::Emulated { prefix: prefix.to_string() });
        }
        let record =
            Record::read(prefix)?.ok_or_else(|| not_up("create it with `thalweg lab up`".to_owned()))?;
        let plan = record.plan()?;
        let missing = namespaces(&plan).find(|namespace| !namespace.exists());
        if let Some(namespace) = missing {
            return Err(not_up(format!("the namespace {} is missing", namespace.name())));
        }
        if !geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        let (layout, fabric) = (Layout::new(&plan), fabric(&plan.prefix));
        let netlink = Netlink::open_within(&fabric)?;
        let switching = match plan.plane {
            Plane::Ebpf => Maps::find(&netlink, &layout)?
                .map(Switching::Ebpf)
                .ok_or_else(|| not_up("the switch program is missing at its ports".to_owned()))?,
            Plane::Ovs => Ovs::find(prefix, &fabric)
                .map(Switching::Ovs)
                .ok_or_else(|| not_up("Open vSwitch is not running".to_owned()))?,
        };
        Ok(Lab { plan, parts: Parts { layout, fabric, netlink, switching } })
    }

    /// Removes the lab with this prefix, or its remains: ends the arbiter and the endpoints of an emulated network, kills the
    /// processes in its namespaces, removes the namespaces, and restores machine parameters. Removing a lab that does not exist is not an error.
    ///
    /// # Errors
    /// If something cannot be removed; the call can be repeated.
    pub fn down(prefix: &Prefix) -> Result<Removed, LabError> {
        if !geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        let _lock = record::lock()?;
        remove(prefix)
    }

    /// Returns the plan. If the lab was found, it lacks the initial tables: they may have changed since.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the topology.
    pub fn topology(&self) -> &Topology {
        &self.plan.topology
    }

    /// Returns the namespace of the switches and the monitor ports.
    pub fn fabric(&self) -> &Namespace {
        &self.parts.fabric
    }

    /// Returns the namespace of a host.
    ///
    /// # Panics
    /// If the topology has no such endpoint.
    pub fn host(&self, endpoint: EndpointId) -> Namespace {
        host(&self.plan, endpoint)
    }

    /// Returns the interface of a port, in the namespace of the switches; `None` if there is no such port. Frames sent
    /// on it arrive at the other end of the link.
    pub fn port_interface(&self, router: RouterId, port: PortIndex) -> Option<String> {
        self.parts.layout.interface(router, port).map(|_| layout::port_name(router, port))
    }

    /// Returns the interface at which a switch's mirrored frames arrive, in the namespace of the switches; `None` if
    /// there is no such switch.
    pub fn monitor_interface(&self, router: RouterId) -> Option<String> {
        self.parts.layout.monitors.get(router.index()).map(|_| layout::monitor_name(router))
    }

    /// Starts a command on the host with this name.
    ///
    /// # Errors
    /// If no host has this name, or the command cannot be started.
    pub fn exec(&self, host: &str, command: &mut Command) -> Result<Child, LabError> {
        match self.topology().node_named(host) {
            Some(Node::Endpoint(endpoint)) => Ok(self.host(endpoint).spawn(command)?),
            _ => Err(LabError::UnknownHost { name: host.to_owned() }),
        }
    }

    /// Opens the switches' tables.
    ///
    /// # Errors
    /// If the lab no longer exists, or its switches are Open vSwitch.
    pub fn tables(&self) -> Result<Tables, LabError> {
        self.maps()?.tables(&self.parts.layout, &self.plan.topology)
    }

    /// Returns the OpenFlow addresses of the switches, by router; empty with eBPF switches.
    pub fn openflow(&self) -> Vec<OpenFlowSwitch> {
        self.plan.openflow()
    }

    fn maps(&self) -> Result<&Maps, LabError> {
        match &self.parts.switching {
            Switching::Ebpf(maps) => Ok(maps),
            Switching::Ovs(_) => Err(LabError::NotEbpf),
        }
    }

    /// Turns mirroring at a switch on or off. All switches mirror when a lab comes up. Does nothing if there is no such
    /// switch.
    ///
    /// # Errors
    /// If the lab no longer exists, or its switches are Open vSwitch.
    pub fn set_mirror(&self, router: RouterId, is_on: bool) -> Result<(), LabError> {
        self.maps()?.set_mirror(&self.parts.layout, router, is_on)
    }

    /// Returns the state and the counters of the lab.
    ///
    /// # Errors
    /// If the lab no longer exists.
    pub fn status(&self) -> Result<Status, LabError> {
        let queues = self.parts.netlink.queue_counters()?;
        let queue = |interface: u32| queues.get(&interface).copied().unwrap_or_default();
        let (entries, counters) = self.switched(&queues)?;
        let mut ports = self.parts.layout.ports.iter().zip(counters).peekable();
        let mut switches = Vec::with_capacity(self.parts.layout.monitors.len());
        for monitor in &self.parts.layout.monitors {
            let mut of_switch = Vec::new();
            while let Some((port, switch)) = ports.next_if(|(port, _)| port.router == monitor.router) {
                of_switch.push(PortStatus {
                    port: port.port,
                    interface: layout::port_name(port.router, port.port),
                    rate: port.rate,
                    switch,
                    queue: queue(port.interface),
                });
            }
            switches.push(SwitchStatus {
                router: monitor.router,
                name: self.topology().name(Node::Router(monitor.router)).to_owned(),
                entries: entries[monitor.router.index()],
                is_mirrored: self.is_mirrored(monitor.router)?,
                monitor: layout::monitor_name(monitor.router),
                monitor_rate: monitor.rate,
                monitor_queue: queue(monitor.mirror),
                ports: of_switch,
            });
        }
        let hosts = self.topology().endpoint_ids().map(|endpoint| self.host_status(endpoint));
        let links_down = self.links()?.failed().map(|link| link_name(self.topology(), link)).collect();
        Ok(Status {
            prefix: self.plan.prefix.clone(),
            plane: self.plan.plane,
            fabric: self.parts.fabric.name().to_owned(),
            hosts: hosts.collect::<Result<_, _>>()?,
            switches,
            links_down,
        })
    }

    /// Returns the number of table entries by switch, and the counters by port.
    fn switched(
        &self,
        queues: &BTreeMap<u32, QueueCounters>,
    ) -> Result<(Vec<usize>, Vec<SwitchCounters>), LabError> {
        match &self.parts.switching {
            Switching::Ebpf(maps) => {
                let mut entries = vec![0; self.parts.layout.monitors.len()];
                let all = self.tables()?.entries();
                for entry in all.map_err(|error| LabError::ebpf("read the tables", error))? {
                    entries[entry.router.index()] += 1;
                }
                Ok((entries, maps.counters(&self.parts.layout)?))
            }
            Switching::Ovs(ovs) => {
                let interfaces = self.parts.netlink.interfaces()?.into_iter();
                let traffic: BTreeMap<u32, Traffic> =
                    interfaces.map(|interface| (interface.index, interface.traffic)).collect();
                let counters = |port: &layout::Port| {
                    let passed = traffic.get(&port.interface).copied().unwrap_or_default();
                    let dropped = queues.get(&port.interface).map_or(0, |queue| queue.dropped_packets);
                    SwitchCounters {
                        received_packets: passed.received_packets,
                        received_bytes: passed.received_bytes,
                        sent_packets: passed.sent_packets + dropped,
                        sent_bytes: passed.sent_bytes,
                        ..SwitchCounters::default()
                    }
                };
                let topology = self.topology();
                let entries = topology.router_ids().map(|router| ovs.entries(router, topology));
                let counters = self.parts.layout.ports.iter().map(counters).collect();
                Ok((entries.collect::<Result<_, _>>()?, counters))
            }
        }
    }

    /// Whether a switch mirrors. With Open vSwitch the installed routes decide; this returns true.
    fn is_mirrored(&self, router: RouterId) -> Result<bool, LabError> {
        match &self.parts.switching {
            Switching::Ebpf(maps) => maps.is_mirrored(&self.parts.layout, router),
            Switching::Ovs(_) => Ok(true),
        }
    }

    fn host_status(&self, endpoint: EndpointId) -> Result<HostStatus, LabError> {
        let (host, namespace) = (&self.topology().endpoints()[endpoint.index()], self.host(endpoint));
        Ok(HostStatus {
            endpoint,
            name: host.name.clone(),
            processes: namespace.processes()?,
            namespace: namespace.name().to_owned(),
            mac: host.mac,
            ip: host.ip,
            rate: self.parts.layout.host_rates[endpoint.index()],
        })
    }
}

/// Checks that this machine has what the lab needs.
fn check_prerequisites(plan: &Plan) -> Result<(), LabError> {
    Lab::check_machine(plan.plane)?;
    match &plan.congestion_control {
        Some(name) if !sysctl::congestion_controls()?.contains(name) => {
            Err(PlanError::CongestionControl { name: name.clone() }.into())
        }
        _ => Ok(()),
    }
}

/// Removes a lab or its remains. The record goes last, because it lists what to restore.
fn remove(prefix: &Prefix) -> Result<Removed, LabError> {
    let EndedProcesses { ended, killed } = emulation::stop_processes(prefix)?;
    let mut removed = Removed { processes: ended + killed, ..Removed::default() };
    for namespace in namespace::with_prefix(prefix.as_str())? {
        // A stale name has no processes.
        removed.processes += namespace.kill_processes()?;
        namespace.delete()?;
        removed.namespaces += 1;
    }
    if let Some(record) = Record::read(prefix)? {
        record.changed.iter().try_for_each(SysctlChange::restore)?;
    }
    emulation::restore_parameters(prefix)?;
    Ovs::remove(prefix)?;
    emulation::remove_files(prefix)?;
    Record::remove(prefix)?;
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lab_and_tables_are_send() {
        fn is_send<T: Send>() {}
        fn is_sync<T: Sync>() {}
        is_send::<Lab>();
        is_sync::<Lab>();
        is_send::<Tables>();
    }
}
