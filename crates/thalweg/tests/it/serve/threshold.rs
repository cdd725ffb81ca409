//! Adaptation of the rate threshold, with an emulated link.

use std::fs;

use serde_json::Value;

use crate::program::root;
use crate::serve::Serve;

/// Creates the daemon of `examples/isolation`, with periods of a second.
fn adapting(lines: &str) -> Serve {
    let serve = Serve::new("");
    let examples = root().join("examples/isolation");
    fs::copy(examples.join("link.toml"), serve.path("link.toml")).unwrap();
    let example = fs::read_to_string(examples.join("thalweg.toml")).unwrap();
    let example = example.replace("/tmp/thalweg-isolation", "state").replace("\"10s\"", "\"1s\"");
    let quick = "burst_window = \"20ms\"\nflow = \"rounds\"\nrate_tolerance = \"30mbps\"\nburstiness_tolerance = 0.5\n";
    let text = format!("[api]\nlisten = \"{}\"\n{example}{quick}{lines}", serve.address);
    fs::write(serve.path("thalweg.toml"), text).unwrap();
    serve
}

fn threshold(serve: &Serve) -> Value {
    serve.get("/v1/threshold").unwrap()
}

fn count(serve: &Serve, name: &str) -> u64 {
    threshold(serve)["counts"][name].as_u64().unwrap()
}

/// Recorded, simulated, applied; known again after `kill -9`; and not lost with a damaged file.
#[test]
fn the_threshold_follows_the_traffic_and_survives_a_kill() {
    let mut serve = adapting("");
    serve.start();
    assert_eq!(threshold(&serve)["reason"], "configured");
    serve.wait("similar traffic was found", |serve| count(serve, "matched") >= 1);
    let after = threshold(&serve);
    assert!(["latest", "days"].contains(&after["reason"].as_str().unwrap()), "{after}");
    let known =
        after["periods"].as_array().unwrap().iter().find(|period| period["state"] == "known").unwrap();
    assert!((2_000_000..60_000_000).contains(&known["mean_rate_bps"].as_u64().unwrap()), "{known}");
    let curve = &after["curves"][0];
    assert_eq!(curve["points"].as_array().unwrap().len(), 18);
    let loss = |index: usize| curve["points"][index]["loss"].as_f64().unwrap();
    assert!(loss(0) <= loss(17), "{curve}");
    let rate = after["rate_bps"].as_u64().unwrap();
    assert!((5_000_000..=90_000_000).contains(&rate) && rate != 20_000_000, "{after}");
    serve.wait("it applies", |serve| {
        let applied = serve.metric("thalweg_rate_threshold_bps{collector=\"tor0\"}").unwrap();
        applied == threshold(serve)["rate_bps"].as_u64().unwrap()
    });
    assert!(serve.metric("thalweg_threshold_simulations_total{result=\"finished\"}").unwrap() >= 1);

    // A reload resets the threshold of the file, and it is applied again.
    let text = fs::read_to_string(serve.path("thalweg.toml")).unwrap();
    fs::write(serve.path("thalweg.toml"), text.replace("flow_capacity = 4096", "flow_capacity = 8192"))
        .unwrap();
    serve.signal("-HUP");
    serve.wait("it is reloaded", |serve| serve.log().contains("configuration applied"));
    serve.wait("it applies again", |serve| {
        let applied = serve.metric("thalweg_rate_threshold_bps{collector=\"tor0\"}").unwrap();
        applied == threshold(serve)["rate_bps"].as_u64().unwrap()
    });

    serve.signal("-KILL");
    serve.ended();
    serve.start();
    assert!(!threshold(&serve)["curves"].as_array().unwrap().is_empty(), "curves survive");
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    let left: Vec<String> = fs::read_dir(serve.path("state"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");

    fs::write(serve.path("state/threshold.json"), "{\"version\":").unwrap();
    serve.start();
    assert!(serve.log().contains("threshold.json is damaged"), "{}", serve.log());
    assert!(serve.path("state/threshold.json.damaged").exists());
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}
