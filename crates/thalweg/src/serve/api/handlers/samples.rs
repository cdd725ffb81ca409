//! Samples, written to files or answered as one.

use std::time::Duration;

use hyper::body::Bytes;
use thalweg_api::Samples;
use thalweg_api::problem::{Code, Problem};
use tokio::sync::OwnedSemaphorePermit;

use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;
use crate::serve::api::route::PCAPNG;
use crate::serve::api::{Api, convert};
use crate::serve::samples::{Cause, DumpError, DumpRequest};

/// `POST /v1/samples`
pub(in crate::serve::api) fn post(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let collector = request.text("collector").map(str::to_owned);
    let format = request.get("format")?;
    if request.accept.as_ref().is_some_and(|accept| accept.contains(PCAPNG)) {
        return stream(api, collector.as_deref());
    }
    let files = api.daemon().dump(&DumpRequest { collector, format, cause: Cause::Request })?;
    Reply::json(&Samples { files: files.iter().map(convert::sample_file).collect() })
}

/// When somebody else's capture file may have been sent.
const NEXT_CAPTURE: Duration = Duration::from_secs(1);

/// A capture file, and its room in memory until it is sent.
struct Held {
    bytes: Vec<u8>,
    _pass: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The samples of one collector, as the body of the answer.
fn stream(api: &Api, collector: Option<&str>) -> Result<Reply, Problem> {
    let Some(collector) = collector else {
        return Err(Problem::new(Code::BadParameter, "collector is missing: a file is that of one"));
    };
    let pass = api.capture_pass().ok_or_else(|| {
        Problem::new(Code::TooManyRequests, "samples are being sent to somebody else")
            .retry_after(NEXT_CAPTURE)
    })?;
    let dumped = api.daemon().samples_of(collector, u64::MAX)?;
    let body = Bytes::from_owner(Held { bytes: dumped.bytes, _pass: pass });
    Ok(Reply::Whole { status: 200, media_type: PCAPNG, body })
}

impl From<DumpError> for Problem {
    fn from(error: DumpError) -> Problem {
        let code = match error {
            DumpError::NoCollector(_) => Code::NotFound,
            DumpError::NoFolder | DumpError::NotKept(_) => Code::NotConfigured,
            DumpError::TooSoon { wait } => {
                return Problem::new(Code::TooManyRequests, error).retry_after(wait);
            }
            _ => Code::Unavailable,
        };
        Problem::new(code, error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::serve::access::{Access, AccessOptions, Limits};
    use crate::serve::api::route::{self, Method};
    use crate::serve::daemon::Daemon;
    use crate::serve::hub::Hub;

    #[test]
    fn one_capture_file_is_in_memory_until_it_is_sent_and_others_wait() {
        let access = Arc::new(Access::new(&AccessOptions::default()).unwrap());
        let api = Api::new(Daemon::new(None, Hub::default()), access, Limits::default(), None);
        let (route, segments) = route::find(Method::Post, "/v1/samples").unwrap();
        let mut request = Request::new(route, segments, Some("collector=tor0")).unwrap();
        request.accept = Some(PCAPNG.into());
        let status = || post(&api, &request).unwrap_err().status;
        assert_eq!(status(), 404, "it is free, and there is no such collector");
        let body = Bytes::from_owner(Held { bytes: vec![0; 9], _pass: api.capture_pass().unwrap() });
        let left_to_send = body.slice(5..);
        drop(body);
        assert_eq!(status(), 429);
        drop(left_to_send);
        assert_eq!(status(), 404);
    }
}
