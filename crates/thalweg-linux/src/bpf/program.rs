//! Programs: loaded, found again by number, attached.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use thiserror::Error;

use super::instruction::Instruction;
use super::syscall::{self, LoadRequest};

/// BPF_XDP of `enum bpf_attach_type`.
const ATTACH_TYPE_XDP: u32 = 37;

/// Room for what the verifier says of a program that it refuses.
const LOG_LENGTH: usize = 1 << 20;

/// Most lines of the end of the log that an error carries.
const LOG_LINES: usize = 12;

/// What a program is for (`enum bpf_prog_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// Frames that pass a queue of traffic control.
    Classifier,
    /// Frames where the driver receives them.
    Xdp,
}

/// A loaded program, which the kernel keeps as long as somebody has it open or it is attached.
#[derive(Debug)]
pub struct Program {
    descriptor: OwnedFd,
}

/// A program's attachment to an interface. Closed when dropped, which detaches it unless another process has the link too.
#[derive(Debug)]
pub struct Link {
    descriptor: OwnedFd,
}

/// Why a program could not be loaded.
#[derive(Debug, Error)]
pub struct LoadError {
    /// What the kernel said.
    pub source: io::Error,
    /// The last lines that the verifier wrote; empty if it never looked at the program.
    pub log: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if self.log.is_empty() { Ok(()) } else { write!(f, "; the verifier says:\n{}", self.log) }
    }
}

impl ProgramKind {
    const fn numbers(self) -> (u32, u32) {
        match self {
            ProgramKind::Classifier => (3, 0),
            ProgramKind::Xdp => (6, ATTACH_TYPE_XDP),
        }
    }
}

impl Program {
    /// Loads a program, of which the kernel tells `name` (its first 15 bytes) to those who ask.
    ///
    /// # Errors
    /// If this process may not, or the verifier refuses the program.
    pub fn load(
        kind: ProgramKind,
        name: &str,
        licence: &str,
        instructions: &[Instruction],
    ) -> Result<Program, LoadError> {
        let silent = |source: io::Error| LoadError { source, log: String::new() };
        let licence = CString::new(licence).map_err(|error| silent(error.into()))?;
        let (program_type, expected_attach_type) = kind.numbers();
        let request =
            LoadRequest { program_type, expected_attach_type, name, licence: &licence, instructions };
        match syscall::load_program(request, &mut []) {
            Ok(descriptor) => Ok(Program { descriptor }),
            // The verifier never saw it; what it refuses, it refuses with another error.
            Err(source) if source.raw_os_error() == Some(libc::EPERM) => Err(silent(source)),
            // Once more, for the reason.
            Err(source) => {
                let mut log = vec![0; LOG_LENGTH];
                match syscall::load_program(request, &mut log) {
                    Ok(descriptor) => Ok(Program { descriptor }),
                    Err(_) => Err(LoadError { source, log: last_lines(&log) }),
                }
            }
        }
    }

    /// Opens the program that has this number in the kernel.
    ///
    /// # Errors
    /// If there is none, or this process may not.
    pub fn by_id(id: u32) -> io::Result<Program> {
        Ok(Program { descriptor: syscall::program_by_id(id)? })
    }

    /// The numbers of the maps that it uses, for [`AnyMap::by_id`](super::AnyMap::by_id).
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn map_ids(&self) -> io::Result<Vec<u32>> {
        syscall::maps_of_program(&self.descriptor)
    }

    /// Attaches an XDP program to an interface, for as long as the link is open, in this process or another. `flags` are
    /// `XDP_FLAGS_` of if_link.h. Linux 5.9.
    ///
    /// # Errors
    /// If the interface has another program, its driver takes none, or this process may not.
    pub fn attach_xdp(&self, interface: i32, flags: u32) -> io::Result<Link> {
        Ok(Link { descriptor: syscall::create_link(&self.descriptor, interface, ATTACH_TYPE_XDP, flags)? })
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Link {
    /// Detaches the program at once, though another process may have the link open as well.
    ///
    /// # Errors
    /// If this process may not.
    pub fn detach(&self) -> io::Result<()> {
        syscall::detach_link(&self.descriptor)
    }
}

/// The end of what the verifier wrote.
fn last_lines(log: &[u8]) -> String {
    let text = log.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `r0 = 2; exit`: XDP_PASS, and TC_ACT_SHOT.
    const RETURN_2: [Instruction; 2] = [
        Instruction { code: 0xb7, registers: 0, offset: 0, immediate: 2 },
        Instruction { code: 0x95, registers: 0, offset: 0, immediate: 0 },
    ];

    #[test]
    fn a_program_is_loaded_or_the_verifier_says_why_not() {
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
