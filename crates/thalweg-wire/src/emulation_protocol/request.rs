//! Requests: abstract packets on their way to the arbiter.

use super::cursor::Cursor;
use super::output::{Entry, Output};
use super::{DecodeError, EncodeError, FLOW_WINDOW, Flow, Header, SchemeBytes};

/// The index is not that of the request before, plus 1.
const INDEX: u8 = 1 << 0;
/// The length differs from that of the request before.
const LENGTH: u8 = 1 << 1;
/// The traffic class differs from that of the request before.
const TRAFFIC_CLASS: u8 = 1 << 2;
const RESERVED: u8 = 1 << 3;
/// The bits above are the number of scheme bytes.
const SCHEME_BYTES_SHIFT: u32 = 4;

/// The request to emulate one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number of the packet in its flow. No packet of a session has the same flow and index as another.
    pub index: u64,
    /// Bytes of the packet, from the IP header on.
    pub length: u16,
    /// The traffic class: DSCP (RFC 2474) in the six high bits, ECN (RFC 3168) in the two low ones.
    pub traffic_class: u8,
    /// What the scheme's `prepare_request` added.
    pub custom: SchemeBytes,
}

/// What a request may omit if it has not changed since the one before in the datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Previous {
    length: u16,
    traffic_class: u8,
}

impl Default for Previous {
    /// Before the first request: a packet of the MTU of Ethernet, of best effort, not ECN-capable.
    fn default() -> Previous {
        Previous { length: 1_500, traffic_class: 0 }
    }
}

/// The head of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) flow: Flow,
    /// The lowest index of the flow that the endpoint has neither sent nor dropped, or the first index of answers.
    pub(super) base: u64,
    /// The number of entries that are left.
    pub(super) left: u8,
}

impl Block {
    pub(super) fn read(from: &mut Cursor<'_>) -> Result<Block, DecodeError> {
        let (endpoints, flows) = ("at most 65,535", "at most 4,294,967,295");
        let source = from.number_up_to("source", u16::MAX.into(), endpoints)? as u16;
        let destination = from.number_up_to("destination", u16::MAX.into(), endpoints)? as u16;
        let number = from.number_up_to("flow", u32::MAX.into(), flows)? as u32;
        let base = from.number("first index of a flow")?;
        let (field, offset) = ("number of entries", from.offset());
        let left = from.byte(field)?;
        if left == 0 {
            return Err(DecodeError::Value { field, offset, found: 0, expected: "1 or more" });
        }
        Ok(Block { flow: Flow { source, destination, number }, base, left })
    }

    /// Writes the head of a block with one entry, and returns the position of the number of entries in `to`.
    pub(super) fn write(flow: &Flow, base: u64, to: &mut Entry) -> usize {
        to.number(flow.source.into());
        to.number(flow.destination.into());
        to.number(flow.number.into());
        to.number(base);
        to.byte(1);
        to.length() - 1
    }
}

impl Request {
    /// Reads a request. `expected` is its index if it follows the one before.
    pub(super) fn read(
        from: &mut Cursor<'_>,
        base: u64,
        expected: u64,
        previous: &mut Previous,
    ) -> Result<Request, DecodeError> {
        let offset = from.offset();
        let control = from.byte("control byte of a request")?;
        if control & RESERVED != 0 {
            let (field, found) = ("control byte of a request", control.into());
            return Err(DecodeError::Value { field, offset, found, expected: "0 in bit 3" });
        }
        let difference = match control & INDEX != 0 {
            true => from.difference("index of a request")?,
            false => 0,
        };
        let index = expected
            .checked_add_signed(difference)
            .filter(|index| index.checked_sub(base).is_some_and(|distance| distance < FLOW_WINDOW))
            // The index after it exists too.
            .filter(|index| *index < u64::MAX)
            .ok_or(DecodeError::Index { offset, expected: "an index within 4,096 from the flow's base" })?;
        if control & LENGTH != 0 {
            previous.length = from.u16("length of a packet")?;
        }
        if control & TRAFFIC_CLASS != 0 {
            previous.traffic_class = from.byte("traffic class")?;
        }
        let custom = from.take("scheme bytes of a request", usize::from(control >> SCHEME_BYTES_SHIFT))?;
        let custom = SchemeBytes::new(custom).expect("4 bits count no more");
        let Previous { length, traffic_class } = *previous;
        Ok(Request { index, length, traffic_class, custom })
    }

    fn write(&self, expected: u64, previous: Previous, to: &mut Entry) {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let has_index = self.index != expected;
        let has_length = self.length != previous.length;
        let has_traffic_class = self.traffic_class != previous.traffic_class;
        to.byte(
            flag(has_index, INDEX)
                | flag(has_length, LENGTH)
                | flag(has_traffic_class, TRAFFIC_CLASS)
                | (self.custom.len() as u8) << SCHEME_BYTES_SHIFT,
        );
        if has_index {
            to.difference(expected, self.index);
        }
        if has_length {
            to.bytes(&self.length.to_be_bytes());
        }
        if has_traffic_class {
            to.byte(self.traffic_class);
        }
        to.bytes(self.custom.as_slice());
    }
}

/// Writes a datagram of requests.
///
/// Write all requests of a flow one after the other: each change of the flow begins another block.
pub struct RequestWriter<'a> {
    output: Output<'a>,
    block: Option<OpenBlock>,
    previous: Previous,
}

/// The block that is being written.
struct OpenBlock {
    flow: Flow,
    base: u64,
    /// The index that a request may omit.
    expected: u64,
    /// The position of the number of entries.
    count_at: usize,
}

impl<'a> RequestWriter<'a> {
    /// Begins a datagram at the start of `buffer`, which it may fill.
    ///
    /// # Errors
    /// If the buffer is shorter than the header.
    pub fn new(buffer: &'a mut [u8], header: &Header) -> Result<RequestWriter<'a>, EncodeError> {
        Ok(RequestWriter { output: Output::new(buffer, header)?, block: None, previous: Previous::default() })
    }

    /// Appends a request of `flow`, whose lowest index that was neither sent nor dropped is `base`. Takes at most
    /// [`MAX_BLOCK_HEAD`](super::MAX_BLOCK_HEAD) bytes for the first request of a flow, and
    /// [`MAX_REQUEST`](super::MAX_REQUEST) and the scheme bytes for each.
    ///
    /// # Errors
    /// If the buffer is full or the index is outside of the flow's window. Then nothing is appended.
    pub fn push(&mut self, flow: &Flow, base: u64, request: &Request) -> Result<(), EncodeError> {
        let is_in_window = request.index.checked_sub(base).is_some_and(|distance| distance < FLOW_WINDOW);
        if !is_in_window || request.index == u64::MAX {
            return Err(EncodeError::Window { index: request.index, base });
        }
        let mut entry = Entry::new();
        match &mut self.block {
            Some(block)
                if block.flow == *flow
                    && block.base == base
                    && *self.output.byte_mut(block.count_at) < u8::MAX =>
            {
                request.write(block.expected, self.previous, &mut entry);
                self.output.append(&entry)?;
                *self.output.byte_mut(block.count_at) += 1;
                block.expected = request.index + 1;
            }
            _ => {
                let start = self.output.length();
                let count_at = start + Block::write(flow, base, &mut entry);
                request.write(base, self.previous, &mut entry);
                self.output.append(&entry)?;
                self.block = Some(OpenBlock { flow: *flow, base, expected: request.index + 1, count_at });
            }
        }
        self.previous = Previous { length: request.length, traffic_class: request.traffic_class };
        Ok(())
    }

    /// Completes the datagram and returns its length in bytes.
    pub fn finish(self) -> usize {
        self.output.finish()
    }
}
