//! One source type for files and for every backend.

use std::io;

use thalweg_linux::socket::wait_for_any;
use thalweg_wire::{Batch, LinkType, Nanos, Progress, Source, SourceCounters};

use crate::backend::Backend;
use crate::dpdk::DpdkSource;
use crate::error::CaptureError;
use crate::file::FileSource;
use crate::filter::Filtered;
use crate::live::{LinkState, LiveSource, PromptSource};
use crate::xdp::XdpSource;

/// A source of any kind, with one dispatch per batch.
#[derive(Debug)]
pub enum AnySource {
    /// A capture file.
    File(FileSource),
    /// A capture file behind a filter.
    FilteredFile(Filtered<FileSource>),
    /// An interface through AF_PACKET.
    Packet(LiveSource),
    /// An interface through AF_PACKET, each frame as soon as it arrives.
    Prompt(PromptSource),
    /// An interface through AF_XDP.
    Xdp(XdpSource),
    /// A DPDK port.
    Dpdk(DpdkSource),
}

impl AnySource {
    /// Returns the backend of an interface; `None` for a file or a DPDK port.
    pub fn backend(&self) -> Option<Backend> {
        match self {
            AnySource::File(_) | AnySource::FilteredFile(_) | AnySource::Dpdk(_) => None,
            AnySource::Packet(_) => Some(Backend::AfPacket),
            AnySource::Prompt(_) => Some(Backend::Prompt),
            AnySource::Xdp(_) => Some(Backend::AfXdp),
        }
    }

    /// Returns the interface's name when it was opened, or the file's.
    pub fn name(&self) -> &str {
        match self {
            AnySource::File(file) => file.name(),
            AnySource::FilteredFile(file) => file.source().name(),
            AnySource::Packet(source) => source.name(),
            AnySource::Prompt(source) => source.name(),
            AnySource::Xdp(source) => source.name(),
            AnySource::Dpdk(source) => source.name(),
        }
    }

    /// Returns the link type of an interface; `None` for a file, which may have several.
    pub fn link_type(&self) -> Option<LinkType> {
        match self {
            AnySource::File(_) | AnySource::FilteredFile(_) => None,
            AnySource::Packet(source) => Some(source.link_type()),
            AnySource::Prompt(source) => Some(source.link_type()),
            AnySource::Xdp(_) | AnySource::Dpdk(_) => Some(LinkType::Ethernet),
        }
    }

    /// Returns whether packets can arrive at an interface, as of the last call of [`next_batch`](Source::next_batch);
    /// `None` for a file.
    pub fn link_state(&self) -> Option<LinkState> {
        match self {
            AnySource::File(_) | AnySource::FilteredFile(_) => None,
            AnySource::Packet(source) => Some(source.link_state()),
            AnySource::Prompt(source) => Some(source.link_state()),
            AnySource::Xdp(source) => Some(source.link_state()),
            AnySource::Dpdk(source) => Some(source.link_state()),
        }
    }

    /// Whether packets arrive in real time, with this machine's clock.
    pub fn is_live(&self) -> bool {
        !matches!(self, AnySource::File(_) | AnySource::FilteredFile(_))
    }

    /// Whether it is a DPDK port: DPDK has threads of its own, which keep the privileges with which it was started.
    pub fn is_dpdk(&self) -> bool {
        matches!(self, AnySource::Dpdk(_))
    }

    /// Whether it is an interface that is down.
    pub fn is_down(&self) -> bool {
        self.link_state() == Some(LinkState::Down)
    }

    /// Updates an interface's [link state](Self::link_state) without waiting for a frame, for callers that read
    /// several sources, each only when it [is ready](Self::is_ready). No effect for a file.
    pub fn update_link_state(&mut self) {
        match self {
            AnySource::File(_) | AnySource::FilteredFile(_) => {}
            AnySource::Packet(source) => source.update_link_state(),
            AnySource::Prompt(source) => source.update_link_state(),
            AnySource::Xdp(source) => source.update_link_state(),
            AnySource::Dpdk(source) => source.update_link_state(),
        }
    }

    /// Whether more frames are available, so that the next call does not wait. Always true for a file.
    #[inline]
    pub fn is_ready(&self) -> bool {
        match self {
            AnySource::File(_) | AnySource::FilteredFile(_) => true,
            AnySource::Packet(source) => source.is_ready(),
            AnySource::Prompt(source) => source.is_ready(),
            AnySource::Xdp(source) => source.is_ready(),
            AnySource::Dpdk(source) => source.is_ready(),
        }
    }
}

impl Source for AnySource {
    type Error = CaptureError;

    #[inline]
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, CaptureError> {
        match self {
            AnySource::File(file) => Ok(file.next_batch()?),
            AnySource::FilteredFile(file) => Ok(file.next_batch()?),
            AnySource::Packet(source) => Ok(source.next_batch()?),
            AnySource::Prompt(source) => Ok(source.next_batch()?),
            AnySource::Xdp(source) => Ok(source.next_batch()?),
            AnySource::Dpdk(source) => Ok(source.next_batch()?),
        }
    }

    fn counters(&mut self) -> SourceCounters {
        match self {
            AnySource::File(file) => file.counters(),
            AnySource::FilteredFile(file) => file.counters(),
            AnySource::Packet(source) => source.counters(),
            AnySource::Prompt(source) => source.counters(),
            AnySource::Xdp(source) => source.counters(),
            AnySource::Dpdk(source) => source.counters(),
        }
    }

    fn progress(&self) -> Option<Progress> {
        match self {
            AnySource::File(file) => file.progress(),
            AnySource::FilteredFile(file) => file.progress(),
            AnySource::Packet(source) => source.progress(),
            AnySource::Prompt(source) => source.progress(),
            AnySource::Xdp(source) => source.progress(),
            AnySource::Dpdk(source) => source.progress(),
        }
    }
}

/// Releases the last batches of the sources, and waits until any of them has frames, for at most `timeout` (rounded
/// up to milliseconds). Returns whether one has; a signal also ends the wait. Does not wait if one is a file or a DPDK port. So one thread can read several
/// interfaces.
///
/// # Errors
/// The system error.
pub fn wait_any<'a>(
    sources: impl IntoIterator<Item = &'a mut AnySource>,
    timeout: Nanos,
) -> io::Result<bool> {
    let mut descriptors = Vec::new();
    for source in sources {
        descriptors.push(match source {
            // A DPDK port has no descriptor: it is polled by reading it.
            AnySource::File(_) | AnySource::FilteredFile(_) | AnySource::Dpdk(_) => return Ok(true),
            AnySource::Packet(source) => source.release_batch(),
            AnySource::Prompt(source) => source.release_batch(),
            AnySource::Xdp(source) => source.release_batch(),
        });
    }
    wait_for_any(descriptors, timeout)
}
