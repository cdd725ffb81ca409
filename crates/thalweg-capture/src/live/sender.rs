//! Sends frames out of an interface unchanged.
//!
//! A frame enters the queue of the interface like any other; the interface may pad short ones. Needs CAP_NET_RAW
//! while opening and nothing afterwards.

use std::io;

use super::error::LiveError;
use super::interface;
use super::socket::PacketSocket;

/// Sends frames out of one interface.
#[derive(Debug)]
pub struct FrameSender {
    socket: PacketSocket,
}

impl FrameSender {
    /// Opens an interface of the calling thread's network namespace. The sender stays there, even if another thread
    /// uses it.
    ///
    /// # Errors
    /// See [`LiveError`].
    pub fn open(interface: &str) -> Result<FrameSender, LiveError> {
        let socket = PacketSocket::open().map_err(|source| LiveError::from_open(interface, source))?;
        let index = interface::index_of(&socket, interface)?;
        socket.bind_to_watch(index).map_err(|source| LiveError::Kernel {
            interface: interface.to_owned(),
            step: "bind to the interface",
            source,
        })?;
        Ok(FrameSender { socket })
    }

    /// Sends a frame, from its destination address on and without frame check sequence.
    ///
    /// # Errors
    /// The system error: the frame is too long, the interface is down or gone, or its queue is full.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame)
    }
}
