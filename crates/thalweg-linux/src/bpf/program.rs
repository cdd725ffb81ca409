//! Loads, opens and attaches eBPF programs.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use thiserror::Error;

use super::instruction::Instruction;
use super::syscall::{self, LoadRequest};

/// BPF_XDP of `enum bpf_attach_type`.
const ATTACH_TYPE_XDP: u32 = 37;

/// BPF_TCX_INGRESS.
const ATTACH_TYPE_INGRESS: u32 = 46;

/// BPF_F_BEFORE, without another program: before all.
const FLAG_BEFORE: u32 = 1 << 3;

/// BPF_TCX_EGRESS.
const ATTACH_TYPE_EGRESS: u32 = 47;

/// BPF_F_XDP_HAS_FRAGS.
const FLAG_XDP_HAS_FRAGMENTS: u32 = 1 << 5;

/// The size of the verifier log buffer.
const LOG_LENGTH: usize = 1 << 20;

/// The number of last lines of the log in an error.
const LOG_LINES: usize = 12;

/// The type of a program (`enum bpf_prog_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// A traffic control classifier.
    Classifier,
    /// An XDP program, which runs in the driver's receive path.
    Xdp,
    /// An XDP program that also accepts frames in several buffers, such as jumbo frames (Linux 5.18).
    XdpMultiBuffer,
    /// An operation of a structure of the kernel (BPF_PROG_TYPE_STRUCT_OPS), by the number of the structure's type in the
    /// kernel and the position of the member.
    Operation(u32, u32),
}

/// A loaded program. The kernel keeps it while a process has it open or it is attached.
#[derive(Debug)]
pub struct Program {
    pub(super) descriptor: OwnedFd,
}

/// An attachment of a program to an interface. Dropping it detaches the program, unless another process has the link
/// open.
#[derive(Debug)]
pub struct Link {
    pub(super) descriptor: OwnedFd,
}

/// What a link attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTarget {
    /// The id of the program.
    pub program: u32,
    /// The index of the interface; `None` after the interface was removed or the program detached.
    pub interface: Option<u32>,
}

/// The reason why a program cannot be loaded.
#[derive(Debug, Error)]
pub struct LoadError {
    /// The error of the kernel.
    pub source: io::Error,
    /// The last lines of the verifier log; empty if the verifier did not run.
    pub log: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if self.log.is_empty() { Ok(()) } else { write!(f, "; verifier log:\n{}", self.log) }
    }
}

impl ProgramKind {
    /// Returns the program type, the expected attach type, the flags, and the number of the structure.
    const fn numbers(self) -> (u32, u32, u32, u32) {
        match self {
            ProgramKind::Classifier => (3, 0, 0, 0),
            ProgramKind::Xdp => (6, ATTACH_TYPE_XDP, 0, 0),
            ProgramKind::XdpMultiBuffer => (6, ATTACH_TYPE_XDP, FLAG_XDP_HAS_FRAGMENTS, 0),
            ProgramKind::Operation(structure, member) => (27, member, 0, structure),
        }
    }
}

impl Program {
    /// Loads a program. The kernel keeps the first 15 bytes of `name`.
    ///
    /// # Errors
    /// If this process lacks the privilege, or the verifier rejects the program.
    pub fn load(
        kind: ProgramKind,
        name: &str,
        licence: &str,
        instructions: &[Instruction],
    ) -> Result<Program, LoadError> {
        let without_log = |source: io::Error| LoadError { source, log: String::new() };
        let licence = CString::new(licence).map_err(|error| without_log(error.into()))?;
        let (program_type, expected_attach_type, flags, attach_type_id) = kind.numbers();
        let licence = licence.as_c_str();
        let request = LoadRequest {
            program_type,
            expected_attach_type,
            flags,
            attach_type_id,
            name,
            licence,
            instructions,
        };
        match syscall::load_program(request, &mut []) {
            Ok(descriptor) => Ok(Program { descriptor }),
            // EPERM means a missing privilege; the verifier rejects programs with other errors.
            Err(source) if source.raw_os_error() == Some(libc::EPERM) => Err(without_log(source)),
            // Load again with a log, for the reason.
            Err(source) => {
                let mut log = vec![0; LOG_LENGTH];
                match syscall::load_program(request, &mut log) {
                    Ok(descriptor) => Ok(Program { descriptor }),
                    Err(_) => Err(LoadError { source, log: last_lines(&log) }),
                }
            }
        }
    }

    /// Opens a program by its kernel id.
    ///
    /// # Errors
    /// If the program does not exist, or this process lacks the privilege.
    pub fn by_id(id: u32) -> io::Result<Program> {
        Ok(Program { descriptor: syscall::program_by_id(id)? })
    }

    /// Returns the ids of the maps that the program uses, for [`AnyMap::by_id`](super::AnyMap::by_id).
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn map_ids(&self) -> io::Result<Vec<u32>> {
        syscall::maps_of_program(&self.descriptor)
    }

    /// Attaches an XDP program to an interface while the link is open in any process. `flags` are `XDP_FLAGS_` of
    /// if_link.h. Requires Linux 5.9.
    ///
    /// # Errors
    /// If the interface has another program, its driver does not support XDP, or this process lacks the privilege.
    pub fn attach_xdp(&self, interface: i32, flags: u32) -> io::Result<Link> {
        Ok(Link { descriptor: syscall::create_link(&self.descriptor, interface, ATTACH_TYPE_XDP, flags)? })
    }

    /// The kernel's id.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn id(&self) -> io::Result<u32> {
        syscall::program_id(&self.descriptor)
    }

    /// Attaches a classifier to the ingress of an interface, while the link is open in any process. It runs before the programs
    /// that are attached already, and before the filters of tc(8). Requires Linux 6.6.
    ///
    /// # Errors
    /// If the interface does not exist, or this process lacks the privilege.
    pub fn attach_to_ingress(&self, interface: i32) -> io::Result<Link> {
        Ok(Link {
            descriptor: syscall::create_link(&self.descriptor, interface, ATTACH_TYPE_INGRESS, FLAG_BEFORE)?,
        })
    }

    /// Attaches a classifier to the egress of an interface, before the filters of tc(8) and the queue, while the link is open
    /// in any process. It runs after the programs that are attached already. Requires Linux 6.6.
    ///
    /// # Errors
    /// If the interface does not exist, or this process lacks the privilege.
    pub fn attach_to_egress(&self, interface: i32) -> io::Result<Link> {
        Ok(Link { descriptor: syscall::create_link(&self.descriptor, interface, ATTACH_TYPE_EGRESS, 0)? })
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Link {
    /// Returns what the link attaches, for links to interfaces.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn target(&self) -> io::Result<LinkTarget> {
        let info = syscall::link_info(&self.descriptor)?;
        let interface = Some(info.interface_index).filter(|&index| index != 0);
        Ok(LinkTarget { program: info.program, interface })
    }

    /// Detaches the program immediately, even if another process has the link open.
    ///
    /// # Errors
    /// If this process lacks the privilege.
    pub fn detach(&self) -> io::Result<()> {
        syscall::detach_link(&self.descriptor)
    }
}

/// Returns the last lines of the verifier log.
fn last_lines(log: &[u8]) -> String {
    let text = log.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `r0 = 2; exit`: XDP_PASS or TC_ACT_SHOT.
    const RETURN_2: [Instruction; 2] = [
        Instruction { code: 0xb7, registers: 0, offset: 0, immediate: 2 },
        Instruction { code: 0x95, registers: 0, offset: 0, immediate: 0 },
    ];

    #[test]
    fn a_rejected_program_returns_the_verifier_log() {
        let load = |instructions| Program::load(ProgramKind::Xdp, "a_test", "Apache-2.0", instructions);
        match load(&RETURN_2) {
            Err(error) if error.source.raw_os_error() == Some(libc::EPERM) => {
                return crate::skip::skip("needs CAP_BPF");
            }
            program => assert_eq!(program.unwrap().map_ids().unwrap(), [0; 0]),
        }
        let error = load(&RETURN_2[1..]).unwrap_err();
        assert!(error.to_string().contains("R0 !read_ok"), "{error}");
    }
}
