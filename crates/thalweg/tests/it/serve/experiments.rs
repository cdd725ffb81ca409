//! Results of `thalweg emulate` in the API of a daemon.

use std::fs;

use serde_json::Value;

use super::{CAPTURE, Serve};
use crate::program::{Run, number, root, thalweg_in};

const EXPERIMENTS: &str = "[experiments]\nfolder = \"results\"\n";

fn emulate(serve: &Serve, arguments: &[&str]) -> Run {
    let experiment = root().join("examples/experiments/incast.toml");
    let all = [&["emulate", "--json"], arguments, &[experiment.to_str().unwrap()]].concat();
    thalweg_in(serve.folder.path(), &all).ended_with(0)
}

#[test]
fn runs_and_sweeps_are_served_as_the_program_printed_them() {
    let mut serve = Serve::new(&[CAPTURE, EXPERIMENTS].concat());
    serve.start();
    assert_eq!(serve.get("/v1/experiments").unwrap()["experiments"], Value::Array(Vec::new()));
    let mut printed = emulate(&serve, &["--output", "results/one"]).lines().remove(0);
    // The time that a run takes is not a part of its results.
    printed.as_object_mut().unwrap().remove("elapsed_ns").unwrap();
    let sweep = ["--sweep", "scheme=droptail,dctcp", "--sweep", "seed=1..2"];
    let lines = emulate(&serve, &[&["--output", "results/schemes"], &sweep[..]].concat()).lines();

    let list = serve.get("/v1/experiments").unwrap();
    let names: Vec<&str> =
        list["experiments"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["schemes", "one"], "the latest first");
    let one = serve.get("/v1/experiments/one").unwrap();
    assert_eq!(one["summary"], printed);
    assert_eq!(&one["headline"]["throughput_bps"], &printed["throughput_bps"]);
    assert_eq!((&one["state"], &one["kind"]), (&"complete".into(), &"run".into()));
    assert!(one["problems"].as_array().unwrap().is_empty(), "{}", one["problems"]);
    // Nothing is delivered twice, or missing.
    let throughput = &one["throughput"];
    let times = throughput["times_ns"].as_array().unwrap().iter().map(|time| time.as_u64().unwrap());
    let times: Vec<u64> = times.chain([number(&printed, "duration_ns")]).collect();
    let rates = throughput["delivered_bps"].as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap());
    let bits: f64 =
        rates.zip(times.windows(2)).map(|(rate, time)| rate * (time[1] - time[0]) as f64 / 1e9).sum();
    let mean = bits * 1e9 / number(&printed, "duration_ns") as f64;
    let expected = printed["throughput_bps"].as_f64().unwrap();
    assert!((mean / expected - 1.0).abs() < 1e-6, "{mean} {expected}");
    assert_eq!(number(&one["completions"], "flows"), number(&printed["flows"], "completed"));
    let (queue, longest) = (&one["queues"]["ports"][0], &printed["longest_queues"][0]);
    assert_eq!((&queue["router"], &queue["port"]), (&longest["router"], &longest["port"]));

    let schemes = serve.get("/v1/experiments/schemes").unwrap();
    let table = schemes["table"].as_array().unwrap();
    assert_eq!(schemes["sweep"], serde_json::json!(["scheme", "seed"]));
    for (row, line) in table.iter().zip(&lines) {
        assert_eq!(row["values"], line["sweep"]);
        assert_eq!(row["headline"]["goodput_bps"], line["goodput_bps"]);
        let run = serve.get(&format!("/v1/experiments/schemes/{}", row["run"].as_str().unwrap())).unwrap();
        assert_eq!(run["headline"], row["headline"]);
    }
    assert_eq!((table.len(), lines.len()), (4, 4));

    // Names do not lead out of the folder.
    fs::create_dir(serve.path("secret")).unwrap();
    fs::copy(serve.path("results/one/summary.json"), serve.path("secret/summary.json")).unwrap();
    for name in ["..%2Fsecret", "%2e%2e/secret", "../secret", "one/..", "one/%2e%2e"] {
        assert_eq!(serve.text(&format!("/v1/experiments/{name}")), None, "{name}");
    }
    assert!(!serve.path("results/one/running.json").exists());
}
