//! Messages of netlink(7): a header, a fixed part, and attributes. Each attribute has a length and a type, and is
//! aligned to four bytes.

/// The length of `struct nlmsghdr` in bytes.
pub(super) const HEADER_LENGTH: usize = 16;

/// The length of `struct nlattr` in bytes.
const ATTRIBUTE_HEADER_LENGTH: usize = 4;

/// The mask of an attribute type; the upper two bits are flags.
const ATTRIBUTE_TYPE: u16 = 0x3fff;

/// A builder of requests.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
}

/// A response without its header.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) kind: u16,
    pub(crate) payload: Vec<u8>,
}

impl Request {
    /// Creates a request of this kind with its fixed part.
    pub(crate) fn new(kind: u16, fixed: &[u8]) -> Request {
        let mut bytes = vec![0; HEADER_LENGTH];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        let mut request = Request { bytes };
        request.align();
        request
    }

    /// Appends an attribute.
    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |request| request.bytes.extend_from_slice(value));
    }

    /// Appends an attribute with a number.
    pub(crate) fn number(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    /// Appends an attribute with a NUL-terminated string.
    pub(crate) fn text(&mut self, kind: u16, text: &str) {
        self.nested(kind, |request| {
            request.bytes.extend_from_slice(text.as_bytes());
            request.bytes.push(0);
        });
    }

    /// Appends an attribute whose value is appended by `fill`.
    pub(crate) fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Request)) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; ATTRIBUTE_HEADER_LENGTH]);
        fill(self);
        let length = u16::try_from(self.bytes.len() - at).expect("an attribute of less than 64 KiB");
        self.bytes[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes[at + 2..at + 4].copy_from_slice(&kind.to_ne_bytes());
        self.align();
    }

    /// Appends the fixed part of a message nested in an attribute.
    pub(crate) fn fixed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.align();
    }

    /// Completes the header and returns the bytes to send.
    pub(super) fn finish(mut self, flags: u16, sequence: u32) -> Vec<u8> {
        let length = (self.bytes.len() as u32).to_ne_bytes();
        self.bytes[..4].copy_from_slice(&length);
        self.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }

    /// Returns the attributes, for a request without a fixed part.
    #[cfg(test)]
    pub(crate) fn attributes(&self) -> &[u8] {
        &self.bytes[HEADER_LENGTH..]
    }

    fn align(&mut self) {
        self.bytes.resize(aligned(self.bytes.len()), 0);
    }
}

/// Iterates over the attributes in `bytes` as type and value, up to the first truncated one.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)?;
        let value = rest.get(ATTRIBUTE_HEADER_LENGTH..length)?;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some((kind & ATTRIBUTE_TYPE, value))
    })
}

/// Returns the value of the first attribute of this type.
pub(crate) fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

pub(super) const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_has_the_layout_of_the_kernel() {
        let mut request = Request::new(18, &[9; 6]);
        request.nested(5, |request| request.text(1, "ab"));
        request.number(7, 1);
        let bytes = request.finish(0x301, 4);
        assert_eq!(u32_at(&bytes, 0), Some(bytes.len() as u32));
        assert_eq!(
            (u16_at(&bytes, 4), u16_at(&bytes, 6), u32_at(&bytes, 8)),
            (Some(18), Some(0x301), Some(4))
        );
        assert_eq!(bytes[HEADER_LENGTH..24], [9, 9, 9, 9, 9, 9, 0, 0]);
        let found: Vec<_> = attributes(&bytes[24..]).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], (7, 1_u32.to_ne_bytes().as_slice()));
        assert_eq!(attributes(found[0].1).collect::<Vec<_>>(), [(1, b"ab\0".as_slice())]);
    }

    proptest! {
        #[test]
        fn any_bytes_parse_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(attributes(&bytes).all(|(_, value)| value.len() <= bytes.len()));
        }
    }
}
