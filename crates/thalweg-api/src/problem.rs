//! Error responses: problem details (RFC 9457).

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The media type of problems (RFC 9457, section 3).
pub const MEDIA_TYPE: &str = "application/problem+json";

/// An error response (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Problem {
    /// Always `about:blank`; `code` identifies the problem.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The HTTP status in words.
    pub title: Cow<'static, str>,
    /// The HTTP status code.
    pub status: u16,
    /// The problem, for programs.
    pub code: Code,
    /// The problem, for people.
    pub detail: String,
    /// The errors in the request body; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub errors: Vec<BodyError>,
    /// How long to wait before retrying.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

/// An error in a request body.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct BodyError {
    /// Line of the body, from 1; null if the error is not at one line.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

/// The problem, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// A parameter is unknown or its value is invalid.
    BadParameter,
    /// The request body is invalid.
    BadBody,
    /// A request header is missing, or occurs more than once.
    BadHeader,
    /// The requested item does not exist.
    NotFound,
    /// The path does not support this method.
    MethodNotAllowed,
    /// The request needs a valid token.
    Unauthorised,
    /// The token lacks the required scope, or the request comes from a web page of another site.
    Forbidden,
    /// The `Host` header names another host.
    WrongHost,
    /// The format of the request body is not supported.
    UnsupportedMediaType,
    /// The request body is too large.
    TooLarge,
    /// The request was not received within the timeout.
    SlowRequest,
    /// The client exceeded its request rate, or a limited resource is in use.
    TooManyRequests,
    /// The limit of subscribers is reached.
    TooManySubscribers,
    /// The requested feature is not configured.
    NotConfigured,
    /// The change conflicts with the current state.
    Conflict,
    /// No response in time.
    Unavailable,
    /// An internal error: please report it.
    Internal,
}

impl Code {
    /// All codes.
    pub const ALL: [Code; 17] = [
        Code::BadParameter,
        Code::BadBody,
        Code::BadHeader,
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

    /// Returns the HTTP status code and its reason phrase (RFC 9110, section 15; RFC 6585).
    pub const fn status(self) -> (u16, &'static str) {
        match self {
            Code::BadParameter | Code::BadBody | Code::BadHeader => (400, "Bad Request"),
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

    /// Returns the name in JSON and in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Code::BadParameter => "bad_parameter",
            Code::BadBody => "bad_body",
            Code::BadHeader => "bad_header",
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
    /// Creates a problem with a description for people.
    pub fn new(code: Code, detail: impl fmt::Display) -> Problem {
        let (status, title) = code.status();
        let (detail, errors) = (detail.to_string(), Vec::new());
        let (kind, title) = ("about:blank".into(), title.into());
        Problem { kind, title, status, code, detail, errors, retry_after: None }
    }

    /// Sets how long the client should wait before retrying.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Problem {
        Problem { retry_after: Some(wait), ..self }
    }

    /// Adds the errors in the request body.
    #[must_use]
    pub fn with_errors(self, errors: Vec<BodyError>) -> Problem {
        Problem { errors, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_names_match_json() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.name());
        }
    }
}
