//! Countries and AS numbers of addresses, from local databases in MMDB format (GeoLite2, DB-IP, IPinfo).
//!
//! | database | fields that are read |
//! |---|---|
//! | MaxMind, DB-IP: country, city | `country.iso_code` |
//! | MaxMind, DB-IP: ASN | `autonomous_system_number` |
//! | IPinfo | `country_code`, or `country` as text; `asn` such as `AS64496` |
//!
//! Of several databases the first that has a value applies. The AS number of a record stays if its exporter sent one,
//! unless [`GeoDatabases::replace_as`]. Private, loopback, link-local, multicast and unspecified addresses are not looked
//! up.
//!
//! **Reload.** [`GeoDatabases::refresh`] reads a file again when its size or its time of change is another, as after a
//! daily update. A file that cannot be read then keeps its earlier contents, and is counted.
//!
//! **Cost.** Each thread remembers the last [`CACHE_SLOTS`] addresses, 24 bytes each. A file is read into memory.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::SystemTime;

use maxminddb::Reader;
use serde::Deserialize;
use thalweg_wire::flow_export::{Address, Name, RecordBatch, Sparse};

/// Addresses that a thread remembers.
const CACHE_SLOTS: usize = 1 << 14;

/// Maximum size of a database: the largest, of cities, have some 100 MB.
const MAX_BYTES: u64 = 4 << 30;

/// A database that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GeoError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is no database.
    #[error("{}: expected a database in MMDB format (GeoLite2, DB-IP, IPinfo): {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: maxminddb::MaxMindDbError,
    },
}

/// What is known about an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Two letters of ISO 3166-1, or none.
    pub country: Name,
    /// AS number; 0 if unknown.
    pub as_number: u32,
}

/// Counters and state of the databases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeoStatistics {
    /// Files.
    pub files: u64,
    /// Reads of files that had changed.
    pub reloads: u64,
    /// Failed reads of files that had changed; the earlier contents stay.
    pub reload_errors: u64,
    /// The last of these, empty if none.
    pub last_error: String,
}

/// Databases, shared by threads.
#[derive(Debug)]
pub struct GeoDatabases {
    files: Mutex<Vec<DatabaseFile>>,
    loaded: RwLock<Loaded>,
    /// Changes with each reload.
    generation: AtomicU64,
    replaces_as: bool,
    statistics: Mutex<GeoStatistics>,
}

#[derive(Debug)]
struct DatabaseFile {
    path: PathBuf,
    stamp: Option<Stamp>,
}

/// A database in memory.
type Database = Reader<Vec<u8>>;

/// The databases, in the order of precedence.
type Loaded = Arc<Vec<Arc<Database>>>;

/// Size and time of change.
type Stamp = (u64, Option<SystemTime>);

/// A value of a database, of any of the known formats.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry<'a> {
    #[serde(borrow)]
    country: Country<'a>,
    country_code: &'a str,
    autonomous_system_number: u32,
    asn: &'a str,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Country<'a> {
    Code(&'a str),
    Record {
        #[serde(default)]
        iso_code: &'a str,
    },
}

impl Default for Country<'_> {
    fn default() -> Self {
        Country::Code("")
    }
}

impl GeoDatabases {
    /// Reads databases.
    ///
    /// # Errors
    /// If a file cannot be read, or is no database.
    pub fn open(paths: &[PathBuf]) -> Result<GeoDatabases, GeoError> {
        let mut files = Vec::new();
        let mut readers = Vec::new();
        for path in paths {
            files.push(DatabaseFile { path: path.clone(), stamp: stamp(path) });
            readers.push(Arc::new(read(path)?));
        }
        let statistics = GeoStatistics { files: files.len() as u64, ..GeoStatistics::default() };
        Ok(GeoDatabases {
            files: Mutex::new(files),
            loaded: RwLock::new(Arc::new(readers)),
            generation: AtomicU64::new(1),
            replaces_as: false,
            statistics: Mutex::new(statistics),
        })
    }

    /// Sets whether AS numbers of the databases replace those that exporters sent.
    #[must_use]
    pub fn replace_as(self, replaces_as: bool) -> GeoDatabases {
        GeoDatabases { replaces_as, ..self }
    }

    /// Reads files that have changed. Call it every few seconds.
    pub fn refresh(&self) {
        for (index, file) in lock(&self.files).iter_mut().enumerate() {
            let now = stamp(&file.path);
            if now.is_none() || now == file.stamp {
                continue;
            }
            file.stamp = now;
            let result = read(&file.path);
            let mut statistics = lock(&self.statistics);
            match result {
                Ok(reader) => {
                    let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
                    let mut readers = (**loaded).clone();
                    readers[index] = Arc::new(reader);
                    *loaded = Arc::new(readers);
                    self.generation.fetch_add(1, Ordering::Release);
                    statistics.reloads += 1;
                }
                Err(error) => {
                    statistics.reload_errors += 1;
                    statistics.last_error = error.to_string();
                }
            }
        }
    }

    /// Returns counters and the last error.
    pub fn statistics(&self) -> GeoStatistics {
        lock(&self.statistics).clone()
    }

    /// Returns what the databases know about an address.
    pub fn lookup(&self, address: IpAddr) -> Place {
        let readers = self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone();
        find(&readers, address)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

fn read(path: &Path) -> Result<Database, GeoError> {
    let failed = |source| GeoError::Read { path: path.to_owned(), source };
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > MAX_BYTES {
        return Err(failed(std::io::Error::other(format!("{length} bytes, more than the maximum of 4 GiB"))));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    Reader::from_source(bytes).map_err(|source| GeoError::Format { path: path.to_owned(), source })
}

fn find(readers: &[Arc<Database>], address: IpAddr) -> Place {
    let mut place = Place::default();
    if !is_public(address) {
        return place;
    }
    for reader in readers {
        // A damaged entry is as good as none.
        let Some(entry) =
            reader.lookup(address).ok().and_then(|found| found.decode::<Entry<'_>>().ok().flatten())
        else {
            continue;
        };
        if !place.country.is_some() {
            place.country = entry.country();
        }
        if place.as_number == 0 {
            place.as_number = entry.as_number();
        }
    }
    place
}

impl Entry<'_> {
    fn country(&self) -> Name {
        let (Country::Code(code) | Country::Record { iso_code: code }) = self.country;
        let is_code = |code: &&str| code.len() == 2 && code.bytes().all(|letter| letter.is_ascii_uppercase());
        let code = [code, self.country_code].into_iter().find(is_code);
        code.and_then(Name::of).unwrap_or_default()
    }

    fn as_number(&self) -> u32 {
        match self.autonomous_system_number {
            0 => self.asn.trim_start_matches("AS").parse().unwrap_or(0),
            number => number,
        }
    }
}

/// Whether an address is one of the public Internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let is_shared = v4.octets()[0] == 100 && v4.octets()[1] & 0xC0 == 64;
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast())
                && v4.octets()[0] != 0
                && !is_shared
        }
        IpAddr::V6(v6) => {
            let is_special = v6.is_loopback() || v6.is_multicast() || v6.is_unspecified();
            !(is_special || v6.is_unique_local() || v6.is_unicast_link_local())
        }
    }
}

/// Fills the columns of countries and AS numbers; each thread has its own.
#[derive(Debug)]
pub struct GeoAnnotator {
    databases: Arc<GeoDatabases>,
    readers: Loaded,
    generation: u64,
    /// Direct-mapped by a hash of the address.
    cache: Box<[(Address, Place)]>,
}

impl GeoAnnotator {
    /// Creates an annotator.
    pub fn new(databases: Arc<GeoDatabases>) -> GeoAnnotator {
        GeoAnnotator {
            readers: Arc::new(Vec::new()),
            generation: 0,
            cache: vec![(Address::NONE, Place::default()); CACHE_SLOTS].into(),
            databases,
        }
    }

    /// Fills countries, and AS numbers that are 0.
    pub fn annotate(&mut self, rows: &mut RecordBatch) {
        let generation = self.databases.generation.load(Ordering::Acquire);
        if generation != self.generation {
            self.generation = generation;
            self.readers = self.databases.loaded.read().unwrap_or_else(PoisonError::into_inner).clone();
            self.cache.fill((Address::NONE, Place::default()));
        }
        let RecordBatch { source_address, source_as, source_country, .. } = rows;
        self.fill(source_address, source_as, source_country);
        let RecordBatch { destination_address, destination_as, destination_country, .. } = rows;
        self.fill(destination_address, destination_as, destination_country);
    }

    fn fill(&mut self, addresses: &[Address], as_numbers: &mut [u32], countries: &mut Sparse<Name>) {
        for (row, (&address, as_number)) in addresses.iter().zip(as_numbers).enumerate() {
            let place = self.place(address);
            if place.as_number != 0 && (*as_number == 0 || self.databases.replaces_as) {
                *as_number = place.as_number;
            }
            countries.set(row, place.country);
        }
    }

    fn place(&mut self, address: Address) -> Place {
        let folded = (address.0 ^ address.0 >> 64) as u64;
        let slot = (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50) as usize % CACHE_SLOTS;
        let (cached, place) = self.cache[slot];
        if cached == address {
            return place;
        }
        let place = address.ip().map_or_else(Place::default, |address| find(&self.readers, address));
        self.cache[slot] = (address, place);
        place
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use thalweg_wire::flow_export::Record;

    use super::*;

    /// Made by `tests/data/make_mmdb.py` with the package mmdb_writer.
    const COUNTRY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/country.mmdb");
    const ASN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/asn.mmdb");
    const IPINFO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ipinfo.mmdb");

    fn databases(paths: &[&str]) -> GeoDatabases {
        GeoDatabases::open(&paths.iter().map(PathBuf::from).collect::<Vec<_>>()).unwrap()
    }

    fn place(databases: &GeoDatabases, address: &str) -> (&'static str, u32) {
        let place = databases.lookup(address.parse().unwrap());
        (place.country.text(), place.as_number)
    }

    #[test]
    fn every_format_is_read() {
        let both = databases(&[COUNTRY, ASN]);
        for (address, expected) in [
            ("198.51.100.7", ("DE", 64_496)),
            ("203.0.113.200", ("FR", 0)),
            ("2001:db8:1::1", ("JP", 64_497)),
            ("192.0.2.1", ("", 0)),
            ("10.0.0.1", ("", 0)),
        ] {
            assert_eq!(place(&both, address), expected, "{address}");
        }
        let ipinfo = databases(&[IPINFO]);
        assert_eq!(place(&ipinfo, "198.51.100.7"), ("NL", 64_500));
        assert_eq!(place(&ipinfo, "203.0.113.9"), ("BR", 0));
        assert_eq!(
            place(&databases(&[IPINFO, COUNTRY, ASN]), "198.51.100.7"),
            ("NL", 64_500),
            "the first applies"
        );
    }

    #[test]
    fn exported_as_numbers_stay_unless_told_otherwise() {
        let row = |source_as| Record {
            source_address: "198.51.100.7".parse::<IpAddr>().unwrap().into(),
            source_as,
            ..Record::default()
        };
        for (replaces, expected) in [(false, [64_496, 65_000]), (true, [64_496, 64_496])] {
            let databases = Arc::new(databases(&[COUNTRY, ASN]).replace_as(replaces));
            let mut rows = RecordBatch::default();
            [row(0), row(65_000)].iter().for_each(|row| rows.push(row));
            GeoAnnotator::new(databases).annotate(&mut rows);
            rows.check_invariants();
            assert_eq!(rows.source_as, expected);
            assert_eq!(rows.source_country.get(1).text(), "DE");
            assert_eq!((rows.destination_as[0], rows.destination_country.values()), (0, None));
        }
    }

    #[test]
    fn a_replaced_file_is_read_again_and_a_bad_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("country.mmdb");
        std::fs::copy(IPINFO, &path).unwrap();
        let databases = Arc::new(GeoDatabases::open(std::slice::from_ref(&path)).unwrap());
        let mut annotator = GeoAnnotator::new(databases.clone());
        let mut country = || {
            let mut rows = RecordBatch::default();
            let source_address = "198.51.100.7".parse::<IpAddr>().unwrap().into();
            rows.push(&Record { source_address, ..Record::default() });
            annotator.annotate(&mut rows);
            rows.source_country.get(0).text()
        };
        assert_eq!(country(), "NL");
        databases.refresh();
        assert_eq!(databases.statistics().reloads, 0, "unchanged");
        std::fs::write(&path, b"not a database").unwrap();
        databases.refresh();
        assert_eq!((country(), databases.statistics().reload_errors), ("NL", 1));
        assert!(databases.statistics().last_error.contains("expected a database in MMDB format"));
        std::fs::copy(COUNTRY, &path).unwrap();
        databases.refresh();
        assert_eq!((country(), databases.statistics().reloads), ("DE", 1));
        std::fs::remove_file(&path).unwrap();
        databases.refresh();
        assert_eq!(country(), "DE", "between removal and replacement");
    }

    #[test]
    fn files_that_are_no_databases_are_named() {
        let error = GeoDatabases::open(&["/nonexistent.mmdb".into()]).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent.mmdb: No such file"), "{error}");
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let error = GeoDatabases::open(&[here.into()]).unwrap_err().to_string();
        assert!(error.contains("Cargo.toml: expected a database in MMDB format"), "{error}");
    }
}
