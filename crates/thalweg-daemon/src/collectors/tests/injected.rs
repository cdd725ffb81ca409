//! Live sources for tests, selected by the names of interfaces.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use thalweg_wire::{Batch, FrameRef, Interface, LinkType, Nanos, Source, SourceCounters, Timestamp};

use crate::collectors::SourceError;
use crate::config::{CollectorConfig, SourceConfig};
use thalweg_linux::clock::realtime;

/// Panics twice after some frames, then works.
pub(in crate::collectors) const PANICS_TWICE_INTERFACE: &str = "panics twice";

/// Returns a frame every few milliseconds.
pub(in crate::collectors) const HEALTHY_INTERFACE: &str = "is well";

/// Like the healthy one, but for each frame that it returns it has dropped another.
pub(in crate::collectors) const DROPPING_INTERFACE: &str = "drops frames";

/// Like the healthy one, but its clock is an hour ahead for the first [`FRAMES_AHEAD`] frames.
pub(in crate::collectors) const SET_BACK_INTERFACE: &str = "is set back";

/// Frames before the clock is set back.
pub(in crate::collectors) const FRAMES_AHEAD: u64 = 40;

/// Ethernet, IPv4, UDP of one byte.
const FRAME: [u8; 43] = {
    let mut frame = [0; 43];
    (frame[12], frame[14], frame[17], frame[23]) = (0x08, 0x45, 29, 17);
    (frame[26], frame[30], frame[35], frame[37], frame[39]) = (10, 10, 53, 53, 9);
    frame
};

pub(in crate::collectors) struct Injected {
    panics: bool,
    drops: bool,
    is_set_back: bool,
    interfaces: [Interface; 1],
    frame: [FrameRef; 1],
    counters: SourceCounters,
}

/// Returns the test source of an interface, if it has one.
pub(in crate::collectors) fn source(config: &CollectorConfig) -> Option<Injected> {
    static OPENED: AtomicU32 = AtomicU32::new(0);
    let SourceConfig::Interface { name, .. } = &config.source else { return None };
    let panics = match &**name {
        PANICS_TWICE_INTERFACE => OPENED.fetch_add(1, Ordering::Relaxed) < 2,
        HEALTHY_INTERFACE | DROPPING_INTERFACE | SET_BACK_INTERFACE => false,
        _ => return None,
    };
    let interface = Interface { name: None, link_type: LinkType::Ethernet, snap_length: 0 };
    Some(Injected {
        panics,
        drops: &**name == DROPPING_INTERFACE,
        is_set_back: &**name == SET_BACK_INTERFACE,
        interfaces: [interface],
        frame: [FrameRef {
            time: Timestamp::default(),
            offset: 0,
            captured_length: 43,
            original_length: 60,
            interface: 0,
        }],
        counters: SourceCounters::default(),
    })
}

impl Source for Injected {
    type Error = SourceError;

    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, SourceError> {
        std::thread::sleep(Duration::from_millis(5));
        self.counters.frames += 1;
        self.counters.kernel_drops += u64::from(self.drops);
        assert!(!self.panics || self.counters.frames < 60, "provoked by a test");
        let is_ahead = self.is_set_back && self.counters.frames <= FRAMES_AHEAD;
        let ahead = if is_ahead { Nanos::from_secs(3_600) } else { Nanos::ZERO };
        self.frame[0].time = realtime() + ahead;
        Ok(Some(Batch { bytes: &FRAME, frames: &self.frame, interfaces: &self.interfaces }))
    }

    fn counters(&mut self) -> SourceCounters {
        self.counters
    }
}
