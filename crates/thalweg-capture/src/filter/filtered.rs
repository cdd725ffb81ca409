//! A capture filter in front of any source.

use thalweg_wire::{Batch, FrameRef, Interface, LinkType, Progress, Source, SourceCounters};
use thiserror::Error;

use super::libpcap::Libpcap;
use super::{Filter, FilterError, UNLIMITED_SNAP_LENGTH};

/// A source that delivers the frames of another source that a capture filter accepts, in order and without copying
/// them.
///
/// The expression is compiled for each link type when the first interface of that type appears, because a pcapng file
/// may have several. If all frames of a batch are rejected, the batch is empty.
#[derive(Debug)]
pub struct Filtered<S> {
    source: S,
    expression: String,
    filters: Vec<(LinkType, Verdict)>,
    /// For each interface, the index of its filter.
    filter_of_interface: Vec<usize>,
    accepted: Vec<FrameRef>,
    refused_count: u64,
}

/// The treatment of the frames of one link type.
#[derive(Debug)]
enum Verdict {
    Ask(Filter),
    /// libpcap has no filter for this link type, and Thalweg cannot parse the frames either.
    Reject,
}

/// Why a filtered source could not be read.
#[derive(Debug, Error)]
pub enum FilteredError<E> {
    /// The source behind the filter failed.
    #[error(transparent)]
    Source(E),
    /// The expression does not suit a link type of the source.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

impl<S: Source> Filtered<S> {
    /// Puts the filter `expression` in front of `source`. An expression that libpcap rejects is reported with the
    /// first batch, when the link type is known.
    ///
    /// # Errors
    /// If libpcap is missing.
    pub fn new(source: S, expression: impl Into<String>) -> Result<Filtered<S>, FilterError> {
        Libpcap::get()?;
        Ok(Filtered {
            source,
            expression: expression.into(),
            filters: Vec::new(),
            filter_of_interface: Vec::new(),
            accepted: Vec::new(),
            refused_count: 0,
        })
    }

    /// Returns the source behind the filter.
    pub fn source(&self) -> &S {
        &self.source
    }
}

impl<S: Source> Source for Filtered<S> {
    type Error = FilteredError<S::Error>;

    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Self::Error> {
        let Some(batch) = self.source.next_batch().map_err(FilteredError::Source)? else {
            return Ok(None);
        };
        for interface in &batch.interfaces[self.filter_of_interface.len()..] {
            let index = filter_for(interface, &self.expression, &mut self.filters)?;
            self.filter_of_interface.push(index);
        }
        self.accepted.clear();
        self.accepted.extend(batch.frames.iter().zip(batch.iter()).filter_map(|(frame_ref, frame)| {
            let filter = self.filter_of_interface[frame_ref.interface as usize];
            match &self.filters[filter].1 {
                Verdict::Ask(filter) if filter.matches(frame.bytes, frame.original_length) => {
                    Some(*frame_ref)
                }
                _ => None,
            }
        }));
        self.refused_count += (batch.frames.len() - self.accepted.len()) as u64;
        Ok(Some(Batch { frames: &self.accepted, ..batch }))
    }

    fn counters(&mut self) -> SourceCounters {
        let behind = self.source.counters();
        SourceCounters {
            frames: behind.frames - self.refused_count,
            filtered: behind.filtered + self.refused_count,
            ..behind
        }
    }

    fn progress(&self) -> Option<Progress> {
        self.source.progress()
    }
}

/// Returns the index of the filter for `interface`; compiles it if the link type is new.
fn filter_for(
    interface: &Interface,
    expression: &str,
    filters: &mut Vec<(LinkType, Verdict)>,
) -> Result<usize, FilterError> {
    let link_type = interface.link_type;
    if let Some(index) = filters.iter().position(|(known, _)| *known == link_type) {
        return Ok(index);
    }
    let verdict = match Filter::compile(expression, link_type, UNLIMITED_SNAP_LENGTH) {
        Ok(filter) => Verdict::Ask(filter),
        Err(FilterError::Expression { .. }) if !link_type.is_supported() => Verdict::Reject,
        Err(error) => return Err(error),
    };
    filters.push((link_type, verdict));
    Ok(filters.len() - 1)
}
