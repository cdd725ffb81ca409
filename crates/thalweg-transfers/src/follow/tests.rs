use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::logs::LineError;

const NOW_US: i64 = 1_795_900_000_000_000;
const ALL: u64 = u64::MAX;

/// Parses `begin ID`, `end ID BYTES`, and `single ID BYTES`.
#[derive(Default)]
struct TestParser {
    open: BTreeMap<String, u64>,
}

impl LogParser for TestParser {
    fn line(&mut self, line: &str, offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        let words: Vec<&str> = line.split(' ').collect();
        let started = match words[..] {
            ["begin", id] => {
                self.open.insert(id.to_owned(), offset);
                return Ok(());
            }
            ["end", id, _] => self.open.remove(id).is_some(),
            ["single", _, _] => true,
            _ => false,
        };
        match words[..] {
            [_, id, bytes] if started => found.push(LoggedTransfer {
                file: id.to_owned(),
                bytes: bytes.parse().map_err(|_| LineError::new("a number", bytes))?,
                ..LoggedTransfer::default()
            }),
            _ => return Err(LineError::new("begin, end of what began, or single", line)),
        }
        Ok(())
    }

    fn needs_from(&self) -> Option<u64> {
        self.open.values().min().copied()
    }
}

/// A directory with a log, and a follower that may be restarted.
struct Scene {
    directory: tempfile::TempDir,
    follower: LogFollower,
    now_us: i64,
    found: Vec<Found>,
}

impl Scene {
    fn new(start: Start) -> Scene {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let follower = LogFollower::new(path, Box::new(TestParser::default()), start);
        Scene { directory, follower, now_us: NOW_US, found: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn append(&self, name: &str, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.path(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.path(from), self.path(to)).unwrap();
    }

    /// What logrotate does with `copytruncate`.
    fn copy_and_truncate(&self, to: &str) {
        std::fs::copy(self.path("log"), self.path(to)).unwrap();
        OpenOptions::new().write(true).open(self.path("log")).unwrap().set_len(0).unwrap();
    }

    fn poll(&mut self) {
        self.poll_bytes(ALL);
    }

    /// Returns whether there may be more.
    fn poll_bytes(&mut self, max_bytes: u64) -> bool {
        self.follower.poll(self.now_us, max_bytes, &mut self.found).unwrap()
    }

    fn set_modified(&self, name: &str, seconds: u64) {
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        OpenOptions::new().append(true).open(self.path(name)).unwrap().set_modified(time).unwrap();
    }

    /// Ends the process after it saved its position, and starts it again.
    fn restart(&mut self) {
        let start = match self.follower.position() {
            Some(position) => {
                let saved = serde_json::to_string(&position).unwrap();
                Start::At(serde_json::from_str(&saved).unwrap())
            }
            None => Start::Beginning,
        };
        self.restart_at(start);
    }

    fn restart_at(&mut self, start: Start) {
        self.follower = LogFollower::new(self.path("log"), Box::new(TestParser::default()), start);
    }

    /// The transfers so far, sorted.
    fn transfers(&self) -> Vec<(String, u64)> {
        let mut transfers: Vec<(String, u64)> =
            self.found.iter().map(|found| (found.transfer.file.clone(), found.transfer.bytes)).collect();
        transfers.sort();
        transfers
    }

    fn counts(&self) -> FollowCounts {
        self.follower.counts()
    }
}

fn pairs(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(id, bytes)| ((*id).to_owned(), *bytes)).collect()
}

const LOG: &str = "single a 1\nbegin b\nsingle c 3\nbegin d\nend b 2\nsingle e 5\nend d 4\nsingle f 6\n";

fn all_of_log() -> Vec<(String, u64)> {
    pairs(&[("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6)])
}

#[test]
fn a_log_is_read_as_it_grows_and_an_incomplete_line_waits() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 1\nsing");
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1)]));
    assert_eq!(scene.found[0].offset_after, 11);
    assert_eq!(scene.found[0].line, "single a 1");
    scene.append("log", "le b 2\r\n");
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("b", 2)]));
    assert_eq!((scene.counts().lines, scene.counts().bad_lines), (2, 0));
}

#[test]
fn a_missing_log_is_waited_for_and_read_from_its_beginning() {
    for start in [Start::Beginning, Start::End] {
        let mut scene = Scene::new(start);
        scene.poll();
        assert_eq!(scene.follower.position(), None);
        scene.append("log", "single a 1\n");
        scene.poll();
        assert_eq!(scene.transfers(), pairs(&[("a", 1)]));
    }
}

#[test]
fn a_first_start_may_begin_at_the_end() {
    for (before, after) in [("single a 1\n", "single b 2\n"), ("single a 1\nsingle", " x 9\nsingle b 2\n")] {
        let mut scene = Scene::new(Start::End);
        scene.append("log", before);
        scene.poll();
        scene.restart();
        scene.append("log", after);
        scene.poll();
        assert_eq!(scene.transfers(), pairs(&[("b", 2)]), "{before}");
        assert_eq!(scene.counts().bad_lines, 0);
    }
}

/// What happens to the log in the middle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Rotate,
    RotateTwice,
    CopyTruncate,
    Nothing,
}

/// Writes the log up to a byte, lets something happen, and writes the rest.
fn cut_at(cut: usize, event: Event, polled: bool, restarted: bool, small_polls: bool) -> Scene {
    let mut scene = Scene::new(Start::Beginning);
    let (before, mut after) = LOG.split_at(cut);
    scene.append("log", "single z 0\n");
    scene.poll();
    scene.append("log", before);
    if polled {
        scene.poll();
    }
    match event {
        Event::Nothing => {}
        Event::CopyTruncate => scene.copy_and_truncate("log.1"),
        Event::Rotate | Event::RotateTwice => {
            scene.rename("log", "log.1");
            if !before.is_empty() && !before.ends_with('\n') {
                // The writer still has the old file open.
                let end = after.find('\n').unwrap() + 1;
                scene.append("log.1", &after[..end]);
                after = &after[end..];
            }
        }
    }
    if event == Event::RotateTwice {
        let end = after.find('\n').map_or(after.len(), |end| end + 1);
        scene.append("log", &after[..end]);
        after = &after[end..];
        scene.rename("log.1", "log.2");
        scene.rename("log", "log.1");
    }
    if restarted {
        scene.restart();
    }
    if small_polls {
        scene.append("log", "");
        for byte in after.split_inclusive(|_| true) {
            scene.append("log", byte);
            scene.poll_bytes(3);
            if restarted {
                scene.restart();
            }
        }
        for _ in 0..LOG.len() {
            scene.poll_bytes(7);
        }
    } else {
        scene.append("log", after);
        scene.poll();
    }
    scene
}

#[test]
fn every_transfer_is_found_once_wherever_the_log_is_cut() {
    let mut expected = all_of_log();
    expected.push(("z".to_owned(), 0));
    for event in [Event::Nothing, Event::Rotate, Event::RotateTwice, Event::CopyTruncate] {
        for cut in 0..=LOG.len() {
            for bits in 0..8 {
                let (polled, restarted, small) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
                let scene = cut_at(cut, event, polled, restarted, small);
                let case = format!(
                    "{event:?} at {cut}, polled {polled}, restarted {restarted}, small polls {small}"
                );
                assert_eq!(scene.transfers(), expected, "{case}");
                let counts = scene.counts();
                assert_eq!((counts.bad_lines, counts.cut_lines), (0, 0), "{case}");
                assert_eq!(counts.lost_rotations, 0, "{case}");
            }
        }
    }
}

#[test]
fn a_crash_after_reading_repeats_nothing_that_was_saved() {
    for saved_at in 0..=LOG.len() {
        let mut scene = Scene::new(Start::Beginning);
        scene.append("log", &LOG[..saved_at]);
        scene.poll();
        let saved = scene.follower.position().map_or(Start::Beginning, Start::At);
        let reported = scene.found.clone();
        scene.append("log", &LOG[saved_at..]);
        scene.poll();
        // The process ends without saving.
        scene.found = reported;
        scene.restart_at(saved);
        scene.poll();
        assert_eq!(scene.transfers(), all_of_log(), "{saved_at}");
    }
}

#[test]
fn a_line_that_is_read_again_has_the_same_identity() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", LOG);
    scene.poll();
    let first = std::mem::take(&mut scene.found);
    scene.restart_at(Start::Beginning);
    for _ in 0..LOG.len() {
        scene.poll_bytes(5);
    }
    assert_eq!(scene.found, first);
}

#[test]
fn late_lines_of_a_rotated_file_are_read_for_a_minute() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 1\n");
    scene.poll();
    scene.rename("log", "log.1");
    scene.append("log", "single b 2\n");
    scene.poll();
    scene.append("log.1", "single c 3\nsingle d");
    scene.now_us += LINGER_US - 1;
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("b", 2), ("c", 3)]));
    scene.restart();
    scene.poll();
    scene.now_us += LINGER_US;
    scene.poll();
    assert_eq!(scene.counts().cut_lines, 1);
    scene.append("log.1", "single e 5\n");
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("b", 2), ("c", 3)]));
    assert!(scene.follower.position().unwrap().earlier.is_empty());
}

#[test]
fn a_session_that_began_before_a_rotation_keeps_the_old_file_in_the_position() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 1\nbegin b\n");
    scene.poll();
    scene.rename("log", "log.1");
    scene.append("log", "single c 3\n");
    scene.poll();
    scene.now_us += 2 * LINGER_US;
    scene.poll();
    let position = scene.follower.position().unwrap();
    assert_eq!((position.earlier.len(), position.earlier[0].needs_from, position.needs_from), (1, 11, 0));
    scene.restart();
    scene.append("log", "end b 2\n");
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("b", 2), ("c", 3)]));
    scene.now_us += 2 * LINGER_US;
    scene.poll();
    assert!(scene.follower.position().unwrap().earlier.is_empty());
}

#[test]
fn a_rotated_file_that_is_gone_is_counted() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 1\n");
    scene.poll();
    scene.append("log", "single b 2\n");
    scene.rename("log", "log.1.gz");
    std::fs::remove_file(scene.path("log.1.gz")).unwrap();
    std::fs::write(scene.path("log.1.gz"), "compressed").unwrap();
    scene.append("log", "single c 3\n");
    scene.restart();
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("c", 3)]));
    assert_eq!(scene.counts().lost_rotations, 1);
}

#[test]
fn a_file_that_was_compressed_between_two_polls_is_counted() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 1\n");
    scene.poll();
    scene.rename("log", "log.2");
    std::thread::sleep(std::time::Duration::from_millis(20));
    scene.append("log.1.gz", "compressed");
    scene.append("log", "single c 3\n");
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("c", 3)]));
    assert_eq!(scene.counts().lost_rotations, 1);
}

#[test]
fn a_file_that_was_truncated_without_a_copy_is_read_from_its_beginning() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 1\nsingle b");
    scene.poll();
    std::fs::write(scene.path("log"), "single c 3\nsingle d 4\nsingle e 5\n").unwrap();
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("c", 3), ("d", 4), ("e", 5)]));
    assert_eq!((scene.counts().truncations, scene.counts().cut_lines), (1, 1));
}

#[test]
fn an_old_rotated_file_is_not_taken_for_the_copy() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log.1", "single x 8\nsingle y 9\nsingle z 10\n");
    scene.append("log", "single a 1\n");
    scene.poll();
    std::fs::write(scene.path("log"), "single b 2\n").unwrap();
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("b", 2)]));
    assert_eq!(scene.counts().truncations, 1);
}

#[test]
fn a_writer_that_does_not_append_leaves_zeros_that_are_skipped() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 1\n");
    scene.poll();
    std::fs::copy(scene.path("log"), scene.path("log.1")).unwrap();
    let zeros = "\0".repeat(100_000);
    std::fs::write(scene.path("log"), format!("{zeros}single b 2\n")).unwrap();
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("b", 2)]));
    assert_eq!(scene.counts().bad_lines, 0);
}

#[test]
fn bad_lines_name_the_file_and_the_offset() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 1\nwhat\n");
    scene.poll();
    let counts = scene.counts();
    let expected = format!(
        "{}: offset 11: expected begin, end of what began, or single, found \"what\"",
        scene.path("log").display()
    );
    assert_eq!((counts.bad_lines, counts.last_bad_line), (1, expected));
}

#[test]
fn a_transfer_that_cannot_have_happened_is_a_bad_line() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 9007199254740993\nsingle b 7\n");
    scene.poll();
    let counts = scene.follower.counts();
    assert_eq!((counts.lines, counts.transfers, counts.bad_lines), (2, 1, 1));
    assert!(
        counts.last_bad_line.ends_with("expected a size of at most 2^53 bytes, found \"9007199254740993\"")
    );
}

#[test]
fn overlong_lines_and_invalid_utf8_are_counted() {
    let mut scene = Scene::new(Start::Beginning);
    let mut bytes = vec![b'x'; MAX_LINE_BYTES + 1];
    bytes.extend_from_slice(b"\nsingle a\xff 1\n");
    std::fs::write(scene.path("log"), bytes).unwrap();
    while scene.counts().lines == 0 {
        scene.poll_bytes(50_000);
        scene.restart_if_inside_line();
    }
    assert_eq!(scene.transfers(), pairs(&[("a\u{fffd}", 1)]));
    let counts = scene.counts();
    assert_eq!((counts.bad_lines, counts.invalid_utf8), (0, 1));
}

impl Scene {
    /// Restarts once, inside the overlong line.
    fn restart_if_inside_line(&mut self) {
        let position = self.follower.position();
        if self.now_us == NOW_US && position.is_some_and(|position| position.offset == 0) {
            self.now_us += 1;
            self.restart();
        }
    }
}

#[test]
fn a_file_with_the_inode_of_a_deleted_one_is_a_new_file() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 1\n");
    scene.poll();
    let mut position = scene.follower.position().unwrap();
    std::fs::remove_file(scene.path("log")).unwrap();
    scene.append("log", "single b 2\nsingle c 3\n");
    let metadata = std::fs::metadata(scene.path("log")).unwrap();
    position.inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    scene.restart_at(Start::At(position));
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("b", 2), ("c", 3)]));
}

#[test]
fn more_rotated_files_than_are_kept_in_mind_are_read_one_after_the_other() {
    for restarts in [false, true] {
        let mut scene = Scene::new(Start::Beginning);
        scene.append("log", "single a00 0\n");
        scene.poll();
        let mut expected = vec![("a00".to_owned(), 0)];
        // Nothing is read during these rotations.
        for number in 1..=40_u64 {
            let rotated = format!("log-{}", 20_261_100 + number);
            scene.set_modified("log", 1_000 + number);
            scene.rename("log", &rotated);
            scene.append("log", &format!("single a{number:02} {number}\nsingle b{number:02} {number}\n"));
            expected.extend(["a", "b"].map(|letter| (format!("{letter}{number:02}"), number)));
        }
        for poll in 0..600 {
            if restarts && poll % 5 == 0 {
                scene.restart();
            }
            scene.poll_bytes(10);
            let position = scene.follower.position().unwrap();
            assert!(position.earlier.len() < MAX_FILES, "{}", position.earlier.len());
        }
        expected.sort();
        assert_eq!(scene.transfers(), expected, "restarts {restarts}");
        assert_eq!((scene.counts().lost_rotations, scene.counts().cut_lines), (0, 0));
        assert!(restarts || scene.counts().rotations == 40);
    }
}

#[test]
fn files_that_were_rotated_after_a_compressed_one_are_read() {
    for knows_time in [true, false] {
        let mut scene = Scene::new(Start::Beginning);
        scene.append("log.1", "single old 9\n");
        scene.set_modified("log.1", 900);
        scene.append("log", "single a 1\n");
        scene.set_modified("log", 1_000);
        scene.poll();
        // Two rotations with `delaycompress`. The first file is removed last, so that no other has its inode.
        scene.rename("log", "removed");
        scene.rename("log.1", "log.3");
        scene.append("log.2.gz", "compressed");
        scene.set_modified("log.2.gz", 1_050);
        scene.append("log.1", "single b 2\n");
        scene.set_modified("log.1", 1_100);
        scene.append("log", "single c 3\n");
        std::fs::remove_file(scene.path("removed")).unwrap();
        let mut position = scene.follower.position().unwrap();
        assert_eq!(position.modified_ns, 1_000_000_000_000);
        let expected = match knows_time {
            true => pairs(&[("a", 1), ("b", 2), ("c", 3)]),
            false => pairs(&[("a", 1), ("c", 3)]),
        };
        if !knows_time {
            position.modified_ns = 0;
        }
        scene.restart_at(Start::At(position));
        scene.poll();
        assert_eq!(scene.transfers(), expected);
        assert_eq!(scene.counts().lost_rotations, 1);
    }
}

#[test]
fn a_position_of_an_earlier_version_is_understood() {
    let saved = r#"{"device":1,"inode":2,"offset":3,"needs_from":3,"head_bytes":4,"head_digest":5}"#;
    let position: Position = serde_json::from_str(saved).unwrap();
    let expected = Position {
        device: 1,
        inode: 2,
        offset: 3,
        needs_from: 3,
        head_bytes: 4,
        head_digest: 5,
        ..Position::default()
    };
    assert_eq!(position, expected);
}

#[test]
fn an_error_while_resuming_keeps_the_position() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 1\n");
    scene.poll();
    let rotated = scene.follower.position().unwrap();
    scene.rename("log", "log.1");
    scene.append("log.1", "single b 2\n");
    // A file that can be opened, but not read.
    std::os::unix::fs::symlink("/proc/self/mem", scene.path("log")).unwrap();
    let unreadable = File::open(scene.path("log")).unwrap();
    let FileId { device, inode } = FileId::of(&unreadable.metadata().unwrap());
    let earlier = vec![rotated.clone()];
    let position = Position { device, inode, offset: 0, needs_from: 0, earlier, ..rotated };
    scene.restart_at(Start::At(position.clone()));
    for _ in 0..2 {
        scene.follower.poll(scene.now_us, ALL, &mut scene.found).unwrap_err();
        assert_eq!(scene.follower.position(), Some(position.clone()));
        assert_eq!((scene.counts(), scene.found.len()), (FollowCounts::default(), 1));
    }
    std::fs::remove_file(scene.path("log")).unwrap();
    scene.append("log", "single c 3\n");
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("b", 2), ("c", 3)]));
}

#[test]
fn a_poll_says_that_there_may_be_more_while_known_lines_are_read_again() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "begin b\n");
    scene.append("log", &"single a 1\n".repeat(100));
    assert!(!scene.poll_bytes(ALL));
    scene.restart();
    scene.found.clear();
    let offset = |scene: &Scene| scene.follower.position().unwrap().offset;
    let before = offset(&scene);
    for _ in 0..11 {
        assert!(scene.poll_bytes(100));
        assert_eq!(offset(&scene), before);
    }
    assert!(!scene.poll_bytes(100));
    scene.append("log", "end b 2\n");
    assert!(!scene.poll_bytes(100));
    assert_eq!(scene.transfers(), pairs(&[("b", 2)]));
}

#[test]
fn a_poll_ends_when_its_transfers_fill_a_report() {
    let long = "x".repeat(500);
    for (count, name, most) in [(20_000, "", MAX_REPORT_ROWS), (3_000, long.as_str(), 1_100)] {
        let mut scene = Scene::new(Start::Beginning);
        let text: String = (0..count).map(|number| format!("single {name}{number} 1\n")).collect();
        scene.append("log", &text);
        let mut more = true;
        while more {
            let before = scene.found.len();
            more = scene.poll_bytes(ALL);
            assert!(scene.found.len() - before <= most);
            scene.restart();
        }
        let mut transfers = scene.transfers();
        transfers.dedup();
        assert_eq!((transfers.len(), scene.found.len()), (count, count));
    }
}

#[test]
fn a_finished_file_that_is_written_to_again_is_read_on() {
    for restarts in [false, true] {
        let mut scene = Scene::new(Start::Beginning);
        scene.append("log", "single a 1\n");
        scene.poll();
        scene.rename("log", "log.1");
        scene.append("log", "single b 2\n");
        scene.poll();
        scene.now_us += 2 * LINGER_US;
        scene.poll();
        assert!(scene.follower.position().unwrap().earlier.is_empty());
        // An old writer makes it younger than its successor.
        scene.append("log.1", "single late 9\n");
        scene.set_modified("log", 1_000);
        scene.set_modified("log.1", 2_000);
        scene.rename("log.1", "log.2");
        scene.rename("log", "log.1");
        scene.append("log", "single c 3\n");
        if restarts {
            scene.restart();
        }
        scene.poll();
        assert_eq!(scene.transfers(), pairs(&[("a", 1), ("b", 2), ("c", 3), ("late", 9)]));
        scene.now_us += 2 * LINGER_US;
        scene.poll();
        assert_eq!(scene.follower.position().unwrap().finished.len(), 2);
    }
}

#[test]
fn a_file_with_the_inode_of_a_finished_one_is_a_new_file() {
    let mut scene = Scene::new(Start::Beginning);
    scene.append("log", "single a 1\n");
    scene.poll();
    scene.rename("log", "log.1");
    scene.append("log", "single b 2\n");
    scene.poll();
    scene.now_us += 2 * LINGER_US;
    scene.poll();
    scene.set_modified("log", 1_000);
    scene.rename("log", "log.2");
    // The same inode with other contents, as after the kernel used it again.
    std::fs::write(scene.path("log.1"), "single n 5\n").unwrap();
    scene.append("log", "single c 3\n");
    scene.restart();
    scene.poll();
    assert_eq!(scene.transfers(), pairs(&[("a", 1), ("b", 2), ("c", 3), ("n", 5)]));
}

/// Runs logrotate; `None` if it is not installed.
fn logrotate(scene: &Scene, options: &str) -> Option<()> {
    let configuration = format!("{} {{\n{options}\nrotate 20\n}}\n", scene.path("log").display());
    std::fs::write(scene.path("rotate.conf"), configuration).unwrap();
    let mut command = std::process::Command::new("logrotate");
    command.arg("--force").arg("--state").arg(scene.path("rotate.state")).arg(scene.path("rotate.conf"));
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!("skipped: needs logrotate");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_transfer_is_found_once_while_logrotate_rotates() {
    for options in [
        "create",
        "nocreate",
        "create\ndateext\ndateformat -%Y%m%d-%s",
        "create\ncompress\ndelaycompress",
        "copytruncate",
        "copytruncate\ndateext\ndateformat -%Y%m%d-%s",
    ] {
        let mut scene = Scene::new(Start::Beginning);
        let mut expected = Vec::new();
        let rounds = if options.contains("%s") { 3_u64 } else { 6 };
        for round in 0..rounds {
            scene.append("log", &format!("single a{round} {round}\nbegin b{round}\nsing"));
            if round % 2 == 0 {
                scene.poll();
            }
            scene.append("log", &format!("le c{round} {round}\n"));
            if round % 3 == 0 {
                scene.restart();
            }
            if logrotate(&scene, options).is_none() {
                return;
            }
            // Names with seconds must differ.
            if options.contains("%s") {
                std::thread::sleep(std::time::Duration::from_millis(1_100));
            }
            scene.append("log", &format!("end b{round} {round}\n"));
            scene.poll();
            expected.extend(["a", "b", "c"].map(|id| (format!("{id}{round}"), round)));
        }
        expected.sort();
        assert_eq!(scene.transfers(), expected, "{options}");
        let counts = scene.counts();
        assert_eq!((counts.bad_lines, counts.cut_lines, counts.lost_rotations), (0, 0, 0), "{options}");
    }
}

/// What may happen to a log and to its reader.
#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    Poll(u64),
    Rotate,
    CopyTruncate,
    Restart,
    Crash(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_usize..40).prop_map(Step::Write),
        4 => (1_u64..60).prop_map(Step::Poll),
        1 => Just(Step::Rotate),
        1 => Just(Step::CopyTruncate),
        1 => Just(Step::Restart),
        1 => (1_u64..60).prop_map(Step::Crash),
    ]
}

/// A writer that finishes a line in the file in which it began it.
struct Writer {
    text: String,
    written: usize,
    /// Name of the file of the incomplete line.
    file: String,
}

impl Writer {
    fn write(&mut self, scene: &Scene, bytes: usize) {
        for _ in 0..bytes {
            let Some(byte) = self.text.get(self.written..self.written + 1) else { return };
            let file = if self.file.is_empty() { "log" } else { &self.file };
            scene.append(file, byte);
            self.written += 1;
            if byte == "\n" {
                self.file.clear();
            } else if self.file.is_empty() {
                "log".clone_into(&mut self.file);
            }
        }
    }
}

fn shift_rotated(scene: &Scene, writer: &mut Writer, first: &dyn Fn()) {
    for number in (1..100).rev() {
        let (from, to) = (format!("log.{number}"), format!("log.{}", number + 1));
        if scene.path(&from).exists() {
            scene.rename(&from, &to);
            if writer.file == from {
                writer.file = to;
            }
        }
    }
    first();
}

/// Reads until nothing is left.
fn read_all(scene: &mut Scene) {
    for _ in 0..200 {
        scene.poll_bytes(10_000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_history_of_a_log_gives_every_transfer_once(steps in proptest::collection::vec(step(), 1..60)) {
        let mut scene = Scene::new(Start::Beginning);
        let text: String = (0..40).map(|n| match n % 3 {
            0 => format!("begin b{n}\n"),
            1 => format!("single s{n} {n}\n"),
            _ => format!("end b{} {n}\n", n - 2),
        }).collect();
        let mut writer = Writer { text, written: 0, file: String::new() };
        scene.append("log", "");
        scene.poll();
        let mut saved = scene.follower.position();
        let mut reported = scene.found.len();
        // What happens while nothing is read: any number of rotations, or one truncation.
        let (mut rotations, mut truncations) = (0, 0);
        // A file of which less than a line was read may begin with the same bytes after its truncation.
        let mut has_head = false;
        for step in steps {
            match step {
                Step::Write(bytes) => writer.write(&scene, bytes),
                Step::Poll(bytes) => {
                    scene.poll_bytes(bytes);
                    saved = scene.follower.position();
                    reported = scene.found.len();
                    // A small poll may not have reached the current file.
                    if bytes >= 40 {
                        read_all(&mut scene);
                        saved = scene.follower.position();
                        reported = scene.found.len();
                        (rotations, truncations) = (0, 0);
                        has_head = std::fs::read(scene.path("log")).unwrap().contains(&b'\n');
                    }
                }
                Step::Rotate if truncations == 0 => {
                    rotations += 1;
                    let directory = scene.path("log");
                    let rotated = scene.path("log.1");
                    shift_rotated(&scene, &mut writer, &|| std::fs::rename(&directory, &rotated).unwrap());
                    if writer.file == "log" {
                        "log.1".clone_into(&mut writer.file);
                    }
                    // mtime has the resolution of the kernel's tick.
                    std::thread::sleep(std::time::Duration::from_millis(11));
                    scene.append("log", "");
                }
                Step::CopyTruncate if has_head && truncations == 0 && rotations == 0 && writer.file.is_empty() => {
                    truncations += 1;
                    has_head = false;
                    let scene = &scene;
                    shift_rotated(scene, &mut writer, &|| scene.copy_and_truncate("log.1"));
                }
                Step::Rotate | Step::CopyTruncate => {}
                Step::Restart => scene.restart_at(saved.clone().map_or(Start::Beginning, Start::At)),
                Step::Crash(bytes) => {
                    scene.poll_bytes(bytes);
                    scene.found.truncate(reported);
                    scene.restart_at(saved.clone().map_or(Start::Beginning, Start::At));
                }
            }
            if matches!(step, Step::Restart) {
                scene.found.truncate(reported);
            }
        }
        writer.write(&scene, usize::MAX);
        read_all(&mut scene);
        let mut expected: Vec<(String, u64)> = (0..40_u64).filter_map(|n| match n % 3 {
            0 => None,
            1 => Some((format!("s{n}"), n)),
            _ => Some((format!("b{}", n - 2), n)),
        }).collect();
        expected.sort();
        prop_assert_eq!(scene.transfers(), expected);
        let counts = scene.counts();
        prop_assert_eq!((counts.bad_lines, counts.cut_lines, counts.lost_rotations), (0, 0, 0), "{:?}", counts);
    }

    #[test]
    fn any_split_into_polls_gives_the_same_transfers(polls in proptest::collection::vec(1_u64..30, 1..200)) {
        let mut scene = Scene::new(Start::Beginning);
        scene.append("log", LOG);
        for bytes in polls {
            scene.poll_bytes(bytes);
        }
        scene.poll();
        prop_assert_eq!(scene.transfers(), all_of_log());
    }

    #[test]
    fn any_bytes_are_lines(bytes in proptest::collection::vec(any::<u8>(), 0..2_000), polls in 1_u64..500) {
        let mut scene = Scene::new(Start::Beginning);
        std::fs::write(scene.path("log"), &bytes).unwrap();
        for _ in 0..bytes.len() as u64 / polls + 1 {
            scene.poll_bytes(polls);
        }
        let line_feeds = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        prop_assert_eq!(scene.counts().lines, line_feeds);
    }
}
