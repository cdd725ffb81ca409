//! A lab: made, found again, used, removed.

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
use crate::error::LabError;
use crate::layout::{self, Layout};
use crate::ovs::{OpenFlowSwitch, Ovs};
use crate::plan::{Plan, PlanError, Plane, Prefix};
use crate::record::{self, Record};
use crate::status::{HostStatus, PortStatus, Status, SwitchStatus, link_name};
use crate::sysctl::{self, Changed};
use parts::{Parts, Switching, fabric, host, namespaces};

/// A lab that is up. It belongs to no process: dropping this leaves it as it is.
///
/// Its methods wait for the kernel: asynchronous code is to use it on a thread for work that waits.
pub struct Lab {
    plan: Plan,
    parts: Parts,
}

/// What [`Lab::down`] has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Network namespaces.
    pub namespaces: usize,
    /// Processes that were in them, and were killed.
    pub processes: usize,
}

impl Lab {
    /// Makes a lab. What is left of one with the same prefix, be it whole or what a crash has left of it, is removed
    /// first. If something fails, everything that was made is removed again.
    ///
    /// # Errors
    /// If there can be no such lab, this is not root, or the kernel refuses something.
    pub fn up(plan: Plan) -> Result<Lab, LabError> {
        plan.check()?;
        check_means(&plan)?;
        let _lock = record::lock()?;
        remove(&plan.prefix)?;
        let parts = make::make(&plan).inspect_err(|_| {
            // The first error is the one to report; what stays behind goes with the next attempt.
            let _ = remove(&plan.prefix);
        })?;
        Ok(Lab { plan, parts })
    }

    /// Finds a lab that is up.
    ///
    /// # Errors
    /// If there is none of this prefix, or it is not whole.
    pub fn find(prefix: &Prefix) -> Result<Lab, LabError> {
        let not_up = |reason: String| LabError::NotUp { prefix: prefix.to_string(), reason };
        let record = Record::read(prefix)?.ok_or_else(|| not_up("it was never made".to_owned()))?;
        let plan = record.plan()?;
        let missing = namespaces(&plan).find(|namespace| !namespace.exists());
        if let Some(namespace) = missing {
            return Err(not_up(format!("there is no namespace {}", namespace.name())));
        }
        if !geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        let (layout, fabric) = (Layout::new(&plan), fabric(&plan.prefix));
        let netlink = Netlink::open_within(&fabric)?;
        let switching = match plan.plane {
            Plane::Ebpf => Maps::find(&netlink, &layout)?
                .map(Switching::Ebpf)
                .ok_or_else(|| not_up("its ports have no switch program".to_owned()))?,
            Plane::Ovs => Ovs::find(prefix, &fabric)
                .map(Switching::Ovs)
                .ok_or_else(|| not_up("Open vSwitch has ended".to_owned()))?,
        };
        Ok(Lab { plan, parts: Parts { layout, fabric, netlink, switching } })
    }

    /// Removes the lab of this prefix, or what is left of it: kills the processes in its namespaces, removes these with
    /// all that is in them, and restores what was changed outside. To remove what is not there is no error.
    ///
    /// # Errors
    /// If something cannot be removed; it can be tried again.
    pub fn down(prefix: &Prefix) -> Result<Removed, LabError> {
        if !geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        let _lock = record::lock()?;
        remove(prefix)
    }

    /// The plan that it was made by. Of a lab that was found, the tables are not in it: they may have changed since.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Who is attached to whom.
    pub fn topology(&self) -> &Topology {
        &self.plan.topology
    }

    /// The namespace of the switches, where the monitor ports' copies arrive too.
    pub fn fabric(&self) -> &Namespace {
        &self.parts.fabric
    }

    /// The namespace of a host.
    ///
    /// # Panics
    /// If there is no such endpoint.
    pub fn host(&self, endpoint: EndpointId) -> Namespace {
        host(&self.plan, endpoint)
    }

    /// The interface of a port, in the namespace of the switches: what is sent from there arrives at the other end
    /// of the link. `None` if there is no such port.
    pub fn port_interface(&self, router: RouterId, port: PortIndex) -> Option<String> {
        self.parts.layout.interface(router, port).map(|_| layout::port_name(router, port))
    }

    /// The interface where copies of what a switch forwards arrive, in the namespace of the switches. `None` if there
    /// is no such switch.
    pub fn monitor_interface(&self, router: RouterId) -> Option<String> {
        self.parts.layout.monitors.get(router.index()).map(|_| layout::monitor_name(router))
    }

    /// Starts a command on the host of this name.
    ///
    /// # Errors
    /// If there is no such host, or the command cannot be started.
    pub fn exec(&self, host: &str, command: &mut Command) -> Result<Child, LabError> {
        match self.topology().node_named(host) {
            Some(Node::Endpoint(endpoint)) => Ok(self.host(endpoint).spawn(command)?),
            _ => Err(LabError::UnknownHost { name: host.to_owned() }),
        }
    }

    /// The switches' tables, to change and to read back.
    ///
    /// # Errors
    /// If the lab is gone.
    pub fn tables(&self) -> Result<Tables, LabError> {
        self.maps()?.tables(&self.parts.layout, &self.plan.topology)
    }

    /// How its switches are spoken to by OpenFlow, by router; none if they are eBPF programs.
    pub fn openflow(&self) -> Vec<OpenFlowSwitch> {
        self.plan.openflow()
    }

    fn maps(&self) -> Result<&Maps, LabError> {
        match &self.parts.switching {
            Switching::Ebpf(maps) => Ok(maps),
            Switching::Ovs(_) => Err(LabError::NotEbpf),
        }
    }

    /// Begins or ends mirroring at a switch. All switches mirror when a lab comes up. Nothing happens if there is no
    /// such switch.
    ///
    /// # Errors
    /// If the lab is gone.
    pub fn set_mirror(&self, router: RouterId, is_on: bool) -> Result<(), LabError> {
        self.maps()?.set_mirror(&self.parts.layout, router, is_on)
    }

    /// What the lab is and has counted.
    ///
    /// # Errors
    /// If the lab is gone.
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

    /// By switch, the entries of its table; by port, what its switch has counted.
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

    /// Whether a switch copies what it forwards. Of switches of Open vSwitch that is up to whoever installs routes.
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

/// Whether this process and this machine can have the lab.
fn check_means(plan: &Plan) -> Result<(), LabError> {
    if !geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    match plan.plane {
        Plane::Ebpf if !ebpf::is_built() => return Err(LabError::NoSwitchProgram),
        Plane::Ebpf => {}
        Plane::Ovs => Ovs::check()?,
    }
    match &plan.congestion_control {
        Some(name) if !sysctl::congestion_controls()?.contains(name) => {
            Err(PlanError::CongestionControl { name: name.clone() }.into())
        }
        _ => Ok(()),
    }
}

/// Removes what there is of a lab. The record goes last: it says what is still to be restored.
fn remove(prefix: &Prefix) -> Result<Removed, LabError> {
    let mut removed = Removed::default();
    for namespace in namespace::with_prefix(prefix.as_str())? {
        // A name with nothing behind it has no processes to look for.
        removed.processes += namespace.kill_processes()?;
        namespace.delete()?;
        removed.namespaces += 1;
    }
    if let Some(record) = Record::read(prefix)? {
        record.changed.iter().try_for_each(Changed::restore)?;
    }
    Ovs::remove(prefix)?;
    Record::remove(prefix)?;
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_and_its_tables_may_be_used_by_other_threads() {
        fn is_send<T: Send>() {}
        fn is_sync<T: Sync>() {}
        is_send::<Lab>();
        is_sync::<Lab>();
        is_send::<Tables>();
    }
}
