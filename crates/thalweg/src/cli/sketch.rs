//! `thalweg sketch`.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};

use crate::sketch::{self, Telling};

/// Show, merge and compare saved sketches.
///
/// `thalweg watch --tasks ... --save-states DIR` saves the sketches of each window. States that were made with the
/// same tasks, memory and seed can be put together, wherever they were counted: windows of one collector to an hour,
/// or those of many collectors to a view of the whole network.
#[derive(Args, Debug)]
pub(super) struct SketchArgs {
    #[command(subcommand)]
    command: SketchCommand,
}

#[derive(Debug, Subcommand)]
enum SketchCommand {
    Show(ShowArgs),
    Merge(MergeArgs),
    Diff(DiffArgs),
}

/// What is in saved sketches.
#[derive(Args, Debug)]
struct ShowArgs {
    /// Saved sketches; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    telling: TellingArgs,
}

/// Put saved sketches together.
#[derive(Args, Debug)]
struct MergeArgs {
    /// Saved sketches of the same kind, shape, seed and keys.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Where the sketch of all goes; `-` for standard output.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// What the sketch of all is called [default: the labels of all].
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
}

/// What changed from one saved sketch to another.
#[derive(Args, Debug)]
struct DiffArgs {
    /// The earlier one.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The later one.
    #[arg(value_name = "NOW")]
    now: PathBuf,

    #[command(flatten)]
    telling: TellingArgs,
}

#[derive(Args, Clone, Copy, Debug)]
struct TellingArgs {
    /// Keys that are listed.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// JSON instead of text, one line a state or comparison.
    #[arg(long)]
    json: bool,
}

impl From<TellingArgs> for Telling {
    fn from(args: TellingArgs) -> Telling {
        Telling { top: args.top, json: args.json }
    }
}

impl SketchArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        match self.command {
            SketchCommand::Show(args) => sketch::show(&args.files, args.telling.into(), &mut out)?,
            SketchCommand::Diff(args) => {
                sketch::diff(&args.before, &args.now, args.telling.into(), &mut out)?;
            }
            SketchCommand::Merge(args) => {
                drop(out);
                return sketch::merge(&args.files, &args.output, args.label);
            }
        }
        out.flush().context("cannot write to standard output")
    }
}
