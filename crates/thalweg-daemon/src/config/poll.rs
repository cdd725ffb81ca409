//! `[[poll]]`: interface counters that are polled.

mod openflow;

use std::path::PathBuf;
use std::time::Duration;

use thalweg_config::{Document, Problem, Typed};
use thalweg_linux::Namespace;
use thalweg_poll::openflow::OpenFlowOptions;
use thalweg_poll::qdisc::{QdiscOptions, parse_class};
use thalweg_poll::snmp::{NameObject, OidTemplate, QueueObjects};
use thalweg_wire::Nanos;

pub use openflow::OpenFlowEndpoint;

use super::names::{InterfaceByName, PollSourceName};
use super::table::Poll;
use super::{ControlConfig, IsolationConfig};

/// Maximum number of polls. Each has a thread.
const MAX_POLLS: usize = 256;

/// The shortest interval: agents cache their counters for longer.
const MIN_INTERVAL: Nanos = Nanos::from_millis(100);

/// A poll of interface counters.
#[derive(Clone, Debug, PartialEq)]
pub struct PollConfig {
    /// Its name.
    pub name: String,
    /// Where the counters come from.
    pub source: PollSource,
    /// Interval of the polls.
    pub interval: Nanos,
    /// Number of intervals of an average.
    pub average: usize,
}

/// Where counters come from.
#[derive(Clone, Debug, PartialEq)]
pub enum PollSource {
    /// A router, by SNMP.
    Snmp(SnmpConfig),
    /// A port of a switch, by OpenFlow.
    OpenFlow {
        /// What to read.
        options: OpenFlowOptions,
        /// The connection to the switch.
        endpoint: OpenFlowEndpoint,
    },
    /// The queues of an interface of this host.
    Qdisc {
        /// What to read.
        options: QdiscOptions,
        /// Network namespace of the interface; `None` for that of the daemon.
        namespace: Option<Namespace>,
    },
}

/// A poll by SNMP.
#[derive(Clone, Debug, PartialEq)]
pub struct SnmpConfig {
    /// The agent.
    pub target: String,
    /// Name of the interface.
    pub interface: String,
    /// The object that contains it.
    pub name_object: NameObject,
    /// The file with the credentials.
    pub credentials_file: PathBuf,
    /// Timeout of a request.
    pub timeout: Duration,
    /// Number of times that a request is repeated.
    pub retries: u32,
    /// The longest time for which the agent caches counters.
    pub cache_time: Duration,
    /// Objects of the primary queue.
    pub primary: Option<QueueObjects>,
    /// Objects of the scavenger queue.
    pub scavenger: Option<QueueObjects>,
    /// Whether the port has a scavenger queue.
    pub has_scavenger: bool,
}

/// Keys, and the sources that they belong to.
const KEYS: [(&[&str], &[PollSourceName]); 5] = [
    (
        &[
            Poll::target,
            Poll::credentials_file,
            Poll::interface_by,
            Poll::retries,
            Poll::cache_time,
            Poll::primary_oids,
            Poll::scavenger_oids,
        ],
        &[PollSourceName::Snmp],
    ),
    (&openflow::KEYS, &[PollSourceName::OpenFlow]),
    (&[Poll::primary_class, Poll::scavenger_class], &[PollSourceName::Qdisc]),
    (&[Poll::timeout, Poll::has_scavenger], &[PollSourceName::Snmp, PollSourceName::OpenFlow]),
    (&[Poll::namespace], &[PollSourceName::OpenFlow, PollSourceName::Qdisc]),
];

/// Reads all sections.
pub(super) fn read(
    document: &Document,
    control: Option<&ControlConfig>,
    isolation: Option<&IsolationConfig>,
    problems: &mut Vec<Problem>,
) -> Vec<PollConfig> {
    let mut polls: Vec<PollConfig> = Vec::new();
    for entry in document.all::<Poll>() {
        if polls.len() == MAX_POLLS {
            problems.push(entry.refuse("", format!("more than {MAX_POLLS} polls")));
            break;
        }
        if polls.iter().any(|poll| poll.name == entry.name) {
            problems.push(entry.refuse(Poll::name, format!("duplicate poll name {}", entry.name)));
        }
        check_keys(&entry, problems);
        let source = match entry.source {
            PollSourceName::Snmp => snmp(&entry, document, problems),
            PollSourceName::OpenFlow => openflow::read(&entry, document, problems),
            PollSourceName::Qdisc => qdisc(&entry, problems),
        };
        let Some(source) = source else { continue };
        openflow::check_listen(&entry, &source, &polls, control, isolation, problems);
        polls.push(PollConfig {
            name: entry.name.clone(),
            source,
            interval: entry.interval,
            average: entry.average,
        });
    }
    polls
}

/// Reports keys of other sources, and times that exclude each other.
fn check_keys(entry: &Typed<'_, Poll>, problems: &mut Vec<Problem>) {
    for (keys, owners) in KEYS {
        let is_foreign = |key: &&str| !owners.contains(&entry.source) && entry.is_set(key);
        if let Some(key) = keys.iter().copied().find(is_foreign) {
            let owners: Vec<&str> = owners.iter().map(|owner| owner.name()).collect();
            let reason = format!("requires source {}, not {}", owners.join(" or "), entry.source.name());
            problems.push(entry.refuse(key, reason));
        }
    }
    if entry.interval < MIN_INTERVAL {
        problems.push(entry.refuse(Poll::interval, "expected at least 100ms"));
    }
    if entry.source == PollSourceName::Snmp && entry.cache_time >= entry.interval {
        let key = if entry.is_set(Poll::interval) { Poll::interval } else { Poll::cache_time };
        let reason = format!(
            "the interval, {}, must be longer than cache_time, {}, so that each poll has new counters",
            entry.interval, entry.cache_time
        );
        problems.push(entry.refuse(key, reason));
    }
}

fn snmp(entry: &Typed<'_, Poll>, document: &Document, problems: &mut Vec<Problem>) -> Option<PollSource> {
    let target = entry.target.as_ref().filter(|target| is_target(target));
    if target.is_none() {
        let reason = match &entry.target {
            None => "required by source snmp: the agent, such as 192.0.2.1:161".to_owned(),
            // As other programs write it, with the community before the address. It is a secret.
            Some(target) if target.contains('@') => {
                "expected ADDRESS:PORT without @: a community belongs in credentials_file".to_owned()
            }
            Some(target) => format!(
                "invalid target {target:?}: expected ADDRESS:PORT, port 1-65535, such as 192.0.2.1:161"
            ),
        };
        problems.push(entry.refuse(Poll::target, reason));
    }
    if entry.credentials_file.is_none() {
        let reason = "required by source snmp: a file with user, auth and priv, or community";
        problems.push(entry.refuse(Poll::credentials_file, reason));
    }
    let mut queue = |key, oids: &Option<Vec<String>>| match oids.as_deref() {
        None => None,
        Some([sent, dropped]) => match (OidTemplate::parse(sent), OidTemplate::parse(dropped)) {
            (Ok(sent_packets), Ok(dropped_packets)) => Some(QueueObjects { sent_packets, dropped_packets }),
            (Err(reason), _) | (_, Err(reason)) => {
                problems.push(entry.refuse(key, reason));
                None
            }
        },
        Some(others) => {
            let reason = format!("expected two OIDs, of packets and of drops, not {}", others.len());
            problems.push(entry.refuse(key, reason));
            None
        }
    };
    let primary = queue(Poll::primary_oids, &entry.primary_oids);
    let scavenger = queue(Poll::scavenger_oids, &entry.scavenger_oids);
    Some(PollSource::Snmp(SnmpConfig {
        target: target?.clone(),
        interface: entry.interface.clone(),
        name_object: match entry.interface_by {
            InterfaceByName::Name => NameObject::Name,
            InterfaceByName::Alias => NameObject::Alias,
            InterfaceByName::Description => NameObject::Description,
        },
        credentials_file: document.folder.join(entry.credentials_file.as_ref()?),
        timeout: entry.timeout.into(),
        retries: entry.retries,
        cache_time: entry.cache_time.into(),
        primary,
        scavenger,
        has_scavenger: entry.has_scavenger,
    }))
}

/// Whether a text is a host and a port.
fn is_target(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_v6 = host.starts_with('[') && host.ends_with(']');
    let is_host = is_v6 || !host.is_empty() && !host.contains([':', ' ', '/', '@']);
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}

fn qdisc(entry: &Typed<'_, Poll>, problems: &mut Vec<Problem>) -> Option<PollSource> {
    let before = problems.len();
    let mut class = |key, text: &Option<String>| match text.as_deref().map(parse_class) {
        None => None,
        Some(Ok(class)) => Some(class),
        Some(Err(reason)) => {
            problems.push(entry.refuse(key, reason));
            None
        }
    };
    let primary = class(Poll::primary_class, &entry.primary_class);
    let scavenger = class(Poll::scavenger_class, &entry.scavenger_class);
    if entry.scavenger_class.is_some() && entry.primary_class.is_none() {
        problems.push(entry.refuse(Poll::scavenger_class, "requires primary_class"));
    }
    if problems.len() > before {
        return None;
    }
    let options = QdiscOptions {
        interface: entry.interface.clone(),
        classes: primary.map(|primary| (primary, scavenger)),
        speed: None,
    };
    Some(PollSource::Qdisc { options, namespace: entry.namespace.as_deref().map(Namespace::named) })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use thalweg_wire::openflow::{DatapathId, QueueId};

    use super::*;
    use crate::config::Config;

    fn parse(lines: &str) -> Result<Vec<PollConfig>, String> {
        let text =
            format!("[[collector]]\nname = \"a\"\ninterface = \"eth1\"\n[[poll]]\nname = \"r1\"\n{lines}");
        let config = Config::parse(&text, "t.toml", Path::new("/etc"));
        config.map(|config| config.polls).map_err(|error| error.to_string())
    }

    const SNMP: &str = "interface = \"wan0\"\ntarget = \"[2001:db8::1]:161\"\ncredentials_file = \"snmp\"\n";

    #[test]
    fn both_sources_are_read() {
        let polls = parse(SNMP).unwrap();
        assert_eq!((polls[0].interval, polls[0].average), (Nanos::from_secs(10), 6));
        let PollSource::Snmp(snmp) = &polls[0].source else { panic!("snmp") };
        assert_eq!(snmp.credentials_file, Path::new("/etc/snmp"));
        assert_eq!((snmp.cache_time, snmp.has_scavenger), (Duration::from_secs(3), true));
        let classes =
            "source = \"qdisc\"\ninterface = \"wan0\"\nprimary_class = \"1:10\"\nscavenger_class = \"1:20\"";
        let PollSource::Qdisc { options, .. } = &parse(classes).unwrap()[0].source else { panic!("qdisc") };
        assert_eq!(options.classes, Some((0x1_0010, Some(0x1_0020))));
    }

    #[test]
    fn problems_name_the_line_and_the_remedy() {
        for (lines, expected) in [
            ("", "t.toml:4: missing key \"interface\" in [[poll]]"),
            ("interface = \"wan0\"", "target: required by source snmp"),
            (
                &SNMP.replace("[2001:db8::1]:161", "r1"),
                "t.toml:7: target: invalid target \"r1\": expected ADDRESS:PORT",
            ),
            (
                &SNMP.replace("[2001:db8::1]:161", "geheim@192.0.2.1:161"),
                "t.toml:7: target: expected ADDRESS:PORT without @: a community belongs in credentials_file",
            ),
            (
                &SNMP.replace("credentials_file", "namespace"),
                "namespace: requires source openflow or qdisc, not snmp",
            ),
            (
                &[SNMP, "interval = \"2s\""].concat(),
                "interval: the interval, 2.00 s, must be longer than cache_time",
            ),
            (&[SNMP, "primary_oids = [\"1.3.6.1\"]"].concat(), "primary_oids: expected two OIDs"),
            (&[SNMP, "primary_oids = [\"1.3.6.1\", \"ifX\"]"].concat(), "primary_oids: invalid OID \"ifX\""),
            (
                "source = \"qdisc\"\ninterface = \"wan0\"\nscavenger_class = \"1:20\"",
                "requires primary_class",
            ),
            (
                "source = \"qdisc\"\ninterface = \"wan0\"\nprimary_class = \"10\"",
                "primary_class: invalid class \"10\"",
            ),
            (
                "source = \"qdisc\"\ninterface = \"wan0\"\ntarget = \"r1:161\"",
                "target: requires source snmp, not qdisc",
            ),
            (
                "source = \"qdisc\"\ninterface = \"wan0\"\ntimeout = \"1s\"",
                "timeout: requires source snmp or openflow, not qdisc",
            ),
            (&[SNMP, "[[poll]]\nname = \"r1\"\n", SNMP].concat(), "t.toml:10: name: duplicate poll name r1"),
        ] {
            let error = parse(lines).unwrap_err();
            assert!(error.contains(expected) && !error.contains("geheim"), "{lines}: {error}");
        }
    }

    const OPENFLOW: &str = "source = \"openflow\"\ninterface = \"wan0\"\nswitch = \"d1\"\n";
    const CONNECT: &str = "openflow_connect = \"192.0.2.1:6654\"\n";
    const LISTEN: &str = "openflow_listen = \"0.0.0.0:6655\"\n";

    #[test]
    fn ports_of_switches_are_read() {
        let queues = "primary_queue = 0\nscavenger_queue = 1\nnamespace = \"sw\"\n";
        let polls = parse(&[OPENFLOW, CONNECT, queues].concat()).unwrap();
        let PollSource::OpenFlow { options, endpoint } = &polls[0].source else { panic!("openflow") };
        assert_eq!((options.switch, options.port.as_str()), (DatapathId(0xd1), "wan0"));
        assert_eq!((options.primary, options.scavenger), (Some(QueueId(0)), Some(QueueId(1))));
        assert_eq!((options.has_one_queue, options.timeout), (false, Duration::from_secs(2)));
        assert_eq!(endpoint.peer.to_string(), "at 192.0.2.1:6654");
        assert_eq!(endpoint.namespace, Some(Namespace::named("sw")));
        let two = [OPENFLOW, LISTEN, "[[poll]]\nname = \"r2\"\n", OPENFLOW, LISTEN].concat();
        let polls = parse(&two).unwrap();
        let endpoints = polls.iter().map(|poll| match &poll.source {
            PollSource::OpenFlow { endpoint, .. } => endpoint,
            other => panic!("{other:?}"),
        });
        let endpoints: Vec<_> = endpoints.collect();
        assert_eq!(endpoints[0], endpoints[1], "they share connections");
    }

    #[test]
    fn problems_of_switches_name_the_line_and_the_remedy() {
        let tls = "openflow_certificate = \"c\"\nopenflow_key = \"k\"\nopenflow_ca_file = \"a\"\n";
        let isolation = "[isolation]\nactuator = \"openflow\"\nswitch = \"d2\"\nport = \"2\"\nqueue = 1\n";
        for (lines, expected) in [
            (
                OPENFLOW.to_owned(),
                "t.toml:6: source: openflow requires either openflow_listen or openflow_connect",
            ),
            ([OPENFLOW, CONNECT, LISTEN].concat(), "source: openflow requires either openflow_listen or"),
            (
                ["source = \"openflow\"\ninterface = \"wan0\"\n", LISTEN].concat(),
                "switch: required by source openflow: the datapath ID of the switch",
            ),
            ([OPENFLOW, LISTEN].concat().replace("d1", "dx"), "t.toml:8: switch: invalid datapath ID \"dx\""),
            (
                [OPENFLOW, LISTEN].concat().replace(":6655", ""),
                "openflow_listen: invalid address \"0.0.0.0\"",
            ),
            (
                [OPENFLOW, CONNECT].concat().replace(":6654", ""),
                "openflow_connect: invalid address \"192.0.2.1\"",
            ),
            (
                [OPENFLOW, LISTEN].concat().replace("wan0", "a-name-of-16-byte"),
                "t.toml:7: interface: expected at most 15 bytes, as names of ports in OpenFlow have",
            ),
            (
                [OPENFLOW, LISTEN, "scavenger_queue = 1\n"].concat(),
                "scavenger_queue: requires primary_queue: the port of a switch need not count",
            ),
            (
                [OPENFLOW, LISTEN, "primary_queue = 1\nscavenger_queue = 1\n"].concat(),
                "scavenger_queue: expected another queue than primary_queue",
            ),
            (
                [OPENFLOW, LISTEN, "openflow_key = \"k\"\n"].concat(),
                "openflow_key: openflow_certificate, openflow_key and openflow_ca_file must be set together",
            ),
            (
                [OPENFLOW, LISTEN, "cache_time = \"1s\"\n"].concat(),
                "cache_time: requires source snmp, not openflow",
            ),
            (
                [SNMP, "primary_queue = 0\n"].concat(),
                "t.toml:9: primary_queue: requires source openflow, not snmp",
            ),
            (
                [OPENFLOW, LISTEN, "[[poll]]\nname = \"r2\"\n", OPENFLOW, LISTEN, tls].concat(),
                "t.toml:15: openflow_listen: poll r1 listens at the same address with other TLS files",
            ),
            (
                [OPENFLOW, LISTEN, isolation, LISTEN].concat(),
                "t.toml:9: openflow_listen: the same address as openflow_listen of [isolation]: expected another port",
            ),
        ] {
            let error = parse(&lines).unwrap_err();
            assert!(error.contains(expected), "{lines}: {error}");
        }
    }
}
