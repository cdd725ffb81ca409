//! Captures from other sources, if a folder of them exists beside the checkout. Packet counts are compared with capinfos,
//! flows with tshark.
//!
//! tshark prints the outermost IP header of each packet and its ports, without reassembly. The test sums these packets into
//! conversations, as thalweg does without `--decapsulate`. Differences by design:
//!
//! - tshark prints no length of an IPv4 packet with total length zero (BIG TCP), nor of a jumbogram. The test then compares
//!   packets but not bytes.
//! - Later fragments have no ports in tshark, but those of their first fragment in thalweg. The test skips conversations
//!   between hosts that sent fragments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use thalweg_wire::{FlowKey, Protocol};

use crate::program::{Run, capinfos, check_accounting, is_installed, number, output_of, root, skip, watch};

/// Timeouts that never split a flow.
const LONG: [&str; 6] = ["--idle-timeout", "10h", "--active-timeout", "10h", "--flow-capacity", "100000"];

/// Fields printed by tshark, the first occurrence of each: the outermost.
const FIELDS: [&str; 16] = [
    "frame.protocols",
    "ip.src",
    "ip.dst",
    "ip.proto",
    "ip.len",
    "ip.flags.mf",
    "ip.frag_offset",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.plen",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
    "ipv6.fraghdr.offset",
    "ipv6.nxt",
];

/// Packets and IP bytes per direction; bytes are `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    packets: [u64; 2],
    bytes: Option<[u64; 2]>,
}

/// By canonical key.
type Conversations = BTreeMap<FlowKey, Sums>;

fn captures() -> Option<Vec<PathBuf>> {
    let entries = std::fs::read_dir(root().join("../shared/data/captures")).ok()?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "pcap" || kind == "pcapng"));
    paths.sort();
    Some(paths)
}

fn watched(path: &Path) -> Run {
    let arguments = [&["--json", "--flows"], LONG.as_slice(), &[path.to_str().unwrap()]].concat();
    watch(&arguments).ended_with(0)
}

#[test]
fn every_packet_of_foreign_captures_is_counted() {
    const NAME: &str = "every_packet_of_foreign_captures_is_counted";
    let Some(captures) = captures() else { return skip(NAME, "needs the folder shared/data/captures") };
    if !is_installed("capinfos", "--version") {
        return skip(NAME, "needs capinfos");
    }
    for path in captures {
        let run = watched(&path);
        check_accounting(&run);
        let summary = run.summary();
        let ours = (number(&summary, "packets"), number(&summary, "frame_bytes"));
        assert_eq!(ours, capinfos(&path), "{}", path.display());
    }
}

#[test]
fn flows_of_foreign_captures_match_tshark() {
    const NAME: &str = "flows_of_foreign_captures_match_tshark";
    let Some(captures) = captures() else { return skip(NAME, "needs the folder shared/data/captures") };
    if !is_installed("tshark", "--version") {
        return skip(NAME, "needs tshark");
    }
    let mut compared = 0;
    for path in captures {
        let ours = ours(&watched(&path));
        let (theirs, left_out) = theirs(&path);
        for key in ours.keys().filter(|key| [Protocol::TCP, Protocol::UDP].contains(&key.protocol)) {
            let is_known = theirs.contains_key(key) || left_out.contains(&key.with_ports(0, 0));
            assert!(is_known, "{key} in {} is none of tshark's", path.display());
        }
        for (key, sums) in &theirs {
            let found = ours.get(key).copied().unwrap_or_default();
            assert_eq!(found.packets, sums.packets, "packets of {key} in {}", path.display());
            if sums.bytes.is_some() {
                assert_eq!(found.bytes, sums.bytes, "bytes of {key} in {}", path.display());
            }
            compared += 1;
        }
    }
    println!("{compared} conversations agree with tshark");
    assert!(compared >= 50, "only {compared} conversations were compared");
}

/// Sums flow records by canonical key.
fn ours(run: &Run) -> Conversations {
    let mut conversations = Conversations::new();
    for line in run.of_type("flow") {
        let (canonical, direction) = key_of(&line["flow"]).canonical();
        let sums = conversations.entry(canonical).or_default();
        let bytes = sums.bytes.get_or_insert([0, 0]);
        let ways =
            [("packets", "bytes", direction), ("reverse_packets", "reverse_bytes", direction.opposite())];
        for (packets, of_bytes, direction) in ways {
            sums.packets[direction as usize] += number(&line, packets);
            bytes[direction as usize] += number(&line, of_bytes);
        }
    }
    conversations
}

fn key_of(flow: &Value) -> FlowKey {
    let address = |field: &str| flow[field].as_str().unwrap().parse().unwrap();
    let port = |field| number(flow, field) as u16;
    let protocol = Protocol(number(flow, "protocol") as u8);
    FlowKey::new(address("src"), address("dst"), port("src_port"), port("dst_port"), protocol).unwrap()
}

/// Returns the TCP and UDP conversations of tshark, and the pairs of hosts that sent fragments, as keys without ports.
fn theirs(path: &Path) -> (Conversations, BTreeSet<FlowKey>) {
    let options =
        ["-n", "-r", path.to_str().unwrap(), "-T", "fields", "-E", "occurrence=f", "-E", "separator=|"];
    let unassembled = ["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"];
    let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
    let output = output_of("tshark", options.into_iter().chain(unassembled).chain(fields));
    let (mut conversations, mut left_out) = (Conversations::new(), BTreeSet::new());
    for line in output.lines() {
        let fields: BTreeMap<&str, &str> = FIELDS.into_iter().zip(line.split('|')).collect();
        let Some(datagram) = Datagram::of(&fields) else { continue };
        let (canonical, direction) = datagram.key.canonical();
        if datagram.is_fragment {
            left_out.insert(canonical.with_ports(0, 0));
            continue;
        }
        let sums = conversations.entry(canonical).or_insert(Sums { packets: [0; 2], bytes: Some([0; 2]) });
        sums.packets[direction as usize] += 1;
        match (&mut sums.bytes, datagram.ip_length) {
            (Some(bytes), Some(length)) => bytes[direction as usize] += length,
            (bytes, _) => *bytes = None,
        }
    }
    conversations.retain(|key, _| !left_out.contains(&key.with_ports(0, 0)));
    (conversations, left_out)
}

/// A TCP or UDP packet of the outermost IP header.
struct Datagram {
    key: FlowKey,
    ip_length: Option<u64>,
    is_fragment: bool,
}

impl Datagram {
    fn of(fields: &BTreeMap<&str, &str>) -> Option<Datagram> {
        let text = |field: &str| fields.get(field).copied().filter(|text| !text.is_empty());
        let count = |field: &str| text(field).and_then(|text| text.parse::<u64>().ok());
        // Layers from the outside in: "eth:ethertype:ip:udp:vxlan:eth:ethertype:ip:tcp".
        let mut layers = text("frame.protocols")?.split(':');
        let version = layers.find(|layer| matches!(*layer, "ip" | "ipv6"))?;
        let above = layers.find(|layer| !layer.starts_with("ipv6."))?;
        let protocol = match above {
            "tcp" => Protocol::TCP,
            "udp" => Protocol::UDP,
            _ => return None,
        };
        let (src_port, dst_port) = (format!("{above}.srcport"), format!("{above}.dstport"));
        let (src_port, dst_port) = (count(&src_port)? as u16, count(&dst_port)? as u16);
        let (src, dst, ip_length) = match version {
            "ip" => ("ip.src", "ip.dst", count("ip.len")),
            _ => ("ipv6.src", "ipv6.dst", count("ipv6.plen").map(|length| length + 40)),
        };
        let is_open = matches!((version, ip_length), ("ip", Some(0)) | ("ipv6", Some(40)));
        let is_fragment = text("ip.flags.mf").is_some_and(|flag| flag == "True" || flag == "1")
            || count("ip.frag_offset").is_some_and(|offset| offset > 0)
            || text("ipv6.fraghdr.offset").is_some();
        Some(Datagram {
            key: FlowKey::new(
                text(src)?.parse().ok()?,
                text(dst)?.parse().ok()?,
                src_port,
                dst_port,
                protocol,
            )?,
            ip_length: ip_length.filter(|_| !is_open),
            is_fragment,
        })
    }
}
