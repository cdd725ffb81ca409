//! TCP congestion controls in eBPF: a structure of operations (`struct tcp_congestion_ops`) whose members are programs.
//!
//! All network namespaces have it, as long as a process holds its link. When the last one ends, also by a crash, the kernel
//! unregisters it. Connections that use it keep it until they close, and a namespace whose default it is
//! (`net.ipv4.tcp_congestion_control`) keeps it for its later connections, until the namespace ends. Requires Linux 6.4, CAP_BPF and CAP_NET_ADMIN, and a
//! licence that is compatible with the GPL.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use thiserror::Error;

use super::btf::{self, Types};
use super::kernel_types;
use super::object::{Object, ObjectError};
use super::program::{Program, ProgramKind};
use super::syscall;

/// The structure of operations, and the value of its map, which contains it as `data`.
const OPERATIONS: &str = "tcp_congestion_ops";
const VALUE: &str = "bpf_struct_ops_tcp_congestion_ops";

/// The flag of a congestion control that everybody may use, also as the default of a namespace (`TCP_CONG_NON_RESTRICTED`).
const UNRESTRICTED: u32 = 1;

/// The flag of a congestion control whose connections negotiate ECN and whose packets are ECN-capable (`TCP_CONG_NEEDS_ECN`).
const NEEDS_ECN: u32 = 2;

/// The maximum length of a congestion control's name (`TCP_CA_NAME_MAX`, less the final NUL).
const MAX_NAME: usize = 15;

/// A registered congestion control. Dropping it unregisters it.
#[derive(Debug)]
pub struct CongestionControl {
    name: String,
    _link: OwnedFd,
    _map: OwnedFd,
    _programs: Vec<Program>,
}

/// The reason why a congestion control cannot be registered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CongestionControlError {
    /// The name is too long or empty.
    #[error("invalid name of a congestion control {name:?}: expected 1 to {MAX_NAME} ASCII characters")]
    Name {
        /// The name.
        name: String,
    },
    /// The kernel has one of this name already.
    #[error("the congestion control {name:?} exists already")]
    Exists {
        /// The name.
        name: String,
    },
    /// The types of the kernel cannot be read.
    #[error("cannot read the types of the running kernel: {0}")]
    Types(io::Error),
    /// A program cannot be parsed, relocated or loaded.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The kernel refuses the operations.
    #[error("cannot {operation} the congestion control: {source}")]
    Register {
        /// The operation.
        operation: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
}

impl CongestionControl {
    /// Loads the programs of an object file, and registers them under `name`. `operations` are pairs of a member of
    /// `struct tcp_congestion_ops` and the program for it. Everybody may use it. With `needs_ecn`, connections negotiate ECN if both ends allow it, and
    /// all their packets are ECN-capable.
    ///
    /// # Errors
    /// If a congestion control of this name exists, this process lacks the privilege, or the kernel rejects a program.
    pub fn register(
        object: &Object<'_>,
        name: &str,
        operations: &[(&str, &str)],
        needs_ecn: bool,
    ) -> Result<CongestionControl, CongestionControlError> {
        if name.is_empty() || name.len() > MAX_NAME || !name.is_ascii() {
            return Err(CongestionControlError::Name { name: name.to_owned() });
        }
        let types = kernel_types::read_kernel().map_err(CongestionControlError::Types)?;
        let kernel = Types::read(&types).ok_or(ObjectError::Malformed("malformed types of the kernel"))?;
        let lacks = |what: &str| ObjectError::Kernel { what: what.to_owned() };
        let structure = kernel.structure(OPERATIONS).ok_or_else(|| lacks("structure tcp_congestion_ops"))?;
        let value_type = kernel.structure(VALUE).ok_or_else(|| lacks("congestion controls in eBPF"))?;
        let data = kernel.member(value_type, "data").ok_or_else(|| lacks("congestion controls in eBPF"))?;
        let size = kernel.size_of(value_type).ok_or_else(|| lacks("congestion controls in eBPF"))?;

        let mut value = vec![0; size as usize];
        let mut write = |member: &str, bytes: &[u8]| {
            let member = kernel.member(structure, member);
            let at = member.map(|member| (data.offset + member.offset) as usize);
            let place = at.and_then(|at| value.get_mut(at..)?.get_mut(..bytes.len()));
            place.map(|place| place.copy_from_slice(bytes))
        };
        write("name", name.as_bytes()).ok_or_else(|| lacks("tcp_congestion_ops.name"))?;
        let flags = UNRESTRICTED | if needs_ecn { NEEDS_ECN } else { 0 };
        write("flags", &flags.to_ne_bytes()).ok_or_else(|| lacks("tcp_congestion_ops.flags"))?;
        let mut programs = Vec::with_capacity(operations.len());
        for &(member, program) in operations {
            let lacks_member = || lacks(&format!("{OPERATIONS}.{member}"));
            let place = kernel.member(structure, member).ok_or_else(lacks_member)?.place;
            let instructions = kernel_types::relocated(object, program, &kernel)?;
            let kind = ProgramKind::Operation(structure, place);
            let loaded = Program::load(kind, program, object.licence, &instructions);
            let loaded =
                loaded.map_err(|source| ObjectError::Program { name: program.to_owned(), source })?;
            // The kernel replaces the descriptor by the address of the program.
            let descriptor = loaded.as_fd().as_raw_fd() as u64;
            write(member, &descriptor.to_ne_bytes()).ok_or_else(lacks_member)?;
            programs.push(loaded);
        }
        let failed = |operation| move |source| CongestionControlError::Register { operation, source };
        let object_types = syscall::load_types(&btf::minimal()).map_err(failed("load types for"))?;
        let map = syscall::create_operations(name, size, value_type, &object_types);
        let map = map.map_err(failed("create"))?;
        syscall::update_operations(&map, &value).map_err(failed("load"))?;
        let link = syscall::create_operations_link(&map).map_err(|source| match source.raw_os_error() {
            Some(libc::EEXIST) => CongestionControlError::Exists { name: name.to_owned() },
            _ => failed("register")(source),
        })?;
        Ok(CongestionControl { name: name.to_owned(), _link: link, _map: map, _programs: programs })
    }

    /// The name, for the socket option TCP_CONGESTION.
    pub fn name(&self) -> &str {
        &self.name
    }
}
