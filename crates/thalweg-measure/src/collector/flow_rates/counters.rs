//! Counters of samples and rate estimates.

use thalweg_network::inference::Case;

/// Counters of samples and rate estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateCounters {
    /// Samples processed.
    pub samples: u64,
    /// Spans that gave a rate.
    pub estimates: u64,
    /// Samples of ranges that had been seen before: retransmissions.
    pub repeated: u64,
    /// Samples that arrived after later ones, and had not been seen before.
    pub late: u64,
    /// Spans so long that sequence numbers may have wrapped around; their rates come from sample counts.
    pub wrapped: u64,
    /// Spans without a rate because it would exceed the speed of any link.
    pub implausible: u64,
    /// Samples with ambiguous ports, since forwarding had just changed.
    pub ambiguous: u64,
    /// Samples whose forwarding state is no longer kept.
    pub forgotten: u64,
    /// Samples by the result of port inference, in the order of [`Case::ALL`]; the first, full success, is not
    /// counted. Zero without a network.
    pub cases: [u64; Case::COUNT],
}

impl std::ops::AddAssign for RateCounters {
    fn add_assign(&mut self, other: RateCounters) {
        let RateCounters {
            samples,
            estimates,
            repeated,
            late,
            wrapped,
            implausible,
            ambiguous,
            forgotten,
            cases,
        } = other;
        self.samples += samples;
        self.estimates += estimates;
        self.repeated += repeated;
        self.late += late;
        self.wrapped += wrapped;
        self.implausible += implausible;
        self.ambiguous += ambiguous;
        self.forgotten += forgotten;
        for (case, others) in self.cases.iter_mut().zip(cases) {
            *case += others;
        }
    }
}
