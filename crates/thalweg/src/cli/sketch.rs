//! `thalweg sketch`.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};

use crate::sketch::{self, Listing};

/// Show, merge and compare saved sketches.
///
/// `thalweg watch --tasks ... --save-sketches DIR` saves the sketches of each window. Sketches of several windows, or of
/// several measurement points, can be merged if `--tasks`, `--memory`, `--threads`, `--keep-windows` and `--seed` were the
/// same.
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

/// Show the contents of saved sketches.
#[derive(Args, Debug)]
struct ShowArgs {
    /// Saved sketches. `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    listing: ListingArgs,
}

/// Merge saved sketches into one.
#[derive(Args, Debug)]
struct MergeArgs {
    /// Saved sketches of the same kind, size, key and seed.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Output file. `-` is standard output.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Label of the merged sketch [default: all labels].
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
}

/// Show what changed between two saved sketches.
#[derive(Args, Debug)]
struct DiffArgs {
    /// Earlier sketch.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// Later sketch.
    #[arg(value_name = "NOW")]
    now: PathBuf,

    #[command(flatten)]
    listing: ListingArgs,
}

#[derive(Args, Clone, Copy, Debug)]
struct ListingArgs {
    /// Maximum number of keys to list.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Print JSON lines instead of text.
    #[arg(long)]
    json: bool,
}

impl From<ListingArgs> for Listing {
    fn from(args: ListingArgs) -> Listing {
        Listing { top: args.limit, json: args.json }
    }
}

impl SketchArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        match self.command {
            SketchCommand::Show(args) => sketch::show(&args.files, args.listing.into(), &mut out)?,
            SketchCommand::Diff(args) => {
                sketch::diff(&args.before, &args.now, args.listing.into(), &mut out)?;
            }
            SketchCommand::Merge(args) => {
                drop(out);
                return sketch::merge(&args.files, &args.output, args.label);
            }
        }
        out.flush().context("cannot write to standard output")
    }
}
