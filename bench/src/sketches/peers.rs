//! Other implementations of sketches, in separate programs under `bench/peers` that are built on demand.
//!
//! A program gets the two paths of a [`KeyFile`], runs all its sketches once, and prints one [`Outcome`] per line as
//! JSON.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail};

use super::contender::Outcome;
use super::keys::KeyFile;
use crate::timed;

/// A program with other implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The crates `asap_sketchlib` and `datasketches`, in a separate workspace.
    Crates,
    /// DPDK's `rte_member` of type sketch, called from C.
    RteMember,
}

impl Peer {
    /// All programs.
    pub const ALL: [Peer; 2] = [Peer::Crates, Peer::RteMember];

    /// Returns the name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Peer::Crates => "the crates asap_sketchlib and datasketches",
            Peer::RteMember => "DPDK's rte_member",
        }
    }

    /// Builds the program from `sources` and returns its path under `build`.
    ///
    /// # Errors
    /// If a dependency is not installed, or the build fails.
    pub fn build(self, sources: &Path, build: &Path) -> anyhow::Result<PathBuf> {
        fs::create_dir_all(build)?;
        let build = std::path::absolute(build)?;
        match self {
            Peer::Crates => {
                let manifest = sources.join("Cargo.toml");
                let mut cargo = Command::new("cargo");
                cargo.args(["build", "--release", "--locked", "--manifest-path"]).arg(manifest);
                succeed(cargo.arg("--target-dir").arg(&build))?;
                Ok(build.join("release/sketch-peers"))
            }
            Peer::RteMember => {
                let known = Command::new("pkg-config").args(["--exists", "libdpdk"]).status();
                if !known.is_ok_and(|status| status.success()) {
                    bail!("not installed (Debian packages libdpdk-dev and pkg-config)");
                }
                let mut make = Command::new("make");
                make.arg("--no-print-directory").arg("-C").arg(sources);
                succeed(make.arg(format!("BUILD={}", build.display())))?;
                Ok(build.join("rte-member-sketch"))
            }
        }
    }

    /// Runs all sketches of `program` once, pinned to processor `cpu`.
    ///
    /// # Errors
    /// If it fails or its output is not valid.
    pub fn run(self, program: &Path, stream: &KeyFile, cpu: usize) -> anyhow::Result<Vec<Outcome>> {
        let scratch = program.with_extension("scratch");
        fs::create_dir_all(&scratch)?;
        let paths = [program, &stream.keys, &stream.top].map(std::path::absolute);
        let words = paths.into_iter().map(|path| path.map(PathBuf::into_os_string));
        let ran = timed::run(cpu, &scratch, &words.collect::<Result<Vec<_>, _>>()?);
        fs::remove_dir_all(&scratch)?;
        // Results do not contain local paths.
        let placeless = |error: anyhow::Error| {
            anyhow!(format!("{error:#}").replace(&*program.to_string_lossy(), self.name()))
        };
        let (printed, _) = ran.map_err(placeless)?;
        let outcomes = printed.lines().filter(|line| line.starts_with('{'));
        let outcomes: Vec<Outcome> = outcomes
            .map(|line| serde_json::from_str(line).with_context(|| format!("unexpected output: {line}")))
            .collect::<Result<_, _>>()?;
        if outcomes.is_empty() {
            bail!("{} printed no results", self.name());
        }
        Ok(outcomes)
    }
}

/// Runs a command and returns its output; the error contains the line that most likely explains a failure.
pub(crate) fn succeed(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let telling = said.lines().find(|line| line.contains("error")).or(said.lines().last());
        bail!("{name} failed: {}", telling.unwrap_or("no output").trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
