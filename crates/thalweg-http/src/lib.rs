//! An HTTP server for a few known routes, on one thread.
//!
//! ```text
//!   connection ──► gate ──────────────────► router ──► inputs ──► handler ──► output
//!                  (allowance, policy,      (axum)     path, query,  on a thread
//!                   host)                              body          that may wait
//! ```
//!
//! Routes are added in one way only, [`route::Routes::add`], which demands who may use a route and what documents it. So
//! no route is unprotected or undocumented, and one table says what there is. Parameters, bodies and answers are
//! described by the types that read and write them.
//!
//! **Bounded**: connections and requests a second, together and by peer, the size of a body, and the time of everything,
//! of sending too. What is over a bound is refused with a status that says so, and counted.
//!
//! | file | what it has |
//! |---|---|
//! | `server` | connections: accepted, encrypted, limited |
//! | `connection_limits`, `write_timeout` | how many connections; peers that do not read |
//! | `gate` | checks of a request, and its answer |
//! | `admission` | whether who reads a stream would still be let in |
//! | `route` | the routes |
//! | `endpoint` | what answers one, and documents it |
//! | `handler` | functions that answer |
//! | `request` | a request, read and within its limits |
//! | `input`, `parameters` | what handlers take: parameters, bodies, headers |
//! | `output`, `reply` | what they give |
//! | `counts` | what was answered and refused |
//! | [`access`] | who may ask, and how much: tokens, TLS, hosts, limits |

pub mod access;
mod admission;
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
pub use server::{Server, ServerError};
