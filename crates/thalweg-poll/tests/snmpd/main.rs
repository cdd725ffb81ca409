//! The SNMP source against Debian's snmpd (net-snmp 5.9) in network namespaces. Needs root, snmpd and iproute2.

mod agent;
#[path = "../../../thalweg-linux/tests/skip/mod.rs"]
mod skip;

use std::time::Duration;

use agent::{Agent, SCRIPT, first, options, queue, until};
use thalweg_linux::clock::monotonic;
use thalweg_poll::interval::between;
use thalweg_poll::qdisc::{Qdisc, QdiscOptions};
use thalweg_poll::snmp::{Credentials, NameObject, Snmp, SnmpOptions};
use thalweg_poll::{CounterSource as _, InterfaceReading, ReadError, Scope, Unusable};

const V2C: &str = "rocommunity geheim\n";
const V3: &str = "createUser thalweg SHA-256 authentication AES privacy-key\nrouser thalweg priv\n";

/// Values that replace those of the agent for wan0.
const DISCARDS: &str = ".1.3.6.1.2.1.2.2.1.19.101 counter32";

fn v2c() -> Credentials {
    Credentials::community("geheim")
}

fn v3(password: &str) -> Credentials {
    let text = format!("user thalweg\nauth sha256 {password}\npriv aes128 privacy-key\n");
    Credentials::parse(&text, "credentials").unwrap()
}

/// Runs a test in the namespace of an agent, unless there can be none.
fn with_agent(lines: &str, test: impl FnOnce(&mut Agent) + Send) {
    if let Some(reason) = agent::unavailable() {
        return skip::skip(reason);
    }
    let mut agent = Agent::start(lines);
    let namespace = agent.namespace().clone();
    namespace.within(|| test(&mut agent)).unwrap();
}

fn source(options: SnmpOptions) -> Snmp {
    Snmp::new(options).unwrap()
}

#[test]
fn an_agent_answers_version_2c_and_3_alike() {
    with_agent(&[V2C, V3].concat(), |agent| {
        agent.connect();
        let mut first_source = source(options(v2c()));
        let start = first(&mut first_source);
        assert_eq!((start.name.as_str(), start.index, start.scope), ("wan0", 101, Scope::OneQueue));
        assert_eq!(start.output.packets.width.bits(), 64);
        let mut authenticated = source(options(v3("authentication")));
        assert_eq!(authenticated.description(), "SNMP v3 authPriv of 127.0.0.1:16161, ifName wan0");
        let earlier = first(&mut authenticated);
        agent.send(500);
        // The agent caches its counters for some seconds.
        let all = earlier.output.packets.value + 500;
        let is_complete = |reading: &InterfaceReading| reading.output.packets.value >= all;
        let later = until(|| Some(authenticated.read(&monotonic).unwrap()).filter(is_complete));
        let loss = between(&earlier, &later).loss.unwrap();
        assert!((500..600).contains(&loss.packets), "{loss:?}");
        assert!(loss.bytes >= 500 * 1_028, "{loss:?}");
        assert_eq!(loss.drops, 0);
    });
}

#[test]
fn wrong_credentials_are_named_without_the_secret() {
    with_agent(V3, |_| {
        let mut right = source(options(v3("authentication")));
        first(&mut right);
        let error = source(options(v3("wrong-password"))).read(&monotonic).unwrap_err();
        assert!(matches!(error, ReadError::Credentials { .. }), "{error:?}");
        let message = error.to_string();
        assert!(
            message.contains("thalweg: it answers, but not to authenticated requests: wrong password"),
            "{message}"
        );
        assert!(!message.contains("wrong-password") && !message.contains("privacy-key"), "{message}");
        let text = "user nobody\nauth sha256 authentication\npriv aes128 privacy-key";
        let unknown = Credentials::parse(text, "credentials").unwrap();
        let error = source(options(unknown)).read(&monotonic).unwrap_err();
        assert!(error.to_string().contains("unknown user"), "{error}");
        // An agent ignores a wrong community (RFC 3584).
        let fast = SnmpOptions { timeout: Duration::from_millis(200), retries: 0, ..options(v2c()) };
        let error = source(fast).read(&monotonic).unwrap_err();
        assert_eq!(error.kind(), "timeout", "{error}");
    });
}

#[test]
fn a_renamed_interface_is_missing_and_a_new_one_of_its_name_is_found() {
    with_agent(V2C, |agent| {
        // net-snmp keeps the ifName of a renamed interface, with its last counters, and changes ifDescr.
        let by = SnmpOptions { name_object: NameObject::Description, ..options(v2c()) };
        let mut snmp = source(by);
        let mut by_name = source(options(v2c()));
        let before = (first(&mut snmp), first(&mut by_name));
        agent.ip("link set wan0 down");
        agent.ip("link set wan0 name wan9");
        let error = until(|| snmp.read(&monotonic).err());
        let message = error.to_string();
        assert!(message.contains("has no interface whose ifDescr is \"wan0\"; it has"), "{message}");
        assert!(message.contains("wan9"), "{message}");
        let after = by_name.read(&monotonic).unwrap();
        assert_eq!(between(&before.1, &after).loss, Err(Unusable::Renamed));
        agent.ip("link set lan0 down");
        agent.ip("link set lan0 name wan0");
        let after = until(|| snmp.read(&monotonic).ok());
        assert_eq!(after.index, 102);
        assert_eq!(between(&before.0, &after).loss, Err(Unusable::Reindexed));
    });
}

#[test]
fn an_interface_that_is_created_again_has_another_index_and_no_interval() {
    with_agent(V2C, |agent| {
        let mut snmp = source(options(v2c()));
        let before = first(&mut snmp);
        agent.ip("link delete wan0");
        agent.ip("link add wan0 index 201 type veth peer name lan0 index 202");
        agent.ip("link set wan0 up");
        agent.ip("link set lan0 up");
        // net-snmp still shows the old one, as down.
        let after = until(|| snmp.read(&monotonic).ok().filter(|reading| reading.index == 201));
        assert_eq!(between(&before, &after).loss, Err(Unusable::Reindexed));
        let next = snmp.read(&monotonic).unwrap();
        assert!(between(&after, &next).loss.is_ok());
    });
}

#[test]
fn an_interface_whose_old_index_has_lost_an_object_is_looked_up_again() {
    with_agent(&[V2C, &Agent::own_values()].concat(), |agent| {
        agent.set_values(&format!("{DISCARDS} 1"));
        let mut snmp = source(options(v2c()));
        let before = first(&mut snmp);
        agent.ip("link delete wan0");
        agent.ip("link add wan0 index 201 type veth peer name lan0 index 202");
        agent.ip("link set wan0 up");
        agent.ip("link set lan0 up");
        // A script gives the discards of interfaces that exist; net-snmp still shows the others of the old one.
        agent.set_values(&format!("{} 2", DISCARDS.replace(".101", ".201")));
        let after = until(|| snmp.read(&monotonic).ok().filter(|reading| reading.index == 201));
        assert_eq!(between(&before, &after).loss, Err(Unusable::Reindexed));
    });
}

#[test]
fn a_restarted_agent_costs_one_interval() {
    with_agent(&[V2C, V3].concat(), |agent| {
        let mut snmp = source(options(v3("authentication")));
        let before = first(&mut snmp);
        // Old enough that the new uptime is lower.
        std::thread::sleep(Duration::from_secs(4));
        let old = snmp.read(&monotonic).unwrap();
        assert!(between(&before, &old).loss.is_ok());
        agent.kill();
        let fast = SnmpOptions { timeout: Duration::from_millis(200), retries: 0, ..options(v2c()) };
        let error = source(fast).read(&monotonic).unwrap_err();
        assert_eq!(error.kind(), "timeout", "{error}");
        agent.launch();
        let restarted = first(&mut snmp);
        assert_eq!(between(&old, &restarted).loss, Err(Unusable::Restarted), "{old:?} {restarted:?}");
        let next = snmp.read(&monotonic).unwrap();
        assert!(between(&restarted, &next).loss.is_ok());
    });
}

#[test]
fn discards_that_wrap_are_counted_through() {
    with_agent(&[V2C, &Agent::own_values()].concat(), |agent| {
        agent.set_values(&format!("{DISCARDS} 4294967290"));
        let mut snmp = source(options(v2c()));
        let before = first(&mut snmp);
        assert_eq!(before.output.discards.unwrap().value, 4_294_967_290);
        std::thread::sleep(Duration::from_millis(100));
        agent.set_values(&format!("{DISCARDS} 5"));
        let after = snmp.read(&monotonic).unwrap();
        assert_eq!(between(&before, &after).loss.unwrap().drops, 11);
        // The counters of this interface were reset.
        let reset = format!("{DISCARDS} 1\n.1.3.6.1.2.1.31.1.1.1.19.101 timeticks 77");
        agent.set_values(&reset);
        let reset = snmp.read(&monotonic).unwrap();
        assert_eq!(between(&after, &reset).loss, Err(Unusable::Reset));
    });
}

#[test]
fn queues_are_read_from_objects_of_the_vendor() {
    const OWN: &str = "1.3.6.1.4.1.8072.9999.9999.7";
    with_agent(&[V2C, &Agent::own_values()].concat(), |agent| {
        let values = |primary: [u32; 2], scavenger: [u32; 2]| {
            let counters = [primary, scavenger].concat();
            let line =
                |(column, value): (usize, &u32)| format!(".{OWN}.101.{} counter32 {value}\n", column + 1);
            let own: String = counters.iter().enumerate().map(line).collect();
            agent.set_values(&format!("{own}{DISCARDS} {}\n", primary[1] + scavenger[1]));
        };
        let column = |number| format!("{OWN}.{{index}}.{number}");
        let objects = |first| Some(queue(&column(first), &column(first + 1)));
        let mut both = source(SnmpOptions { primary: objects(1), scavenger: objects(3), ..options(v2c()) });
        let mut less = source(SnmpOptions { scavenger: objects(3), has_one_queue: false, ..options(v2c()) });
        let mut sum = source(SnmpOptions { has_one_queue: false, ..options(v2c()) });
        values([1_000, 1], [500, 100]);
        let before = (first(&mut both), first(&mut less), first(&mut sum));
        values([11_000, 4], [700, 900]);
        let after = [&mut both, &mut less, &mut sum].map(|source| source.read(&monotonic).unwrap());
        let interval = between(&before.0, &after[0]);
        let loss = interval.loss.unwrap();
        assert_eq!((loss.packets, loss.drops, interval.scavenger.unwrap().drops), (10_003, 3, 800));
        assert_eq!(between(&before.1, &after[1]).loss.unwrap().drops, 3);
        assert_eq!(between(&before.2, &after[2]).loss, Err(Unusable::SumOfQueues));
        // A queue that the agent does not count is an error, not 0.
        let missing = Some(queue(&column(8), &column(9)));
        let error = source(SnmpOptions { primary: missing, ..options(v2c()) }).read(&monotonic).unwrap_err();
        assert!(error.to_string().contains("does not report 1.3.6.1.4.1.8072.9999.9999.7.101.8"), "{error}");
    });
}

#[test]
fn the_script_gives_the_drops_of_the_queue_to_snmpd() {
    let line = format!("pass_persist .1.3.6.1.2.1.2.2.1.19 {SCRIPT} port\n");
    with_agent(&[V2C, &line].concat(), |agent| {
        agent.connect();
        agent.run("tc", "qdisc add dev wan0 root tbf rate 80kbit burst 3000 limit 5000");
        let mut snmp = source(options(v2c()));
        let before = first(&mut snmp);
        agent.send(1_000);
        let qdisc = QdiscOptions { interface: "wan0".to_owned(), ..QdiscOptions::default() };
        let mut kernel = Qdisc::open(qdisc, None).unwrap();
        let truth = kernel.read(&monotonic).unwrap();
        let after = snmp.read(&monotonic).unwrap();
        let drops = between(&before, &after).loss.unwrap().drops;
        assert!(drops > 900, "{drops}");
        assert_eq!(after.output.discards.unwrap().value, truth.output.discards.unwrap().value);
        assert_eq!(truth.scope, Scope::OneQueue);
    });
}

#[test]
fn without_the_script_snmpd_reports_no_drops() {
    with_agent(V2C, |agent| {
        agent.connect();
        agent.run("tc", "qdisc add dev wan0 root tbf rate 80kbit burst 3000 limit 5000");
        agent.send(1_000);
        let mut snmp = source(options(v2c()));
        assert_eq!(first(&mut snmp).output.discards.unwrap().value, 0);
    });
}

#[test]
fn the_script_tells_the_queues_apart() {
    let line = format!("pass_persist .1.3.6.1.4.1.8072.9999.9999.1 {SCRIPT} queues 7468:10 7468:20\n");
    with_agent(&[V2C, &line].concat(), |agent| {
        agent.connect();
        agent.run("tc", "qdisc add dev wan0 root handle 7468: htb default 20");
        agent.run("tc", "class add dev wan0 parent 7468: classid 7468:10 htb rate 1mbit");
        agent.run("tc", "class add dev wan0 parent 7468: classid 7468:20 htb rate 80kbit");
        agent.run("tc", "qdisc add dev wan0 parent 7468:10 bfifo limit 5000");
        agent.run("tc", "qdisc add dev wan0 parent 7468:20 bfifo limit 5000");
        let column = |number| format!("1.3.6.1.4.1.8072.9999.9999.1.{{index}}.{number}");
        let objects = |first| Some(queue(&column(first), &column(first + 1)));
        let mut snmp = source(SnmpOptions { primary: objects(1), scavenger: objects(3), ..options(v2c()) });
        let mut kernel =
            Qdisc::open(QdiscOptions { interface: "wan0".to_owned(), ..QdiscOptions::default() }, None)
                .unwrap();
        let before = (first(&mut snmp), kernel.read(&monotonic).unwrap());
        agent.send(1_000);
        let after = (snmp.read(&monotonic).unwrap(), kernel.read(&monotonic).unwrap());
        // All packets are in the default class, the scavenger queue.
        for (before, after) in [(&before.0, &after.0), (&before.1, &after.1)] {
            let interval = between(before, after);
            assert_eq!(interval.loss.unwrap().drops, 0);
            assert!(interval.scavenger.unwrap().drops > 900, "{interval:?}");
        }
        assert_eq!(after.0.scavenger.unwrap().dropped_packets, after.1.scavenger.unwrap().dropped_packets);
    });
}

#[test]
fn the_time_of_a_cached_reading_is_that_of_the_cache() {
    with_agent(V2C, |agent| {
        agent.connect();
        let cached = SnmpOptions { cache_time: Duration::from_secs(5), ..options(v2c()) };
        let mut snmp = source(cached);
        first(&mut snmp);
        agent.send(100);
        let reading = snmp.read(&monotonic).unwrap();
        // The cache was read after the packets were sent, though the agent had one of before.
        assert!(reading.output.packets.value >= 100, "{reading:?}");
        assert!(reading.time_error.as_secs_f64() < 5.0, "{reading:?}");
    });
}
