//! `kill -9` at a hundred moments: while queues and program are set up, and while flows are redirected and released.
//!
//! A child process, this test program with a variable set, does what a daemon does until it is killed.

use std::process::{Command as Process, Stdio};
use std::time::Duration;

use thalweg_actuators::isolation::Isolator;
use thalweg_actuators::isolation::tc::{Tc, TcOptions};
use thalweg_control::isolate::{Command, RedirectionId};
use thalweg_linux::Namespace;
use thalweg_wire::{FlowKey, Nanos};

use super::router::{PRIMARY, Router, SCAVENGER, now, options, wait};

/// Names the namespace of the child, and a flow.
const VARIABLE: &str = "THALWEG_TEST_CHILD";

const KILLS: u64 = 100;

/// Longest life of a child, in microseconds. It needs 5 to 50 ms to set up everything.
const LONGEST_LIFE: u64 = 60_000;

fn short() -> TcOptions {
    TcOptions { expiry: Nanos::from_millis(700), ..options() }
}

/// What a daemon does: sets up, takes over, redirects, refreshes, repairs and releases, until it is killed.
#[test]
fn child() {
    let Ok(variable) = std::env::var(VARIABLE) else { return };
    let (namespace, flow) = variable.split_once('|').unwrap();
    let key: FlowKey = flow.parse().unwrap();
    let mut tc = Tc::open(short(), Some(&Namespace::named(namespace)), now()).unwrap();
    tc.start().unwrap();
    for number in 0.. {
        let id = RedirectionId(number);
        tc.execute(Command::Redirect(id, key), now());
        tc.execute(Command::Refresh(vec![(id, key)]), now());
        let _ = tc.read(&[key], now());
        let _ = tc.maintain(now());
        tc.execute(Command::Release { id, key, if_packets: Some(number % 3) }, now());
        tc.execute(Command::Release { id, key, if_packets: None }, now());
    }
}

#[test]
fn forwarding_survives_a_kill_at_any_moment_and_nothing_stays_redirected() {
    let Some(router) = Router::start() else { return };
    let before = router.root();
    let mut flow = router.flow(false, 5_001);
    let mut arrived = 0;
    let mut life = 17;
    for kill in 0..KILLS {
        // A linear congruential generator (Park and Miller 1988).
        life = life * 48_271 % 0x7FFF_FFFF;
        let mut child = Process::new(std::env::current_exe().unwrap())
            .args(["kills::child", "--exact"])
            .env(VARIABLE, format!("{}|{}", router.router.name(), flow.key))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(life % LONGEST_LIFE));
        child.kill().unwrap();
        child.wait().unwrap();
        flow.send(1);
        arrived += 1;
        wait(&format!("a packet arrives after kill {kill}"), || flow.received().len() == 1);
    }
    assert_eq!(arrived, KILLS);
    // Whatever the last child left expires by itself.
    std::thread::sleep(Duration::from_millis(800));
    if router.classes().contains_key(&SCAVENGER) {
        let sent = router.sent(SCAVENGER);
        flow.send(5);
        wait("they arrive", || flow.received().len() == 5);
        assert_eq!(router.sent(SCAVENGER), sent, "nothing stays redirected");
    }
    // The next start takes over whatever is there, and works.
    let mut tc = router.open(short()).unwrap();
    let sent = router.sent(SCAVENGER);
    super::redirect(&mut tc, flow.key);
    flow.send(3);
    wait("it is redirected", || router.sent(SCAVENGER) == sent + 3);
    assert!(router.sent(PRIMARY) < u64::MAX);
    tc.stop().unwrap();
    assert_eq!((router.root().kind, router.root().options), (before.kind, before.options));
}
