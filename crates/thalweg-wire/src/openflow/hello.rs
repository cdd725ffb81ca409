//! The hello message: the first message in each direction.

use super::VERSION;
use super::codec::{Reader, Wire, Writer};
use super::error::DecodeError;

/// The element type of the version bitmap (OFPHET_VERSIONBITMAP, section 7.5.1).
const VERSION_BITMAP: u16 = 1;
/// Length of the type and length fields of an element, in bytes.
const ELEMENT_HEADER_LENGTH: usize = 4;

/// The versions that the sender supports (section 7.5.1). Other elements are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// A bit for each version; version 0 is the lowest bit of the first word. Empty if the hello has no bitmap, as with
    /// OpenFlow 1.0.
    pub versions: Vec<u32>,
}

impl Hello {
    /// Creates a hello with [`VERSION`] as the only version.
    pub fn supported() -> Hello {
        Hello { versions: vec![1 << VERSION] }
    }

    /// Returns whether the sender supports our version (section 6.3.1): without
    /// a bitmap, the sender supports all versions up to the one in the header.
    pub fn supports_our_version(&self, header_version: u8) -> bool {
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
    fn the_version_is_negotiated_by_the_bitmap_or_the_header() {
        let bitmap = |word| Hello { versions: vec![word] };
        assert!(Hello::supported().supports_our_version(4));
        assert!(bitmap(0b101_0010).supports_our_version(6), "1.0, 1.3 and 1.5");
        assert!(!bitmap(0b100_0010).supports_our_version(6), "1.0 and 1.5");
        assert!(Hello::default().supports_our_version(4));
        assert!(Hello::default().supports_our_version(5));
        assert!(!Hello::default().supports_our_version(1));
    }
}
