//! A TCP connection, with or without TLS, that one thread reads and others write at the same time.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::Connection as TlsConnection;
use thalweg_wire::Nanos;

/// Longest that a read waits, so that its thread can see to other things.
const TICK: Duration = Duration::from_millis(50);

/// Bytes taken from the kernel at once.
const CHUNK: usize = 16 << 10;

/// Locks, whatever became of who held the lock before: what is behind these locks is whole after every statement.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Both directions of a connection.
pub(super) struct Link {
    stream: TcpStream,
    /// Never held while waiting for something to read.
    tls: Option<Mutex<TlsConnection>>,
}

impl Link {
    pub(super) fn new(
        stream: TcpStream,
        tls: Option<TlsConnection>,
        write_timeout: Nanos,
    ) -> io::Result<Link> {
        // A batch is one write, which is not to wait for the answer to the one before: 40 ms with Nagle's algorithm.
        stream.set_nodelay(true)?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(Duration::from(write_timeout).max(Duration::from_millis(1))))?;
        let link = Link { stream, tls: tls.map(Mutex::new) };
        if let Some(tls) = &link.tls {
            link.flush(&mut lock(tls))?;
        }
        Ok(link)
    }

    /// Appends what has come to `inbox` and says how much that is, or nothing if nothing came for a tick. Zero is the
    /// end.
    pub(super) fn read(&self, inbox: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let mut chunk = [0; CHUNK];
        let length = match (&self.stream).read(&mut chunk) {
            Ok(length) => length,
            Err(error) if is_patience(&error) => return Ok(None),
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
        // After the end of the encrypted stream nothing more is taken.
        while !read.is_empty() && tls.read_tls(&mut read)? > 0 {
            let processed = tls.process_new_packets();
            // An alert says why, before the connection ends.
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

    /// Writes all of it, in one go if the kernel has room.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &self.tls else { return (&self.stream).write_all(bytes) };
        let tls = &mut lock(tls);
        let mut left = bytes;
        while !left.is_empty() {
            // It takes what its buffer has room for.
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

    /// Ends both directions; who reads finds out at once.
    pub(super) fn shut_down(&self) {
        if let Some(tls) = &self.tls {
            let tls = &mut lock(tls);
            tls.send_close_notify();
            let _ = self.flush(tls);
        }
        // It may be gone already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Whether a read has merely waited long enough.
fn is_patience(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
