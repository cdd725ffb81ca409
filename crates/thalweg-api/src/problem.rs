//! What is said when something cannot be answered (RFC 9457).

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The media type of problems (RFC 9457, section 3).
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Problem {
    /// Always `about:blank`: the status and `code` say what it is.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The status in words.
    pub title: Cow<'static, str>,
    /// The status of the answer.
    pub status: u16,
    /// What the problem is, for programs.
    pub code: Code,
    /// What it is, for people.
    pub detail: String,
    /// What is wrong with the body, if that is the problem.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<BodyError>,
    /// How long to wait before trying again.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

/// One thing that is wrong with a body.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct BodyError {
    /// Line of the body, from 1; null if it is none in particular.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

/// What a problem is, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// A parameter is unknown, or its value wrong.
    BadParameter,
    /// The body is not what it is to be.
    BadBody,
    /// There is no such thing.
    NotFound,
    /// The path is known, but not for this method.
    MethodNotAllowed,
    /// A token is needed.
    Unauthorised,
    /// The token does not go that far, or another page's script asks.
    Forbidden,
    /// The request is for another host.
    WrongHost,
    /// The body is not in a format that is read.
    UnsupportedMediaType,
    /// The body is too large.
    TooLarge,
    /// The request took too long to come.
    SlowRequest,
    /// Too many requests.
    TooManyRequests,
    /// Too many subscribers.
    TooManySubscribers,
    /// What was asked for is not configured.
    NotConfigured,
    /// What it would change has changed, or does not go together with it.
    Conflict,
    /// Nobody answered in time.
    Unavailable,
    /// A fault of this program.
    Internal,
}

impl Code {
    /// All of them.
    pub const ALL: [Code; 16] = [
        Code::BadParameter,
        Code::BadBody,
        Code::NotFound,
        Code::MethodNotAllowed,
        Code::Unauthorised,
        Code::Forbidden,
        Code::WrongHost,
        Code::UnsupportedMediaType,
        Code::TooLarge,
        Code::SlowRequest,
        Code::TooManyRequests,
        Code::TooManySubscribers,
        Code::NotConfigured,
        Code::Conflict,
        Code::Unavailable,
        Code::Internal,
    ];

    /// The status that goes with it, and its words (RFC 9110, section 15; RFC 6585).
    pub const fn status(self) -> (u16, &'static str) {
        match self {
            Code::BadParameter | Code::BadBody => (400, "Bad Request"),
            Code::Unauthorised => (401, "Unauthorized"),
            Code::Forbidden => (403, "Forbidden"),
            Code::NotFound => (404, "Not Found"),
            Code::MethodNotAllowed => (405, "Method Not Allowed"),
            Code::SlowRequest => (408, "Request Timeout"),
            Code::Conflict => (409, "Conflict"),
            Code::TooLarge => (413, "Content Too Large"),
            Code::UnsupportedMediaType => (415, "Unsupported Media Type"),
            Code::WrongHost => (421, "Misdirected Request"),
            Code::TooManyRequests => (429, "Too Many Requests"),
            Code::Internal => (500, "Internal Server Error"),
            Code::TooManySubscribers | Code::NotConfigured | Code::Unavailable => {
                (503, "Service Unavailable")
            }
        }
    }

    /// As in JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Code::BadParameter => "bad_parameter",
            Code::BadBody => "bad_body",
            Code::NotFound => "not_found",
            Code::MethodNotAllowed => "method_not_allowed",
            Code::Unauthorised => "unauthorised",
            Code::Forbidden => "forbidden",
            Code::WrongHost => "wrong_host",
            Code::UnsupportedMediaType => "unsupported_media_type",
            Code::TooLarge => "too_large",
            Code::SlowRequest => "slow_request",
            Code::TooManyRequests => "too_many_requests",
            Code::TooManySubscribers => "too_many_subscribers",
            Code::NotConfigured => "not_configured",
            Code::Conflict => "conflict",
            Code::Unavailable => "unavailable",
            Code::Internal => "internal",
        }
    }
}

impl Problem {
    /// A problem, and what people are told of it.
    pub fn new(code: Code, detail: impl fmt::Display) -> Problem {
        let (status, title) = code.status();
        let (detail, errors) = (detail.to_string(), Vec::new());
        let (kind, title) = ("about:blank".into(), title.into());
        Problem { kind, title, status, code, detail, errors, retry_after: None }
    }

    /// With how long to wait before trying again.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Problem {
        Problem { retry_after: Some(wait), ..self }
    }

    /// With what is wrong with the body.
    #[must_use]
    pub fn with_errors(self, errors: Vec<BodyError>) -> Problem {
        Problem { errors, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_the_name_that_json_gives_it() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.name());
        }
    }
}
