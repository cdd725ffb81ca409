//! Open vSwitch in user space instead of a router of the kernel: one bridge, whose port to the receiver has two queues.
//!
//! The bridge forwards by MAC address. It has the datapath ID [`DATAPATH_ID`], and listens at [`CONTROLLER`] in the namespace
//! of the router. Open vSwitch makes HTB classes of its queues. In user space it ignores the action `set_queue`, so a u32
//! filter puts packets with DSCP 1 into the scavenger queue.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::process::Command;

use thalweg_linux::netlink::Netlink;
use thalweg_linux::tc::queue::handle;
use thalweg_wire::{BitRate, Bytes};

use super::{LINK_INTERFACE, RouterLab};
use crate::error::LabError;
use crate::ovs::{DAEMON_PATH, Ovs, run};
use crate::sysctl::SysctlChange;

/// The datapath ID of the bridge.
pub const DATAPATH_ID: u64 = 1;

/// Where the bridge accepts an OpenFlow controller, in the namespace of the router.
pub const CONTROLLER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 6_653));

/// The number of the scavenger queue; the primary queue has number 0.
pub const SCAVENGER_QUEUE: u32 = 1;

/// The name of the bridge.
const BRIDGE: &str = "br0";

/// Classes of Open vSwitch: queue N has 1:(N + 1).
const MAJOR: u16 = 1;
const PRIMARY: u16 = 1;
const SCAVENGER: u16 = 2;

/// Major numbers of the queues inside both classes.
const LEAVES: [u16; 2] = [0x11, 0x12];

/// Frames of both queues, with the memory that the kernel counts for each.
const SEND_BUFFER: Bytes = Bytes(16 << 20);

/// An Ethernet header in hexadecimal, with the EtherType for local experiments (IEEE 802).
const HEADER: &str = "ffffffffffff02000000000188b5";

/// Digits of the shortest Ethernet frame, without its check sequence.
const FRAME_DIGITS: usize = 120;

/// Open vSwitch rejects lower guaranteed rates: a full packet per second.
const MIN_RATE: BitRate = BitRate(12_000);

/// The queues of the port to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchQueues {
    /// Rate of the link.
    pub rate: BitRate,
    /// Guaranteed rate of the scavenger queue, at least 12 kbit/s; the primary queue has the rest.
    pub scavenger_rate: BitRate,
    /// Whether the primary queue borrows first.
    pub is_strict: bool,
    /// Maximum size of either queue.
    pub limit: Bytes,
}

impl RouterLab {
    /// Sets the queues of the port to the receiver, in a lab with Open vSwitch. Queued packets are dropped.
    ///
    /// # Errors
    /// If the lab does not exist, has no Open vSwitch, or Open vSwitch or tc refuses them.
    pub fn set_queues(&self, queues: &SwitchQueues) -> Result<(), LabError> {
        let router = self.router();
        let not_up = || LabError::NotUp {
            prefix: self.prefix.to_string(),
            reason: "Open vSwitch does not run".to_owned(),
        };
        let ovs = Ovs::find(&self.prefix, &router).ok_or_else(not_up)?;
        ovs.vsctl(&queues.removal())?;
        ovs.vsctl(&queues.creation())?;
        let netlink = Netlink::open_within(&router)?;
        let interface = netlink.interface(LINK_INTERFACE)?;
        for (class, leaf) in [PRIMARY, SCAVENGER].into_iter().zip(LEAVES) {
            netlink.set_fifo(interface, handle(MAJOR, class), handle(leaf, 0), queues.limit)?;
        }
        let mut tc = Command::new("tc");
        let filter = format!(
            "filter add dev {LINK_INTERFACE} parent {MAJOR}: protocol ip prio 1 u32 match ip tos 0x04 0xfc \
             flowid {MAJOR}:{SCAVENGER}"
        );
        tc.env("PATH", DAEMON_PATH).args(filter.split_whitespace());
        run(&router, "tc", &mut tc).map(drop)
    }
}

impl SwitchQueues {
    fn removal(&self) -> Vec<String> {
        words(&format!("-- clear port {LINK_INTERFACE} qos -- --all destroy qos -- --all destroy queue"))
    }

    fn creation(&self) -> Vec<String> {
        let scavenger = self.scavenger_rate.max(MIN_RATE);
        let (primary, priorities) = match self.is_strict {
            true => (self.rate, [0, 7]),
            false => (BitRate(self.rate.0.saturating_sub(scavenger.0)).max(MIN_RATE), [0, 0]),
        };
        let rate = self.rate.0;
        let mut text = format!(
            "-- set port {LINK_INTERFACE} qos=@qos -- --id=@qos create qos type=linux-htb other-config:max-rate={rate} \
             queues:0=@q0 queues:{SCAVENGER_QUEUE}=@q1"
        );
        for (number, (least, priority)) in [primary, scavenger].into_iter().zip(priorities).enumerate() {
            text += &format!(
                " -- --id=@q{number} create queue other-config:min-rate={} other-config:max-rate={rate} \
                 other-config:priority={priority}",
                least.0
            );
        }
        words(&text)
    }
}

/// Starts Open vSwitch with a bridge of these ports; they have the OpenFlow numbers from 1 on.
///
/// In user space it sends all frames through one socket, which it opens for the first one. Frames in queues count against the send
/// buffer of this socket. With that of other sockets it would drop frames before a queue is full, whatever their class.
pub(super) fn start(lab: &RouterLab, ports: &[String]) -> Result<(), LabError> {
    let Some(buffer) = SysctlChange::to_buffer(SEND_BUFFER)? else { return open(lab, ports) };
    buffer.apply()?;
    let started = open(lab, ports);
    buffer.restore()?;
    started
}

/// Starts Open vSwitch, and lets it send a frame.
fn open(lab: &RouterLab, ports: &[String]) -> Result<(), LabError> {
    let ovs = Ovs::launch(&lab.prefix, &lab.router())?;
    ovs.vsctl(&bridge(ports))?;
    ovs.send(BRIDGE, 1, &format!("{HEADER:0<FRAME_DIGITS$}"))
}

fn bridge(ports: &[String]) -> Vec<String> {
    let (port, address) = (CONTROLLER.port(), CONTROLLER.ip());
    let mut text = format!(
        "-- add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type=netdev fail-mode=standalone protocols=OpenFlow13 \
         other-config:datapath-id={DATAPATH_ID:016x} -- set-controller {BRIDGE} ptcp:{port}:{address} \
         -- set controller {BRIDGE} connection-mode=out-of-band"
    );
    for (name, number) in ports.iter().zip(1..) {
        text += &format!(" -- add-port {BRIDGE} {name} -- set interface {name} ofport_request={number}");
    }
    words(&text)
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_divide_the_link_or_have_priorities() {
        let queues = SwitchQueues {
            rate: BitRate(200_000_000),
            scavenger_rate: BitRate(10_000_000),
            is_strict: false,
            limit: Bytes(400_000),
        };
        let text = queues.creation().join(" ");
        assert!(text.contains("@q0 create queue other-config:min-rate=190000000"), "{text}");
        assert!(text.contains("@q1 create queue other-config:min-rate=10000000"), "{text}");
        let strict = SwitchQueues { scavenger_rate: BitRate(8_000), is_strict: true, ..queues };
        let text = strict.creation().join(" ");
        assert!(text.contains("@q0 create queue other-config:min-rate=200000000"), "{text}");
        assert!(
            text.contains("min-rate=12000 other-config:max-rate=200000000 other-config:priority=7"),
            "{text}"
        );
    }

    #[test]
    fn the_bridge_has_the_ports_in_order() {
        let text = bridge(&["lan1".to_owned(), LINK_INTERFACE.to_owned()]).join(" ");
        assert!(text.contains("other-config:datapath-id=0000000000000001 "), "{text}");
        assert!(text.contains("set-controller br0 ptcp:6653:127.0.0.1"), "{text}");
        assert!(text.ends_with("add-port br0 wan -- set interface wan ofport_request=2"), "{text}");
    }
}
