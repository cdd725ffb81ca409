//! Sketches that outlive their reader: program, memory and link are pinned under `/sys/fs/bpf/thalweg/NAME`.
//!
//! The program counts on while no process reads. A later reader with the same options continues: its first window begins
//! where the last one ended, because the snapshot at its beginning is pinned too. A reader with other options is refused.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bytemuck::bytes_of;
use nix::mount::{MsFlags, mount};
use thalweg_linux::bpf::map::MapKind;
use thalweg_linux::bpf::pin::pin;
use thalweg_linux::bpf::{AnyMap, Link, MapSpec, MappedRegion, Maps};
use thalweg_linux::name_lock::{LockError, NameLock};

use crate::error::DataplaneError;
use crate::kernel_sketches::{CONSTANTS_MAP, SHARED_MAPS, SharedMemory};
use crate::layout::Config;
use crate::snapshot::Snapshot;
use crate::spec::Specification;

/// Where the BPF file system is mounted.
const FILE_SYSTEM: &str = "/sys/fs/bpf";

/// The folder of all pinned sketches.
const FOLDER: &str = "/sys/fs/bpf/thalweg";

/// Files of a pin: the link is the last to be created, and `xdp` tells which kind it is of.
const LINK_XDP: &str = "link_xdp";
const LINK_TC: &str = "link_tc";
const CONSTANTS: &str = "constants";
const BEGINNING: &str = "beginning";

/// BPF_F_MMAPABLE of linux/bpf.h.
const FLAG_MAPPABLE: u32 = 1 << 10;

/// The longest name.
const MAX_NAME: usize = 64;

/// The words before a snapshot: its number and its bank of registers.
const HEADER_WORDS: usize = 2;

/// The name of pinned sketches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinName(String);

impl FromStr for PinName {
    type Err = DataplaneError;

    fn from_str(name: &str) -> Result<PinName, DataplaneError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        match (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_allowed) {
            true => Ok(PinName(name.to_owned())),
            false => Err(DataplaneError::PinName { name: name.to_owned() }),
        }
    }
}

impl fmt::Display for PinName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl PinName {
    /// Returns the folder.
    pub fn folder(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.0)
    }

    /// Whether sketches are pinned under the name.
    pub fn exists(&self) -> bool {
        let folder = self.folder();
        [LINK_XDP, LINK_TC].iter().any(|link| folder.join(link).exists())
    }

    /// Returns the seed of the hash of pinned sketches; `None` if there are none.
    ///
    /// # Errors
    /// If this process lacks the privilege.
    pub fn seed(&self) -> Result<Option<u64>, DataplaneError> {
        if !self.exists() {
            return Ok(None);
        }
        let constants = self.open_map(CONSTANTS)?;
        Ok(Some(read_config(&constants).map_err(|source| self.folder_error(source))?.seed()))
    }

    /// Detaches and removes pinned sketches.
    ///
    /// # Errors
    /// If there are none, another process reads them, or this process lacks the privilege.
    pub fn remove(&self) -> Result<(), DataplaneError> {
        if !self.folder().exists() {
            return Err(DataplaneError::NotPinned { name: self.0.clone() });
        }
        let _lock = self.lock()?;
        self.remove_files().map_err(|source| self.folder_error(source))
    }

    fn remove_files(&self) -> io::Result<()> {
        let folder = self.folder();
        for link in [LINK_XDP, LINK_TC] {
            if folder.join(link).exists() {
                // The interface may be gone.
                let _ = Link::open_pinned(&folder.join(link))?.detach();
            }
        }
        for file in fs::read_dir(&folder)? {
            fs::remove_file(file?.path())?;
        }
        fs::remove_dir(&folder)
    }

    fn lock(&self) -> Result<NameLock, DataplaneError> {
        NameLock::acquire(&format!("thalweg-in-kernel/{}", self.0)).map_err(|error| match error {
            LockError::Held { .. } => DataplaneError::PinnedInUse { name: self.0.clone() },
            LockError::System(source) => self.folder_error(source),
        })
    }

    fn open_map(&self, file: &str) -> Result<AnyMap, DataplaneError> {
        AnyMap::open_pinned(&self.folder().join(file)).map_err(|source| self.folder_error(source))
    }

    fn folder_error(&self, source: io::Error) -> DataplaneError {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) if is_mounted() => {
                DataplaneError::PinPrivilege { path: self.folder() }
            }
            _ => DataplaneError::PinFolder { path: self.folder(), source },
        }
    }
}

/// Whether the BPF file system is there.
fn is_mounted() -> bool {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1) == Some(FILE_SYSTEM) && line.contains(" bpf "))
}

/// Mounts the BPF file system at its usual place, as ip(8) and bpftool(8) do.
fn mount_if_missing() -> io::Result<()> {
    if !is_mounted() {
        mount(Some("bpf"), FILE_SYSTEM, Some("bpf"), MsFlags::empty(), None::<&str>)?;
    }
    Ok(())
}

/// Whether the mounts of this process are not those of the first process, so that they can end before the system does.
fn has_private_mounts() -> bool {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    of("self") != of("1")
}

fn read_config(constants: &AnyMap) -> io::Result<Config> {
    let mut config = <Config as bytemuck::Zeroable>::zeroed();
    constants.first(bytemuck::bytes_of_mut(&mut config))?;
    Ok(config)
}

/// Pinned sketches that this process reads.
#[derive(Debug)]
pub(crate) struct Pin {
    /// The snapshot at the beginning of the current window, twice: the older one is overwritten.
    beginnings: MappedRegion,
    number: u64,
    _lock: NameLock,
}

/// Pinned sketches that were found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) pin: Pin,
    pub(crate) memory: SharedMemory,
    pub(crate) link: Link,
    pub(crate) is_xdp: bool,
    pub(crate) before: Snapshot,
}

impl Pin {
    /// Pins sketches that were just attached.
    pub(crate) fn create(
        name: &PinName,
        maps: &Maps,
        link: &Link,
        is_xdp: bool,
        before: &Snapshot,
    ) -> Result<Pin, DataplaneError> {
        if !is_mounted() && has_private_mounts() {
            return Err(DataplaneError::PrivateMounts { name: name.0.clone(), path: FILE_SYSTEM.into() });
        }
        let lock = name.lock()?;
        let folder = name.folder();
        let create = || -> io::Result<MappedRegion> {
            if folder.exists() {
                // The rest of a process that ended while it pinned.
                name.remove_files()?;
            }
            mount_if_missing()?;
            fs::create_dir_all(&folder)?;
            for (file, map) in maps {
                let file = if file == CONSTANTS_MAP { CONSTANTS } else { file };
                pin(map.as_fd(), &folder.join(file))?;
            }
            let words = before.to_words().len() + HEADER_WORDS;
            let beginnings = AnyMap::create("beginning", beginnings_spec(words))?;
            pin(beginnings.as_fd(), &folder.join(BEGINNING))?;
            MappedRegion::try_from(beginnings)
        };
        let beginnings = create().map_err(|source| name.folder_error(source))?;
        let mut created = Pin { beginnings, number: 0, _lock: lock };
        created.save(before, 0);
        let file = if is_xdp { LINK_XDP } else { LINK_TC };
        pin(link.as_fd(), &folder.join(file)).map_err(|source| name.folder_error(source))?;
        Ok(created)
    }

    /// Opens pinned sketches, if there are any.
    pub(crate) fn open(
        name: &PinName,
        specification: &Specification,
        config: &Config,
    ) -> Result<Option<Found>, DataplaneError> {
        if !name.exists() {
            return Ok(None);
        }
        let lock = name.lock()?;
        let constants = name.open_map(CONSTANTS)?;
        let pinned = read_config(&constants).map_err(|source| name.folder_error(source))?;
        if let Some((field, pinned, requested)) = pinned.difference(config) {
            return Err(DataplaneError::PinnedDiffers { name: name.0.clone(), field, pinned, requested });
        }
        let mut maps = Maps::new();
        for file in SHARED_MAPS {
            maps.insert(file.to_owned(), name.open_map(file)?);
        }
        let memory = SharedMemory::of(&maps)?;
        let is_xdp = name.folder().join(LINK_XDP).exists();
        let link = name.folder().join(if is_xdp { LINK_XDP } else { LINK_TC });
        let link = Link::open_pinned(&link).map_err(|source| name.folder_error(source))?;
        let beginnings = MappedRegion::try_from(name.open_map(BEGINNING)?).map_err(DataplaneError::Map)?;
        let latest = (0..beginnings.entries()).max_by_key(|&entry| beginnings.load(entry, 0)).unwrap_or(0);
        let number = beginnings.load(latest, 0);
        let mut words = vec![0; beginnings.value_bytes() / 8];
        beginnings.read(latest, 0, &mut words);
        let before = Snapshot::from_words(specification, &words[HEADER_WORDS..])
            .unwrap_or_else(|| Snapshot::empty(specification));
        Ok(Some(Found { pin: Pin { beginnings, number, _lock: lock }, memory, link, is_xdp, before }))
    }

    /// Saves the beginning of a window.
    pub(crate) fn save(&mut self, before: &Snapshot, bank: u32) {
        self.number += 1;
        let entry = (self.number % 2) as usize;
        // Of the two, a reader takes the one with the larger number, which is written last.
        self.beginnings.store(entry, 0, 0);
        for (position, word) in [u64::from(bank)].into_iter().chain(before.to_words()).enumerate() {
            self.beginnings.store(entry, 8 * (position + 1), word);
        }
        self.beginnings.store(entry, 0, self.number);
    }
}

fn beginnings_spec(words: usize) -> MapSpec {
    MapSpec {
        kind: MapKind::Array,
        key_size: 4,
        value_size: (8 * words) as u32,
        max_entries: 2,
        flags: FLAG_MAPPABLE,
    }
}

impl Config {
    /// Returns what differs from another configuration: its name, and both values.
    fn difference(&self, requested: &Config) -> Option<(&'static str, String, String)> {
        if self.seed() != requested.seed() {
            return Some(("--seed", self.seed().to_string(), requested.seed().to_string()));
        }
        (bytes_of(self) != bytes_of(requested)).then(|| {
            let text = Config::description;
            ("--tasks, --memory or --sampling", text(self), text(requested))
        })
    }
}
