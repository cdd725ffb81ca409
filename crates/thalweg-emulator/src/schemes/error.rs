//! Invalid settings of schemes.

use std::fmt::Display;

use thiserror::Error;

/// Why a scheme cannot be built.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemeError {
    /// A setting is out of range.
    #[error("{scheme}: `{field}` is {given}: expected {expected}")]
    Setting {
        /// The scheme, as in [`SCHEMES`](super::SCHEMES).
        scheme: &'static str,
        /// The setting.
        field: &'static str,
        /// Its value.
        given: String,
        /// The valid range.
        expected: &'static str,
    },
}

/// Checks the settings of one scheme.
#[derive(Clone, Copy)]
pub(super) struct Settings(pub(super) &'static str);

impl Settings {
    /// Returns an error about `field` unless `holds`.
    pub(super) fn expect(
        self,
        field: &'static str,
        given: impl Display,
        holds: bool,
        expected: &'static str,
    ) -> Result<(), SchemeError> {
        let wrong = || SchemeError::Setting { scheme: self.0, field, given: given.to_string(), expected };
        if holds { Ok(()) } else { Err(wrong()) }
    }

    /// Returns an error unless a queue can hold `packets`.
    pub(super) fn expect_buffer(self, packets: u32) -> Result<(), SchemeError> {
        let holds = (1..=MAX_BUFFER).contains(&packets);
        self.expect("buffer", packets, holds, "1 to 1,048,576 packets")
    }
}

/// The largest buffer in packets: more than a second at 10 Gbit/s.
const MAX_BUFFER: u32 = 1 << 20;

const _: () = assert!(MAX_BUFFER <= crate::queues::fifos::MAX_CAPACITY, "or a queue would refuse it");
