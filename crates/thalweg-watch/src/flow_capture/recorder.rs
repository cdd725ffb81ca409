//! Picks the frames of a flow out of batches and encodes them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::{Sender, TrySendError};
use thalweg_wire::capture_file::pcapng::Encoder;
use thalweg_wire::parse::Parser;
use thalweg_wire::{Batch, FlowKey, Interface};

use super::Progress;

/// Encoded blocks, and the number of packets among them.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) bytes: Vec<u8>,
    pub(super) packets: u64,
}

/// Encodes the frames of one flow.
#[derive(Debug)]
pub(super) struct FlowEncoder {
    key: FlowKey,
    parser: Parser,
    /// Interfaces that the file has, in its order.
    interfaces: Vec<Interface>,
}

impl FlowEncoder {
    pub(super) fn new(key: FlowKey, decapsulate: bool) -> FlowEncoder {
        FlowEncoder { key: key.canonical().0, parser: Parser { decapsulate }, interfaces: Vec::new() }
    }

    /// Returns the frames of the flow in a batch, after the interfaces that are new.
    pub(super) fn encode(&mut self, batch: &Batch<'_>) -> Chunk {
        let (mut chunk, encoder) = (Chunk::default(), Encoder::default());
        for (frame, place) in batch.iter().zip(batch.frames) {
            let is_of_flow = |key: FlowKey| key.canonical().0 == self.key;
            if !self.parser.parse(&frame).is_ok_and(|packet| is_of_flow(packet.key)) {
                continue;
            }
            let interface = &batch.interfaces[place.interface as usize];
            let known = self.interfaces.iter().position(|known| known == interface);
            let number = known.unwrap_or_else(|| {
                encoder.interface_description(interface, None, &mut chunk.bytes);
                self.interfaces.push(interface.clone());
                self.interfaces.len() - 1
            });
            encoder.enhanced_packet(number as u32, &frame, None, &mut chunk.bytes);
            chunk.packets += 1;
        }
        chunk
    }
}

/// Records the frames of one flow as they come.
#[derive(Debug)]
pub(super) struct Recorder {
    encoder: FlowEncoder,
    sender: Sender<Chunk>,
    progress: Arc<Progress>,
}

impl Recorder {
    pub(super) fn new(
        key: FlowKey,
        decapsulate: bool,
        sender: Sender<Chunk>,
        progress: Arc<Progress>,
    ) -> Recorder {
        Recorder { encoder: FlowEncoder::new(key, decapsulate), sender, progress }
    }

    /// Hands the frames of the flow to the writing thread. Returns whether more are wanted.
    pub(super) fn frames(&mut self, batch: &Batch<'_>) -> bool {
        let known = self.encoder.interfaces.len();
        let chunk = self.encoder.encode(batch);
        if chunk.packets == 0 {
            return !self.progress.is_over();
        }
        match self.sender.try_send(chunk) {
            Ok(()) => !self.progress.is_over(),
            Err(TrySendError::Full(chunk)) => {
                self.progress.lost.fetch_add(chunk.packets, Ordering::Relaxed);
                // Their descriptions are lost too.
                self.encoder.interfaces.truncate(known);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}
