//! The server: accepts connections, encrypts them, and limits their number and duration.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use thalweg_linux::privileges::drop_thread_capabilities;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::Counters;
use super::connection_limits::{ConnectionLimits, ConnectionPermit};
use super::gate::{Caller, Gate};
use super::route::Routes;
use super::write_timeout::WriteTimeout;
use crate::access::{Access, Handshake, Limits, Policy};

/// Maximum number of threads for handlers that block.
const BLOCKING_THREADS: usize = 8;

/// Maximum size of a connection's write buffer, and of a request header. A thousand subscribers that do not read occupy at most
/// 64 MB.
const MAX_BUFFER: usize = 64 << 10;

/// Connections that the kernel completes before they are accepted. If more clients connect at once, theirs take a second.
const BACKLOG: u32 = 1_024;

/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Maximum wait for running requests when the server stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// A bound listen address. Connections wait until a [`Server`] accepts them.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    listener: TcpListener,
    runtime: Runtime,
}

/// A listening server. Dropping it stops the server.
pub struct Server {
    address: SocketAddr,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why a server cannot start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The thread cannot be started.
    #[error("cannot start the server thread: {0}")]
    Thread(std::io::Error),
}

impl Listener {
    /// Binds an address. Starts no thread.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn bind(listen: SocketAddr) -> Result<Listener, ServerError> {
        let listen_error = |source| ServerError::Listen { address: listen, source };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("api-worker")
            .build()
            .map_err(ServerError::Thread)?;
        let listener = {
            let _context = runtime.enter();
            bind(listen).map_err(listen_error)?
        };
        let address = listener.local_addr().map_err(listen_error)?;
        Ok(Listener { address, listener, runtime })
    }
}

impl Server {
    /// Starts to accept connections. `begin` runs first, on the server's thread, where it can spawn tasks.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start<S: Clone + Send + Sync + 'static>(
        listener: Listener,
        routes: Routes<S>,
        state: S,
        access: Arc<Access>,
        limits: Limits,
        counters: Arc<Counters>,
        begin: impl FnOnce() -> std::io::Result<()> + Send + 'static,
    ) -> Result<Server, ServerError> {
        let Listener { address, listener, runtime } = listener;
        let gate = Gate::new(
            state,
            Arc::clone(&access),
            limits,
            Arc::clone(&counters),
            BLOCKING_THREADS,
            routes.hint(),
        );
        let router = TowerToHyperService::new(routes.into_router(Arc::new(gate)));
        let shared = Arc::new(Shared { router, access, limits, counters });
        let (stop, stopped) = watch::channel(());
        let thread = std::thread::Builder::new().name("api".into()).spawn(move || {
            // This thread and its children parse untrusted input, and do not capture.
            if let Err(error) = drop_thread_capabilities() {
                tracing::warn!(%error, "cannot drop the capabilities of the API thread");
            }
            let serving = async {
                begin()?;
                serve(&shared, listener, stopped).await;
                Ok::<(), std::io::Error>(())
            };
            if let Err(error) = runtime.block_on(serving) {
                tracing::error!(%error, "API stopped");
            }
            runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        });
        Ok(Server { address, stop: Some(stop), thread: Some(thread.map_err(ServerError::Thread)?) })
    }

    /// Returns the listen address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic of the thread has been logged already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The state that all connections share.
struct Shared {
    router: TowerToHyperService<Router>,
    access: Arc<Access>,
    limits: Limits,
    counters: Arc<Counters>,
}

/// Binds the listen address. The context must be that of a runtime.
fn bind(listen: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if listen.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(listen)?;
    socket.listen(BACKLOG)
}

/// Accepts connections until the sender of `stopped` is dropped.
async fn serve(shared: &Arc<Shared>, listener: TcpListener, mut stopped: watch::Receiver<()>) {
    let connection_limits = ConnectionLimits::new(shared.limits.connections);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                recover(shared, &connection_limits, &error).await;
                continue;
            }
        };
        let Some(permit) = connection_limits.acquire(peer.ip()) else {
            shared.counters.connections_refused.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        if permit.has_evicted() {
            shared.counters.connections_evicted.fetch_add(1, Ordering::Relaxed);
        }
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            shared.counters.connections.fetch_add(1, Ordering::Relaxed);
            tokio::select! {
                () = serve_connection(&shared, stream, peer, &permit) => {}
                () = permit.evicted() => tracing::debug!(%peer, "waiting connection closed for a new one"),
            }
            shared.counters.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Prepares for the next accept after a failed one. If file descriptors ran out, a waiting connection is closed.
async fn recover(shared: &Shared, connection_limits: &ConnectionLimits, error: &std::io::Error) {
    if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) && connection_limits.evict() {
        shared.counters.connections_evicted.fetch_add(1, Ordering::Relaxed);
        // Its task closes it.
        return tokio::task::yield_now().await;
    }
    tracing::warn!(%error, "cannot accept a connection");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

/// Serves one connection until it ends.
async fn serve_connection(
    shared: &Shared,
    stream: TcpStream,
    peer: SocketAddr,
    permit: &Arc<ConnectionPermit>,
) {
    // Events are small and urgent.
    let _ = stream.set_nodelay(true);
    let stream = WriteTimeout::new(stream, shared.limits.request_timeout);
    let policy = shared.access.policy();
    let Some(tls) = &policy.tls else {
        return serve_http(shared, stream, peer, permit, policy, None).await;
    };
    let handshake = TlsAcceptor::from(Arc::clone(&tls.config)).accept(stream);
    match tokio::time::timeout(shared.limits.header_timeout, handshake).await {
        Ok(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
            let handshake = Some(Arc::new(Handshake { certificates }));
            serve_http(shared, stream, peer, permit, policy, handshake).await;
        }
        Ok(Err(error)) => {
            shared.counters.handshakes_failed.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%peer, %error, "TLS handshake failed");
        }
        Err(_) => {
            shared.counters.handshakes_failed.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%peer, "TLS handshake timed out");
        }
    }
}

async fn serve_http(
    shared: &Shared,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: SocketAddr,
    permit: &Arc<ConnectionPermit>,
    admitted: Arc<Policy>,
    handshake: Option<Arc<Handshake>>,
) {
    let caller = Caller { peer: peer.ip(), permit: Arc::clone(permit), admitted, handshake };
    let answer = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(caller.clone());
        shared.router.call(request)
    });
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.header_timeout)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = conversation
        && !error.is_incomplete_message()
    {
        shared.counters.connections_broken.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(%peer, %error, "connection ended");
    }
}
