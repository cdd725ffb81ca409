//! The machine and the date of a benchmark.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use thalweg_wire::Timestamp;

/// The machine of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Processors that the process may use.
    pub processors: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Kernel name and version.
    pub kernel: String,
}

impl Machine {
    /// Returns this machine, from `/proc`.
    pub fn this() -> Machine {
        let unknown = || "unknown".to_owned();
        Machine {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kib("/proc/meminfo", "MemTotal").unwrap_or(0) / 1024,
            kernel: kernel().map_or_else(unknown, |release| format!("Linux {release}")),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { processor, processors, memory_mib, kernel } = self;
        let gib = *memory_mib as f64 / 1024.0;
        write!(f, "{processor}, {processors} processors, {gib:.0} GiB, {kernel}")
    }
}

/// Returns the kernel's version without the distribution's suffix.
fn kernel() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    release.trim().split('-').next().map(str::to_owned)
}

/// Returns today's date in UTC, `YYYY-MM-DD`.
pub fn today() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut text = Timestamp(since_epoch.as_nanos() as u64).to_string();
    text.truncate("YYYY-MM-DD".len());
    text
}

/// Returns the anonymous memory of this process, in bytes.
pub fn anonymous_memory() -> Option<u64> {
    kib("/proc/self/status", "RssAnon").map(|kib| kib * 1024)
}

/// Returns the highest-numbered processor that this process may use: interrupts tend to run on the first.
pub fn last_processor() -> usize {
    let allowed = field("/proc/self/status", "Cpus_allowed_list").unwrap_or_default();
    let last = allowed.rsplit([',', '-']).next().and_then(|number| number.trim().parse().ok());
    last.unwrap_or(0)
}

/// Returns the free disk space at `folder` in bytes, from `df`.
pub fn free_disk(folder: &Path) -> Option<u64> {
    let df = Command::new("df").args(["--output=avail", "-B1"]).arg(folder).output().ok()?;
    String::from_utf8_lossy(&df.stdout).lines().nth(1)?.trim().parse().ok()
}

fn kib(file: &str, name: &str) -> Option<u64> {
    field(file, name)?.split_whitespace().next()?.parse().ok()
}

/// Returns the value after `name:` on the first such line.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let mut values = text.lines().filter_map(|line| line.split_once(':'));
    values.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn today_is_a_date() {
        let today = today();
        assert_eq!(today.len(), 10);
        assert!(today.split('-').all(|part| part.parse::<u32>().is_ok()), "{today}");
    }
}
