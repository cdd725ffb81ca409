//! Subscription to events, which resumes after the connection was lost.

use std::io::Read;
use std::time::Duration;

use super::back_off::BackOff;
use super::server_sent::{Decoder, Frame};
use super::{Client, RequestError};
use crate::{Event, Lost};

/// Size of the read buffer.
const BUFFER_BYTES: usize = 64 << 10;

/// An item of an event stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    /// An event.
    Event(Box<Event>),
    /// Events were lost.
    Lost(Loss),
    /// The stream is connected.
    Connected,
    /// The stream is disconnected.
    Disconnected {
        /// Why.
        error: RequestError,
        /// How long until the next attempt.
        retry_in: Duration,
    },
}

/// Why events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// So many events were overwritten before the daemon could send them.
    Overwritten(u64),
    /// The daemon restarted, and its earlier events are gone.
    Restarted,
    /// So many events could not be parsed.
    Invalid(u64),
}

/// The receiver of the items ended the subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl Client {
    /// Subscribes to events and passes each item to `on_item` until that returns false. Reconnects after failures and resumes
    /// after the last event. Starts with the first event after the first connection.
    pub fn subscribe(&self, mut on_item: impl FnMut(StreamItem) -> bool) {
        let mut decoder = Decoder::default();
        let mut back_off = BackOff::default();
        loop {
            let error = match self.events(decoder.last_id()) {
                Ok(stream) => {
                    back_off = BackOff::default();
                    decoder.reconnect();
                    if !on_item(StreamItem::Connected) {
                        return;
                    }
                    match read_events(stream, &mut decoder, &mut on_item) {
                        Ok(reason) => RequestError::Unreachable(reason),
                        Err(Cancelled) => return,
                    }
                }
                Err(error) => error,
            };
            let retry_in = back_off.next(&error);
            if !on_item(StreamItem::Disconnected { error, retry_in }) {
                return;
            }
            std::thread::sleep(retry_in.min(Duration::from_secs(60)));
        }
    }
}

/// Passes events to `on_item` until the stream ends, and returns why it ended.
///
/// # Errors
/// If `on_item` returns false.
pub fn read_events(
    mut stream: impl Read,
    decoder: &mut Decoder,
    on_item: &mut impl FnMut(StreamItem) -> bool,
) -> Result<String, Cancelled> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let length = match stream.read(&mut buffer) {
            Ok(0) => return Ok("the daemon closed the connection".to_owned()),
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Ok(error.to_string()),
        };
        let mut is_wanted = true;
        decoder.read(&buffer[..length], |frame, _| {
            is_wanted = is_wanted && on_item(parse(&frame));
        });
        if !is_wanted {
            return Err(Cancelled);
        }
    }
}

/// Parses a frame. An invalid one counts as a lost event.
fn parse(frame: &Frame) -> StreamItem {
    let invalid = |_| StreamItem::Lost(Loss::Invalid(1));
    match frame.event.as_str() {
        _ if frame.is_truncated => StreamItem::Lost(Loss::Invalid(1)),
        "lost" => serde_json::from_str::<Lost>(&frame.data).map_or_else(invalid, |lost| {
            StreamItem::Lost(lost.count.map_or(Loss::Restarted, Loss::Overwritten))
        }),
        _ => serde_json::from_str::<Event>(&frame.data)
            .map_or_else(invalid, |event| StreamItem::Event(Box::new(event))),
    }
}
