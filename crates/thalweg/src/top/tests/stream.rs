//! Event streams, and the table of links.

use super::*;

/// A stream that arrives in pieces, and ends or fails.
struct Pieces(Vec<io::Result<Vec<u8>>>);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Ok(0);
        }
        let piece = self.0.remove(0)?;
        buffer[..piece.len()].copy_from_slice(&piece);
        Ok(piece.len())
    }
}

/// Decodes a stream. Returns the updates and the error that ended it.
fn decode(decoder: &mut Decoder, pieces: Vec<io::Result<Vec<u8>>>) -> (Vec<Update>, String) {
    let (sender, updates) = crossbeam_channel::unbounded();
    let ended =
        subscription::read_events(Pieces(pieces), decoder, &mut |item| sender.send(item.into()).is_ok());
    let ended = ended.unwrap();
    (updates.try_iter().collect(), ended)
}

fn sent(id: &str, event: &str, data: &impl serde::Serialize) -> String {
    format!("id: {id}\nevent: {event}\ndata: {}\n\n", serde_json::to_string(data).unwrap())
}

#[test]
fn a_stream_resumes_after_its_last_complete_event() {
    let (first, second) = (event(1, cheetah()), event(2, congestion("began", 0.9)));
    let stream = sent("1f-1", "cheetah", &first) + &sent("1f-2", "congestion", &second);
    let (all, cut) = stream.split_at(stream.len() - 20);
    let mut pieces: Vec<_> = all.as_bytes().chunks(7).map(|piece| Ok(piece.to_vec())).collect();
    pieces.push(Err(io::ErrorKind::Interrupted.into()));
    pieces.push(Err(io::Error::other("connection reset")));
    let mut decoder = Decoder::default();
    let (updates, ended) = decode(&mut decoder, pieces);
    assert_eq!(ended, "connection reset");
    assert!(matches!(&updates[..], [Update::Event(event)] if **event == first), "{updates:?}");
    assert_eq!(decoder.last_id(), Some("1f-1"), "the incomplete event is requested again");
    decoder.reconnect();
    assert!(!cut.is_empty());
    let (updates, ended) = decode(&mut decoder, vec![Ok(sent("1f-2", "congestion", &second).into_bytes())]);
    assert!(matches!(&updates[..], [Update::Event(event)] if **event == second), "{updates:?}");
    assert_eq!(ended, "the daemon closed the connection");
    assert_eq!(decoder.last_id(), Some("1f-2"));
}

#[test]
fn lost_and_unknown_events_are_reported() {
    let lost = json!({ "type": "lost", "count": 7, "total": 9, "last": 12 });
    let other_run = json!({ "type": "lost", "count": null, "total": 0, "last": 0 });
    let stream = sent("1-12", "lost", &lost)
        + &sent("2-0", "lost", &other_run)
        + &sent("2-1", "earthquake", &json!({ "type": "earthquake" }))
        + "data: no JSON\n\n";
    let (updates, _) = decode(&mut Decoder::default(), vec![Ok(stream.into_bytes())]);
    let losses: Vec<Loss> = updates
        .iter()
        .map(|update| match update {
            Update::Lost(loss) => *loss,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(losses, [Loss::Overwritten(7), Loss::Restarted, Loss::Invalid(1), Loss::Invalid(1)]);
    let mut view = view_of(updates);
    assert!(screen(&mut view, 80, 24).contains("9 lost"), "losses of another run are unknown");
}

#[test]
fn the_table_lists_links_by_utilisation_and_unresponsive_collectors() {
    let table = links_table::table(&links());
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "link         peer                     utilisation          rate           of  flows  changed                  collector",
            "tor0:p3:out  spine-of-the-second-pod       93.1 %   9.31 Gbit/s  10.0 Gbit/s     94  2026-11-21 10:01:02.060  tor0",
            "tor0:p1:in   host1                         73.1 %   7.31 Gbit/s  10.0 Gbit/s     74  2026-11-21 10:01:02.020  tor0",
        ]
    );
    assert!(table.contains("≥ 380 Mbit/s"), "{table}");
    assert!(lines.iter().any(|line| line.starts_with("tor0:p0:out") && line.contains("never")));
    assert_eq!(lines.last(), Some(&"tor2 did not respond: the collector does not respond"));
}
