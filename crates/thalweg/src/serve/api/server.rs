//! Connections: accepted, encrypted, limited in number and in time.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use thalweg_capture::privileges::drop_thread_capabilities;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::places::Places;
use super::service::{self, Shop};
use super::stall::StallLimit;
use super::{Api, WAITING_THREADS, events};
use crate::serve::access::{Access, AccessOptions, Allowance, Handshake, Policy};
use crate::serve::daemon::Daemon;
use crate::serve::hub::BellError;
use crate::serve::log::Log;

/// Bytes that may wait to be sent on a connection, and those of a request's head: a thousand subscribers that do not
/// read keep 64 MB at most.
const BUFFER: usize = 64 << 10;

/// How long to leave it when no connection can be accepted, for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long requests that are being answered may take when the daemon stops.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// The API, listening. Stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    api: Api,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
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
    Bell(#[from] BellError),
    /// There is no thread for it.
    #[error("cannot start the thread of the API: {0}")]
    Thread(std::io::Error),
}

impl Server {
    /// Listens, and answers from now on.
    ///
    /// # Errors
    /// If it cannot listen there.
    pub fn start(
        daemon: Daemon,
        access: Arc<Access>,
        options: &AccessOptions,
        log: Option<Log>,
    ) -> Result<Server, ApiError> {
        let refused = |source| ApiError::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let bell = daemon.hub().listen()?;
        let api = Api::new(daemon, access, options.limits, log);
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(WAITING_THREADS)
            .thread_name("api-waits")
            .build()
            .map_err(ApiError::Thread)?;
        let (stop, stopped) = watch::channel(());
        let serving = api.clone();
        let thread = std::thread::Builder::new().name("api".into()).spawn(move || {
            // What strangers send is read here and on the threads that begin here: capturing is for others.
            if let Err(error) = drop_thread_capabilities() {
                tracing::warn!(%error, "the API keeps the capabilities of the daemon");
            }
            if let Err(error) = runtime.block_on(serve(serving, listener, bell, stopped)) {
                tracing::error!(%error, "the API has stopped");
            }
            runtime.shutdown_timeout(LAST_ANSWERS);
        });
        Ok(Server { address, api, stop: Some(stop), thread: Some(thread.map_err(ApiError::Thread)?) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it answers from.
    pub fn api(&self) -> &Api {
        &self.api
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic of that thread has been shown by then.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What all connections share.
struct Shared {
    api: Api,
    allowance: Mutex<Allowance>,
    news: Arc<watch::Sender<u64>>,
    start: Instant,
}

/// Accepts connections until `stopped`'s other end is dropped.
async fn serve(
    api: Api,
    listener: TcpListener,
    bell: std::os::unix::net::UnixStream,
    mut stopped: watch::Receiver<()>,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let news = Arc::new(watch::Sender::new(0));
    tokio::spawn(events::pump(api.clone(), tokio::net::UnixStream::from_std(bell)?, Arc::clone(&news)));
    let places = Places::new(api.limits().connections);
    let allowance = Mutex::new(Allowance::new(api.limits()));
    let shared = Arc::new(Shared { api, allowance, news, start: Instant::now() });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return Ok(()),
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(place) = places.take(peer.ip()) else {
            shared.api.counters().connections_refused.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            shared.api.counters().connections.fetch_add(1, Ordering::Relaxed);
            connect(&shared, stream, peer).await;
            shared.api.counters().connections.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }
}

/// One connection, from its first byte to its last.
async fn connect(shared: &Shared, stream: TcpStream, peer: SocketAddr) {
    // Events are small and wanted at once.
    let _ = stream.set_nodelay(true);
    let stream = StallLimit::new(stream, shared.api.limits().request_timeout);
    let policy = shared.api.access().policy();
    let Some(tls) = &policy.tls else {
        return converse(shared, stream, peer, policy, None).await;
    };
    let handshake = TlsAcceptor::from(Arc::clone(&tls.config)).accept(stream);
    match tokio::time::timeout(shared.api.limits().header_timeout, handshake).await {
        Ok(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
            let handshake = Some(Arc::new(Handshake { certificates }));
            converse(shared, stream, peer, policy, handshake).await;
        }
        Ok(Err(error)) => {
            shared.api.counters().handshakes_failed.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%peer, %error, "TLS handshake failed");
        }
        Err(_) => {
            shared.api.counters().handshakes_failed.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%peer, "TLS handshake took too long");
        }
    }
}

async fn converse(
    shared: &Shared,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: SocketAddr,
    admitted: Arc<Policy>,
    handshake: Option<Arc<Handshake>>,
) {
    let shop = Shop {
        api: &shared.api,
        allowance: &shared.allowance,
        news: &shared.news,
        start: shared.start,
        peer: peer.ip(),
        admitted,
        handshake,
    };
    let answer = service_fn(|request| async { Ok::<_, Infallible>(service::answer(&shop, request).await) });
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.api.limits().header_timeout)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = conversation
        && !error.is_incomplete_message()
    {
        shared.api.counters().connections_broken.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(%peer, %error, "connection ended");
    }
}
