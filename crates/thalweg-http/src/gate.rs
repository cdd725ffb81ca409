//! One request: checked from the cheapest test to the dearest, then answered.
//!
//! [`pass`] is before the router: allowance, policy, host. [`answer`] is behind it, where the route is known: scope,
//! parameters, body, handler.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request as HttpRequest, State};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::channel::Channel;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use thalweg_api::problem::{Code, MEDIA_TYPE, Problem};
use tokio::sync::Semaphore;

use super::Counters;
use super::admission::Admission;
use super::endpoint::{Endpoint, Operation};
use super::handler::Prepared;
use super::reply::Reply;
use super::request::{Request, nothing_here, text};
use crate::access::{Access, Allowance, Denied, Handshake, Limits, Policy, Scope, is_own_page};

/// Pieces of a stream that may wait for a connection.
const PIECES: usize = 4;

/// What all requests of a server share.
#[derive(Debug)]
pub struct Gate<S> {
    state: S,
    access: Arc<Access>,
    limits: Limits,
    counters: Arc<Counters>,
    allowance: Mutex<Allowance>,
    /// Threads that may wait on behalf of requests.
    waiting: Arc<Semaphore>,
    /// What times of [`Allowance`] are since.
    start: Instant,
    /// Where to look for what there is, as the end of a sentence.
    hint: String,
}

/// Whose connection a request comes by.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) peer: IpAddr,
    /// What was demanded when the connection began.
    pub(super) admitted: Arc<Policy>,
    /// What was shown then, if it is encrypted.
    pub(super) handshake: Option<Arc<Handshake>>,
}

/// What a request has been let through with.
#[derive(Clone, Debug)]
struct Passed {
    /// One policy for the whole of a request, whatever is reloaded meanwhile.
    policy: Arc<Policy>,
    /// The host that the request is for.
    host: String,
    handshake: Option<Arc<Handshake>>,
}

impl<S> Gate<S> {
    /// A gate; as many requests as `waiting` may wait at a time, each on a thread of its own.
    pub(super) fn new(
        state: S,
        access: Arc<Access>,
        limits: Limits,
        counters: Arc<Counters>,
        waiting: usize,
        hint: String,
    ) -> Gate<S> {
        Gate {
            state,
            access,
            limits,
            counters,
            allowance: Mutex::new(Allowance::new(&limits)),
            waiting: Arc::new(Semaphore::new(waiting)),
            start: Instant::now(),
            hint,
        }
    }

    fn check_allowance(&self, peer: IpAddr) -> Result<(), Problem> {
        let mut allowance = self.allowance.lock().unwrap_or_else(PoisonError::into_inner);
        allowance.take(peer, self.start.elapsed()).map_err(|wait| {
            Problem::new(
                Code::TooManyRequests,
                "more requests than one peer may make (api.requests_per_second)",
            )
            .retry_after(wait)
        })
    }
}

impl Caller {
    /// Whether the connection would be let in now, if something else is demanded than when it began.
    fn check_admission(&self, policy: &Arc<Policy>) -> Result<(), Denied> {
        match Arc::ptr_eq(policy, &self.admitted) {
            true => Ok(()),
            false => policy.check_handshake(self.handshake.as_deref()),
        }
    }
}

/// What is before all routes. Whatever is answered, it is counted here.
pub(super) async fn pass<S: Send + Sync + 'static>(
    State(gate): State<Arc<Gate<S>>>,
    mut request: HttpRequest,
    next: Next,
) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        // The server tells of every request whose it is.
        return refusal(&Problem::new(Code::Internal, "nobody asks"));
    };
    let policy = gate.access.policy();
    let admission = caller.check_admission(&policy);
    let checked = gate
        .check_allowance(caller.peer)
        .and_then(|()| Ok(admission?))
        .and_then(|()| check_host(&policy, &request));
    let mut response = match checked {
        Ok(host) => {
            let (policy, handshake) = (Arc::clone(&policy), caller.handshake.clone());
            request.extensions_mut().insert(Passed { policy, host, handshake });
            next.run(request).await
        }
        Err(problem) => refusal(&problem),
    };
    gate.counters.count(response.extensions().get::<Code>().copied());
    let headers = response.headers_mut();
    // What is measured is out of date at once; and nothing here is to be guessed to be a web page.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if admission.is_err() || !policy.is_current(caller.handshake.as_deref()) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The host that the request is for.
fn check_host(policy: &Policy, request: &HttpRequest) -> Result<String, Problem> {
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let host = authority.or_else(|| text(request.headers(), header::HOST)).unwrap_or_default();
    match policy.hosts.allow(host) {
        true => Ok(host.to_owned()),
        false => Err(Problem::new(
            Code::WrongHost,
            "this is not the host that was asked for; if a proxy stands before it: api.hosts",
        )),
    }
}

/// The answer of a route, whatever it is.
pub(super) async fn answer<S: Clone + Send + Sync + 'static>(
    gate: &Arc<Gate<S>>,
    endpoint: &Endpoint<S>,
    request: HttpRequest,
) -> Response {
    let Some(passed) = request.extensions().get::<Passed>().cloned() else {
        // A router has its gate.
        return refusal(&Problem::new(Code::Internal, "no gate was passed"));
    };
    let authorization = request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes().to_vec());
    match reply(gate, endpoint, &passed, request).await {
        Ok(Reply::Whole { status, media_type, body }) => whole(status, media_type, body),
        Ok(Reply::Stream { media_type, writer }) => {
            let (pieces, body) = Channel::new(PIECES);
            tokio::spawn(writer.begin(
                Admission {
                    access: Arc::clone(&gate.access),
                    policy: passed.policy,
                    authorization,
                    handshake: passed.handshake,
                    scope: endpoint.operation.scope,
                },
                pieces,
            ));
            let mut response = Response::new(Body::new(body));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
            response
        }
        Err(problem) => {
            let Endpoint { path, operation, .. } = endpoint;
            debug_assert!(operation.has(problem.code), "{path} does not document {:?}", problem.code);
            refusal(&problem)
        }
    }
}

async fn reply<S: Clone + Send + Sync + 'static>(
    gate: &Arc<Gate<S>>,
    endpoint: &Endpoint<S>,
    passed: &Passed,
    request: HttpRequest,
) -> Result<Reply, Problem> {
    check_access(passed, &endpoint.operation, request.headers())?;
    let (parts, body) = request.into_parts();
    let request = Request::read(parts, body, endpoint.reads_body, &gate.limits, &gate.hint).await?;
    if !endpoint.reads_query {
        request.query.check_empty()?;
    }
    let prepared = (endpoint.prepare)(&request)?;
    match endpoint.operation.waits {
        true => wait(gate, endpoint.path, prepared).await,
        false => prepared(&gate.state),
    }
}

fn check_access(passed: &Passed, operation: &Operation, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(scope) = operation.scope else { return Ok(()) };
    let authorization = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    passed.policy.permit(authorization, scope)?;
    match text(headers, header::ORIGIN) {
        Some(origin) if scope == Scope::Write && !is_own_page(origin, &passed.host) => {
            Err(Problem::new(Code::Forbidden, "another site's page may not change anything here"))
        }
        _ => Ok(()),
    }
}

/// Answers on a thread that may wait, as soon as there is one: requests queue here, where who goes away leaves the queue,
/// and not in that of the runtime, where nobody does. The thread is taken until the handler returns, even if nobody waits
/// for the answer any more.
async fn wait<S: Clone + Send + Sync + 'static>(
    gate: &Arc<Gate<S>>,
    path: &'static str,
    prepared: Prepared<S>,
) -> Result<Reply, Problem> {
    let working = async {
        let pass = Arc::clone(&gate.waiting).acquire_owned().await.ok();
        let state = gate.state.clone();
        tokio::task::spawn_blocking(move || {
            let _pass = pass;
            prepared(&state)
        })
        .await
    };
    match tokio::time::timeout(gate.limits.request_timeout, working).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => {
            tracing::error!(path, %error, "a request was not answered");
            Err(Problem::new(Code::Internal, "a fault of this program; the log has more"))
        }
        Err(_) => Err(Problem::new(Code::Unavailable, "nobody answered in time (api.request_timeout)")),
    }
}

/// Nothing is at a path.
pub(super) fn not_found<S>(gate: &Gate<S>) -> Response {
    refusal(&nothing_here(&gate.hint))
}

/// Something is at a path, for these methods.
pub(super) fn not_allowed(methods: &str) -> Response {
    let mut response = refusal(&Problem::new(Code::MethodNotAllowed, "this path is not for this method"));
    insert(response.headers_mut(), header::ALLOW, methods);
    response
}

fn whole(status: u16, media_type: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// A problem as a response, which has its code as an extension.
fn refusal(problem: &Problem) -> Response {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let mut response = whole(problem.status, MEDIA_TYPE, body.into());
    response.extensions_mut().insert(problem.code);
    let headers = response.headers_mut();
    match problem.code {
        // RFC 6750, section 3.
        Code::Unauthorised => insert(headers, header::WWW_AUTHENTICATE, "Bearer realm=\"thalweg\""),
        // What of the body has not been read would be taken for the next request.
        Code::TooLarge | Code::SlowRequest => insert(headers, header::CONNECTION, "close"),
        _ => {}
    }
    if let Some(wait) = problem.retry_after {
        // Whole seconds, and not too early.
        insert(headers, header::RETRY_AFTER, &wait.as_secs_f64().ceil().max(1.0).to_string());
    }
    response
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
