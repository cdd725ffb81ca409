//! Starts DPDK's Environment Abstraction Layer, once in a process.

use std::ffi::CString;
use std::fs;
use std::sync::{Mutex, PoisonError};

use super::error::DpdkError;
use super::ffi::{self, Failure};
use super::keeper;
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

/// Hides messages that are no errors, so that the first one is the reason of a failure.
const ERRORS_ONLY: &str = "--log-level=error";

/// Bytes in free huge pages with which a port of one queue can be opened; with fewer, normal memory is used.
const ENOUGH_HUGE_PAGES: u64 = 64 << 20;

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
        Ok(()) => *eal = Eal::Running(text),
        Err(Failure { reason }) => {
            *eal = Eal::Failed(reason.clone());
            return Err(DpdkError::Start { options: text, reason });
        }
    }
    keeper::start().map_err(|error| DpdkError::StartedBefore { reason: error.to_string() })
}

/// Splits options into the arguments of a program. DPDK reports errors only, unless they say otherwise.
fn arguments(options: &str) -> Result<Vec<CString>, DpdkError> {
    let bad =
        |expected| DpdkError::BadOption { option: "EAL options", value: format!("{options:?}"), expected };
    // DPDK would end the process.
    if options.split_whitespace().any(|word| matches!(word, "-h" | "--help" | "-v" | "--version")) {
        return Err(bad("options that start DPDK, without --help and --version"));
    }
    let words = ["thalweg", ERRORS_ONLY].into_iter().chain(options.split_whitespace());
    words.map(CString::new).collect::<Result<_, _>>().map_err(|_| bad("text without zero bytes"))
}

/// Returns the options if none are given.
fn default_options(is_virtual: bool) -> String {
    let mut options = format!("--lcores=0@({}) --no-telemetry", allowed_cpus());
    // Neither leaves files that another DPDK process would use. Normal memory is taken when it is first used.
    let has_huge_pages = free_huge_pages() >= ENOUGH_HUGE_PAGES;
    options.push_str(if has_huge_pages { " --in-memory" } else { " --no-huge --no-shconf -m 1024" });
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

/// Returns the bytes in free huge pages of all sizes.
fn free_huge_pages() -> u64 {
    let Ok(sizes) = fs::read_dir("/sys/kernel/mm/hugepages") else { return 0 };
    let free = sizes.flatten().filter_map(|size| {
        // hugepages-2048kB
        let name = size.file_name().into_string().ok()?;
        let kilobytes: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let free = fs::read_to_string(size.path().join("free_hugepages")).ok()?;
        Some(1024 * kilobytes * free.trim().parse::<u64>().ok()?)
    });
    free.sum()
}
