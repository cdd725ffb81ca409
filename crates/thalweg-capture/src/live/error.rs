//! Why a live capture cannot begin or go on.

use std::io;

use thalweg_wire::Bytes;
use thiserror::Error;

use crate::filter::FilterError;

/// Why a live capture cannot begin or go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveError {
    /// No interface has that name.
    #[error("there is no interface `{name}`{}; there are: {}", did_you_mean(.nearest), .existing.join(", "))]
    NoSuchInterface {
        /// What was asked for.
        name: String,
        /// The existing name nearest to it, if one is near.
        nearest: Option<String>,
        /// The interfaces of this network namespace.
        existing: Vec<String>,
    },
    /// The process may not capture.
    #[error(
        "capturing on `{interface}` needs the capability CAP_NET_RAW: run as root, or grant it to the program once \
         with `sudo setcap cap_net_raw=ep {program}`"
    )]
    NoPermission {
        /// What was to be captured.
        interface: String,
        /// The path of the running program.
        program: String,
    },
    /// The process may not capture through AF_XDP.
    #[error(
        "AF_XDP on `{interface}` needs the capabilities CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF: run as root, or grant \
         them to the program once with `sudo setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock=ep {program}`"
    )]
    NoXdpPermission {
        /// What was to be captured.
        interface: String,
        /// The path of the running program.
        program: String,
    },
    /// AF_XDP is for Ethernet alone.
    #[error("AF_XDP is for Ethernet, which `{interface}` is not: use AF_PACKET")]
    NotEthernet {
        /// The interface.
        interface: String,
    },
    /// An interface has one XDP program at most, and this one has another's.
    #[error(
        "another program takes frames from `{interface}` through XDP already (see `ip link show {interface}`)"
    )]
    XdpTaken {
        /// The interface.
        interface: String,
    },
    /// AF_XDP has a socket for each receive queue, and one source was asked for.
    #[error(
        "`{interface}` has {queue_count} receive queues, and a collector reads one through AF_XDP: \
         `ethtool -L {interface} combined 1` makes it one, or use backend = \"af_packet\""
    )]
    SeveralQueues {
        /// The interface.
        interface: String,
        /// How many.
        queue_count: u32,
    },
    /// The user may not lock as much memory as the frames need.
    #[error(
        "the frames of `{interface}` need {needed} of locked memory, more than this user may lock: raise the limit \
         (`ulimit -l`, LimitMEMLOCK= of systemd), grant CAP_IPC_LOCK, or use less memory"
    )]
    LockedMemory {
        /// The interface.
        interface: String,
        /// Of all its queues together.
        needed: Bytes,
    },
    /// The interface's frames begin with something that is not taken apart.
    #[error("`{interface}` is of a kind that Thalweg cannot read (hardware type ARPHRD {hardware_type})")]
    UnsupportedLink {
        /// The interface.
        interface: String,
        /// `ARPHRD_` number of if_arp.h.
        hardware_type: u16,
    },
    /// Several workers cannot share an interface that is down before Linux 6.13.
    #[error("`{name}` is down; bring it up first with `ip link set {name} up`, or use one worker")]
    InterfaceDown {
        /// The interface.
        name: String,
    },
    /// The interface was deleted or moved to another network namespace while it was watched.
    #[error("`{name}` is gone: it was deleted, or moved to another network namespace")]
    InterfaceGone {
        /// Its name when it was opened.
        name: String,
    },
    /// A value is outside its range.
    #[error("{option} {value}: expected {expected}")]
    BadOption {
        /// Which.
        option: &'static str,
        /// What was asked for.
        value: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// The capture filter cannot be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The kernel refused a step.
    #[error("`{interface}`: cannot {step}: {source}")]
    Kernel {
        /// The interface.
        interface: String,
        /// What was tried, to be read after "cannot".
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl LiveError {
    /// For a packet socket that could not be opened.
    pub(crate) fn from_open(interface: &str, source: io::Error) -> LiveError {
        let interface = interface.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => LiveError::NoPermission { interface, program: program() },
            _ => LiveError::Kernel { interface, step: "open a packet socket", source },
        }
    }
}

/// The path of the running program, to be put into a command.
pub(crate) fn program() -> String {
    std::env::current_exe().map_or_else(|_| "PROGRAM".to_owned(), |path| path.display().to_string())
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}
