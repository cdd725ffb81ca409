//! Errors of DPDK ports.

use thalweg_linux::netdevice::interface_names;
use thalweg_wire::nearest::nearest;
use thiserror::Error;

use crate::filter::FilterError;

/// Drivers of virtual devices, for the nearest name in a message.
const DRIVERS: [&str; 8] = [
    "net_af_packet",
    "net_af_xdp",
    "net_memif",
    "net_null",
    "net_pcap",
    "net_ring",
    "net_tap",
    "net_virtio_user",
];

/// Why a DPDK port cannot be opened or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DpdkError {
    /// This program was built without DPDK.
    #[error(
        "cannot open dpdk:{device}: this program was built without DPDK. Install libdpdk-dev, and build it with `cargo build \
         --release -p thalweg --features dpdk`"
    )]
    NotBuilt {
        /// The device.
        device: String,
    },
    /// The name of the device is not one.
    #[error(
        "invalid DPDK device {device:?}: expected a virtual device such as net_af_packet0,iface=eth0, or a PCI address such as \
         0000:01:00.0"
    )]
    BadDevice {
        /// The device.
        device: String,
    },
    /// The EAL cannot be started.
    #[error("cannot start DPDK with the options `{options}`: {reason}")]
    Start {
        /// The options.
        options: String,
        /// DPDK's message.
        reason: String,
    },
    /// The EAL could not be started earlier, and can be started only once in a process.
    #[error(
        "DPDK failed to start earlier in this process ({reason}), and starts only once: run the program again"
    )]
    StartedBefore {
        /// The reason of the earlier failure.
        reason: String,
    },
    /// The EAL runs with other options, and can be started only once in a process.
    #[error(
        "DPDK already runs in this process with the options `{running}`, and starts only once: use the same options for all ports, \
         not `{options}`"
    )]
    OtherOptions {
        /// The options that it runs with.
        running: String,
        /// The requested options.
        options: String,
    },
    /// The device cannot be used.
    #[error("cannot open dpdk:{device}: {reason}{}", hint(.device, .reason))]
    Open {
        /// The device.
        device: String,
        /// DPDK's message.
        reason: String,
    },
    /// The device was removed during the capture.
    #[error("dpdk:{device} was removed")]
    Removed {
        /// The device.
        device: String,
    },
    /// An option is out of range.
    #[error("{option} {value}: expected {expected}")]
    BadOption {
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// The capture filter cannot be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// Returns what to do, or what was probably meant if the device is a network interface or names no driver that is known.
fn hint(device: &str, reason: &str) -> String {
    if reason.contains("Cannot allocate memory") {
        return "; give DPDK more memory, such as THALWEG_DPDK_EAL='--no-huge --no-pci -m 4096'".to_owned();
    }
    if reason.contains("AF_PACKET socket") || reason.contains("Operation not permitted") {
        return "; the device needs CAP_NET_RAW and CAP_NET_ADMIN, so run as root".to_owned();
    }
    if interface_names().iter().any(|name| name == device) {
        return format!(" (did you mean dpdk:net_af_packet0,iface={device}?)");
    }
    let name =
        device.split(',').next().unwrap_or_default().trim_end_matches(|digit: char| digit.is_ascii_digit());
    match nearest(name, DRIVERS).filter(|near| *near != name) {
        Some(near) => format!(" (did you mean {near}?)"),
        None => String::new(),
    }
}
