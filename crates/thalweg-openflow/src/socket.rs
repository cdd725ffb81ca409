//! A TCP connection, with or without TLS, read by one thread and written by others concurrently.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::Connection as TlsConnection;
use thalweg_wire::Nanos;

/// Maximum time that a read blocks, so that its thread can do other work.
const TICK: Duration = Duration::from_millis(50);

/// Bytes per read.
const CHUNK: usize = 16 << 10;

/// Locks a mutex, ignoring poisoning: the protected state is consistent after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Both directions of a connection.
pub(crate) struct SwitchSocket {
    stream: TcpStream,
    /// Never held while a read blocks.
    tls: Option<Mutex<TlsConnection>>,
}

impl SwitchSocket {
    pub(crate) fn new(
        stream: TcpStream,
        tls: Option<TlsConnection>,
        write_timeout: Nanos,
    ) -> io::Result<SwitchSocket> {
        // A batch is one write. With Nagle's algorithm it would wait up to 40 ms for the answer to the one before.
        stream.set_nodelay(true)?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(Duration::from(write_timeout).max(Duration::from_millis(1))))?;
        let socket = SwitchSocket { stream, tls: tls.map(Mutex::new) };
        if let Some(tls) = &socket.tls {
            socket.flush(&mut lock(tls))?;
        }
        Ok(socket)
    }

    /// Appends received bytes to `inbox`. Returns their number, `None` if nothing arrived within a tick, or zero at
    /// the end of the stream.
    pub(crate) fn read(&self, inbox: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let mut chunk = [0; CHUNK];
        let length = match (&self.stream).read(&mut chunk) {
            Ok(length) => length,
            Err(error) if is_read_timeout(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let read = &chunk[..length];
        match &self.tls {
            None => inbox.extend_from_slice(read),
            Some(tls) if length > 0 => return self.decrypt(&mut lock(tls), read, inbox),
            Some(_) => {}
        }
        Ok(Some(length))
    }

    fn decrypt(
        &self,
        tls: &mut TlsConnection,
        mut read: &[u8],
        inbox: &mut Vec<u8>,
    ) -> io::Result<Option<usize>> {
        let before = inbox.len();
        let mut has_closed = false;
        // Bytes after the end of the encrypted stream are ignored.
        while !read.is_empty() && tls.read_tls(&mut read)? > 0 {
            let processed = tls.process_new_packets();
            // Sends an alert with the reason before the connection ends.
            self.flush(tls)?;
            let state = processed.map_err(io::Error::other)?;
            let waiting = state.plaintext_bytes_to_read();
            let start = inbox.len();
            inbox.resize(start + waiting, 0);
            tls.reader().read_exact(&mut inbox[start..])?;
            has_closed = state.peer_has_closed();
        }
        let length = inbox.len() - before;
        Ok((length > 0 || has_closed).then_some(length))
    }

    /// Writes all bytes, at once if the kernel has room.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &self.tls else { return (&self.stream).write_all(bytes) };
        let tls = &mut lock(tls);
        let mut left = bytes;
        while !left.is_empty() {
            // The TLS buffer takes as much as fits.
            let taken = tls.writer().write(left)?;
            if taken == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left = &left[taken..];
            self.flush(tls)?;
        }
        Ok(())
    }

    fn flush(&self, tls: &mut TlsConnection) -> io::Result<()> {
        while tls.wants_write() {
            tls.write_tls(&mut &self.stream)?;
        }
        Ok(())
    }

    /// Closes both directions; a blocked read returns at once.
    pub(crate) fn shut_down(&self) {
        if let Some(tls) = &self.tls {
            let tls = &mut lock(tls);
            tls.send_close_notify();
            let _ = self.flush(tls);
        }
        // The connection may have ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Returns whether a read timed out.
fn is_read_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
