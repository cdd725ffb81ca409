use super::*;
use crate::results::{
    FlowCounts, FlowRow, LinkRow, PacketCounts, QueueRow, QueueUse, SIZE_CLASSES, SizeClassRow, Spread,
    Summary, SweepRun,
};

/// Reproducible random numbers (splitmix64).
struct Numbers(u64);

impl Numbers {
    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponential with mean one.
    fn gap(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }
}

fn queues(samples: u64, ports: u16) -> Vec<QueueRow> {
    let mut numbers = Numbers(1);
    let mut waiting = vec![0.0; usize::from(ports)];
    let mut rows = Vec::new();
    for sample in 0..samples {
        for port in 0..ports {
            let queue = &mut waiting[usize::from(port)];
            let load = 1.0 / (1.0 + f64::from(port) / 4.0);
            *queue = (*queue + 60.0 * (numbers.unit() - 0.5) + 4.0 * load - 3.0).clamp(0.0, 1_024.0 * load);
            rows.push(QueueRow {
                time_ns: sample * 100_000,
                router: "tor0".to_owned(),
                port,
                to: format!("h{port}"),
                packets: *queue as u32,
                bytes: (*queue * 1_538.0) as u64,
            });
        }
    }
    rows
}

fn links(intervals: u64, hosts: u64) -> Vec<LinkRow> {
    let mut numbers = Numbers(2);
    let row = |index: u64| {
        let (interval, host) = (index / hosts, index % hosts);
        let utilisation = (1.0 - libm::exp(-(interval as f64) / 8.0)) * (0.7 + 0.25 * numbers.unit())
            / (1.0 + host as f64 / 10.0);
        LinkRow {
            time_ns: interval * 1_000_000,
            interval_ns: 1_000_000,
            from: "tor0".to_owned(),
            to: format!("h{host}"),
            packets: (utilisation * 812.0) as u64,
            bytes: (utilisation * 1_250_000.0) as u64,
            utilisation,
            marked_packets: 0,
            dropped_packets: index % 3,
        }
    };
    (0..intervals * hosts).map(row).collect()
}

fn flows(count: u32) -> Vec<FlowRow> {
    let mut numbers = Numbers(3);
    let mut row = |flow: u32| {
        let bytes = match numbers.unit() {
            small if small < 0.6 => 1_000.0 + 60_000.0 * numbers.gap(),
            medium if medium < 0.93 => 100_000.0 + 1_000_000.0 * numbers.gap(),
            _ => 1e7 + 1e7 * numbers.gap(),
        };
        let ideal_fct = 12_000.0 + bytes * 0.8;
        let wait = 0.2 * numbers.gap() + if numbers.unit() < 0.02 { 20.0 * numbers.gap() } else { 0.0 };
        FlowRow {
            flow,
            src: "h0".to_owned(),
            dst: "h1".to_owned(),
            bytes: bytes as u64,
            dscp: 0,
            start_ns: u64::from(flow) * 20_000,
            fct_ns: (ideal_fct * (1.0 + wait)) as u64,
            slowdown: 1.0 + wait,
            retransmissions: 0,
            timeouts: 0,
            marks: 0,
        }
    };
    (0..count).map(&mut row).collect()
}

fn run(scheme: &str, samples: u64) -> Results {
    Results {
        experiment: "web search <on> a \"rack\" & more".to_owned(),
        scheme: scheme.to_owned(),
        transport: "cubic".to_owned(),
        topology: "rack".to_owned(),
        seed: 1,
        duration_ns: samples * 100_000,
        drain_ns: 0,
        warnings: Vec::new(),
        warm_up_ns: samples * 10_000,
        slots: 1,
        wall_seconds: 1.0,
        interrupted: false,
        flows: flows(samples as u32),
        queues: queues(samples, 12),
        links: links(samples / 10, 8),
        drops: Vec::new(),
        summary: Summary::default(),
    }
}

/// Arbitrary numbers that differ from run to run.
fn summary(steepness: f64, load: f64) -> Summary {
    let slow = 1.0 + steepness * load / (1.0 - load);
    let spread = |of: f64| Spread { mean: of, p50: of, p95: 2.0 * of, p99: 5.0 * of, max: 9.0 * of };
    Summary {
        packets: PacketCounts {
            sent: 1_000_000,
            dropped: (1e4 * load * load) as u64,
            ..PacketCounts::default()
        },
        throughput_bps: load * 3.2e11,
        goodput_bps: load * 3e11,
        flows: FlowCounts { started: 1_000, unfinished: (20.0 * load) as u64, ..FlowCounts::default() },
        sizes: SIZE_CLASSES
            .iter()
            .map(|&(class, _)| SizeClassRow {
                class,
                completed: 9,
                slowdown: spread(slow),
                ..SizeClassRow::default()
            })
            .collect(),
        longest_queues: vec![QueueUse {
            router: "tor0".to_owned(),
            port: 0,
            to: "h0".to_owned(),
            packets: spread(10.0 * slow),
            bytes: spread(15_380.0 * slow),
        }],
        ..Summary::default()
    }
}

fn sweep(keys: &[&str], values: &[&[&str]]) -> SweepResults {
    let mut combinations = vec![Vec::new()];
    for values in values {
        let with = |chosen: &Vec<String>| {
            let chosen = chosen.clone();
            values.iter().map(move |value| [&chosen[..], &[(*value).to_owned()]].concat())
        };
        combinations = combinations.iter().flat_map(with).collect();
    }
    let runs = (1..).zip(combinations).map(|(number, values): (u32, Vec<String>)| {
        let load = values.iter().filter_map(|value| value.parse().ok()).find(|load: &f64| *load < 1.0);
        let results = Results {
            summary: summary(f64::from(number % 5) + 0.5, load.unwrap_or(0.5)),
            ..run(&values[0], 0)
        };
        SweepRun { folder: values.join("-"), values, results }
    });
    SweepResults {
        experiment: "web-search".to_owned(),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        runs: runs.collect(),
    }
}

/// Checks that tags are closed in order and characters are escaped.
fn check_well_formed(svg: &str) {
    let mut open = Vec::new();
    let mut rest = svg;
    while let Some((text, tagged)) = rest.split_once('<') {
        assert!(!text.contains('>'), "{text}");
        let ampersands = text.match_indices('&').map(|(at, _)| &text[at..]);
        for entity in ampersands {
            assert!(
                ["&lt;", "&gt;", "&amp;", "&quot;"].iter().any(|known| entity.starts_with(known)),
                "{text}"
            );
        }
        let (tag, after) = tagged.split_once('>').expect("every tag ends");
        assert!(tag.matches('"').count() % 2 == 0, "{tag}");
        match (tag.strip_prefix('/'), tag.ends_with('/')) {
            (Some(name), _) => assert_eq!(open.pop(), Some(name)),
            (None, true) => {}
            (None, false) => open.push(tag.split_whitespace().next().unwrap_or_default()),
        }
        rest = after;
    }
    assert_eq!(open, [""; 0]);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "a number is missing");
}

fn drawn(results: &Results) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    read(draw(folder.path(), results).unwrap())
}

fn drawn_sweep(results: &SweepResults) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    read(draw_sweep(folder.path(), results).unwrap())
}

fn read(paths: Vec<PathBuf>) -> Vec<(String, String)> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn a_run_has_three_plots_that_are_well_formed_and_the_same_every_time() {
    let results = run("dctcp", 2_000);
    let plots = drawn(&results);
    let names: Vec<_> = plots.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["queues.svg", "throughput.svg", "flows.svg"]);
    for (name, svg) in &plots {
        check_well_formed(svg);
        assert!(svg.contains("web search &lt;on&gt; a"), "{name}");
        assert!(svg.len() < 200_000, "{name} has {} bytes", svg.len());
    }
    assert_eq!(plots, drawn(&results));
}

#[test]
fn strips_show_the_busiest_places_in_order() {
    let results = run("dctcp", 500);
    let sum = |port: u16| {
        let counted =
            results.queues.iter().filter(|row| row.port == port && row.time_ns >= results.warm_up_ns);
        counted.map(|row| u64::from(row.packets)).sum::<u64>()
    };
    let mut ports: Vec<u16> = (0..12).collect();
    ports.sort_by_key(|port| std::cmp::Reverse(sum(*port)));
    let svg = &drawn(&results)[0].1;
    let at = |port: &u16| svg.find(&format!("tor0 \u{2192} h{port}\n"));
    let (drawn, left_out) = ports.split_at(6);
    assert!(drawn.iter().map(at).collect::<Option<Vec<_>>>().unwrap().is_sorted());
    assert!(left_out.iter().all(|port| at(port).is_none()));
    assert!(svg.contains("at 6 of 12 ports, those with the longest mean queue"));
}

#[test]
fn notes_exclude_the_warm_up() {
    let row = |time_ns, packets| QueueRow {
        time_ns,
        router: "r".to_owned(),
        port: 0,
        to: "h".to_owned(),
        packets,
        bytes: 0,
    };
    let times = Times { duration_ns: 30, warm_up_ns: 10 };
    let svg = queues::draw("t", &[row(0, 900), row(10, 10), row(20, 20)], times).unwrap();
    assert!(svg.contains("mean 15, median 10") && svg.contains("p99 20, max 20"), "{svg}");
    assert!(svg.contains("at 1 of 1 ports, all that had a queue"));
    let svg = queues::draw("t", &[row(0, 900), row(10, 0), row(20, 0)], times).unwrap();
    assert!(svg.contains("No packet was found waiting"), "{svg}");
}

#[test]
fn empty_and_tiny_results_are_drawn() {
    for samples in [0, 1, 10] {
        let mut results = Results { warm_up_ns: 0, ..run("red", samples) };
        for (_, svg) in drawn(&results) {
            check_well_formed(&svg);
        }
        results.duration_ns = 0;
        results.queues.truncate(1);
        results.links.truncate(1);
        results.flows.truncate(1);
        results.flows.iter_mut().for_each(|flow| (flow.slowdown, flow.fct_ns) = (f64::NAN, 0));
        results.links.iter_mut().for_each(|link| (link.interval_ns, link.bytes) = (0, u64::MAX));
        for (_, svg) in drawn(&results) {
            check_well_formed(&svg);
        }
    }
    let mut results = run("red", 20);
    results.flows.iter_mut().for_each(|flow| flow.slowdown = f64::NAN);
    check_well_formed(&drawn(&results)[2].1);
    let nothing = SweepResults { experiment: String::new(), keys: Vec::new(), runs: Vec::new() };
    assert_eq!(drawn_sweep(&nothing), []);
    assert_eq!(drawn_sweep(&SweepResults { keys: vec!["load".to_owned()], ..nothing }), []);
}

#[test]
fn a_sweep_has_a_line_for_each_value_of_the_key_that_is_no_number() {
    let results =
        sweep(&["scheme.name", "workload.load"], &[&["droptail", "dctcp", "hull"], &["0.2", "0.5", "0.8"]]);
    let plots = drawn_sweep(&results);
    let names: Vec<_> = plots.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["sweep-slowdown.svg", "sweep-throughput.svg", "sweep-queues.svg"]);
    for (name, svg) in &plots {
        check_well_formed(svg);
        assert!(["droptail", "dctcp", "hull", "by load"].iter().all(|text| svg.contains(text)), "{name}");
    }
    let polylines_of_a_panel = 3;
    assert!(plots[2].1.matches("<polyline").count() >= 2 * polylines_of_a_panel);
    assert_eq!(plots, drawn_sweep(&results));
}

#[test]
fn runs_that_differ_in_their_seed_alone_become_one_dot_with_a_bar() {
    let svg = |seeds: &[&str]| {
        let results = sweep(&["load", "scheme", "seed"], &[&["0.2", "0.4"], &["red"], seeds]);
        drawn_sweep(&results).swap_remove(2).1
    };
    let (one, three) = (svg(&["1"]), svg(&["1", "2", "3"]));
    assert_eq!(one.matches("<circle").count(), 2 * 2);
    assert_eq!(three.matches("<circle").count(), 2 * 2);
    assert!(three.contains("means over seeds") && !one.contains("means over seeds"));
    let bars = |svg: &str| svg.matches("stroke=\"#0072B2\" stroke-width=\"1\"").count();
    assert_eq!((bars(&one), bars(&three)), (0, 2 * 2));
}

#[test]
fn lines_join_means_with_confidence_intervals() {
    let grid = grid::Grid::of(&sweep(&["load", "seed"], &[&["0.4", "0.2"], &["1", "2", "3"]])).unwrap();
    let line = grid.line(0, &[2.0, 6.0, 1.0, f64::NAN, 5.0, f64::NAN]);
    assert_eq!(line.points, [(0.2, 5.0), (0.4, 3.0)]);
    // Three runs of 2, 6 and 1: a deviation of sqrt(7), and 4.303 of Student's t with two degrees of freedom.
    let half = 4.303 * (7.0f64 / 3.0).sqrt();
    let [(x, low, high)] = line.bars[..] else { panic!("{:?}", line.bars) };
    assert!(x == 0.4 && (low - (3.0 - half)).abs() < 1e-9 && (high - (3.0 + half)).abs() < 1e-9);
}

#[test]
fn a_key_with_one_value_is_reported_once() {
    let results = sweep(&["scheme", "load", "duration"], &[&["red", "pie"], &["0.2", "0.4"], &["100ms"]]);
    let svg = &drawn_sweep(&results)[2].1;
    assert!(svg.contains("4 runs; duration 100ms") && svg.matches("100ms").count() == 1, "{svg}");
}

#[test]
fn names_with_equal_prefixes_have_their_own_lines() {
    let names = ["x".repeat(60) + "1", "x".repeat(60) + "2"];
    let results = sweep(&["scheme", "load"], &[&[&names[0], &names[1]], &["0.2", "0.4"]]);
    let svg = &drawn_sweep(&results)[2].1;
    assert_eq!(svg.matches("<circle").count(), 2 + 2 * 4, "two in the key, four a panel");
    assert!(svg.contains(&format!("{}\u{2026}", "x".repeat(39))));
}

#[test]
fn a_key_of_names_alone_puts_them_side_by_side() {
    let plots = drawn_sweep(&sweep(&["scheme"], &[&["red", "pie", "hull"]]));
    let svg = &plots[2].1;
    check_well_formed(svg);
    assert_eq!(svg.matches("<circle").count(), 2 * 3);
    assert!(["red", "pie", "hull"].iter().all(|name| svg.contains(name)));
}

#[test]
fn an_error_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("queues.svg")).unwrap();
    let error = draw(folder.path(), &run("red", 0)).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot write {}", folder.path().join("queues.svg").display()));
    assert!(matches!(error, DrawError::File { .. }));
}
