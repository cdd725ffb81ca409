//! What is answered.

use hyper::body::Bytes;
use serde::Serialize;
use thalweg_api::problem::{Code, Problem};

use super::events::Subscription;

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
    /// Events, as they come.
    Events(Box<Subscription>),
}

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
