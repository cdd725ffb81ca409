//! A parser of eBPF object files (ELF, relocatable, 64 bits, native byte order; elf(5)).

/// e_machine of eBPF.
const MACHINE_BPF: u16 = 247;

/// ELFDATA2LSB and ELFDATA2MSB.
const BYTE_ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };

/// Lengths in bytes of the file header, a section header, a symbol, and a relocation without addend.
const FILE_HEADER_LENGTH: usize = 64;
const SECTION_HEADER_LENGTH: usize = 64;
const SYMBOL_LENGTH: usize = 24;
const RELOCATION_LENGTH: usize = 16;

/// SHT_SYMTAB and SHT_REL.
const SECTION_SYMBOLS: u32 = 2;
const SECTION_RELOCATIONS: u32 = 9;

/// STT_FUNC.
const SYMBOL_FUNCTION: u8 = 2;

/// A parsed object file.
#[derive(Debug)]
pub(super) struct Elf<'a> {
    sections: Vec<Section<'a>>,
    symbols: Vec<Symbol<'a>>,
}

#[derive(Debug)]
struct Section<'a> {
    name: &'a str,
    kind: u32,
    /// In a relocation section, the index of the section that it patches.
    info: u32,
    bytes: &'a [u8],
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol<'a> {
    pub(super) name: &'a str,
    section: usize,
    offset: u64,
    length: u64,
    is_function: bool,
}

/// A relocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relocation<'a> {
    /// The offset from the start of the function.
    pub(super) offset: usize,
    /// The relocation type (`R_BPF_`).
    pub(super) kind: u32,
    /// The target.
    pub(super) symbol: Symbol<'a>,
}

impl Symbol<'_> {
    /// The offset in its section.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }
}

impl<'a> Elf<'a> {
    /// Parses an eBPF object file. The error is the reason, for messages.
    pub(super) fn read(file: &'a [u8]) -> Result<Elf<'a>, &'static str> {
        let header = file.get(..FILE_HEADER_LENGTH).ok_or("shorter than an ELF header")?;
        if !header.starts_with(b"\x7fELF") || header[4] != 2 || header[5] != BYTE_ORDER {
            return Err("not a 64-bit ELF file in native byte order");
        }
        if u16_at(header, 18) != Some(MACHINE_BPF) {
            return Err("not for eBPF");
        }
        let sections = sections(file, header).ok_or("section beyond the end of the file")?;
        let symbols = symbols(file, header, &sections).ok_or("symbol beyond the end of the file")?;
        Ok(Elf { sections, symbols })
    }

    /// Returns the contents of a section.
    pub(super) fn section(&self, name: &str) -> Option<&'a [u8]> {
        Some(self.sections.iter().find(|section| section.name == name)?.bytes)
    }

    /// Returns the section of a function, and the function's offset in it.
    pub(super) fn place_of(&self, name: &str) -> Option<(&'a str, u64)> {
        let function = self.symbols.iter().find(|symbol| symbol.is_function && symbol.name == name)?;
        Some((self.sections.get(function.section)?.name, function.offset))
    }

    /// Returns the bytes of a function and its relocations.
    pub(super) fn function(&self, name: &str) -> Option<(&'a [u8], Vec<Relocation<'a>>)> {
        let function = self.symbols.iter().find(|symbol| symbol.is_function && symbol.name == name)?;
        let end = function.offset.checked_add(function.length)?;
        let bytes = self.sections.get(function.section)?.bytes;
        let bytes = bytes.get(usize::try_from(function.offset).ok()?..usize::try_from(end).ok()?)?;
        let patches_function = |section: &&Section<'_>| {
            section.kind == SECTION_RELOCATIONS && section.info as usize == function.section
        };
        let mut relocations = Vec::new();
        for entry in self
            .sections
            .iter()
            .filter(patches_function)
            .flat_map(|s| s.bytes.chunks_exact(RELOCATION_LENGTH))
        {
            let (offset, info) = (u64_at(entry, 0)?, u64_at(entry, 8)?);
            if (function.offset..end).contains(&offset) {
                let symbol = *self.symbols.get((info >> 32) as usize)?;
                let offset = (offset - function.offset) as usize;
                relocations.push(Relocation { offset, kind: info as u32, symbol });
            }
        }
        Some((bytes, relocations))
    }

    /// Whether a symbol lies in the section of this name.
    pub(super) fn is_in(&self, symbol: &Symbol<'_>, section: &str) -> bool {
        self.sections.get(symbol.section).is_some_and(|of_symbol| of_symbol.name == section)
    }
}

fn sections<'a>(file: &'a [u8], header: &[u8]) -> Option<Vec<Section<'a>>> {
    let headers = section_headers(file, header)?;
    let names = contents(file, headers.get(usize::from(u16_at(header, 62)?))?)?;
    let section = |header: &&[u8]| {
        // A section without contents in the file (SHT_NOBITS) may have any offset.
        let bytes = contents(file, header).unwrap_or_default();
        Some(Section {
            name: text_at(names, u32_at(header, 0)?)?,
            kind: u32_at(header, 4)?,
            info: u32_at(header, 44)?,
            bytes,
        })
    };
    headers.iter().map(section).collect()
}

fn symbols<'a>(file: &'a [u8], header: &[u8], sections: &[Section<'a>]) -> Option<Vec<Symbol<'a>>> {
    let Some(table) = sections.iter().position(|section| section.kind == SECTION_SYMBOLS) else {
        return Some(Vec::new());
    };
    let headers = section_headers(file, header)?;
    let names = sections.get(u32_at(headers.get(table)?, 40)? as usize)?.bytes;
    let symbol = |entry: &[u8]| {
        Some(Symbol {
            name: text_at(names, u32_at(entry, 0)?)?,
            section: usize::from(u16_at(entry, 6)?),
            offset: u64_at(entry, 8)?,
            length: u64_at(entry, 16)?,
            is_function: entry[4] & 0xf == SYMBOL_FUNCTION,
        })
    };
    sections[table].bytes.chunks_exact(SYMBOL_LENGTH).map(symbol).collect()
}

fn section_headers<'a>(file: &'a [u8], header: &[u8]) -> Option<Vec<&'a [u8]>> {
    let start = usize::try_from(u64_at(header, 40)?).ok()?;
    let count = usize::from(u16_at(header, 60)?);
    let end = start.checked_add(count * SECTION_HEADER_LENGTH)?;
    Some(file.get(start..end)?.chunks_exact(SECTION_HEADER_LENGTH).collect())
}

/// Returns the contents of the section with this header.
fn contents<'a>(file: &'a [u8], header: &[u8]) -> Option<&'a [u8]> {
    let start = usize::try_from(u64_at(header, 24)?).ok()?;
    let end = start.checked_add(usize::try_from(u64_at(header, 32)?).ok()?)?;
    file.get(start..end)
}

/// Returns the NUL-terminated string at an offset of a string table.
pub(super) fn text_at(table: &[u8], offset: u32) -> Option<&str> {
    let bytes = table.get(offset as usize..)?;
    let length = bytes.iter().position(|&byte| byte == 0)?;
    std::str::from_utf8(&bytes[..length]).ok()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
