//! What is answered, before it is a response.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use http_body_util::channel::Sender;
use hyper::body::Bytes;
use serde::Serialize;
use thalweg_api::problem::{Code, Problem};

use super::admission::Admission;

/// JSON (RFC 8259).
pub const JSON: &str = "application/json";

/// What is answered.
#[derive(Debug)]
pub enum Reply {
    /// All of it at once.
    Whole {
        /// Status.
        status: u16,
        /// What it is.
        media_type: &'static str,
        /// The body.
        body: Bytes,
    },
    /// Piece by piece, as it comes.
    Stream {
        /// What it is.
        media_type: &'static str,
        /// What writes it.
        writer: Writer,
    },
}

/// Writes a body piece by piece, for as long as it is read and the reader is admitted.
pub struct Writer(Box<dyn FnOnce(Admission, Pieces) -> Writing + Send>);

/// Where the pieces of a body go.
pub type Pieces = Sender<Bytes, Infallible>;

/// A body that is being written.
pub(super) type Writing = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Reply {
    /// A value as JSON.
    ///
    /// # Errors
    /// If it cannot be written as JSON, which is a fault of this program.
    pub fn json(value: &impl Serialize) -> Result<Reply, Problem> {
        Reply::json_with(200, value)
    }

    /// A value as JSON, with a status.
    ///
    /// # Errors
    /// As [`Reply::json`].
    pub fn json_with(status: u16, value: &impl Serialize) -> Result<Reply, Problem> {
        let body = serde_json::to_vec(value).map_err(|error| Problem::new(Code::Internal, error))?;
        Ok(Reply::Whole { status, media_type: JSON, body: body.into() })
    }

    /// Text of any kind.
    pub fn text(media_type: &'static str, text: String) -> Reply {
        Reply::Whole { status: 200, media_type, body: text.into() }
    }
}

impl Writer {
    /// A writer that runs as a task of the server.
    pub fn new<F>(write: impl FnOnce(Admission, Pieces) -> F + Send + 'static) -> Writer
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Writer(Box::new(|admission, pieces| Box::pin(write(admission, pieces))))
    }

    pub(super) fn begin(self, admission: Admission, pieces: Pieces) -> Writing {
        (self.0)(admission, pieces)
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Writer").finish()
    }
}
