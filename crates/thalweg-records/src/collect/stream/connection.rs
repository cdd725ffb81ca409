//! One TCP or TLS connection: reads messages until it ends.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use thalweg_wire::{Nanos, Timestamp};

use super::StreamLimits;
use super::framing::Framing;
use crate::collect::intake::Intake;
use crate::collect::receiver::{READ_TIMEOUT, is_timeout};

/// Maximum number of bytes read after a stop request: about a kernel buffer, and a limit while an exporter keeps
/// sending.
const LAST_BYTES: usize = 16 << 20;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The exporter closed it after a complete message.
    Closed,
    /// It was closed or broke inside a message.
    CutShort,
    /// It broke between messages.
    Broken,
    /// Malformed data; RFC 7011 requires to close the connection.
    Malformed,
    /// No complete message arrived within the timeout.
    Idle,
    /// A message was not complete in time.
    Unfinished,
    /// It had sent no message, and made room for another connection.
    Evicted,
    /// The TLS handshake failed or timed out.
    Handshake,
    /// The collector was stopped.
    Stopped,
}

impl End {
    /// All reasons, in order.
    pub const ALL: [End; 9] = [
        End::Closed,
        End::CutShort,
        End::Broken,
        End::Malformed,
        End::Idle,
        End::Unfinished,
        End::Evicted,
        End::Handshake,
        End::Stopped,
    ];

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            End::Closed => "closed",
            End::CutShort => "cut_short",
            End::Broken => "broken",
            End::Malformed => "malformed",
            End::Idle => "idle",
            End::Unfinished => "unfinished",
            End::Evicted => "evicted",
            End::Handshake => "handshake",
            End::Stopped => "stopped",
        }
    }
}

/// What a connection and its listener tell each other.
#[derive(Debug, Default)]
pub(super) struct ConnectionState {
    /// The connection has sent a complete message.
    pub(super) has_sent: AtomicBool,
    /// The listener needs its place.
    pub(super) is_evicted: AtomicBool,
}

/// The context of a connection.
pub(super) struct Connection<'a> {
    pub(super) from: SocketAddr,
    pub(super) limits: StreamLimits,
    pub(super) state: &'a ConnectionState,
    pub(super) clock: fn() -> Timestamp,
    pub(super) stop: &'a AtomicBool,
}

impl Connection<'_> {
    /// Reads until the connection ends, and returns the reason.
    pub(super) fn run(&self, stream: TcpStream, tls: Option<Arc<ServerConfig>>, intake: &mut Intake) -> End {
        let is_ready = stream.set_nonblocking(false).is_ok()
            && stream.set_read_timeout(Some(READ_TIMEOUT)).is_ok()
            && stream.set_write_timeout(Some(READ_TIMEOUT)).is_ok();
        match tls {
            _ if !is_ready => End::Broken,
            None => self.read(stream, intake),
            Some(config) => match self.handshake(stream, config) {
                Some(stream) => self.read(stream, intake),
                None if self.is_evicted() => End::Evicted,
                None => End::Handshake,
            },
        }
    }

    fn handshake(
        &self,
        mut stream: TcpStream,
        config: Arc<ServerConfig>,
    ) -> Option<StreamOwned<ServerConnection, TcpStream>> {
        let mut session = ServerConnection::new(config).ok()?;
        let started = (self.clock)();
        while session.is_handshaking() {
            match session.complete_io(&mut stream) {
                Ok(_) => {}
                Err(error) if is_timeout(&error) => {}
                Err(_) => return None,
            }
            if self.stop.load(Ordering::Relaxed)
                || self.is_evicted()
                || has_elapsed(started, self.limits.handshake_timeout, (self.clock)())
            {
                return None;
            }
        }
        Some(StreamOwned::new(session, stream))
    }

    fn is_evicted(&self) -> bool {
        self.state.is_evicted.load(Ordering::Relaxed)
    }

    fn read(&self, mut stream: impl Read, intake: &mut Intake) -> End {
        let mut framing = Framing::default();
        let mut last_message = (self.clock)();
        let mut message_began = None;
        let mut last_bytes = 0;
        loop {
            let stopping = self.stop.load(Ordering::Relaxed);
            let received = framing.receive(&mut stream);
            let now = (self.clock)();
            match received {
                Ok(0) if framing.is_inside_message() => return End::CutShort,
                Ok(0) => return End::Closed,
                Ok(count) if stopping => last_bytes += count,
                Ok(_) => {}
                Err(error) if is_timeout(&error) => {
                    if stopping {
                        return End::Stopped;
                    }
                }
                Err(_) if framing.is_inside_message() => return End::CutShort,
                Err(_) => return End::Broken,
            }
            loop {
                match framing.next() {
                    Ok(Some(message)) => {
                        last_message = now;
                        message_began = None;
                        self.state.has_sent.store(true, Ordering::Relaxed);
                        if intake.message(self.from, now, message).is_err() {
                            return End::Malformed;
                        }
                    }
                    Ok(None) => break,
                    Err(_) => return End::Malformed,
                }
            }
            intake.flush(now);
            intake.tick(now);
            if last_bytes > LAST_BYTES {
                return End::Stopped;
            }
            if has_elapsed(last_message, self.limits.idle_timeout, now) {
                return End::Idle;
            }
            if framing.is_inside_message()
                && has_elapsed(*message_began.get_or_insert(now), self.limits.message_timeout, now)
            {
                return End::Unfinished;
            }
            if self.is_evicted() {
                return End::Evicted;
            }
        }
    }
}

/// Returns whether more than `span` has passed since `then`; false if the clock was set back.
fn has_elapsed(then: Timestamp, span: Nanos, now: Timestamp) -> bool {
    now > then && now.since(then) > span
}
