//! Runs a program on one processor and measures it with `time` (Debian package `time`).

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Timeout of a run in seconds: some programs hang at the end of an input.
const TIMEOUT_S: &str = "600";

/// The resources used by one run, from `time`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Wall time in seconds.
    pub wall_s: f64,
    /// User CPU time in seconds (resolution 10 ms).
    pub user_s: f64,
    /// System CPU time in seconds (resolution 10 ms).
    pub sys_s: f64,
    /// Peak resident memory in KiB, mapped files included.
    pub peak_rss_kib: u64,
}

impl Usage {
    /// Returns the CPU time in seconds, at least the clock's resolution, so that it can be a divisor.
    pub fn processor_s(&self) -> f64 {
        (self.user_s + self.sys_s).max(0.01)
    }

    fn parse(text: &str) -> Option<Usage> {
        // If the program fails, `time` prints a message on an earlier line.
        let mut numbers = text.lines().last()?.split(' ').map(|number| number.parse::<f64>().ok());
        let mut next = || numbers.next()?;
        Some(Usage { wall_s: next()?, user_s: next()?, sys_s: next()?, peak_rss_kib: next()? as u64 })
    }
}

/// Runs a program pinned to processor `cpu` in the folder `scratch`, and returns its output (both streams) and its
/// usage.
///
/// # Errors
/// If it cannot be started or fails, with its last line of output.
pub fn run(cpu: usize, scratch: &Path, program: &[OsString]) -> anyhow::Result<(String, Usage)> {
    let usage_path = scratch.join("usage");
    let output = Command::new("timeout")
        .args([TIMEOUT_S, "time", "-f", "%e %U %S %M", "-o"])
        .arg(&usage_path)
        .args(["taskset", "-c", &cpu.to_string()])
        .args(program)
        .current_dir(scratch)
        .stdin(Stdio::null())
        .output()
        .context("cannot run `timeout` (Debian package coreutils)")?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    if !output.status.success() {
        let last = printed.lines().last().unwrap_or("no output").to_owned();
        bail!("{} ended with {}: {last}", program[0].display(), output.status);
    }
    let usage = fs::read_to_string(&usage_path).context("`time` wrote nothing")?;
    Ok((printed, Usage::parse(&usage).with_context(|| format!("unexpected output of `time`: {usage}"))?))
}

/// Whether a program is on the search path.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_the_last_line() {
        let usage = Usage::parse("Command terminated by signal 9\n1.50 0.25 0.05 1024\n").unwrap();
        assert_eq!(usage, Usage { wall_s: 1.5, user_s: 0.25, sys_s: 0.05, peak_rss_kib: 1024 });
        assert_eq!(usage.processor_s(), 0.3);
    }
}
