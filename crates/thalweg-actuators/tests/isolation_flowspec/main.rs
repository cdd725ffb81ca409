//! Isolation by FlowSpec with a real router: FRR's bgpd.

mod frr;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use frr::{Frr, Neighbour, ROUTER, ROUTER_AS, ROUTER6, SPEAKER, SPEAKER6};
use thalweg_actuators::isolation::flowspec::{Action, Flowspec, FlowspecOptions, PORT};
use thalweg_actuators::isolation::{Isolator, IsolatorCounters};
use thalweg_control::isolate::{Command, Input, RedirectionId};
use thalweg_wire::{BitRate, FlowKey, Secret, Timestamp};

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

/// Returns match and action of the first rule of a family, as the router shows them.
fn shown(frr: &Frr, family: &str) -> Vec<String> {
    let text = frr.vtysh(&format!("show bgp {family} flowspec detail"));
    let lines = text.lines().map(|line| line.trim().to_owned()).skip(1);
    lines.take_while(|line| !line.starts_with("received")).collect()
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
        let protocol_and_ports =
            ["IP Protocol = 6", "Destination Port = 443", "Source Port = 5001", expected];
        let addresses = ["Destination Address 198.51.100.9/32", "Source Address 192.0.2.7/32"];
        assert_eq!(shown(&frr, "ipv4"), [&addresses[..], &protocol_and_ports].concat());
        let addresses = ["Destination Address 2001:db8::2/128/off 0", "Source Address 2001:db8::1/128/off 0"];
        assert_eq!(shown(&frr, "ipv6"), [&addresses[..], &protocol_and_ports].concat());
        for (id, key) in ids {
            speaker.release(id, key);
        }
        assert!(speaker.answers(2).iter().all(|it| matches!(it, Input::Released(_))));
        frr.wait("both are gone", |frr| frr.count("ipv4") == 0 && frr.count("ipv6") == 0);
        speaker.flowspec.stop().unwrap();
    }
}

#[test]
fn a_rule_of_ipv6_or_without_ports_matches_what_it_says() {
    let Some(frr) = Frr::start(&NEIGHBOUR) else { return };
    let mut speaker = Speaker::established(&frr, options(Action::Mark(1)));
    let first = key("sctp 192.0.2.7:5001 > 198.51.100.9:443");
    let second = key("sctp 192.0.2.7:5002 > 198.51.100.9:443");
    let flows = [first, second, key("icmp6 [2001:db8::1]:0 > [2001:db8::2]:0")];
    let ids = flows.map(|key| speaker.redirect(key));
    speaker.answers(3);
    frr.wait("the rules are there", |frr| frr.count("ipv4") == 1 && frr.count("ipv6") == 1);
    let four = ["Destination Address 198.51.100.9/32", "Source Address 192.0.2.7/32", "IP Protocol = 132"];
    assert_eq!(shown(&frr, "ipv4"), [&four[..], &["FS:marking 1"]].concat());
    let six = ["Destination Address 2001:db8::2/128/off 0", "Source Address 2001:db8::1/128/off 0"];
    assert_eq!(shown(&frr, "ipv6"), [&six[..], &["IP Protocol = 58", "FS:marking 1"]].concat());
    // Two flows of SCTP share a rule, which lasts as long as either.
    speaker.release(ids[0], flows[0]);
    speaker.release(ids[2], flows[2]);
    speaker.answers(2);
    frr.wait("the rule of IPv6 is gone", |frr| frr.count("ipv6") == 0);
    assert_eq!(frr.count("ipv4"), 1);
    speaker.release(ids[1], flows[1]);
    frr.wait("the other is gone", |frr| frr.count("ipv4") == 0);
}

#[test]
fn a_thousand_rules_arrive_and_vanish_at_the_stop() {
    let Some(frr) = Frr::start(&NEIGHBOUR) else { return };
    let mut speaker = Speaker::established(&frr, options(Action::Mark(1)));
    for port in 1..=500 {
        speaker.redirect(flow(4, port));
        speaker.redirect(flow(6, port));
    }
    assert!(speaker.answers(1_000).iter().all(|it| matches!(it, Input::Redirected(_))));
    frr.wait("all are there", |frr| frr.count("ipv4") == 500 && frr.count("ipv6") == 500);
    assert_eq!((speaker.counters().calls, speaker.counters().failed_calls), (1_000, 0));
    speaker.flowspec.stop().unwrap();
    frr.wait("all are gone", |frr| frr.count("ipv4") == 0 && frr.count("ipv6") == 0);
    let text = frr.vtysh("show bgp neighbors");
    assert!(text.contains("Notification received (Cease/Administrative Shutdown)"), "{text}");
}

#[test]
fn rules_are_announced_again_after_a_reset_and_on_request() {
    let Some(frr) = Frr::start(&NEIGHBOUR) else { return };
    let mut speaker = Speaker::established(&frr, options(Action::Mark(1)));
    for port in 1..=3 {
        speaker.redirect(flow(4, port));
    }
    speaker.redirect(flow(6, 1));
    speaker.answers(4);
    frr.wait("all are there", |frr| frr.count("ipv4") == 3 && frr.count("ipv6") == 1);
    assert_eq!(speaker.counters().repairs, 0);

    frr.vtysh("clear bgp *");
    let until = Instant::now() + PATIENCE;
    while speaker.counters().repairs == 0 {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(20));
    }
    frr.wait("all are there again", |frr| frr.count("ipv4") == 3 && frr.count("ipv6") == 1);
    let until = Instant::now() + PATIENCE;
    let repaired = loop {
        assert!(Instant::now() < until);
        if let Ok(repaired) = speaker.flowspec.maintain(NOW) {
            break repaired;
        }
    };
    assert_eq!(repaired, ["4 rules announced again to 198.18.0.1:179"]);
    assert_eq!(speaker.counters().repairs, 4);

    // A request to repeat them, without an end of the session.
    let received = |frr: &Frr| {
        let text = frr.vtysh("show bgp neighbors");
        let line = text.lines().find(|line| line.trim().starts_with("Updates:")).unwrap();
        line.split_whitespace().last().unwrap().parse::<u64>().unwrap()
    };
    let before = received(&frr);
    for family in BOTH {
        frr.vtysh(&format!("clear bgp {family} flowspec * soft in"));
    }
    frr.wait("they are repeated", |frr| received(frr) >= before + 2);
    assert_eq!((frr.count("ipv4"), frr.count("ipv6")), (3, 1));
    assert_eq!(speaker.counters().repairs, 4);
}

#[test]
fn a_router_that_restarts_gets_all_rules_again() {
    let Some(mut frr) = Frr::start(&NEIGHBOUR) else { return };
    let mut speaker = Speaker::established(&frr, options(Action::Mark(1)));
    let kept = speaker.redirect(flow(4, 1));
    let released = speaker.redirect(flow(4, 2));
    speaker.answers(2);
    frr.kill_bgpd();
    speaker.wait_for_error("no BGP session with 198.18.0.1:179: ");
    assert!(speaker.counters().failed_checks > 0);
    // Meanwhile a new redirection fails. A release succeeds, because the router has no rules.
    let refused = speaker.redirect(flow(4, 3));
    speaker.release(released, flow(4, 2));
    for answer in speaker.answers(2) {
        match answer {
            Input::Failed(id, error) => {
                assert_eq!(id, refused);
                assert!(error.starts_with("no BGP session with 198.18.0.1:179: "), "{error}");
            }
            Input::Released(id) => assert_eq!(id, released),
            other => panic!("{other:?}"),
        }
    }
    speaker.wait_for_error("cannot connect: Connection refused");
    frr.start_bgpd();
    frr.wait("the rule is there again", |frr| frr.count("ipv4") == 1);
    let text = frr.vtysh("show bgp ipv4 flowspec detail");
    assert!(text.contains("Source Port = 1 \n"), "{text}");
    speaker.wait_until_established();
    speaker.release(kept, flow(4, 1));
    frr.wait("no rule is there", |frr| frr.count("ipv4") == 0);
}

#[test]
fn rules_vanish_within_the_hold_time_if_packets_are_lost() {
    let Some(frr) = Frr::start(&NEIGHBOUR) else { return };
    let mut speaker =
        Speaker::established(&frr, FlowspecOptions { hold_time: 3, ..options(Action::Mark(1)) });
    speaker.redirect(flow(4, 1));
    frr.wait("the rule is there", |frr| frr.count("ipv4") == 1);
    frr.set_link("down");
    frr.wait("the rule is gone", |frr| frr.count("ipv4") == 0);
    speaker.wait_for_error("no BGP session with 198.18.0.1:179: ");
    frr.set_link("up");
    frr.wait("the rule is there again", |frr| frr.count("ipv4") == 1);
}

#[test]
fn sessions_within_an_autonomous_system_over_ipv6_and_with_a_password() {
    let internal = Neighbour { asn: ROUTER_AS, lines: &["password secret"], ..NEIGHBOUR };
    let over_ipv6 = Neighbour { address: SPEAKER6, ..NEIGHBOUR };
    for neighbour in [internal, over_ipv6] {
        let Some(frr) = Frr::start(&neighbour) else { return };
        let mut options = options(Action::Redirect("2001:db8::9".parse().unwrap()));
        options.local_as = neighbour.asn;
        match neighbour.address == SPEAKER6 {
            true => {
                options.peer = SocketAddr::new(ROUTER6.parse().unwrap(), PORT);
                options.router_id = Some(SPEAKER.parse().unwrap());
                options.local_address = Some(SPEAKER6.parse().unwrap());
            }
            false => options.password = Some(Secret::new("secret")),
        }
        let mut speaker = Speaker::established(&frr, options);
        speaker.redirect(flow(6, 1));
        speaker.redirect(flow(4, 1));
        let mut answers = speaker.answers(2);
        answers.sort_by_key(|answer| matches!(answer, Input::Failed(..)));
        let Input::Failed(_, error) = &answers[1] else { panic!("{answers:?}") };
        assert_eq!(error, "redirect to 2001:db8::9 does not apply to IPv4");
        frr.wait("the rule is there", |frr| frr.count("ipv6") == 1);
    }
}

#[test]
fn sessions_that_cannot_be_established_report_why() {
    let Some(frr) = Frr::start(&Neighbour { families: &["ipv4"], lines: &["password secret"], ..NEIGHBOUR })
    else {
        return;
    };
    let with = |password: &str| FlowspecOptions {
        password: Some(Secret::new(password)),
        ..options(Action::Mark(1))
    };
    let mut speaker = Speaker::established(&frr, with("secret"));
    speaker.redirect(flow(6, 1));
    let Input::Failed(_, error) = speaker.answers(1).remove(0) else { panic!("it failed") };
    assert_eq!(error, "198.18.0.1:179 does not accept IPv6 FlowSpec");
    drop(speaker);
    for (options, expected) in [
        (FlowspecOptions { peer_as: 64_499, ..with("secret") }, "with AS 64500, hold time"),
        (FlowspecOptions { peer_as: 64_499, ..with("secret") }, "refused: 2/2, Bad Peer AS"),
        (
            FlowspecOptions { local_as: 64_499, ..with("secret") },
            "the peer sent NOTIFICATION 2/2, Bad Peer AS",
        ),
        (with("wrong"), "cannot connect: "),
        (
            FlowspecOptions { local_address: Some("198.18.0.77".parse().unwrap()), ..with("secret") },
            "cannot connect: Cannot assign requested address",
        ),
    ] {
        let mut speaker = Speaker::start(&frr, options);
        speaker.wait_for_error(expected);
    }
}

#[test]
fn a_router_without_flowspec_is_refused() {
    let Some(frr) = Frr::start(&Neighbour { families: &[], lines: &["activate"], ..NEIGHBOUR }) else {
        return;
    };
    let mut speaker = Speaker::start(&frr, options(Action::Mark(1)));
    speaker.wait_for_error("no BGP session with 198.18.0.1:179: ");
    speaker.wait_for_error("Unsupported Capability");
}

#[test]
fn the_configuration_of_the_guide_accepts_rules() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/isolation.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let after = guide.split("### FRR\n\n```\n").nth(1).expect("the guide has a section of FRR");
    let block = after.split("```").next().unwrap();
    // Without zebra, bgpd does not know the addresses of the router.
    let router = format!("router bgp {ROUTER_AS}\n");
    assert!(block.starts_with(&router), "{block}");
    let block = block.replace(&router, &format!("{router} bgp router-id {ROUTER}\n"));
    let Some(frr) = Frr::start_with(&block.replace("192.0.2.2", SPEAKER)) else { return };
    let mut speaker = Speaker::established(&frr, options(Action::Mark(1)));
    speaker.redirect(flow(4, 1));
    speaker.redirect(flow(6, 1));
    frr.wait("both rules are there", |frr| frr.count("ipv4") == 1 && frr.count("ipv6") == 1);
}
