//! Synthetic traces from the library of `thalweg synth`: as a file for programs, as bytes in memory for measurements in
//! this process, or as a stream of packets.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use thalweg_measure::meter::intake::Intake;
use thalweg_synth::trace::{SynthOptions, SynthSummary, generate};
use thalweg_wire::capture_file::Decoder;
use thalweg_wire::parse::Parser;
use thalweg_wire::{Batch, FrameRef, HashSeed, Packet};

use crate::machine::free_disk;
use crate::results::grouped;
use crate::truth::Truth;

/// Frames per batch, as many as a capture file source delivers.
pub const BATCH_FRAMES: usize = 256;

/// Snap length: all headers, including TCP options over IPv6. Some meters ignore packets with a truncated TCP header.
const SNAP_LENGTH: u32 = 96;

/// Maximum size of a packet in a trace: its record header and the snap length.
const BYTES_PER_PACKET: u64 = 16 + SNAP_LENGTH as u64;

/// Disk space that must stay free.
const MIN_FREE_DISK: u64 = 1 << 30;

/// Returns the options of the default trace with this many packets.
pub fn normal(packets: u64) -> SynthOptions {
    SynthOptions { packets, snap_length: SNAP_LENGTH, ..SynthOptions::default() }
}

/// Returns the options of a trace in which nine of ten packets are a flood: each is the only packet of a random
/// 5-tuple.
pub fn flooded(packets: u64) -> SynthOptions {
    SynthOptions { packets, flood_share: 0.9, ..normal(packets) }
}

/// A trace in a file.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// The pcap file.
    pub path: PathBuf,
    /// Its contents.
    pub contents: Contents,
}

/// The counts of a trace, from its generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Number of packets.
    pub packets: u64,
    /// Number of bidirectional flows.
    pub flows: u64,
    /// Bytes of the IP layer.
    pub bytes: u64,
    /// Number of flow directions that are cheetahs.
    pub cheetahs: u64,
    /// Length of the file.
    pub file_bytes: u64,
}

/// Returns the trace for these options under `folder`, generating it if missing or incomplete. After a change of the
/// generator remove the folder.
///
/// # Errors
/// If it cannot be generated, for example because the disk is full.
pub fn file(folder: &Path, name: &str, options: &SynthOptions) -> anyhow::Result<TraceFile> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let SynthOptions { packets, seed, snap_length, .. } = options;
    let stem = format!("{name}-{packets}-packets-seed-{seed}-snap-{snap_length}");
    let path = folder.join(format!("{stem}.pcap"));
    let contents_path = folder.join(format!("{stem}.json"));
    if let Some(contents) = existing(&path, &contents_path) {
        return Ok(TraceFile { path, contents });
    }
    let needed = options.packets * BYTES_PER_PACKET;
    if let Some(free) = free_disk(folder).filter(|free| *free < needed + MIN_FREE_DISK) {
        let (needed, free) = (needed >> 20, free >> 20);
        bail!("not enough disk space in {} for a trace of {needed} MiB: {free} MiB free", folder.display());
    }
    eprintln!("generating {} (at most {} MiB)", path.display(), needed >> 20);
    let partial = path.with_extension("partial");
    let mut trace = File::create(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    let mut truth = BufWriter::new(File::create(folder.join(format!("{stem}.csv")))?);
    let summary = generate(options, &mut trace, &mut truth, &mut |_| {})?;
    let contents = Contents::of(&summary, trace.metadata()?.len());
    fs::rename(&partial, &path)?;
    fs::write(&contents_path, serde_json::to_string(&contents)?)?;
    Ok(TraceFile { path, contents })
}

/// Returns the contents of an existing, complete trace.
fn existing(path: &Path, contents_path: &Path) -> Option<Contents> {
    let contents: Contents = serde_json::from_str(&fs::read_to_string(contents_path).ok()?).ok()?;
    (fs::metadata(path).ok()?.len() == contents.file_bytes).then_some(contents)
}

/// Reads a file once, so that the first program to read it finds it in the page cache.
///
/// # Errors
/// If it cannot be read.
pub fn warm(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

/// A trace in memory.
#[derive(Debug)]
pub struct TraceInMemory {
    bytes: Vec<u8>,
    /// Its contents.
    pub contents: Contents,
    /// Its ground truth.
    pub truth: Truth,
}

impl TraceInMemory {
    /// Generates the trace for these options.
    ///
    /// # Errors
    /// If the options are not valid.
    pub fn make(options: &SynthOptions) -> anyhow::Result<TraceInMemory> {
        let mut bytes = Vec::with_capacity((options.packets * BYTES_PER_PACKET) as usize);
        let mut truth = Vec::new();
        let summary = generate(options, &mut bytes, &mut truth, &mut |_| {})?;
        let contents = Contents::of(&summary, bytes.len() as u64);
        Ok(TraceInMemory { bytes, contents, truth: Truth::parse(&truth)? })
    }

    /// Calls `each` with every batch in order.
    ///
    /// # Panics
    /// If the generated trace is malformed.
    pub fn batches(&self, mut each: impl FnMut(&Batch<'_>)) {
        let mut decoder = Decoder::new();
        let mut frames = Vec::with_capacity(BATCH_FRAMES);
        let mut at = 0;
        while at < self.bytes.len() {
            let bytes = &self.bytes[at..];
            frames.clear();
            let decoded = decoder.decode(bytes, at as u64, BATCH_FRAMES, &mut frames);
            each(&Batch { bytes, frames: &frames, interfaces: decoder.interfaces() });
            at += decoded.expect("generated traces are well formed").consumed;
        }
    }
}

impl Contents {
    fn of(summary: &SynthSummary, file_bytes: u64) -> Contents {
        let SynthSummary { packets, flows, bytes, cheetahs, .. } = *summary;
        Contents { packets, flows, bytes, cheetahs, file_bytes }
    }
}

/// Generates the trace for these options and calls `each` with its packets in batches, without storing them.
///
/// # Errors
/// If the options are not valid.
pub fn stream(options: &SynthOptions, each: impl FnMut(&[Packet])) -> anyhow::Result<(Contents, Truth)> {
    let mut sink = PacketSink::new(each);
    let mut truth = Vec::new();
    eprintln!("generating {} packets, seed {}", grouped(options.packets), options.seed);
    let summary = generate(options, &mut sink, &mut truth, &mut |_| {})?;
    Ok((Contents::of(&summary, sink.written), Truth::parse(&truth)?))
}

/// A writer that parses the bytes of a capture file and passes on its packets.
struct PacketSink<F> {
    each: F,
    decoder: Decoder,
    intake: Intake,
    pending: Vec<u8>,
    frames: Vec<FrameRef>,
    packets: Vec<Packet>,
    written: u64,
}

impl<F: FnMut(&[Packet])> PacketSink<F> {
    fn new(each: F) -> Self {
        let intake = Intake::new(Parser::default(), HashSeed::new(1));
        let (pending, frames, packets) = (Vec::new(), Vec::new(), Vec::new());
        PacketSink { each, decoder: Decoder::new(), intake, pending, frames, packets, written: 0 }
    }
}

impl<F: FnMut(&[Packet])> Write for PacketSink<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        self.frames.clear();
        let base = self.written;
        let decoded = self.decoder.decode(&self.pending, base, usize::MAX, &mut self.frames);
        let consumed = decoded.map_err(|fault| io::Error::other(fault.to_string()))?.consumed;
        for frames in self.frames.chunks(BATCH_FRAMES) {
            let batch = Batch { bytes: &self.pending, frames, interfaces: self.decoder.interfaces() };
            self.packets.clear();
            self.intake.take(&batch, &mut self.packets);
            (self.each)(&self.packets);
        }
        self.pending.drain(..consumed);
        self.written += consumed as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_and_memory_contain_the_same_packets() {
        let options = normal(3_000);
        let mut streamed = Vec::new();
        let (contents, _) = stream(&options, |packets| streamed.extend_from_slice(packets)).unwrap();
        let trace = TraceInMemory::make(&options).unwrap();
        let mut intake = Intake::new(Parser::default(), HashSeed::new(1));
        let mut taken = Vec::new();
        trace.batches(|batch| {
            intake.take(batch, &mut taken);
        });
        assert_eq!(streamed.len(), 3_000);
        assert_eq!(streamed, taken);
        assert_eq!(contents, trace.contents);
    }

    #[test]
    fn truncated_trace_is_generated_again() {
        let folder = tempfile::tempdir().unwrap();
        let made = file(folder.path(), "normal", &normal(1_000)).unwrap();
        fs::write(&made.path, "cut short").unwrap();
        let again = file(folder.path(), "normal", &normal(1_000)).unwrap();
        assert_eq!(made.contents, again.contents);
        assert_eq!(fs::metadata(&again.path).unwrap().len(), again.contents.file_bytes);
    }
}
