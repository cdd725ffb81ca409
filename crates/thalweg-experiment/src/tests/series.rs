//! Time series: sums, the paths of windows, and round trips that are known.

use std::path::Path;

use crate::files::read::{Cell, TableLimits, read_rows, table};
use crate::files::{Format, Output, Row, write};
use crate::results::series_rows::{ClassSeriesRow, FlowSeriesRow, QueueSeriesRow};

use super::*;

/// The rows of a table, as `columns` of numbers; NaN if missing.
fn read<R: Row, const N: usize>(folder: &Path, columns: [&str; N]) -> Vec<[f64; N]> {
    let (path, format) = table::<R>(folder).expect("the table was written");
    let limits = TableLimits { bytes: u64::MAX, rows: u64::MAX };
    let mut rows = Vec::new();
    read_rows::<R>((&path, format), &columns, limits, &mut |cells| {
        let mut row = [0.0; N];
        for (number, cell) in row.iter_mut().zip(cells) {
            *number = match *cell {
                Cell::Count(count) => count as f64,
                Cell::Ratio(ratio) => ratio,
                Cell::Name(_) | Cell::Missing => f64::NAN,
            };
        }
        rows.push(row);
    })
    .unwrap();
    rows
}

fn run_into(folder: &Path, format: Format, text: &str, threads: usize) -> Results {
    let experiment = Experiment::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    let mut plan = Plan::new(&experiment).unwrap_or_else(|error| panic!("{error}"));
    plan.threads = threads;
    let results = run(plan, Some(Output { folder, format }), &AtomicBool::new(false), &mut |_| {}).unwrap();
    write(folder, format, &results).unwrap();
    results
}

/// Sums of a column by flow.
fn sums(rows: &[[f64; 2]]) -> BTreeMap<u64, u64> {
    let mut sums = BTreeMap::new();
    rows.iter().for_each(|&[flow, value]| *sums.entry(flow as u64).or_default() += value as u64);
    sums
}

#[test]
fn sums_over_the_rows_of_a_flow_are_its_totals() {
    for scheme in ["droptail", "red_ecn", "dctcp", "pfabric", "fq_codel"] {
        let folder = tempfile::tempdir().unwrap();
        let series = "[flow_series]\ninterval = '50us'\nchanges = true\n[queue_series]\ninterval = '77us'\n";
        let text = format!("{BUSY}\n[scheme]\nname = '{scheme}'\n{series}");
        let results = run_into(folder.path(), Format::Parquet, &text, 1);
        let of = |column| sums(&read::<FlowSeriesRow, 2>(folder.path(), ["flow", column]));
        let (acked, delivered) = (of("acked_bytes"), of("delivered_bytes"));
        let (retransmissions, timeouts) = (of("retransmissions"), of("timeouts"));
        let (marks, lived) = (of("marked_packets"), of("interval_ns"));
        assert!(results.flows.len() > 100, "{scheme}");
        for flow in &results.flows {
            let number = u64::from(flow.flow);
            assert_eq!((acked[&number], delivered[&number]), (flow.bytes, flow.bytes), "{scheme}: {flow:?}");
            assert_eq!(retransmissions[&number], u64::from(flow.retransmissions), "{scheme}: {flow:?}");
            assert_eq!(timeouts[&number], u64::from(flow.timeouts), "{scheme}: {flow:?}");
            assert_eq!(marks[&number], u64::from(flow.marks), "{scheme}: {flow:?}");
            assert!(lived[&number] >= flow.fct_ns, "{scheme}: {flow:?}");
        }
        let of_ports = read::<QueueSeriesRow, 2>(folder.path(), ["dropped_packets", "marked_packets"]);
        let dropped: f64 = of_ports.iter().map(|row| row[0]).sum();
        let at_ports = results.drops.iter().filter(|drop| drop.place.contains('>'));
        assert_eq!(dropped as u64, at_ports.map(|drop| drop.packets).sum::<u64>(), "{scheme}");
        let marked: f64 = of_ports.iter().map(|row| row[1]).sum();
        assert_eq!(marked as u64, results.summary.packets.marked, "{scheme}");
        let tables: Vec<&str> = results.summary.series.iter().map(|series| series.table).collect();
        assert_eq!(tables, ["flow_series", "queue_series"]);
        let rows = read::<FlowSeriesRow, 1>(folder.path(), ["time_ns"]);
        assert!(rows.is_sorted_by(|earlier, later| earlier[0] <= later[0]), "{scheme}");
        assert_eq!(results.summary.series[0].rows, rows.len() as u64);
    }
}

#[test]
fn series_change_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{BUSY}\n[flow_series]\nchanges = true\n[queue_series]\ninterval = '10us'\n");
    let with = run_into(folder.path(), Format::Csv, &text, 1);
    let without = run_into(folder.path(), Format::Csv, BUSY, 1);
    assert!(with.flows == without.flows && with.queues == without.queues && with.links == without.links);
    assert!(table::<FlowSeriesRow>(folder.path()).is_none(), "the series of the earlier run are removed");
}

/// Three code points; the middle one, 1, is that of the scavenger queue.
fn with_classes(scheme: &str) -> String {
    let text = BUSY.replace("sizes = '20KB'", "sizes = '20KB'\ndscp = 1");
    let text = text.replace("load = 0.2", "load = 0.2\ndscp = 3\necn = true");
    format!("{text}\n[scheme]\n{scheme}\n")
}

/// Small buffers, so that queues drop.
const SCHEMES_WITH_CLASSES: [&str; 4] = [
    "name = 'priority'\nqueues = 3\nbuffer = 20",
    "name = 'scavenger'\nprimary_buffer = '40kB'\nscavenger_buffer = '20kB'\nscavenger_share = 0.2",
    "name = 'drr'\nqueues = 8\nbuffer = 20",
    "name = 'fq_codel'\nflows = 32\nbuffer = 60",
];

#[test]
fn sums_over_the_classes_of_a_port_are_its_row() {
    const SUMS: usize = 8;
    let columns = |first| {
        let sums = [
            "packets",
            "packets_mean",
            "bytes",
            "bytes_mean",
            "sent_packets",
            "sent_bytes",
            "marked_packets",
            "dropped_packets",
        ];
        let mut columns = [""; SUMS + 2];
        (columns[0], columns[1]) = ("time_ns", first);
        columns[2..].copy_from_slice(&sums);
        columns
    };
    for (scheme, loss) in SCHEMES_WITH_CLASSES.iter().flat_map(|scheme| [(scheme, false), (scheme, true)]) {
        let folder = tempfile::tempdir().unwrap();
        let series = "[queue_series]\ninterval = '50us'\nclasses = true\nports = ['leaf0']\n";
        let mut text = format!("{}\n{series}", with_classes(scheme));
        if loss {
            text = text.replace("leaves = 2", "leaves = 2\nloss = '1%'");
        } else {
            text = text.split("[[failure]]").next().unwrap().to_owned()
                + &format!("[scheme]\n{scheme}\n{series}");
        }
        let results = run_into(folder.path(), Format::Parquet, &text, 1);
        let ports = read::<QueueSeriesRow, { SUMS + 2 }>(folder.path(), columns("port"));
        let port_and_class = read::<ClassSeriesRow, 2>(folder.path(), ["port", "class"]);
        let classes = read::<ClassSeriesRow, { SUMS + 2 }>(folder.path(), columns("port"));
        let mut sums: BTreeMap<[u64; 2], [f64; SUMS]> = BTreeMap::new();
        for row in &classes {
            let sum = sums.entry([row[0] as u64, row[1] as u64]).or_default();
            sum.iter_mut().zip(&row[2..]).for_each(|(sum, value)| *sum += value);
        }
        for row in &ports {
            let sum = sums.get(&[row[0] as u64, row[1] as u64]).copied().unwrap_or_default();
            for (sum, port) in sum.iter().zip(&row[2..]) {
                assert!((sum - port).abs() <= 1e-9 * port.abs(), "{scheme}: {sum:?} and {row:?}");
            }
        }
        let dropped: f64 = ports.iter().map(|row| row[SUMS + 1]).sum();
        assert!(dropped > 0.0, "{scheme}");
        // Only what was lost on links has no class.
        let has_empty = port_and_class.iter().any(|row| row[1].is_nan());
        assert_eq!(has_empty, loss, "{scheme}");
        let numbers: std::collections::BTreeSet<u64> =
            port_and_class.iter().filter(|row| !row[1].is_nan()).map(|row| row[1] as u64).collect();
        assert!(numbers.len() >= 2, "{scheme}: {numbers:?}");
        assert!(scheme.contains("fq_codel") || numbers.last() <= Some(&7), "{scheme}: {numbers:?}");
        let tables: Vec<&str> = results.summary.series.iter().map(|series| series.table).collect();
        assert_eq!(tables, ["queue_series", "class_series"]);
        assert_eq!(results.summary.series[1].rows, classes.len() as u64);
        assert!(classes.is_sorted_by(|earlier, later| earlier[0] <= later[0]), "{scheme}");
    }
}

#[test]
fn classes_change_nothing_else() {
    for scheme in SCHEMES_WITH_CLASSES {
        let text = with_classes(scheme);
        let series = "[queue_series]\ninterval = '50us'\n";
        let run = |series: &str| {
            let folder = tempfile::tempdir().unwrap();
            let results = run_into(folder.path(), Format::Parquet, &format!("{text}\n{series}"), 1);
            (results, std::fs::read(folder.path().join("queue_series.parquet")).ok())
        };
        let (with, of_ports) = run(&format!("{series}classes = true\n"));
        assert!(of_ports == run(series).1, "{scheme}: the rows of ports stay as they are");
        let (without, _) = run("");
        let same =
            with.flows == without.flows && with.queues == without.queues && with.links == without.links;
        assert!(same && with.drops == without.drops, "{scheme}");
    }
}

#[test]
fn a_scheme_with_one_queue_has_no_classes() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "{}\n[queue_series]\ninterval = '50us'\nclasses = true\n",
        with_classes("name = 'droptail'\nbuffer = 20")
    );
    let plan = Plan::new(&Experiment::parse(&text, "test.toml").unwrap()).unwrap();
    let warning = "scheme droptail has one queue per port: class_series stays empty";
    assert!(plan.warnings.iter().any(|text| text.ends_with(warning)), "{:?}", plan.warnings);
    run_into(folder.path(), Format::Csv, &text, 1);
    assert_eq!(read::<ClassSeriesRow, 1>(folder.path(), ["time_ns"]), Vec::<[f64; 1]>::new());
    assert!(!read::<QueueSeriesRow, 1>(folder.path(), ["time_ns"]).is_empty());
}

/// A flow that fills a bottleneck of 100 Mbit/s behind access links of 1 Gbit/s. `more` goes to the end.
fn one_flow(transport: &str, more: &str) -> String {
    format!(
        "duration = '4s'\ndrain = '0s'\n[topology]\nshape = 'dumbbell'\nendpoints = 1\nrate = '1gbps'\ndelay = '10us'\n\
         uplink_rate = '100mbps'\nuplink_delay = '5ms'\n[scheme]\nname = 'droptail'\nbuffer = 100\n\
         [transport]\nname = '{transport}'\n[[workload]]\npattern = 'persistent'\nsenders = ['h0']\nreceiver = 'h1'\n{more}"
    )
}

/// The receive window holds 138 segments, the path about 83: the others wait at the bottleneck, and nothing is lost.
#[test]
fn the_round_trip_of_a_single_flow_is_that_of_the_idle_path_plus_the_queueing_delay() {
    let folder = tempfile::tempdir().unwrap();
    let text = one_flow("new_reno", "[flow_series]\ninterval = '10ms'\n");
    let text = text.replace("[[workload]]", "receive_window = '200kB'\n[[workload]]");
    run_into(folder.path(), Format::Parquet, &text, 1);
    let columns = ["rtt_ns", "queueing_delay_mean_ns", "queueing_delay_max_ns", "in_flight_bytes"];
    let rows = read::<FlowSeriesRow, 4>(folder.path(), columns);
    // A segment of 1,538 bytes over 1 Gbit/s, 100 Mbit/s and 1 Gbit/s, an acknowledgement of 90 bytes back, 2 x 5.02 ms of
    // propagation, 2 x 10 us in the stacks.
    let transmission = |bytes: f64| bytes * (8.0 + 80.0 + 8.0);
    let idle = transmission(1538.0) + transmission(90.0) + 2.0 * 5_020_000.0 + 20_000.0;
    // The receiver acknowledges pairs of segments, which are sent at once. The second waits one transmission longer, and
    // the acknowledgement measures the first: the mean delay of a pair is half a transmission longer than that of the first,
    // and the acknowledgement leaves one transmission after it.
    let late = 1538.0 * 80.0 / 2.0;
    let steady = &rows[20..];
    for [rtt, mean, max, in_flight] in steady {
        assert!((rtt - idle - mean - late).abs() < 2_000.0, "{rtt}, {mean} and {idle}");
        assert!(max >= mean && *mean > 5_000_000.0, "{mean} to {max}");
        assert!((138.0 - in_flight / 1448.0).abs() <= 2.0, "{in_flight}");
    }
    assert!(steady.len() > 350);
}

/// Reno over one bottleneck: between losses the window grows by a segment per round trip, and a loss halves it. The top of each
/// tooth is what the path and the buffer hold.
#[test]
fn the_window_of_new_reno_is_a_sawtooth() {
    let folder = tempfile::tempdir().unwrap();
    run_into(folder.path(), Format::Parquet, &one_flow("new_reno", "[flow_series]\nchanges = true\n"), 1);
    let rows =
        read::<FlowSeriesRow, 4>(folder.path(), ["time_ns", "cwnd_packets", "ssthresh_bytes", "srtt_ns"]);
    // After the first loss, in congestion avoidance: segments of equal threshold are teeth.
    let teeth: Vec<&[[f64; 4]]> = rows.chunk_by(|one, next| one[2].to_bits() == next[2].to_bits()).collect();
    let teeth = &teeth[2..teeth.len() - 1];
    assert!(teeth.len() >= 2, "{}", teeth.len());
    // 100 Mbit/s times 10.23 ms, in packets of 1,538 bytes, and the buffer with the packet that the port sends.
    let capacity = 1e8 * 0.01023 / 8.0 / 1538.0 + 101.0;
    for tooth in teeth {
        let threshold = tooth[0][2] / 1448.0;
        let top = tooth.iter().map(|row| row[1]).fold(0.0, f64::max);
        assert!((top - capacity).abs() < 4.0, "{top} and {capacity}");
        assert!((threshold - capacity / 2.0).abs() < 3.0, "{threshold} and {capacity}");
        // Growth per round trip, computed apart: the sum of the times over the smoothed round trips.
        let growing: Vec<&[f64; 4]> =
            tooth.iter().skip_while(|row| row[1] > threshold + 0.5).skip(1).collect();
        let rounds: f64 = growing.windows(2).map(|pair| (pair[1][0] - pair[0][0]) / pair[0][3]).sum();
        let grown = growing.last().unwrap()[1] - growing[0][1];
        assert!((grown / rounds - 1.0).abs() < 0.1, "{grown} segments in {rounds} round trips");
    }
}

/// CUBIC reduces its window to 0.7 of it, DCTCP by half of the share of marks.
#[test]
fn cubic_and_dctcp_reduce_their_windows_by_their_factors() {
    let reductions = |transport: &str, scheme: &str| {
        let folder = tempfile::tempdir().unwrap();
        let text = one_flow(transport, "[flow_series]\nchanges = true\n");
        run_into(folder.path(), Format::Parquet, &text.replace("name = 'droptail'\nbuffer = 100", scheme), 1);
        let rows = read::<FlowSeriesRow, 3>(folder.path(), ["time_ns", "cwnd_bytes", "ssthresh_bytes"]);
        let changed = |pair: &&[[f64; 3]]| pair[0][0] > 1e9 && pair[0][2].to_bits() != pair[1][2].to_bits();
        let ratios: Vec<f64> = rows.windows(2).filter(changed).map(|pair| pair[1][2] / pair[0][1]).collect();
        assert!(!ratios.is_empty(), "{transport}");
        ratios
    };
    for ratio in reductions("cubic", "name = 'droptail'\nbuffer = 100") {
        assert!((ratio - 0.7).abs() < 0.01, "{ratio}");
    }
    // With one flow, a window is marked in some of its rounds only: alpha is small, and never above 1.
    for ratio in reductions("dctcp", "name = 'dctcp'\nthreshold = 20") {
        assert!((0.5..1.0).contains(&ratio), "{ratio}");
    }
}

#[test]
fn rows_do_not_depend_on_the_number_of_threads() {
    let text = "
        duration = '2ms'
        [topology]
        shape = 'leaf_spine'
        leaves = 4
        endpoints = 4
        [[packets]]
        sender = 'poisson'
        load = 0.9
        ecn = true
        [scheme]
        name = 'dctcp'
        [queue_series]
        interval = '33us'
        [[failure]]
        link = ['leaf0', 'spine0']
        at = '1ms'
        reroute_after = '100us'
    ";
    let busy = format!("{BUSY}\n[flow_series]\ninterval = '20us'\n[queue_series]\ninterval = '33us'\n");
    let classes = SCHEMES_WITH_CLASSES.map(|scheme| {
        let text = text
            .replace("name = 'dctcp'", scheme)
            .replace("'33us'", "'33us'\nclasses = true")
            .replace("'2ms'", "'1200us'");
        text.replace("ecn = true", "ecn = true\n[[packets]]\nsender = 'poisson'\nload = 0.4\ndscp = 1")
    });
    let with_classes = classes.iter().map(|text| (text.as_str(), &["queue_series", "class_series"][..]));
    let others = [(text, &["queue_series"][..]), (&busy, &["queue_series", "flow_series"])];
    for (text, tables) in others.into_iter().chain(with_classes) {
        let bytes = |threads: usize| {
            let folder = tempfile::tempdir().unwrap();
            run_into(folder.path(), Format::Parquet, text, threads);
            let read = |table: &&str| std::fs::read(folder.path().join(format!("{table}.parquet"))).unwrap();
            tables.iter().map(read).collect::<Vec<_>>()
        };
        let one = bytes(1);
        assert!(one.iter().all(|table| table.len() > 1_000));
        for threads in [2, 3, 6] {
            assert!(one == bytes(threads), "{tables:?} with {threads} threads");
        }
    }
}

/// The mean over looks, against a run whose queue is sampled in each slot.
#[test]
fn means_and_maxima_of_queues_are_those_of_a_sample_per_slot() {
    let folder = tempfile::tempdir().unwrap();
    let text = "duration = '400us'\ndrain = '0s'\n[topology]\nendpoints = 4\n[[workload]]\npattern = 'incast'\nsizes = '30KB'\n\
                [measure]\nqueue_interval = '1ns'\nports = ['tor0 > h0']\n[queue_series]\ninterval = '50us'\nports = ['tor0 > h0']\n";
    let results = run_into(folder.path(), Format::Csv, text, 1);
    let columns = ["time_ns", "interval_ns", "packets_mean", "packets_max", "packets", "bytes_mean"];
    let rows = read::<QueueSeriesRow, 6>(folder.path(), columns);
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().any(|row| row[3] > 10.0), "{rows:?}");
    for [end, interval, mean, max, last, bytes] in rows {
        let within = |row: &&crate::results::QueueRow| {
            (row.time_ns as f64) > end - interval && (row.time_ns as f64) <= end
        };
        let samples: Vec<_> = results.queues.iter().filter(within).collect();
        let packets: Vec<f64> = samples.iter().map(|row| f64::from(row.packets)).collect();
        let sum: f64 = packets.iter().sum();
        assert!((mean - sum / packets.len() as f64).abs() < 1e-9, "{mean}");
        let sum: u64 = samples.iter().map(|row| row.bytes).sum();
        assert!((bytes - sum as f64 / packets.len() as f64).abs() < 1e-6, "{bytes}");
        assert_eq!(max, packets.iter().copied().fold(0.0, f64::max));
        assert_eq!(Some(&last), packets.last());
    }
}

#[test]
fn flows_are_chosen_by_their_ends_workload_class_and_size() {
    let chosen = |keys: &str| {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("{BUSY}\n[flow_series]\ninterval = '100us'\n{keys}\n");
        let results = run_into(folder.path(), Format::Csv, &text, 1);
        let rows = read::<FlowSeriesRow, 2>(folder.path(), ["flow", "workload"]);
        let flows: BTreeMap<u64, u64> = rows.iter().map(|row| (row[0] as u64, row[1] as u64)).collect();
        let of = |flow: u64| results.flows.iter().find(|row| u64::from(row.flow) == flow).cloned();
        let rows: Vec<_> = flows.into_iter().map(|(flow, workload)| (of(flow).unwrap(), workload)).collect();
        assert!(!rows.is_empty(), "{keys}");
        (rows, results)
    };
    let (all, results) = chosen("");
    assert_eq!(all.len(), results.flows.len());
    assert!(chosen("sources = ['h1..h3']").0.iter().all(|(flow, _)| "h1 h2 h3".contains(&flow.src)));
    assert!(chosen("destinations = ['h0']").0.iter().all(|(flow, _)| flow.dst == "h0"));
    assert!(chosen("workload = 2").0.iter().all(|(flow, workload)| (flow.bytes, *workload) == (20_000, 2)));
    assert!(chosen("min_size = '100kB'").0.iter().all(|(flow, _)| flow.bytes >= 100_000));
    let (largest, _) = chosen("largest = 5");
    let mut sizes: Vec<u64> = results.flows.iter().map(|flow| flow.bytes).collect();
    sizes.sort_unstable();
    let mut found: Vec<u64> = largest.iter().map(|(flow, _)| flow.bytes).collect();
    found.sort_unstable();
    assert_eq!(found, sizes[sizes.len() - 5..]);
}

#[test]
fn invalid_series_are_refused() {
    for (keys, expected) in [
        ("[flow_series]\nlargest = 3", "no flow is sampled: add interval"),
        (
            "[flow_series]\ninterval = '1us'\nworkload = 3",
            "there are 2 [[workload]] sections: expected 1 to 2",
        ),
        ("[flow_series]\ninterval = '1us'\nsources = ['h99']", "unknown endpoint \"h99\""),
        ("[flow_series]\ninterval = '1ns'\nlargest = 60000", "use a longer interval, fewer flows"),
        ("[queue_series]\nports = ['leaf0']", "no queue is sampled: add interval"),
        ("[queue_series]\nclasses = true", "no queue is sampled: add interval"),
        ("[queue_series]\ninterval = '1us'\nports = ['leaf9']", "leaf9"),
    ] {
        let experiment = Experiment::parse(&format!("{BUSY}\n{keys}\n"), "test.toml").unwrap();
        let error = Plan::new(&experiment).err().expect(keys).to_string();
        assert!(error.contains(expected), "{keys}: {error}");
    }
}

#[test]
fn a_series_that_cannot_be_written_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let text = format!("{BUSY}\n[queue_series]\ninterval = '10us'\n");
    let attempt = |out: &Path| {
        let plan = Plan::new(&Experiment::parse(&text, "test.toml").unwrap()).unwrap();
        let output = Output { folder: out, format: Format::Csv };
        run(plan, Some(output), &AtomicBool::new(false), &mut |_| {})
    };
    let error = attempt(&file).unwrap_err();
    assert!(matches!(error, RunError::Series(_)), "{error}");
    // A device without room, in the place of the unfinished file.
    std::os::unix::fs::symlink("/dev/full", folder.path().join("queue_series.csv.unfinished")).unwrap();
    let error = attempt(folder.path()).unwrap_err();
    assert!(matches!(error, RunError::Series(_)), "{error}");
    assert!(table::<QueueSeriesRow>(folder.path()).is_none());
}
