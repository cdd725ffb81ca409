//! eBPF: programs and maps by bpf(2), and programs from object files.
//!
//! | module | what it has |
//! |---|---|
//! | [`map`] | maps: made, found by number, read and written |
//! | [`program`] | programs: loaded, found by number, attached through a link |
//! | [`object`] | programs and maps from an object file that a compiler wrote |
//!
//! Needs CAP_BPF, and CAP_NET_ADMIN for programs that see packets; Linux 5.9 or newer for links.

mod btf;
mod elf;
mod instruction;
pub mod map;
pub mod object;
pub mod program;
mod syscall;

pub use instruction::Instruction;
pub use map::{AnyMap, Map, MapKind, MapShape, PerProcessorMap};
pub use object::{Object, ObjectError};
pub use program::{Link, LoadError, Program, ProgramKind};
