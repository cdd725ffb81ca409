//! Records packets at an interface of a namespace, through AF_PACKET, with the times at which the kernel saw them.
//!
//! Memory is bounded: packets beyond `MAX_PACKETS` are counted. Packets that the kernel dropped are counted too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use thalweg_capture::backend::Backend;
use thalweg_capture::live::LiveOptions;
use thalweg_capture::{InterfaceSpec, Opened, open};
use thalweg_linux::Namespace;
use thalweg_wire::parse::Parser;
use thalweg_wire::source::Frame;
use thalweg_wire::{Bytes, Source as _};

use crate::error::ScenarioError;

/// Maximum number of recorded packets: two minutes of full-size packets at 200 Mbit/s with their acknowledgements.
const MAX_PACKETS: usize = 4_000_000;

/// Bytes kept of each frame: Ethernet, IPv4 and TCP with all options.
const SNAP_LENGTH: u32 = 128;

/// Memory for frames that wait to be read: a second and more of the link.
const RING_SIZE: Bytes = Bytes(8 << 20);

/// Batches to read after the end, if packets still arrive.
const MAX_BATCHES_AFTER_END: u32 = 100;

/// A running record of what `select` returns for each packet.
pub struct Recorder<T> {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Record<T>>>,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<T> {
    /// The packets, in the order in which the kernel saw them.
    pub packets: Vec<T>,
    /// Packets that were lost: dropped by the kernel, or beyond the memory.
    pub lost: u64,
}

impl<T: Send + 'static> Recorder<T> {
    /// Starts to record an interface. `select` returns what to keep of a frame.
    ///
    /// # Errors
    /// If the interface cannot be opened.
    pub fn start(
        namespace: Namespace,
        interface: &str,
        mut select: impl FnMut(&Parser, &Frame<'_>) -> Option<T> + Send + 'static,
    ) -> Result<Recorder<T>, ScenarioError> {
        let failed =
            |error: &dyn std::fmt::Display| ScenarioError::Monitoring(format!("{interface}: {error}"));
        let options = LiveOptions {
            snap_length: SNAP_LENGTH,
            ring_size: RING_SIZE,
            promiscuous: false,
            ..LiveOptions::new(interface)
        };
        let spec = InterfaceSpec {
            namespace: Some(namespace),
            backend: Some(Backend::AfPacket),
            ..InterfaceSpec::new(options)
        };
        let Opened { mut sources, .. } = open(&spec.into()).map_err(|error| failed(&error))?;
        let mut source = sources.pop().ok_or_else(|| failed(&"no source"))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let record = move || {
            let (parser, mut record) = (Parser::default(), Record { packets: Vec::new(), lost: 0 });
            let mut since_end = 0;
            loop {
                // What the kernel has captured until the end is still read.
                let was_over = ended.load(Ordering::Relaxed);
                let Ok(Some(batch)) = source.next_batch() else { break };
                let is_empty = batch.frames.is_empty();
                for selected in batch.iter().filter_map(|frame| select(&parser, &frame)) {
                    match record.packets.len() < MAX_PACKETS {
                        true => record.packets.push(selected),
                        false => record.lost += 1,
                    }
                }
                if was_over && (is_empty || since_end > MAX_BATCHES_AFTER_END) {
                    break;
                }
                since_end += u32::from(was_over);
            }
            record.lost += source.counters().kernel_drops;
            record
        };
        let thread = thread::Builder::new().name("record".to_owned()).spawn(record);
        Ok(Recorder { is_over, thread: Some(thread.map_err(|error| failed(&error))?) })
    }

    /// Ends the record, and returns it.
    ///
    /// # Errors
    /// If the thread panicked.
    pub fn finish(mut self) -> Result<Record<T>, ScenarioError> {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it runs until here");
        thread.join().map_err(|_| ScenarioError::Monitoring("the recording thread panicked".to_owned()))
    }
}

impl<T> Drop for Recorder<T> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
