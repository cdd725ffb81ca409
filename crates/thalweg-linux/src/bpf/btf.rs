//! Type information of an object file or of the kernel (BTF; the kernel's `Documentation/bpf/btf.rst`).
//!
//! **Map declarations**: a map is a variable in the section `.maps` whose type is a structure. The members of the structure are pointers. A
//! pointer to an array encodes a number, the length of the array; any other pointer encodes a type.
//!
//! **Structures**: members by name or number, with their offsets ([`Types::member`], [`Types::nth`]).

use super::elf::{text_at, u16_at, u32_at};
use super::map::{MapKind, MapSpec};

/// The first two bytes, in the byte order of the file.
const MAGIC: u16 = 0xeb9f;

/// Kinds of types (`BTF_KIND_`).
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const FUNCTION: u32 = 12;
const VARIABLE: u32 = 14;
const DATA_SECTION: u32 = 15;

/// The maximum depth of typedefs and nested arrays.
const MAX_DEPTH: usize = 32;

/// All types by number; number 0 is `void`.
pub(super) struct Types<'a> {
    types: Vec<Type<'a>>,
    texts: &'a [u8],
}

#[derive(Clone, Copy)]
struct Type<'a> {
    name: u32,
    kind: u32,
    /// The size, or the number of the referenced type, depending on the kind.
    size_or_type: u32,
    /// Whether offsets of members contain the sizes of bit fields.
    has_bit_fields: bool,
    /// The data after the header: members or array properties.
    rest: &'a [u8],
}

/// A member of a structure or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member<'a> {
    /// The name; empty for an anonymous structure or union.
    pub(super) name: &'a str,
    /// The number of its type.
    pub(super) kind: u32,
    /// Its offset in the outermost structure, in bytes.
    pub(super) offset: u32,
    /// Its position among the members of its own structure.
    pub(super) place: u32,
}

/// Returns type information of one type, `int`, for requests that require some and do not use it.
pub(super) fn minimal() -> Vec<u8> {
    const TEXTS: &[u8] = b"\0int\0";
    // Length of the header; offset and length of types and of texts.
    let header = [24, 0, 16, 16, TEXTS.len() as u32];
    // Name, kind 1 (integer), size, and bits: signed, 32.
    let types: [u32; 4] = [1, 1 << 24, 4, 1 << 24 | 32];
    let mut bytes = MAGIC.to_ne_bytes().to_vec();
    // Version, flags.
    bytes.extend([1, 0]);
    bytes.extend(header.iter().chain(&types).flat_map(|word| word.to_ne_bytes()));
    bytes.extend(TEXTS);
    bytes
}

/// Returns the maps declared in the section `.maps` by name; `None` if the BTF is malformed.
pub(super) fn maps(btf: &[u8]) -> Option<Vec<(String, MapSpec)>> {
    let types = Types::read(btf)?;
    let is_maps = |of: &&Type<'_>| of.kind == DATA_SECTION && types.name(of) == Some(".maps");
    let Some(section) = types.types.iter().find(is_maps) else { return Some(Vec::new()) };
    section.rest.chunks_exact(12).map(|entry| types.map(u32_at(entry, 0)?)).collect()
}

impl<'a> Types<'a> {
    /// Parses type information; `None` if it is malformed.
    pub(super) fn read(btf: &'a [u8]) -> Option<Types<'a>> {
        if u16_at(btf, 0)? != MAGIC {
            return None;
        }
        let part = |offset: usize| {
            let start = (u32_at(btf, 4)? as usize).checked_add(u32_at(btf, offset)? as usize)?;
            btf.get(start..start.checked_add(u32_at(btf, offset + 4)? as usize)?)
        };
        let (mut bytes, texts) = (part(8)?, part(16)?);
        let mut types = vec![Type { name: 0, kind: 0, size_or_type: 0, has_bit_fields: false, rest: &[] }];
        while !bytes.is_empty() {
            let info = u32_at(bytes, 4)?;
            let (count, kind) = ((info & 0xffff) as usize, info >> 24 & 0x1f);
            let length = 12 + rest_length(kind, count)?;
            let rest = bytes.get(12..length)?;
            let (name, size_or_type) = (u32_at(bytes, 0)?, u32_at(bytes, 8)?);
            types.push(Type { name, kind, size_or_type, has_bit_fields: info >> 31 == 1, rest });
            bytes = &bytes[length..];
        }
        Some(Types { types, texts })
    }

    /// Returns a text by its offset.
    pub(super) fn text(&self, offset: u32) -> Option<&'a str> {
        text_at(self.texts, offset)
    }

    /// Returns the number of the structure of this name.
    pub(super) fn structure(&self, name: &str) -> Option<u32> {
        self.find(STRUCT, name)
    }

    /// Returns the number of the function of this name.
    pub(super) fn function(&self, name: &str) -> Option<u32> {
        self.find(FUNCTION, name)
    }

    fn find(&self, kind: u32, name: &str) -> Option<u32> {
        let is_it = |of: &Type<'_>| of.kind == kind && self.name(of) == Some(name);
        self.types.iter().position(is_it).map(|number| number as u32)
    }

    /// Returns the name of a type, without typedefs and qualifiers.
    pub(super) fn name_of(&self, number: u32) -> Option<&'a str> {
        self.name(&self.resolve(number)?)
    }

    /// Returns the size of a type in bytes; a pointer has eight.
    pub(super) fn size_of(&self, number: u32) -> Option<u32> {
        self.size(number, MAX_DEPTH)
    }

    /// Returns the member of this name of a structure or union, also if it is in an anonymous member. Bit fields are not
    /// found.
    pub(super) fn member(&self, structure: u32, name: &str) -> Option<Member<'a>> {
        self.member_within(structure, name, MAX_DEPTH)
    }

    fn member_within(&self, structure: u32, name: &str, depth: usize) -> Option<Member<'a>> {
        let depth = depth.checked_sub(1)?;
        self.members(structure)?.find_map(|member| match member.name {
            "" => {
                let inner = self.member_within(member.kind, name, depth)?;
                Some(Member { offset: member.offset + inner.offset, ..inner })
            }
            of_member => (of_member == name).then_some(member),
        })
    }

    /// Returns the member at this position of a structure or union.
    pub(super) fn nth(&self, structure: u32, place: u32) -> Option<Member<'a>> {
        self.members(structure)?.find(|member| member.place == place)
    }

    /// Returns the members of a structure or union, without bit fields.
    pub(super) fn members(&self, structure: u32) -> Option<impl Iterator<Item = Member<'a>> + '_> {
        let found = self.resolve(structure).filter(|found| matches!(found.kind, STRUCT | UNION))?;
        let member = move |(place, bytes): (usize, &'a [u8])| {
            let (offset, bits) = match (found.has_bit_fields, u32_at(bytes, 8)?) {
                (true, both) => (both & 0x00ff_ffff, both >> 24),
                (false, offset) => (offset, 0),
            };
            let name = text_at(self.texts, u32_at(bytes, 0)?)?;
            let member = Member { name, kind: u32_at(bytes, 4)?, offset: offset / 8, place: place as u32 };
            (bits == 0 && offset % 8 == 0).then_some(member)
        };
        Some(found.rest.chunks_exact(12).enumerate().filter_map(member))
    }

    /// Returns the type of the elements of an array.
    pub(super) fn element(&self, array: u32) -> Option<u32> {
        u32_at(self.resolve(array).filter(|found| found.kind == ARRAY)?.rest, 0)
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
