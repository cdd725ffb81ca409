//! Congestion controls for the hosts of a lab, as eBPF, because few kernels have their modules.
//!
//! The programs (`tcp/h_tcp.bpf.c`, `tcp/dctcp.bpf.c`) are registered with the kernel under names of their own. Every network
//! namespace has them, and only connections that ask for one by name use it. It ends with the process that registered it.
//! The namespaces of an emulated lab's hosts keep one as their default ([`HostTcp`]).

mod hosts;

use thalweg_linux::bpf::{CongestionControl, CongestionControlError, Object, ObjectError};

use crate::error::LabError;

pub use hosts::HostTcp;
pub(crate) use hosts::ProvidedTcp;

/// Returns the object that `scripts/bpf.sh` compiled; empty if this byte order is not supported.
macro_rules! object {
    ($file:literal) => {{
        #[cfg(target_endian = "little")]
        static OBJECT: &[u8] = include_bytes!($file);
        #[cfg(not(target_endian = "little"))]
        static OBJECT: &[u8] = &[];
        OBJECT
    }};
}

/// The number of further names to try if others have registered one: 15 bytes are the maximum.
const MORE_NAMES: u32 = 99;

/// A congestion control for a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// H-TCP (Leith and Shorten, draft-leith-tcp-htcp-06).
    HTcp,
    /// DCTCP (RFC 8257). Both ends need `net.ipv4.tcp_ecn = 1`: otherwise ECN is not negotiated.
    Dctcp,
}

/// A congestion control, registered with the kernel until it is dropped. Connections that use it keep it until they close.
#[derive(Debug)]
pub struct LabTcp {
    registered: CongestionControl,
}

impl Algorithm {
    const fn name(self) -> &'static str {
        match self {
            Algorithm::HTcp => "thalweg_htcp",
            Algorithm::Dctcp => "thalweg_dctcp",
        }
    }

    const fn is_for_ecn(self) -> bool {
        matches!(self, Algorithm::Dctcp)
    }

    /// Returns the members of `struct tcp_congestion_ops`, and their programs.
    pub const fn operations(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Algorithm::HTcp => &[
                ("init", "h_tcp_init"),
                ("pkts_acked", "h_tcp_pkts_acked"),
                ("cong_avoid", "h_tcp_cong_avoid"),
                ("ssthresh", "h_tcp_ssthresh"),
                ("set_state", "h_tcp_set_state"),
                ("undo_cwnd", "h_tcp_undo_cwnd"),
            ],
            Algorithm::Dctcp => &[
                ("init", "dctcp_init"),
                ("in_ack_event", "dctcp_in_ack_event"),
                ("cong_avoid", "dctcp_cong_avoid"),
                ("ssthresh", "dctcp_ssthresh"),
                ("set_state", "dctcp_set_state"),
                ("cwnd_event", "dctcp_cwnd_event"),
                ("undo_cwnd", "dctcp_undo_cwnd"),
            ],
        }
    }

    /// Returns the object file with the programs.
    ///
    /// # Errors
    /// If it is malformed, or this byte order is not supported.
    pub fn object(self) -> Result<Object<'static>, ObjectError> {
        Object::read(match self {
            Algorithm::HTcp => object!("h_tcp.bpf.o"),
            Algorithm::Dctcp => object!("dctcp.bpf.o"),
        })
    }
}

impl LabTcp {
    /// Registers a congestion control. If another process has registered it, this one gets another name: that process may
    /// end first.
    ///
    /// # Errors
    /// If the process is not root, or the kernel does not support congestion controls in eBPF.
    pub fn register(algorithm: Algorithm) -> Result<LabTcp, LabError> {
        if !nix::unistd::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        if cfg!(not(target_endian = "little")) {
            return Err(LabError::NoSwitchProgram);
        }
        let base = algorithm.name();
        let operation = format!("register {base}");
        let failed = |error: CongestionControlError| LabError::ebpf(&operation, error);
        let object = algorithm.object().map_err(|error| failed(error.into()))?;
        for number in 0..=MORE_NAMES {
            let name = match number {
                0 => base.to_owned(),
                _ => format!("{base}{number}"),
            };
            match CongestionControl::register(&object, &name, algorithm.operations(), algorithm.is_for_ecn())
            {
                Err(CongestionControlError::Exists { .. }) => {}
                registered => return Ok(LabTcp { registered: registered.map_err(failed)? }),
            }
        }
        Err(LabError::ebpf(&operation, format!("{base} to {base}{MORE_NAMES} exist already")))
    }

    /// The name, for `iperf3 --congestion` and the socket option TCP_CONGESTION.
    pub fn name(&self) -> &str {
        self.registered.name()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    fn available() -> String {
        fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap()
    }

    #[test]
    fn they_are_registered_until_they_are_dropped_and_twice_under_two_names() {
        for algorithm in [Algorithm::HTcp, Algorithm::Dctcp] {
            let one = match LabTcp::register(algorithm) {
                Err(LabError::NotRoot) => {
                    let _ = std::io::stderr().write_all(b"skipped: congestion controls in eBPF need root\n");
                    return;
                }
                registered => registered.unwrap(),
            };
            let other = LabTcp::register(algorithm).unwrap();
            assert_ne!(one.name(), other.name());
            let names = [one.name().to_owned(), other.name().to_owned()];
            let has = |name: &String| available().split_whitespace().any(|it| it == name);
            assert!(names.iter().all(has), "{names:?}: {}", available());
            drop((one, other));
            assert!(!names.iter().any(has), "{names:?}: {}", available());
        }
    }
}
