//! Isolation by Open vSwitch in user space, with real queues and packets. Needs root and Open vSwitch.

mod network;

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_actuators::isolation::Isolator;
use thalweg_actuators::isolation::openflow::rule::{Forward, RulePlan};
use thalweg_actuators::isolation::openflow::{OpenFlow, OpenFlowOptions};
use thalweg_actuators::openflow::{Config, PortReference};
use thalweg_control::isolate::message::ScavengerName;
use thalweg_control::isolate::{
    EndCause, Input, Isolation, IsolationOptions, Phase, Reason, RedirectionReport,
};
use thalweg_linux::clock::monotonic;
use thalweg_wire::openflow::{DatapathId, QueueId, TableId};
use thalweg_wire::{BitRate, Bytes, FlowKey, Nanos, Timestamp};

use network::{Flow, LISTEN, Network, PATIENCE, PORT, PRIMARY, SCAVENGER, wait};

const QUEUE: QueueId = QueueId(1);

/// Seconds without a packet after which the switch deletes a rule.
const IDLE_TIMEOUT: u16 = 3;

fn options(dscp: Option<u8>, queue: Option<QueueId>, forward: Forward) -> OpenFlowOptions {
    OpenFlowOptions {
        switch: DatapathId(0xd1),
        port: PortReference::Name(PORT.to_owned()),
        queue: QUEUE,
        rules: RulePlan {
            table: TableId(0),
            priority: 24_576,
            idle_timeout: IDLE_TIMEOUT,
            dscp,
            queue,
            forward,
        },
        listen: None,
        connect: Some((LISTEN.parse().unwrap(), String::new())),
        connection: Config { audit_interval: Nanos::from_millis(200), ..Config::default() },
        keeps_at_stop: false,
    }
}

/// Decisions and the switch, driven as in the daemon.
struct Daemon {
    isolation: Isolation,
    isolator: OpenFlow,
    read: Instant,
}

impl Daemon {
    fn start(network: &Network, options: OpenFlowOptions) -> Daemon {
        let limits = IsolationOptions {
            confirm_timeout: Nanos::from_secs(3),
            scavenger: ScavengerName { name: "scavenger queue 1 of port wan0".into(), advice: String::new() },
            ..IsolationOptions::default()
        };
        let isolation = Isolation::new(limits, monotonic());
        let mut isolator = OpenFlow::new(options, None, Some(network.switch.clone()));
        isolator.start().unwrap();
        let mut it = Daemon { isolation, isolator, read: Instant::now() };
        it.drive("the switch is ready", |it| it.isolator.maintain(monotonic()).is_ok());
        it
    }

    fn apply(&mut self, input: Input) {
        self.isolation.handle(monotonic(), input);
        while let Some(command) = self.isolation.next_command() {
            if let Some(answer) = self.isolator.execute(command, monotonic()) {
                self.isolation.handle(monotonic(), answer);
            }
        }
    }

    fn step(&mut self) {
        for answer in self.isolator.answers() {
            self.apply(answer);
        }
        if self.read.elapsed() >= Duration::from_millis(100) {
            self.read = Instant::now();
            let flows = self.isolation.next_to_read(usize::MAX);
            if let Some(reading) = self.isolator.read(&flows, monotonic()).unwrap() {
                self.apply(Input::Reading(reading));
            }
        }
        self.apply(Input::Tick);
    }

    fn drive(&mut self, what: &str, mut is_so: impl FnMut(&mut Daemon) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(self) {
            let state: Vec<_> = self.isolation.active().chain(self.isolation.ended()).collect();
            assert!(Instant::now() < until, "{what}: {state:?} {:?}", self.isolator.maintain(monotonic()));
            self.step();
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A collector finds that a flow is a cheetah flow.
    fn find(&mut self, key: FlowKey) {
        let reason = Reason::Cheetah {
            collector: Arc::from("lan"),
            rate: BitRate(100_000_000),
            bytes: Bytes(1_000_000),
            detected: Timestamp(0),
        };
        self.apply(Input::Began { key, reason });
    }

    fn phase(&self, key: &FlowKey) -> Option<Phase> {
        self.isolation.of(key).map(|report| report.phase)
    }

    fn ended(&self) -> RedirectionReport {
        self.isolation.ended().next().unwrap().clone()
    }

    fn confirm(&mut self, flow: &Flow) {
        let what = format!("{} is confirmed", flow.key);
        self.drive(&what, |it| {
            flow.send(1);
            it.phase(&flow.key) == Some(Phase::Confirmed)
        });
    }
}

#[test]
fn a_cheetah_passes_the_scavenger_queue_until_it_is_quiet() {
    for (is_v6, queue, forward) in [(false, Some(QUEUE), Forward::Normal), (true, None, Forward::Output)] {
        let Some(mut network) = Network::start() else { return };
        let mut daemon = Daemon::start(&network, options(Some(1), queue, forward));
        let (flow, other) = (network.flow(0, is_v6, 5_001), network.flow(1, is_v6, 5_002));
        wait("packets are forwarded", || {
            flow.send(1);
            network.sent(PRIMARY) > 10
        });
        assert_eq!(network.sent(SCAVENGER), 0);

        let found = Instant::now();
        daemon.find(flow.key);
        daemon.drive("its packets are in the scavenger queue", |_| {
            flow.send(1);
            network.sent(SCAVENGER) > 0
        });
        let line = format!(
            "{}: {:?} from the finding to the first packet in class 1:2\n",
            flow.key,
            found.elapsed()
        );
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        daemon.confirm(&flow);
        let [rule] = network.rules().try_into().unwrap();
        for part in ["idle_timeout=3", "send_flow_rem", "priority=24576", "set_field:1->ip_dscp"] {
            assert!(rule.contains(part), "{part} is not in {rule}");
        }
        assert_eq!(rule.contains("set_queue:1"), queue.is_some(), "{rule}");

        // Another flow stays in the primary queue.
        let before = network.sent(PRIMARY);
        wait("the other is in the primary queue", || {
            other.send(5);
            network.sent(PRIMARY) > before + 20
        });

        // Someone deletes all rules of flows.
        network.ofctl("del-flows", Some("cookie=0x7469000000000000/0xffff000000000000"));
        daemon.drive("it is added again", |it| {
            flow.send(1);
            network.rules().len() == 1 && it.isolator.counters().repairs == 1
        });
        let before = network.sent(SCAVENGER);
        daemon.drive("its packets are in the scavenger queue again", |_| {
            flow.send(1);
            network.sent(SCAVENGER) > before
        });

        // The switch is restarted, as after a crash.
        network.kill_switch();
        daemon.drive("it is noticed", |it| it.isolator.maintain(monotonic()).is_err());
        assert_eq!(daemon.phase(&flow.key), Some(Phase::Confirmed), "nothing is known to the contrary");
        network.start_switch();
        daemon.drive("counters are read again", |it| {
            flow.send(1);
            it.isolator.maintain(monotonic()).is_ok()
        });
        assert_eq!(network.rules().len(), 1, "it is added again");
        let before = network.sent(SCAVENGER);
        daemon.drive("its packets are in the scavenger queue again", |_| {
            flow.send(1);
            network.sent(SCAVENGER) > before
        });
        assert_eq!(daemon.phase(&flow.key), Some(Phase::Confirmed));
        assert!(daemon.isolator.counters().repairs >= 2);

        // The flow ends.
        daemon.drive("it is released", |it| it.phase(&flow.key).is_none());
        let ended = daemon.ended();
        assert_eq!((ended.phase, ended.end_cause), (Phase::Released, Some(EndCause::Quiet)), "{ended:?}");
        assert!(!ended.is_forced && ended.counters.unwrap().packets > 0);
        assert_eq!(network.rules(), Vec::<String>::new());
        let counters = daemon.isolation.counters();
        assert_eq!((counters.confirmed, counters.failed, counters.ineffective), (1, 0, 0));
        assert_eq!(daemon.isolator.stop(), Ok(()));
    }
}

/// Open vSwitch in user space accepts `set_queue` and ignores it.
#[test]
fn a_switch_that_ignores_set_queue_is_noticed() {
    let Some(network) = Network::start() else { return };
    let mut daemon = Daemon::start(&network, options(None, Some(QUEUE), Forward::Normal));
    let flow = network.flow(0, false, 5_001);
    daemon.find(flow.key);
    daemon.drive("the redirection fails", |it| {
        flow.send(1);
        it.isolation.ended().next().is_some()
    });
    let ended = daemon.ended();
    let error = ended.error.clone().unwrap();
    assert!(error.starts_with("the scavenger queue 1 of port wan0 receives nothing: "), "{error}");
    assert_eq!((ended.phase, ended.confirmed), (Phase::Failed, None));
    assert!(ended.counters.unwrap().packets > 0, "the rule matched: {ended:?}");
    assert_eq!(network.sent(SCAVENGER), 0);
    daemon.drive("the rule is deleted", |_| network.rules().is_empty());
    assert_eq!(daemon.isolation.counters().ineffective, 1);
}

#[test]
fn a_killed_daemon_leaves_no_rule_of_a_silent_flow_and_the_next_one_adopts_the_others() {
    let Some(network) = Network::start() else { return };
    let mut daemon = Daemon::start(&network, options(Some(1), None, Forward::Normal));
    let (flow, silent) = (network.flow(0, false, 5_001), network.flow(1, false, 5_002));
    daemon.find(flow.key);
    daemon.find(silent.key);
    daemon.confirm(&flow);
    daemon.confirm(&silent);
    // Nothing of the daemon runs any more.
    drop(daemon);
    wait("the switch deletes the rule of the silent flow", || {
        flow.send(1);
        network.rules().len() == 1
    });
    let mut daemon = Daemon::start(&network, options(Some(1), None, Forward::Normal));
    daemon.confirm(&flow);
    assert_eq!(daemon.isolation.of(&flow.key).unwrap().reason, Reason::Adopted);
    assert_eq!(daemon.isolator.stop(), Ok(()));
    assert_eq!(network.rules(), Vec::<String>::new());
}
