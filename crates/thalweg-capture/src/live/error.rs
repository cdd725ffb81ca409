//! Errors of live captures.

use std::io;

use thalweg_linux::KernelVersion;
use thalweg_wire::Bytes;
use thiserror::Error;

use crate::filter::FilterError;

/// Why a live capture cannot start or continue.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveError {
    /// No interface has that name.
    #[error("interface `{name}` does not exist{}; available: {}", did_you_mean(.nearest), .existing.join(", "))]
    NoSuchInterface {
        /// The requested name.
        name: String,
        /// The most similar existing name, if any.
        nearest: Option<String>,
        /// The interfaces of this network namespace.
        existing: Vec<String>,
    },
    /// The process lacks the capability to capture.
    #[error(
        "capturing on `{interface}` needs the capability CAP_NET_RAW: run as root, or grant it to the program once \
         with `sudo setcap cap_net_raw=ep {program}`"
    )]
    NoPermission {
        /// The interface.
        interface: String,
        /// The path of the running program.
        program: String,
    },
    /// The process lacks the capabilities for AF_XDP.
    #[error(
        "AF_XDP on `{interface}` needs the capabilities CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF: run as root, or grant \
         them to the program once with `sudo setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock=ep {program}` \
         (cap_ipc_lock lifts the limit of locked memory)"
    )]
    NoXdpPermission {
        /// The interface.
        interface: String,
        /// The path of the running program.
        program: String,
    },
    /// AF_XDP needs a newer kernel.
    #[error("AF_XDP on `{interface}` needs Linux 6.6 or newer, and this is Linux {version}: use AF_PACKET")]
    OldKernel {
        /// The interface.
        interface: String,
        /// The version of the running kernel.
        version: KernelVersion,
    },
    /// AF_XDP supports only Ethernet.
    #[error("AF_XDP supports only Ethernet, and `{interface}` is not an Ethernet interface: use AF_PACKET")]
    NotEthernet {
        /// The interface.
        interface: String,
    },
    /// Another XDP program is attached to the interface, which can have only one.
    #[error(
        "another XDP program is already attached to `{interface}` (see `ip link show {interface}`): detach it or use AF_PACKET"
    )]
    XdpInUse {
        /// The interface.
        interface: String,
    },
    /// AF_XDP needs a socket for each receive queue, but one source was requested.
    #[error(
        "`{interface}` has {queue_count} receive queues, and a collector can read only one through AF_XDP: \
         run `ethtool -L {interface} combined 1`, or use backend = \"af_packet\""
    )]
    SeveralQueues {
        /// The interface.
        interface: String,
        /// The number of queues.
        queue_count: u32,
    },
    /// The user may not lock as much memory as the frames need.
    #[error(
        "the frames of `{interface}` need {needed} of locked memory, more than this user may lock: raise the limit \
         (`ulimit -l`, LimitMEMLOCK= of systemd), or grant CAP_IPC_LOCK"
    )]
    LockedMemory {
        /// The interface.
        interface: String,
        /// The memory of all its queues together.
        needed: Bytes,
    },
    /// The interface's link type is not supported.
    #[error("`{interface}` has an unsupported link type (hardware type ARPHRD {hardware_type})")]
    UnsupportedLink {
        /// The interface.
        interface: String,
        /// The `ARPHRD_` number of if_arp.h.
        hardware_type: u16,
    },
    /// Before Linux 6.13, several threads cannot share an interface that is down.
    #[error("`{name}` is down: bring it up with `ip link set {name} up`, or use one thread (--threads 1)")]
    InterfaceDown {
        /// The interface.
        name: String,
    },
    /// The interface was deleted or moved to another network namespace during the capture.
    #[error("interface `{name}` was deleted or moved to another network namespace")]
    InterfaceGone {
        /// Its name when it was opened.
        name: String,
    },
    /// An option is out of range.
    #[error("{option} {value}: expected {expected}")]
    BadOption {
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
        /// The accepted values.
        expected: String,
    },
    /// The capture filter cannot be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A system call failed.
    #[error("`{interface}`: cannot {step}: {source}")]
    Kernel {
        /// The interface.
        interface: String,
        /// The failed step, worded to follow "cannot".
        step: &'static str,
        /// The system error.
        source: io::Error,
    },
}

impl LiveError {
    /// Converts the error of opening a packet socket.
    pub(crate) fn from_open(interface: &str, source: io::Error) -> LiveError {
        let interface = interface.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => LiveError::NoPermission { interface, program: program() },
            _ => LiveError::Kernel { interface, step: "open a packet socket", source },
        }
    }
}

/// Returns the path of the running program, for a command in a message.
pub(crate) fn program() -> String {
    std::env::current_exe().map_or_else(|_| "PROGRAM".to_owned(), |path| path.display().to_string())
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}
