//! One source for both ways.

use std::num::NonZeroUsize;

use thalweg_wire::{Batch, LinkType, Source, SourceCounters};

use super::{Backend, Choice, choose_with};
use crate::live::{LinkState, LiveError, LiveOptions, LiveSource};
use crate::xdp::{XdpOptions, XdpSource};

/// A live source of either kind. Which it is, is asked once a batch.
#[derive(Debug)]
pub enum AnySource {
    /// Through AF_PACKET.
    Packet(LiveSource),
    /// Through AF_XDP.
    Xdp(XdpSource),
}

impl AnySource {
    /// Opens an interface as `wanted`, or as [`choose`](super::choose) says. Through AF_PACKET, `workers` sources
    /// with the options `packet` share its packets; through AF_XDP there is one for each receive queue, however
    /// many workers there are, with the options `xdp`, whose interface must be the same.
    ///
    /// When nothing is wanted and AF_XDP turns out not to work after all, AF_PACKET is opened instead; the choice
    /// that is returned says why.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn open_group(
        packet: &LiveOptions,
        xdp: &XdpOptions,
        workers: NonZeroUsize,
        wanted: Option<Backend>,
    ) -> Result<(Vec<AnySource>, Choice), LiveError> {
        let mut choice = choose_with(xdp, wanted);
        if choice.backend == Backend::AfXdp {
            match XdpSource::open_group(xdp) {
                Ok(group) => return Ok((group.into_iter().map(AnySource::Xdp).collect(), choice)),
                // What is wrong with the options is wrong whatever the kernel can do.
                Err(error @ (LiveError::BadOption { .. } | LiveError::Filter(_))) => return Err(error),
                Err(error) if wanted.is_some() => return Err(error),
                Err(error) => {
                    choice = Choice {
                        backend: Backend::AfPacket,
                        reason: format!("AF_PACKET, since AF_XDP does not work: {error}"),
                    }
                }
            }
        }
        let group = LiveSource::open_group(packet, workers)?;
        Ok((group.into_iter().map(AnySource::Packet).collect(), choice))
    }

    /// Which of the two.
    pub fn backend(&self) -> Backend {
        match self {
            AnySource::Packet(_) => Backend::AfPacket,
            AnySource::Xdp(_) => Backend::AfXdp,
        }
    }

    /// The interface's name when it was opened.
    pub fn name(&self) -> &str {
        match self {
            AnySource::Packet(source) => source.name(),
            AnySource::Xdp(source) => source.name(),
        }
    }

    /// What its frames begin with.
    pub fn link_type(&self) -> LinkType {
        match self {
            AnySource::Packet(source) => source.link_type(),
            AnySource::Xdp(_) => LinkType::Ethernet,
        }
    }

    /// Whether packets can arrive, as of the last call of [`next_batch`](Source::next_batch).
    pub fn link_state(&self) -> LinkState {
        match self {
            AnySource::Packet(source) => source.link_state(),
            AnySource::Xdp(source) => source.link_state(),
        }
    }
}

impl Source for AnySource {
    type Error = LiveError;

    #[inline]
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, LiveError> {
        match self {
            AnySource::Packet(source) => source.next_batch(),
            AnySource::Xdp(source) => source.next_batch(),
        }
    }

    fn counters(&mut self) -> SourceCounters {
        match self {
            AnySource::Packet(source) => source.counters(),
            AnySource::Xdp(source) => source.counters(),
        }
    }
}
