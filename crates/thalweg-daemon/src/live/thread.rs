//! The thread that reads collectors for viewers and for the history.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_api::LiveStatus;
use thalweg_linux::clock::realtime;
use thalweg_wire::Timestamp;

use super::frame::message;
use super::sampler::{Sampler, fastest_flows};
use super::{Live, MAX_FLOWS};
use crate::collectors::CollectorList;

/// Interval of frames.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);

/// Number of frame intervals in a second.
const FRAMES_PER_SECOND: u64 = 10;

/// Reads collectors until `is_over`. `status` returns the state of the daemon, given the time and the latest packet time.
pub fn run_live(
    live: &Live,
    collectors: &CollectorList,
    status: impl Fn(Timestamp, Timestamp) -> LiveStatus,
    is_over: impl Fn() -> bool,
) {
    let mut sampler = Sampler::default();
    let mut was_watched = false;
    let start = Instant::now();
    for interval in 0_u64.. {
        if is_over() {
            return;
        }
        let is_watched = live.is_watched();
        let is_second = interval.is_multiple_of(FRAMES_PER_SECOND) || (is_watched && !was_watched);
        was_watched = is_watched;
        if is_watched || is_second {
            let now = realtime();
            let previous = Arc::clone(&live.0.frames.borrow());
            let frame = sampler.frame(collectors, &previous, now);
            let links = frame.list().links().iter().map(String::as_str).zip(frame.loads().iter().copied());
            live.history().note_links(now, links);
            live.0.frames.send_replace(Arc::new(frame));
        }
        if is_watched && is_second {
            let flows = fastest_flows(collectors, MAX_FLOWS);
            live.history().note_flows(realtime(), flows.into_iter());
            let status = status(realtime(), sampler.packet_time());
            live.0.status.send_replace(message("status", &status));
        }
        let next = start + FRAME_INTERVAL * u32::try_from(interval + 1).unwrap_or(u32::MAX);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}
