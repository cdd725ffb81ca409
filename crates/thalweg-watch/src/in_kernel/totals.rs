//! What the report says of sketches in the kernel.

use thalweg_dataplane::Counting;
use thalweg_dataplane::reader::ReadWindow;
use thalweg_measure::tasks::FlowBytes;
use thalweg_sketch::{CHEBYSHEV_FACTOR, Estimate, Probability, Uncounted};
use thalweg_wire::Bytes;

use super::states::best_sketch;

/// The totals of sketches in the kernel.
#[derive(Clone, Debug)]
pub struct InKernelTotals {
    /// The interface.
    pub interface: String,
    /// Where the program runs: `XDP`, `tc ingress`.
    pub hook: String,
    /// Whether pinned sketches had counted before the run.
    pub is_resumed: bool,
    /// The memory in the kernel, of all CPUs.
    pub memory: Bytes,
    /// The packets that were parsed, because a sketch sampled them.
    pub parsed: u64,
    /// The packets without a key, exact or with bounds.
    pub uncounted: Estimate,
    /// The bytes of IP packets, exact or with bounds.
    pub ip_bytes: Estimate,
    /// Keys of sampled packets that were overwritten before they were read: a large key may be missing if there are many.
    pub missed_keys: u64,
    /// The most packets of a window whose counters may be in the neighbouring one, because they arrived while it was read.
    pub skew: u64,
    ip_bytes_variance: f64,
    sum: Uncounted,
    probabilities: Vec<Probability>,
}

impl Default for InKernelTotals {
    fn default() -> InKernelTotals {
        InKernelTotals {
            interface: String::new(),
            hook: String::new(),
            is_resumed: false,
            memory: Bytes(0),
            parsed: 0,
            uncounted: Estimate::exact(0.0),
            ip_bytes: Estimate::exact(0.0),
            ip_bytes_variance: 0.0,
            missed_keys: 0,
            skew: 0,
            sum: Uncounted::default(),
            probabilities: Vec::new(),
        }
    }
}

impl InKernelTotals {
    /// Returns the totals before the first window.
    pub(crate) fn new(counting: &Counting<FlowBytes>) -> InKernelTotals {
        InKernelTotals {
            interface: counting.attachment().interface().to_owned(),
            hook: counting.attachment().hook().to_string(),
            is_resumed: counting.is_resumed(),
            memory: Bytes(counting.reader().memory_bytes()),
            ..InKernelTotals::default()
        }
    }

    /// Adds a window.
    pub(crate) fn add(&mut self, window: &ReadWindow<FlowBytes>) {
        let sketch = best_sketch(window);
        self.parsed += window.window.totals().parsed;
        self.missed_keys += window.missed_keys;
        self.skew = self.skew.max(window.window.skew());
        self.probabilities.extend(window.window.add_uncounted(sketch, &mut self.sum));
        self.probabilities.sort_unstable();
        self.probabilities.dedup();
        let rows = window.window.specification().sketches[sketch].kind.rows();
        self.uncounted = self.sum.estimate(rows, &self.probabilities);
        self.ip_bytes_variance += window.window.ip_bytes_variance(sketch);
        let value = self.ip_bytes.value + window.window.ip_bytes(sketch) as f64;
        self.ip_bytes = match self.ip_bytes_variance {
            0.0 => Estimate::exact(value),
            // Chebyshev's inequality.
            variance => {
                let deviation = (CHEBYSHEV_FACTOR * variance).sqrt();
                Estimate::within(value, value - deviation, value + deviation, 1.0 - 1.0 / CHEBYSHEV_FACTOR)
            }
        };
    }
}
