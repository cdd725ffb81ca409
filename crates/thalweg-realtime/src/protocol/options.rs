//! Options of both sides.

use thalweg_wire::Nanos;
use thalweg_wire::emulation_protocol::{
    DEFAULT_MAX_DATAGRAM, HEADER_LENGTH, MAX_ANSWER, MAX_BLOCK_HEAD, MAX_REQUEST, MAX_SCHEME_BYTES,
};
use thiserror::Error;

/// The shortest datagram that holds any request and any answer, in bytes.
const MIN_DATAGRAM: usize = HEADER_LENGTH + MAX_BLOCK_HEAD + MAX_ANSWER + MAX_SCHEME_BYTES;

/// The longest UDP payload over IPv4 in bytes.
const MAX_DATAGRAM: usize = 65_507;

/// The maximum number of packets, requests or flows. They are counted in 32 bits, with some values reserved.
const MAX_ENTRIES: u32 = 1 << 24;

/// How datagrams are sent, by either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    /// The maximum length of a datagram in bytes, without IP and UDP headers. Default: 1,472, for an MTU of 1,500
    /// bytes.
    pub max_datagram: usize,
    /// The number of requests or answers that are sent at once. Fewer wait for `batch_delay`. Default: 8.
    pub batch: u32,
    /// The maximum time that a request or an answer waits for others. 0 sends at once. Default: 10 us.
    pub batch_delay: Nanos,
    /// The maximum time that an acknowledgement waits for a datagram with requests or answers. Default: 100 us.
    pub acknowledgement_delay: Nanos,
    /// The retransmission timeout before the first round-trip time is known. Default: 5 ms.
    pub initial_timeout: Nanos,
    /// The minimum retransmission timeout; more than the peer's `acknowledgement_delay`. Default: 500 us.
    pub min_timeout: Nanos,
    /// The maximum retransmission timeout, however often it has been doubled. Default: 50 ms.
    pub max_timeout: Nanos,
}

impl Default for LinkOptions {
    fn default() -> LinkOptions {
        LinkOptions {
            max_datagram: DEFAULT_MAX_DATAGRAM,
            batch: 8,
            batch_delay: Nanos::from_micros(10),
            acknowledgement_delay: Nanos::from_micros(100),
            initial_timeout: Nanos::from_millis(5),
            min_timeout: Nanos::from_micros(500),
            max_timeout: Nanos::from_millis(50),
        }
    }
}

/// The options of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointOptions {
    /// The number of the endpoint. Default: 0.
    pub endpoint: u16,
    /// How datagrams are sent.
    pub link: LinkOptions,
    /// The maximum number of packets that are held. Further ones are refused, and counted. Default: 16,384.
    pub max_packets: u32,
    /// The maximum number of flows that are remembered. The one that has been idle for longest gives way; if none is
    /// idle, packets of further flows are refused, and counted. At most the arbiter's limit. Default: 1,024.
    pub max_flows: u32,
    /// The maximum time that a packet is held. Then it is dropped, and counted. Default: 500 ms.
    pub deadline: Nanos,
    /// The interval of keep-alives while nothing else is sent. Default: 5 ms.
    pub keep_alive: Nanos,
    /// An arbiter has failed if it does not answer for so long. Default: 50 ms.
    pub silence: Nanos,
    /// Whether there is a secondary arbiter. Default: false.
    pub has_secondary: bool,
}

impl Default for EndpointOptions {
    fn default() -> EndpointOptions {
        EndpointOptions {
            endpoint: 0,
            link: LinkOptions::default(),
            max_packets: 16_384,
            max_flows: 1_024,
            deadline: Nanos::from_millis(500),
            keep_alive: Nanos::from_millis(5),
            silence: Nanos::from_millis(50),
            has_secondary: false,
        }
    }
}

/// The options of an arbiter's session with one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArbiterOptions {
    /// The number of the endpoint. Default: 0.
    pub endpoint: u16,
    /// How datagrams are sent.
    pub link: LinkOptions,
    /// The maximum number of requests that are emulated or whose answer is not acknowledged yet. A datagram that
    /// would exceed it is refused and counted, and the endpoint sends its requests again. At least the number of
    /// requests that a datagram can have, a sixth of its length. Default: 16,384.
    pub max_requests: u32,
    /// The maximum number of flows that are remembered; at the limit as with requests. The one that has been idle for
    /// longest gives way, and its late duplicates can be emulated twice. Default: 1,024.
    pub max_flows: u32,
    /// An answer that is lost later than this after the emulation is not sent again, but counted: the endpoint's
    /// deadline has passed. Default: 500 ms.
    pub answer_lifetime: Nanos,
}

impl Default for ArbiterOptions {
    fn default() -> ArbiterOptions {
        ArbiterOptions {
            endpoint: 0,
            link: LinkOptions::default(),
            max_requests: 16_384,
            max_flows: 1_024,
            answer_lifetime: Nanos::from_millis(500),
        }
    }
}

/// An option has an invalid value.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{option} is {found}: expected {expected}")]
pub struct OptionsError {
    /// The option.
    pub option: &'static str,
    /// Its value: a number, or nanoseconds.
    pub found: u64,
    /// The valid values.
    pub expected: &'static str,
}

fn check(
    is_valid: bool,
    option: &'static str,
    found: u64,
    expected: &'static str,
) -> Result<(), OptionsError> {
    match is_valid {
        true => Ok(()),
        false => Err(OptionsError { option, found, expected }),
    }
}

fn check_entries(option: &'static str, found: u32) -> Result<(), OptionsError> {
    check((1..=MAX_ENTRIES).contains(&found), option, found.into(), "1 to 16,777,216")
}

/// The number of requests or answers that are sent at once, however long others may wait.
const LARGE_BATCH: u32 = 64;

impl LinkOptions {
    /// These options with larger batches: requests, answers and acknowledgements wait for others for up to `delay`. Timeouts are long enough for
    /// that. Both sides should have the same delay.
    #[must_use]
    pub fn with_batches(self, delay: Nanos) -> LinkOptions {
        let times = |count: u64| Nanos(delay.0.saturating_mul(count));
        LinkOptions {
            batch: LARGE_BATCH,
            batch_delay: delay,
            acknowledgement_delay: self.acknowledgement_delay.max(delay),
            min_timeout: self.min_timeout.max(times(4)),
            initial_timeout: self.initial_timeout.max(times(8)),
            max_timeout: self.max_timeout.max(times(16)),
            ..self
        }
    }

    fn check(&self) -> Result<(), OptionsError> {
        let length = self.max_datagram;
        check(
            (MIN_DATAGRAM..=MAX_DATAGRAM).contains(&length),
            "max_datagram",
            length as u64,
            "82 to 65,507 bytes",
        )?;
        check(self.batch > 0, "batch", 0, "1 or more")?;
        let (min, max) = (self.min_timeout, self.max_timeout);
        check(min > Nanos::ZERO, "min_timeout", min.0, "more than 0")?;
        check(max >= min, "max_timeout", max.0, "min_timeout or more")?;
        let initial = self.initial_timeout;
        check((min..=max).contains(&initial), "initial_timeout", initial.0, "min_timeout to max_timeout")
    }
}

const _: () = assert!(MIN_DATAGRAM == 82, "the message above names it");

impl EndpointOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn check(&self) -> Result<(), OptionsError> {
        self.link.check()?;
        check_entries("max_packets", self.max_packets)?;
        check_entries("max_flows", self.max_flows)?;
        check(self.deadline > Nanos::ZERO, "deadline", 0, "more than 0")?;
        check(self.keep_alive > Nanos::ZERO, "keep_alive", 0, "more than 0")?;
        check(self.silence >= self.keep_alive, "silence", self.silence.0, "keep_alive or more")
    }
}

impl ArbiterOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn check(&self) -> Result<(), OptionsError> {
        self.link.check()?;
        check_entries("max_requests", self.max_requests)?;
        // Otherwise a full datagram would be refused each time.
        let is_enough = self.max_requests as usize >= self.link.max_datagram / MAX_REQUEST;
        check(is_enough, "max_requests", self.max_requests.into(), "a sixth of max_datagram, or more")?;
        check_entries("max_flows", self.max_flows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_options_are_named_with_what_is_valid() {
        assert_eq!(EndpointOptions::default().check(), Ok(()));
        assert_eq!(ArbiterOptions::default().check(), Ok(()));
        let link = LinkOptions { max_datagram: 81, ..LinkOptions::default() };
        let error = EndpointOptions { link, ..EndpointOptions::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "max_datagram is 81: expected 82 to 65,507 bytes");
        let link = LinkOptions::default().with_batches(Nanos::from_millis(7));
        assert_eq!(EndpointOptions { link, ..EndpointOptions::default() }.check(), Ok(()));
        assert!(link.min_timeout > link.acknowledgement_delay, "{link:?}");
        let error = ArbiterOptions { max_flows: 0, ..ArbiterOptions::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "max_flows is 0: expected 1 to 16,777,216");
        let error = ArbiterOptions { max_requests: 200, ..ArbiterOptions::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "max_requests is 200: expected a sixth of max_datagram, or more");
    }
}
