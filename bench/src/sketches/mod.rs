//! Comparison of sketches on the same keys: updates per second, and the error of the same run.
//!
//! | module | contents |
//! |---|---|
//! | [`keys`], [`zipf`] | seeded streams of flow keys with any skew, in memory and on disk |
//! | [`truth`] | exact counts |
//! | [`textbook`] | sketches as in the papers |
//! | [`contender`] | a sketch to compare, and the outcome of a run |
//! | [`contenders`] | the sketches that run in this process |
//! | [`ours`] | Thalweg's sketches |
//! | [`peers`] | other implementations, in separate processes |
//!
//! The time of a run is the CPU time of the updates alone, with keys in memory; the error is that of the same run.
//! Contenders take turns, so that other load on the machine affects all of them.

pub mod contender;
pub mod contenders;
pub mod keys;
pub mod ours;
pub mod peers;
mod report;
mod targets;
pub mod textbook;
pub mod truth;
pub mod zipf;

use std::path::PathBuf;

use anyhow::ensure;

use crate::machine::last_processor;
use crate::meters::skip;
use crate::results::{Page, grouped, save_page, save_rows};

use contender::{LEVELS, Outcome, ROWS, TOP, WIDTH};
use keys::{KeyStream, StreamOptions};
use ours::BATCH;
use peers::Peer;
use truth::Truth;

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct SketchesOptions {
    /// Length of the stream in packets (13 bytes of memory each)
    #[arg(long, default_value_t = 10_000_000)]
    pub packets: usize,
    /// Number of flows from which packets are drawn
    #[arg(long, default_value_t = 1_000_000)]
    pub flows: u64,
    /// Exponent of Zipf's law; 0 is uniform
    #[arg(long, default_value_t = 1.0)]
    pub exponent: f64,
    /// Runs of each contender
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
    /// Skip other implementations
    #[arg(long)]
    pub no_peers: bool,
    /// Processor for other implementations [default: the last one]
    #[arg(long)]
    pub cpu: Option<usize>,
    /// Source folder of other implementations
    #[arg(long, default_value = "bench/peers")]
    pub peers: PathBuf,
    /// Build folder of other implementations
    #[arg(long, default_value = "target/bench-peers")]
    pub build: PathBuf,
    /// Folder for their key streams
    #[arg(long, default_value = "target/bench-keys")]
    pub keys: PathBuf,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// If the stream cannot be generated, there is nothing to run, or the results cannot be written.
pub fn run(options: &SketchesOptions) -> anyhow::Result<()> {
    let SketchesOptions { packets, flows, exponent, runs, .. } = *options;
    ensure!(runs > 0 && packets > 0, "nothing to run");
    let cpu = options.cpu.unwrap_or_else(last_processor);
    let stream = KeyStream::generate(StreamOptions::zipf(packets, flows, exponent))?;
    let truth = stream.truth();
    let (mut programs, mut absent) = if options.no_peers { Default::default() } else { build(options) };
    let outcomes = measure(options, &stream, &truth, &mut programs, &mut absent, cpu)?;

    let peers = if options.no_peers { " --no-peers" } else { "" };
    let command = format!(
        "thalweg-bench sketches --packets {packets} --flows {flows} --exponent {exponent} --runs {runs}{peers} \
         (processor {cpu})"
    );
    let mut page = Page::new("Comparison of sketches", &command);
    explain(&mut page, &stream, &truth);
    for (peer, reason) in absent {
        page.paragraph(format_args!("Skipped: {}: {reason}.", peer.name()));
    }
    report::sections(&mut page, &outcomes);
    save_page(&options.output, "sketches", &page)?;
    save_rows(&options.output, "sketches", &report::rows(&outcomes))
}

/// Built programs.
type Programs = Vec<(Peer, PathBuf)>;
/// Skipped peers and the reasons.
type Absent = Vec<(Peer, String)>;

fn build(options: &SketchesOptions) -> (Programs, Absent) {
    let (mut programs, mut absent) = (Vec::new(), Vec::new());
    for peer in Peer::ALL {
        match peer.build(&options.peers, &options.build) {
            Ok(program) => programs.push((peer, program)),
            Err(error) => leave_out(peer, &error, &mut absent),
        }
    }
    (programs, absent)
}

fn leave_out(peer: Peer, error: &anyhow::Error, absent: &mut Absent) {
    let reason = format!("{error:#}");
    skip(peer.name(), &reason);
    absent.push((peer, reason));
}

/// Returns the outcomes of each run. A program that fails is skipped afterwards.
fn measure(
    options: &SketchesOptions,
    stream: &KeyStream,
    truth: &Truth,
    programs: &mut Programs,
    absent: &mut Absent,
    cpu: usize,
) -> anyhow::Result<Vec<Vec<Outcome>>> {
    let (largest, flows) = (truth.top(TOP), truth.distinct());
    let contenders = contenders::all();
    let file = (!programs.is_empty()).then(|| stream.save(&options.keys, truth, TOP)).transpose()?;
    let mut outcomes = vec![Vec::new(); options.runs];
    for (run, outcomes) in outcomes.iter_mut().enumerate() {
        eprintln!("run {} of {}", run + 1, options.runs);
        outcomes.extend(contenders.iter().map(|contender| contender.run(&stream.keys, &largest, flows)));
        let Some(file) = &file else { continue };
        programs.retain(|(peer, program)| match peer.run(program, file, cpu) {
            Ok(more) => {
                outcomes.extend(more);
                true
            }
            Err(error) => {
                leave_out(*peer, &error, absent);
                false
            }
        });
    }
    Ok(outcomes)
}

fn explain(page: &mut Page, stream: &KeyStream, truth: &Truth) {
    page.paragraph(format_args!(
        "{} keys of 13 bytes, {} flows of {} by Zipf's law with exponent {}; the {TOP} largest have {:.1} % of \
         the packets. Sketches of {ROWS} rows by {WIDTH} counters; UnivMon has {LEVELS} levels of them. Ours take \
         slices of {BATCH} keys. One \
         thread; processor time of the updates alone, keys in memory, medians over the runs. Ratios are to the \
         textbook version of the same sketch (with a heap, if it has one) that counts every packet. Errors are \
         the mean of |estimate - count| / count over the {TOP} largest flows in the same runs; of a flow that a \
         heap names, the textbook takes the heap's word. HyperLogLog's error is that of the number of flows. \
         p is the probability that a row is counted, or a whole packet \
         where the remark says so.",
        grouped(stream.keys.len() as u64),
        grouped(truth.distinct() as u64),
        grouped(stream.options.flows),
        stream.options.exponent,
        100.0 * truth.top(TOP).iter().map(|(_, count)| count).sum::<u64>() as f64 / truth.l1() as f64,
    ));
}
