//! Checked datagrams.

use super::answer::{Answer, Run};
use super::checksum::checksum;
use super::cursor::Cursor;
use super::request::{Block, Previous, Request};
use super::{DecodeError, Direction, EmulatedDelay, Flow, Header};

/// A datagram whose bytes are all valid.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The header.
    pub header: Header,
    /// The blocks.
    body: Cursor<'a>,
}

impl<'a> Datagram<'a> {
    /// Decodes a datagram: the payload of a UDP datagram, the whole of it.
    ///
    /// # Errors
    /// The first error. The version is checked first, then the checksum, then the fields in their order.
    pub fn decode(bytes: &'a [u8]) -> Result<Datagram<'a>, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let header = Header::read(&mut cursor);
        if let Err(error @ (DecodeError::Version { .. } | DecodeError::Truncated { .. })) = header {
            return Err(error);
        }
        let expected = checksum(bytes);
        let found = u32::from_be_bytes(*bytes[24..].first_chunk().expect("the header is not truncated"));
        if found != expected {
            return Err(DecodeError::Checksum { expected, found });
        }
        let datagram = Datagram { header: header?.0, body: cursor };
        match datagram.header.direction {
            Direction::ToArbiter => datagram.requests().entries.try_for_each(|entry| entry.map(drop))?,
            Direction::ToEndpoint => datagram.answers().entries.try_for_each(|entry| entry.map(drop))?,
        }
        Ok(datagram)
    }

    /// The requests: flow, base of the flow, request. None towards an endpoint.
    pub fn requests(&self) -> Requests<'a> {
        Requests {
            entries: RequestEntries {
                entries: self.entries(Direction::ToArbiter),
                previous: Previous::default(),
            },
        }
    }

    /// The answers. None towards the arbiter.
    pub fn answers(&self) -> Answers<'a> {
        Answers {
            entries: AnswerEntries {
                entries: self.entries(Direction::ToEndpoint),
                run: None,
                previous: EmulatedDelay::ZERO,
            },
        }
    }

    fn entries(&self, direction: Direction) -> Entries<'a> {
        let cursor = match self.header.direction == direction {
            true => self.body,
            false => Cursor::new(&[]),
        };
        Entries { cursor, block: None, expected: 0 }
    }
}

/// The entries of all blocks.
#[derive(Clone, Debug)]
struct Entries<'a> {
    cursor: Cursor<'a>,
    block: Option<Block>,
    /// The index of the next entry, if it follows the last.
    expected: u64,
}

impl Entries<'_> {
    /// The block of the next entry, which counts as read.
    fn next_block(&mut self) -> Option<Result<Block, DecodeError>> {
        if self.block.is_none_or(|block| block.left == 0) {
            if self.cursor.is_empty() {
                return None;
            }
            match Block::read(&mut self.cursor) {
                Ok(block) => {
                    self.expected = block.base;
                    self.block = Some(block);
                }
                Err(error) => return Some(Err(error)),
            }
        }
        let block = self.block.as_mut()?;
        block.left -= 1;
        Some(Ok(*block))
    }
}

#[derive(Clone, Debug)]
struct RequestEntries<'a> {
    entries: Entries<'a>,
    previous: Previous,
}

impl Iterator for RequestEntries<'_> {
    type Item = Result<(Flow, u64, Request), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let RequestEntries { entries, previous } = self;
        let block = entries.next_block()?;
        Some(block.and_then(|block| {
            let request = Request::read(&mut entries.cursor, block.base, entries.expected, previous)?;
            entries.expected = request.index + 1;
            Ok((block.flow, block.base, request))
        }))
    }
}

#[derive(Clone, Debug)]
struct AnswerEntries<'a> {
    entries: Entries<'a>,
    /// The run of the next answer and its flow, unless it is over.
    run: Option<(Flow, Run)>,
    previous: EmulatedDelay,
}

impl AnswerEntries<'_> {
    /// The run of the next answer.
    fn next_run(&mut self) -> Option<Result<(Flow, Run), DecodeError>> {
        if let Some((flow, run)) = self.run.filter(|(_, run)| !run.is_over()) {
            return Some(Ok((flow, run)));
        }
        let entries = &mut self.entries;
        let block = entries.next_block()?;
        Some(block.and_then(|block| Ok((block.flow, Run::read(&mut entries.cursor, entries.expected)?))))
    }
}

impl Iterator for AnswerEntries<'_> {
    type Item = Result<(Flow, Answer), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let run = self.next_run()?;
        Some(run.and_then(|(flow, mut run)| {
            let answer = run.read_next(&mut self.entries.cursor, &mut self.previous)?;
            self.entries.expected = answer.index + 1;
            self.run = Some((flow, run));
            Ok((flow, answer))
        }))
    }
}

/// The requests of a datagram: flow, base of the flow (the lowest index that the endpoint has neither sent nor
/// dropped), request.
#[derive(Clone, Debug)]
pub struct Requests<'a> {
    entries: RequestEntries<'a>,
}

impl Iterator for Requests<'_> {
    type Item = (Flow, u64, Request);

    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().map(|entry| entry.expect("the datagram was checked"))
    }
}

/// The answers of a datagram: flow and answer, one for each packet.
#[derive(Clone, Debug)]
pub struct Answers<'a> {
    entries: AnswerEntries<'a>,
}

impl Iterator for Answers<'_> {
    type Item = (Flow, Answer);

    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().map(|entry| entry.expect("the datagram was checked"))
    }
}
