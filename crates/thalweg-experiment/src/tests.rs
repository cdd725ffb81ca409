//! Small experiments, run in this process.

mod impairments;
mod series;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::results::Results;
use super::sweep::Sweep;
use super::*;

fn run_with(text: &str, stop: bool) -> Results {
    let experiment = Experiment::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::new(&experiment).unwrap_or_else(|error| panic!("{error}"));
    run(plan, None, &AtomicBool::new(stop), &mut |_| {}).unwrap_or_else(|error| panic!("{error}"))
}

fn run_text(text: &str) -> Results {
    run_with(text, false)
}

/// Without the field that the seed does not determine.
fn of_seed(results: Results) -> Results {
    Results { wall_seconds: 0.0, ..results }
}

/// Flows, packets without transport, and a link that fails and is repaired.
const BUSY: &str = "
    duration = '4ms'
    [topology]
    shape = 'leaf_spine'
    leaves = 2
    endpoints = 4
    [transport]
    min_rto = '1ms'
    [[workload]]
    pattern = 'all_to_all'
    sizes = 'hadoop'
    load = 0.5
    [[workload]]
    pattern = 'incast'
    sizes = '20KB'
    [[packets]]
    sender = 'poisson'
    load = 0.2
    [[failure]]
    link = ['leaf0', 'spine0']
    at = '1ms'
    repair = '2ms'
    reroute_after = '100us'
";

#[test]
fn packets_are_conserved_under_every_scheme_and_failure() {
    for scheme in thalweg_emulator::schemes::SCHEMES {
        let results = run_text(&format!("{BUSY}\n[scheme]\nname = '{}'", scheme.name));
        let packets = results.summary.packets;
        assert_eq!(packets.sent, packets.delivered + packets.dropped + packets.in_flight, "{}", scheme.name);
        assert!(packets.delivered > 5_000, "{}: {packets:?}", scheme.name);
        let listed: u64 = results.drops.iter().map(|drop| drop.packets).sum();
        assert_eq!(listed, packets.dropped, "every drop has a place and a reason");
        assert!(results.drops.iter().any(|drop| drop.reason == "link_down"), "{}", scheme.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_results_and_another_gives_others() {
    let first = of_seed(run_text(BUSY));
    assert_eq!(first, of_seed(run_text(BUSY)));
    assert_ne!(first.summary, run_text(&format!("seed = 2\n{BUSY}")).summary);
}

#[test]
fn runs_of_a_sweep_are_those_of_single_experiments() {
    let experiment = Experiment::parse(BUSY, "test.toml").unwrap();
    let axes = ["scheme=droptail,pfabric", "workload.load=0.2..0.3"].map(|text| text.parse().unwrap());
    // The second workload has no load and is not changed.
    let sweep = Sweep::new(&experiment, axes.into()).unwrap();
    assert_eq!(sweep.runs(), 4);
    let stop = AtomicBool::new(false);
    let done = sweep.run::<anyhow::Error>(3, None, &stop, &|_, _| {}, &|_, results| Ok(results)).unwrap();
    for (index, (scheme, load)) in
        [("droptail", "0.2"), ("droptail", "0.3"), ("pfabric", "0.2"), ("pfabric", "0.3")]
            .into_iter()
            .enumerate()
    {
        let run = &done.runs[index];
        assert_eq!(run.values, [scheme, load]);
        let text = BUSY.replace("load = 0.5", &format!("load = {load}"));
        let single = run_text(&format!("{text}\n[scheme]\nname = '{scheme}'"));
        assert_eq!(of_seed(run.results.clone()), of_seed(single));
    }
}

#[test]
fn unbounded_senders_share_and_fill_the_link() {
    let results = run_text(
        "duration = '60ms'\nwarm_up = '20ms'\n[topology]\nendpoints = 6\n[scheme]\nname = 'dctcp'\n[[workload]]\n\
         pattern = 'persistent'",
    );
    let summary = &results.summary;
    let busiest = &summary.busiest_links[0];
    assert_eq!((busiest.from.as_str(), busiest.to.as_str()), ("tor0", "h0"));
    assert!((0.99..=1.0).contains(&busiest.utilisation), "{busiest:?}");
    let unbounded = summary.unbounded.as_ref().unwrap();
    assert_eq!(unbounded.flows, 5);
    assert!(unbounded.fairness > 0.9, "{unbounded:?}");
    let sum = unbounded.goodput_bps.mean * 5.0;
    assert!((sum / summary.goodput_bps - 1.0).abs() < 1e-9, "{unbounded:?}");
    // 1448 of 1538 bytes are payload.
    assert!((summary.goodput_bps / 1e10 / (1448.0 / 1538.0) - 1.0).abs() < 0.01, "{}", summary.goodput_bps);
    // K = 65.
    let queue = &summary.longest_queues[0];
    assert!((30.0..90.0).contains(&queue.packets.p50), "{queue:?}");
}

#[test]
fn the_warm_up_is_excluded() {
    let text = "duration = '4ms'\n[topology]\nendpoints = 4\n[[workload]]\npattern = 'incast'\nsizes = '20KB'\nrounds = 1\n";
    let counted = |warm_up: &str| {
        let summary = run_text(&format!("warm_up = '{warm_up}'\n{text}")).summary;
        (summary.flows.completed, summary.sizes[0].completed, summary.goodput_bps > 0.0)
    };
    assert_eq!(counted("0s"), (3, 3, true));
    assert_eq!(counted("3ms"), (3, 0, false));
}

#[test]
fn a_lone_flow_has_slowdown_one() {
    let results = run_text(
        "duration = '20ms'\n[topology]\nshape = 'fat_tree'\n[[workload]]\npattern = 'incast'\nsenders = 'h15'\nsizes = \
         'web_search'\npause = '50us'\n",
    );
    assert!(results.flows.len() > 3);
    for flow in &results.flows {
        assert!((0.97..1.06).contains(&flow.slowdown), "{flow:?}");
    }
}

#[test]
fn flows_complete_after_the_duration() {
    let run = |drain| {
        let text = "[topology]\nendpoints = 3\n[[workload]]\npattern = 'incast'\nsizes = '10MB'";
        run_text(&format!("duration = '1ms'\n{drain}\n{text}"))
    };
    let without = run("drain = '0s'");
    let (flows, sizes) = (without.summary.flows, without.summary.sizes);
    assert_eq!((flows.started, flows.completed, flows.unfinished), (2, 0, 2));
    assert_eq!(sizes.iter().map(|class| class.unfinished).collect::<Vec<_>>(), [0, 0, 2, 2]);

    // Two flows of 10 MB over 10 Gbit/s take more than 16 ms.
    let drained = run("");
    let (flows, sizes) = (drained.summary.flows, &drained.summary.sizes);
    assert_eq!((flows.started, flows.completed, flows.unfinished), (2, 2, 0));
    assert!((16_000_000.0..30_000_000.0).contains(&sizes[3].fct_ns.max), "{sizes:?}");
    assert!(
        (16_000_000..30_000_000).contains(&(drained.duration_ns + drained.drain_ns)),
        "{}",
        drained.drain_ns
    );
    assert_eq!(drained.duration_ns, without.duration_ns);
    assert_eq!(
        drained.summary.throughput_bps, without.summary.throughput_bps,
        "measured in the duration alone"
    );
}

#[test]
fn packets_without_transport_load_links_as_configured() {
    let results = run_text(
        "duration = '10ms'\n[topology]\nendpoints = 8\n[[packets]]\nsender = 'constant'\nload = 0.4\n\
                            destinations = 'permutation'",
    );
    assert_eq!(results.transport, "none");
    for link in &results.summary.busiest_links {
        assert!((link.utilisation - 0.4).abs() < 0.01, "{link:?}");
    }
}

#[test]
fn an_interrupted_run_returns_its_measurements() {
    let results = run_with(BUSY, true);
    assert!(results.interrupted);
    assert_eq!(results.slots, 0);
}

#[test]
fn an_invalid_network_is_refused_before_the_first_slot() {
    let refused = |rest: &str| {
        let text = format!("duration = '10ms'\n{rest}");
        let experiment = Experiment::parse(&text, "x.toml").unwrap_or_else(|error| panic!("{error}"));
        let error = Plan::new(&experiment).err().map(|error| error.to_string());
        error.unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(refused(""), ["x.toml:1: nothing is sent: a [[workload]] or [[packets]] is needed"]);
    assert_eq!(
        refused(
            "warm_up = '20ms'
            [topology]
            shape = 'fat_tree'
            [scheme]
            name = 'red'
            min_threshold = 400
            [[workload]]
            pattern = 'rpc'
            clients = ['h0', 'h99']
            sizes = 'websearch'
            load = 0.4
            [[workload]]
            pattern = 'stride'
            stride = 16
            sizes = '1MB'
            [[workload]]
            pattern = 'incast'
            sizes = ['0.5 1MB', 'x 2MB']
            [[workload]]
            pattern = 'all_to_all'
            sizes = 'websearch'
            load = 0.4
            [[failure]]
            link = ['edge0', 'core1']
            at = '1ms'
            [[mirror]]
            router = 'edge9'
            [measure]
            ports = 'edge0 > agg7'
            [[packets]]
            sender = 'bursts'
            load = 0.2
            lengths = '9KB'"
        ),
        [
            "x.toml:2: warm_up: expected a time shorter than the duration",
            "x.toml:7: min_threshold: invalid value 400: expected less than `max_threshold`",
            "x.toml:10: clients: unknown endpoint \"h99\": expected h0 to h15",
            "x.toml:15: stride: invalid stride 16: with 16 endpoints each would send to itself",
            "x.toml:19: sizes: \"x 2MB\": expected SIZES, WEIGHT SIZES or WEIGHT SIZES dscp N, as in 0.8 1500B dscp 3",
            "x.toml:22: sizes: \"websearch\" is neither a published distribution nor a file; did you mean \"web_search\"?",
            "x.toml:25: link: no link connects edge0 and core1",
            "x.toml:28: router: unknown router \"edge9\"; did you mean \"edge0\"?",
            "x.toml:30: ports: no port of edge0 leads to agg7",
            "x.toml:34: lengths: \"9KB\": expected LENGTH or WEIGHT LENGTH, as in 0.5 64B, with lengths from 1B to 1538B",
        ]
    );
}

/// Packets without transport, and a link that fails and is repaired.
const OPEN_LOOP: &str = "
    duration = '800us'
    warm_up = '100us'
    [topology]
    shape = 'leaf_spine'
    leaves = 4
    endpoints = 3
    [[packets]]
    sender = 'poisson'
    load = 0.8
    [[failure]]
    link = ['leaf0', 'spine0']
    at = '300us'
    repair = '500us'
    reroute_after = '50us'
";

/// The contents of all result files, by name.
fn result_files(text: &str, threads: usize) -> std::collections::BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let experiment = Experiment::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    let mut plan = Plan::new(&experiment).unwrap_or_else(|error| panic!("{error}"));
    plan.threads = threads;
    let results = run(
        plan,
        Some(files::Output { folder: folder.path(), format: files::Format::Csv }),
        &AtomicBool::new(false),
        &mut |_| {},
    )
    .unwrap();
    assert!(results.summary.packets.delivered > 1_000);
    files::write(folder.path(), files::Format::Csv, &of_seed(results)).unwrap();
    let read = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.unwrap().path();
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
    };
    std::fs::read_dir(folder.path()).unwrap().map(read).collect()
}

#[test]
fn a_port_names_the_same_link_as_its_ends() {
    let tables = |failed: &str, measured: &str| {
        let text = OPEN_LOOP.replace("['leaf0', 'spine0']", failed);
        assert!(text.contains(failed));
        let text = format!("{text}\n[scheme]\nname = 'droptail'\n[measure]\nports = '{measured}'");
        let mut files = result_files(&text, 1);
        files.retain(|name, _| name.ends_with(".csv"));
        files
    };
    let by_ends = tables("['leaf0', 'spine0']", "leaf0 > spine0");
    assert!(!by_ends.is_empty() && tables("'leaf0:p3'", "leaf0:p3") == by_ends);
    let unknown = OPEN_LOOP.replace("['leaf0', 'spine0']", "'leaf0:eth9'") + "[measure]\nports = 'leaf0:p99'";
    let experiment = Experiment::parse(&unknown, "x.toml").unwrap();
    let error = Plan::new(&experiment).map(drop).unwrap_err().to_string();
    for port in ["link: no port eth9 at \"leaf0\"", "ports: no port p99 at \"leaf0\""] {
        assert!(error.contains(port), "{error}");
    }
}

#[test]
fn result_files_do_not_depend_on_the_number_of_threads() {
    for scheme in thalweg_emulator::schemes::SCHEMES {
        let text = format!("{OPEN_LOOP}\n[scheme]\nname = '{}'", scheme.name);
        let one = result_files(&text, 1);
        assert!(one.len() > 3, "{:?}", one.keys());
        assert!(result_files(&text, 3) == one, "{} on three threads", scheme.name);
    }
    let with_hosts = |threads| result_files(BUSY, threads);
    assert!(with_hosts(4) == with_hosts(1), "hosts run on one thread");
}
