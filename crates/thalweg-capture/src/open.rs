//! Opens any packet source: a file, an interface through any backend, or a DPDK port.

use std::path::Path;

use thalweg_wire::LinkType;

use crate::backend::Backend;
use crate::choice::{self, Choice};
use crate::dpdk::DpdkSource;
use crate::error::CaptureError;
use crate::file::FileSource;
use crate::filter::{Filter, Filtered};
use crate::live::{LiveError, LiveSource, PromptSource, Way};
use crate::source::AnySource;
use crate::spec::{FileAccess, InterfaceSpec, Readers, Spec};
use crate::xdp::XdpSource;

/// An opened packet source.
#[derive(Debug)]
pub struct Opened {
    /// The sources: one, unless [`Readers::Workers`] share the packets of an interface.
    pub sources: Vec<AnySource>,
    /// The backend of an interface, with the reason; `None` for a file or a DPDK port.
    pub choice: Option<Choice>,
}

/// Opens a packet source. The capture of an interface starts at once.
///
/// If no backend is requested and AF_XDP is chosen but cannot be opened, AF_PACKET is opened instead; the choice
/// contains the reason.
///
/// # Errors
/// See [`CaptureError`]. A filter that is invalid for Ethernet is rejected at once, also for a file whose link type
/// is known only with its first frame.
pub fn open(spec: &Spec) -> Result<Opened, CaptureError> {
    match spec {
        Spec::File { path, filter, access } => {
            Ok(Opened { sources: vec![open_file(path, filter.as_deref(), *access)?], choice: None })
        }
        Spec::Interface(spec) => {
            let (sources, choice) = spec.within(|| open_interface(spec))??;
            Ok(Opened { sources, choice: Some(choice) })
        }
        Spec::Dpdk { options, readers } => {
            let group = DpdkSource::open_group(options, readers.count())?;
            Ok(Opened { sources: group.into_iter().map(AnySource::Dpdk).collect(), choice: None })
        }
    }
}

fn open_file(path: &Path, filter: Option<&str>, access: FileAccess) -> Result<AnySource, CaptureError> {
    let Some(expression) = filter else { return Ok(AnySource::File(FileSource::open_with(path, access)?)) };
    // A filter that is invalid for Ethernet is invalid for every link type, and should be reported before reading.
    Filter::compile(expression, LinkType::Ethernet, 0)?;
    Ok(AnySource::FilteredFile(Filtered::new(FileSource::open_with(path, access)?, expression)?))
}

/// Opens an interface of the calling thread's network namespace.
fn open_interface(spec: &InterfaceSpec) -> Result<(Vec<AnySource>, Choice), LiveError> {
    let choice = choice::choose_here(spec)?;
    match choice.backend {
        Backend::AfPacket => Ok((open_rings(spec)?, choice)),
        Backend::Prompt => {
            let group = PromptSource::open_group(&spec.options, spec.workers())?;
            Ok((group.into_iter().map(AnySource::Prompt).collect(), choice))
        }
        Backend::AfXdp => match open_xdp(spec) {
            Ok(sources) => Ok((sources, choice)),
            // Invalid options are errors for every backend.
            Err(error @ (LiveError::BadOption { .. } | LiveError::Filter(_))) => Err(error),
            Err(error) if spec.backend.is_some() => Err(error),
            Err(error) => {
                let reason = format!("AF_PACKET, since AF_XDP cannot be used: {error}");
                Ok((open_rings(spec)?, Choice { backend: Backend::AfPacket, reason }))
            }
        },
    }
}

fn open_rings(spec: &InterfaceSpec) -> Result<Vec<AnySource>, LiveError> {
    let group = LiveSource::open_group(&spec.options, spec.workers())?;
    Ok(group.into_iter().map(AnySource::Packet).collect())
}

fn open_xdp(spec: &InterfaceSpec) -> Result<Vec<AnySource>, LiveError> {
    if spec.options.way == Way::Out {
        let (value, expected) = ("out".to_owned(), "frames that this host receives, with AF_XDP".to_owned());
        return Err(LiveError::BadOption { option: "way", value, expected });
    }
    let group = XdpSource::open_group(&spec.xdp_options())?;
    if spec.readers == Readers::One && group.len() > 1 {
        // There were fewer when the backend was chosen.
        let interface = spec.name().to_owned();
        return Err(LiveError::SeveralQueues { interface, queue_count: group.len() as u32 });
    }
    Ok(group.into_iter().map(AnySource::Xdp).collect())
}
