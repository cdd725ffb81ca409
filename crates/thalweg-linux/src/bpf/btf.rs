//! The declarations of maps in an object file's types (BTF; the kernel's `Documentation/bpf/btf.rst`).
//!
//! A map is a variable in the section `.maps` whose type is a structure. Its members say what the map is: a number is the
//! length of an array that the member points to, a type is what the member points to.

use super::elf::{text_at, u16_at, u32_at};
use super::map::{MapKind, MapShape};

/// First two bytes, in the byte order of the file.
const MAGIC: u16 = 0xeb9f;

/// Kinds of types (`BTF_KIND_`).
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const VARIABLE: u32 = 14;
const DATA_SECTION: u32 = 15;

/// Names of names and the like that are followed at most.
const DEEPEST: usize = 32;

/// Types by number; number 0 is `void`.
struct Types<'a> {
    types: Vec<Type<'a>>,
    texts: &'a [u8],
}

#[derive(Clone, Copy)]
struct Type<'a> {
    name: u32,
    kind: u32,
    /// Its size, or the type that it is about.
    size_or_type: u32,
    /// What follows: members, the description of an array.
    rest: &'a [u8],
}

/// The maps that are declared in the section `.maps`, by name; `None` if the types cannot be read.
pub(super) fn maps(btf: &[u8]) -> Option<Vec<(String, MapShape)>> {
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

    /// The map that a variable declares.
    fn map(&self, variable: u32) -> Option<(String, MapShape)> {
        let variable = self.get(variable).filter(|variable| variable.kind == VARIABLE)?;
        let declared = self.plain(variable.size_or_type)?;
        if declared.kind != STRUCT {
            return None;
        }
        let mut shape =
            MapShape { kind: MapKind::Other(0), key_size: 0, value_size: 0, max_entries: 0, flags: 0 };
        for member in declared.rest.chunks_exact(12) {
            let pointer = self.plain(u32_at(member, 4)?)?;
            let (name, to) = (text_at(self.texts, u32_at(member, 0)?)?, pointer.size_or_type);
            if pointer.kind != POINTER {
                return None;
            }
            match name {
                "type" => shape.kind = MapKind::of_number(self.number(to)?),
                "max_entries" => shape.max_entries = self.number(to)?,
                "map_flags" => shape.flags = self.number(to)?,
                "key_size" => shape.key_size = self.number(to)?,
                "value_size" => shape.value_size = self.number(to)?,
                "key" => shape.key_size = self.size(to, DEEPEST)?,
                "value" => shape.value_size = self.size(to, DEEPEST)?,
                _ => return None,
            }
        }
        Some((self.name(&variable)?.to_owned(), shape))
    }

    /// The number that the length of an array stands for.
    fn number(&self, array: u32) -> Option<u32> {
        let array = self.plain(array).filter(|array| array.kind == ARRAY)?;
        u32_at(array.rest, 8)
    }

    /// Bytes of a value of a type.
    fn size(&self, number: u32, depth: usize) -> Option<u32> {
        let found = self.plain(number)?;
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

    /// What is behind names and qualifiers of a type: typedef, volatile, const, restrict, tags.
    fn plain(&self, mut number: u32) -> Option<Type<'a>> {
        for _ in 0..DEEPEST {
            let found = self.get(number)?;
            match found.kind {
                8..=11 | 18 => number = found.size_or_type,
                _ => return Some(found),
            }
        }
        None
    }
}

/// Bytes that follow the first twelve of a type of this kind with so many members.
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
