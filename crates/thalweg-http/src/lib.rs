//! A small HTTP server: documented routes, access control and limits. One thread serves all connections.
//!
//! ```text
//!   connection ──► gate ──────────────────► router ──► inputs ──► handler ──► output
//!                  (rate limit, policy,     (axum)     path, query,  on a thread
//!                   host)                              body          that may block
//! ```
//!
//! [`route::Routes::add`] requires the scope and the documentation of a route, so no route is unprotected or undocumented. Only files of
//! the program itself ([`asset`]) need neither.
//! Parameters, bodies and answers are documented by the types that read and write them.
//!
//! **Limits**: connections in total and per peer, requests per second and peer, body size, and the duration of every step, sending
//! included. A request beyond a limit is refused with a specific status, and counted.
//!
//! | file | contents |
//! |---|---|
//! | `server` | accepts, encrypts and limits connections |
//! | `connection_limits`, `write_timeout` | number of connections; peers that do not read |
//! | `gate` | checks a request and answers it |
//! | `admission` | access of a running stream |
//! | `route` | routes |
//! | `endpoint` | the handler of a route and its documentation |
//! | `handler` | handlers |
//! | `request` | reads a request within its limits |
//! | `input`, `parameters` | inputs of handlers: parameters, bodies, headers |
//! | `output`, `reply` | outputs of handlers |
//! | [`asset`] | files of a page |
//! | `counts` | counters |
//! | [`access`] | access control: tokens, TLS, hosts, rate limit |

pub mod access;
mod admission;
pub mod asset;
mod connection_limits;
mod counts;
mod endpoint;
mod gate;
pub mod handler;
pub mod input;
pub mod output;
pub mod parameters;
pub mod reply;
pub mod request;
pub mod route;
mod server;
mod write_timeout;

pub use admission::Admission;
pub use counts::{Counters, Counts};
pub use gate::Gate;
pub use server::{Listener, Server, ServerError};
