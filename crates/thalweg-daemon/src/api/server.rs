//! The listening API.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use super::{Api, events, routes};
use crate::dashboard::ASSETS;
use crate::hub::WakeupError;
use crate::log::Log;
use crate::parts::Parts;
use thalweg_http::access::{Access, AccessOptions};
use thalweg_http::{Listener, ServerError};

/// Number and length of the waits for an address that is in use: one second in total.
const WAITS: (u32, Duration) = (50, Duration::from_millis(20));

/// The listening API. Dropping it stops the API.
#[derive(Debug)]
pub struct Server {
    server: thalweg_http::Server,
    api: Api,
}

/// Why the API cannot listen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The address cannot be bound.
    #[error("cannot listen on {address} (api.listen): {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The hub has a receiver of wakeups already.
    #[error(transparent)]
    Wakeup(#[from] WakeupError),
    /// The thread cannot be started.
    #[error("cannot start the API thread: {0}")]
    Thread(std::io::Error),
}

impl From<ServerError> for ApiError {
    fn from(error: ServerError) -> ApiError {
        match error {
            ServerError::Listen { address, source } => ApiError::Listen { address, source },
            ServerError::Thread(error) => ApiError::Thread(error),
        }
    }
}

impl Server {
    /// Binds the listen address. Waits for a moment if it is in use: a daemon that was killed may not have ended yet.
    ///
    /// # Errors
    /// If it cannot be bound.
    pub fn bind(options: &AccessOptions) -> Result<Listener, ApiError> {
        let is_in_use = |error: &ServerError| matches!(error, ServerError::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse);
        let (waits, pause) = WAITS;
        for _ in 0..waits {
            match Listener::bind(options.listen) {
                Err(error) if is_in_use(&error) => std::thread::sleep(pause),
                bound => return Ok(bound?),
            }
        }
        Ok(Listener::bind(options.listen)?)
    }

    /// Starts to answer requests, and to serve the dashboard if `has_dashboard`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        listener: Listener,
        parts: Parts,
        access: Arc<Access>,
        options: &AccessOptions,
        has_dashboard: bool,
        log: Option<Log>,
    ) -> Result<Server, ApiError> {
        let api = Api::new(parts, &options.limits, log);
        let (counters, notifier) = (Arc::clone(api.counters()), api.clone());
        let wakeups = api.parts().hub.wakeup_receiver()?;
        let notify = move || {
            tokio::spawn(events::notify_subscribers(notifier, tokio::net::UnixStream::from_std(wakeups)?));
            Ok(())
        };
        let limits = options.limits;
        let assets = if has_dashboard { ASSETS } else { &[] };
        let server = thalweg_http::Server::start(
            listener,
            routes::routes().add_assets(assets),
            api.clone(),
            access,
            limits,
            counters,
            notify,
        )?;
        Ok(Server { server, api })
    }

    /// Returns the listen address.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the state of the API.
    pub fn api(&self) -> &Api {
        &self.api
    }
}
