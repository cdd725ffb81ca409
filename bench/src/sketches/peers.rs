//! Sketches of others, in programs of their own under `bench/peers`, which are built when they are needed.
//!
//! A program is called with the two paths of a [`KeyFile`], runs all that it has once, and prints an
//! [`Outcome`] a line as JSON.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail};

use super::contender::Outcome;
use super::keys::KeyFile;
use crate::timed;

/// A program of others' sketches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The crates `asap_sketchlib` and `datasketches`, in a workspace of their own.
    Crates,
    /// DPDK's `rte_member` of type sketch, called from C.
    RteMember,
}

impl Peer {
    /// All there are.
    pub const ALL: [Peer; 2] = [Peer::Crates, Peer::RteMember];

    /// Name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Peer::Crates => "the crates asap_sketchlib and datasketches",
            Peer::RteMember => "DPDK's rte_member",
        }
    }

    /// Builds the program from the sources in `sources` and returns where it is, below `build`.
    ///
    /// # Errors
    /// If what it needs is not installed, or it does not build.
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

    /// One run of everything that `program` has, on processor `cpu` alone.
    ///
    /// # Errors
    /// If it fails, or prints what is no outcome.
    pub fn run(self, program: &Path, stream: &KeyFile, cpu: usize) -> anyhow::Result<Vec<Outcome>> {
        let scratch = program.with_extension("scratch");
        fs::create_dir_all(&scratch)?;
        let paths = [program, &stream.keys, &stream.top].map(std::path::absolute);
        let words = paths.into_iter().map(|path| path.map(PathBuf::into_os_string));
        let ran = timed::run(cpu, &scratch, &words.collect::<Result<Vec<_>, _>>()?);
        fs::remove_dir_all(&scratch)?;
        // A page of results does not say where things lie on this machine.
        let placeless = |error: anyhow::Error| {
            anyhow!(format!("{error:#}").replace(&*program.to_string_lossy(), self.name()))
        };
        let (printed, _) = ran.map_err(placeless)?;
        let outcomes = printed.lines().filter(|line| line.starts_with('{'));
        let outcomes: Vec<Outcome> = outcomes
            .map(|line| serde_json::from_str(line).with_context(|| format!("not an outcome: {line}")))
            .collect::<Result<_, _>>()?;
        if outcomes.is_empty() {
            bail!("{} ran nothing", self.name());
        }
        Ok(outcomes)
    }
}

/// Runs a command and returns what it printed; if it fails, says so with the line that most likely tells why.
pub(crate) fn succeed(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let telling = said.lines().find(|line| line.contains("error")).or(said.lines().last());
        bail!("{name} failed: {}", telling.unwrap_or("it said nothing").trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
