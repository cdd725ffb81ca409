//! Isolation by a router that receives FlowSpec rules: FRR's bgpd.

use std::process::Command;

use serde_json::{Value, json};

use super::Serve;
use super::control::send;
use super::frr::{Frr, Neighbour, ROUTER, ROUTER_AS, SPEAKER};
use super::isolation::configured;
use crate::program::THALWEG;

const LOCAL_AS: u32 = 64_501;

fn redirections(serve: &Serve) -> Value {
    serve.get("/v1/redirections").unwrap_or_default()
}

fn count(serve: &Serve, name: &str) -> u64 {
    redirections(serve)["counts"][name].as_u64().unwrap_or(0)
}

#[test]
fn a_router_has_the_rules_of_redirected_flows() {
    let neighbour = Neighbour { address: SPEAKER, asn: LOCAL_AS, families: &["ipv4", "ipv6"], lines: &[] };
    let Some(mut frr) = Frr::start(&neighbour) else { return };
    let speaker = frr.speaker.clone();
    // The daemon starts in the namespace of this thread.
    speaker.within(|| run(&mut frr)).unwrap();
}

fn run(frr: &mut Frr) {
    let mut serve = configured(&format!(
        "actuator = \"flowspec\"\npeer = \"{ROUTER}\"\npeer_as = {ROUTER_AS}\nlocal_as = {LOCAL_AS}\nquiet = \"100ms\"\n\
         max_time = \"300ms\"\n"
    ));
    let check =
        Command::new(THALWEG).args(["check", "thalweg.toml"]).current_dir(serve.folder.path()).output();
    let check = String::from_utf8(check.unwrap().stdout).unwrap();
    let expected =
        "isolation: cheetah flows by FlowSpec rules for 198.18.0.1:179, AS 64500, mark with DSCP 1; at most";
    assert!(check.contains(expected), "{check}");
    serve.start();
    serve.wait("cheetah flows were redirected and released", |serve| count(serve, "released") >= 2);
    assert_eq!(redirections(&serve)["actuator"], "flowspec");

    let path = "/v1/redirections/udp%20%5B2001:db8::1%5D:9%20%3E%20%5B2001:db8::2%5D:10";
    let has_rule = |frr: &Frr| {
        let text = frr.vtysh("show bgp ipv6 flowspec detail");
        text.contains("Destination Port = 10 ") && text.contains("FS:marking 1")
    };
    let (status, pinned) = send(&serve, "PUT", path, &json!({}));
    assert_eq!(status, 200, "{pinned}");
    frr.wait("its rule is there", has_rule);
    let (status, _) = send(&serve, "DELETE", path, &json!({}));
    assert_eq!(status, 200);
    frr.wait("its rule is gone", |frr| frr.count("ipv6") == 0);

    // The daemon is killed: the router drops its rules.
    assert_eq!(send(&serve, "PUT", path, &json!({})).0, 200);
    frr.wait("its rule is there", has_rule);
    serve.signal("-KILL");
    assert_eq!(serve.ended(), None, "a signal ended it");
    frr.wait("all rules are gone", |frr| frr.count("ipv4") == 0 && frr.count("ipv6") == 0);

    // The router resets the session, and then restarts: it gets the rules again.
    serve.start();
    serve.wait("the session is established", |serve| count(serve, "redirected") > 0);
    assert_eq!(send(&serve, "PUT", path, &json!({})).0, 200);
    frr.wait("its rule is there", has_rule);
    frr.vtysh("clear bgp *");
    serve.wait("the rule is announced again", |serve| count(serve, "repairs") > 0);
    frr.wait("its rule is there again", has_rule);
    frr.kill_bgpd();
    serve.wait("the error is reported", |serve| {
        let error = redirections(serve)["error"].clone();
        error.as_str().is_some_and(|error| error.starts_with("no BGP session with 198.18.0.1:179: "))
    });
    assert!(serve.metric("thalweg_isolation_checks_failed_total").unwrap() > 0);
    frr.start_bgpd();
    frr.wait("its rule is there again", has_rule);
    serve.wait("the error is gone", |serve| redirections(serve)["error"] == Value::Null);
    assert!(serve.log().contains("rules announced again to 198.18.0.1:179"), "{}", serve.log());

    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    frr.wait("all rules are gone", |frr| frr.count("ipv4") == 0 && frr.count("ipv6") == 0);
}
