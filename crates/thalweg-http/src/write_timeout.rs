//! A stream whose peer has to take what it is sent.
//!
//! Who asks and never reads the answers would hold a connection, and what waits to be sent on it, for ever. A write that
//! makes no progress for so long ends the connection; who reads slowly, but reads, is waited for.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A stream on which a write fails when nothing at all could be written for `limit`.
pub(super) struct WriteTimeout<S> {
    stream: S,
    limit: Duration,
    /// While a write waits: when it has waited too long.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    /// The same stream, limited.
    pub(super) fn new(stream: S, limit: Duration) -> WriteTimeout<S> {
        WriteTimeout { stream, limit, deadline: None }
    }

    /// What came of a write, unless it has waited too long.
    fn judge(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let limit = self.limit;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.judge(context, written)
    }

    // A body is then written from where it is, and not copied first: what holds memory is what is being sent.
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const LIMIT: Duration = Duration::from_millis(100);

    /// With a pipe of eight bytes.
    fn run(test: impl AsyncFnOnce(WriteTimeout<tokio::io::DuplexStream>, tokio::io::DuplexStream)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (here, there) = tokio::io::duplex(8);
        runtime.block_on(test(WriteTimeout::new(here, LIMIT), there));
    }

    #[test]
    fn a_write_of_which_nothing_is_taken_fails() {
        run(async |mut here, _there| {
            let error = here.write_all(&[0; 9]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn a_peer_that_reads_slowly_is_waited_for_longer_than_the_limit() {
        run(async |mut here, mut there| {
            let slow = async {
                for _ in 0..8 {
                    tokio::time::sleep(LIMIT / 4).await;
                    there.read_exact(&mut [0; 4]).await.unwrap();
                }
            };
            let (written, ()) = tokio::join!(here.write_all(&[0; 40]), slow);
            written.unwrap();
        });
    }
}
