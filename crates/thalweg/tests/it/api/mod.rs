//! The HTTP API of the daemon, with real clients and sockets.

mod answers;
mod bench_collector;
mod client;
mod daemon;
mod events;
mod fixture;
mod limits;
mod live;
mod open_api;
mod schema;
mod tls;
mod tokens;
mod top;
