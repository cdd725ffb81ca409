//! eBPF switches: a program at the ingress of every port.
//!
//! The program (`ebpf/switch.bpf.c`) and its maps belong to no process and are not pinned: the interface holds the
//! filter, the filter the program, and the program its maps. So they live as long as the fabric's namespace and need no
//! BPF file system. To open the maps, ask the kernel for the program of a port and for the maps of the program.

mod counters;
mod tables;

pub use counters::{Drops, SwitchCounters};
pub use tables::{Installed, TableEntry, TableError, Tables};

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable, must_cast};
use thalweg_linux::Netlink;
use thalweg_linux::bpf::object::Loaded;
use thalweg_linux::bpf::{AnyMap, Map, Object, ObjectError, Program, ProgramKind};
use thalweg_network::{RouterId, Topology};

use crate::error::LabError;
use crate::layout::Layout;

/// Name of the program in the object file, and at every port.
const PROGRAM: &str = "forward";

/// The object that `scripts/bpf.sh` compiled from `switch.bpf.c`; empty if this byte order is not supported.
#[cfg(target_endian = "little")]
static OBJECT: &[u8] = include_bytes!("switch.bpf.o");
#[cfg(not(target_endian = "little"))]
static OBJECT: &[u8] = &[];

/// `struct port` of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Port {
    router: u32,
    monitor: u32,
}

/// Ports by interface number.
type PortMap = Map<{ size_of::<u32>() }, { size_of::<Port>() }>;

/// Ethernet addresses, in the first six bytes, by IPv4 address.
type HostMap = Map<4, 8>;

/// Whether this build contains the program.
pub(crate) fn is_built() -> bool {
    !OBJECT.is_empty()
}

/// Loads the program and attaches it to every port of the fabric, with empty tables and mirroring on.
pub(crate) fn attach(netlink: &Netlink, layout: &Layout, topology: &Topology) -> Result<(), LabError> {
    if !is_built() {
        return Err(LabError::NoSwitchProgram);
    }
    let Loaded { program, mut maps } =
        load(layout, topology).map_err(|error| LabError::ebpf("load the switch program", error))?;
    let mut ports = PortMap::try_from(take(&mut maps, "ports")?).map_err(map_error("ports"))?;
    for port in &layout.ports {
        let monitor = layout.monitors[port.router.index()].mirror;
        let value = Port { router: u32::from(port.router.0), monitor };
        ports.set(&port.interface.to_ne_bytes(), &must_cast(value)).map_err(map_error("ports"))?;
    }
    let mut hosts = HostMap::try_from(take(&mut maps, "hosts")?).map_err(map_error("hosts"))?;
    for host in topology.endpoints() {
        let mut value = [0; 8];
        value[..6].copy_from_slice(&host.mac.0);
        hosts.set(&host.ip.octets(), &value).map_err(map_error("hosts"))?;
    }
    for port in &layout.ports {
        netlink.add_ingress_hook(port.interface)?;
        netlink.add_ingress_program(port.interface, program.as_fd(), PROGRAM)?;
    }
    Ok(())
}

/// Loads the object, with maps as large as the lab wants them.
fn load(layout: &Layout, topology: &Topology) -> Result<Loaded, ObjectError> {
    let mut object = Object::read(OBJECT)?;
    object.set_max_entries("ports", layout.interfaces())?;
    object.set_max_entries("counters", layout.interfaces())?;
    object.set_max_entries("forwarding", tables::capacity(topology))?;
    object.set_max_entries("hosts", topology.endpoints().len() as u32)?;
    object.load(PROGRAM, ProgramKind::Classifier)
}

fn take(maps: &mut BTreeMap<String, AnyMap>, name: &str) -> Result<AnyMap, LabError> {
    maps.remove(name)
        .ok_or_else(|| LabError::ebpf("read the switch program", format!("it has no map {name}")))
}

/// The maps of a lab's switch program.
#[derive(Clone, Debug)]
pub(crate) struct Maps {
    ids: Vec<u32>,
}

impl Maps {
    /// Finds the maps; `None` if the first port has no program.
    pub(crate) fn find(netlink: &Netlink, layout: &Layout) -> Result<Option<Maps>, LabError> {
        let Some(port) = layout.ports.first() else { return Ok(None) };
        let Some(program) = netlink.ingress_program(port.interface)? else { return Ok(None) };
        let ids = Program::by_id(program).and_then(|program| program.map_ids());
        Ok(Some(Maps { ids: ids.map_err(|error| LabError::ebpf("find the switch program", error))? }))
    }

    fn open(&self, name: &str) -> Result<AnyMap, LabError> {
        for &id in &self.ids {
            let map = AnyMap::by_id(id).map_err(map_error(name))?;
            if map.name() == name {
                return Ok(map);
            }
        }
        Err(LabError::ebpf(format!("open the map {name}"), "the switch program has no such map"))
    }

    /// Opens the switches' tables.
    pub(crate) fn tables(&self, layout: &Layout, topology: &Arc<Topology>) -> Result<Tables, LabError> {
        Tables::new(self.open("forwarding")?, layout, topology).map_err(map_error("forwarding"))
    }

    /// Reads the counters of all ports, in the order of the layout.
    pub(crate) fn counters(&self, layout: &Layout) -> Result<Vec<SwitchCounters>, LabError> {
        counters::read(self.open("counters")?, layout).map_err(map_error("counters"))
    }

    /// Resets the counters of a switch.
    pub(crate) fn reset_counters(&self, layout: &Layout, router: RouterId) -> Result<(), LabError> {
        counters::reset(self.open("counters")?, layout, router).map_err(map_error("counters"))
    }

    /// Turns mirroring at a switch on or off.
    pub(crate) fn set_mirror(&self, layout: &Layout, router: RouterId, is_on: bool) -> Result<(), LabError> {
        let mut ports = self.ports()?;
        for port in layout.ports_of(router) {
            let monitor = if is_on { layout.monitors[router.index()].mirror } else { 0 };
            let value = Port { router: u32::from(router.0), monitor };
            ports.set(&port.interface.to_ne_bytes(), &must_cast(value)).map_err(map_error("ports"))?;
        }
        Ok(())
    }

    /// Whether a switch mirrors.
    pub(crate) fn is_mirrored(&self, layout: &Layout, router: RouterId) -> Result<bool, LabError> {
        let ports = self.ports()?;
        let Some(port) = layout.ports_of(router).first() else { return Ok(false) };
        let value = ports.get(&port.interface.to_ne_bytes()).map_err(map_error("ports"))?;
        Ok(value.is_some_and(|value| must_cast::<[u8; 8], Port>(value).monitor != 0))
    }

    fn ports(&self) -> Result<PortMap, LabError> {
        PortMap::try_from(self.open("ports")?).map_err(map_error("ports"))
    }
}

fn map_error(name: &str) -> impl Fn(io::Error) -> LabError + '_ {
    move |error| LabError::ebpf(format!("use the map {name}"), error)
}
