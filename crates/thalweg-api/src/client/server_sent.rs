//! Decoder of server-sent events (HTML Standard, section 9.2.6).
//!
//! Input may be split anywhere. Memory: one event of at most `MAX_BYTES`. The data of a longer one are discarded and it is
//! marked as [`Frame::is_truncated`].

/// Maximum size of an event's data, and of a line, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// A decoded event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its type; empty if it has none.
    pub event: String,
    /// Its data lines, joined by line feeds.
    pub data: String,
    /// Whether the event was too long, so that its data are missing.
    pub is_truncated: bool,
}

/// An incremental decoder.
#[derive(Debug, Default)]
pub struct Decoder {
    line: Vec<u8>,
    is_line_truncated: bool,
    /// Whether the last byte was a carriage return: a following line feed belongs to it.
    after_return: bool,
    frame: Frame,
    has_data: bool,
    /// The latest `id` field. It becomes `last_id` when its event is complete.
    id: String,
    last_id: Option<String>,
}

impl Decoder {
    /// Decodes bytes and passes each completed event to `each`, with the id to resume from.
    pub fn read(&mut self, bytes: &[u8], mut each: impl FnMut(Frame, Option<&str>)) {
        for &byte in bytes {
            let is_second = byte == b'\n' && self.after_return;
            self.after_return = byte == b'\r';
            match byte {
                _ if is_second => {}
                b'\r' | b'\n' => {
                    if let Some(frame) = self.end_line() {
                        each(frame, self.last_id.as_deref());
                    }
                }
                _ if self.line.len() == MAX_BYTES => self.is_line_truncated = true,
                _ => self.line.push(byte),
            }
        }
    }

    /// Returns the id of the last complete event, from which to resume.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Discards the incomplete event of the old connection; the daemon sends it again.
    pub fn reconnect(&mut self) {
        let last_id = self.last_id.take();
        *self = Decoder { id: last_id.clone().unwrap_or_default(), last_id, ..Decoder::default() };
    }

    fn end_line(&mut self) -> Option<Frame> {
        let line = std::mem::take(&mut self.line);
        self.frame.is_truncated |= std::mem::take(&mut self.is_line_truncated);
        if line.is_empty() {
            return self.end_event();
        }
        let text = String::from_utf8_lossy(&line);
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.frame.event),
            "data" => self.add_data(value),
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            // A comment, which has no name, or an unknown field.
            _ => {}
        }
        None
    }

    fn add_data(&mut self, value: &str) {
        if self.frame.data.len() + value.len() >= MAX_BYTES {
            self.frame.is_truncated = true;
            self.frame.data.clear();
        } else if !self.frame.is_truncated {
            if self.has_data {
                self.frame.data.push('\n');
            }
            self.frame.data.push_str(value);
        }
        self.has_data = true;
    }

    /// Without data there is no event, but the id counts.
    fn end_event(&mut self) -> Option<Frame> {
        if !self.id.is_empty() {
            self.last_id = Some(self.id.clone());
        }
        let frame = std::mem::take(&mut self.frame);
        std::mem::take(&mut self.has_data).then_some(frame)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = ": keep-alive\n\nid: 1f-7\n\nid: 1f-8\nevent: link\ndata: {\"id\":8}\n\r\
                          event:cheetah\r\ndata: one\r\ndata:two\r\n\r\nretry: 5\nid: 1f-9\nevent: link\ndata: cut of";

    /// Type, data, and the id to resume from then.
    fn events(decoder: &mut Decoder, pieces: &[&[u8]]) -> Vec<(String, String, Option<String>)> {
        let mut events = Vec::new();
        for piece in pieces {
            decoder.read(piece, |frame, id| events.push((frame.event, frame.data, id.map(str::to_owned))));
        }
        events
    }

    fn expected() -> Vec<(String, String, Option<String>)> {
        let event = |event: &str, data: &str| (event.to_owned(), data.to_owned(), Some("1f-8".to_owned()));
        vec![event("link", "{\"id\":8}"), event("cheetah", "one\ntwo")]
    }

    #[test]
    fn an_id_without_data_is_a_resume_position() {
        let mut decoder = Decoder::default();
        assert_eq!(events(&mut decoder, &[b"id: 1f-7\n\n"]), []);
        assert_eq!(decoder.last_id(), Some("1f-7"));
    }

    #[test]
    fn an_incomplete_event_is_not_a_resume_position() {
        let mut decoder = Decoder::default();
        assert_eq!(events(&mut decoder, &[STREAM.as_bytes()]), expected());
        assert_eq!(decoder.last_id(), Some("1f-8"));
        decoder.reconnect();
        assert_eq!(
            events(&mut decoder, &[b"data: again\n\n"])[0].1,
            "again",
            "the incomplete event is discarded"
        );
        assert_eq!(decoder.last_id(), Some("1f-8"));
    }

    #[test]
    fn an_endless_event_is_truncated() {
        let mut decoder = Decoder::default();
        decoder.read(b"data: ", |_, _| panic!("incomplete"));
        for _ in 0..5 {
            decoder.read(&[b'x'; 1 << 20], |_, _| panic!("incomplete"));
        }
        assert!(decoder.line.len() <= MAX_BYTES);
        let mut frames = Vec::new();
        decoder.read(b"\n\ndata: next\n\n", |frame, _| frames.push((frame.is_truncated, frame.data)));
        assert_eq!(frames, [(true, String::new()), (false, "next".to_owned())]);
    }

    proptest! {
        #[test]
        fn input_may_be_split_anywhere(cuts in prop::collection::vec(0..STREAM.len(), 0..20)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &STREAM.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(events(&mut Decoder::default(), &pieces), expected());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            Decoder::default().read(&bytes, |_, _| {});
        }
    }
}
