//! Samples, saved to files or sent in the response.

use std::time::Duration;

use hyper::body::Bytes;
use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde::Deserialize;
use thalweg_api::Samples;
use thalweg_api::problem::{Code, Problem};
use thalweg_wire::FlowKey;
use tokio::sync::OwnedSemaphorePermit;

use crate::api::{Api, convert};
use crate::config::CaptureFormat;
use crate::samples::{Cause, DumpError, DumpRequest};
use thalweg_http::input::{Accept, Content, Query};
use thalweg_http::output::{Json, OneOf, Output};
use thalweg_http::parameters::Parsed;
use thalweg_http::reply::Reply;

/// Capture files (draft-ietf-opsawg-pcapng).
const PCAPNG: &str = "application/pcapng";

/// Suggested wait while another capture file is being sent.
const NEXT_CAPTURE: Duration = Duration::from_secs(1);

/// Parameters of a dump.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct SampleParams {
    /// Only samples of this collector; required for `application/pcapng`.
    #[schemars(example = &"tor0")]
    collector: Option<String>,
    /// Only packets of this flow, of either direction; for `application/pcapng`. Percent-encoded: PROTOCOL SRC:PORT > DST:PORT, or
    /// PROTOCOL SRC > DST for protocols without ports.
    #[schemars(example = &"tcp%2010.0.0.1:443%20%3E%2010.0.0.2:51000")]
    flow: Option<Parsed<FlowKey>>,
    /// File format: pcapng, or pcap with one file per output port. The default is configured.
    #[schemars(example = &"pcapng")]
    format: Option<Parsed<CaptureFormat>>,
}

/// A capture file.
#[derive(Debug)]
pub(in crate::api) struct CaptureFile(Bytes);

impl Output for CaptureFile {
    fn contents(_: &mut SchemaGenerator) -> Vec<Content> {
        let schema = json_schema!({"type": "string", "contentMediaType": PCAPNG});
        vec![Content { media_type: PCAPNG, schema }]
    }

    fn into_reply(self) -> Result<Reply, Problem> {
        Ok(Reply::Whole { status: 200, media_type: PCAPNG, body: self.0 })
    }
}

/// `POST /v1/samples`
pub(in crate::api) fn post(
    api: &Api,
    Query(SampleParams { collector, flow, format }): Query<SampleParams>,
    accept: Accept,
) -> Result<OneOf<Json<Samples>, CaptureFile>, Problem> {
    if accept.names(PCAPNG) {
        let flow = flow.as_ref().map(|Parsed(flow)| flow);
        return stream(api, collector.as_deref(), flow).map(OneOf::Other);
    }
    if flow.is_some() {
        return Err(Problem::new(Code::BadParameter, "flow needs the header Accept: application/pcapng"));
    }
    let format = format.map(|Parsed(format)| format);
    let files = api.parts().dumps.dump(&DumpRequest { collector, format, cause: Cause::Request })?;
    Ok(OneOf::Usual(Json(Samples { files: files.iter().map(convert::sample_file).collect() })))
}

/// A capture file with its permit, until it is sent.
struct Held {
    bytes: Vec<u8>,
    _pass: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns the samples of one collector as the body of the response.
fn stream(api: &Api, collector: Option<&str>, flow: Option<&FlowKey>) -> Result<CaptureFile, Problem> {
    let Some(collector) = collector else {
        return Err(Problem::new(
            Code::BadParameter,
            "missing parameter collector: a capture file contains the samples of one collector",
        ));
    };
    let pass = api.capture_pass().ok_or_else(|| {
        Problem::new(Code::TooManyRequests, "another capture file is being sent").retry_after(NEXT_CAPTURE)
    })?;
    let dumped = api.parts().dumps.samples_of(collector, u64::MAX, flow)?;
    Ok(CaptureFile(Bytes::from_owner(Held { bytes: dumped.bytes, _pass: pass })))
}

impl From<DumpError> for Problem {
    fn from(error: DumpError) -> Problem {
        let code = match error {
            DumpError::NoCollector(_) => Code::NotFound,
            DumpError::NoFolder | DumpError::NoSampleRing(_) => Code::NotConfigured,
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
    use super::*;
    use crate::parts::tests::parts;
    use thalweg_http::access::Limits;

    #[test]
    fn one_capture_file_is_sent_at_a_time() {
        let api = Api::new(parts(), &Limits::default(), None);
        let status = || {
            let wanted = SampleParams { collector: Some("tor0".to_owned()), flow: None, format: None };
            post(&api, Query(wanted), Accept(Some(PCAPNG.to_owned()))).unwrap_err().status
        };
        assert_eq!(status(), 404, "the permit is free, and the collector is unknown");
        let body = Bytes::from_owner(Held { bytes: vec![0; 9], _pass: api.capture_pass().unwrap() });
        let left_to_send = body.slice(5..);
        drop(body);
        assert_eq!(status(), 429);
        drop(left_to_send);
        assert_eq!(status(), 404);
    }
}
