pub(super) mod injected;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thalweg_linux::clock::realtime;
use thalweg_wire::Nanos;

use super::*;
use crate::config::Config;
use crate::config::SampleOptions;
use crate::daemon::Daemon;
use crate::event::CollectorState;
use crate::event::{Event, EventKind};
use crate::hub::{Delivery, Hub};
use sinks::Sinks;

/// Timeout of operations that should be immediate.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Directory of the example.
pub(crate) fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/collector")
}

/// Number of frames in the example's capture.
pub(crate) const FRAMES: u64 = 14_123;

/// Starts a daemon with these collectors in the network of the example.
pub(crate) fn daemon(collectors: &str, folder: &Path) -> (Daemon, Fleet, Config) {
    let config = config(collectors, folder);
    let daemon = Daemon::new(config.versions(), Hub::new(1 << 16));
    daemon
        .dumps()
        .set_options(SampleOptions { folder: Some(folder.join("samples")), ..config.samples.clone() });
    let mut fleet = Fleet::new(daemon.fleet_parts(), Sinks::default());
    fleet.start(config.collectors.iter().cloned().map(PreparedCollector::open).collect()).unwrap();
    (daemon, fleet, config)
}

fn config(collectors: &str, folder: &Path) -> Config {
    let topology = example().join("topology.toml");
    let text = format!("[network]\ntopology = {:?}\n{collectors}", topology.to_str().unwrap());
    Config::parse(&text, "test.toml", folder).unwrap()
}

/// Returns a `[[collector]]` that reads the example's capture.
pub(crate) fn reads_capture(name: &str) -> String {
    let file = example().join("leaf0.pcapng.zst");
    format!("[[collector]]\nname = {name:?}\nswitch = \"leaf0\"\nfile = {:?}\n", file.to_str().unwrap())
}

/// Waits until a collector is in this state.
#[track_caller]
pub(crate) fn wait_for(daemon: &Daemon, collector: &str, state: &str) -> CollectorHandle {
    let start = Instant::now();
    loop {
        if let Some(handle) = daemon.collector(collector)
            && handle.state().name() == state
        {
            return handle;
        }
        assert!(start.elapsed() < TIMEOUT, "{:?}", daemon.collector(collector).map(|handle| handle.state()));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns all events of a collector so far.
fn events(daemon: &Daemon, collector: &str) -> Vec<Event> {
    let hub = daemon.hub();
    let mut subscriber = hub.subscribe(Some(0));
    let mut events = Vec::new();
    while let Some(delivery) = subscriber.next_delivery(hub) {
        match delivery {
            Delivery::Event(published) => events.push(published.event.clone()),
            Delivery::Lost { count, .. } => panic!("{count} events lost"),
        }
    }
    events.retain(|event| &*event.collector == collector);
    events
}

#[test]
fn a_capture_and_its_emulation_give_the_same_events() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = example().join("experiment.toml");
    let emulation = format!(
        "[[collector]]\nname = \"emulated\"\nswitch = \"leaf0\"\nemulate = {:?}\n",
        experiment.to_str().unwrap()
    );
    let text = [reads_capture("one"), reads_capture("two"), emulation].concat();
    let (daemon, mut fleet, _) = daemon(&text, folder.path());
    let names = ["one", "two", "emulated"];
    for name in names {
        let handle = wait_for(&daemon, name, "ended");
        let counters = handle.counters(TIMEOUT).unwrap().value;
        assert_eq!(counters.source.frames, FRAMES, "{name}");
        assert!(counters.flows > 0 && counters.collector.flow_table.flows >= counters.flows);
    }
    fleet.stop();
    let [one, two, emulated] = names.map(|name| {
        let events = events(&daemon, name);
        let text = |event: &Event| format!("{} {} {:?}", event.time, event.emitted, event.kind);
        events.iter().map(text).collect::<Vec<String>>()
    });
    let links = one.iter().filter(|text| text.contains("CongestionEvent")).count();
    assert!(links >= 4, "{one:#?}");
    assert_eq!(one, two);
    assert_eq!(one, emulated);
    assert!(one.last().unwrap().contains("Stopped") && one[0].contains("Running"), "{one:#?}");
}

/// The flow sends 29 bytes every 5 ms: 46 kbit/s. If all its packets counted for one moment, it would be a cheetah after 43 of them.
#[test]
fn a_clock_that_is_set_back_makes_no_cheetahs() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[[collector]]\nname = \"a\"\nswitch = \"leaf0\"\ninterface = {:?}\nflight_duration = \"100ms\"\n\
         rate_threshold = \"100kbps\"\n",
        injected::SET_BACK_INTERFACE
    );
    let (daemon, mut fleet, _) = daemon(&text, folder.path());
    let handle = wait_for(&daemon, "a", "running");
    let start = Instant::now();
    let counters = loop {
        let counters = handle.counters(TIMEOUT).unwrap().value;
        if counters.source.frames >= injected::FRAMES_AHEAD + 100 {
            break counters;
        }
        assert!(start.elapsed() < TIMEOUT, "{counters:?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let table = counters.collector.flow_table;
    assert_eq!((table.flows, table.cheetahs, counters.flows), (2, 0, 1), "{counters:?}");
    assert_eq!(counters.intake.backwards, 1);
    let flows = handle.links(TIMEOUT).unwrap();
    assert!(flows.time < realtime() + Nanos::from_secs(60), "its time is the new one");
    fleet.stop();
}

#[test]
fn requests_are_served_during_a_replay_and_after_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let text = [reads_capture("slow"), "speed = 0.01\n".to_owned(), reads_capture("fast")].concat();
    let (daemon, _fleet, _) = daemon(&text, folder.path());
    let slow = wait_for(&daemon, "slow", "running");
    let first = slow.counters(TIMEOUT).unwrap();
    let fast = wait_for(&daemon, "fast", "ended");
    let links = fast.links(TIMEOUT).unwrap();
    assert_eq!(links.value.len(), 2 * 5);
    assert!(links.value.iter().any(|link| link.utilisation > 0.5));
    let mut flows = Vec::new();
    fast.flows(TIMEOUT, |flow| flows.push(flow)).unwrap();
    assert!(flows.len() > 20, "{}", flows.len());
    for flow in &flows {
        assert_eq!(fast.flow(flow.key, TIMEOUT).unwrap().value, Some(*flow));
    }
    let later = slow.counters(TIMEOUT).unwrap();
    assert!(later.time >= first.time);
    assert!(later.value.source.frames <= FRAMES && slow.state() == CollectorState::Running);
    assert_eq!((fast.requests_refused(), fast.requests_timed_out()), (0, 0));
    assert!(fast.decision_latency().count() > 0);
    assert_eq!(fast.arrival_latency().count(), 0, "the times of a file have another clock");
}

#[test]
fn dropped_frames_change_the_state() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[[collector]]\nname = \"c\"\nswitch = \"leaf0\"\ninterface = {:?}\n",
        injected::DROPPING_INTERFACE
    );
    let (daemon, _fleet, _) = daemon(&text, folder.path());
    let handle = wait_for(&daemon, "c", "dropping");
    assert!(handle.counters(TIMEOUT).unwrap().value.source.kernel_drops > 0);
    let states = events(&daemon, "c");
    assert!(matches!(states.last().unwrap().kind, EventKind::State(CollectorState::Dropping)), "{states:?}");
}

#[test]
fn a_missing_file_is_retried() {
    let folder = tempfile::tempdir().unwrap();
    let late = "[[collector]]\nname = \"late\"\nswitch = \"leaf0\"\nfile = \"late.zst\"\n";
    let (daemon, _fleet, _) = daemon(&[late, &reads_capture("other")].concat(), folder.path());
    wait_for(&daemon, "other", "ended");
    let handle = wait_for(&daemon, "late", "failed");
    let CollectorState::Failed { error, retry_at } = handle.state() else { panic!("it has failed") };
    assert!(error.contains("late.zst") && retry_at.is_some(), "{error}");
    assert_eq!(handle.counters(TIMEOUT).unwrap().value.source.frames, 0, "it still serves requests");
    std::fs::copy(example().join("leaf0.pcapng.zst"), folder.path().join("late.zst")).unwrap();
    let handle = wait_for(&daemon, "late", "ended");
    assert!(handle.restarts() >= 1);
    assert_eq!(handle.counters(TIMEOUT).unwrap().value.source.frames, FRAMES);
    let states: Vec<&str> = events(&daemon, "late")
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::State(state) => Some(state.name()),
            _ => None,
        })
        .collect();
    assert_eq!(states[0], "failed");
    assert_eq!(&states[states.len() - 2..], ["running", "ended"]);
}

#[test]
fn a_damaged_file_is_read_once_up_to_the_damage() {
    let folder = tempfile::tempdir().unwrap();
    let capture =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-hosts.pcap")).unwrap();
    std::fs::write(folder.path().join("cut.pcap"), &capture[..capture.len() / 2 + 7]).unwrap();
    let text = "[[collector]]\nname = \"cut\"\nswitch = \"leaf0\"\nfile = \"cut.pcap\"\n";
    let (daemon, _fleet, _) = daemon(text, folder.path());
    let handle = wait_for(&daemon, "cut", "failed");
    let CollectorState::Failed { error, retry_at } = handle.state() else { panic!("it has failed") };
    assert_eq!(retry_at, None, "{error}");
    let frames = handle.counters(TIMEOUT).unwrap().value.source.frames;
    assert!(frames > 0);
    std::thread::sleep(2 * backoff::Backoff::SHORTEST);
    assert_eq!(handle.counters(TIMEOUT).unwrap().value.source.frames, frames);
}

#[test]
fn a_reload_restarts_only_collectors_whose_source_changed() {
    let folder = tempfile::tempdir().unwrap();
    let text = [reads_capture("same"), reads_capture("ruled"), reads_capture("moved"), reads_capture("gone")];
    let (daemon, mut fleet, before) = daemon(&text.concat(), folder.path());
    let frames = |name: &str| wait_for(&daemon, name, "ended").counters(TIMEOUT).unwrap().value;
    for name in ["same", "ruled", "moved", "gone"] {
        assert_eq!(frames(name).source.frames, FRAMES);
    }
    let same_before = daemon.collector("same").unwrap();
    let (ruled_before, decisions) = (frames("ruled"), same_before.decision_latency().count());
    let text = [
        &reads_capture("new"),
        &reads_capture("moved"),
        "sample_length = 64\n",
        &reads_capture("same"),
        &reads_capture("ruled"),
        "[[rule]]\n[[rule]]\ncollectors = \"ruled\"\nupper = 0.5\nlower = 0.4\n",
    ];
    let after = config(&text.concat(), folder.path());
    assert_eq!(before.collectors[0], after.collectors[2]);
    fleet.reload(&after.collectors);
    let names: Vec<String> = daemon.collectors().iter().map(|handle| handle.name().to_owned()).collect();
    assert_eq!(names, ["new", "moved", "same", "ruled"]);
    assert_eq!(same_before.counters(TIMEOUT).unwrap().value, frames("same"), "the same thread replies");
    let ruled = frames("ruled");
    assert_eq!(ruled.source.frames, FRAMES, "its source was not reopened");
    assert_eq!(ruled.flows, 0, "the new flow table is empty");
    let exported: u64 = ruled.collector.flow_table.records.iter().sum();
    assert_eq!(exported, ruled.collector.flow_table.flows, "the old flows were exported");
    // Counters continue, with the same source or another.
    assert_eq!(ruled.collector.flow_table.flows, ruled_before.collector.flow_table.flows);
    assert_eq!(ruled.collector.rates, ruled_before.collector.rates);
    let moved = frames("moved");
    assert_eq!(moved.source.frames, 2 * FRAMES);
    assert_eq!(moved.intake.frames.packets, 2 * FRAMES);
    assert_eq!(moved.collector.events, 2 * ruled_before.collector.events);
    assert_eq!(daemon.collector("moved").unwrap().samples_kept(), Some(2 * FRAMES));
    assert_eq!(daemon.collector("moved").unwrap().decision_latency().count(), 2 * decisions);
    assert_eq!(daemon.collector("moved").unwrap().samples().unwrap().snap_length(), 64);
    assert_eq!(frames("new").source.frames, FRAMES);
    assert!(daemon.collector("gone").is_none());
}

#[test]
fn a_network_version_that_lacks_a_monitored_switch_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, _fleet, config) = daemon(&reads_capture("a"), folder.path());
    let handle = wait_for(&daemon, "a", "ended");
    let clock = handle.counters(TIMEOUT).unwrap().time;
    let (_, state) = config.network.state.unwrap();
    let change = daemon.set_network(state.clone()).unwrap();
    assert_eq!((change.version, change.from, change.unconfirmed), (2, clock, vec![]));
    assert_eq!(daemon.network().unwrap().newest().number, 2);
    assert!(handle.counters(TIMEOUT).unwrap().value.flows > 0, "flows stay");
    let other = state.to_toml().replace("leaf0", "leaf9");
    let other = thalweg_network::NetworkState::from_toml(&other, "other").unwrap();
    let error = daemon.set_network(other).unwrap_err().to_string();
    assert_eq!(error, "switch \"leaf0\" of collector a is not in this topology");
    assert_eq!(daemon.network().unwrap().newest().number, 2);
}

#[test]
fn a_network_can_be_set_later() {
    let folder = tempfile::tempdir().unwrap();
    let text = [reads_capture("a"), "speed = 0.01\n".to_owned()].concat();
    let config = Config::parse(&text, "test.toml", folder.path()).unwrap();
    let daemon = Daemon::new(config.versions(), Hub::new(1 << 16));
    let mut fleet = Fleet::new(daemon.fleet_parts(), Sinks::default());
    fleet.start(config.collectors.into_iter().map(PreparedCollector::open).collect()).unwrap();
    let handle = wait_for(&daemon, "a", "running");
    assert_eq!(handle.links(TIMEOUT).unwrap().value, []);
    let state = crate::config::load_state(&example().join("topology.toml")).unwrap();
    assert_eq!(daemon.set_network(state).unwrap().version, 1);
    assert_eq!(handle.links(TIMEOUT).unwrap().value.len(), 10);
    let handle = wait_for(&daemon, "a", "ended");
    let mut known = 0;
    handle.flows(TIMEOUT, |flow| known += u64::from(flow.output.is_some())).unwrap();
    assert!(known > 0);
}

#[test]
fn tasks_of_a_file_are_deterministic() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = "tasks = [\"heavy:5%\", \"distinct\", \"change:2ms>10%\"]\nwindow = \"1ms\"\n".to_owned();
    let text = [reads_capture("a"), tasks.clone(), reads_capture("b"), tasks].concat();
    let (daemon, mut fleet, _) = daemon(&text, folder.path());
    wait_for(&daemon, "a", "ended");
    wait_for(&daemon, "b", "ended");
    fleet.stop();
    let [a, b] = ["a", "b"].map(|name| daemon.collector(name).unwrap().tasks());
    assert_eq!(a.windows, 13);
    for (a, b) in a.tasks.iter().zip(&b.tasks) {
        assert_eq!((a.spec, &a.answers), (b.spec, &b.answers));
        assert!(!a.answers.is_empty(), "{}", a.spec);
    }
    assert_eq!(a.tasks[0].answers.len(), 13, "one for each window");
    let counters = daemon.collector("a").unwrap();
    assert_eq!(counters.counters(Duration::from_millis(10)).unwrap_err(), CollectorRequestError::Stopped);
}

#[test]
fn a_panicking_collector_restarts_and_others_continue() {
    let folder = tempfile::tempdir().unwrap();
    let interface =
        |name: &str| format!("[[collector]]\nname = {name:?}\nswitch = \"leaf0\"\ninterface = {name:?}\n");
    let text = [interface(injected::PANICS_TWICE_INTERFACE), interface(injected::HEALTHY_INTERFACE)].concat();
    let (daemon, mut fleet, _) = daemon(&text, folder.path());
    let failing = wait_for(&daemon, injected::PANICS_TWICE_INTERFACE, "failed");
    let CollectorState::Failed { error, retry_at } = failing.state() else { panic!("it has failed") };
    assert_eq!(error, "internal error: provoked by a test");
    assert!(retry_at.is_some());
    let well = daemon.collector(injected::HEALTHY_INTERFACE).unwrap();
    let beats = well.heartbeat();
    let frames = failing.counters(TIMEOUT).unwrap().value.source.frames;
    let start = Instant::now();
    let recovered = wait_for(&daemon, injected::PANICS_TWICE_INTERFACE, "running");
    // Two delays, the second longer.
    while recovered.restarts() < 2 || recovered.state() != CollectorState::Running {
        assert!(start.elapsed() < TIMEOUT, "{:?}", recovered.state());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(start.elapsed() >= backoff::Backoff::SHORTEST * 2, "{:?}", start.elapsed());
    let after = recovered.counters(TIMEOUT).unwrap().value.source.frames;
    assert!(after >= frames && frames > 0, "{frames}, then {after}");
    assert_eq!((well.state(), well.restarts()), (CollectorState::Running, 0));
    assert!(well.heartbeat() > beats && well.counters(TIMEOUT).is_ok());
    let states = events(&daemon, injected::PANICS_TWICE_INTERFACE);
    let states: Vec<&str> = states
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::State(state) => Some(state.name()),
            _ => None,
        })
        .collect();
    assert_eq!(states, ["running", "failed", "running", "failed", "running"]);
    fleet.stop();
    assert_eq!(recovered.state(), CollectorState::Stopped);
}

#[test]
fn a_collector_of_an_idle_pipe_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let text = "[[collector]]\nname = \"a\"\nswitch = \"leaf0\"\nfile = \"pipe\"\n";
    let (daemon, mut fleet, _) = daemon(text, folder.path());
    let handle = wait_for(&daemon, "a", "running");
    assert_eq!(handle.counters(TIMEOUT).unwrap().value.source.frames, 0);
    let start = Instant::now();
    fleet.stop();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn last_records_of_a_live_source_wait_for_the_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (sender, receiver) = crossbeam_channel::bounded(1);
    let sinks = Sinks { records: Some(sender), ..Sinks::default() };
    let text = format!(
        "[[collector]]\nname = \"a\"\nswitch = \"leaf0\"\ninterface = {:?}\n",
        injected::HEALTHY_INTERFACE
    );
    let config = config(&text, folder.path());
    let daemon = Daemon::new(config.versions(), Hub::new(1 << 16));
    let start = |sinks: &Sinks| {
        let mut fleet = Fleet::new(daemon.fleet_parts(), sinks.clone());
        fleet.start(config.collectors.iter().cloned().map(PreparedCollector::open).collect()).unwrap();
        let handle = wait_for(&daemon, "a", "running");
        while handle.counters(TIMEOUT).unwrap().value.flows == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        (fleet, handle)
    };
    let filler = || sinks::Records { collector: "b".into(), stats: Default::default(), records: Vec::new() };
    // A slow writer.
    sinks.records.as_ref().unwrap().send(filler()).unwrap();
    let (mut fleet, handle) = start(&sinks);
    let stopping = std::thread::spawn(move || fleet.stop());
    std::thread::sleep(Duration::from_millis(300));
    let mut received = 0;
    while let Ok(records) = receiver.recv_timeout(Duration::from_secs(2)) {
        received += records.records.len();
    }
    stopping.join().unwrap();
    assert!(received > 0);
    assert_eq!((handle.records_lost(), handle.records_waiting()), (RecordsLost::default(), received as u64));
    // A writer that hangs.
    sinks.records.as_ref().unwrap().send(filler()).unwrap();
    let (mut fleet, handle) = start(&sinks);
    let start = Instant::now();
    fleet.stop();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(handle.records_lost(), RecordsLost { queue_full: received as u64, write_failed: 0 });
}
