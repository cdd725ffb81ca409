//! Files of flows and of flow sizes.

use thalweg_emulator::workloads::Workload;
use thalweg_emulator::workloads::patterns::Schedule;
use thalweg_emulator::workloads::sizes::SizeDistribution;

/// The number of endpoints that the file can refer to.
const ENDPOINTS: usize = 64;

/// Checks that any text is a list of flows between known endpoints in order of time, or an error with its line; and
/// that it is a distribution with ascending quantiles, or an error.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(mut schedule) = Schedule::from_text(text, ENDPOINTS) {
        let mut last = None;
        while let Some(flow) = schedule.start() {
            assert!(last <= Some(flow.at), "out of order");
            assert!(flow.source != flow.destination && flow.bytes > 0 && flow.dscp < 64, "{flow:?}");
            assert!(flow.source.index() < ENDPOINTS && flow.destination.index() < ENDPOINTS, "{flow:?}");
            last = Some(flow.at);
        }
    }
    if let Ok(sizes) = SizeDistribution::from_text(text) {
        let quantiles: Vec<u64> = (0..=16).map(|n| sizes.sample(f64::from(n) / 16.0)).collect();
        assert!(quantiles.is_sorted(), "{quantiles:?}");
        assert!(sizes.mean().is_finite() && sizes.mean() <= sizes.max() as f64, "{}", sizes.mean());
    }
}
