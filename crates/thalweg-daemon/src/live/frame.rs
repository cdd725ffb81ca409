//! Loads of all links at one time, and their texts in the stream.

use std::sync::{Arc, OnceLock};

use hyper::body::Bytes;
use serde::Serialize;
use thalweg_api::{LiveLinks, LiveLoads};
use thalweg_wire::Timestamp;

/// The load of a link direction whose collector did not respond.
pub(super) const UNKNOWN: i16 = -1;

/// Loads of all links at one time.
#[derive(Debug, Default)]
pub struct Frame {
    /// Number of the frame: 0 before the first, then without gaps.
    number: u64,
    time: Timestamp,
    list: Arc<LinkList>,
    loads: Vec<i16>,
    /// Index and load of link directions that differ from the frame before; empty if the list differs.
    changed: Vec<i32>,
    whole_text: OnceLock<Bytes>,
    changed_text: OnceLock<Bytes>,
}

/// The links of frames.
#[derive(Debug, Default)]
pub struct LinkList {
    number: u64,
    links: Vec<String>,
    text: OnceLock<Bytes>,
}

/// What a viewer has received.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameCursor {
    frame: u64,
    list: u64,
}

impl LinkList {
    /// A list with the next number.
    pub fn after(previous: &LinkList, links: Vec<String>) -> LinkList {
        LinkList { number: previous.number + 1, links, text: OnceLock::new() }
    }

    /// Returns the names of the link directions.
    pub fn links(&self) -> &[String] {
        &self.links
    }
}

impl Frame {
    /// The frame after `previous`.
    pub fn after(previous: &Frame, time: Timestamp, list: Arc<LinkList>, loads: Vec<i16>) -> Frame {
        let changed = match Arc::ptr_eq(&previous.list, &list) {
            true => changes(&previous.loads, &loads),
            false => Vec::new(),
        };
        let (whole_text, changed_text) = (OnceLock::new(), OnceLock::new());
        Frame { number: previous.number + 1, time, list, loads, changed, whole_text, changed_text }
    }

    /// Returns the loads in the order of the list.
    pub fn loads(&self) -> &[i16] {
        &self.loads
    }

    /// Returns the list of links.
    pub fn list(&self) -> &Arc<LinkList> {
        &self.list
    }

    fn text(&self, is_whole: bool) -> Bytes {
        let text = if is_whole { &self.whole_text } else { &self.changed_text };
        // Once for all viewers.
        let encode = || {
            let loads = is_whole.then(|| self.loads.clone());
            let changed = (!is_whole).then(|| self.changed.clone());
            message("loads", &LiveLoads { list: self.list.number, time: self.time.into(), loads, changed })
        };
        text.get_or_init(encode).clone()
    }
}

fn changes(before: &[i16], now: &[i16]) -> Vec<i32> {
    let indexed = before.iter().zip(now).zip(0_i32..);
    let changed = indexed.filter(|((before, now), _)| before != now);
    changed.flat_map(|((_, now), index)| [index, i32::from(*now)]).collect()
}

impl FrameCursor {
    /// Returns what to send to the viewer for this frame: nothing if it has it, the changes if it has the one before, otherwise
    /// everything.
    pub fn texts(&mut self, frame: &Frame) -> [Option<Bytes>; 2] {
        if frame.number == self.frame {
            return [None, None];
        }
        let is_same_list = frame.list.number == self.list;
        let is_next = is_same_list && frame.number == self.frame + 1;
        *self = FrameCursor { frame: frame.number, list: frame.list.number };
        let list = || {
            let LinkList { number, links, text } = &*frame.list;
            let links = || LiveLinks { list: *number, links: links.clone() };
            text.get_or_init(|| message("links", &links())).clone()
        };
        [(!is_same_list).then(list), Some(frame.text(!is_next))]
    }
}

/// Returns a message of the stream. It has no `id`: a viewer that resumes needs no old ones.
pub(super) fn message(event: &str, data: &impl Serialize) -> Bytes {
    // Our own types can be written as JSON, which has no line breaks.
    let data = serde_json::to_string(data).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
    format!("event: {event}\ndata: {data}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(previous: &LinkList) -> Arc<LinkList> {
        Arc::new(LinkList::after(previous, vec!["a:p0:in".into(), "a:p0:out".into(), "b:p0:in".into()]))
    }

    fn texts(cursor: &mut FrameCursor, frame: &Frame) -> Vec<String> {
        let texts = cursor.texts(frame).into_iter().flatten();
        texts.map(|text| String::from_utf8(text.to_vec()).unwrap()).collect()
    }

    #[test]
    fn a_viewer_gets_the_list_and_all_loads_then_changes() {
        let list = list(&LinkList::default());
        let first = Frame::after(&Frame::default(), Timestamp(0), Arc::clone(&list), vec![1, 2, UNKNOWN]);
        let mut cursor = FrameCursor::default();
        assert_eq!(
            texts(&mut cursor, &first),
            [
                "event: links\ndata: {\"list\":1,\"links\":[\"a:p0:in\",\"a:p0:out\",\"b:p0:in\"]}\n\n",
                "event: loads\ndata: {\"list\":1,\"time\":\"1970-01-01T00:00:00.000000000Z\",\"loads\":[1,2,-1]}\n\n",
            ]
        );
        assert!(texts(&mut cursor, &first).is_empty());
        let second = Frame::after(&first, Timestamp(1), Arc::clone(&list), vec![1, 3, 4]);
        let changed = texts(&mut cursor, &second);
        assert!(changed[0].contains("\"changed\":[1,3,2,4]"), "{changed:?}");
    }

    #[test]
    fn a_viewer_that_missed_a_frame_gets_all_loads() {
        let list = list(&LinkList::default());
        let frames: Vec<Frame> = (0..3).fold(vec![Frame::default()], |mut frames, number| {
            let next = Frame::after(frames.last().unwrap(), Timestamp(0), Arc::clone(&list), vec![number; 3]);
            frames.push(next);
            frames
        });
        let mut cursor = FrameCursor::default();
        let _ = texts(&mut cursor, &frames[1]);
        assert!(texts(&mut cursor, &frames[3])[0].contains("\"loads\":[2,2,2]"));
    }

    #[test]
    fn another_list_is_sent_with_all_loads() {
        let first_list = list(&LinkList::default());
        let first = Frame::after(&Frame::default(), Timestamp(0), Arc::clone(&first_list), vec![1, 1, 1]);
        let mut cursor = FrameCursor::default();
        let _ = texts(&mut cursor, &first);
        let second = Frame::after(&first, Timestamp(0), list(&first_list), vec![1, 1, 1]);
        let sent = texts(&mut cursor, &second);
        assert!(sent[0].contains("\"list\":2") && sent[1].contains("\"loads\":[1,1,1]"), "{sent:?}");
    }
}
