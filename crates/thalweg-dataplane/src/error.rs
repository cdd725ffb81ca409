//! Errors of loading, attaching and pinning.

use std::io;
use std::path::PathBuf;

use thalweg_linux::bpf::ObjectError;
use thalweg_wire::nearest::nearest;
use thiserror::Error;

use crate::hook::Hook;
use crate::spec::MAX_SKETCHES;

/// Why sketches cannot be counted in the kernel.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataplaneError {
    /// No sketch, or too many.
    #[error("{found} sketches in the kernel: expected 1 to {MAX_SKETCHES}")]
    Sketches {
        /// The requested number.
        found: usize,
    },
    /// The counters do not fit into a map.
    #[error(
        "{bytes} bytes of counters per CPU: the kernel's limit is {limit}; the shape of a sketch is never reduced"
    )]
    Counters {
        /// The bytes per CPU.
        bytes: u64,
        /// The most.
        limit: u64,
    },
    /// The process lacks a privilege.
    #[error(
        "cannot load programs into the kernel: run as root, or with CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_NET_RAW"
    )]
    Privilege,
    /// The process may not use the folder of pinned sketches.
    #[error("cannot use {}: only root may pin sketches, go on with them or remove them", path.display())]
    PinPrivilege {
        /// The folder.
        path: PathBuf,
    },
    /// The kernel rejects the program or its memory.
    #[error("cannot load the sketches into the kernel ({bytes} bytes of memory)")]
    Load {
        /// The requested memory of all CPUs.
        bytes: u64,
        /// The cause.
        #[source]
        source: ObjectError,
    },
    /// The memory of the sketches cannot be mapped.
    #[error("cannot map the memory of the sketches")]
    Map(#[source] io::Error),
    /// The interface does not exist.
    #[error("interface `{interface}` does not exist{}; available: {}", did_you_mean(interface, existing), existing.join(", "))]
    NoInterface {
        /// The name.
        interface: String,
        /// The interfaces of this network namespace.
        existing: Vec<String>,
    },
    /// The interface has no Ethernet header.
    #[error(
        "interface {interface:?} has no Ethernet frames (hardware type {hardware_type}): sketches in the kernel need them"
    )]
    NotEthernet {
        /// The name.
        interface: String,
        /// The type, as in `/sys/class/net/NAME/type`.
        hardware_type: u16,
    },
    /// The program cannot be attached.
    #[error("cannot attach to {interface} at {hook}: {source}{}", advice(source))]
    Attach {
        /// The interface.
        interface: String,
        /// Where.
        hook: Hook,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The interface does not become promiscuous.
    #[error(
        "cannot make {interface} promiscuous: {source}; run as root or with CAP_NET_RAW, or use --no-promiscuous"
    )]
    Promiscuous {
        /// The interface.
        interface: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A name of a pin is invalid.
    #[error("invalid name {name:?} of a pin: expected 1 to 64 letters, digits, - or _")]
    PinName {
        /// The name.
        name: String,
    },
    /// The BPF file system cannot be used.
    #[error("cannot use {}: {source}; mount it with `mount -t bpf bpf /sys/fs/bpf`", path.display())]
    PinFolder {
        /// The path.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The BPF file system would vanish with the process.
    #[error(
        "cannot pin {name}: this process has mounts of its own, and no {}, as under `ip netns exec`; what it pins would end with it: \
         enter a network namespace by `nsenter --net=/run/netns/NAME`",
        path.display()
    )]
    PrivateMounts {
        /// The name of the pin.
        name: String,
        /// Where the BPF file system is expected.
        path: PathBuf,
    },
    /// The pinned sketches were started with other options.
    #[error(
        "the pinned sketches {name} were started with {field} {pinned}, not {requested}: give the same options, or remove them with `thalweg watch --unpin {name}`"
    )]
    PinnedDiffers {
        /// The name of the pin.
        name: String,
        /// What differs.
        field: &'static str,
        /// As pinned.
        pinned: String,
        /// As requested.
        requested: String,
    },
    /// Another process reads the pinned sketches.
    #[error("another process reads the pinned sketches {name}")]
    PinnedInUse {
        /// The name of the pin.
        name: String,
    },
    /// There is nothing pinned under the name.
    #[error("no pinned sketches {name}")]
    NotPinned {
        /// The name.
        name: String,
    },
}

fn did_you_mean(interface: &str, existing: &[String]) -> String {
    let near = nearest(interface, existing.iter().map(String::as_str));
    near.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// Returns what to do about an error of attaching.
fn advice(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => "; another program is attached there: use --hook tc",
        Some(libc::EOPNOTSUPP) => "; the driver does not support it: use --hook tc",
        Some(libc::EINVAL) => "; XDP needs Linux 5.18, tc ingress Linux 6.6",
        Some(libc::EPERM) => "; run as root, or with CAP_NET_ADMIN and CAP_BPF",
        _ => "",
    }
}
