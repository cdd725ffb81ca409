//! Traces of our own, from the library behind `thalweg synth`: as a file for programs, as bytes in memory for
//! what is measured in this process, or packet by packet for studies that need no file at all.

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

/// Frames taken together, as many as a capture file hands on.
pub const BATCH_FRAMES: usize = 256;

/// Bytes kept of a packet: all headers whole, TCP over IPv6 with its options too. Some meters leave a packet out
/// whose TCP header was cut.
const SNAP_LENGTH: u32 = 96;

/// Most bytes of a packet in a trace: its record header and the snap length.
const BYTES_PER_PACKET: u64 = 16 + SNAP_LENGTH as u64;

/// Disk that a trace leaves free.
const SPARE_DISK: u64 = 1 << 30;

/// The default trace of so many packets.
pub fn normal(packets: u64) -> SynthOptions {
    SynthOptions { packets, snap_length: SNAP_LENGTH, ..SynthOptions::default() }
}

/// A trace of so many packets of which nine in ten are a flood: each the only packet of a random 5-tuple.
pub fn flooded(packets: u64) -> SynthOptions {
    SynthOptions { packets, flood_share: 0.9, ..normal(packets) }
}

/// A trace in a file.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// The pcap file.
    pub path: PathBuf,
    /// What is in it.
    pub contents: Contents,
}

/// What a trace's generator says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Packets.
    pub packets: u64,
    /// Flows; both directions are one.
    pub flows: u64,
    /// Bytes of the IP layer.
    pub bytes: u64,
    /// Directions of flows that are cheetahs.
    pub cheetahs: u64,
    /// Length of the file.
    pub file_bytes: u64,
}

/// The trace of these options under `folder`, made if it is not there yet. What was left half made is not
/// taken for a trace. A change of the generator is not noticed: remove the folder then.
///
/// # Errors
/// If it cannot be made, above all for want of disk space.
pub fn file(folder: &Path, name: &str, options: &SynthOptions) -> anyhow::Result<TraceFile> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let SynthOptions { packets, seed, snap_length, .. } = options;
    let stem = format!("{name}-{packets}-packets-seed-{seed}-snap-{snap_length}");
    let path = folder.join(format!("{stem}.pcap"));
    let contents_path = folder.join(format!("{stem}.json"));
    if let Some(contents) = kept(&path, &contents_path) {
        return Ok(TraceFile { path, contents });
    }
    let needed = options.packets * BYTES_PER_PACKET;
    if let Some(free) = free_disk(folder).filter(|free| *free < needed + SPARE_DISK) {
        let (needed, free) = (needed >> 20, free >> 20);
        bail!("a trace of {needed} MiB does not fit into {}: {free} MiB are free there", folder.display());
    }
    eprintln!("making {} ({} MiB at most)", path.display(), needed >> 20);
    let partial = path.with_extension("partial");
    let mut trace = File::create(&partial).with_context(|| format!("cannot make {}", partial.display()))?;
    let mut truth = BufWriter::new(File::create(folder.join(format!("{stem}.csv")))?);
    let summary = generate(options, &mut trace, &mut truth, &mut |_| {})?;
    let contents = Contents::of(&summary, trace.metadata()?.len());
    fs::rename(&partial, &path)?;
    fs::write(&contents_path, serde_json::to_string(&contents)?)?;
    Ok(TraceFile { path, contents })
}

/// A trace that was made before, if all of it is there.
fn kept(path: &Path, contents_path: &Path) -> Option<Contents> {
    let contents: Contents = serde_json::from_str(&fs::read_to_string(contents_path).ok()?).ok()?;
    (fs::metadata(path).ok()?.len() == contents.file_bytes).then_some(contents)
}

/// Reads a file once, so that the first program to read it does not wait for the disk alone.
///
/// # Errors
/// If it cannot be read.
pub fn warm(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

/// A trace in memory, its frames found.
#[derive(Debug)]
pub struct TraceInMemory {
    bytes: Vec<u8>,
    /// What is in it.
    pub contents: Contents,
    /// What its generator knows.
    pub truth: Truth,
}

impl TraceInMemory {
    /// Makes the trace of these options.
    ///
    /// # Errors
    /// If the options are refused.
    pub fn make(options: &SynthOptions) -> anyhow::Result<TraceInMemory> {
        let mut bytes = Vec::with_capacity((options.packets * BYTES_PER_PACKET) as usize);
        let mut truth = Vec::new();
        let summary = generate(options, &mut bytes, &mut truth, &mut |_| {})?;
        let contents = Contents::of(&summary, bytes.len() as u64);
        Ok(TraceInMemory { bytes, contents, truth: Truth::parse(&truth)? })
    }

    /// Calls `each` with every batch, in the trace's order.
    ///
    /// # Panics
    /// If the generator wrote what is no trace.
    pub fn batches(&self, mut each: impl FnMut(&Batch<'_>)) {
        let mut decoder = Decoder::new();
        let mut frames = Vec::with_capacity(BATCH_FRAMES);
        let mut at = 0;
        while at < self.bytes.len() {
            let bytes = &self.bytes[at..];
            frames.clear();
            let decoded = decoder.decode(bytes, at as u64, BATCH_FRAMES, &mut frames);
            each(&Batch { bytes, frames: &frames, interfaces: decoder.interfaces() });
            at += decoded.expect("a trace of our own is well formed").consumed;
        }
    }
}

impl Contents {
    fn of(summary: &SynthSummary, file_bytes: u64) -> Contents {
        let SynthSummary { packets, flows, bytes, cheetahs, .. } = *summary;
        Contents { packets, flows, bytes, cheetahs, file_bytes }
    }
}

/// Makes the trace of these options and calls `each` with its packets, batch by batch; nothing is kept.
///
/// # Errors
/// If the options are refused.
pub fn stream(options: &SynthOptions, each: impl FnMut(&[Packet])) -> anyhow::Result<(Contents, Truth)> {
    let mut sink = PacketSink::new(each);
    let mut truth = Vec::new();
    eprintln!("making {} packets, seed {}", grouped(options.packets), options.seed);
    let summary = generate(options, &mut sink, &mut truth, &mut |_| {})?;
    Ok((Contents::of(&summary, sink.written), Truth::parse(&truth)?))
}

/// Takes the bytes of a capture file, hands on its packets.
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
    fn a_stream_a_memory_and_a_file_hold_the_same_packets() {
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
    fn a_trace_cut_short_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let made = file(folder.path(), "normal", &normal(1_000)).unwrap();
        fs::write(&made.path, "cut short").unwrap();
        let again = file(folder.path(), "normal", &normal(1_000)).unwrap();
        assert_eq!(made.contents, again.contents);
        assert_eq!(fs::metadata(&again.path).unwrap().len(), again.contents.file_bytes);
    }
}
