//! Loads programs and maps from an object file that clang compiled for the target `bpf`.
//!
//! Supports programs of one function with maps declared in the section `.maps`, and constants in `.rodata`, which can be
//! set before the verifier sees them. Functions that are not inlined and variables are rejected with the name of the symbol. Accesses to kernel structures (CO-RE) are relocated, calls of kernel
//! functions for [congestion controls](super::congestion_control) only.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd as _;

use thiserror::Error;

use super::btf;
use super::elf::{Elf, Relocation, Symbol};
use super::instruction::Instruction;
use super::kernel_types;
use super::map::{AnyMap, MapKind, MapSpec};
use super::program::{LoadError, Program, ProgramKind};

/// The section of map declarations.
const MAPS: &str = ".maps";

/// The section of constants, and the map that holds them.
const CONSTANTS: &str = ".rodata";

/// BPF_F_RDONLY_PROG of linux/bpf.h: programs do not write the map.
const FLAG_READ_ONLY: u32 = 1 << 7;

/// R_BPF_64_64: an address, which spans two instructions.
const RELOCATE_ADDRESS: u32 = 1;

/// BPF_LD | BPF_IMM | BPF_DW: loads an address; with source register 1 (BPF_PSEUDO_MAP_FD) the address of a map, given
/// by its descriptor.
const LOAD_ADDRESS: u8 = 0x18;
const MAP_BY_DESCRIPTOR: u8 = 1;

/// Source register 2 (BPF_PSEUDO_MAP_VALUE): the address of a byte in the first value of a map.
const VALUE_BY_DESCRIPTOR: u8 = 2;

/// A parsed object file.
#[derive(Debug)]
pub struct Object<'a> {
    pub(super) elf: Elf<'a>,
    maps: BTreeMap<String, MapSpec>,
    /// The contents of the section of constants, if there is one.
    constants: Option<Vec<u8>>,
    pub(super) licence: &'a str,
}

/// The maps of an object file by name. Programs that are loaded with the same maps share them.
pub type Maps = BTreeMap<String, AnyMap>;

/// A loaded object file: the program and its maps.
#[derive(Debug)]
pub struct Loaded {
    /// The program.
    pub program: Program,
    /// All maps of the object file, by name.
    pub maps: Maps,
}

/// A program before relocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrelocated<'a> {
    /// The instructions.
    pub instructions: Vec<Instruction>,
    /// Functions and maps, by the position of the instruction that refers to them.
    pub symbols: BTreeMap<usize, &'a str>,
}

/// The reason why an object file cannot be parsed or loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The file is malformed.
    #[error("invalid object file: {0}")]
    Malformed(&'static str),
    /// The program does not exist.
    #[error("the object file has no program {name:?}")]
    NoProgram {
        /// The program.
        name: String,
    },
    /// The map does not exist.
    #[error("the object file has no map {name:?}")]
    NoMap {
        /// The map.
        name: String,
    },
    /// The program needs a relocation that this loader does not support.
    #[error(
        "program {program:?} needs relocation {kind} for {symbol:?}: only addresses of maps and constants are supported"
    )]
    Relocation {
        /// The program.
        program: String,
        /// The symbol.
        symbol: String,
        /// The relocation type.
        kind: u32,
    },
    /// The running kernel lacks something that the program needs.
    #[error("the running kernel has no {what}")]
    Kernel {
        /// The missing structure, member or function.
        what: String,
    },
    /// The constants have another length than those of the object file.
    #[error("{found} bytes of constants: the object file has {expected}")]
    Constants {
        /// The length in the object file.
        expected: usize,
        /// The given length.
        found: usize,
    },
    /// A map cannot be created.
    #[error("cannot create map {name:?}: {source}")]
    Map {
        /// The map.
        name: String,
        /// The error of the kernel.
        source: std::io::Error,
    },
    /// The program cannot be loaded.
    #[error("cannot load program {name:?}: {source}")]
    Program {
        /// The program.
        name: String,
        /// The error of the kernel.
        source: LoadError,
    },
}

impl<'a> Object<'a> {
    /// Parses an object file.
    ///
    /// # Errors
    /// If it is not an eBPF object file, or a map declaration is not supported.
    pub fn read(file: &'a [u8]) -> Result<Object<'a>, ObjectError> {
        let elf = Elf::read(file).map_err(ObjectError::Malformed)?;
        let maps = match elf.section(".BTF") {
            Some(types) => {
                btf::maps(types).ok_or(ObjectError::Malformed("unsupported map declaration in BTF"))?
            }
            None => Vec::new(),
        };
        let licence = elf.section("license").unwrap_or_default();
        let licence = licence.split(|&byte| byte == 0).next().unwrap_or_default();
        let licence =
            std::str::from_utf8(licence).map_err(|_| ObjectError::Malformed("licence is not UTF-8"))?;
        let constants = elf.section(CONSTANTS).map(<[u8]>::to_vec);
        Ok(Object { elf, maps: maps.into_iter().collect(), constants, licence })
    }

    /// Returns the declared maps by name.
    pub fn maps(&self) -> impl Iterator<Item = (&str, MapSpec)> {
        self.maps.iter().map(|(name, spec)| (name.as_str(), *spec))
    }

    /// Overrides the maximum number of entries of a map.
    ///
    /// # Errors
    /// If the map does not exist.
    pub fn set_max_entries(&mut self, map: &str, max_entries: u32) -> Result<(), ObjectError> {
        let spec = self.maps.get_mut(map).ok_or_else(|| ObjectError::NoMap { name: map.to_owned() })?;
        spec.max_entries = max_entries;
        Ok(())
    }

    /// Overrides the length of the values of a map.
    ///
    /// # Errors
    /// If the map does not exist.
    pub fn set_value_size(&mut self, map: &str, bytes: u32) -> Result<(), ObjectError> {
        let spec = self.maps.get_mut(map).ok_or_else(|| ObjectError::NoMap { name: map.to_owned() })?;
        spec.value_size = bytes;
        Ok(())
    }

    /// Sets the constants of the programs. The verifier knows them, and removes what they make unreachable.
    ///
    /// # Errors
    /// If they have another length than in the object file.
    pub fn set_constants(&mut self, bytes: &[u8]) -> Result<(), ObjectError> {
        let expected = self.constants.as_ref().map_or(0, Vec::len);
        if expected != bytes.len() {
            return Err(ObjectError::Constants { expected, found: bytes.len() });
        }
        self.constants = Some(bytes.to_vec());
        Ok(())
    }

    /// Creates all maps, and loads the program of this name.
    ///
    /// # Errors
    /// If the program does not exist or needs an unsupported relocation, or the kernel rejects it or a map.
    pub fn load(&self, program: &str, kind: ProgramKind) -> Result<Loaded, ObjectError> {
        self.instructions(program)?;
        let maps = self.create_maps()?;
        Ok(Loaded { program: self.load_with(program, kind, &maps)?, maps })
    }

    /// Creates all maps.
    ///
    /// # Errors
    /// If the kernel rejects a map.
    pub fn create_maps(&self) -> Result<Maps, ObjectError> {
        let mut maps = BTreeMap::new();
        for (name, spec) in &self.maps {
            let map = AnyMap::create(name, *spec);
            let map = map.map_err(|source| ObjectError::Map { name: name.clone(), source })?;
            maps.insert(name.clone(), map);
        }
        if let Some(constants) = &self.constants {
            let map = constants_map(constants);
            let map = map.map_err(|source| ObjectError::Map { name: CONSTANTS.to_owned(), source })?;
            maps.insert(CONSTANTS.to_owned(), map);
        }
        Ok(maps)
    }

    /// Loads the program of this name with maps of [`create_maps`](Self::create_maps).
    ///
    /// # Errors
    /// If the program does not exist or needs an unsupported relocation, or the kernel rejects it.
    pub fn load_with(&self, program: &str, kind: ProgramKind, maps: &Maps) -> Result<Program, ObjectError> {
        let (mut instructions, relocations) = self.instructions(program)?;
        for relocation in &relocations {
            self.patch(program, &mut instructions, relocation, maps)?;
        }
        kernel_types::relocate_members(self, program, &mut instructions)?;
        let loaded = Program::load(kind, program, self.licence, &instructions);
        loaded.map_err(|source| ObjectError::Program { name: program.to_owned(), source })
    }

    /// Returns a program before relocation, for analysis: accesses to members of structures have the offsets that these
    /// have in the object file.
    ///
    /// # Errors
    /// If the program does not exist.
    pub fn unrelocated(&self, program: &str) -> Result<Unrelocated<'a>, ObjectError> {
        let (instructions, relocations) = self.instructions(program)?;
        let symbol = |it: Relocation<'a>| (it.offset / Instruction::LENGTH, it.symbol.name);
        Ok(Unrelocated { instructions, symbols: relocations.into_iter().map(symbol).collect() })
    }

    /// Returns the instructions of a program before relocation, and its relocations.
    pub(super) fn instructions(
        &self,
        program: &str,
    ) -> Result<(Vec<Instruction>, Vec<Relocation<'a>>), ObjectError> {
        let function = self.elf.function(program);
        let (bytes, relocations) =
            function.ok_or_else(|| ObjectError::NoProgram { name: program.to_owned() })?;
        if bytes.len() % Instruction::LENGTH != 0 {
            return Err(ObjectError::Malformed("program length is not a multiple of the instruction length"));
        }
        let read = |bytes: &[u8]| Instruction::read(bytes.first_chunk().expect("a whole instruction"));
        Ok((bytes.chunks_exact(Instruction::LENGTH).map(read).collect(), relocations))
    }

    /// Applies a relocation: writes the descriptor of a map in place of its address.
    fn patch(
        &self,
        program: &str,
        instructions: &mut [Instruction],
        relocation: &Relocation<'_>,
        maps: &BTreeMap<String, AnyMap>,
    ) -> Result<(), ObjectError> {
        let Relocation { offset, kind, symbol } = *relocation;
        let unknown =
            || ObjectError::Relocation { program: program.to_owned(), symbol: symbol.name.to_owned(), kind };
        let map = self.map_at(&symbol, maps).filter(|_| kind == RELOCATE_ADDRESS).ok_or_else(unknown)?;
        let first = offset / Instruction::LENGTH;
        let Some([instruction, next]) = instructions.get_mut(first..first + 2) else {
            return Err(ObjectError::Malformed("relocation beyond the program"));
        };
        if instruction.code != LOAD_ADDRESS {
            return Err(ObjectError::Malformed("relocation of an instruction that loads no address"));
        }
        if self.elf.is_in(&symbol, CONSTANTS) {
            instruction.set_source(VALUE_BY_DESCRIPTOR);
            next.immediate = instruction.immediate.wrapping_add(symbol.offset() as i32);
        } else {
            instruction.set_source(MAP_BY_DESCRIPTOR);
        }
        instruction.immediate = map.as_raw_fd();
        Ok(())
    }

    fn map_at<'m>(&self, symbol: &Symbol<'_>, maps: &'m BTreeMap<String, AnyMap>) -> Option<&'m AnyMap> {
        match self.elf.is_in(symbol, CONSTANTS) {
            true => maps.get(CONSTANTS),
            false => self.elf.is_in(symbol, MAPS).then(|| maps.get(symbol.name)).flatten(),
        }
    }
}

/// Creates the map of constants. Nobody can change it any longer.
fn constants_map(bytes: &[u8]) -> std::io::Result<AnyMap> {
    let spec = MapSpec {
        kind: MapKind::Array,
        key_size: 4,
        value_size: bytes.len() as u32,
        max_entries: 1,
        flags: FLAG_READ_ONLY,
    };
    let map = AnyMap::create(CONSTANTS, spec)?;
    map.set_first(bytes)?;
    map.freeze()?;
    Ok(map)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bpf::MapKind;

    /// Compiled by clang 14 from `testdata/counter.bpf.c`, which contains the command.
    const COUNTER: &[u8] = include_bytes!("testdata/counter.bpf.o");

    #[test]
    fn map_declarations_are_read_from_btf() {
        let object = Object::read(COUNTER).unwrap();
        let spec = |kind, key_size, value_size, max_entries, flags| MapSpec {
            kind,
            key_size,
            value_size,
            max_entries,
            flags,
        };
        let maps: Vec<_> = object.maps().collect();
        assert_eq!(
            maps,
            [
                ("by_length", spec(MapKind::Hash, 6, 24, 16, 1)),
                ("packets", spec(MapKind::PerCpuArray, 4, 8, 1, 0)),
            ]
        );
    }

    #[test]
    fn a_program_is_loaded_with_its_maps() {
        let mut object = Object::read(COUNTER).unwrap();
        object.set_max_entries("by_length", 99).unwrap();
        match object.load("count", ProgramKind::Xdp) {
            Err(ObjectError::Map { source, .. }) if source.raw_os_error() == Some(libc::EPERM) => {
                crate::skip::skip("needs CAP_BPF");
            }
            loaded => {
                let Loaded { program, maps } = loaded.unwrap();
                assert_eq!(maps["by_length"].spec().max_entries, 99);
                let mut found: Vec<String> = program.map_ids().unwrap().into_iter().map(name_of).collect();
                found.sort_unstable();
                assert_eq!(found, ["by_length", "packets"]);
            }
        }
    }

    fn name_of(id: u32) -> String {
        AnyMap::by_id(id).unwrap().name().to_owned()
    }

    #[test]
    fn errors_name_what_is_missing_or_unsupported() {
        let mut object = Object::read(COUNTER).unwrap();
        let message = |error: ObjectError| error.to_string();
        assert_eq!(
            message(object.set_max_entries("more", 1).unwrap_err()),
            "the object file has no map \"more\""
        );
        let error = object.load("forward", ProgramKind::Xdp).unwrap_err();
        assert_eq!(message(error), "the object file has no program \"forward\"");
        if let Err(error) = object.load("count_in_a_variable", ProgramKind::Xdp)
            && !matches!(error, ObjectError::Map { .. })
        {
            assert!(message(error).contains("needs relocation 1 for \"total\""));
        }
        for (file, reason) in [
            (&b""[..], "shorter than an ELF header"),
            (&[0; 64], "not a 64-bit ELF file"),
            (&COUNTER[..COUNTER.len() / 2], "section beyond the end of the file"),
        ] {
            let error = message(Object::read(file).unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_damaged_file_does_not_panic(
            place in 0..COUNTER.len(),
            byte in any::<u8>(),
            cut in 0..COUNTER.len(),
        ) {
            let mut file = COUNTER.to_vec();
            file[place] = byte;
            file.truncate(COUNTER.len() - cut / 8);
            if let Ok(object) = Object::read(&file) {
                let _ = object.elf.function("count");
            }
        }
    }
}
