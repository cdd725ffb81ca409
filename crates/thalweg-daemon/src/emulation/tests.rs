use std::path::Path;
use std::time::{Duration, Instant};

use thalweg_wire::parse::Parser;

use super::*;
use crate::config::Config;

const EXPERIMENT: &str = "duration = \"20ms\"\n[topology]\nshape = \"rack\"\nendpoints = 2\n[[workload]]\n\
    pattern = \"stride\"\nstride = 1\nsizes = \"forever\"\n[[mirror]]\nrouter = \"tor0\"\n";

fn emulation(pace: f64) -> Emulation {
    emulation_of(EXPERIMENT, pace)
}

fn emulation_of(experiment: &str, pace: f64) -> Emulation {
    Emulation::new(&EmulationConfig {
        path: "e.toml".into(),
        experiment: Experiment::parse(experiment, "e.toml").unwrap(),
        scheme: Scheme::default_of("droptail").unwrap(),
        pace,
        ports: vec![("tor0".into(), MonitorPort { rate: Default::default(), buffer: Default::default() })],
    })
}

/// Reads a port to its end. Returns the times and destination addresses of frames; passes the clock after each batch to `each`.
fn read(port: &mut EmulatedPort, mut each: impl FnMut(Timestamp)) -> (Vec<Timestamp>, Vec<u8>) {
    let clock = port.clock();
    let (mut times, mut addresses) = (Vec::new(), Vec::new());
    while let Ok(Some(batch)) = port.next_batch() {
        for frame in batch.iter() {
            times.push(frame.time);
            let packet = Parser::default().parse(&frame).unwrap();
            // The fourth byte of a MAC address is the number of the endpoint's address.
            addresses.push(packet.ethernet.destination.0[3]);
        }
        each(clock());
    }
    (times, addresses)
}

#[test]
fn the_emulation_keeps_its_pace_and_delivers_all_frames() {
    let emulation = emulation(0.1);
    let mut port = emulation.port("tor0").unwrap();
    assert!(emulation.port("tor1").is_none());
    let start = Instant::now();
    let thread = emulation.start().unwrap();
    let mut clocks = Vec::new();
    let (times, _) = read(&mut port, |clock| clocks.push(clock));
    thread.join().unwrap();
    assert!(start.elapsed() >= Duration::from_millis(190), "20 ms take 200 ms: {:?}", start.elapsed());
    assert!(times.is_sorted() && times.len() > 1_000, "{}", times.len());
    assert!(clocks.is_sorted());
    assert!(emulation.now() >= Timestamp(20_000_000), "{}", emulation.now());
    let counters = port.counters();
    assert_eq!(counters.frames, times.len() as u64);
}

#[test]
fn a_command_changes_the_address_that_a_host_uses() {
    let emulation = emulation(0.05);
    let mut port = emulation.port("tor0").unwrap();
    let thread = emulation.start().unwrap();
    let command = EmulationCommand::Address { source: EndpointId(0), destination: EndpointId(1), address: 5 };
    let mut command = Some(command);
    let (_, addresses) = read(&mut port, |clock| {
        if clock > Timestamp(5_000_000)
            && let Some(command) = command.take()
        {
            emulation.send(command).unwrap();
        }
    });
    thread.join().unwrap();
    let first = addresses.iter().position(|&address| address == 5).expect("the command was carried out");
    assert!(first > 100, "not before the command");
    assert!(addresses.len() - first > 100, "for the rest of the run");
}

#[test]
fn failed_and_repaired_links_are_reported_once() {
    let failure = "[[failure]]\nlink = [\"tor0\", \"h1\"]\nat = \"5ms\"\nrepair = \"15ms\"\n";
    let emulation = emulation_of(&format!("{EXPERIMENT}{failure}"), 0.05);
    let thread = emulation.start().unwrap();
    let mut reported = Vec::new();
    while !thread.is_finished() {
        reported.extend(emulation.take_links());
        std::thread::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap();
    reported.extend(emulation.take_links());
    let down: Vec<usize> = reported.iter().map(|links| links.failed().count()).collect();
    assert_eq!(down, [1, 0]);
}

#[test]
fn isolation_requires_a_scavenger_queue_and_collectors_of_the_emulation() {
    let folder = tempfile::tempdir().unwrap();
    let scavenger = format!("{EXPERIMENT}[scheme]\nname = \"scavenger\"\n");
    std::fs::write(folder.path().join("s.toml"), scavenger).unwrap();
    std::fs::write(folder.path().join("d.toml"), EXPERIMENT).unwrap();
    let parse = |emulate: &str, rest: &str| {
        let text = format!("{emulate}[[collector]]\nname = \"tor0\"\n{rest}");
        Config::parse(&text, "t.toml", folder.path()).map_err(|error| error.to_string())
    };
    let (with, isolation) = ("[emulate]\nfile = \"s.toml\"\n", "[isolation]\nactuator = \"emulated\"\n");
    let config = parse(with, &format!("{isolation}confirm_timeout = \"3s\"\n")).unwrap();
    let isolation_config = config.isolation.unwrap();
    assert_eq!(isolation_config.isolator.name(), "emulated");
    assert_eq!(
        (isolation_config.options.reads_counters, isolation_config.options.confirm_timeout),
        (true, Nanos::from_secs(3))
    );
    let other = "[[collector]]\nname = \"b\"\nswitch = \"tor0\"\ninterface = \"eth1\"\n";
    assert!(parse(with, &format!("{other}{isolation}collectors = [\"tor0\"]\n")).is_ok());
    let d = folder.path().join("d.toml");
    let d = d.display();
    for (emulate, rest, expected) in [
        (
            "",
            format!("file = \"f\"\n{isolation}"),
            "t.toml:5: actuator: emulated requires [emulate]".to_owned(),
        ),
        (
            "[emulate]\nfile = \"d.toml\"\n",
            isolation.to_owned(),
            format!(
                "t.toml:6: actuator: emulated requires a scheme with a scavenger queue: set name = \"scavenger\" in [scheme] of {d}, \
                 not droptail"
            ),
        ),
        (
            with,
            format!("{other}{isolation}"),
            "collectors: collector b does not read [emulate], so its flows are not in the emulated network"
                .to_owned(),
        ),
        (with, format!("{isolation}quiet = \"10ms\"\n"), "quiet: expected at least 300ms".to_owned()),
        (with, format!("{isolation}max_time = \"1h\"\n"), "max_time: requires actuator exec".to_owned()),
        (
            with,
            format!("{isolation}at_stop = \"keep\"\n"),
            "at_stop: requires actuator tc or openflow, not emulated".to_owned(),
        ),
        (
            with,
            "[isolation]\nactuator = \"log\"\nconfirm_timeout = \"1s\"\n".to_owned(),
            "confirm_timeout: requires actuator tc, openflow or emulated, not log".to_owned(),
        ),
    ] {
        let message = parse(emulate, &rest).unwrap_err();
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn unread_frames_are_counted_as_lost() {
    let emulation = emulation_of(&EXPERIMENT.replace("20ms", "10s"), 0.02);
    let mut port = emulation.port("tor0").unwrap();
    let thread = emulation.start().unwrap();
    // On a busy machine the queue fills slowly, because batches are large and few.
    let start = Instant::now();
    while port.counters().kernel_drops == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", port.counters());
        std::thread::sleep(Duration::from_millis(10));
    }
    emulation.stop();
    thread.join().unwrap();
    let (times, _) = read(&mut port, |_| {});
    assert_eq!(port.counters().frames, times.len() as u64);
}

#[test]
fn a_collector_named_asterisk_stands_for_each_monitor_port() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("e.toml"), EXPERIMENT).unwrap();
    let parse = |rest: &str| {
        let text = format!("[emulate]\nfile = \"e.toml\"\n[[collector]]\nname = \"*\"\n{rest}");
        Config::parse(&text, "t.toml", folder.path())
    };
    let config = parse("[control]\ndecider = \"first_fit\"\nactuator = \"emulated\"\n").unwrap();
    let [collector] = &config.collectors[..] else { panic!("one") };
    assert_eq!((&*collector.name, &*collector.switch), ("tor0", "tor0"));
    assert!(collector.monitor.is_some(), "from the experiment");
    let control = config.control.unwrap();
    assert_eq!((control.decider.name(), control.actuator.name()), ("first_fit", "emulated"));
    for (rest, expected) in [
        (
            "switch = \"tor1\"\n",
            "t.toml:5: switch: no [[mirror]] of router \"tor1\" in the experiment of [emulate]",
        ),
        ("speed = 2\n", "t.toml:5: speed: has no effect on a monitor port of [emulate]"),
        (
            "[[collector]]\nname = \"again\"\nswitch = \"tor0\"\n",
            "t.toml:7: switch: another collector already reads the monitor port of tor0",
        ),
        ("[network]\ntopology = \"e.toml\"\n", ""),
        (
            "[control]\ndecider = \"static\"\nactuator = \"arp\"\ninterfaces = \"eth0\"\n",
            "t.toml:7: actuator: with [emulate], expected emulated or log",
        ),
        (
            "[control]\ndecider = \"static\"\nrefresh = \"1s\"\n",
            "t.toml:7: refresh: requires actuator arp, not log",
        ),
    ] {
        let message = parse(rest).unwrap_err().to_string();
        assert!(expected.is_empty() || message == expected, "{message}");
    }
    let without = "[[collector]]\nname = \"a\"\nfile = \"f\"\n[control]\ndecider = \"greedy\"\n";
    let message = Config::parse(without, "t.toml", Path::new("/")).unwrap_err().to_string();
    assert_eq!(message, "t.toml:5: decider: requires a topology: set network.topology, or [emulate]");
}
