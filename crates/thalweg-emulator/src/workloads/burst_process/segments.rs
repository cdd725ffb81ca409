//! The packets of all active bursts together, as the dissertation's published program sends them
//! (github.com/UVA-High-Speed-Networks, `ppbp.py`), and its measure of burstiness (`PPBP-theory.py`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;

use thalweg_wire::BitRate;

use super::{Arrival, BurstProcess, Bursts, PACKET_BYTES, PS};
use crate::workloads::WorkloadError;

/// The time between two changes of the number of active bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its start.
    pub start_ps: u64,
    /// Its end.
    pub end_ps: u64,
    /// Active bursts.
    pub active: u64,
}

/// An endless iterator of segments, in order of time.
#[derive(Clone, Debug)]
pub struct Segments {
    bursts: Peekable<Bursts>,
    ends: BinaryHeap<Reverse<u64>>,
    now_ps: u64,
}

impl Segments {
    /// The segments of `process` with `seed`.
    ///
    /// # Errors
    /// If the parameters are invalid.
    pub fn new(process: &BurstProcess, seed: u64) -> Result<Segments, WorkloadError> {
        Ok(Segments { bursts: process.bursts(seed)?.peekable(), ends: BinaryHeap::new(), now_ps: 0 })
    }
}

impl Iterator for Segments {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        while let Some(burst) = self.bursts.next_if(|burst| burst.start_ps <= self.now_ps) {
            self.ends.push(Reverse(burst.end_ps));
        }
        while self.ends.peek().is_some_and(|end| end.0 <= self.now_ps) {
            self.ends.pop();
        }
        let next_start_ps = self.bursts.peek()?.start_ps;
        let end_ps = self.ends.peek().map_or(next_start_ps, |end| end.0.min(next_start_ps));
        let segment = Segment { start_ps: self.now_ps, end_ps, active: self.ends.len() as u64 };
        self.now_ps = end_ps;
        Some(segment)
    }
}

/// Packets of segments in order of time: in each segment, the packets of all active bursts are rounded up and evenly
/// spaced, the last one at its end.
///
/// One interface sends them all. A segment with a higher rate than the interface's takes longer, and everything after
/// it is later.
#[derive(Clone, Debug)]
pub struct SegmentPackets {
    segments: Segments,
    /// Packets per picosecond of a burst.
    burst_rate: f64,
    shortest_gap_ps: f64,
    /// The start of the current segment, on the interface.
    base_ps: f64,
    gap_ps: f64,
    sent: u64,
    packets: u64,
}

impl SegmentPackets {
    /// The packets of `process` with `seed`, sent by an interface of `interface` bits per second.
    ///
    /// # Errors
    /// If the parameters are invalid.
    pub fn new(
        process: &BurstProcess,
        seed: u64,
        interface: BitRate,
    ) -> Result<SegmentPackets, WorkloadError> {
        Ok(SegmentPackets {
            segments: Segments::new(process, seed)?,
            burst_rate: 1.0 / process.gap_ps(),
            shortest_gap_ps: 8.0 * f64::from(PACKET_BYTES) * PS / interface.0.max(1) as f64,
            base_ps: 0.0,
            gap_ps: 0.0,
            sent: 0,
            packets: 0,
        })
    }

    fn next_segment(&mut self) -> Option<()> {
        self.base_ps += self.gap_ps * self.packets as f64;
        let segment = self.segments.next()?;
        let span_ps = (segment.end_ps - segment.start_ps) as f64;
        self.packets = (segment.active as f64 * self.burst_rate * span_ps).ceil() as u64;
        self.sent = 0;
        if self.packets == 0 {
            self.base_ps += span_ps;
        } else {
            self.gap_ps = (span_ps / self.packets as f64).max(self.shortest_gap_ps);
        }
        Some(())
    }
}

impl Iterator for SegmentPackets {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        while self.sent == self.packets {
            self.next_segment()?;
        }
        self.sent += 1;
        let at_ps = (self.base_ps + self.gap_ps * self.sent as f64) as u64;
        Some(Arrival { at_ps, length: PACKET_BYTES })
    }
}

/// Burstiness as the published program computes it, over all segments that start before `until_ps`.
///
/// A segment counts as a whole at its end. If that is beyond the current window, the window is closed and the segment
/// is dropped, so with segments longer than windows many windows are empty. The result is much higher than by the
/// definition: 3.6 instead of 1.06 with 6.1 bursts per second. NaN without a closed window.
pub fn published_burstiness(segments: Segments, window_ps: u64, until_ps: u64) -> f64 {
    let mut windows = Vec::new();
    let (mut bytes, mut window_end_ps) = (0.0, None);
    for segment in segments.take_while(|segment| segment.start_ps < until_ps) {
        let end_ps = *window_end_ps.get_or_insert(segment.end_ps + window_ps);
        if segment.end_ps < end_ps {
            bytes += segment.active as f64 * (segment.end_ps - segment.start_ps) as f64;
        } else {
            windows.push(std::mem::take(&mut bytes));
            window_end_ps = Some(end_ps + window_ps);
        }
    }
    let count = windows.len() as f64;
    let mean = windows.iter().sum::<f64>() / count;
    let variance = windows.iter().map(|bytes| (bytes - mean) * (bytes - mean)).sum::<f64>() / count;
    variance.sqrt() / mean
}
