//! Sums of records and groups.

use crate::read::{BLOCK, Column, ReadError, RowGroup, Schema, field};

/// The sums of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) bytes: i64,
    pub(super) packets: i64,
    /// Number of records; 0 for an unused entry and for a record that does not count.
    pub(super) flows: i64,
    pub(super) flow_start_us: i64,
    pub(super) flow_end_us: i64,
}

impl Sums {
    pub(super) const ZERO: Sums =
        Sums { bytes: 0, packets: 0, flows: 0, flow_start_us: i64::MAX, flow_end_us: i64::MIN };

    /// Adds sums. Terms are not negative, so saturation does not depend on the order.
    #[inline]
    pub(super) fn add(&mut self, other: &Sums) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.packets = self.packets.saturating_add(other.packets);
        self.flows += other.flows;
        self.flow_start_us = self.flow_start_us.min(other.flow_start_us);
        self.flow_end_us = self.flow_end_us.max(other.flow_end_us);
    }
}

/// The summed columns of a row group.
pub(super) struct CounterColumns {
    bytes: Column<i64>,
    packets: Column<i64>,
    sampling_interval: Column<i64>,
    flow_start: Column<i64>,
    flow_end: Column<i64>,
}

impl CounterColumns {
    pub(super) fn check(schema: &Schema<'_>) -> Result<(), ReadError> {
        use field::{BYTES, FLOW_END, FLOW_START, PACKETS, SAMPLING_INTERVAL};
        [&BYTES, &PACKETS, &SAMPLING_INTERVAL, &FLOW_START, &FLOW_END]
            .into_iter()
            .try_for_each(|field| schema.find(field).map(drop))
    }

    pub(super) fn open(group: &RowGroup<'_>) -> Result<CounterColumns, ReadError> {
        Ok(CounterColumns {
            bytes: group.column(&field::BYTES)?,
            packets: group.column(&field::PACKETS)?,
            sampling_interval: group.column(&field::SAMPLING_INTERVAL)?,
            flow_start: group.column(&field::FLOW_START)?,
            flow_end: group.column(&field::FLOW_END)?,
        })
    }
}

/// The counters of a block's records, scaled by the sampling interval.
pub(super) struct Counters {
    bytes: Box<[i64]>,
    packets: Box<[i64]>,
    sampling_interval: Box<[i64]>,
    flow_start: Box<[i64]>,
    flow_end: Box<[i64]>,
    /// 1, or 0 for a record that does not count.
    flows: Box<[i64]>,
}

impl Counters {
    pub(super) fn new() -> Counters {
        let counts = || vec![0; BLOCK].into();
        Counters {
            bytes: counts(),
            packets: counts(),
            sampling_interval: counts(),
            flow_start: counts(),
            flow_end: counts(),
            flows: vec![1; BLOCK].into(),
        }
    }

    /// Reads the next rows.
    pub(super) fn read(&mut self, from: &mut CounterColumns, rows: usize) -> Result<(), ReadError> {
        from.bytes.read(&mut self.bytes[..rows])?;
        from.packets.read(&mut self.packets[..rows])?;
        from.sampling_interval.read(&mut self.sampling_interval[..rows])?;
        from.flow_start.read(&mut self.flow_start[..rows])?;
        from.flow_end.read(&mut self.flow_end[..rows])?;
        let intervals = &self.sampling_interval[..rows];
        for counts in [&mut self.bytes, &mut self.packets] {
            for (count, &interval) in counts.iter_mut().zip(intervals) {
                *count = count.checked_mul(interval.max(1)).unwrap_or(i64::MAX);
            }
        }
        Ok(())
    }

    /// Makes the sums of rows that do not count zero.
    pub(super) fn leave_out(&mut self, rows: usize, is_left_out: impl Fn(usize) -> bool) {
        for row in 0..rows {
            let is_left_out = is_left_out(row);
            self.flows[row] = i64::from(!is_left_out);
            if is_left_out {
                (self.bytes[row], self.packets[row]) = (Sums::ZERO.bytes, Sums::ZERO.packets);
                self.flow_start[row] = Sums::ZERO.flow_start_us;
                self.flow_end[row] = Sums::ZERO.flow_end_us;
            }
        }
    }

    /// Returns the counters of each row, in order.
    #[inline]
    pub(super) fn records(&self, rows: usize) -> impl Iterator<Item = Sums> {
        let counts = self.bytes[..rows].iter().zip(&self.packets[..rows]).zip(&self.flows[..rows]);
        let times = self.flow_start[..rows].iter().zip(&self.flow_end[..rows]);
        counts.zip(times).map(|(((&bytes, &packets), &flows), (&flow_start_us, &flow_end_us))| Sums {
            bytes,
            packets,
            flows,
            flow_start_us,
            flow_end_us,
        })
    }
}
