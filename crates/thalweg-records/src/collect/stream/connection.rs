//! One connection: bytes to messages until it ends, for whatever reason.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use thalweg_wire::{Nanos, Timestamp};

use super::StreamLimits;
use super::framing::Framing;
use crate::collect::intake::Intake;
use crate::collect::receiver::{PATIENCE, is_patience};

/// Bytes still read after the end was asked for: what the kernel's buffer may hold, and a bound where an exporter goes
/// on sending.
const LAST_BYTES: usize = 16 << 20;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The exporter closed it after a whole message.
    Closed,
    /// The exporter closed it, or it broke, inside a message.
    CutShort,
    /// It broke between messages.
    Broken,
    /// Something came that is no message, or a message that breaks its format: RFC 7011 has the connection closed then.
    Malformed,
    /// No whole message came for too long.
    Idle,
    /// The TLS handshake failed, or took too long.
    Handshake,
    /// The collector was stopped.
    Stopped,
}

impl End {
    /// All of them, in order.
    pub const ALL: [End; 7] =
        [End::Closed, End::CutShort, End::Broken, End::Malformed, End::Idle, End::Handshake, End::Stopped];

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            End::Closed => "closed",
            End::CutShort => "cut_short",
            End::Broken => "broken",
            End::Malformed => "malformed",
            End::Idle => "idle",
            End::Handshake => "handshake",
            End::Stopped => "stopped",
        }
    }
}

/// What a connection is read with.
pub(super) struct Connection<'a> {
    pub(super) from: SocketAddr,
    pub(super) limits: StreamLimits,
    pub(super) clock: fn() -> Timestamp,
    pub(super) stop: &'a AtomicBool,
}

impl Connection<'_> {
    /// Reads until the end.
    pub(super) fn run(&self, stream: TcpStream, tls: Option<Arc<ServerConfig>>, intake: &mut Intake) -> End {
        let is_ready = stream.set_nonblocking(false).is_ok()
            && stream.set_read_timeout(Some(PATIENCE)).is_ok()
            && stream.set_write_timeout(Some(PATIENCE)).is_ok();
        match tls {
            _ if !is_ready => End::Broken,
            None => self.read(stream, intake),
            Some(config) => match self.shake_hands(stream, config) {
                Some(stream) => self.read(stream, intake),
                None => End::Handshake,
            },
        }
    }

    fn shake_hands(
        &self,
        mut stream: TcpStream,
        config: Arc<ServerConfig>,
    ) -> Option<StreamOwned<ServerConnection, TcpStream>> {
        let mut session = ServerConnection::new(config).ok()?;
        let begun = (self.clock)();
        while session.is_handshaking() {
            match session.complete_io(&mut stream) {
                Ok(_) => {}
                Err(error) if is_patience(&error) => {}
                Err(_) => return None,
            }
            if self.stop.load(Ordering::Relaxed) || is_over(begun, self.limits.handshake, (self.clock)()) {
                return None;
            }
        }
        Some(StreamOwned::new(session, stream))
    }

    fn read(&self, mut stream: impl Read, intake: &mut Intake) -> End {
        let mut framing = Framing::default();
        let mut last_message = (self.clock)();
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
                Err(error) if is_patience(&error) => {
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
                        if intake.message(self.from, now, message).is_err() {
                            return End::Malformed;
                        }
                    }
                    Ok(None) => break,
                    Err(_) => return End::Malformed,
                }
            }
            intake.hand_on(now);
            intake.tick(now);
            if last_bytes > LAST_BYTES {
                return End::Stopped;
            }
            if is_over(last_message, self.limits.idle, now) {
                return End::Idle;
            }
        }
    }
}

/// Whether `span` is over since `then`; not, if the clock was set back.
fn is_over(then: Timestamp, span: Nanos, now: Timestamp) -> bool {
    now > then && now.since(then) > span
}
