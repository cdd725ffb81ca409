//! Answers: what the endpoint does with packets.

use super::cursor::Cursor;
use super::output::{Entry, Output};
use super::request::Block;
use super::{DecodeError, EmulatedDelay, EncodeError, Flow, Header, MAX_SCHEME_BYTES, SchemeBytes};

/// The low bits are the verdict.
const VERDICT: u8 = 0b11;
/// The first index does not follow the last index of the run before.
const INDEX: u8 = 1 << 2;
/// The bits above are the number of packets, minus 1.
const COUNT_SHIFT: u32 = 3;
/// The maximum number of packets of a run.
const MAX_COUNT: u8 = 1 << (8 - COUNT_SHIFT);

/// What happened to a packet in the emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was dropped: drop it.
    Drop,
    /// It arrived unchanged: send it.
    Send,
    /// It arrived marked: set congestion experienced (RFC 3168) and send it.
    SendMarked,
    /// It arrived with headers that the scheme wrote: give these bytes to its `prepare_to_send`, and send it.
    SendWith(SchemeBytes),
}

impl Verdict {
    const fn number(&self) -> u8 {
        match self {
            Verdict::Drop => 0,
            Verdict::Send => 1,
            Verdict::SendMarked => 2,
            Verdict::SendWith(_) => 3,
        }
    }
}

/// The answer for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The index of the packet, less than 2^64 - 1.
    pub index: u64,
    /// What happened to it.
    pub verdict: Verdict,
    /// How long that took.
    pub emulated: EmulatedDelay,
}

/// Packets with consecutive indices and the same verdict: an entry of a datagram. The delay of each packet follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The index of the next packet.
    next: u64,
    /// The number of packets that are left.
    left: u8,
    verdict: Verdict,
}

impl Run {
    /// Reads the head of a run. `expected` is its first index if it follows the one before.
    pub(super) fn read(from: &mut Cursor<'_>, expected: u64) -> Result<Run, DecodeError> {
        let offset = from.offset();
        let control = from.byte("control byte of an answer")?;
        let difference = match control & INDEX != 0 {
            true => from.difference("index of an answer")?,
            false => 0,
        };
        let left = (control >> COUNT_SHIFT) + 1;
        // Modulo 2^64, as it was written: all indices can be reached from all others.
        let next = expected.wrapping_add_signed(difference);
        if next.checked_add(left.into()).is_none() {
            return Err(DecodeError::Index { offset, expected: "a last index of less than 2^64 - 1" });
        }
        let verdict = match control & VERDICT {
            0 => Verdict::Drop,
            1 => Verdict::Send,
            2 => Verdict::SendMarked,
            _ => {
                let (field, limit) = ("number of scheme bytes", MAX_SCHEME_BYTES as u64);
                let length = from.number_up_to(field, limit, "at most 15")? as usize;
                let bytes = from.take("scheme bytes of an answer", length)?;
                Verdict::SendWith(SchemeBytes::new(bytes).expect("the number was checked"))
            }
        };
        Ok(Run { next, left, verdict })
    }

    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Reads the next packet. `previous` is the delay of the packet before in the datagram.
    pub(super) fn read_next(
        &mut self,
        from: &mut Cursor<'_>,
        previous: &mut EmulatedDelay,
    ) -> Result<Answer, DecodeError> {
        let (field, offset) = ("difference of an emulated delay", from.offset());
        let difference = from.difference(field)?;
        let ticks = i64::from(previous.0).checked_add(difference).and_then(|ticks| ticks.try_into().ok());
        let Some(ticks) = ticks else {
            let (found, expected) = (difference.unsigned_abs(), "a delay of 0 to 2^32 - 1");
            return Err(DecodeError::Value { field, offset, found, expected });
        };
        *previous = EmulatedDelay(ticks);
        let index = self.next;
        (self.next, self.left) = (index + 1, self.left - 1);
        Ok(Answer { index, verdict: self.verdict, emulated: *previous })
    }
}

/// Writes a datagram of answers.
///
/// Write all answers of a flow one after the other: each change of the flow begins another block. Within a flow, the
/// endpoint sends packets in the order of the answers.
pub struct AnswerWriter<'a> {
    output: Output<'a>,
    block: Option<OpenBlock>,
    /// The delay of the packet before.
    previous: EmulatedDelay,
}

/// The block that is being written.
struct OpenBlock {
    flow: Flow,
    /// The position of the number of runs.
    count_at: usize,
    /// The position of the control byte of the last run.
    control_at: usize,
    verdict: Verdict,
    /// The index after the last one.
    expected: u64,
}

impl<'a> AnswerWriter<'a> {
    /// Begins a datagram at the start of `buffer`, which it may fill.
    ///
    /// # Errors
    /// If the buffer is shorter than the header.
    pub fn new(buffer: &'a mut [u8], header: &Header) -> Result<AnswerWriter<'a>, EncodeError> {
        Ok(AnswerWriter { output: Output::new(buffer, header)?, block: None, previous: EmulatedDelay::ZERO })
    }

    /// Appends the answer for a packet of `flow`. Takes at most [`MAX_BLOCK_HEAD`](super::MAX_BLOCK_HEAD) bytes
    /// for the first answer of a flow, and [`MAX_ANSWER`](super::MAX_ANSWER) and the scheme bytes for each.
    ///
    /// # Errors
    /// If the buffer is full, or the index is 2^64 - 1, which is not in the range of requests. Then nothing is
    /// appended.
    pub fn push(&mut self, flow: &Flow, answer: &Answer) -> Result<(), EncodeError> {
        let Answer { index, verdict, emulated } = *answer;
        let Some(expected) = index.checked_add(1) else {
            return Err(EncodeError::Window { index, base: index });
        };
        let (mut entry, previous) = (Entry::new(), self.previous);
        match &mut self.block {
            Some(block) if block.flow == *flow && block.is_continued_by(index, verdict, &mut self.output) => {
                write_delay(previous, emulated, &mut entry);
                self.output.append(&entry)?;
                *self.output.byte_mut(block.control_at) += 1 << COUNT_SHIFT;
                block.expected = expected;
            }
            Some(block) if block.flow == *flow && *self.output.byte_mut(block.count_at) < u8::MAX => {
                let control_at = self.output.length();
                write(block.expected, answer, previous, &mut entry);
                self.output.append(&entry)?;
                *self.output.byte_mut(block.count_at) += 1;
                *block = OpenBlock { control_at, verdict, expected, ..*block };
            }
            _ => {
                let start = self.output.length();
                let count_at = start + Block::write(flow, index, &mut entry);
                write(index, answer, previous, &mut entry);
                self.output.append(&entry)?;
                self.block =
                    Some(OpenBlock { flow: *flow, count_at, control_at: count_at + 1, verdict, expected });
            }
        }
        self.previous = emulated;
        Ok(())
    }

    /// Completes the datagram and returns its length in bytes.
    pub fn finish(self) -> usize {
        self.output.finish()
    }
}

impl OpenBlock {
    fn is_continued_by(&self, index: u64, verdict: Verdict, output: &mut Output<'_>) -> bool {
        let count = (*output.byte_mut(self.control_at) >> COUNT_SHIFT) + 1;
        index == self.expected && verdict == self.verdict && count < MAX_COUNT
    }
}

/// Writes a run of one packet.
fn write(expected: u64, answer: &Answer, previous: EmulatedDelay, to: &mut Entry) {
    let Answer { index, verdict, emulated } = *answer;
    let has_index = index != expected;
    to.byte(verdict.number() | if has_index { INDEX } else { 0 });
    if has_index {
        to.difference(expected, index);
    }
    if let Verdict::SendWith(bytes) = verdict {
        to.number(bytes.len() as u64);
        to.bytes(bytes.as_slice());
    }
    write_delay(previous, emulated, to);
}

fn write_delay(previous: EmulatedDelay, emulated: EmulatedDelay, to: &mut Entry) {
    to.difference(previous.0.into(), emulated.0.into());
}
