use std::sync::Mutex;

use crossbeam_channel::bounded;
use thalweg_measure::meter::record::{EndReason, FlowRecord, Traffic};
use thalweg_wire::{FlowKey, Protocol, Timestamp};

use super::*;
use crate::collectors::RecordsLost;

/// A disk that is full after a number of bytes, and has room again after the first failure.
#[derive(Clone)]
struct Disk(Arc<Mutex<(Vec<u8>, Option<usize>)>>);

impl Disk {
    fn new(room: Option<usize>) -> Disk {
        Disk(Arc::new(Mutex::new((Vec::new(), room))))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (kept, room) = &mut *self.0.lock().unwrap();
        let fits = room.map_or(bytes.len(), |room| bytes.len().min(room - kept.len()));
        if fits == 0 {
            *room = None;
            return Err(io::ErrorKind::StorageFull.into());
        }
        kept.extend(&bytes[..fits]);
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn record(port: u16) -> FlowRecord {
    FlowRecord {
        key: FlowKey::v4(1, 2, port, 80, Protocol::TCP),
        first: Timestamp(1),
        last: Timestamp(2),
        forward: Traffic::default(),
        reverse: Traffic::default(),
        end_reason: EndReason::Idle,
    }
}

fn records(collector: &str, stats: &Arc<CollectorStats>, count: u16) -> Records {
    stats.note_queued(count.into());
    let records = (0..count).map(record).collect();
    Records { collector: collector.into(), stats: Arc::clone(stats), records }
}

#[test]
fn lines_lost_to_a_full_disk_are_counted_per_collector() {
    let [a, b] = [(); 2].map(|()| Arc::<CollectorStats>::default());
    let line = {
        let mut writer = JsonWriter::new(Disk::new(None));
        writer.add(&records("a", &Arc::default(), 1));
        writer.text.len()
    };
    // Room for two and a half lines of collector a.
    let disk = Disk::new(Some(2 * line + line / 2));
    let mut writer = JsonWriter::new(disk.clone());
    writer.add(&records("a", &a, 3));
    writer.add(&records("b", &b, 2));
    writer.write();
    assert_eq!(a.records_lost(), RecordsLost { queue_full: 0, write_failed: 1 });
    assert_eq!(b.records_lost(), RecordsLost { queue_full: 0, write_failed: 2 });
    writer.add(&records("b", &b, 1));
    writer.write();
    assert_eq!(b.records_lost().write_failed, 2);
    assert_eq!([a.records_waiting(), b.records_waiting()], [0, 0]);
    let text = disk.text();
    let whole = text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count();
    assert_eq!((whole, text.lines().count()), (3, 4), "{text}");
}

#[test]
fn a_steady_stream_of_lines_does_not_delay_writing() {
    let disk = Disk::new(None);
    let (sender, receiver) = bounded(8);
    let out = disk.clone();
    let writing = std::thread::spawn(move || write(Some(out), None, &receiver));
    let (start, mut sent) = (Instant::now(), 0);
    let mut send = || {
        sender.send(records("a", &Arc::default(), 1)).unwrap();
        sent += 1;
    };
    // Neither long pauses, nor enough bytes for an immediate write.
    while start.elapsed() < 3 * MAX_DELAY {
        send();
        std::thread::sleep(MAX_DELAY / 10);
    }
    let lines = disk.text().lines().count();
    assert!(lines >= 5, "{lines}");
    send();
    drop(sender);
    writing.join().unwrap();
    assert_eq!(disk.text().lines().count(), sent, "the last lines are written at the end");
}
