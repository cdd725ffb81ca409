//! Decodes messages with tshark.

use std::collections::BTreeMap;
use std::process::Command;

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::Record;
use thalweg_wire::flow_export::encode::Messages;

/// Link type "user 0", which tshark is configured to decode as flow export messages.
const LINKTYPE_USER0: u32 = 147;

/// Fields to print. A field that a biflow record has twice is printed twice.
const FIELDS: [&str; 22] = [
    "cflow.srcaddr",
    "cflow.srcaddrv6",
    "cflow.srcport",
    "cflow.octets",
    "cflow.packets",
    "cflow.abstimestart",
    "cflow.timestart",
    "cflow.flowsexp",
    "cflow.notsent_flows",
    "cflow.ignore_packets",
    "cflow.srcmac",
    "cflow.dstmac",
    "cflow.post_srcmac",
    "cflow.post_dstmac",
    "cflow.post_vlanid",
    "cflow.dot1q_customer_vlan_id",
    "cflow.ttl_min",
    "cflow.ttl_max",
    "cflow.ingress_vrfid",
    "cflow.egress_vrfid",
    "cflow.bgpnexthop",
    "_ws.malformed",
];

/// Values of each field over all messages, in order.
pub(crate) type Values = BTreeMap<&'static str, Vec<String>>;

/// Decodes messages with tshark.
pub(crate) fn decode(messages: &Messages) -> Values {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.pcap");
    std::fs::write(&path, capture(messages)).unwrap();
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path);
    tshark.args(["-o", "uat:user_dlts:\"User 0 (DLT=147)\",\"cflow\",\"0\",\"\",\"0\",\"\""]);
    tshark.args(["-T", "fields", "-E", "separator=|", "-E", "aggregator=;"]).env("TZ", "UTC");
    tshark.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found = Values::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        for (field, values) in FIELDS.iter().zip(line.split('|')) {
            let values = values.split(';').filter(|value| !value.is_empty());
            found.entry(field).or_default().extend(values.map(|value| match *field {
                "cflow.abstimestart" => microseconds_of_the_day(value),
                _ => value.to_owned(),
            }));
        }
    }
    found.retain(|_, values| !values.is_empty());
    found
}

/// Parses the time of `Nov 22, 2026 12:59:00.249999999 UTC` to the nearest microsecond, because tshark truncates NTP
/// fractions to nanoseconds.
fn microseconds_of_the_day(text: &str) -> String {
    let clock = text.split_whitespace().nth(3).unwrap();
    let parts: Vec<f64> = clock.split(':').map(|part| part.parse().unwrap()).collect();
    format!("{:.0}", (3_600.0 * parts[0] + 60.0 * parts[1] + parts[2]) * 1e6)
}

/// Returns a capture file of bare messages.
fn capture(messages: &Messages) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, LINKTYPE_USER0] {
        file.extend_from_slice(&word.to_be_bytes());
    }
    for message in messages.iter() {
        for word in [1_795_352_400, 0, message.len() as u32, message.len() as u32] {
            file.extend_from_slice(&word.to_be_bytes());
        }
        file.extend_from_slice(message);
    }
    file
}

/// The clock of a format.
#[derive(Clone, Copy)]
pub(crate) enum Clock {
    /// Microseconds since 1900.
    TimeOfDay,
    /// Milliseconds since the device started.
    Uptime(Timestamp),
}

/// Returns the values that tshark should print for these rows.
pub(crate) fn expected(rows: &[Record], clock: Clock) -> Values {
    let mut values = Values::new();
    let mut add = |field, value: String| values.entry(field).or_default().push(value);
    for row in rows {
        add("cflow.octets", row.octets.to_string());
        add("cflow.packets", row.packets.to_string());
        match clock {
            Clock::TimeOfDay => add("cflow.abstimestart", (row.flow_start_us % 86_400_000_000).to_string()),
            Clock::Uptime(boot) => {
                let ms = row.flow_start_us / 1_000 - (boot.0 / 1_000_000) as i64;
                add("cflow.timestart", format!("{}.{:03}000000", ms / 1_000, ms % 1_000));
            }
        }
        if row.biflow_direction != 2 {
            let field =
                if row.source_address.as_v4().is_some() { "cflow.srcaddr" } else { "cflow.srcaddrv6" };
            add(field, row.source_address.to_string());
            add("cflow.srcport", row.source_port.to_string());
        }
    }
    values
}
