//! Writes the packets of each monitor port to a capture file, `mirror-ROUTER.pcapng`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use thalweg_emulator::mirror::MirrorFeed;
use thalweg_network::{Node, RouterId, Topology};
use thalweg_wire::Batch;
use thalweg_wire::capture_file::pcapng::Encoder;

/// The capture files of a run.
pub(crate) struct CaptureFiles(Vec<CaptureFile>);

/// The file of one monitor port.
struct CaptureFile {
    router: RouterId,
    file: BufWriter<File>,
    blocks: Vec<u8>,
}

impl CaptureFiles {
    /// Creates a file for each port of `feed` in `folder`, which is created if missing.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub(crate) fn create(
        feed: &mut MirrorFeed<'_>,
        topology: &Topology,
        folder: &Path,
    ) -> io::Result<CaptureFiles> {
        let mut files = Vec::new();
        feed.try_deliver(|router, batch| {
            files.push(CaptureFile::create(router, &batch, folder, topology.name(Node::Router(router)))?);
            io::Result::Ok(())
        })?;
        Ok(CaptureFiles(files))
    }

    /// Writes the packets of a port.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&mut self, router: RouterId, batch: &Batch<'_>) -> io::Result<()> {
        match self.0.iter_mut().find(|file| file.router == router) {
            Some(file) => file.write(batch),
            None => Ok(()),
        }
    }

    /// Flushes all files.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.0.iter_mut().try_for_each(|capture| capture.file.flush())
    }
}

impl CaptureFile {
    fn create(router: RouterId, batch: &Batch<'_>, folder: &Path, name: &str) -> io::Result<CaptureFile> {
        // Router names may contain characters that are invalid in file names.
        let harmless = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let file: String = name.chars().map(harmless).collect();
        fs::create_dir_all(folder)?;
        let file = BufWriter::new(File::create(folder.join(format!("mirror-{file}.pcapng")))?);
        let mut blocks = Vec::new();
        let encoder = Encoder::default();
        encoder.section_header(&mut blocks);
        for interface in batch.interfaces {
            encoder.interface_description(interface, Some("monitor port of an emulated router"), &mut blocks);
        }
        Ok(CaptureFile { router, file, blocks })
    }

    fn write(&mut self, batch: &Batch<'_>) -> io::Result<()> {
        for frame in batch.iter() {
            Encoder::default().enhanced_packet(0, &frame, None, &mut self.blocks);
        }
        self.file.write_all(&self.blocks)?;
        self.blocks.clear();
        Ok(())
    }
}
