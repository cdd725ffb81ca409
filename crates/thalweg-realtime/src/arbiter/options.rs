//! Options of an arbiter.

use thalweg_emulator::core::pacer::{PaceOptions, PaceOptionsError};
use thalweg_wire::Nanos;
use thiserror::Error;

use crate::protocol::{self, ArbiterOptions};

/// The options of an arbiter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The session with each endpoint; its number is replaced.
    pub session: ArbiterOptions,
    /// How slots follow the clock.
    pub pace: PaceOptions,
    /// An endpoint that was silent for so long has left: another address may take its number. Default: 1 s.
    pub leave_after: Nanos,
    /// The datagrams of an endpoint that wait. Further ones are dropped, and counted. Default: 64.
    pub backlog: usize,
    /// The datagrams of an endpoint that are processed before those of the next endpoint. Default: 4.
    pub datagrams_per_turn: usize,
    /// The packets in the emulated network. The answer to further requests is *drop*, and they are counted. Default: 2^20.
    pub max_in_flight: u32,
    /// While packets are in the network, the arbiter's thread rests for some microseconds this often. With real-time priority it would otherwise
    /// stop what the kernel has to do on its processor, until the kernel stops it, for 50 ms (`kernel.sched_rt_runtime_us`). Default: never.
    pub rest_every: Option<Nanos>,
    /// The time between two samples of queue lengths. Default: 1 ms (Flexplane, Table 2).
    pub sample_every: Nanos,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            session: ArbiterOptions::default(),
            pace: PaceOptions::default(),
            leave_after: Nanos::from_secs(1),
            backlog: 64,
            datagrams_per_turn: 4,
            max_in_flight: 1 << 20,
            rest_every: None,
            sample_every: Nanos::from_millis(1),
        }
    }
}

/// An option has an invalid value.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum OptionsError {
    /// An option of the protocol.
    #[error(transparent)]
    Protocol(#[from] protocol::OptionsError),
    /// An option of the pace.
    #[error(transparent)]
    Pace(#[from] PaceOptionsError),
    /// A number.
    #[error("{option} is {found}: expected {expected}")]
    Number {
        /// The option.
        option: &'static str,
        /// Its value.
        found: u64,
        /// The valid values.
        expected: &'static str,
    },
}

impl Options {
    /// Checks the options.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn check(&self) -> Result<(), OptionsError> {
        self.session.check()?;
        self.pace.check()?;
        let number = |is_valid, option, found, expected| match is_valid {
            true => Ok(()),
            false => Err(OptionsError::Number { option, found, expected }),
        };
        number(self.backlog > 0, "backlog", 0, "1 or more")?;
        number(self.datagrams_per_turn > 0, "datagrams_per_turn", 0, "1 or more")?;
        let in_flight = u64::from(self.max_in_flight);
        number((1..=1 << 24).contains(&in_flight), "max_in_flight", in_flight, "1 to 16,777,216")?;
        number(self.sample_every > Nanos::ZERO, "sample_every", 0, "more than 0")
    }
}
