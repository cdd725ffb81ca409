//! Packets per second of the emulator: by scheme, size, load and cores, and compared with ns-3.
//!
//! | module | contents |
//! |---|---|
//! | `open_loop` | a network under random load, and its run time |
//! | `ns3` | the same network in ns-3 |

pub mod ns3;
mod open_loop;

use std::path::PathBuf;

use thalweg_emulator::schemes::list::{SCHEMES, Scheme};

use crate::results::{Page, Table, save_page, save_rows};
use crate::row;
use crate::statistics::FiveNumbers;
use open_loop::{Case, Rate, isolated, measure, racks};

/// Options of the benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct EmulatorOptions {
    /// Approximate number of packets per case
    #[arg(long, default_value_t = 30_000_000)]
    pub packets: u64,
    /// Runs of each case
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// Build folder of the ns-3 programs; without it ns-3 is skipped
    #[arg(long)]
    pub build: Option<PathBuf>,
    /// Output folder
    #[arg(long, default_value = "bench/results")]
    pub output: PathBuf,
}

/// Runs the benchmark and writes its results.
///
/// # Errors
/// If a case is not valid or the results cannot be written.
pub fn run(options: &EmulatorOptions) -> anyhow::Result<()> {
    let command = format!("thalweg-bench emulator --packets {} --runs {}", options.packets, options.runs);
    let mut page = Page::new("The emulator", &command);
    let mut rows = Table::new([
        "case",
        "scheme",
        "endpoints",
        "racks",
        "cores",
        "load",
        "run",
        "packets",
        "nanoseconds",
        "dropped",
    ]);
    let mut bench = Bench { options, rows: &mut rows };
    by_scheme(&mut bench, &mut page)?;
    by_size(&mut bench, &mut page)?;
    by_cores(&mut bench, &mut page)?;
    if let Some(build) = &options.build {
        compare_with_ns3(&mut bench, build, &mut page)?;
    }
    save_page(&options.output, "emulator", &page)?;
    save_rows(&options.output, "emulator", &rows)
}

/// The benchmark in progress; every run adds a raw row.
struct Bench<'a> {
    options: &'a EmulatorOptions,
    rows: &'a mut Table,
}

impl Bench<'_> {
    fn rate(&mut self, name: &str, case: &Case) -> anyhow::Result<FiveNumbers> {
        eprintln!("{name}: {}, {} endpoints, load {}", case.scheme.name(), case.endpoints(), case.load);
        let mut rates = Vec::new();
        for run in 0..self.options.runs {
            let Rate { packets, nanos, dropped } = measure(case, self.options.packets)?;
            row!(
                self.rows,
                name,
                case.scheme.name(),
                case.endpoints(),
                case.shape.racks,
                case.cores,
                case.load,
                run,
                packets,
                format!("{nanos:.0}"),
                dropped
            );
            rates.push(packets as f64 * 1e3 / nanos);
        }
        Ok(FiveNumbers::of(&rates))
    }
}

/// Returns the case of one rack of 32 endpoints, load 0.8, one core.
fn rack_of(scheme: Scheme) -> Case {
    Case { scheme, shape: isolated(1, 32), load: 0.8, cores: 1 }
}

fn by_scheme(bench: &mut Bench<'_>, page: &mut Page) -> anyhow::Result<()> {
    let mut table = Table::new([
        "scheme",
        "M packets/s",
        "median, min",
        "Gbit/s of MTUs",
        "relative to DropTail",
        "ns per packet",
    ]);
    let mut droptail = 0.0;
    for listed in SCHEMES {
        let scheme = Scheme::default_of(listed.name).expect("it is listed");
        let rate = bench.rate("scheme", &rack_of(scheme))?;
        if listed.name == "droptail" {
            droptail = rate.max;
        }
        row!(
            table,
            listed.name,
            format!("{:.1}", rate.max),
            format!("{:.1}, {:.1}", rate.median, rate.min),
            format!("{:.0}", rate.max * 1_500.0 * 8.0 / 1e3),
            format!("{:.2}", rate.max / droptail),
            format!("{:.1}", 1e3 / rate.max)
        );
    }
    page.section("Schemes");
    page.paragraph(
                "One rack of 32 endpoints on one core: each sends MTU packets to random others as a Poisson process, load 0.8, \
                 all counters on, packet generation included. A packet passes its host's interface, the router and two links. \
                 CPU time of one thread; the fastest run, because other load on the machine only slows it, with the median and \
                 the slowest run.",
    );
    page.table(&table);
    Ok(())
}

fn by_size(bench: &mut Bench<'_>, page: &mut Page) -> anyhow::Result<()> {
    let droptail = Scheme::default_of("droptail").expect("it is listed");
    let mut table = Table::new([
        "endpoints",
        "load",
        "M packets/s",
        "ns per packet",
        "slowdown relative to real time at 10 Gbit/s",
    ]);
    let sizes = [32, 64, 128, 256, 512, 1_024].map(|endpoints| (endpoints, 0.8));
    let loads = [0.1, 0.3, 0.5, 0.95].map(|load| (32, load));
    for (endpoints, load) in sizes.into_iter().chain(loads) {
        let case = Case { shape: isolated(1, endpoints), load, ..rack_of(droptail.clone()) };
        let rate = bench.rate("size", &case)?.max;
        let offered = f64::from(endpoints) * load * 1e10 / (1_538.0 * 8.0) / 1e6;
        row!(
            table,
            endpoints,
            load,
            format!("{rate:.1}"),
            format!("{:.1}", 1e3 / rate),
            format!("{:.2}", offered / rate)
        );
    }
    page.section("Endpoints and load");
    page.paragraph(
                "DropTail, one rack on one core. A slowdown below 1 means that the emulator is faster than the network.",
    );
    page.table(&table);
    Ok(())
}

fn by_cores(bench: &mut Bench<'_>, page: &mut Page) -> anyhow::Result<()> {
    let droptail = Scheme::default_of("droptail").expect("it is listed");
    let mut table = Table::new(["network", "racks", "cores", "M packets/s", "relative to one rack"]);
    let one = bench.rate("cores", &rack_of(droptail.clone()))?.max;
    row!(table, "one rack", 1, 1, format!("{one:.1}"), "1.00");
    let cases = [
        ("isolated racks", isolated(2, 32), 1),
        ("isolated racks", isolated(2, 32), 2),
        ("racks under an aggregation switch, a fifth of the traffic between them", racks(2, 32), 1),
        ("racks under an aggregation switch, a fifth of the traffic between them", racks(2, 32), 2),
    ];
    for (name, shape, cores) in cases {
        let case = Case { scheme: droptail.clone(), shape, load: 0.8, cores };
        let rate = bench.rate("cores", &case)?.max;
        row!(table, name, shape.racks, cores, format!("{rate:.1}"), format!("{:.2}", rate / one));
    }
    page.section("Racks and cores");
    page.paragraph(
                "DropTail, 32 endpoints per rack, load 0.8, racks distributed over cores, virtual time; the aggregation switch is \
                 on the first core, its links have 100 Gbit/s and 5 us. Wall time, because cores wait for each other; the fastest run.",
    );
    page.table(&table);
    Ok(())
}

fn compare_with_ns3(bench: &mut Bench<'_>, build: &std::path::Path, page: &mut Page) -> anyhow::Result<()> {
    page.section("Comparison with ns-3");
    page.paragraph(
                "The same star of 32 hosts at 10 Gbit/s, load 0.8, DropTail. Slowdown is CPU time divided by emulated time.",
    );
    let droptail = Scheme::default_of("droptail").expect("it is listed");
    let ours = bench.rate("ns3", &rack_of(droptail.clone()))?.max;
    let offered = 32.0 * 0.8 * 1e10 / (1_538.0 * 8.0) / 1e6;
    let mut table = Table::new(["simulator", "M packets/s", "slowdown", "Thalweg is faster by a factor of"]);
    row!(table, "Thalweg", format!("{ours:.1}"), format!("{:.2}", offered / ours), "");
    match ns3::stars(build) {
        Ok(stars) => {
            for star in stars {
                let rate = star.packets_per_second() / 1e6;
                row!(
                    table,
                    star.mode.title(),
                    format!("{rate:.3}"),
                    format!("{:.0}", star.slowdown()),
                    format!("{:.0}", ours / rate)
                );
            }
        }
        Err(error) => {
            page.paragraph(format_args!("ns-3 skipped: {error:#}."));
        }
    }
    page.table(&table);
    Ok(())
}
