//! Frames sent out of an interface as they are.
//!
//! A frame goes into the queue of the interface like any other; nothing is added to it but what the interface pads
//! short ones with. Needs CAP_NET_RAW while opening and nothing afterwards.

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
    /// Opens an interface of the calling thread's network namespace. The sender stays there, whoever uses it after.
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

    /// Sends a frame, from its destination address on and without check sequence.
    ///
    /// # Errors
    /// What the kernel says: that the frame is too long, the interface down or gone, its queue full.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame)
    }
}
