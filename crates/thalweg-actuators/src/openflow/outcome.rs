//! What became of what was sent, and of a connection.

use std::fmt;

use thalweg_wire::Nanos;
use thalweg_wire::openflow::{DecodeError, EncodeError, ErrorMessage, Xid};
use thiserror::Error;

/// Why something was not sent.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The connection has ended.
    #[error("the switch is not connected any more")]
    Down,
    /// There are [`super::Config::max_unanswered`] batches and questions without an answer.
    #[error("too many batches without an answer")]
    Full,
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
    /// It broke.
    #[error("connection broken: {0}")]
    Broken(String),
    /// The switch did not answer an echo request.
    #[error("no answer to an echo request")]
    Silent,
    /// What it sent is no OpenFlow any more: its next message cannot be told.
    #[error("not OpenFlow: {0}")]
    Unreadable(DecodeError),
    /// The switch has connected anew.
    #[error("replaced by a newer connection")]
    Replaced,
    /// All connections are closed.
    #[error("closed by us")]
    Stopped,
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The batch: the xid of its barrier.
    pub xid: Xid,
    /// Whether all of it was carried out.
    pub result: Result<(), Failure>,
    /// From before it was written until this was known.
    pub took: Nanos,
}

/// Why a batch was not carried out, or a question not answered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The switch refused a message. Others of the batch may have been carried out.
    #[error("message {position} of the batch (xid {xid}) was refused: {error}")]
    Refused {
        /// Which message of the batch, counted from 0.
        position: u32,
        /// Its xid.
        xid: Xid,
        /// Why.
        error: ErrorMessage,
    },
    /// There was no answer by the deadline. It may still be carried out.
    #[error("no answer by the deadline")]
    Late,
    /// The answer takes more messages than [`super::Config::max_answer_parts`].
    #[error("the answer is too long")]
    TooLong,
    /// The connection ended. It may have been carried out.
    #[error("the connection ended")]
    Down,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            Ok(()) => write!(f, "batch {} done after {}", self.xid, self.took),
            Err(failure) => write!(f, "batch {} failed after {}: {failure}", self.xid, self.took),
        }
    }
}
