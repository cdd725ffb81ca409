//! A program on one processor, measured from outside by `time` (Debian package `time`).

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Longest that a run may take, in seconds: some programs wait for ever on what others read to its end.
const LIMIT_S: &str = "600";

/// What `time` says of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// From start to end, seconds.
    pub wall_s: f64,
    /// Processor time in the program, seconds (in steps of 10 ms).
    pub user_s: f64,
    /// Processor time in the kernel for it, seconds (in steps of 10 ms).
    pub sys_s: f64,
    /// Most memory resident, KiB; pages of mapped files count while they are mapped.
    pub peak_rss_kib: u64,
}

impl Usage {
    /// Processor time, seconds; at least a step of the clock, so that it can be divided by.
    pub fn processor_s(&self) -> f64 {
        (self.user_s + self.sys_s).max(0.01)
    }

    fn parse(text: &str) -> Option<Usage> {
        // A program that fails makes `time` say so on a line before.
        let mut numbers = text.lines().last()?.split(' ').map(|number| number.parse::<f64>().ok());
        let mut next = || numbers.next()?;
        Some(Usage { wall_s: next()?, user_s: next()?, sys_s: next()?, peak_rss_kib: next()? as u64 })
    }
}

/// Runs a program on processor `cpu` alone, with `scratch` as its folder, and returns what it printed (both
/// streams) and what it used.
///
/// # Errors
/// If it cannot be started, or fails; with the last line that it printed.
pub fn run(cpu: usize, scratch: &Path, program: &[OsString]) -> anyhow::Result<(String, Usage)> {
    let usage_path = scratch.join("usage");
    let output = Command::new("timeout")
        .args([LIMIT_S, "time", "-f", "%e %U %S %M", "-o"])
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
        let last = printed.lines().last().unwrap_or("it printed nothing").to_owned();
        bail!("{} ended with {}: {last}", program[0].display(), output.status);
    }
    let usage = fs::read_to_string(&usage_path).context("`time` wrote nothing")?;
    Ok((printed, Usage::parse(&usage).with_context(|| format!("not what `time` writes: {usage}"))?))
}

/// Whether a program is on the path, or at the place it names.
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
