//! Templates that outlive the process.
//!
//! Exporters resend templates over UDP after minutes, or after thousands of records. So the file `DIR/spool/NAME/templates`
//! keeps the templates and sampling intervals of all sessions over UDP:
//!
//! ```text
//! file = "thwtemplate" u8 FORMAT, u64 checksum of the sessions (XXH3), session*
//! ```
//!
//! [`SavedSession`] defines a session. In format 1, sessions have no names. A file of a later format is kept under another
//! name, for the version of the program that wrote it. The file is written within about a second after a change, every minute because
//! templates were refreshed, and at the end. A receiver restores a session when its first datagram arrives, because the
//! kernel decides which receiver that is. Sessions that have not been heard since the start stay in the file until their
//! templates expire.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use thalweg_wire::flow_export::decode::{SavedNames, SavedSession};
use thalweg_wire::flow_export::{Decoder, Limits};
use thalweg_wire::{Nanos, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use super::outlet::lock;

const MAGIC: &[u8; 11] = b"thwtemplate";

/// Version of the format.
const FORMAT: u8 = 2;

const HEADER: usize = MAGIC.len() + 1 + 8;

/// Minimum time between two writes.
const WRITE_INTERVAL: Nanos = Nanos::from_secs(1);

/// Templates are saved this often to keep the times of their last refresh.
const REFRESH_INTERVAL: Nanos = Nanos::from_secs(60);

/// Maximum bytes saved by each receiver: 20,000 exporters with five templates each.
const MAX_BYTES: usize = 16 << 20;

/// Counters of the file of templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateFileReport {
    /// Sessions read at the start.
    pub sessions: u64,
    /// Their templates.
    pub templates: u64,
    /// Sessions that were not saved because the file has a size limit, at the last write.
    pub sessions_left_out: u64,
    /// Failures to read or write the file. Writes are retried.
    pub errors: u64,
    /// The last error.
    pub last_error: Option<String>,
}

/// The file of templates.
pub(super) struct TemplateFile {
    path: PathBuf,
    limits: Limits,
    waiting: Arc<WaitingSessions>,
    published: Vec<Arc<Mutex<Published>>>,
    /// Sum of the versions in the file.
    written: u64,
    next_write: Timestamp,
    report: TemplateFileReport,
}

/// Sessions read from the file, until their exporters are heard again.
#[derive(Default)]
pub(super) struct WaitingSessions {
    count: AtomicUsize,
    sessions: Mutex<HashMap<SocketAddr, SavedSession>>,
}

/// The sessions of a receiver, for the file.
#[derive(Default)]
pub(super) struct Published {
    version: u64,
    sessions: Vec<u8>,
    left_out: u64,
}

/// Restores and publishes the sessions of one receiver.
pub(super) struct TemplateKeeper {
    waiting: Arc<WaitingSessions>,
    published: Arc<Mutex<Published>>,
    /// The version of the decoder's sessions that was published.
    decoder_version: u64,
    last_publication: Timestamp,
}

impl TemplateFile {
    /// Reads the file of an earlier run. A file that cannot be read is ignored and counted.
    pub(super) fn open(path: PathBuf, limits: Limits, now: Timestamp) -> TemplateFile {
        let mut report = TemplateFileReport::default();
        let sessions = read(&path).unwrap_or_else(|error| {
            report.note_error("read", &path, &error);
            Vec::new()
        });
        let valid = sessions.into_iter().filter(|session| !session.is_expired(now, &limits));
        let sessions: HashMap<_, _> = valid.map(|session| (session.from(), session)).collect();
        report.sessions = sessions.len() as u64;
        report.templates = sessions.values().map(|session| session.templates() as u64).sum();
        let waiting =
            WaitingSessions { count: AtomicUsize::new(sessions.len()), sessions: Mutex::new(sessions) };
        let (waiting, published, next_write) = (Arc::new(waiting), Vec::new(), Timestamp::default());
        TemplateFile { path, limits, waiting, published, written: 0, next_write, report }
    }

    /// Returns the part of a new receiver.
    pub(super) fn keeper(&mut self) -> TemplateKeeper {
        let published = Arc::<Mutex<Published>>::default();
        self.published.push(published.clone());
        TemplateKeeper {
            waiting: self.waiting.clone(),
            published,
            decoder_version: 0,
            last_publication: Timestamp::default(),
        }
    }

    /// Writes the file if sessions have changed and the last write is long enough ago.
    pub(super) fn tick(&mut self, now: Timestamp) {
        // If the clock was set back, do not wait until it catches up.
        if now >= self.next_write || self.next_write.since(now) > WRITE_INTERVAL {
            self.next_write = now + WRITE_INTERVAL;
            self.write(now);
        }
    }

    /// Writes the file if sessions have changed.
    pub(super) fn write(&mut self, now: Timestamp) {
        let (mut version, mut sessions, mut left_out) = (0, vec![0; HEADER], 0);
        for published in &self.published {
            let published = lock(published);
            version += published.version;
            sessions.extend(&published.sessions);
            left_out += published.left_out;
        }
        if version == self.written {
            return;
        }
        self.waiting.encode(now, &self.limits, &mut sessions);
        self.report.sessions_left_out = left_out;
        match replace(&self.path, sessions) {
            Ok(()) => self.written = version,
            Err(error) => self.report.note_error("write", &self.path, &error),
        }
    }

    pub(super) fn report(&self) -> TemplateFileReport {
        self.report.clone()
    }
}

impl TemplateFileReport {
    fn note_error(&mut self, operation: &str, path: &Path, error: &io::Error) {
        self.errors += 1;
        self.last_error = Some(format!("cannot {operation} {}: {error}", path.display()));
    }
}

impl WaitingSessions {
    fn take(&self, from: SocketAddr) -> Option<SavedSession> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut sessions = lock(&self.sessions);
        let taken = sessions.remove(&from);
        self.count.store(sessions.len(), Ordering::Relaxed);
        taken
    }

    fn encode(&self, now: Timestamp, limits: &Limits, into: &mut Vec<u8>) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, session| !session.is_expired(now, limits));
        self.count.store(sessions.len(), Ordering::Relaxed);
        sessions.values().for_each(|session| session.encode(into));
    }
}

impl TemplateKeeper {
    /// Restores the session of a sender that is heard for the first time. Call it with each datagram.
    pub(super) fn restore(&self, from: SocketAddr, decoder: &mut Decoder, now: Timestamp) {
        if self.waiting.count.load(Ordering::Relaxed) > 0
            && !decoder.has_session(from)
            && let Some(session) = self.waiting.take(from)
        {
            decoder.restore(session, now);
        }
    }

    /// Publishes the sessions of the decoder if they have changed, or some time after the last time.
    pub(super) fn tick(&mut self, decoder: &Decoder, now: Timestamp) {
        let elapsed = now.since(self.last_publication);
        let has_changed = decoder.saved_version() != self.decoder_version;
        // If the clock was set back, do not wait until it catches up.
        let is_due = now < self.last_publication || elapsed >= REFRESH_INTERVAL;
        if is_due || has_changed && elapsed >= WRITE_INTERVAL {
            self.publish(decoder, now);
        }
    }

    /// Publishes the sessions of the decoder.
    pub(super) fn publish(&mut self, decoder: &Decoder, now: Timestamp) {
        self.decoder_version = decoder.saved_version();
        self.last_publication = now;
        let mut published = lock(&self.published);
        let Published { version, sessions, left_out } = &mut *published;
        let before = std::mem::take(sessions);
        *left_out = 0;
        for session in decoder.saved() {
            let length = sessions.len();
            session.encode(sessions);
            if sessions.len() > MAX_BYTES {
                sessions.truncate(length);
                *left_out += 1;
            }
        }
        *version += u64::from(before != *sessions);
    }
}

/// Reads the sessions; none if there is no file.
fn read(path: &Path) -> io::Result<Vec<SavedSession>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let damaged = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| damaged("it is not a file of templates"))?;
    let (&format, rest) = rest.split_first().ok_or_else(|| damaged("it is truncated"))?;
    let names = match format {
        1 => SavedNames::None,
        FORMAT => SavedNames::Present,
        _ => return Err(damaged(&keep(path, format)?)),
    };
    let (checksum, sessions) = rest.split_first_chunk().ok_or_else(|| damaged("it is truncated"))?;
    if xxh3_64(sessions) != u64::from_be_bytes(*checksum) {
        return Err(damaged("it is damaged (wrong checksum)"));
    }
    SavedSession::decode_all(sessions, names).map_err(|error| damaged(&error.to_string()))
}

/// Renames a file of an unknown format, because templates of this run will be written under its name. Returns a message.
fn keep(path: &Path, format: u8) -> io::Result<String> {
    let kept = path.with_extension(format!("format-{format}"));
    fs::rename(path, &kept)?;
    Ok(format!("it has format {format}, expected 1 to {FORMAT}; kept as {}", kept.display()))
}

/// Replaces the file by a complete one with these sessions, which follow the space for the header.
fn replace(path: &Path, mut bytes: Vec<u8>) -> io::Result<()> {
    let checksum = xxh3_64(&bytes[HEADER..]);
    let header = [&MAGIC[..], &[FORMAT], &checksum.to_be_bytes()].concat();
    bytes[..HEADER].copy_from_slice(&header);
    let part = path.with_extension("part");
    let mut file = File::create(&part)?;
    file.write_all(&bytes)?;
    file.sync_data()?;
    fs::rename(&part, path)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

    fn open(folder: &TempDir, now: Timestamp) -> TemplateFile {
        TemplateFile::open(folder.path().join("templates"), Limits::default(), now)
    }

    /// A NetFlow v9 message with template 256: one field of octets.
    fn template() -> Vec<u8> {
        let words = [9, 1, 0, 9, 25_941, 0x4C00, 0, 1, 0, 1, 0, 12, 256, 1, 1, 4u16];
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn exporter(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn decoder(port: u16) -> Decoder {
        let mut decoder = Decoder::new(Limits::default());
        decoder.datagram(exporter(port), NOW, &template(), &mut Default::default()).unwrap();
        decoder
    }

    #[test]
    fn sessions_are_restored_once_and_others_stay_in_the_file() {
        let folder = TempDir::new().unwrap();
        let mut file = open(&folder, NOW);
        for port in [1, 2] {
            file.keeper().publish(&decoder(port), NOW);
        }
        file.write(NOW);
        let mut next = open(&folder, NOW);
        assert_eq!(next.report(), TemplateFileReport { sessions: 2, templates: 2, ..Default::default() });
        let (mut keeper, mut heard) = (next.keeper(), Decoder::new(Limits::default()));
        keeper.restore(exporter(1), &mut heard, NOW);
        keeper.restore(exporter(3), &mut heard, NOW);
        let sources = heard.sources();
        assert_eq!((sources.len(), sources[0].counts.templates_restored), (1, 1));
        // The second exporter has not been heard yet.
        keeper.tick(&heard, NOW);
        next.tick(NOW);
        assert_eq!(open(&folder, NOW).report().sessions, 2);
        let after_expiry = NOW + Limits::default().template_lifetime + Nanos(1);
        assert_eq!(open(&folder, after_expiry).report().sessions, 0);
    }

    #[test]
    fn the_file_is_written_only_after_changes() {
        let folder = TempDir::new().unwrap();
        let mut file = open(&folder, NOW);
        let (mut keeper, decoder) = (file.keeper(), decoder(1));
        keeper.tick(&decoder, NOW);
        file.tick(NOW);
        fs::remove_file(&file.path).unwrap();
        let later = NOW + REFRESH_INTERVAL;
        keeper.tick(&decoder, later);
        file.tick(later);
        assert!(!file.path.exists(), "nothing has changed");
        let mut refreshed = decoder;
        refreshed.datagram(exporter(1), later, &template(), &mut Default::default()).unwrap();
        keeper.tick(&refreshed, later + REFRESH_INTERVAL);
        file.tick(later + REFRESH_INTERVAL);
        assert!(file.path.exists(), "the template was refreshed");
    }

    #[test]
    fn a_damaged_file_is_reported_and_ignored() {
        let folder = TempDir::new().unwrap();
        let mut file = open(&folder, NOW);
        file.keeper().publish(&decoder(1), NOW);
        file.write(NOW);
        let bytes = fs::read(&file.path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&file.path, &damaged).unwrap();
            let report = open(&folder, NOW).report();
            assert_eq!((report.sessions, report.errors), (0, 1), "byte {at}: {:?}", report.last_error);
            fs::write(&file.path, &bytes[..at]).unwrap();
            assert_eq!(open(&folder, NOW).report().errors, 1, "the first {at} bytes");
        }
    }

    /// What a collector of version 2 of the columns left, see `tests/data/version-2/README.md`.
    const VERSION_2: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/version-2");

    #[test]
    fn templates_of_the_previous_version_decode_data_at_once() {
        let folder = TempDir::new().unwrap();
        let file = fs::read(format!("{VERSION_2}/templates")).unwrap();
        assert_eq!(file[..12], *b"thwtemplate\x01");
        fs::write(folder.path().join("templates"), &file).unwrap();
        let message = fs::read(format!("{VERSION_2}/data-only")).unwrap();
        // The export time in the header of NetFlow v9.
        let now = Timestamp::new(u32::from_be_bytes(*message[8..].first_chunk().unwrap()).into(), 0);
        let mut file = open(&folder, now);
        assert_eq!(file.report(), TemplateFileReport { sessions: 2, templates: 15, ..Default::default() });
        let (keeper, mut decoder) = (file.keeper(), Decoder::new(Limits::default()));
        let from = SocketAddr::from(([127, 0, 0, 1], 20_009));
        keeper.restore(from, &mut decoder, now);
        let mut decoded = thalweg_wire::flow_export::Decoded::default();
        decoder.datagram(from, now, &message, &mut decoded).unwrap();
        let counts = decoder.sources()[0].counts;
        assert_eq!((counts.templates_restored, counts.templates_discarded, counts.held_sets), (5, 0, 0));
        assert!(decoded.flows.len() > 10, "{counts:?}");
        assert!(decoded.flows.source_as.iter().all(|number| (64500..64600).contains(number)));
        assert!(decoded.flows.sampling_interval.iter().all(|&interval| interval == 100));
    }

    #[test]
    fn a_file_of_a_later_format_is_kept_under_another_name() {
        let folder = TempDir::new().unwrap();
        let mut file = open(&folder, NOW);
        file.keeper().publish(&decoder(1), NOW);
        file.write(NOW);
        let mut bytes = fs::read(&file.path).unwrap();
        bytes[MAGIC.len()] = FORMAT + 1;
        fs::write(&file.path, &bytes).unwrap();
        let mut next = open(&folder, NOW);
        let error = next.report().last_error.unwrap();
        assert!(error.contains("it has format 3, expected 1 to 2; kept as"), "{error}");
        next.keeper().publish(&decoder(2), NOW);
        next.write(NOW);
        assert_eq!(fs::read(folder.path().join("templates.format-3")).unwrap(), bytes);
        assert_eq!(open(&folder, NOW).report().sessions, 1);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_reported_and_retried() {
        let folder = TempDir::new().unwrap();
        let directory = folder.path().join("spool");
        let mut file = TemplateFile::open(directory.join("templates"), Limits::default(), NOW);
        file.keeper().publish(&decoder(1), NOW);
        file.write(NOW);
        assert!(file.report().last_error.unwrap().contains("spool/templates"));
        fs::create_dir(directory).unwrap();
        file.write(NOW);
        assert!(file.path.exists());
        assert_eq!(file.report().errors, 1);
    }
}
