//! One file of a log: what was read of it, and its lines.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use thalweg_api::MAX_REPORT_TEXT;

use super::head::Head;
use super::siblings::{FileId, modified_ns};
use super::{Budget, FollowCounts, Found, MAX_LINE_BYTES, Position};
use crate::logs::{LogParser, LoggedTransfer};

/// Bits of an offset that are the offset in a file; those above are the number of the file.
const OFFSET_BITS: u32 = 44;

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Maximum length of a header.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// Size of a reported transfer in bytes of JSON, without its texts but with hashes of user and file.
pub(super) const TRANSFER_BYTES: u64 = 544;

/// A place in the files of a log: number of the file, and offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) file: u64,
    pub(super) offset: u64,
}

impl Place {
    /// The offset that parsers get: it grows from file to file.
    fn to_offset(self) -> u64 {
        self.file << OFFSET_BITS | self.offset
    }

    /// The place of an offset that a parser returned.
    pub(super) fn of_offset(offset: u64) -> Place {
        Place { file: offset >> OFFSET_BITS, offset: offset & ((1 << OFFSET_BITS) - 1) }
    }
}

/// A file of the log.
#[derive(Debug)]
pub(super) struct Part {
    /// Number of the file since the start.
    pub(super) number: u64,
    /// The open file; `None` after its end.
    pub(super) file: Option<File>,
    pub(super) id: FileId,
    pub(super) head: Head,
    /// Offset of the next byte.
    pub(super) read_to: u64,
    /// Offset of the first byte of the incomplete line.
    pub(super) line_start: u64,
    /// The incomplete line.
    pub(super) partial: Vec<u8>,
    /// Where the incomplete line begins, if in the file before.
    pub(super) carried_from: Option<Place>,
    /// Whether the incomplete line is too long, so that the rest of it is skipped.
    pub(super) skipping: bool,
    /// Whether the next line is the rest of one that began before reading did.
    pub(super) skip_first: bool,
    /// Lines up to here were reported before a restart.
    pub(super) reported_to: u64,
    /// When the log was seen to have another file; `None` for the current file.
    pub(super) rotated_us: Option<i64>,
    /// Whether the rest of the last line is at the beginning of the next file: after `copytruncate`.
    pub(super) continued: bool,
    /// Whether the parser got the first line as a header.
    pub(super) header_seen: bool,
    /// Whether all of the file was read.
    pub(super) at_end: bool,
    /// When the file was modified, as of the latest read, in nanoseconds since 1970.
    modified_ns: i64,
}

impl Part {
    /// Starts at the beginning of a file.
    pub(super) fn new(number: u64, file: File) -> io::Result<Part> {
        let metadata = file.metadata()?;
        Ok(Part {
            number,
            id: FileId::of(&metadata),
            file: Some(file),
            head: Head::default(),
            read_to: 0,
            line_start: 0,
            partial: Vec::new(),
            carried_from: None,
            skipping: false,
            skip_first: false,
            reported_to: 0,
            rotated_us: None,
            continued: false,
            header_seen: false,
            at_end: false,
            modified_ns: modified_ns(&metadata),
        })
    }

    /// Continues where an earlier run stopped. If that is inside a line, skips the rest of it.
    pub(super) fn at(number: u64, file: File, position: &Position) -> io::Result<Part> {
        let inside_line = !begins_line(&file, position.needs_from)?;
        let mut part = Part::new(number, file)?;
        part.head = position.head();
        part.read_to = position.needs_from;
        part.line_start = position.needs_from;
        part.reported_to = position.offset;
        part.continued = position.continued;
        part.skip_first = inside_line;
        Ok(part)
    }

    /// Starts at the end of a file. An incomplete line there is skipped.
    pub(super) fn at_end(number: u64, file: File) -> io::Result<Part> {
        let length = file.metadata()?.len();
        let inside_line = !begins_line(&file, length)?;
        let head = Head::read(&file, length)?;
        let mut part = Part::new(number, file)?;
        part.head = head;
        part.read_to = length;
        part.line_start = length;
        part.skip_first = inside_line;
        Ok(part)
    }

    /// Returns whether the file is shorter than what was read, or begins differently.
    pub(super) fn is_truncated(&self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        Ok(file.metadata()?.len() < self.read_to || !self.head.matches(file)?)
    }

    /// Reads what the budget of `lines` allows.
    pub(super) fn read(&mut self, lines: &mut Lines<'_>) -> io::Result<()> {
        let Some(file) = self.file.take() else {
            self.at_end = true;
            return Ok(());
        };
        let result = self.read_file(&file, lines);
        self.file = Some(file);
        result
    }

    fn read_file(&mut self, file: &File, lines: &mut Lines<'_>) -> io::Result<()> {
        self.at_end = false;
        if !self.header_seen && self.read_to > 0 {
            self.header_seen = true;
            if let Some(header) = first_line(file)? {
                lines.parser.header(&header);
            }
        }
        let mut chunk = vec![0; CHUNK_BYTES];
        while !lines.budget.is_used_up() {
            let length = CHUNK_BYTES.min(usize::try_from(lines.budget.bytes).unwrap_or(CHUNK_BYTES));
            let read = match file.read_at(&mut chunk[..length], self.read_to) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                self.at_end = true;
                break;
            }
            let before = self.read_to;
            self.take(&chunk[..read], lines);
            lines.budget.bytes -= self.read_to - before;
        }
        self.modified_ns = modified_ns(&file.metadata()?);
        if self.head.can_grow(self.read_to) {
            self.head = Head::read(file, self.read_to)?;
        }
        Ok(())
    }

    /// Splits bytes into lines, up to the one whose transfers use up the budget.
    fn take(&mut self, bytes: &[u8], lines: &mut Lines<'_>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.read_to += piece.len() as u64;
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            if self.partial.len() + text.len() > MAX_LINE_BYTES {
                self.partial.clear();
                self.skipping = true;
            }
            if !self.skipping {
                self.partial.extend_from_slice(text);
                // A program that does not append leaves zeros after `copytruncate`.
                if self.partial.first() == Some(&0) {
                    let zeros = self.partial.iter().take_while(|byte| **byte == 0).count();
                    self.partial.drain(..zeros);
                }
            }
            if ends {
                let line = std::mem::take(&mut self.partial);
                self.line(&line, lines);
                self.partial = line;
                self.partial.clear();
                self.line_start = self.read_to;
                self.carried_from = None;
                self.skipping = false;
                if lines.budget.is_used_up() {
                    return;
                }
            }
        }
    }

    /// Gives a complete line to the parser.
    fn line(&mut self, line: &[u8], lines: &mut Lines<'_>) {
        if std::mem::take(&mut self.skip_first) {
            return;
        }
        let is_new = self.read_to > self.reported_to;
        if self.skipping {
            lines.counts.overlong_lines += u64::from(is_new);
            return;
        }
        let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        if is_new {
            lines.counts.lines += 1;
            lines.counts.invalid_utf8 += u64::from(matches!(text, std::borrow::Cow::Owned(_)));
        }
        let is_first = !std::mem::replace(&mut self.header_seen, true);
        if is_first && lines.parser.header(&text) {
            return;
        }
        let start = self.carried_from.unwrap_or(Place { file: self.number, offset: self.line_start });
        let mut transfers = Vec::new();
        let mut result = lines.parser.line(&text, start.to_offset(), &mut transfers);
        transfers.retain(|transfer| match transfer.check() {
            Ok(()) => true,
            Err(error) => {
                result = Err(error);
                false
            }
        });
        if let Err(error) = result
            && is_new
        {
            lines.counts.bad_lines += 1;
            lines.counts.last_bad_line =
                format!("{}: offset {}: {error}", lines.path.display(), start.offset);
        }
        if is_new {
            lines.counts.transfers += transfers.len() as u64;
            lines.budget.take_found(transfers.iter().map(json_bytes).sum());
            lines.found.extend(transfers.into_iter().enumerate().map(|(index, transfer)| Found {
                transfer,
                inode: self.id.inode,
                offset_after: self.read_to,
                index: index as u32,
                line: text.clone().into_owned(),
            }));
        }
    }

    /// Returns whether the last line is incomplete.
    pub(super) fn has_cut_line(&self) -> bool {
        !self.partial.is_empty() || self.skipping
    }

    /// Marks the incomplete last line as read: its rest was at the beginning of the next file.
    pub(super) fn finish_carried(&mut self) {
        self.line_start = self.read_to;
        self.skipping = false;
    }

    /// Returns the position in this file. `needs` is the earliest place that the parser needs.
    pub(super) fn position(&self, needs: Option<Place>) -> Position {
        Position {
            device: self.id.device,
            inode: self.id.inode,
            offset: self.line_start.max(self.reported_to),
            needs_from: match needs {
                Some(needs) if needs.file == self.number => needs.offset.min(self.line_start),
                Some(needs) if needs.file < self.number => 0,
                _ => self.line_start,
            },
            head_bytes: self.head.bytes,
            head_digest: self.head.digest,
            continued: self.continued,
            complete: self.at_end && !self.has_cut_line(),
            modified_ns: self.modified_ns,
            earlier: Vec::new(),
            finished: Vec::new(),
        }
    }
}

/// What the lines of a file go to.
pub(super) struct Lines<'a> {
    pub(super) path: &'a Path,
    pub(super) parser: &'a mut dyn LogParser,
    pub(super) counts: &'a mut FollowCounts,
    pub(super) found: &'a mut Vec<Found>,
    pub(super) budget: &'a mut Budget,
}

/// Returns the size of a transfer in a report, at most: bytes of JSON.
fn json_bytes(transfer: &LoggedTransfer) -> u64 {
    let LoggedTransfer { application, user, file, congestion_control, error, .. } = transfer;
    let length = |byte: u8| match byte {
        0..0x20 => 6_u64,
        b'"' | b'\\' => 2,
        _ => 1,
    };
    let text = |text: &String| text.bytes().take(MAX_REPORT_TEXT).map(length).sum::<u64>();
    TRANSFER_BYTES + [application, user, file, congestion_control, error].map(text).iter().sum::<u64>()
}

/// Returns whether a line begins at an offset: at the beginning of the file, or after a line feed.
fn begins_line(file: &File, offset: u64) -> io::Result<bool> {
    let mut before = [b'\n'];
    if offset > 0 {
        file.read_at(&mut before, offset - 1)?;
    }
    Ok(before == [b'\n'])
}

/// Returns the first line of a file, if it is complete and not too long.
fn first_line(file: &File) -> io::Result<Option<String>> {
    let mut buffer = vec![0; MAX_HEADER_BYTES];
    let read = file.read_at(&mut buffer, 0)?;
    let end = buffer[..read].iter().position(|byte| *byte == b'\n');
    Ok(end.map(|end| {
        let line = &buffer[..end];
        String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()
    }))
}

#[cfg(test)]
mod tests {
    use thalweg_api::{Transfer, TransferDirection};

    use super::*;

    /// Returns the report of a transfer whose numbers and addresses have as many digits as possible.
    fn reported(logged: &LoggedTransfer, user: &str, file: &str) -> Transfer {
        let address = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().ok();
        Transfer {
            transfer: "f".repeat(32),
            application: logged.application.clone(),
            direction: TransferDirection::Receive,
            user: user.to_owned(),
            file: file.to_owned(),
            src: address,
            dst: address,
            src_port: u16::MAX,
            dst_port: u16::MAX,
            start_us: i64::MAX,
            end_us: i64::MAX,
            bytes: u64::MAX,
            streams: u16::MAX,
            send_buffer_bytes: u64::MAX,
            receive_buffer_bytes: u64::MAX,
            congestion_control: logged.congestion_control.clone(),
            error: logged.error.clone(),
        }
    }

    #[test]
    fn a_transfer_is_never_larger_in_a_report_than_estimated() {
        for text in [String::new(), "/data/ä".to_owned(), "\u{1}\"\\\n".repeat(250)] {
            let logged = LoggedTransfer {
                application: text.clone(),
                user: text.clone(),
                file: text.clone(),
                congestion_control: text.clone(),
                error: text.clone(),
                ..LoggedTransfer::default()
            };
            let hash = "f".repeat(32);
            for (user, file) in [(text.as_str(), text.as_str()), (hash.as_str(), hash.as_str())] {
                let size = serde_json::to_string(&reported(&logged, user, file)).unwrap().len() as u64 + 1;
                let estimate = json_bytes(&logged);
                assert!(size <= estimate, "{size} bytes, estimated as {estimate}");
            }
        }
    }
}
