use std::os::unix::fs::symlink;
use std::sync::atomic::AtomicBool;

use thalweg_experiment::files::marker::RunMarker;
use thalweg_experiment::files::{self, Format, Output};
use thalweg_experiment::results::Results;
use thalweg_experiment::sweep::{Axis, Sweep};
use thalweg_experiment::{Experiment, Plan};

use super::*;

/// An incast of 15 servers, which fills a queue.
const INCAST: &str = "
    name = 'incast'
    seed = 7
    duration = '20ms'
    [topology]
    shape = 'rack'
    endpoints = 16
    [scheme]
    name = 'droptail'
    [[workload]]
    pattern = 'incast'
    receiver = 'h0'
    sizes = '64KB'
    pause = '1ms'
";

fn experiment() -> Experiment {
    Experiment::parse(INCAST, "incast.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn run_into(folder: &Path, format: Format) -> Results {
    let plan = Plan::new(&experiment()).unwrap_or_else(|error| panic!("{error}"));
    let output = Output { folder, format };
    let results = thalweg_experiment::run(plan, Some(output), &AtomicBool::new(false), &mut |_| {}).unwrap();
    files::write(folder, format, &results).unwrap();
    results
}

fn sweep_into(folder: &Path) {
    let axes: Vec<Axis> = ["scheme=dctcp,droptail", "seed=1..2"].map(|axis| axis.parse().unwrap()).into();
    let sweep = Sweep::new(&experiment(), axes).unwrap();
    let results = sweep.run(
        1,
        Some(Output { folder, format: Format::Csv }),
        &AtomicBool::new(false),
        &|_, _| {},
        &|run, results| {
            files::write(&folder.join(sweep.folder(run)), Format::Csv, &results)
                .map_err(anyhow::Error::from)?;
            anyhow::Ok(results)
        },
    );
    files::write_sweep(folder, &results.unwrap()).unwrap();
}

fn names(list: &thalweg_api::Experiments) -> Vec<(Option<&str>, &str)> {
    let mut names: Vec<_> =
        list.experiments.iter().map(|entry| (entry.group.as_deref(), entry.name.as_str())).collect();
    names.sort_unstable();
    names
}

fn entry<'a>(list: &'a thalweg_api::Experiments, name: &str) -> &'a ExperimentEntry {
    list.experiments.iter().find(|entry| entry.name == name).unwrap()
}

#[test]
fn series_of_a_run_add_up_to_its_rows_in_both_formats() {
    for format in [Format::Parquet, Format::Csv] {
        let folder = tempfile::tempdir().unwrap();
        let results = run_into(&folder.path().join("one"), format);
        let found = Experiments::new(folder.path().to_owned()).results("one", None).unwrap();
        assert_eq!((found.entry.state, &found.problems[..]), (ExperimentState::Complete, &[][..]));
        assert_eq!((found.entry.scheme.as_deref(), found.entry.seed), (Some("droptail"), Some(7)));
        let headline = found.entry.headline.as_ref().unwrap();
        assert_eq!(headline.throughput_bps, results.summary.throughput_bps);
        assert_eq!(found.summary.unwrap()["packets"]["sent"], results.summary.packets.sent);

        let throughput = found.throughput.unwrap();
        let seconds = throughput.interval_ns as f64 / 1e9;
        let is_endpoint = |name: &str| name.starts_with('h');
        let delivered: u64 =
            results.links.iter().filter(|row| is_endpoint(&row.to)).map(|row| row.bytes).sum();
        let length_ns =
            |time_ns: u64| results.links.iter().find(|row| row.time_ns == time_ns).unwrap().interval_ns;
        let sum: f64 = throughput
            .delivered_bps
            .iter()
            .zip(&throughput.times_ns)
            .map(|(rate, &time_ns)| rate / 8.0 * length_ns(time_ns) as f64 / 1e9)
            .sum();
        assert!(
            seconds > 0.0 && delivered > 100_000 && (sum - delivered as f64).abs() < 1.0,
            "{sum} {delivered}"
        );
        let busiest = &throughput.links[0];
        let of_link: Vec<_> =
            results.links.iter().filter(|row| row.from == busiest.from && row.to == busiest.to).collect();
        assert_eq!(of_link.len(), busiest.rate_bps.len());
        for (row, (rate, used)) in of_link.iter().zip(busiest.rate_bps.iter().zip(&busiest.utilisation)) {
            assert!((row.bytes as f64 * 8e9 / row.interval_ns as f64 - rate).abs() < 1.0);
            assert!((row.utilisation - used).abs() < 1e-9);
        }
        let bytes = |from: &str, to: &str| {
            results
                .links
                .iter()
                .filter(|row| row.from == from && row.to == to)
                .map(|row| row.bytes)
                .sum::<u64>()
        };
        let most = results.links.iter().map(|row| bytes(&row.from, &row.to)).max().unwrap();
        assert_eq!(bytes(&busiest.from, &busiest.to), most);

        let queues = found.queues.unwrap();
        let longest = &results.summary.longest_queues[0];
        let port = queues
            .ports
            .iter()
            .find(|port| port.router == longest.router && port.port == longest.port)
            .unwrap();
        let max = port.packets_max.iter().flatten().max().unwrap();
        assert_eq!(f64::from(*max), longest.packets.max);
        assert!(queues.times_ns.len() <= MAX_POINTS && queues.times_ns.len() == port.bytes_mean.len());

        let completions = found.completions.unwrap();
        assert_eq!(completions.flows as usize, results.flows.len());
        let all = completions.classes.iter().find(|class| class.class == "all").unwrap();
        let expected = results.summary.sizes.last().unwrap();
        assert_eq!(
            (all.fct_ns[50], all.fct_ns[99], all.fct_ns[100]),
            (expected.fct_ns.p50, expected.fct_ns.p99, expected.fct_ns.max)
        );
        assert_eq!(completions.points.len(), results.flows.len());
    }
}

#[test]
fn runs_sweeps_and_groups_are_listed_with_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let experiments = Experiments::new(folder.path().join("results"));
    assert_eq!(experiments.list().unwrap().experiments, []);
    let root = folder.path().join("results");
    run_into(&root.join("one"), Format::Parquet);
    run_into(&root.join("group/two"), Format::Csv);
    sweep_into(&root.join("schemes"));
    fs::create_dir_all(root.join("empty/deeper/still")).unwrap();
    fs::write(root.join("notes.txt"), "not a folder").unwrap();
    let list = experiments.list().unwrap();
    assert_eq!(names(&list), [(None, "one"), (None, "schemes"), (Some("group"), "two")]);
    let sweep = entry(&list, "schemes");
    assert_eq!((sweep.kind, sweep.state, sweep.runs), (ExperimentKind::Sweep, ExperimentState::Complete, 4));
    assert_eq!(
        (&sweep.sweep[..], sweep.scheme.as_deref(), sweep.seed),
        (&["scheme".to_owned(), "seed".to_owned()][..], None, None)
    );
    assert_eq!(sweep.experiment.as_deref(), Some("incast"));

    let found = experiments.results("schemes", None).unwrap();
    let runs: Vec<_> = found.table.iter().map(|row| row.run.as_deref().unwrap()).collect();
    assert_eq!(runs[..2], ["scheme=dctcp,seed=1", "scheme=dctcp,seed=2"]);
    assert_eq!(
        (found.table[3].scheme.as_str(), found.table[3].seed, &found.table[3].values["seed"][..]),
        ("droptail", 2, "2")
    );
    let run = experiments.results("schemes", Some(runs[3])).unwrap();
    assert_eq!(run.entry.headline.as_ref(), Some(&found.table[3].headline));
    assert_eq!(run.entry.group.as_deref(), Some("schemes"));
    assert_eq!(experiments.results("group", Some("two")).unwrap().entry.name, "two");
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("results");
    run_into(&folder.path().join("secret"), Format::Csv);
    run_into(&root.join("one"), Format::Csv);
    symlink(folder.path().join("secret"), root.join("link")).unwrap();
    fs::create_dir_all(root.join("group")).unwrap();
    symlink(folder.path().join("secret"), root.join("group/link")).unwrap();
    fs::rename(root.join("one/summary.json"), folder.path().join("summary.json")).unwrap();
    symlink(folder.path().join("summary.json"), root.join("one/summary.json")).unwrap();
    let experiments = Experiments::new(root);
    let list = experiments.list().unwrap();
    assert_eq!(names(&list), [(None, "one")]);
    assert_eq!(list.experiments[0].headline, None);
    for (name, run) in [
        ("..", None),
        ("../secret", None),
        ("..", Some("secret")),
        ("one", Some("..")),
        (".", Some("one")),
        ("", None),
        ("/etc", None),
        ("link", None),
        ("group", Some("link")),
        ("one\0", None),
        ("group", None),
        ("none", None),
    ] {
        let refused = experiments.results(name, run).map(|found| found.entry.name);
        assert!(matches!(refused, Err(ExperimentsError::Unknown(_))), "{name:?} {run:?} {refused:?}");
    }
}

#[test]
fn results_that_cannot_be_read_are_listed_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let experiments = Experiments::new(root.to_owned());
    for name in ["damaged", "large", "half", "old", "fields"] {
        run_into(&root.join(name), Format::Parquet);
    }
    fs::write(root.join("damaged/summary.json"), "{\"type\": ").unwrap();
    fs::write(root.join("fields/summary.json"), "{\"seed\": \"seven\"}").unwrap();
    fs::File::create(root.join("large/summary.json")).unwrap().set_len(MAX_TEXT_BYTES + 1).unwrap();
    fs::File::options()
        .write(true)
        .open(root.join("large/links.parquet"))
        .unwrap()
        .set_len(33 << 20)
        .unwrap();
    for file in ["summary.json", "links.parquet", "drops.parquet"] {
        fs::remove_file(root.join("half").join(file)).unwrap();
    }
    fs::remove_file(root.join("old/summary.json")).unwrap();
    fs::write(root.join("old/queues.parquet"), "PAR1").unwrap();
    let list = experiments.list().unwrap();
    let state = |name: &str| (entry(&list, name).state, entry(&list, name).error.as_deref());
    let (unreadable, error) = state("damaged");
    assert_eq!(unreadable, ExperimentState::Unreadable);
    assert!(error.unwrap().starts_with("the summary is invalid: EOF"), "{error:?}");
    assert!(state("fields").1.unwrap().contains("expected u64"), "{:?}", state("fields"));
    let message = "summary.json has 8388609 bytes, at most 8388608 are read";
    assert_eq!(state("large"), (ExperimentState::Unreadable, Some(message)));
    assert_eq!(state("half"), (ExperimentState::Incomplete, None));
    assert_eq!(state("old"), (ExperimentState::Complete, None));
    let large = experiments.results("large", None).unwrap();
    assert_eq!(large.problems.len(), 2);
    let table = "cannot read links.parquet: the file has 34603008 bytes, at most 33554432 are read";
    assert_eq!(large.problems[1], table);
    assert!(large.throughput.is_none() && large.completions.is_some());
    let half = experiments.results("half", None).unwrap();
    assert!(half.throughput.is_none() && half.queues.is_some() && half.problems.is_empty());
    let old = experiments.results("old", None).unwrap();
    assert_eq!((old.entry.state, old.problems.len()), (ExperimentState::Unreadable, 1));
}

#[test]
fn runs_and_sweeps_that_are_going_on_are_listed_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let experiments = Experiments::new(root.to_owned());
    let running = |sweep: &[&str]| Running {
        experiment: "incast".to_owned(),
        sweep: sweep.iter().map(|&key| key.to_owned()).collect(),
        runs: 2,
    };
    fs::create_dir_all(root.join("run")).unwrap();
    run_into(&root.join("sweep/scheme=dctcp"), Format::Csv);
    let markers = [("run", running(&[])), ("sweep", running(&["scheme"]))]
        .map(|(name, what)| RunMarker::create(&root.join(name), &what).unwrap());
    let list = experiments.list().unwrap();
    assert_eq!(names(&list), [(None, "run"), (None, "sweep")]);
    for name in ["run", "sweep"] {
        let entry = entry(&list, name);
        assert_eq!((entry.state, entry.experiment.as_deref()), (ExperimentState::Writing, Some("incast")));
    }
    let sweep = entry(&list, "sweep");
    assert_eq!(
        (sweep.kind, sweep.runs, &sweep.sweep[..]),
        (ExperimentKind::Sweep, 1, &["scheme".to_owned()][..])
    );
    // A killed program leaves the file without its lock.
    let left = fs::read(root.join("run/running.json")).unwrap();
    drop(markers);
    assert_eq!(names(&experiments.list().unwrap()), [(Some("sweep"), "scheme=dctcp")]);
    fs::write(root.join("run/running.json"), left).unwrap();
    assert_eq!(entry(&experiments.list().unwrap(), "run").state, ExperimentState::Incomplete);
}

#[test]
fn many_points_are_merged_into_few() {
    let folder = tempfile::tempdir().unwrap();
    let row = |at: u64| thalweg_experiment::results::QueueRow {
        time_ns: at * 1_000,
        router: "tor0".to_owned(),
        port: 1,
        to: "h1".to_owned(),
        packets: (at % 50) as u32,
        bytes: at % 50 * 1_500,
    };
    let rows: Vec<_> = (0..100_000).map(row).collect();
    files::write_rows(folder.path(), Format::Parquet, &rows).unwrap();
    let queues = series::queues(folder.path()).unwrap().unwrap();
    assert_eq!((queues.times_ns.len(), queues.ports.len(), queues.total_ports), (MAX_POINTS, 1, 1));
    assert_eq!(queues.ports[0].packets_max[7], Some(49));
    let mean = queues.ports[0].packets_mean[7].unwrap();
    assert!((24.0..25.0).contains(&mean), "{mean}");
    assert_eq!(series::throughput(folder.path()), Ok(None));
}
