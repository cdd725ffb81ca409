//! The API, listening.

use std::net::SocketAddr;
use std::sync::Arc;

use thiserror::Error;

use super::{Api, events, routes};
use crate::hub::WakeupError;
use crate::log::Log;
use crate::parts::Parts;
use thalweg_http::ServerError;
use thalweg_http::access::{Access, AccessOptions};

/// The API, listening. Stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    server: thalweg_http::Server,
    api: Api,
}

/// Why the API cannot listen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The address cannot be had.
    #[error("cannot listen on {address} (api.listen): {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The hub has a listener already.
    #[error(transparent)]
    Wakeup(#[from] WakeupError),
    /// There is no thread for it.
    #[error("cannot start the thread of the API: {0}")]
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
    /// Listens, and answers from now on.
    ///
    /// # Errors
    /// If it cannot listen there.
    pub fn start(
        parts: Parts,
        access: Arc<Access>,
        options: &AccessOptions,
        log: Option<Log>,
    ) -> Result<Server, ApiError> {
        let api = Api::new(parts, &options.limits, log);
        let (counters, teller) = (Arc::clone(api.counters()), api.clone());
        let bell = api.parts().hub.wakeup_receiver()?;
        let tell = move || {
            tokio::spawn(events::notify_subscribers(teller, tokio::net::UnixStream::from_std(bell)?));
            Ok(())
        };
        let (listen, limits) = (options.listen, options.limits);
        let server = thalweg_http::Server::start(
            listen,
            routes::routes(),
            api.clone(),
            access,
            limits,
            counters,
            tell,
        )?;
        Ok(Server { server, api })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// What it answers from.
    pub fn api(&self) -> &Api {
        &self.api
    }
}
