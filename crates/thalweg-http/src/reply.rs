//! Replies of handlers.

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

/// A page.
pub const HTML: &str = "text/html; charset=utf-8";

/// A reply.
#[derive(Debug)]
pub enum Reply {
    /// A complete body.
    Whole {
        /// Status code.
        status: u16,
        /// Media type.
        media_type: &'static str,
        /// The body.
        body: Bytes,
    },
    /// A stream of chunks.
    Stream {
        /// Media type.
        media_type: &'static str,
        /// The writer of the body.
        writer: Writer,
    },
}

/// Writes a body in chunks while it is read and the reader has access.
pub struct Writer(Box<dyn FnOnce(Admission, BodySender) -> Writing + Send>);

/// Sends the chunks of a body.
pub type BodySender = Sender<Bytes, Infallible>;

/// The task that writes a body.
pub(super) type Writing = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Reply {
    /// Creates a JSON reply.
    ///
    /// # Errors
    /// If the value cannot be serialised, which is an internal error.
    pub fn json(value: &impl Serialize) -> Result<Reply, Problem> {
        Reply::json_with(200, value)
    }

    /// Creates a JSON reply with a status code.
    ///
    /// # Errors
    /// As for [`Reply::json`].
    pub fn json_with(status: u16, value: &impl Serialize) -> Result<Reply, Problem> {
        let body = serde_json::to_vec(value).map_err(|error| Problem::new(Code::Internal, error))?;
        Ok(Reply::Whole { status, media_type: JSON, body: body.into() })
    }

    /// Creates a text reply.
    pub fn text(media_type: &'static str, text: String) -> Reply {
        Reply::Whole { status: 200, media_type, body: text.into() }
    }
}

impl Writer {
    /// Creates a writer that runs as a task of the server.
    pub fn new<F>(write: impl FnOnce(Admission, BodySender) -> F + Send + 'static) -> Writer
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Writer(Box::new(|admission, sender| Box::pin(write(admission, sender))))
    }

    pub(super) fn begin(self, admission: Admission, sender: BodySender) -> Writing {
        (self.0)(admission, sender)
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Writer").finish()
    }
}
