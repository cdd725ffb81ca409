use std::io::Write as _;
use std::path::Path;

use thalweg_api::MAX_REPORT_ROWS;
use thalweg_api::client::ClientOptions;

use super::*;
use crate::follow::{MAX_FOUND_BYTES, Start};
use crate::logs::{LineError, LogParser};

fn options(folder: &Path, privacy: Privacy) -> AgentOptions {
    let client = ClientOptions { api: "http://127.0.0.1:9".to_owned(), ..ClientOptions::default() };
    AgentOptions {
        host: "dtn1".to_owned(),
        client: Client::new(&client).unwrap(),
        queue: folder.join("queue"),
        queue_bytes: 1 << 30,
        privacy,
        parameters: ParameterOptions::default(),
        disk: None,
        connections: ConnectionOptions { min_bytes: 1, max_connections: 1 },
    }
}

/// Takes each line as the name of a file. Needs all lines from the first one on that says so.
#[derive(Default)]
struct TestParser {
    needs_from: Option<u64>,
}

impl LogParser for TestParser {
    fn line(&mut self, line: &str, offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        match line {
            "needed" => self.needs_from = self.needs_from.or(Some(offset)),
            line if line.trim().is_empty() => {}
            file => found.push(LoggedTransfer { file: file.to_owned(), ..LoggedTransfer::default() }),
        }
        Ok(())
    }

    fn needs_from(&self) -> Option<u64> {
        self.needs_from
    }
}

fn follower(log: &Path, start: Start) -> (String, LogFollower) {
    let follower = LogFollower::new(log.to_owned(), Box::new(TestParser::default()), start);
    (log.display().to_string(), follower)
}

#[test]
fn a_thread_that_panics_stops_the_others() {
    let stop = AtomicBool::new(false);
    stopping_on_panic(&stop, || {});
    assert!(!stop.load(Ordering::Relaxed));
    let result = std::panic::catch_unwind(|| stopping_on_panic(&stop, || panic!("test")));
    assert!(result.is_err() && stop.load(Ordering::Relaxed));
}

/// Returns what is reported of a failed transfer with this salt; `None` if names are clear.
fn reported(folder: &Path, salt: Option<&str>) -> Transfer {
    let privacy = match salt {
        Some(name) => Privacy::hashed(&folder.join(name)).unwrap(),
        None => Privacy::clear(),
    };
    let options = options(folder, privacy);
    let queue = Queue::open(&options.queue, options.queue_bytes).unwrap();
    let stop = AtomicBool::new(false);
    let transfer = LoggedTransfer {
        user: "zora".to_owned(),
        file: "data/missing.bin".to_owned(),
        error: "link_stat \"missing.bin\" (of zora) failed: No such file or directory (2)".to_owned(),
        ..LoggedTransfer::default()
    };
    let found = Found { transfer, inode: 1, offset_after: 2, index: 3, line: String::new() };
    Shared::new(&options, queue, &stop).transfer("log", found, &mut Names::default())
}

#[test]
fn hashed_names_are_in_no_text_of_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let transfer = reported(folder.path(), Some("salt"));
    let text = serde_json::to_string(&transfer).unwrap();
    assert!(!text.contains("zora") && !text.contains("missing"), "{text}");
    assert_eq!(transfer.error, "link_stat <name> (of <name>) failed: No such file or directory (2)");
    let clear = reported(folder.path(), None);
    assert!(clear.error.contains("missing.bin"));
    assert_eq!((clear.user.as_str(), clear.file.as_str()), ("zora", "data/missing.bin"));
}

#[test]
fn an_identifier_of_a_transfer_cannot_be_computed_from_clear_names() {
    let folder = tempfile::tempdir().unwrap();
    let identifier = |salt| reported(folder.path(), Some(salt)).transfer;
    assert_eq!(identifier("salt"), identifier("salt"));
    assert_ne!(identifier("salt"), identifier("other"));
}

#[test]
fn a_log_is_read_on_at_once_while_known_lines_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), Privacy::clear());
    let queue = Queue::open(&options.queue, options.queue_bytes).unwrap();
    let stop = AtomicBool::new(false);
    let shared = Shared::new(&options, queue, &stop);
    let log = folder.path().join("log");
    let blank = format!("{}\n", " ".repeat(99));
    std::fs::write(&log, format!("needed\n{}", blank.repeat(3 * LOG_BYTES as usize / blank.len()))).unwrap();
    let mut logs = vec![follower(&log, Start::Beginning)];
    while shared.follow_log(&mut logs, 0, &mut Names::default()) {}
    let position = logs[0].1.position().unwrap();
    assert_eq!((position.needs_from, position.offset > 3 * LOG_BYTES), (0, true));
    let mut logs = vec![follower(&log, Start::At(position))];
    let mut steps = 0;
    while shared.follow_log(&mut logs, 0, &mut Names::default()) {
        steps += 1;
    }
    assert_eq!(steps, 3);
}

#[test]
fn no_report_has_more_transfers_than_a_request_may_have() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), Privacy::clear());
    let queue = Queue::open(&options.queue, options.queue_bytes).unwrap();
    let stop = AtomicBool::new(false);
    let shared = Shared::new(&options, queue, &stop);
    let log = folder.path().join("log");
    let mut file = std::fs::File::create(&log).unwrap();
    file.write_all("x\n".repeat(15_000).as_bytes()).unwrap();
    file.write_all(format!("{}\n", "\u{1}".repeat(1_000)).repeat(300).as_bytes()).unwrap();
    let mut logs = vec![follower(&log, Start::Beginning)];
    while shared.follow_log(&mut logs, 0, &mut Names::default()) {}
    let mut queue = lock(&shared.queue);
    let mut count = 0;
    while let Some((number, rows)) = queue.first().unwrap() {
        assert!((serde_json::to_vec(&rows).unwrap().len() as u64) < 2 * MAX_FOUND_BYTES);
        let ReportRows::Transfers(transfers) = rows else { panic!("transfers") };
        assert!(transfers.len() <= MAX_REPORT_ROWS);
        count += transfers.len();
        queue.acknowledge(number).unwrap();
    }
    assert_eq!(count, 15_300);
}
