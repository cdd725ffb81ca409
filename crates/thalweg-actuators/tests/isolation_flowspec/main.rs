//! Isolation by FlowSpec with a real router: FRR's bgpd.

mod frr;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use frr::{Frr, Neighbour, ROUTER, ROUTER_AS, ROUTER6, SPEAKER, SPEAKER6};
use thalweg_actuators::isolation::flowspec::{Action, Flowspec, FlowspecOptions, PORT};
use thalweg_actuators::isolation::{Isolator, IsolatorCounters};
use thalweg_control::isolate::{Command, Input, RedirectionId};
use thalweg_wire::{BitRate, FlowKey, Timestamp};

const LOCAL_AS: u32 = 64_501;

/// Maximum time of any step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const NOW: Timestamp = Timestamp(0);

const BOTH: &[&str] = &["ipv4", "ipv6"];

/// The speaker at its usual address.
const NEIGHBOUR: Neighbour<'_> = Neighbour { address: SPEAKER, asn: LOCAL_AS, families: BOTH, lines: &[] };

fn options(action: Action) -> FlowspecOptions {
    FlowspecOptions {
        peer: SocketAddr::new(ROUTER.parse().unwrap(), PORT),
        local_address: None,
        local_as: LOCAL_AS,
        peer_as: ROUTER_AS,
        router_id: None,
        hold_time: 9,
        password: None,
        action,
    }
}

/// The isolator under test, in the speaker's namespace.
struct Speaker {
    flowspec: Flowspec,
    next: u64,
}

impl Speaker {
    fn start(frr: &Frr, options: FlowspecOptions) -> Speaker {
        let mut flowspec = Flowspec::new(options);
        // Its threads inherit the namespace.
        frr.speaker.within(|| flowspec.start()).unwrap().unwrap();
        Speaker { flowspec, next: 0 }
    }

    /// The same, with an established session.
    fn established(frr: &Frr, options: FlowspecOptions) -> Speaker {
        let mut speaker = Speaker::start(frr, options);
        speaker.wait_until_established();
        speaker
    }

    #[track_caller]
    fn wait_until_established(&mut self) {
        let until = Instant::now() + PATIENCE;
        while let Err(error) = self.flowspec.maintain(NOW) {
            assert!(Instant::now() < until, "{error}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for an error that contains this text.
    #[track_caller]
    fn wait_for_error(&mut self, text: &str) {
        let until = Instant::now() + PATIENCE;
        let mut last = String::new();
        while !last.contains(text) {
            assert!(Instant::now() < until, "{last:?} does not contain {text:?}");
            std::thread::sleep(Duration::from_millis(20));
            last = self.flowspec.maintain(NOW).err().unwrap_or_default();
        }
    }

    fn redirect(&mut self, key: FlowKey) -> RedirectionId {
        self.next += 1;
        let id = RedirectionId(self.next);
        assert!(self.flowspec.execute(Command::Redirect(id, key), NOW).is_none());
        id
    }

    fn release(&mut self, id: RedirectionId, key: FlowKey) {
        assert!(self.flowspec.execute(Command::Release { id, key, if_packets: None }, NOW).is_none());
    }

    /// Waits for this number of answers.
    #[track_caller]
    fn answers(&mut self, count: usize) -> Vec<Input> {
        let until = Instant::now() + PATIENCE;
        let mut answers = Vec::new();
        while answers.len() < count {
            assert!(Instant::now() < until, "{answers:?}");
            answers.extend(self.flowspec.answers());
            std::thread::sleep(Duration::from_millis(1));
        }
        answers
    }

    fn counters(&self) -> IsolatorCounters {
        self.flowspec.counters()
    }
}

fn key(text: &str) -> FlowKey {
    text.parse().unwrap()
}

fn flow(version: u8, port: u16) -> FlowKey {
    match version {
        4 => key(&format!("tcp 192.0.2.7:{port} > 198.51.100.9:443")),
        _ => key(&format!("tcp [2001:db8::1]:{port} > [2001:db8::2]:443")),
    }
}

#[test]
fn a_rule_arrives_with_match_and_action_and_is_withdrawn() {
    let Some(frr) = Frr::start(&NEIGHBOUR) else { return };
    for (action, expected) in [
        (Action::Mark(8), "FS:marking 8"),
        (Action::RateLimit(BitRate(80_000_000)), "FS:rate 10000000.000000"),
        (Action::Redirect("64500:100".parse().unwrap()), "FS:redirect VRF RT:64500:100"),
    ] {
        let mut speaker = Speaker::established(&frr, options(action));
        let (four, six) = (flow(4, 5_001), flow(6, 5_001));
        let ids = [four, six].map(|key| (speaker.redirect(key), key));
        assert!(speaker.answers(2).iter().all(|it| matches!(it, Input::Redirected(_))));
        frr.wait("both rules are there", |frr| frr.count("ipv4") == 1 && frr.count("ipv6") == 1);
        let text = frr.vtysh("show bgp ipv4 flowspec detail");
        println!("{text}\n{}", frr.vtysh("show bgp ipv6 flowspec detail"));
        assert!(text.contains(expected), "{text}");
        for (id, key) in ids {
            speaker.release(id, key);
        }
        assert!(speaker.answers(2).iter().all(|it| matches!(it, Input::Released(_))));
        frr.wait("both are gone", |frr| frr.count("ipv4") == 0 && frr.count("ipv6") == 0);
        speaker.flowspec.stop().unwrap();
    }
}
