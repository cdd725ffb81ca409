//! H-TCP for the hosts of a lab, as eBPF, because few kernels have its module.
//!
//! The programs (`h_tcp/h_tcp.bpf.c`) are registered with the kernel under a name of their own. Every network namespace has
//! it, and only connections that ask for it by name use it. It ends with the process that registered it.

use thalweg_linux::bpf::{CongestionControl, CongestionControlError, Object};

use crate::error::LabError;

/// The object that `scripts/bpf.sh` compiled from `h_tcp.bpf.c`; empty if this byte order is not supported.
#[cfg(target_endian = "little")]
static OBJECT: &[u8] = include_bytes!("h_tcp.bpf.o");
#[cfg(not(target_endian = "little"))]
static OBJECT: &[u8] = &[];

/// The name, and the number of further names to try if others have registered it: 15 bytes are the maximum.
const NAME: &str = "thalweg_htcp";
const MORE_NAMES: u32 = 99;

/// Members of `struct tcp_congestion_ops`, and their programs.
pub const OPERATIONS: [(&str, &str); 6] = [
    ("init", "h_tcp_init"),
    ("pkts_acked", "h_tcp_pkts_acked"),
    ("cong_avoid", "h_tcp_cong_avoid"),
    ("ssthresh", "h_tcp_ssthresh"),
    ("set_state", "h_tcp_set_state"),
    ("undo_cwnd", "h_tcp_undo_cwnd"),
];

/// H-TCP, registered with the kernel until it is dropped. Connections that use it keep it until they close.
#[derive(Debug)]
pub struct HTcp {
    registered: CongestionControl,
}

impl HTcp {
    /// Registers H-TCP. If another process has registered it, this one gets another name: that process may end first.
    ///
    /// # Errors
    /// If the process is not root, or the kernel does not support congestion controls in eBPF.
    pub fn register() -> Result<HTcp, LabError> {
        if !nix::unistd::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        if OBJECT.is_empty() {
            return Err(LabError::NoSwitchProgram);
        }
        let failed = |error: CongestionControlError| LabError::ebpf("register H-TCP", error);
        let object = object().map_err(|error| failed(error.into()))?;
        for number in 0..=MORE_NAMES {
            let name = match number {
                0 => NAME.to_owned(),
                _ => format!("{NAME}{number}"),
            };
            match CongestionControl::register(&object, &name, &OPERATIONS) {
                Err(CongestionControlError::Exists { .. }) => {}
                registered => return Ok(HTcp { registered: registered.map_err(failed)? }),
            }
        }
        Err(LabError::ebpf("register H-TCP", format!("{NAME} to {NAME}{MORE_NAMES} exist already")))
    }

    /// The name, for `iperf3 --congestion` and the socket option TCP_CONGESTION.
    pub fn name(&self) -> &str {
        self.registered.name()
    }
}

/// Returns the object file.
///
/// # Errors
/// If it is malformed, or this byte order is not supported.
pub fn object() -> Result<Object<'static>, thalweg_linux::bpf::ObjectError> {
    Object::read(OBJECT)
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
    fn it_is_registered_until_it_is_dropped_and_twice_under_two_names() {
        let one = match HTcp::register() {
            Err(LabError::NotRoot) => {
                let _ = std::io::stderr().write_all(b"skipped: H-TCP needs root\n");
                return;
            }
            registered => registered.unwrap(),
        };
        let other = HTcp::register().unwrap();
        assert_ne!(one.name(), other.name());
        let names = [one.name().to_owned(), other.name().to_owned()];
        let has = |name: &String| available().split_whitespace().any(|it| it == name);
        assert!(names.iter().all(has), "{names:?}: {}", available());
        drop((one, other));
        assert!(!names.iter().any(has), "{names:?}: {}", available());
    }
}
