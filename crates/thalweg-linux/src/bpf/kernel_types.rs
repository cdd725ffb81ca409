//! Relocates programs to the structures and functions of the running kernel ("compile once, run everywhere").
//!
//! The compiler lists the accesses to members of kernel structures in `.BTF.ext`, each with the path of the member. The
//! loader looks up the same path by its names in the types of the running kernel, and patches the offset into the
//! instruction. Calls of kernel functions (`.ksyms`) get the number of the function.
//!
//! Supports offsets of members, also in anonymous members and arrays. Bit fields, existence checks and sizes are rejected.

use std::fs;
use std::io;

use super::btf::Types;
use super::elf::{u16_at, u32_at};
use super::instruction::Instruction;
use super::object::{Object, ObjectError};

/// The types of the running kernel.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";

/// R_BPF_64_32: the target of a call.
const RELOCATE_CALL: u32 = 10;

/// BPF_JMP | BPF_CALL; with source register 2 (BPF_PSEUDO_KFUNC_CALL) a call of a kernel function.
const CALL: u8 = 0x85;
const KERNEL_FUNCTION: u8 = 2;

/// BPF_CORE_FIELD_BYTE_OFFSET.
const MEMBER_OFFSET: u32 = 0;

/// Bytes of a relocation in `.BTF.ext`.
const RECORD: usize = 16;

/// Reads the types of the running kernel.
///
/// # Errors
/// If the kernel provides none (CONFIG_DEBUG_INFO_BTF).
pub(super) fn read_kernel() -> io::Result<Vec<u8>> {
    fs::read(KERNEL)
}

/// An access to a member of a kernel structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// The position of the instruction in the program.
    at: usize,
    /// The name of the structure.
    structure: String,
    path: Vec<Step>,
    /// The size of the member in the object file, in bytes.
    size: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(u32),
}

/// Returns the instructions of a program, relocated to the kernel with these types.
///
/// # Errors
/// If the kernel lacks a structure, member or function, or the object file needs something else.
pub(super) fn relocated(
    object: &Object<'_>,
    program: &str,
    kernel: &Types<'_>,
) -> Result<Vec<Instruction>, ObjectError> {
    let (mut instructions, relocations) = object.instructions(program)?;
    for relocation in relocations {
        let symbol = relocation.symbol.name;
        let refused = || ObjectError::Relocation {
            program: program.to_owned(),
            symbol: symbol.to_owned(),
            kind: relocation.kind,
        };
        let call = instructions.get_mut(relocation.offset / Instruction::LENGTH);
        let call = call.filter(|call| call.code == CALL && relocation.kind == RELOCATE_CALL);
        let call = call.ok_or_else(refused)?;
        let function = kernel.function(symbol);
        let function = function.ok_or_else(|| ObjectError::Kernel { what: format!("function {symbol}") })?;
        call.set_source(KERNEL_FUNCTION);
        (call.immediate, call.offset) = (function as i32, 0);
    }
    relocate_accesses(&accesses(object, program)?, &mut instructions, kernel)?;
    Ok(instructions)
}

/// Relocates the accesses of a program to members of kernel structures. Reads the types of the kernel only if it has some.
///
/// # Errors
/// If the kernel provides no types, or lacks a structure or member.
pub(super) fn relocate_members(
    object: &Object<'_>,
    program: &str,
    instructions: &mut [Instruction],
) -> Result<(), ObjectError> {
    let accesses = accesses(object, program)?;
    if accesses.is_empty() {
        return Ok(());
    }
    let types = read_kernel().map_err(|_| ObjectError::Kernel { what: format!("types in {KERNEL}") })?;
    let kernel = Types::read(&types).ok_or(ObjectError::Malformed("malformed types of the kernel"))?;
    relocate_accesses(&accesses, instructions, &kernel)
}

fn relocate_accesses(
    accesses: &[Access],
    instructions: &mut [Instruction],
    kernel: &Types<'_>,
) -> Result<(), ObjectError> {
    for access in accesses {
        let offset = access.offset_in(kernel);
        let offset = offset.ok_or_else(|| ObjectError::Kernel { what: access.to_string() })?;
        let instruction = instructions
            .get_mut(access.at)
            .ok_or(ObjectError::Malformed("relocation beyond the end of its program"))?;
        instruction
            .set_member_offset(offset)
            .ok_or(ObjectError::Malformed("relocation of another instruction"))?;
    }
    Ok(())
}

/// Returns the accesses of a program to members of kernel structures.
fn accesses(object: &Object<'_>, program: &str) -> Result<Vec<Access>, ObjectError> {
    let elf = &object.elf;
    let (Some(types), Some(extension)) = (elf.section(".BTF"), elf.section(".BTF.ext")) else {
        return Ok(Vec::new());
    };
    let (section, offset) =
        elf.place_of(program).ok_or_else(|| ObjectError::NoProgram { name: program.to_owned() })?;
    let length = object.instructions(program)?.0.len();
    let malformed = || ObjectError::Malformed("malformed or unsupported relocation in .BTF.ext");
    let types = Types::read(types).ok_or_else(malformed)?;
    let first = offset as usize / Instruction::LENGTH;
    let mut found = Vec::new();
    for record in records(extension, section, &types).ok_or_else(malformed)? {
        let at = u32_at(record, 0).ok_or_else(malformed)? as usize / Instruction::LENGTH;
        if (first..first + length).contains(&at) {
            found.push(Access::read(record, at - first, &types).ok_or_else(malformed)?);
        }
    }
    Ok(found)
}

/// Returns the records of relocations of a section.
fn records<'a>(extension: &'a [u8], section: &str, types: &Types<'_>) -> Option<Vec<&'a [u8]>> {
    let header = u32_at(extension, 4)? as usize;
    // A file without such relocations may have a shorter header.
    if u16_at(extension, 0)? != 0xeb9f || header < 32 {
        return (header < 32).then(Vec::new);
    }
    let start = header.checked_add(u32_at(extension, 24)? as usize)?;
    let part = extension.get(start..start.checked_add(u32_at(extension, 28)? as usize)?)?;
    if part.is_empty() {
        return Some(Vec::new());
    }
    if u32_at(part, 0)? as usize != RECORD {
        return None;
    }
    let (mut rest, mut found) = (&part[4..], Vec::new());
    while !rest.is_empty() {
        let (name, count) = (types.text(u32_at(rest, 0)?)?, u32_at(rest, 4)? as usize);
        let (own, others) = rest.get(8..)?.split_at_checked(count.checked_mul(RECORD)?)?;
        if name == section {
            found.extend(own.chunks_exact(RECORD));
        }
        rest = others;
    }
    Some(found)
}

impl Access {
    /// Parses a record, with the types of the object file.
    fn read(record: &[u8], at: usize, types: &Types<'_>) -> Option<Access> {
        let (structure, kind) = (u32_at(record, 4)?, u32_at(record, 12)?);
        let mut steps = types.text(u32_at(record, 8)?)?.split(':').map(str::parse::<u32>);
        // The first number is an index of the pointer as an array.
        if kind != MEMBER_OFFSET || steps.next()?.ok()? != 0 {
            return None;
        }
        let (mut current, mut path) = (structure, Vec::new());
        for step in steps {
            let step = step.ok()?;
            match types.element(current) {
                Some(element) => {
                    path.push(Step::Element(step));
                    current = element;
                }
                None => {
                    let member = types.nth(current, step)?;
                    // Those of an anonymous member are found without its name.
                    if !member.name.is_empty() {
                        path.push(Step::Member(member.name.to_owned()));
                    }
                    current = member.kind;
                }
            }
        }
        let structure = types.name_of(structure)?.to_owned();
        Some(Access { at, structure, path, size: types.size_of(current)? })
    }

    /// Returns the offset of the member in the kernel; `None` if the kernel has none of the same size.
    fn offset_in(&self, kernel: &Types<'_>) -> Option<u32> {
        let (mut current, mut offset) = (kernel.structure(&self.structure)?, 0);
        for step in &self.path {
            match step {
                Step::Member(name) => {
                    let member = kernel.member(current, name)?;
                    (current, offset) = (member.kind, offset + member.offset);
                }
                Step::Element(index) => {
                    current = kernel.element(current)?;
                    offset += index.checked_mul(kernel.size_of(current)?)?;
                }
            }
        }
        (kernel.size_of(current)? == self.size).then_some(offset)
    }
}

/// `structure tcp_sock with snd_cwnd of 4 bytes`
impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "structure {} with ", self.structure)?;
        for (number, step) in self.path.iter().enumerate() {
            match step {
                Step::Member(name) if number > 0 => write!(f, ".{name}")?,
                Step::Member(name) => write!(f, "{name}")?,
                Step::Element(index) => write!(f, "[{index}]")?,
            }
        }
        write!(f, " of {} bytes", self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structure for tests: name, size, and members with names, types and offsets in bits.
    type Structure<'a> = (&'a str, u32, &'a [(&'a str, u32, u32)]);

    /// Encodes structures as BTF.
    fn types(structures: &[Structure<'_>]) -> Vec<u8> {
        let mut texts = vec![0];
        let mut text = |name: &str| match name {
            "" => 0,
            _ => {
                let at = texts.len() as u32;
                texts.extend(name.as_bytes());
                texts.push(0);
                at
            }
        };
        // Type 1: an integer of four bytes. Type 2: an array of five of these.
        let mut words = vec![text("int"), 1 << 24, 4, 32];
        words.extend([0, 3 << 24, 0, 1, 1, 5]);
        for &(name, size, members) in structures {
            words.extend([text(name), 4 << 24 | members.len() as u32, size]);
            for &(name, kind, offset) in members {
                words.extend([text(name), kind, offset]);
            }
        }
        let length = 4 * words.len() as u32;
        let header = [24, 0, length, length, texts.len() as u32];
        let mut bytes = [0xeb9f_u16.to_ne_bytes(), [1, 0]].concat();
        bytes.extend(header.iter().chain(&words).flat_map(|word| word.to_ne_bytes()));
        bytes.extend(texts);
        bytes
    }

    fn access(steps: &[Step], size: u32) -> Access {
        Access { at: 0, structure: "socket".to_owned(), path: steps.to_vec(), size }
    }

    #[test]
    fn a_member_is_found_by_name_wherever_the_kernel_has_it() {
        let member = |name: &str| Step::Member(name.to_owned());
        // The second structure is an anonymous member of the first.
        let kernel = types(&[
            ("socket", 48, &[("new", 1, 0), ("", 4, 64), ("window", 1, 320)]),
            ("", 24, &[("limit", 1, 0), ("private", 2, 32)]),
        ]);
        let kernel = Types::read(&kernel).unwrap();
        let offset = |steps: &[Step], size| access(steps, size).offset_in(&kernel);
        assert_eq!(offset(&[member("window")], 4), Some(40));
        assert_eq!(offset(&[member("limit")], 4), Some(8));
        assert_eq!(offset(&[member("private")], 20), Some(12));
        assert_eq!(offset(&[member("private"), Step::Element(3)], 4), Some(24));
        assert_eq!(offset(&[member("window")], 8), None, "it has another size");
        assert_eq!(offset(&[member("missing")], 4), None);
        let text = access(&[member("private"), Step::Element(3)], 4).to_string();
        assert_eq!(text, "structure socket with private[3] of 4 bytes");
    }

    #[test]
    fn an_offset_fits_only_into_an_access() {
        let offset = |code| {
            let mut instruction = Instruction { code, ..Instruction::default() };
            let set = instruction.set_member_offset(40_000);
            set.map(|()| instruction.immediate)
        };
        // A 64-bit move; a load, whose offset has 16 bits; a jump.
        assert_eq!([offset(0xb7), offset(0x61), offset(0x05)], [Some(40_000), None, None]);
    }
}
