//! Starts DPDK's Environment Abstraction Layer, once in a process.

use std::ffi::CString;
use std::fs;
use std::sync::{Mutex, PoisonError};

use super::error::DpdkError;
use super::ffi::{self, Failure};
use super::options::DpdkOptions;

/// The state of the EAL of this process.
#[derive(Debug)]
enum Eal {
    /// Not started yet.
    New,
    /// It runs with these options.
    Running(String),
    /// It did not start, for this reason.
    Failed(String),
}

static EAL: Mutex<Eal> = Mutex::new(Eal::New);

/// Starts the EAL unless it runs with the same options.
pub(super) fn start(options: &DpdkOptions) -> Result<(), DpdkError> {
    let mut eal = EAL.lock().unwrap_or_else(PoisonError::into_inner);
    match &*eal {
        // Ports without options of their own run with those of the first.
        Eal::Running(running) => match options.eal.as_ref().filter(|wanted| *wanted != running) {
            None => return Ok(()),
            Some(wanted) => {
                let (running, options) = (running.clone(), wanted.clone());
                return Err(DpdkError::OtherOptions { running, options });
            }
        },
        Eal::Failed(reason) => return Err(DpdkError::StartedBefore { reason: reason.clone() }),
        Eal::New => {}
    }
    let text = options.eal.clone().unwrap_or_else(|| default_options(options.is_virtual()));
    match ffi::start(&arguments(&text)?) {
        Ok(()) => {
            *eal = Eal::Running(text);
            Ok(())
        }
        Err(Failure { reason }) => {
            *eal = Eal::Failed(reason.clone());
            Err(DpdkError::Start { options: text, reason })
        }
    }
}

/// Splits options into the arguments of a program.
fn arguments(options: &str) -> Result<Vec<CString>, DpdkError> {
    let words = std::iter::once("thalweg").chain(options.split_whitespace());
    words.map(CString::new).collect::<Result<_, _>>().map_err(|_| DpdkError::BadOption {
        option: "EAL options",
        value: format!("{options:?}"),
        expected: "text without zero bytes",
    })
}

/// Returns the options if none are given.
fn default_options(is_virtual: bool) -> String {
    let mut options = format!("--lcores=0@({}) --no-telemetry --log-level=error", allowed_cpus());
    // Neither leaves files that another DPDK process would use.
    options.push_str(if has_huge_pages() { " --in-memory" } else { " --no-huge --no-shconf -m 512" });
    if is_virtual {
        options.push_str(" --no-pci");
    }
    options
}

/// Returns the processors that this process may use, as the kernel writes them, such as `0-3,8`.
fn allowed_cpus() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let listed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    listed.map_or_else(|| "0".to_owned(), |list| list.trim().to_owned())
}

/// Whether a huge page of any size is free.
fn has_huge_pages() -> bool {
    let Ok(sizes) = fs::read_dir("/sys/kernel/mm/hugepages") else { return false };
    sizes.flatten().any(|size| {
        let free = fs::read_to_string(size.path().join("free_hugepages")).unwrap_or_default();
        free.trim().parse::<u64>().is_ok_and(|free| free > 0)
    })
}
