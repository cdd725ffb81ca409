//! Sending times of a flow's packets.

/// Evenly spaced packets, optionally with a faster burst at the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    packets: u64,
    /// Number of packets that are followed by the burst's interval.
    burst_packets: u64,
    burst_interval_ns: u64,
    interval_ns: u64,
}

impl Pace {
    /// Returns packets with `interval_ns` between them.
    pub(super) fn even(packets: u64, interval_ns: u64) -> Pace {
        Pace { packets, burst_packets: 0, burst_interval_ns: 1, interval_ns: interval_ns.max(1) }
    }

    /// Returns `burst` packets within `burst_ns`, followed by all others evenly in the rest of `span_ns`.
    ///
    /// # Panics
    /// If no packets or no time are left after the burst.
    pub(super) fn burst(packets: u64, span_ns: u64, burst: u64, burst_ns: u64) -> Pace {
        assert!(packets > burst && span_ns > burst_ns, "{burst} of {packets}, {burst_ns} of {span_ns} ns");
        let burst_interval_ns = (burst_ns / burst).max(1);
        let interval_ns = ((span_ns - burst * burst_interval_ns) / (packets - burst)).max(1);
        Pace { packets, burst_packets: burst, burst_interval_ns, interval_ns }
    }

    /// Returns the number of packets.
    #[inline]
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the time from the first packet to packet `index`.
    #[inline]
    pub(super) fn offset_ns(&self, index: u64) -> u64 {
        let burst = index.min(self.burst_packets);
        burst * self.burst_interval_ns + (index - burst) * self.interval_ns
    }

    /// Returns the time from the first packet to the last.
    pub(super) fn span_ns(&self) -> u64 {
        self.offset_ns(self.packets - 1)
    }

    /// Returns the number of packets sent less than `offset_ns` after the first.
    pub(super) fn before(&self, offset_ns: u64) -> u64 {
        let burst_ns = self.burst_packets * self.burst_interval_ns;
        let packets = match offset_ns <= burst_ns {
            true => offset_ns.div_ceil(self.burst_interval_ns),
            false => self.burst_packets + (offset_ns - burst_ns).div_ceil(self.interval_ns),
        };
        packets.min(self.packets)
    }

    /// Returns the longest time between two packets.
    pub(super) fn longest_interval_ns(&self) -> u64 {
        match self.burst_packets {
            0 => self.interval_ns,
            _ => self.interval_ns.max(self.burst_interval_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_before_an_offset_match_a_linear_count() {
        for pace in [Pace::even(40, 7), Pace::burst(40, 400, 13, 39), Pace::even(1, 5)] {
            for offset_ns in 0..450 {
                let counted = (0..pace.packets()).filter(|&index| pace.offset_ns(index) < offset_ns).count();
                assert_eq!(pace.before(offset_ns), counted as u64, "{pace:?} {offset_ns}");
            }
        }
    }

    #[test]
    fn the_rest_of_a_burst_fills_the_span() {
        let pace = Pace::burst(1_000, 1_000_000, 500, 100_000);
        assert_eq!(pace.offset_ns(500), 100_000);
        assert_eq!(pace.span_ns(), 100_000 + 499 * 1_800);
        assert_eq!(pace.longest_interval_ns(), 1_800);
    }
}
