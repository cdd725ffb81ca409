//! Viewers of the live stream, each with a connection of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thalweg_linux::priority::run_on;

/// Viewers that read as fast as they can. They end when they are dropped.
pub(super) struct Viewers {
    received: Arc<Received>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What all viewers together received.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) bytes: AtomicU64,
    pub(super) messages: AtomicU64,
}

impl Viewers {
    /// Connects `count` viewers, whose threads run on one processor if it is given.
    pub(super) fn connect(
        address: SocketAddr,
        count: usize,
        processor: Option<usize>,
    ) -> anyhow::Result<Viewers> {
        let (received, is_over) = (Arc::new(Received::default()), Arc::new(AtomicBool::new(false)));
        let mut viewers = Viewers { received, is_over, threads: Vec::with_capacity(count) };
        for _ in 0..count {
            let stream = subscribe(address)?;
            let (received, is_over) = (Arc::clone(&viewers.received), Arc::clone(&viewers.is_over));
            viewers.threads.push(thread::spawn(move || {
                if let Some(processor) = processor {
                    // A viewer on another processor is still one.
                    let _ = run_on(processor);
                }
                read(stream, &received, &is_over);
            }));
        }
        Ok(viewers)
    }

    /// Returns bytes and messages received so far.
    pub(super) fn received(&self) -> [f64; 2] {
        let Received { bytes, messages } = &*self.received;
        [bytes, messages].map(|count| count.load(Ordering::Relaxed) as f64)
    }
}

impl Drop for Viewers {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A viewer that panicked has already said so.
            let _ = thread.join();
        }
    }
}

fn subscribe(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    write!(stream, "GET /v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    Ok(stream)
}

/// Reads the stream; counts bytes, and messages by their ends.
fn read(mut stream: TcpStream, received: &Received, is_over: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while !is_over.load(Ordering::Relaxed) {
        let Ok(length @ 1..) = stream.read(&mut buffer) else { return };
        received.bytes.fetch_add(length as u64, Ordering::Relaxed);
        let ends = buffer[..length].windows(2).filter(|pair| pair == b"\n\n").count();
        received.messages.fetch_add(ends as u64, Ordering::Relaxed);
    }
}
