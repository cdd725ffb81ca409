//! Reads a request within its limits.

use axum::RequestPartsExt;
use axum::body::Body;
use axum::extract::RawPathParams;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes};
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use thalweg_api::problem::{Code, Problem};

use super::parameters::Pairs;
use crate::access::{Limits, Permit};

/// Maximum length of a parameter value.
const MAX_VALUE: usize = 1_024;

/// Maximum number of query parameters.
const MAX_PARAMETERS: usize = 32;

/// A decoded request within its limits.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Parameters of the path, decoded.
    pub path: Pairs,
    /// Parameters of the query, decoded.
    pub query: Pairs,
    /// The `Content-Type` header without parameters, in lower case.
    pub content_type: Option<String>,
    /// The `Accept` header.
    pub accept: Option<String>,
    /// The `Last-Event-ID` header.
    pub last_event_id: Option<String>,
    /// The body; empty if the route has none.
    pub body: Bytes,
    /// What the request may do.
    pub permit: Permit,
}

impl Request {
    /// Reads a request, and its body if `takes_body`. `hint` is appended to errors about unknown paths.
    ///
    /// # Errors
    /// If the request cannot be decoded or exceeds a limit.
    pub(super) async fn read(
        mut parts: Parts,
        body: Body,
        takes_body: bool,
        limits: &Limits,
        hint: &str,
    ) -> Result<Request, Problem> {
        let path = parts.extract::<RawPathParams>().await.map_err(|_| path_not_found(hint))?;
        let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let query = query(parts.uri.query().unwrap_or_default())?;
        let headers = &parts.headers;
        let content_type = text(headers, header::CONTENT_TYPE).and_then(|value| value.split(';').next());
        Ok(Request {
            path,
            query,
            content_type: content_type.map(|value| value.trim().to_ascii_lowercase()),
            accept: text(headers, header::ACCEPT).map(str::to_owned),
            last_event_id: text(headers, HeaderName::from_static("last-event-id")).map(str::to_owned),
            body: whole(body, takes_body, limits).await?,
            permit: Permit::default(),
        })
    }
}

/// Returns the problem of an unknown path.
pub(super) fn path_not_found(hint: &str) -> Problem {
    Problem::new(Code::NotFound, format!("unknown path{hint}"))
}

/// Returns a header as text.
pub(super) fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn whole(body: Body, takes_body: bool, limits: &Limits) -> Result<Bytes, Problem> {
    let max = limits.body_bytes;
    let too_large = || Problem::new(Code::TooLarge, format!("body larger than {max} bytes (api.max_body)"));
    if body.size_hint().lower() > max {
        return Err(too_large());
    }
    if !takes_body {
        return Ok(Bytes::new());
    }
    let limit = usize::try_from(max).unwrap_or(usize::MAX);
    match tokio::time::timeout(limits.request_timeout, Limited::new(body, limit).collect()).await {
        Err(_) => Err(Problem::new(Code::SlowRequest, "the body timed out (api.request_timeout)")),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Problem::new(Code::BadBody, format!("cannot read the body: {error}"))),
        Ok(Ok(body)) => Ok(body.to_bytes()),
    }
}

/// Parses the parameters of a query.
fn query(text: &str) -> Result<Pairs, Problem> {
    let bad = |detail| Problem::new(Code::BadParameter, detail);
    let mut pairs = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        if pairs.len() == MAX_PARAMETERS {
            return Err(bad(format!("more than {MAX_PARAMETERS} query parameters")));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let shown: String = name.chars().take(64).collect();
        let name = decoded(name).ok_or_else(|| bad(format!("{shown:?} is not valid UTF-8")))?;
        let value = decoded(value).ok_or_else(|| bad(format!("{shown} is not valid UTF-8")))?;
        if value.len() > MAX_VALUE {
            return Err(bad(format!("{shown} is longer than {MAX_VALUE} bytes")));
        }
        pairs.push((name, value));
    }
    Ok(pairs.into_iter().collect())
}

/// Decodes percent-encoded text of a query (RFC 3986, section 2.1), where `+` is a space. Returns `None` for invalid UTF-8, or a
/// percent sign without two hexadecimal digits.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'%' => {
                let (digits, after) = after.split_at_checked(2)?;
                let digit = |digit: u8| char::from(digit).to_digit(16);
                bytes.push((digit(digits[0])? << 4 | digit(digits[1])?) as u8);
                rest = after;
            }
            b'+' => bytes.push(b' '),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_and_limited() {
        let read =
            |text: &str| query(text).map(|pairs| pairs.iter().map(|(_, value)| value.to_owned()).collect());
        assert_eq!(read("key=a%3ab&&other=+"), Ok(vec!["a:b".to_owned(), " ".to_owned()]));
        for wrong in ["a=%ff", "a=%2", &"a=1&".repeat(33), &format!("a={}", "x".repeat(1_025))] {
            assert_eq!(query(wrong).unwrap_err().status, 400, "{wrong}");
        }
    }

    #[test]
    fn invalid_percent_encoding_is_refused() {
        assert_eq!(decoded("a+b%20c"), Some("a b c".into()));
        for wrong in ["%", "%2", "%zz", "%ff", "%+1"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
