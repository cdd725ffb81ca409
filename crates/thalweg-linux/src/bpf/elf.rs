//! What is read of an object file (ELF, relocatable, 64 bits, this machine's byte order; elf(5)).

/// e_machine of eBPF.
const MACHINE_BPF: u16 = 247;

/// ELFDATA2LSB and ELFDATA2MSB.
const BYTE_ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };

/// Bytes of the headers of a file and of a section, of a symbol and of a relocation without addend.
const FILE_HEADER: usize = 64;
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;
const RELOCATION: usize = 16;

/// SHT_SYMTAB and SHT_REL.
const SECTION_SYMBOLS: u32 = 2;
const SECTION_RELOCATIONS: u32 = 9;

/// STT_FUNC.
const SYMBOL_FUNCTION: u8 = 2;

/// An object file.
#[derive(Debug)]
pub(super) struct Elf<'a> {
    sections: Vec<Section<'a>>,
    symbols: Vec<Symbol<'a>>,
}

#[derive(Debug)]
struct Section<'a> {
    name: &'a str,
    kind: u32,
    /// What it is about, if it is of relocations.
    info: u32,
    bytes: &'a [u8],
}

/// A named place in a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol<'a> {
    pub(super) name: &'a str,
    section: usize,
    offset: u64,
    length: u64,
    is_function: bool,
}

/// A place to be patched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relocation<'a> {
    /// From the beginning of the function.
    pub(super) offset: usize,
    /// The kernel's and LLVM's number (`R_BPF_`).
    pub(super) kind: u32,
    /// What it is to point to.
    pub(super) symbol: Symbol<'a>,
}

impl<'a> Elf<'a> {
    /// Reads an object file of eBPF; says what is wrong with it otherwise.
    pub(super) fn read(file: &'a [u8]) -> Result<Elf<'a>, &'static str> {
        let header = file.get(..FILE_HEADER).ok_or("it is shorter than the header of an object file")?;
        if !header.starts_with(b"\x7fELF") || header[4] != 2 || header[5] != BYTE_ORDER {
            return Err("it is no ELF file of 64 bits in this machine's byte order");
        }
        if u16_at(header, 18) != Some(MACHINE_BPF) {
            return Err("it is for another machine than eBPF");
        }
        let sections = sections(file, header).ok_or("its sections are not where it says")?;
        let symbols = symbols(file, header, &sections).ok_or("its symbols are not where it says")?;
        Ok(Elf { sections, symbols })
    }

    /// The contents of a section.
    pub(super) fn section(&self, name: &str) -> Option<&'a [u8]> {
        Some(self.sections.iter().find(|section| section.name == name)?.bytes)
    }

    /// The bytes of a function, and what is to be patched in it.
    pub(super) fn function(&self, name: &str) -> Option<(&'a [u8], Vec<Relocation<'a>>)> {
        let function = self.symbols.iter().find(|symbol| symbol.is_function && symbol.name == name)?;
        let end = function.offset.checked_add(function.length)?;
        let bytes = self.sections.get(function.section)?.bytes;
        let bytes = bytes.get(usize::try_from(function.offset).ok()?..usize::try_from(end).ok()?)?;
        let is_about = |section: &&Section<'_>| {
            section.kind == SECTION_RELOCATIONS && section.info as usize == function.section
        };
        let mut relocations = Vec::new();
        for entry in self.sections.iter().filter(is_about).flat_map(|s| s.bytes.chunks_exact(RELOCATION)) {
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
        // A section without contents in the file (SHT_NOBITS) may say that it lies anywhere.
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
    sections[table].bytes.chunks_exact(SYMBOL).map(symbol).collect()
}

fn section_headers<'a>(file: &'a [u8], header: &[u8]) -> Option<Vec<&'a [u8]>> {
    let start = usize::try_from(u64_at(header, 40)?).ok()?;
    let count = usize::from(u16_at(header, 60)?);
    let end = start.checked_add(count * SECTION_HEADER)?;
    Some(file.get(start..end)?.chunks_exact(SECTION_HEADER).collect())
}

/// What the section of this header has in the file.
fn contents<'a>(file: &'a [u8], header: &[u8]) -> Option<&'a [u8]> {
    let start = usize::try_from(u64_at(header, 24)?).ok()?;
    let end = start.checked_add(usize::try_from(u64_at(header, 32)?).ok()?)?;
    file.get(start..end)
}

/// The text at an offset of a table of texts, up to its NUL.
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
