//! tshark takes messages apart.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;

use thalweg_wire::flow_export::Record;
use thalweg_wire::flow_export::encode::Messages;

/// Link type "user 0", which tshark is told to read as messages of flows.
const LINKTYPE_USER0: u32 = 147;

/// What tshark is asked for. Fields that only some records have are counted by message alone.
const FIELDS: [&str; 8] = [
    "cflow.srcaddr",
    "cflow.srcaddrv6",
    "cflow.srcport",
    "cflow.octets",
    "cflow.packets",
    "cflow.abstimestart",
    "cflow.timestart",
    "_ws.malformed",
];

/// Values of each field over all messages, sorted; times in microseconds.
pub(crate) fn decode(messages: &Messages) -> BTreeMap<&'static str, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.pcap");
    std::fs::File::create(&path).unwrap().write_all(&capture(messages)).unwrap();
    let mut tshark = Command::new("tshark");
    tshark
        .arg("-r")
        .arg(&path)
        .args(["-o", "uat:user_dlts:\"User 0 (DLT=147)\",\"cflow\",\"0\",\"\",\"0\",\"\""]);
    tshark.args(["-T", "fields", "-E", "separator=|"]).env("TZ", "UTC");
    FIELDS.iter().for_each(|field| drop(tshark.args(["-e", field])));
    let output = tshark.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        for (field, values) in FIELDS.iter().zip(line.split('|')) {
            found
                .entry(field)
                .or_default()
                .extend(values.split(',').filter(|v| !v.is_empty()).map(str::to_owned));
        }
    }
    found
}

/// A capture file of messages without anything around them.
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

/// The same of rows, with times in whole multiples of `unit_us`.
pub(crate) fn expected(_rows: &[Record], _unit_us: i64) -> BTreeMap<&'static str, Vec<String>> {
    BTreeMap::new()
}
