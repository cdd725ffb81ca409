//! Programs and maps from an object file, as clang writes it for the target `bpf`.
//!
//! What is understood is what programs of one function with maps need: maps that are declared in the section `.maps`, and
//! their addresses in the program. Functions that are not inlined, global variables, and relocation to the running
//! kernel's structures (CO-RE) are refused by name.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd as _;

use thiserror::Error;

use super::btf;
use super::elf::{Elf, Relocation, Symbol};
use super::instruction::Instruction;
use super::map::{AnyMap, MapShape};
use super::program::{LoadError, Program, ProgramKind};

/// Section of the maps' declarations.
const MAPS: &str = ".maps";

/// R_BPF_64_64: an address, which takes two instructions.
const RELOCATE_ADDRESS: u32 = 1;

/// BPF_LD | BPF_IMM | BPF_DW: loads an address; with source register 1 (BPF_PSEUDO_MAP_FD) that of a map by its descriptor.
const LOAD_ADDRESS: u8 = 0x18;
const MAP_BY_DESCRIPTOR: u8 = 1;

/// An object file, read.
#[derive(Debug)]
pub struct Object<'a> {
    elf: Elf<'a>,
    maps: BTreeMap<String, MapShape>,
    licence: &'a str,
}

/// A loaded object file: the program and its maps.
#[derive(Debug)]
pub struct Loaded {
    /// The program.
    pub program: Program,
    /// All maps of the object file, by name.
    pub maps: BTreeMap<String, AnyMap>,
}

/// Why an object file could not be read or loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// It is not as a compiler writes them.
    #[error("the object file cannot be read: {0}")]
    Malformed(&'static str),
    /// It has no such program.
    #[error("the object file has no program {name:?}")]
    NoProgram {
        /// The program.
        name: String,
    },
    /// It has no such map.
    #[error("the object file has no map {name:?}")]
    NoMap {
        /// The map.
        name: String,
    },
    /// The program needs something of a loader that this one does not do.
    #[error(
        "the program {program:?} refers to {symbol:?} by relocation {kind}: only addresses of maps are known"
    )]
    Relocation {
        /// The program.
        program: String,
        /// What it refers to.
        symbol: String,
        /// The relocation's number.
        kind: u32,
    },
    /// A map could not be made.
    #[error("cannot make the map {name:?}: {source}")]
    Map {
        /// The map.
        name: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The program could not be loaded.
    #[error("cannot load the program {name:?}: {source}")]
    Program {
        /// The program.
        name: String,
        /// What the kernel said.
        source: LoadError,
    },
}

impl<'a> Object<'a> {
    /// Reads an object file.
    ///
    /// # Errors
    /// If it is none of eBPF, or its maps are declared in a way that is not understood.
    pub fn read(file: &'a [u8]) -> Result<Object<'a>, ObjectError> {
        let elf = Elf::read(file).map_err(ObjectError::Malformed)?;
        let maps = match elf.section(".BTF") {
            Some(types) => {
                btf::maps(types).ok_or(ObjectError::Malformed("its types (BTF) do not tell its maps"))?
            }
            None => Vec::new(),
        };
        let licence = elf.section("license").unwrap_or_default();
        let licence = licence.split(|&byte| byte == 0).next().unwrap_or_default();
        let licence =
            std::str::from_utf8(licence).map_err(|_| ObjectError::Malformed("its licence is no text"))?;
        Ok(Object { elf, maps: maps.into_iter().collect(), licence })
    }

    /// The maps that it declares, by name.
    pub fn maps(&self) -> impl Iterator<Item = (&str, MapShape)> {
        self.maps.iter().map(|(name, shape)| (name.as_str(), *shape))
    }

    /// Has a map made for so many entries, whatever its declaration says.
    ///
    /// # Errors
    /// If there is no such map.
    pub fn set_max_entries(&mut self, map: &str, max_entries: u32) -> Result<(), ObjectError> {
        let shape = self.maps.get_mut(map).ok_or_else(|| ObjectError::NoMap { name: map.to_owned() })?;
        shape.max_entries = max_entries;
        Ok(())
    }

    /// Makes all maps, and loads the program of this name.
    ///
    /// # Errors
    /// If there is no such program, it needs what is not understood, or the kernel refuses it or a map.
    pub fn load(&self, program: &str, kind: ProgramKind) -> Result<Loaded, ObjectError> {
        let function = self.elf.function(program);
        let (bytes, relocations) =
            function.ok_or_else(|| ObjectError::NoProgram { name: program.to_owned() })?;
        if bytes.len() % Instruction::LENGTH != 0 {
            return Err(ObjectError::Malformed("a program is no whole number of instructions"));
        }
        let mut maps = BTreeMap::new();
        for (name, shape) in &self.maps {
            let map = AnyMap::create(name, *shape);
            let map = map.map_err(|source| ObjectError::Map { name: name.clone(), source })?;
            maps.insert(name.clone(), map);
        }
        let read = |bytes: &[u8]| Instruction::read(bytes.first_chunk().expect("a whole instruction"));
        let mut instructions: Vec<Instruction> = bytes.chunks_exact(Instruction::LENGTH).map(read).collect();
        for relocation in &relocations {
            self.patch(program, &mut instructions, relocation, &maps)?;
        }
        let loaded = Program::load(kind, program, self.licence, &instructions);
        let error = |source| ObjectError::Program { name: program.to_owned(), source };
        Ok(Loaded { program: loaded.map_err(error)?, maps })
    }

    /// Writes the descriptor of a map where the program wants its address.
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
        let instruction = instructions.get_mut(offset / Instruction::LENGTH);
        let instruction = instruction.filter(|instruction| instruction.code == LOAD_ADDRESS);
        let instruction = instruction.ok_or(ObjectError::Malformed("a relocation is of no address"))?;
        instruction.set_source(MAP_BY_DESCRIPTOR);
        instruction.immediate = map.as_raw_fd();
        Ok(())
    }

    fn map_at<'m>(&self, symbol: &Symbol<'_>, maps: &'m BTreeMap<String, AnyMap>) -> Option<&'m AnyMap> {
        self.elf.is_in(symbol, MAPS).then(|| maps.get(symbol.name)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bpf::MapKind;

    /// Compiled by clang 14 from `testdata/counter.bpf.c`, which has the command.
    const COUNTER: &[u8] = include_bytes!("testdata/counter.bpf.o");

    #[test]
    fn maps_are_declared_in_the_types_of_the_object_file() {
        let object = Object::read(COUNTER).unwrap();
        let shape = |kind, key_size, value_size, max_entries, flags| MapShape {
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
                ("by_length", shape(MapKind::Hash, 6, 24, 16, 1)),
                ("packets", shape(MapKind::PerProcessorArray, 4, 8, 1, 0)),
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
                assert_eq!(maps["by_length"].shape().max_entries, 99);
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
    fn what_is_not_there_or_not_understood_is_named() {
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
            assert!(message(error).contains("refers to \"total\" by relocation 1"));
        }
        for (file, reason) in [
            (&b""[..], "shorter than the header"),
            (&[0; 64], "no ELF file"),
            (&COUNTER[..COUNTER.len() / 2], "sections are not where it says"),
        ] {
            let error = message(Object::read(file).unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_damaged_file_is_read_without_a_panic(
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
