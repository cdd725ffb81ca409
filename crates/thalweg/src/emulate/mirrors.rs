//! Monitor ports: what they send goes into a capture file each, `mirror-ROUTER.pcapng`, as a NIC would have it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use thalweg_emulator::core::monitor::Mirrored;
use thalweg_emulator::hosts::Hosts;
use thalweg_emulator::mirror::MirrorSource;
use thalweg_emulator::{Network, SlotClock};
use thalweg_network::{Node, RouterId, Topology};
use thalweg_wire::Source;
use thalweg_wire::capture_file::pcapng::Encoder;

use super::plan::Plan;

/// All monitor ports of a run.
pub(super) struct Mirrors<'a> {
    captures: Vec<Capture<'a>>,
    /// Kept from slot to slot.
    copies: Vec<Mirrored>,
}

/// One monitor port and its file.
struct Capture<'a> {
    router: RouterId,
    source: MirrorSource<'a>,
    file: BufWriter<File>,
    blocks: Vec<u8>,
}

impl<'a> Mirrors<'a> {
    /// The monitor ports of a plan. Without a folder their packets are counted, but not kept.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub(super) fn new(
        plan: &Plan,
        topology: &'a Topology,
        clock: SlotClock,
        folder: Option<&Path>,
    ) -> io::Result<Mirrors<'a>> {
        let monitors =
            folder.into_iter().flat_map(|folder| plan.monitors.iter().map(move |monitor| (folder, monitor)));
        let captures = monitors.map(|(folder, monitor)| {
            let name = topology.name(Node::Router(monitor.router));
            Capture::new(MirrorSource::new(topology, clock, name), monitor.router, folder, name)
        });
        Ok(Mirrors { captures: captures.collect::<io::Result<_>>()?, copies: Vec::new() })
    }

    /// Takes what monitor ports have sent in the last slot.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn slot(&mut self, network: &mut dyn Network, hosts: Option<&Hosts>) -> io::Result<()> {
        network.take_mirrored(&mut self.copies);
        for capture in &mut self.captures {
            for copy in self.copies.iter().filter(|copy| copy.router == capture.router) {
                let segment = hosts.and_then(|hosts| hosts.segment(copy.packet.id()));
                capture.source.push(copy, segment);
            }
            capture.write()?;
        }
        self.copies.clear();
        Ok(())
    }

    /// Writes what is still to be written.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.captures.iter_mut().try_for_each(|capture| capture.file.flush())
    }
}

impl<'a> Capture<'a> {
    fn new(
        mut source: MirrorSource<'a>,
        router: RouterId,
        folder: &Path,
        name: &str,
    ) -> io::Result<Capture<'a>> {
        // A name of a router may be no name of a file.
        let harmless = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let file: String = name.chars().map(harmless).collect();
        fs::create_dir_all(folder)?;
        let file = BufWriter::new(File::create(folder.join(format!("mirror-{file}.pcapng")))?);
        let mut blocks = Vec::new();
        let encoder = Encoder::default();
        encoder.section_header(&mut blocks);
        let Ok(batch) = source.next_batch();
        for interface in batch.iter().flat_map(|batch| batch.interfaces) {
            encoder.interface_description(interface, Some("monitor port of an emulated router"), &mut blocks);
        }
        Ok(Capture { router, source, file, blocks })
    }

    fn write(&mut self) -> io::Result<()> {
        let Ok(batch) = self.source.next_batch();
        for frame in batch.iter().flat_map(|batch| batch.iter()) {
            Encoder::default().enhanced_packet(0, &frame, None, &mut self.blocks);
        }
        self.file.write_all(&self.blocks)?;
        self.blocks.clear();
        Ok(())
    }
}
