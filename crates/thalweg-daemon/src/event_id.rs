//! Identifiers of events: the run of the daemon, and the number of the event in it.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The position from which a subscriber resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The run of the daemon; `None` if only the number is known.
    pub run: Option<u64>,
    /// The event's number.
    pub id: u64,
}

/// Text that is not the `id` of an event.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid event id: expected NUMBER or RUN-NUMBER")]
pub struct ParseEventIdError;

impl FromStr for EventId {
    type Err = ParseEventIdError;

    fn from_str(text: &str) -> Result<Self, ParseEventIdError> {
        let number = |digits: &str| digits.parse().map_err(|_| ParseEventIdError);
        match text.split_once('-') {
            None => Ok(EventId { run: None, id: number(text)? }),
            Some((run, id)) => {
                let run = u64::from_str_radix(run, 16).map_err(|_| ParseEventIdError)?;
                Ok(EventId { run: Some(run), id: number(id)? })
            }
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.run {
            Some(run) => write!(f, "{run:016x}-{}", self.id),
            None => write!(f, "{}", self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_ids_round_trip() {
        for id in [EventId { run: None, id: 7 }, EventId { run: Some(0x18f3), id: u64::MAX }] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in ["", "-", "x-1", "1-x", "1-2-3", "-1", "1.5"] {
            assert_eq!(text.parse::<EventId>(), Err(ParseEventIdError), "{text}");
        }
    }
}
