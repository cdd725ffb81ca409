//! What samples came to.

use thalweg_network::inference::Case;

/// What samples came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateCounters {
    /// Samples looked at.
    pub samples: u64,
    /// Spans that gave a rate.
    pub estimates: u64,
    /// Samples of ranges that had been seen: sent again.
    pub repeated: u64,
    /// Samples that came after later ones, and that had not been seen.
    pub late: u64,
    /// Spans so long that sequence numbers may have gone round; their samples were counted instead.
    pub wrapped: u64,
    /// Spans that would make a flow faster than any link, and gave no rate.
    pub implausible: u64,
    /// Samples whose ports may be others, since forwarding had just changed.
    pub ambiguous: u64,
    /// Samples so old that the forwarding state of their time has been forgotten.
    pub forgotten: u64,
    /// Samples by what could be inferred of their ports, in the order of [`Case::ALL`]; the first, for which all
    /// could, is not counted. Nothing is counted without a network.
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
