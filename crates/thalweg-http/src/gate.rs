//! Checks a request, cheapest check first, then answers it.
//!
//! [`admit`] runs before the router: rate limit, policy, headers, host. [`answer`] runs after it, when the route is known: scope, parameters,
//! body, handler.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request as HttpRequest, State};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::channel::Channel;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{StatusCode, Version};
use thalweg_api::problem::{Code, MEDIA_TYPE, Problem};
use tokio::sync::Semaphore;

use super::Counters;
use super::admission::Admission;
use super::connection_limits::ConnectionPermit;
use super::endpoint::{Endpoint, Operation};
use super::handler::Prepared;
use super::reply::{HTML, Reply};
use super::request::{Request, path_not_found, text};
use crate::access::{Access, Denied, Handshake, Limits, Permit, Policy, RateLimiter, Scope, is_same_origin};

/// Maximum number of chunks of a stream that wait to be sent.
const CHUNK_QUEUE_CAPACITY: usize = 4;

/// What a page may load: styles and images within it.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Headers that must not occur more than once: `Host` by RFC 9112, section 3.2, the others by RFC 9110, section 5.3.
const SINGLE_HEADERS: [HeaderName; 4] =
    [header::HOST, header::AUTHORIZATION, header::ORIGIN, header::CONTENT_TYPE];

/// The state that all requests of a server share.
#[derive(Debug)]
pub struct Gate<S> {
    state: S,
    access: Arc<Access>,
    limits: Limits,
    counters: Arc<Counters>,
    rate_limiter: Mutex<RateLimiter>,
    /// Permits for threads of handlers that block.
    blocking: Arc<Semaphore>,
    /// The reference for times of [`RateLimiter`].
    start: Instant,
    /// Where to find the list of paths, appended to errors.
    hint: String,
}

/// The connection of a request.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) peer: IpAddr,
    pub(super) permit: Arc<ConnectionPermit>,
    /// The policy when the connection was accepted.
    pub(super) admitted: Arc<Policy>,
    /// The TLS handshake, if the connection is encrypted.
    pub(super) handshake: Option<Arc<Handshake>>,
}

/// An admitted request.
#[derive(Clone, Debug)]
struct Admitted {
    /// The policy for the whole request, even if a reload replaces it meanwhile.
    policy: Arc<Policy>,
    /// The requested host.
    host: String,
    handshake: Option<Arc<Handshake>>,
    permit: Arc<ConnectionPermit>,
}

impl<S> Gate<S> {
    /// Creates a gate that runs at most `blocking` handlers on threads at a time.
    pub(super) fn new(
        state: S,
        access: Arc<Access>,
        limits: Limits,
        counters: Arc<Counters>,
        blocking: usize,
        hint: String,
    ) -> Gate<S> {
        Gate {
            state,
            access,
            limits,
            counters,
            rate_limiter: Mutex::new(RateLimiter::new(&limits)),
            blocking: Arc::new(Semaphore::new(blocking)),
            start: Instant::now(),
            hint,
        }
    }

    fn check_rate(&self, peer: IpAddr) -> Result<(), Problem> {
        let mut rate_limiter = self.rate_limiter.lock().unwrap_or_else(PoisonError::into_inner);
        rate_limiter.take(peer, self.start.elapsed()).map_err(|run_blocking| {
            Problem::new(Code::TooManyRequests, "rate limit of this peer exceeded (api.requests_per_second)")
                .retry_after(run_blocking)
        })
    }
}

impl Caller {
    /// Checks the connection against the current policy, if that has changed since.
    fn check_admission(&self, policy: &Arc<Policy>) -> Result<(), Denied> {
        match Arc::ptr_eq(policy, &self.admitted) {
            true => Ok(()),
            false => policy.check_handshake(self.handshake.as_deref()),
        }
    }
}

/// Checks a request before the router, and counts its response.
pub(super) async fn admit<S: Send + Sync + 'static>(
    State(gate): State<Arc<Gate<S>>>,
    mut request: HttpRequest,
    next: Next,
) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        // The server adds a caller to every request.
        return problem_response(&Problem::new(Code::Internal, "the request has no caller"));
    };
    let policy = gate.access.policy();
    let admission = caller.check_admission(&policy);
    let checked = gate
        .check_rate(caller.peer)
        .and_then(|()| Ok(admission?))
        .and_then(|()| check_headers(&request))
        .and_then(|()| check_host(&policy, &request));
    let mut response = match checked {
        Ok(host) => {
            let (policy, handshake) = (Arc::clone(&policy), caller.handshake.clone());
            let permit = Arc::clone(&caller.permit);
            request.extensions_mut().insert(Admitted { policy, host, handshake, permit });
            next.run(request).await
        }
        Err(problem) => problem_response(&problem),
    };
    gate.counters.count(response.extensions().get::<Code>().copied());
    let headers = response.headers_mut();
    // Measurements must not be cached, and no response may be sniffed as HTML.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if admission.is_err() || !policy.is_current(caller.handshake.as_deref()) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Checks that headers with one value occur once. Otherwise a proxy could check one of them, and this server use another.
fn check_headers(request: &HttpRequest) -> Result<(), Problem> {
    let headers = request.headers();
    let is_repeated = |name: &&HeaderName| headers.get_all(*name).iter().count() > 1;
    if let Some(name) = SINGLE_HEADERS.iter().find(is_repeated) {
        return Err(Problem::new(Code::BadHeader, format!("more than one {name} header")));
    }
    match request.version() == Version::HTTP_11 && !headers.contains_key(header::HOST) {
        true => Err(Problem::new(Code::BadHeader, "no host header")),
        false => Ok(()),
    }
}

/// Checks and returns the requested host.
fn check_host(policy: &Policy, request: &HttpRequest) -> Result<String, Problem> {
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let host = authority.or_else(|| text(request.headers(), header::HOST)).unwrap_or_default();
    match policy.hosts.allow(host) {
        true => Ok(host.to_owned()),
        false => {
            Err(Problem::new(Code::WrongHost, "unknown host: add the name of a reverse proxy to api.hosts"))
        }
    }
}

/// Answers a request of a route.
pub(super) async fn answer<S: Clone + Send + Sync + 'static>(
    gate: &Arc<Gate<S>>,
    endpoint: &Endpoint<S>,
    request: HttpRequest,
) -> Response {
    let Some(admitted) = request.extensions().get::<Admitted>().cloned() else {
        // Every router has a gate.
        return problem_response(&Problem::new(Code::Internal, "the request was not admitted"));
    };
    let authorization = request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes().to_vec());
    match reply(gate, endpoint, &admitted, request).await {
        Ok(Reply::Whole { status, media_type, body }) => whole_response(status, media_type, body),
        Ok(Reply::Stream { media_type, writer }) => {
            let (sender, body) = Channel::new(CHUNK_QUEUE_CAPACITY);
            tokio::spawn(writer.begin(
                Admission {
                    access: Arc::clone(&gate.access),
                    policy: admitted.policy,
                    authorization,
                    handshake: admitted.handshake,
                    scope: endpoint.operation.scope,
                    _answering: admitted.permit.answering(),
                },
                sender,
            ));
            let mut response = Response::new(Body::new(body));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
            response
        }
        Err(problem) => {
            let Endpoint { path, operation, .. } = endpoint;
            debug_assert!(operation.has(problem.code), "{path} does not document {:?}", problem.code);
            problem_response(&problem)
        }
    }
}

async fn reply<S: Clone + Send + Sync + 'static>(
    gate: &Arc<Gate<S>>,
    endpoint: &Endpoint<S>,
    admitted: &Admitted,
    request: HttpRequest,
) -> Result<Reply, Problem> {
    let permit = check_access(admitted, &endpoint.operation, request.headers())?;
    let (parts, body) = request.into_parts();
    let mut request = Request::read(parts, body, endpoint.reads_body, &gate.limits, &gate.hint).await?;
    request.permit = permit;
    // The client waits for the server from here on.
    let _answering = admitted.permit.answering();
    if !endpoint.reads_query {
        request.query.check_empty()?;
    }
    let prepared = (endpoint.prepare)(&request)?;
    match endpoint.operation.waits {
        true => run_blocking(gate, endpoint.path, prepared).await,
        false => prepared(&gate.state),
    }
}

/// Returns what the request may do.
fn check_access(admitted: &Admitted, operation: &Operation, headers: &HeaderMap) -> Result<Permit, Problem> {
    let Some(scope) = operation.scope else { return Ok(Permit::default()) };
    let authorization = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let permit = admitted.policy.permit(authorization, scope)?;
    match text(headers, header::ORIGIN) {
        Some(origin) if scope != Scope::Read && !is_same_origin(origin, &admitted.host) => {
            Err(Problem::new(Code::Forbidden, "changes by pages of other sites are forbidden"))
        }
        _ => Ok(permit),
    }
}

/// Runs a handler on a thread that may block, as soon as one is free. Requests queue here, because a client that disconnects then
/// leaves the queue, which it would not in the queue of the runtime. The thread is in use until the handler returns, even if the
/// client has gone.
async fn run_blocking<S: Clone + Send + Sync + 'static>(
    gate: &Arc<Gate<S>>,
    path: &'static str,
    prepared: Prepared<S>,
) -> Result<Reply, Problem> {
    let working = async {
        let admit = Arc::clone(&gate.blocking).acquire_owned().await.ok();
        let state = gate.state.clone();
        tokio::task::spawn_blocking(move || {
            let _pass = admit;
            prepared(&state)
        })
        .await
    };
    match tokio::time::timeout(gate.limits.request_timeout, working).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => {
            tracing::error!(path, %error, "handler failed");
            Err(Problem::new(Code::Internal, "internal error: see the log of the daemon"))
        }
        Err(_) => Err(Problem::new(Code::Unavailable, "timed out (api.request_timeout)")),
    }
}

/// Returns the response for an unknown path.
pub(super) fn not_found<S>(gate: &Gate<S>) -> Response {
    problem_response(&path_not_found(&gate.hint))
}

/// Returns the response for an unsupported method of a path. `methods` are the supported ones.
pub(super) fn not_allowed(methods: &str) -> Response {
    let mut response =
        problem_response(&Problem::new(Code::MethodNotAllowed, "method not allowed for this path"));
    insert(response.headers_mut(), header::ALLOW, methods);
    response
}

fn whole_response(status: u16, media_type: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    if media_type == HTML {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    }
    response
}

/// Converts a problem to a response, with the code as an extension.
fn problem_response(problem: &Problem) -> Response {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let mut response = whole_response(problem.status, MEDIA_TYPE, body.into());
    response.extensions_mut().insert(problem.code);
    let headers = response.headers_mut();
    match problem.code {
        // RFC 6750, section 3.
        Code::Unauthorised => insert(headers, header::WWW_AUTHENTICATE, "Bearer realm=\"thalweg\""),
        // The unread rest of the body would be parsed as the next request.
        Code::TooLarge | Code::SlowRequest => insert(headers, header::CONNECTION, "close"),
        _ => {}
    }
    if let Some(run_blocking) = problem.retry_after {
        // Whole seconds, rounded up.
        insert(headers, header::RETRY_AFTER, &run_blocking.as_secs_f64().ceil().max(1.0).to_string());
    }
    response
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
