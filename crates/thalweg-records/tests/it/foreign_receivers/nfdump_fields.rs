//! Records with every field that nfdump has: sent to nfcapd, printed by nfdump, and read by us both from the messages and
//! from nfcapd's file. The columns must say what nfdump prints, by the table of `schema::nfdump`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use thalweg_records::schema::nfdump::FIELDS;
use thalweg_records::schema::{Dataset, Values};
use thalweg_wire::flow_export::encode::ipfix::Times;
use thalweg_wire::flow_export::{Decoded, Decoder, Limits, Record, RecordBatch};

use super::nfcapd::{Nfcapd, imported};
use super::{NOW, as_ipfix, as_netflow9, is_installed};
use crate::skip::skip;

/// Elements of NetFlow v9 with their value, in bytes; the first template for IPv4, the second for IPv6.
fn elements(is_v6: bool) -> Vec<(u16, Vec<u8>)> {
    let number =
        |element: u16, length: usize, value: u64| (element, value.to_be_bytes()[8 - length..].to_vec());
    let address = |v4: u16, v6: u16, last: u8| match is_v6 {
        false => (v4, vec![192, 0, 2, last]),
        true => (v6, [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[last]].concat()),
    };
    let mac = |element: u16, last: u8| (element, vec![2, 0, 0x5e, 0, 0xab, last]);
    let label = |position: u16, label: u32, experimental: u32, bottom: u32| {
        let entry = label << 4 | experimental << 1 | bottom;
        (70 + position, entry.to_be_bytes()[1..].to_vec())
    };
    let mut fields = vec![
        number(22, 4, 3_590_000),
        number(21, 4, 3_595_500),
        address(8, 27, 1),
        address(12, 28, 2),
        address(15, 62, 3),
        address(18, 63, 4),
        number(7, 2, 49_152),
        number(11, 2, 443),
        number(4, 1, 6),
        number(6, 1, 0x1b),
        number(5, 1, 0xb8),
        number(55, 1, 0x20),
        number(1, 8, 123_456_789_012),
        number(2, 8, 98_765),
        number(10, 4, 70_001),
        number(14, 4, 70_002),
        number(16, 4, 4_200_000_001),
        number(17, 4, 64_497),
        number(128, 4, 64_498),
        number(129, 4, 4_200_000_002),
        number(if is_v6 { 29 } else { 9 }, 1, 24),
        number(if is_v6 { 30 } else { 13 }, 1, 16),
        number(58, 2, 100),
        number(59, 2, 4_000),
        number(61, 1, 1),
        number(89, 1, 130),
        number(234, 4, 7),
        number(235, 4, 8),
        mac(56, 1),
        mac(80, 2),
        mac(81, 3),
        mac(57, 4),
    ];
    fields.extend([label(0, 16, 0, 0), label(1, 1_048_575, 7, 0), label(2, 100, 5, 1)]);
    fields.extend((3..10).map(|position| label(position, 0, 0, 0)));
    fields
}

/// Encodes a message with both templates and a record of each.
fn message() -> Vec<u8> {
    let word = |number: usize| (number as u16).to_be_bytes();
    let mut sets = Vec::new();
    for (template, is_v6) in [(256, false), (257, true)] {
        let fields = elements(is_v6);
        let specifiers: Vec<u8> =
            fields.iter().flat_map(|(id, value)| [id.to_be_bytes(), word(value.len())].concat()).collect();
        let record: Vec<u8> = fields.iter().flat_map(|(_, value)| value.clone()).collect();
        let padding = record.len().next_multiple_of(4) - record.len();
        sets.extend([word(0), word(8 + specifiers.len()), word(template), word(fields.len())].concat());
        sets.extend(specifiers);
        sets.extend([word(template), word(4 + record.len() + padding)].concat());
        sets.extend([record, vec![0; padding]].concat());
    }
    let mut message = [word(9), word(4)].concat();
    let seconds = (NOW.0 / 1_000_000_000) as u32;
    message.extend([3_600_000, seconds, 1, 7].iter().flat_map(|number: &u32| number.to_be_bytes()));
    [message, sets].concat()
}

/// Runs nfdump on the files of a folder.
fn nfdump(folder: &Path, format: &str) -> String {
    let mut command = Command::new("nfdump");
    let output = command.args(["-q", "-N", "-6", "-o", format, "-R"]).arg(folder).env("TZ", "UTC").output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

/// Returns the objects that nfdump prints, which has no brackets around them with `-q`.
fn objects(text: &str) -> Vec<BTreeMap<String, Value>> {
    let text = text.trim().trim_start_matches('[').trim_end_matches(']');
    serde_json::from_str(&format!("[{text}]")).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns a value of a column as text.
fn text(batch: &RecordBatch, row: usize, column: &str) -> String {
    let number = RecordBatch::columns().iter().position(|known| known.name == column).unwrap();
    match batch.values(number) {
        Values::Timestamp(values) => values[row].to_string(),
        Values::Address(values) => values[row].to_string(),
        Values::Format(values) => values[row].name().to_owned(),
        Values::U8(values) => values[row].to_string(),
        Values::U16(values) => values[row].to_string(),
        Values::U32(values) => values[row].to_string(),
        Values::U64(values) => values[row].to_string(),
        Values::Mac(values) => values[row].to_string(),
        Values::Labels(values) => values[row].to_string(),
        Values::Name(values) => values[row].to_string(),
        Values::Text(values) => values[row].to_string(),
        Values::Unset(..) => String::new(),
    }
}

/// Returns what nfdump prints for the names of a field, in the form of the column.
fn printed(object: &BTreeMap<String, Value>, names: &str, column: &str) -> Option<String> {
    let values: Vec<&Value> = names.split(' ').filter_map(|name| object.get(name)).collect();
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let first = plain(values.first()?);
    Some(match column {
        "tcp_flags" => {
            let bits = first.chars().rev().enumerate().filter(|(_, letter)| *letter != '.');
            bits.map(|(bit, _)| 1u32 << bit).sum::<u32>().to_string()
        }
        "mpls_labels" => {
            let all: Vec<String> = values.into_iter().map(plain).collect();
            let used = all.iter().rposition(|entry| entry != "0-0-0").map_or(0, |last| last + 1);
            all[..used].join(" ")
        }
        "flow_start" | "flow_end" => first.replace('T', " "),
        _ => first,
    })
}

/// Formats microseconds as nfdump's JSON does, except for the `T`.
fn date(microseconds: &str) -> String {
    let time = thalweg_wire::Timestamp(1_000 * microseconds.parse::<u64>().unwrap()).to_string();
    time[.."2026-11-22T13:00:00.000".len()].replace('T', " ")
}

#[test]
fn every_field_of_nfdump_is_in_its_column() {
    if !is_installed("nfcapd", "-V") || !is_installed("nfdump", "-V") {
        return skip("nfdump is not installed");
    }
    let message = message();
    let mut nfcapd = Nfcapd::start();
    let folder = nfcapd.receive([&message[..]]);
    let (objects, read) = (objects(&nfdump(folder, "json")), imported(folder));
    let mut collected = Decoded::default();
    let from = "127.0.0.1:2055".parse().unwrap();
    Decoder::new(Limits::default()).datagram(from, NOW, &message, &mut collected).unwrap();
    let collected = collected.flows;
    assert_eq!((objects.len(), read.len(), collected.len()), (2, 2, 2));

    let mut compared = 0;
    for field in FIELDS.iter().filter(|field| !field.column.is_empty() && !field.json.is_empty()) {
        for (row, object) in objects.iter().enumerate() {
            let Some(mut expected) = printed(object, field.json, field.column) else {
                // Fields of the other version, and those of ICMP.
                assert_eq!(field.column, "icmp_type_code", "nfdump prints no {}", field.json);
                continue;
            };
            let ours = text(&read, row, field.column);
            let ours = if field.column.starts_with("flow_start") || field.column.starts_with("flow_end") {
                date(&ours)
            } else {
                ours
            };
            if field.column == "received" {
                expected = ours.clone();
            }
            assert_eq!(ours, expected, "{} as {} of row {row}", field.json, field.column);
            if !matches!(field.column, "received" | "exporter") {
                assert_eq!(
                    text(&collected, row, field.column),
                    text(&read, row, field.column),
                    "{}",
                    field.column
                );
            }
            compared += 1;
        }
    }
    assert!(compared >= 2 * 30, "{compared} fields were compared");

    // The tags whose text is that of the column.
    let same = |column: &str| {
        !matches!(column, "format" | "flow_start" | "flow_end" | "received" | "tcp_flags" | "flow_direction")
            && !matches!(column, "icmp_type_code" | "mpls_labels" | "exporter")
    };
    let of_tags =
        |tag: &str| matches!(tag, "%sap" | "%dap" | "%eng" | "%exp" | "%odid" | "%opid" | "%sc" | "%dc");
    let tagged: Vec<(&str, &str)> = FIELDS
        .iter()
        .filter(|field| same(field.column) && !field.json.is_empty() && !field.column.is_empty())
        .flat_map(|field| field.tags.split(' ').map(|tag| (tag, field.column)))
        .filter(|(tag, _)| !of_tags(tag))
        .collect();
    let format = format!("fmt:{}", tagged.iter().map(|(tag, _)| *tag).collect::<Vec<_>>().join("|"));
    for (row, line) in nfdump(folder, &format).lines().enumerate() {
        for ((tag, column), printed) in tagged.iter().zip(line.split('|')) {
            assert_eq!(printed.trim(), text(&read, row, column), "{tag} as {column} of row {row}");
        }
    }
}

#[test]
fn our_export_has_every_field_that_nfdump_prints() {
    if !is_installed("nfcapd", "-V") || !is_installed("nfdump", "-V") {
        return skip("nfdump is not installed");
    }
    let message = message();
    let mut nfcapd = Nfcapd::start();
    let expected = objects(&nfdump(nfcapd.receive([&message[..]]), "json"));
    let mut collected = Decoded::default();
    let from = "127.0.0.1:2055".parse().unwrap();
    Decoder::new(Limits::default()).datagram(from, NOW, &message, &mut collected).unwrap();
    let rows: Vec<Record> = (0..2).map(|row| collected.flows.record(row)).collect();
    let columns =
        FIELDS.iter().filter(|field| !matches!(field.column, "" | "received" | "exporter" | "format"));
    let names: Vec<&str> =
        columns.flat_map(|field| field.json.split(' ')).filter(|name| !name.is_empty()).collect();
    // What nfcapd 1.7.1 does not read from IPFIX.
    let unread = ["next_as", "prev_as", "fwd_status"];
    for (messages, unread) in [(as_ipfix(&rows, Times::Milliseconds), &unread[..]), (as_netflow9(&rows), &[])]
    {
        let mut nfcapd = Nfcapd::start();
        let found = objects(&nfdump(nfcapd.receive(messages.iter()), "json"));
        assert_eq!(found.len(), 2);
        let mut compared = 0;
        for (ours, theirs) in found.iter().zip(&expected) {
            let different: Vec<_> = names
                .iter()
                .filter(|name| ours.get(**name) != theirs.get(**name))
                .map(|name| (*name, ours.get(*name), theirs.get(*name)))
                .collect();
            assert!(different.iter().all(|(name, ..)| unread.contains(name)), "{different:?}");
            for name in &names {
                compared += usize::from(ours.contains_key(*name));
            }
        }
        assert!(compared >= 2 * 35, "{compared} fields were compared");
    }
}
