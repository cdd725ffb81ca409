//! Map declarations in the type information of an object file (BTF; the kernel's `Documentation/bpf/btf.rst`).
//!
//! A map is a variable in the section `.maps` whose type is a structure. The members of the structure are pointers. A
//! pointer to an array encodes a number, the length of the array; any other pointer encodes a type.

use super::elf::{text_at, u16_at, u32_at};
use super::map::{MapKind, MapSpec};

/// The first two bytes, in the byte order of the file.
const MAGIC: u16 = 0xeb9f;

/// Kinds of types (`BTF_KIND_`).
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const VARIABLE: u32 = 14;
const DATA_SECTION: u32 = 15;

/// The maximum depth of typedefs and nested arrays.
const MAX_DEPTH: usize = 32;

/// All types by number; number 0 is `void`.
struct Types<'a> {
    types: Vec<Type<'a>>,
    texts: &'a [u8],
}

#[derive(Clone, Copy)]
struct Type<'a> {
    name: u32,
    kind: u32,
    /// The size, or the number of the referenced type, depending on the kind.
    size_or_type: u32,
    /// The data after the header: members or array properties.
    rest: &'a [u8],
}

/// Returns the maps declared in the section `.maps` by name; `None` if the BTF is malformed.
pub(super) fn maps(btf: &[u8]) -> Option<Vec<(String, MapSpec)>> {
    let types = Types::read(btf)?;
    let is_maps = |of: &&Type<'_>| of.kind == DATA_SECTION && types.name(of) == Some(".maps");
    let Some(section) = types.types.iter().find(is_maps) else { return Some(Vec::new()) };
    section.rest.chunks_exact(12).map(|entry| types.map(u32_at(entry, 0)?)).collect()
}

impl<'a> Types<'a> {
    fn read(btf: &'a [u8]) -> Option<Types<'a>> {
        if u16_at(btf, 0)? != MAGIC {
            return None;
        }
        let part = |offset: usize| {
            let start = (u32_at(btf, 4)? as usize).checked_add(u32_at(btf, offset)? as usize)?;
            btf.get(start..start.checked_add(u32_at(btf, offset + 4)? as usize)?)
        };
        let (mut bytes, texts) = (part(8)?, part(16)?);
        let mut types = vec![Type { name: 0, kind: 0, size_or_type: 0, rest: &[] }];
        while !bytes.is_empty() {
            let info = u32_at(bytes, 4)?;
            let (count, kind) = ((info & 0xffff) as usize, info >> 24 & 0x1f);
            let length = 12 + rest_length(kind, count)?;
            let rest = bytes.get(12..length)?;
            types.push(Type { name: u32_at(bytes, 0)?, kind, size_or_type: u32_at(bytes, 8)?, rest });
            bytes = &bytes[length..];
        }
        Some(Types { types, texts })
    }

    fn get(&self, number: u32) -> Option<Type<'a>> {
        self.types.get(number as usize).copied()
    }

    fn name(&self, of: &Type<'_>) -> Option<&'a str> {
        text_at(self.texts, of.name)
    }

    /// Returns the map that a variable declares.
    fn map(&self, variable: u32) -> Option<(String, MapSpec)> {
        let variable = self.get(variable).filter(|variable| variable.kind == VARIABLE)?;
        let declared = self.resolve(variable.size_or_type)?;
        if declared.kind != STRUCT {
            return None;
        }
        let mut spec =
            MapSpec { kind: MapKind::Other(0), key_size: 0, value_size: 0, max_entries: 0, flags: 0 };
        for member in declared.rest.chunks_exact(12) {
            let pointer = self.resolve(u32_at(member, 4)?)?;
            let (name, to) = (text_at(self.texts, u32_at(member, 0)?)?, pointer.size_or_type);
            if pointer.kind != POINTER {
                return None;
            }
            match name {
                "type" => spec.kind = MapKind::from_number(self.number(to)?),
                "max_entries" => spec.max_entries = self.number(to)?,
                "map_flags" => spec.flags = self.number(to)?,
                "key_size" => spec.key_size = self.number(to)?,
                "value_size" => spec.value_size = self.number(to)?,
                "key" => spec.key_size = self.size(to, MAX_DEPTH)?,
                "value" => spec.value_size = self.size(to, MAX_DEPTH)?,
                _ => return None,
            }
        }
        Some((self.name(&variable)?.to_owned(), spec))
    }

    /// Returns the number that the length of an array encodes.
    fn number(&self, array: u32) -> Option<u32> {
        let array = self.resolve(array).filter(|array| array.kind == ARRAY)?;
        u32_at(array.rest, 8)
    }

    /// Returns the size of a type in bytes.
    fn size(&self, number: u32, depth: usize) -> Option<u32> {
        let found = self.resolve(number)?;
        match found.kind {
            POINTER => Some(8),
            ARRAY => {
                let of_one = self.size(u32_at(found.rest, 0)?, depth.checked_sub(1)?)?;
                of_one.checked_mul(u32_at(found.rest, 8)?)
            }
            // Integers, structures, unions, enumerations, floating-point numbers.
            1 | 4 | 5 | 6 | 16 | 19 => Some(found.size_or_type),
            _ => None,
        }
    }

    /// Resolves typedefs, qualifiers and tags of a type.
    fn resolve(&self, mut number: u32) -> Option<Type<'a>> {
        for _ in 0..MAX_DEPTH {
            let found = self.get(number)?;
            match found.kind {
                8..=11 | 18 => number = found.size_or_type,
                _ => return Some(found),
            }
        }
        None
    }
}

/// Returns the length of the data after the 12-byte header of a type with `count` members.
fn rest_length(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        1 | VARIABLE | 17 => 4,
        ARRAY => 12,
        STRUCT | 5 | DATA_SECTION | 19 => 12 * count,
        6 | 13 => 8 * count,
        POINTER | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}
