//! How long to wait for a daemon that does not answer.

use std::time::Duration;

use super::RequestError;

/// How long to wait after a failure: the first time, and at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));

/// Waits twice as long each time.
#[derive(Debug, Default)]
pub struct BackOff {
    failures: u32,
}

impl BackOff {
    /// How long to wait after one more failure; at least as long as the daemon asks for.
    pub fn next(&mut self, error: &RequestError) -> Duration {
        let (first, longest) = BACK_OFF;
        let wait = (first * 2_u32.saturating_pow(self.failures)).min(longest);
        self.failures = (self.failures + 1).min(16);
        match error {
            RequestError::Refused { retry_after: Some(asked), .. } => wait.max((*asked).min(4 * longest)),
            _ => wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_does_not_answer_is_asked_ever_less_often_and_when_it_says_so() {
        let mut back_off = BackOff::default();
        let gone = RequestError::Unreachable("refused".to_owned());
        let waits: Vec<u128> = (0..6).map(|_| back_off.next(&gone).as_millis()).collect();
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 8_000]);
        let busy = |seconds| RequestError::Refused {
            status: 429,
            detail: String::new(),
            retry_after: Some(Duration::from_secs(seconds)),
        };
        let asked = [3, 1_000_000].map(|seconds| BackOff::default().next(&busy(seconds)).as_secs());
        assert_eq!(asked, [3, 32], "but not without end");
    }
}
