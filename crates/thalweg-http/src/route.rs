//! Routes: requests, their access and their documentation.
//!
//! The only way to add a route to the API is [`Routes::add`]. It requires an [`Operation`] with scope and documentation, and derives
//! parameters, bodies and answers from the types of the handler. Router, OpenAPI document and reference use the same table.

use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter};
use axum::{Router, extract};
use hyper::header::HeaderMap;
use schemars::SchemaGenerator;

use super::asset::Asset;
use super::endpoint::Endpoint;
pub use super::endpoint::{COMMON_ERRORS, Operation};
use super::gate::{self, Gate};
use super::handler::Handler;
use super::input::Content;
use super::output::Output;
use super::parameters::Parameter;

/// A request method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads; changes nothing.
    Get,
    /// Runs an action.
    Post,
    /// Creates or replaces.
    Put,
    /// Removes.
    Delete,
}

/// A route.
#[derive(Debug)]
pub struct Route {
    /// Request method.
    pub method: Method,
    /// Path. Segments in braces are parameters.
    pub path: &'static str,
    /// Access and documentation.
    pub operation: Operation,
    /// Parameters.
    pub parameters: fn(&mut SchemaGenerator) -> Vec<Parameter>,
    /// Alternative request bodies.
    pub bodies: fn(&mut SchemaGenerator) -> Vec<Content>,
    /// Status codes of its answers, the usual one first.
    pub statuses: &'static [u16],
    /// Alternative response bodies.
    pub answers: fn(&mut SchemaGenerator) -> Vec<Content>,
}

/// All routes of a server with state `S`.
pub struct Routes<S> {
    table: Vec<Route>,
    by_path: Vec<(&'static str, MethodRouter<Arc<Gate<S>>>)>,
    assets: Vec<Asset>,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        })
    }
}

impl Method {
    const fn filter(self) -> MethodFilter {
        match self {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Put => MethodFilter::PUT,
            Method::Delete => MethodFilter::DELETE,
        }
    }
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// Creates an empty list of routes.
    pub fn new() -> Routes<S> {
        Routes { table: Vec::new(), by_path: Vec::new(), assets: Vec::new() }
    }

    /// Adds a route.
    #[must_use]
    pub fn add<I, O, H>(
        mut self,
        method: Method,
        path: &'static str,
        operation: Operation,
        handler: H,
    ) -> Routes<S>
    where
        O: Output,
        H: Handler<S, I, O>,
    {
        self.table.push(Route {
            method,
            path,
            operation,
            parameters: H::parameters,
            bodies: H::bodies,
            statuses: O::STATUSES,
            answers: O::contents,
        });
        let endpoint = Arc::new(Endpoint {
            path,
            operation,
            reads_query: H::READS_QUERY,
            reads_body: H::READS_BODY,
            prepare: Box::new(move |request| handler.prepare(request)),
        });
        let answer = move |State(gate): State<Arc<Gate<S>>>, request: extract::Request| {
            let endpoint = Arc::clone(&endpoint);
            async move { gate::answer(&gate, &endpoint, request).await }
        };
        let index = self.by_path.iter().position(|(known, _)| *known == path).unwrap_or_else(|| {
            self.by_path.push((path, MethodRouter::new()));
            self.by_path.len() - 1
        });
        let methods = std::mem::take(&mut self.by_path[index].1);
        self.by_path[index].1 = methods.on(method.filter(), answer);
        self
    }

    /// Adds files of a page, which everybody may read.
    #[must_use]
    pub fn add_assets(mut self, assets: &[Asset]) -> Routes<S> {
        self.assets.extend(assets);
        self
    }

    /// Returns the routes in the order of addition.
    pub fn into_table(self) -> Vec<Route> {
        self.table
    }

    /// Returns where to find the list of paths, for error messages; empty without an OpenAPI document.
    pub(super) fn hint(&self) -> String {
        let document = self.table.iter().find(|route| route.path.ends_with("/openapi.json"));
        document.map_or_else(String::new, |route| format!("; see {}", route.path))
    }

    /// Returns a router behind a gate.
    pub(super) fn into_router(self, gate: Arc<Gate<S>>) -> Router {
        let mut router = Router::new();
        for (path, methods) in self.by_path {
            let here = self.table.iter().filter(|route| route.path == path);
            let allowed: Vec<_> = here.map(|route| route.method.to_string()).collect();
            let allowed = allowed.join(", ");
            let not_allowed = move || std::future::ready(gate::not_allowed(&allowed));
            router = router.route(path, methods.fallback(not_allowed));
        }
        for asset in self.assets {
            let prepared = Arc::new(asset.prepare());
            let answer = move |headers: HeaderMap| std::future::ready(prepared.response(&headers));
            let not_allowed = || std::future::ready(gate::not_allowed("GET"));
            router = router.route(asset.path, MethodRouter::new().get(answer).fallback(not_allowed));
        }
        let here = Arc::clone(&gate);
        let router = router.fallback(move || std::future::ready(gate::not_found(&here)));
        router.layer(from_fn_with_state(Arc::clone(&gate), gate::admit::<S>)).with_state(gate)
    }
}

impl<S: Clone + Send + Sync + 'static> Default for Routes<S> {
    fn default() -> Self {
        Routes::new()
    }
}

impl<S> fmt::Debug for Routes<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.table).finish()
    }
}
