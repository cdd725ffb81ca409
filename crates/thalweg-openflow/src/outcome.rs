//! Outcomes of batches and connections.

use std::fmt;

use thalweg_wire::Nanos;
use thalweg_wire::openflow::{DecodeError, EncodeError, ErrorMessage, ErrorType, Xid};
use thiserror::Error;

/// Why a batch or request was not sent.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The connection has ended.
    #[error("the switch is not connected")]
    Down,
    /// [`crate::Config::max_unanswered`] batches and requests are unanswered.
    #[error("too many unanswered batches")]
    TooManyUnanswered,
    /// A message cannot be encoded. Nothing was sent.
    #[error(transparent)]
    Encode(EncodeError),
}

/// Why a connection ended.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DownReason {
    /// The switch closed it.
    #[error("closed by the switch")]
    Closed,
    /// The connection failed.
    #[error("connection failed: {0}")]
    Broken(String),
    /// The switch did not answer an echo request.
    #[error("no answer to an echo request")]
    Silent,
    /// The switch sent bytes that are not OpenFlow, so the start of the next message is unknown.
    #[error("invalid OpenFlow message: {0}")]
    Unreadable(DecodeError),
    /// The switch opened a newer connection.
    #[error("replaced by a newer connection")]
    Replaced,
    /// The controller closed all connections.
    #[error("closed by the controller")]
    Stopped,
}

/// The outcome of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The xid of the batch's barrier.
    pub xid: Xid,
    /// Whether the whole batch was carried out.
    pub result: Result<(), Failure>,
    /// Time from just before the write until the outcome was known.
    pub took: Nanos,
}

/// Why a batch was not carried out, or a request not answered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The switch refused a message. Others of the batch may have been carried out.
    #[error("message {position} of the batch (xid {xid}) was refused: {error}")]
    Refused {
        /// Index of the message in the batch, from 0.
        position: u32,
        /// The xid of the message.
        xid: Xid,
        /// The switch's error.
        error: ErrorMessage,
    },
    /// No answer by the deadline. The batch may still be carried out.
    #[error("no answer by the deadline")]
    TimedOut,
    /// The answer has more messages than [`crate::Config::max_answer_parts`].
    #[error("the answer has too many messages")]
    TooLong,
    /// The connection ended. The batch may have been carried out.
    #[error("the connection ended")]
    Down,
}

/// OFPBRC_IS_SLAVE: only the master may write.
const IS_SLAVE: u16 = 10;

impl Failure {
    /// Returns whether the switch refused a write because this controller is not the master.
    pub fn is_by_slave(&self) -> bool {
        matches!(self, Failure::Refused { error, .. } if (error.error_type, error.code) == (ErrorType::BAD_REQUEST, IS_SLAVE))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            Ok(()) => write!(f, "batch {} done after {}", self.xid, self.took),
            Err(failure) => write!(f, "batch {} failed after {}: {failure}", self.xid, self.took),
        }
    }
}
