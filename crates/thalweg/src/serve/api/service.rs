//! One request: checked from the cheapest test to the dearest, then answered.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http_body_util::channel::Channel;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use thalweg_api::problem::{Code, MEDIA_TYPE, Problem};
use tokio::sync::watch;

use super::reply::Reply;
use super::request::Request;
use super::route::{self, EVENT_STREAM, Method, NoRoute, Route};
use super::{Api, events};
use crate::serve::access::{Allowance, Denied, Handshake, Policy, Scope, is_own_page};

/// Pieces of text that may wait for a subscriber's connection.
const PIECES: usize = 4;

/// What is sent.
pub(super) type Body = Either<Full<Bytes>, Channel<Bytes, Infallible>>;

/// What answering takes.
pub(super) struct Shop<'a> {
    pub(super) api: &'a Api,
    pub(super) allowance: &'a Mutex<Allowance>,
    pub(super) news: &'a Arc<watch::Sender<u64>>,
    /// What times of [`Allowance`] are since.
    pub(super) start: Instant,
    /// Who asks.
    pub(super) peer: IpAddr,
    /// What was demanded when the connection began.
    pub(super) admitted: Arc<Policy>,
    /// What was shown then, if it is encrypted.
    pub(super) handshake: Option<Arc<Handshake>>,
}

impl Shop<'_> {
    /// Whether the connection would be let in now, if something else is demanded than when it began.
    fn check_admission(&self, policy: &Arc<Policy>) -> Result<(), Denied> {
        match Arc::ptr_eq(policy, &self.admitted) {
            true => Ok(()),
            false => policy.check_handshake(self.handshake.as_deref()),
        }
    }
}

/// The answer, whatever it is.
pub(super) async fn answer(shop: &Shop<'_>, request: hyper::Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    // One policy for the whole of a request, whatever is reloaded meanwhile.
    let policy = shop.api.access().policy();
    let authorization = request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes().to_vec());
    let admission = shop.check_admission(&policy);
    let reply = reply(shop, &policy, admission, request).await;
    let counters = shop.api.counters();
    match &reply {
        Ok(_) => _ = counters.answered.fetch_add(1, Ordering::Relaxed),
        Err(problem) => counters.count_problem(problem.code),
    }
    let mut response = match reply {
        Ok(Reply::Whole { status, media_type, body }) => whole(status, media_type, body),
        Ok(Reply::Events(subscription)) => {
            let (sender, body) = Channel::new(PIECES);
            let handshake = shop.handshake.clone();
            let admission = events::Admission { policy: Arc::clone(&policy), authorization, handshake };
            let news = shop.news.subscribe();
            tokio::spawn(events::stream(shop.api.clone(), *subscription, admission, news, sender));
            let mut response = Response::new(Either::Right(body));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
            response
        }
        Err(problem) => refusal(&problem, &path),
    };
    let headers = response.headers_mut();
    // What is measured is out of date at once; and nothing here is to be guessed to be a web page.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if admission.is_err() || !policy.is_current(shop.handshake.as_deref()) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn whole(status: u16, media_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(body)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn refusal(problem: &Problem, path: &str) -> Response<Body> {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let mut response = whole(problem.status, MEDIA_TYPE, body.into());
    let headers = response.headers_mut();
    let mut insert = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    match problem.code {
        // RFC 6750, section 3.
        Code::Unauthorised => insert(header::WWW_AUTHENTICATE, "Bearer realm=\"thalweg\"".to_owned()),
        Code::MethodNotAllowed => {
            let methods: Vec<_> = route::methods(path).iter().map(Method::to_string).collect();
            insert(header::ALLOW, methods.join(", "));
        }
        // What of the body has not been read would be taken for the next request.
        Code::TooLarge | Code::SlowRequest => insert(header::CONNECTION, "close".to_owned()),
        _ => {}
    }
    if let Some(wait) = problem.retry_after {
        // Whole seconds, and not too early.
        insert(header::RETRY_AFTER, wait.as_secs_f64().ceil().max(1.0).to_string());
    }
    response
}

async fn reply(
    shop: &Shop<'_>,
    policy: &Policy,
    admission: Result<(), Denied>,
    request: hyper::Request<Incoming>,
) -> Result<Reply, Problem> {
    check_allowance(shop)?;
    admission?;
    let host = check_host(policy, &request)?;
    let (route, segments) = find(&request)?;
    check_access(policy, route, &host, request.headers())?;
    let question = Request::new(route, segments, request.uri().query())?;
    let question = read(shop, route, question, request).await?;
    handle(shop, route, question).await
}

fn check_allowance(shop: &Shop<'_>) -> Result<(), Problem> {
    let mut allowance = shop.allowance.lock().unwrap_or_else(PoisonError::into_inner);
    allowance.take(shop.peer, shop.start.elapsed()).map_err(|wait| {
        Problem::new(Code::TooManyRequests, "more requests than one peer may make (api.requests_per_second)")
            .retry_after(wait)
    })
}

/// The host that the request is for.
fn check_host(policy: &Policy, request: &hyper::Request<Incoming>) -> Result<String, Problem> {
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

fn find(request: &hyper::Request<Incoming>) -> Result<(&'static Route, Vec<String>), Problem> {
    let method = match *request.method() {
        hyper::Method::GET | hyper::Method::HEAD => Some(Method::Get),
        hyper::Method::POST => Some(Method::Post),
        hyper::Method::PUT => Some(Method::Put),
        hyper::Method::DELETE => Some(Method::Delete),
        _ => None,
    };
    let path = request.uri().path();
    let found = match method {
        Some(method) => route::find(method, path),
        None if route::methods(path).is_empty() => Err(NoRoute::Path),
        None => Err(NoRoute::Method),
    };
    found.map_err(|error| match error {
        NoRoute::Path => Problem::new(Code::NotFound, "nothing is at this path; see /v1/openapi.json"),
        NoRoute::Method => Problem::new(Code::MethodNotAllowed, "this path is not for this method"),
    })
}

fn check_access(policy: &Policy, route: &Route, host: &str, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(scope) = route.scope else { return Ok(()) };
    let authorization = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    policy.permit(authorization, scope)?;
    match text(headers, header::ORIGIN) {
        Some(origin) if scope == Scope::Write && !is_own_page(origin, host) => {
            Err(Problem::new(Code::Forbidden, "another site's page may not change anything here"))
        }
        _ => Ok(()),
    }
}

/// The rest of the question: headers and body.
async fn read(
    shop: &Shop<'_>,
    route: &Route,
    mut question: Request,
    request: hyper::Request<Incoming>,
) -> Result<Request, Problem> {
    let headers = request.headers();
    let content_type = text(headers, header::CONTENT_TYPE).and_then(|value| value.split(';').next());
    question.content_type = content_type.map(|value| value.trim().to_ascii_lowercase());
    question.accept = text(headers, header::ACCEPT).map(str::to_owned);
    question.last_event_id = text(headers, HeaderName::from_static("last-event-id")).map(str::to_owned);
    let limits = shop.api.limits();
    let most = limits.body_bytes;
    let too_large =
        || Problem::new(Code::TooLarge, format!("the body has more than {most} bytes (api.max_body)"));
    let body = request.into_body();
    if body.size_hint().lower() > most {
        return Err(too_large());
    }
    if route.body.is_empty() {
        return Ok(question);
    }
    let limit = usize::try_from(most).unwrap_or(usize::MAX);
    let whole = tokio::time::timeout(limits.request_timeout, Limited::new(body, limit).collect()).await;
    question.body = match whole {
        Err(_) => return Err(Problem::new(Code::SlowRequest, "the body took too long to come")),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
        Ok(Err(error)) => return Err(Problem::new(Code::BadBody, format!("the body did not come: {error}"))),
        Ok(Ok(body)) => body.to_bytes(),
    };
    Ok(question)
}

/// Waits for the handler: one that waits for collectors does so on a thread of its own, as soon as there is one. That
/// thread is taken until the handler returns, even if nobody waits for the answer any more.
async fn handle(shop: &Shop<'_>, route: &'static Route, question: Request) -> Result<Reply, Problem> {
    let api = shop.api.clone();
    if !route.waits {
        return (route.handler)(&api, &question);
    }
    let working = async {
        let pass = api.waiting_pass().await;
        let api = api.clone();
        tokio::task::spawn_blocking(move || {
            let _pass = pass;
            (route.handler)(&api, &question)
        })
        .await
    };
    match tokio::time::timeout(shop.api.limits().request_timeout, working).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => {
            tracing::error!(path = route.path, %error, "a request was not answered");
            Err(Problem::new(Code::Internal, "a fault of this program; the log has more"))
        }
        Err(_) => Err(Problem::new(Code::Unavailable, "nobody answered in time (api.request_timeout)")),
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
