//! The first message on a connection, both ways.

use super::VERSION;
use super::codec::{Reader, Wire, Writer};
use super::error::DecodeError;

/// Element that says which versions are spoken (OFPHET_VERSIONBITMAP, section 7.5.1).
const VERSION_BITMAP: u16 = 1;
/// Bytes of an element's type and length.
const ELEMENT_HEADER_LENGTH: usize = 4;

/// Which versions the sender speaks (section 7.5.1). Elements of other kinds are passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// A bit for each version, version 0 being the lowest bit of the first word; empty if the sender does not say, as
    /// those that speak 1.0 do not.
    pub versions: Vec<u32>,
}

impl Hello {
    /// Ours: this version and no other.
    pub fn ours() -> Hello {
        Hello { versions: vec![1 << VERSION] }
    }

    /// Whether its sender speaks our version, by what is in it and the version in its header (section 6.3.1): without
    /// a bitmap, the version of the header is the highest it speaks and all before are taken as spoken.
    pub fn speaks_ours(&self, header_version: u8) -> bool {
        match self.versions.first() {
            Some(word) => word & (1 << VERSION) != 0,
            None => header_version >= VERSION,
        }
    }
}

impl Wire for Hello {
    fn read(from: &mut Reader<'_>) -> Result<Hello, DecodeError> {
        let mut hello = Hello::default();
        while !from.is_empty() {
            let offset = from.offset();
            let kind = u16::read(from)?;
            let length = usize::from(u16::read(from)?);
            let Some(content) = length.checked_sub(ELEMENT_HEADER_LENGTH) else {
                return Err(DecodeError::Length {
                    structure: "HelloElement",
                    offset,
                    length,
                    expected: "4 or more",
                });
            };
            let mut element = from.part("HelloElement", content)?;
            if kind == VERSION_BITMAP {
                while !element.is_empty() {
                    hello.versions.push(u32::read(&mut element)?);
                }
            }
            from.skip(length.next_multiple_of(8) - length)?;
        }
        Ok(hello)
    }

    fn write(&self, to: &mut Writer<'_>) {
        if self.versions.is_empty() {
            return;
        }
        let start = to.position();
        VERSION_BITMAP.write(to);
        0_u16.write(to);
        self.versions.iter().for_each(|word| word.write(to));
        to.set_length("HelloElement", start, start + 2);
        to.pad_to_8(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_version_is_agreed_on_by_the_bitmap_or_else_by_the_header() {
        let bitmap = |word| Hello { versions: vec![word] };
        assert!(Hello::ours().speaks_ours(4));
        assert!(bitmap(0b101_0010).speaks_ours(6), "1.0, 1.3 and 1.5");
        assert!(!bitmap(0b100_0010).speaks_ours(6), "1.0 and 1.5");
        assert!(Hello::default().speaks_ours(4));
        assert!(Hello::default().speaks_ours(5));
        assert!(!Hello::default().speaks_ours(1));
    }
}
