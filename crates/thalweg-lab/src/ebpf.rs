//! Switches that are eBPF programs at the ingress of their ports.
//!
//! The program (`ebpf/switch.bpf.c`) and its maps belong to nobody's process and are pinned nowhere: the filter at a
//! port holds the program, the program holds the maps, and the interface holds the filter. So they are there as
//! long as the fabric's namespace, need no BPF file system, and go with it. Who wants the maps asks the kernel which
//! program a port has, and which maps the program.

mod counters;
mod tables;

pub use counters::{Drops, SwitchCounters};
pub use tables::{Installed, TableEntry, TableError, Tables};

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;

use aya::maps::{Array, HashMap, Map, MapData};
use aya::programs::{SchedClassifier, loaded_programs};
use aya::{Ebpf, EbpfLoader};
use bytemuck::{Pod, Zeroable, must_cast};
use rtnetlink::packet_route::tc::{
    TcAttribute, TcBpfFlags, TcFilterBpf, TcFilterBpfOption, TcHandle, TcMessage, TcOption,
};
use thalweg_network::{RouterId, Topology};

use crate::error::LabError;
use crate::layout::Layout;
use crate::netlink::Netlink;

/// Name of the program in the object file, and at every port.
const PROGRAM: &str = "forward";

/// ETH_P_ALL in network byte order, and priority 1 above it, as `tcm_info` has them.
const FIRST_OF_ALL_PROTOCOLS: u32 = (1 << 16) | (0x0003_u16.to_be() as u32);

/// What `scripts/bpf.sh` has compiled from `switch.bpf.c` for processors of this byte order.
#[cfg(target_endian = "little")]
static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/ebpf/switch.bpf.o"));
#[cfg(not(target_endian = "little"))]
static OBJECT: &[u8] = &[];

/// `struct port` of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Port {
    router: u32,
    monitor: u32,
}

/// Maps as the loader takes them: plain bytes for keys and values, so that none of our types needs an unsafe promise.
type PortMap = Array<MapData, [u8; size_of::<Port>()]>;

/// Whether this build has the program.
pub(crate) fn is_built() -> bool {
    !OBJECT.is_empty()
}

/// Loads the program and attaches it to every port of the fabric, whose tables are empty then and mirror everything.
pub(crate) fn attach(netlink: &Netlink, layout: &Layout, topology: &Topology) -> Result<(), LabError> {
    if !is_built() {
        return Err(LabError::NoSwitchProgram);
    }
    let mut ebpf = load(layout, topology)?;
    let mut ports = PortMap::try_from(take(&mut ebpf, "ports")?).map_err(map_error("ports"))?;
    for port in &layout.ports {
        let monitor = layout.monitors[port.router.index()].mirror;
        let value = Port { router: u32::from(port.router.0), monitor };
        ports.set(port.interface, must_cast::<Port, [u8; 8]>(value), 0).map_err(map_error("ports"))?;
    }
    let mut hosts: HashMap<_, [u8; 4], [u8; 8]> =
        HashMap::try_from(take(&mut ebpf, "hosts")?).map_err(map_error("hosts"))?;
    for host in topology.endpoints() {
        let mut value = [0; 8];
        value[..6].copy_from_slice(&host.mac.0);
        hosts.insert(host.ip.octets(), value, 0).map_err(map_error("hosts"))?;
    }
    let program: &mut SchedClassifier = ebpf
        .program_mut(PROGRAM)
        .expect("the object has the program")
        .try_into()
        .map_err(|error| LabError::ebpf("load the switch program", error))?;
    program.load().map_err(|error| LabError::ebpf("load the switch program", error))?;
    let file = program.fd().map_err(|error| LabError::ebpf("load the switch program", error))?;
    for port in &layout.ports {
        netlink.set_queue(ingress_hook(port.interface))?;
        netlink.add_filter(filter(port.interface, file.as_fd().as_raw_fd() as u32))?;
    }
    Ok(())
}

/// Parses the object, and makes its maps as large as the lab wants them.
fn load(layout: &Layout, topology: &Topology) -> Result<Ebpf, LabError> {
    EbpfLoader::new()
        .map_max_entries("ports", layout.interfaces())
        .map_max_entries("counters", layout.interfaces())
        .map_max_entries("forwarding", tables::capacity(topology))
        .map_max_entries("hosts", topology.endpoints().len() as u32)
        .load(OBJECT)
        .map_err(|error| LabError::ebpf("read the switch program", error))
}

fn take(ebpf: &mut Ebpf, name: &str) -> Result<Map, LabError> {
    ebpf.take_map(name)
        .ok_or_else(|| LabError::ebpf("read the switch program", format!("it has no map {name}")))
}

/// The queueing discipline that filters of incoming packets hang on.
fn ingress_hook(interface: u32) -> TcMessage {
    let mut message = TcMessage::with_index(interface as i32);
    message.header.parent = TcHandle::CLSACT;
    message.header.handle = TcHandle { major: TcHandle::CLSACT.major, minor: 0 };
    message.attributes = vec![TcAttribute::Kind("clsact".to_owned())];
    message
}

fn ingress(interface: u32) -> TcMessage {
    let mut message = TcMessage::with_index(interface as i32);
    message.header.parent = TcHandle { minor: TcHandle::MIN_INGRESS, ..TcHandle::CLSACT };
    message
}

fn filter(interface: u32, program: u32) -> TcMessage {
    let mut message = ingress(interface);
    message.header.info = FIRST_OF_ALL_PROTOCOLS;
    let options = [
        TcFilterBpfOption::ProgFd(program),
        TcFilterBpfOption::ProgName(PROGRAM.to_owned()),
        TcFilterBpfOption::Flags(TcBpfFlags::DirectAction),
    ];
    message.attributes = vec![
        TcAttribute::Kind(TcFilterBpf::KIND.to_owned()),
        TcAttribute::Options(options.map(TcOption::Bpf).into()),
    ];
    message
}

/// The maps of the program that a lab's ports have.
#[derive(Clone, Debug)]
pub(crate) struct Maps {
    ids: Vec<u32>,
}

impl Maps {
    /// Asks the kernel for them; `None` if the first port has no program.
    pub(crate) fn find(netlink: &Netlink, layout: &Layout) -> Result<Option<Maps>, LabError> {
        let Some(port) = layout.ports.first() else { return Ok(None) };
        let filters = netlink.filters(ingress(port.interface))?;
        let program = filters.into_iter().flatten().find_map(|attribute| match attribute {
            TcAttribute::Options(options) => options.into_iter().find_map(|option| match option {
                TcOption::Bpf(TcFilterBpfOption::ProgId(program)) => Some(program),
                _ => None,
            }),
            _ => None,
        });
        let Some(program) = program else { return Ok(None) };
        let error = |error| LabError::ebpf("find the switch program", error);
        for loaded in loaded_programs() {
            // A program that ends while all are looked at is not ours: ours is held by its port.
            let Ok(loaded) = loaded else { continue };
            if loaded.id() == program {
                let ids = loaded.map_ids().map_err(error)?.unwrap_or_default();
                return Ok(Some(Maps { ids }));
            }
        }
        Ok(None)
    }

    fn open(&self, name: &str) -> Result<Map, LabError> {
        for &id in &self.ids {
            let data = MapData::from_id(id).map_err(map_error(name))?;
            if data.info().map_err(map_error(name))?.name_as_str() == Some(name) {
                return Map::from_map_data(data).map_err(map_error(name));
            }
        }
        Err(LabError::ebpf(format!("open the map {name}"), "the switch program has no such map"))
    }

    /// The switches' tables.
    pub(crate) fn tables(&self, layout: &Layout, topology: &Arc<Topology>) -> Result<Tables, LabError> {
        Tables::new(self.open("forwarding")?, layout, topology).map_err(map_error("forwarding"))
    }

    /// What the ports of all switches have counted, by their place among all.
    pub(crate) fn counters(&self, layout: &Layout) -> Result<Vec<SwitchCounters>, LabError> {
        counters::read(self.open("counters")?, layout).map_err(map_error("counters"))
    }

    /// Has a switch count from zero again.
    pub(crate) fn reset_counters(&self, layout: &Layout, router: RouterId) -> Result<(), LabError> {
        counters::reset(self.open("counters")?, layout, router).map_err(map_error("counters"))
    }

    /// Begins or ends mirroring at a switch.
    pub(crate) fn set_mirror(&self, layout: &Layout, router: RouterId, is_on: bool) -> Result<(), LabError> {
        let mut ports = self.ports()?;
        for port in layout.ports_of(router) {
            let monitor = if is_on { layout.monitors[router.index()].mirror } else { 0 };
            let value = Port { router: u32::from(router.0), monitor };
            ports.set(port.interface, must_cast::<Port, [u8; 8]>(value), 0).map_err(map_error("ports"))?;
        }
        Ok(())
    }

    /// Whether a switch mirrors.
    pub(crate) fn is_mirrored(&self, layout: &Layout, router: RouterId) -> Result<bool, LabError> {
        let ports = self.ports()?;
        let Some(port) = layout.ports_of(router).first() else { return Ok(false) };
        let value = ports.get(&port.interface, 0).map_err(map_error("ports"))?;
        Ok(must_cast::<[u8; 8], Port>(value).monitor != 0)
    }

    fn ports(&self) -> Result<PortMap, LabError> {
        PortMap::try_from(self.open("ports")?).map_err(map_error("ports"))
    }
}

fn map_error(name: &str) -> impl Fn(aya::maps::MapError) -> LabError + '_ {
    move |error| LabError::ebpf(format!("use the map {name}"), error)
}
