//! eBPF: programs and maps by bpf(2), and a loader of object files.
//!
//! | module | contents |
//! |---|---|
//! | [`map`] | creates, opens, reads and writes maps |
//! | [`mapped_array`] | reads an array in shared memory, without system calls |
//! | [`mapped_region`] | reads and writes an array of large values in shared memory |
//! | [`program`] | loads, opens and attaches programs |
//! | [`object`] | loads programs and maps from a compiled object file |
//! | [`pin`] | maps, programs and links that outlive their process |
//! | [`test_run`] | runs a program on a frame, for tests |
//! | [`congestion_control`] | registers a TCP congestion control that an object file contains |
//! | `kernel_types` | relocates an object file to the structures and functions of the running kernel |
//!
//! Requires CAP_BPF, CAP_NET_ADMIN for programs that process packets, and Linux 5.9 for links.

mod btf;
pub mod congestion_control;
mod elf;
mod instruction;
mod kernel_types;
pub mod map;
pub mod mapped_array;
pub mod mapped_region;
pub mod object;
pub mod pin;
pub mod program;
mod syscall;
pub mod test_run;

pub use congestion_control::{CongestionControl, CongestionControlError};
pub use instruction::Instruction;
pub use map::{AnyMap, Map, MapKind, MapSpec, PerCpuMap};
pub use mapped_array::MappedArray;
pub use mapped_region::MappedRegion;
pub use object::{Maps, Object, ObjectError};
pub use program::{Link, LinkTarget, LoadError, Program, ProgramKind};
pub use test_run::TestRun;
