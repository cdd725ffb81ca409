//! Link types and tunnels: captures that Scapy made (`tests/encapsulations/make.py`), and what tshark finds in the innermost packet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::program::{check_accounting, is_installed, number, output_of, skip, watch};

/// Packets by addresses, ports and protocol.
type Flows = BTreeMap<String, u64>;

const FIELDS: [&str; 9] = [
    "frame.protocols",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
];

fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encapsulations");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "pcap"));
    paths.sort();
    paths
}

fn ours(path: &Path) -> Flows {
    let arguments = ["--json", "--flows", "--decapsulate", path.to_str().unwrap()];
    let run = watch(&arguments).ended_with(0);
    check_accounting(&run);
    let mut flows = Flows::new();
    for line in run.of_type("flow") {
        let text = |field: &str| line["flow"][field].as_str().unwrap_or_default().to_owned();
        let count = |field: &str| number(&line["flow"], field);
        let key = format!(
            "{} {} {} {} {}",
            text("src"),
            text("dst"),
            count("src_port"),
            count("dst_port"),
            count("protocol")
        );
        *flows.entry(key).or_default() += number(&line, "packets");
    }
    flows
}

/// What tshark has to know about a capture of L2TP version 3, by the name of the file: the lengths before the payload, and the payload.
fn l2tpv3_options(path: &Path) -> Vec<String> {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let Some(parts) = name.strip_prefix("l2tpv3-") else { return Vec::new() };
    let [payload, cookie, sublayer] = parts.split('-').collect::<Vec<_>>()[..] else {
        panic!("{name}: expected l2tpv3-PAYLOAD-cookieN-sublayerN")
    };
    let cookie = match cookie {
        "cookie0" => "None",
        "cookie4" => "4 Byte Cookie",
        _ => "8 Byte Cookie",
    };
    let sublayer = if sublayer == "sublayer0" { "None" } else { "Default L2-Specific" };
    let payload = match payload {
        "vlan" => "eth",
        "hdlc" => "chdlc",
        other => other,
    };
    let preferences = [format!("l2tp.cookie_size:{cookie}"), format!("l2tp.l2_specific:{sublayer}")];
    let preferences = preferences.into_iter().flat_map(|preference| ["-o".to_owned(), preference]);
    preferences.chain(["-d".to_owned(), format!("l2tp.pw_type==0,{payload}")]).collect()
}

/// The last IP header of each packet, and the ports after it.
fn theirs(path: &Path) -> Flows {
    let known = l2tpv3_options(path);
    let options =
        ["-n", "-r", path.to_str().unwrap(), "-T", "fields", "-E", "occurrence=l", "-E", "separator=|"];
    let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
    let mut flows = Flows::new();
    let options = options.into_iter().chain(known.iter().map(String::as_str)).chain(fields);
    for line in output_of("tshark", options).lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let last = |names: [&'static str; 2]| {
            fields[0].split(':').rev().find_map(|layer| names.into_iter().find(|n| *n == layer))
        };
        let (Some(network), Some(transport)) = (last(["ip", "ipv6"]), last(["tcp", "udp"])) else { continue };
        let at = if network == "ip" { 1 } else { 3 };
        let (port, protocol) = if transport == "tcp" { (5, 6) } else { (7, 17) };
        let key =
            format!("{} {} {} {} {protocol}", fields[at], fields[at + 1], fields[port], fields[port + 1]);
        *flows.entry(key).or_default() += 1;
    }
    flows
}

#[test]
fn flows_in_every_encapsulation_are_those_of_tshark() {
    if !is_installed("tshark", "--version") {
        return skip("flows_in_every_encapsulation_are_those_of_tshark", "needs tshark");
    }
    let captures = captures();
    assert!(captures.len() >= 50, "{captures:?}");
    for path in captures {
        let (ours, theirs) = (ours(&path), theirs(&path));
        assert!(theirs.len() >= 12, "{}: {theirs:?}", path.display());
        let differing = theirs.iter().find(|(key, packets)| ours.get(*key) != Some(packets));
        assert!(
            differing.is_none() && ours.len() == theirs.len(),
            "{}: {differing:?}, {ours:?}",
            path.display()
        );
    }
}
