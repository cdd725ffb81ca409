//! Writes the trace to a pcap file, with a buffer of 1 MiB.

use std::io::{self, Write};

use thalweg_wire::capture_file::{ByteOrder, pcap};
use thalweg_wire::{Frame, LinkType, Timestamp};

use super::connection::{Connection, Segment};
use super::encode::{MAX_HEADERS_LENGTH, encode};
use super::options::MAX_SNAP_LENGTH;

const BUFFER_LENGTH: usize = 1 << 20;

/// Appends packets to a pcap file.
pub(super) struct TraceWriter<'a, W> {
    out: &'a mut W,
    encoder: pcap::Encoder,
    link_type: LinkType,
    snap_length: usize,
    buffer: Vec<u8>,
    /// The current frame: headers, then the zeros of its payload.
    frame: Vec<u8>,
}

impl<'a, W: Write> TraceWriter<'a, W> {
    /// Starts the file.
    pub(super) fn new(
        out: &'a mut W,
        precision: pcap::Precision,
        link_type: LinkType,
        snap_length: u32,
    ) -> TraceWriter<'a, W> {
        let encoder = pcap::Encoder { order: ByteOrder::Little, precision };
        let mut buffer = Vec::with_capacity(BUFFER_LENGTH + 2 * MAX_SNAP_LENGTH as usize);
        encoder.file_header(link_type, snap_length, &mut buffer);
        let snap_length = snap_length as usize;
        let frame = vec![0; snap_length.max(MAX_HEADERS_LENGTH)];
        TraceWriter { out, encoder, link_type, snap_length, buffer, frame }
    }

    /// Appends `segment`, sent at `time`, and returns its bytes from the IP header on.
    #[inline]
    pub(super) fn write(
        &mut self,
        connection: &mut Connection,
        segment: &Segment,
        time: Timestamp,
    ) -> io::Result<u32> {
        let lengths = encode(connection, segment, time, self.link_type, &mut self.frame);
        let captured = self.snap_length.min(lengths.original as usize);
        if captured > lengths.headers {
            self.frame[lengths.headers..captured].fill(0);
        }
        let bytes = &self.frame[..captured];
        let frame = Frame { time, bytes, original_length: lengths.original, link_type: self.link_type };
        self.encoder.record(&frame, &mut self.buffer);
        if self.buffer.len() >= BUFFER_LENGTH {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(lengths.ip)
    }

    /// Writes the buffered rest.
    pub(super) fn finish(self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.out.flush()
    }
}
