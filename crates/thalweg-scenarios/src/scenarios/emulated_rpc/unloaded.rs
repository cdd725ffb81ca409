//! Times of requests on an otherwise idle network: requested continuously, by which completion times are normalised (Flexplane, section 5.1),
//! and with pauses (section 5.2: a ping takes 77 us every 2 ms and 14 us every 50 us).

use std::time::{Duration, Instant};

use serde::Serialize;
use thalweg_emulator::workloads::sizes::SizeDistribution;
use thalweg_wire::Nanos;

use super::network::CLIENTS;
use super::requests::{Completed, Connections};
use crate::error::ScenarioError;
use crate::quantiles::{Quantiles, mean};

/// Pauses between a response and the next request.
const PAUSES_MS: [u64; 6] = [0, 1, 2, 10, 50, 200];

/// The response of requests with pauses: one packet.
const ONE_PACKET: u64 = 1_000;

/// Time for the requests of each pause, before that for those that do not count, and the least number of each.
const PAUSE_TIME: Duration = Duration::from_secs(2);
const PAUSE_WARM_UP: Duration = Duration::from_millis(500);
const PAUSE_REQUESTS: usize = 2;

/// Time for the requests of each size, the least number of them, and the size from which the first one counts too.
const SIZE_TIME: Duration = Duration::from_millis(400);
const SIZE_REQUESTS: usize = 2;
const WARM_SIZE: u64 = 1_000_000;

/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The mean time of responses of a size that are requested continuously.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OfSize {
    /// Bytes of the response.
    pub bytes: u64,
    /// Requests.
    pub requests: usize,
    /// Their mean time.
    pub mean_ns: f64,
}

/// Times of responses of one packet, by the pause before each request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OfPause {
    /// The pause.
    pub pause_ns: u64,
    /// The mean time.
    pub mean_ns: f64,
    /// Quantiles of the times.
    pub times: Quantiles,
}

/// The times of an unloaded network.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Unloaded {
    /// By size, the smallest first.
    pub sizes: Vec<OfSize>,
    /// By pause, the shortest first.
    pub pauses: Vec<OfPause>,
}

impl Unloaded {
    /// Measures all sizes of a distribution's points, and all pauses, between one client and one server.
    ///
    /// # Errors
    /// If a connection fails, or the user wants to stop.
    pub(super) fn measure(
        connections: &mut Connections<'_>,
        sizes: &SizeDistribution,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Unloaded, ScenarioError> {
        let mut sizes: Vec<u64> = sizes.points().iter().map(|point| point.bytes).collect();
        sizes.dedup();
        let mut unloaded = Unloaded::default();
        for pause in PAUSES_MS.map(Duration::from_millis) {
            let mut request_for = |time: Duration| {
                let (mut times, end) = (Vec::new(), Instant::now() + time);
                while times.len() < PAUSE_REQUESTS || Instant::now() < end {
                    std::thread::sleep(pause);
                    times.push(one(connections, ONE_PACKET, is_stopped)?.time);
                }
                Ok::<_, ScenarioError>(times)
            };
            request_for(PAUSE_WARM_UP)?;
            let times = request_for(PAUSE_TIME)?;
            unloaded.pauses.push(OfPause {
                pause_ns: pause.as_nanos() as u64,
                mean_ns: mean(times.iter().map(|time| time.0 as f64)),
                times: Quantiles::of(times),
            });
        }
        for bytes in sizes {
            if bytes < WARM_SIZE {
                one(connections, bytes, is_stopped)?;
            }
            let mut times = Vec::new();
            let end = Instant::now() + SIZE_TIME;
            while times.len() < SIZE_REQUESTS || Instant::now() < end {
                times.push(one(connections, bytes, is_stopped)?.time.0 as f64);
            }
            let (requests, mean_ns) = (times.len(), mean(times.into_iter()));
            unloaded.sizes.push(OfSize { bytes, requests, mean_ns });
        }
        Ok(unloaded)
    }

    /// The mean time of a response of this size that is requested continuously: linear between the sizes that were measured, in
    /// proportion beyond the largest.
    pub fn time_of(&self, bytes: u64) -> Nanos {
        let after = self.sizes.partition_point(|it| it.bytes < bytes);
        let time = match (after.checked_sub(1).map(|before| self.sizes[before]), self.sizes.get(after)) {
            (Some(before), Some(after)) => {
                let share = (bytes - before.bytes) as f64 / (after.bytes - before.bytes) as f64;
                before.mean_ns + share * (after.mean_ns - before.mean_ns)
            }
            (None, Some(first)) => first.mean_ns,
            (Some(last), None) => last.mean_ns * bytes as f64 / last.bytes as f64,
            (None, None) => 0.0,
        };
        Nanos(time as u64)
    }

    /// What a request after the longest pause takes longer than one without a pause, in nanoseconds: what the hosts add while
    /// they are idle. 0 without measurements.
    pub fn idle_ns(&self) -> f64 {
        let ends = self.pauses.first().zip(self.pauses.last());
        ends.map_or(0.0, |(busy, idle)| idle.mean_ns - busy.mean_ns)
    }
}

/// Requests one response, and waits for it.
fn one(
    connections: &mut Connections<'_>,
    bytes: u64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Completed, ScenarioError> {
    if is_stopped() {
        return Err(ScenarioError::Interrupted);
    }
    connections.request(0, CLIENTS, bytes)?;
    let completed = connections.wait(Instant::now() + TIMEOUT)?;
    completed.ok_or_else(|| {
        ScenarioError::Monitoring(format!("a response of {bytes} bytes took more than {TIMEOUT:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_linear_between_sizes() {
        let of = |bytes, mean_ns| OfSize { bytes, requests: 2, mean_ns };
        let unloaded = Unloaded { sizes: vec![of(100, 50.0), of(200, 150.0)], pauses: Vec::new() };
        let times = [10, 100, 150, 200, 400].map(|bytes| unloaded.time_of(bytes).0);
        assert_eq!(times, [50, 50, 100, 150, 300]);
        assert_eq!(Unloaded::default().time_of(7), Nanos(0));
    }

    #[test]
    fn idle_hosts_take_longer_by_the_difference_of_the_extreme_pauses() {
        let of = |pause_ns, mean_ns| OfPause { pause_ns, mean_ns, times: Quantiles::default() };
        let unloaded =
            Unloaded { sizes: Vec::new(), pauses: vec![of(0, 14.0), of(9, 30.0), of(2_000, 77.0)] };
        assert_eq!((unloaded.idle_ns(), Unloaded::default().idle_ns()), (63.0, 0.0));
    }
}
