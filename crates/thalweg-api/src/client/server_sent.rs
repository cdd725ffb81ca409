//! Server-sent events from bytes (HTML Standard, section 9.2.6).
//!
//! Bytes may be cut anywhere. Memory: one event, of at most [`MAX_BYTES`]; of one that is longer the data are let go,
//! and it is told to be [`Frame::is_cut`].

/// Most bytes of an event's data, and of a line.
const MAX_BYTES: usize = 4 << 20;

/// An event as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its type; empty if it has none.
    pub event: String,
    /// Its lines of data, joined by line feeds.
    pub data: String,
    /// Whether there was more than is kept.
    pub is_cut: bool,
}

/// What has been read so far.
#[derive(Debug, Default)]
pub struct Decoder {
    line: Vec<u8>,
    is_line_cut: bool,
    /// Whether the last byte was a carriage return, so that a line feed belongs to it.
    after_return: bool,
    frame: Frame,
    has_data: bool,
    /// As in the fields so far; it counts once its event is complete.
    id: String,
    last_id: Option<String>,
}

impl Decoder {
    /// Takes bytes; `each` gets the events that are complete with them.
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
                _ if self.line.len() == MAX_BYTES => self.is_line_cut = true,
                _ => self.line.push(byte),
            }
        }
    }

    /// What to resume from: the id of the last complete event.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// A new connection: what was incomplete on the old one will come again.
    pub fn reconnect(&mut self) {
        let last_id = self.last_id.take();
        *self = Decoder { id: last_id.clone().unwrap_or_default(), last_id, ..Decoder::default() };
    }

    fn end_line(&mut self) -> Option<Frame> {
        let line = std::mem::take(&mut self.line);
        self.frame.is_cut |= std::mem::take(&mut self.is_line_cut);
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
            // A comment, which has no name, or what we know nothing of.
            _ => {}
        }
        None
    }

    fn add_data(&mut self, value: &str) {
        if self.frame.data.len() + value.len() >= MAX_BYTES {
            self.frame.is_cut = true;
            self.frame.data.clear();
        } else if !self.frame.is_cut {
            if self.has_data {
                self.frame.data.push('\n');
            }
            self.frame.data.push_str(value);
        }
        self.has_data = true;
    }

    /// What has no data is no event, but its id counts all the same.
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

    const STREAM: &str = ": still here\n\nid: 1f-7\n\nid: 1f-8\nevent: link\ndata: {\"id\":8}\n\r\
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
    fn a_position_without_an_event_is_one_to_resume_from() {
        let mut decoder = Decoder::default();
        assert_eq!(events(&mut decoder, &[b"id: 1f-7\n\n"]), []);
        assert_eq!(decoder.last_id(), Some("1f-7"));
    }

    #[test]
    fn an_event_that_was_cut_off_is_not_one_to_resume_from() {
        let mut decoder = Decoder::default();
        assert_eq!(events(&mut decoder, &[STREAM.as_bytes()]), expected());
        assert_eq!(decoder.last_id(), Some("1f-8"));
        decoder.reconnect();
        assert_eq!(
            events(&mut decoder, &[b"data: again\n\n"])[0].1,
            "again",
            "nothing is left of the old one"
        );
        assert_eq!(decoder.last_id(), Some("1f-8"));
    }

    #[test]
    fn an_event_without_end_takes_no_memory_and_is_told_to_be_cut() {
        let mut decoder = Decoder::default();
        decoder.read(b"data: ", |_, _| panic!("incomplete"));
        for _ in 0..5 {
            decoder.read(&[b'x'; 1 << 20], |_, _| panic!("incomplete"));
        }
        assert!(decoder.line.len() <= MAX_BYTES);
        let mut cut = Vec::new();
        decoder.read(b"\n\ndata: next\n\n", |frame, _| cut.push((frame.is_cut, frame.data)));
        assert_eq!(cut, [(true, String::new()), (false, "next".to_owned())]);
    }

    proptest! {
        #[test]
        fn it_is_no_matter_where_bytes_are_cut(cuts in prop::collection::vec(0..STREAM.len(), 0..20)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &STREAM.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(events(&mut Decoder::default(), &pieces), expected());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            Decoder::default().read(&bytes, |_, _| {});
        }
    }
}
