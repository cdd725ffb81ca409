//! The thread that listens for events, and goes on where it was after the connection was lost.

use std::io::Read;
use std::time::Duration;

use crossbeam_channel::{SendError, Sender};

use super::client::{Client, RequestError};
use super::model::{Loss, News};
use super::poll::Backoff;
use super::server_sent::{Decoder, Frame};
use crate::serve::api::json::{Event, Lost};

/// Bytes read at once.
const PIECE: usize = 64 << 10;

/// Listens until nobody wants to know any more.
pub(super) fn listen(client: &Client, news: &Sender<News>) {
    let mut decoder = Decoder::default();
    let mut backoff = Backoff::default();
    loop {
        let ended = match client.events(decoder.last_id()) {
            Ok(stream) => {
                backoff = Backoff::default();
                decoder.reconnect();
                if news.send(News::Subscribed).is_err() {
                    return;
                }
                match take(stream, &mut decoder, news) {
                    Ok(ended) => RequestError::Unreachable(ended),
                    Err(_) => return,
                }
            }
            Err(error) => error,
        };
        let retry_in = backoff.next(&ended);
        if news.send(News::Unsubscribed { error: ended.to_string(), retry_in }).is_err() {
            return;
        }
        std::thread::sleep(retry_in.min(Duration::from_secs(60)));
    }
}

/// Tells of events until the stream ends, and why it did.
///
/// # Errors
/// If nobody listens any more.
pub(super) fn take(
    mut stream: impl Read,
    decoder: &mut Decoder,
    news: &Sender<News>,
) -> Result<String, SendError<News>> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = match stream.read(&mut piece) {
            Ok(0) => return Ok("the daemon has closed the connection".to_owned()),
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Ok(error.to_string()),
        };
        let mut told = Ok(());
        decoder.read(&piece[..length], |frame, _| {
            if told.is_ok() {
                told = news.send(understood(&frame));
            }
        });
        told?;
    }
}

/// An event as news; one that is not understood is counted as lost.
fn understood(frame: &Frame) -> News {
    let not_understood = |_| News::Lost(Loss::NotUnderstood(1));
    match frame.event.as_str() {
        _ if frame.is_cut => News::Lost(Loss::NotUnderstood(1)),
        "lost" => serde_json::from_str::<Lost>(&frame.data)
            .map_or_else(not_understood, |lost| News::Lost(lost.count.map_or(Loss::OtherRun, Loss::TooSlow))),
        _ => serde_json::from_str::<Event>(&frame.data)
            .map_or_else(not_understood, |event| News::Event(Box::new(event))),
    }
}
