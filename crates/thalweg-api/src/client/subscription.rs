//! Listening for events, and going on where it was after the connection was lost.

use std::io::Read;
use std::time::Duration;

use super::back_off::BackOff;
use super::server_sent::{Decoder, Frame};
use super::{Client, RequestError};
use crate::{Event, Lost};

/// Bytes read at once.
const PIECE: usize = 64 << 10;

/// What comes of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// Something happened.
    Event(Box<Event>),
    /// Events did not get here.
    Lost(Loss),
    /// Events come from now on.
    Subscribed,
    /// No events come.
    Unsubscribed {
        /// Why.
        error: RequestError,
        /// How long until it is tried again.
        retry_in: Duration,
    },
}

/// Events that did not get here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// As many were overwritten before they could be sent.
    TooSlow(u64),
    /// The daemon was started anew, and what it told before that is gone.
    OtherRun,
    /// As many could not be understood.
    NotUnderstood(u64),
}

/// Nobody listens any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl Client {
    /// Listens for events as long as `hear` says that it wants to know more; those from before the first connection are
    /// none of its business.
    pub fn listen(&self, mut hear: impl FnMut(Heard) -> bool) {
        let mut decoder = Decoder::default();
        let mut back_off = BackOff::default();
        loop {
            let error = match self.events(decoder.last_id()) {
                Ok(stream) => {
                    back_off = BackOff::default();
                    decoder.reconnect();
                    if !hear(Heard::Subscribed) {
                        return;
                    }
                    match take(stream, &mut decoder, &mut hear) {
                        Ok(ended) => RequestError::Unreachable(ended),
                        Err(Gone) => return,
                    }
                }
                Err(error) => error,
            };
            let retry_in = back_off.next(&error);
            if !hear(Heard::Unsubscribed { error, retry_in }) {
                return;
            }
            std::thread::sleep(retry_in.min(Duration::from_secs(60)));
        }
    }
}

/// Tells of events until the stream ends, and why it did.
///
/// # Errors
/// If nobody listens any more.
pub fn take(
    mut stream: impl Read,
    decoder: &mut Decoder,
    hear: &mut impl FnMut(Heard) -> bool,
) -> Result<String, Gone> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = match stream.read(&mut piece) {
            Ok(0) => return Ok("the daemon has closed the connection".to_owned()),
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Ok(error.to_string()),
        };
        let mut listens = true;
        decoder.read(&piece[..length], |frame, _| {
            listens = listens && hear(understood(&frame));
        });
        if !listens {
            return Err(Gone);
        }
    }
}

/// What a frame says; one that is not understood is counted as lost.
fn understood(frame: &Frame) -> Heard {
    let not_understood = |_| Heard::Lost(Loss::NotUnderstood(1));
    match frame.event.as_str() {
        _ if frame.is_cut => Heard::Lost(Loss::NotUnderstood(1)),
        "lost" => serde_json::from_str::<Lost>(&frame.data).map_or_else(not_understood, |lost| {
            Heard::Lost(lost.count.map_or(Loss::OtherRun, Loss::TooSlow))
        }),
        _ => serde_json::from_str::<Event>(&frame.data)
            .map_or_else(not_understood, |event| Heard::Event(Box::new(event))),
    }
}
