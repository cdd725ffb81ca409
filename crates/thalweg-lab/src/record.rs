//! The record of a lab, `/run/thalweg/PREFIXlab.json`, by which other processes find it and clean up after a crash.
//!
//! It is written before anything else is created or changed, and removed last. It contains the plan and the changed
//! machine parameters; the kernel knows interfaces and programs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thalweg_network::Topology;
use thalweg_wire::{BitRate, Nanos};

use crate::error::LabError;
use crate::plan::{Plan, Plane, Prefix};
use crate::sysctl::SysctlChange;

const FOLDER: &str = "/run/thalweg";

/// Version of the format.
const VERSION: u32 = 1;

/// The record of a lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    version: u32,
    pub(crate) prefix: Prefix,
    plane: Plane,
    /// Contents of a topology file.
    topology: String,
    rate: Option<u64>,
    host_share: f64,
    mtu: u32,
    port_buffer_ns: u64,
    monitor_rate: Option<u64>,
    monitor_buffer_ns: u64,
    congestion_control: Option<String>,
    /// Machine parameters that were changed for the lab.
    pub(crate) changed: Vec<SysctlChange>,
}

impl Record {
    pub(crate) fn new(plan: &Plan, changed: Vec<SysctlChange>) -> Record {
        Record {
            version: VERSION,
            prefix: plan.prefix.clone(),
            plane: plan.plane,
            topology: plan.topology.to_toml(),
            rate: plan.rate.map(|rate| rate.0),
            host_share: plan.host_share,
            mtu: plan.mtu,
            port_buffer_ns: plan.port_buffer.0,
            monitor_rate: plan.monitor_rate.map(|rate| rate.0),
            monitor_buffer_ns: plan.monitor_buffer.0,
            congestion_control: plan.congestion_control.clone(),
            changed,
        }
    }

    /// Returns the lab's plan, without its initial tables: they may have changed since.
    pub(crate) fn plan(&self) -> Result<Plan, LabError> {
        let path = path(&self.prefix);
        let topology = Topology::from_toml(&self.topology, &path.to_string_lossy()).map_err(|error| {
            LabError::Record { path, source: io::Error::new(io::ErrorKind::InvalidData, error) }
        })?;
        let plan = Plan {
            forwarding: None,
            prefix: self.prefix.clone(),
            plane: self.plane,
            rate: self.rate.map(BitRate),
            host_share: self.host_share,
            mtu: self.mtu,
            port_buffer: Nanos(self.port_buffer_ns),
            monitor_rate: self.monitor_rate.map(BitRate),
            monitor_buffer: Nanos(self.monitor_buffer_ns),
            congestion_control: self.congestion_control.clone(),
            ..Plan::new(topology)
        };
        plan.check()?;
        Ok(plan)
    }

    /// Writes the record atomically.
    pub(crate) fn write(&self) -> Result<(), LabError> {
        write_file(&path(&self.prefix), self)
    }

    /// Reads the record of a prefix; `None` if it does not exist.
    pub(crate) fn read(prefix: &Prefix) -> Result<Option<Record>, LabError> {
        let path = path(prefix);
        let Some(record) = read_file::<Record>(&path)? else { return Ok(None) };
        match record.version == VERSION && record.prefix == *prefix {
            true => Ok(Some(record)),
            false => Err(other_version(path)),
        }
    }

    /// Removes the record, if it exists.
    pub(crate) fn remove(prefix: &Prefix) -> Result<(), LabError> {
        remove_file(&path(prefix))
    }
}

/// Writes a record atomically.
pub(crate) fn write_file(path: &Path, record: &impl Serialize) -> Result<(), LabError> {
    let write = || -> io::Result<()> {
        let unfinished = unfinished(path);
        let text = serde_json::to_vec_pretty(record)?;
        fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, path)).inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })
    };
    write().map_err(|source| LabError::Record { path: path.to_owned(), source })
}

/// Reads a record; `None` if it does not exist.
pub(crate) fn read_file<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, LabError> {
    let failed = |source| LabError::Record { path: path.to_owned(), source };
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| failed(error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed(source)),
    }
}

/// Removes a record, if it exists.
pub(crate) fn remove_file(path: &Path) -> Result<(), LabError> {
    for path in [unfinished(path), path.to_owned()] {
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(LabError::Record { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The error of a record that is not of this prefix and version.
pub(crate) fn other_version(path: PathBuf) -> LabError {
    LabError::Record { path, source: io::Error::other("record of another lab or format version") }
}

/// Locks the creation and removal of labs, across processes, until the file is dropped.
pub(crate) fn lock() -> Result<File, LabError> {
    let lock = || -> io::Result<File> {
        fs::create_dir_all(FOLDER)?;
        let folder = File::open(FOLDER)?;
        folder.lock()?;
        Ok(folder)
    };
    lock().map_err(|source| LabError::Record { path: FOLDER.into(), source })
}

/// Returns the folder of records and other files of labs.
pub(crate) fn folder() -> &'static Path {
    Path::new(FOLDER)
}

fn path(prefix: &Prefix) -> PathBuf {
    Path::new(FOLDER).join(format!("{prefix}lab.json"))
}

/// Returns the temporary file of a record being written.
fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("new")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_preserves_the_plan() {
        let plan = Plan {
            prefix: "rec-".parse().unwrap(),
            rate: Some(BitRate(50_000_000)),
            monitor_rate: Some(BitRate(20_000_000)),
            monitor_buffer: Nanos::from_micros(1_500),
            congestion_control: None,
            ..Plan::leaf_spine(BitRate(100_000_000)).unwrap()
        };
        let text = serde_json::to_string(&Record::new(&plan, Vec::new())).unwrap();
        let read = serde_json::from_str::<Record>(&text).unwrap().plan().unwrap();
        assert_eq!(format!("{read:?}"), format!("{plan:?}"));
    }
}
