//! Waiting times between retries.

use std::time::Duration;

use super::RequestError;

/// The first and the longest waiting time.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));

/// Doubles the waiting time after each failure.
#[derive(Debug, Default)]
pub struct BackOff {
    failures: u32,
}

impl BackOff {
    /// Returns how long to wait after another failure; at least as long as the daemon requests, up to a limit.
    pub fn next(&mut self, error: &RequestError) -> Duration {
        let (first, longest) = BACK_OFF;
        let wait = (first * 2_u32.saturating_pow(self.failures)).min(longest);
        self.failures = (self.failures + 1).min(16);
        match error {
            RequestError::Refused { retry_after: Some(requested), .. } => {
                wait.max((*requested).min(4 * longest))
            }
            _ => wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_times_double_up_to_a_limit() {
        let mut back_off = BackOff::default();
        let gone = RequestError::Unreachable("refused".to_owned());
        let waits: Vec<u128> = (0..6).map(|_| back_off.next(&gone).as_millis()).collect();
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 8_000]);
    }

    #[test]
    fn retry_after_is_followed_up_to_a_limit() {
        let busy = |seconds| RequestError::Refused {
            status: 429,
            detail: String::new(),
            retry_after: Some(Duration::from_secs(seconds)),
        };
        let waits = [3, 1_000_000].map(|seconds| BackOff::default().next(&busy(seconds)).as_secs());
        assert_eq!(waits, [3, 32]);
    }
}
