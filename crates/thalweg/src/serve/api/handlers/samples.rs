//! Samples, written to files or answered as one.

use crate::serve::api::Api;
use crate::serve::api::json::{SampleFile, Samples};
use crate::serve::api::problem::{Code, Problem};
use crate::serve::api::reply::Reply;
use crate::serve::api::request::Request;
use crate::serve::api::route::PCAPNG;
use crate::serve::samples::{Cause, DumpError, DumpRequest};

/// `POST /v1/samples`
pub(in crate::serve::api) fn post(api: &Api, request: &Request) -> Result<Reply, Problem> {
    let collector = request.text("collector").map(str::to_owned);
    let format = request.get("format")?;
    if request.accept.as_ref().is_some_and(|accept| accept.contains(PCAPNG)) {
        return stream(api, collector.as_deref());
    }
    let files = api.daemon().dump(&DumpRequest { collector, format, cause: Cause::Request })?;
    Reply::json(&Samples { files: files.iter().map(SampleFile::from).collect() })
}

/// The samples of one collector, as the body of the answer.
fn stream(api: &Api, collector: Option<&str>) -> Result<Reply, Problem> {
    let Some(collector) = collector else {
        return Err(Problem::new(Code::BadParameter, "collector is missing: a file is that of one"));
    };
    let dumped = api.daemon().samples_of(collector, u64::MAX)?;
    Ok(Reply::Whole { status: 200, media_type: PCAPNG, body: dumped.bytes.into() })
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
