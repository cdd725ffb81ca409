//! Payloads with the output of another collector in the line protocol of InfluxDB (`expected.out`).

use std::collections::BTreeMap;

use thalweg_wire::flow_export::decode::{DecodeErrorKind, Limits};
use thalweg_wire::flow_export::{Address, Decoded, Decoder, Format, Record};
use thalweg_wire::{Protocol, TcpFlags};

use super::{RECEIVED, decode, entries, exporter, folder, rows};

/// A case with a message that is two bytes longer than its header states, so that its last set is truncated.
/// The other collector ignores that length; our decoder rejects the message unless it is corrected.
const UNDERSTATED: &str = "issue_14370";

fn correct_length(mut payload: Vec<u8>) -> Vec<u8> {
    let mut decoder = Decoder::new(Limits::default());
    let refused = decoder.datagram(exporter(), RECEIVED, &payload, &mut Decoded::default());
    assert!(matches!(refused.unwrap_err().kind, DecodeErrorKind::Truncated { structure: "set", .. }));
    let length = payload.len() as u16;
    payload[2..4].copy_from_slice(&length.to_be_bytes());
    payload
}

/// A line: the name of the measurement and its fields.
struct Line {
    measurement: String,
    fields: BTreeMap<String, String>,
}

impl Line {
    /// Fields are separated by commas outside quotes; numbers have a type suffix.
    fn parse(line: &str) -> Line {
        let (tags, rest) = line.split_once(' ').expect("tags, then fields");
        let measurement = tags.split(',').next().unwrap().to_owned();
        let mut fields = BTreeMap::new();
        let mut quoted = false;
        let is_end = |c: char| {
            quoted ^= c == '"';
            !quoted && (c == ',' || c == ' ')
        };
        for field in rest.split(is_end) {
            if let Some((name, value)) = field.split_once('=') {
                let value = value.trim_matches('"').trim_end_matches(['u', 'i']);
                fields.insert(name.to_owned(), value.to_owned());
            }
        }
        Line { measurement, fields }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    fn number(&self, names: &[&str]) -> Option<u64> {
        let text = names.iter().find_map(|name| self.text(name))?;
        Some(match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None => text.parse().unwrap_or_else(|error| panic!("{names:?} {text}: {error}")),
        })
    }

    fn address(&self, name: &str) -> Option<Address> {
        Some(self.text(name)?.parse::<std::net::IpAddr>().unwrap().into())
    }
}

/// Compares a line with a row; fields missing in the line are not compared.
fn check(line: &Line, row: &Record, name: &str) {
    let text = |told: Option<&str>, ours: String, what: &str| {
        assert_eq!(told.map_or(ours.clone(), str::to_owned), ours, "{name}: {what} of {row:?}");
    };
    let number = |names: &[&str], ours: u64| {
        assert_eq!(line.number(names).unwrap_or(ours), ours, "{name}: {names:?} of {row:?}");
    };
    let address = |name_of: &str, ours: Address| {
        assert_eq!(line.address(name_of).unwrap_or(ours), ours, "{name}: {name_of} of {row:?}");
    };
    address("src", row.source_address);
    address("dst", row.destination_address);
    // The other collector outputs zeros.
    let none = [Address::v4(0), Address(0)];
    let next_hop = line.address("next_hop").filter(|next_hop| !none.contains(next_hop));
    assert_eq!(next_hop.unwrap_or(Address::NONE), row.next_hop, "{name}");
    number(&["src_port"], row.source_port.into());
    number(&["dst_port"], row.destination_port.into());
    number(&["in_bytes", "in_total_bytes", "ipv4_total_len"], row.octets);
    if let Some(payload) = line.number(&["ipv6_total_len"]) {
        assert_eq!(payload + 40, row.octets, "{name}");
    }
    if row.format != Format::Sflow5 {
        // In sFlow lines these are counters of the interface.
        number(&["in_packets", "in_total_packets"], row.packets);
        number(&["in_snmp"], row.ingress_interface.into());
        number(&["out_snmp"], row.egress_interface.into());
        number(&["sampling_interval"], row.sampling_interval.into());
    } else {
        assert_eq!(
            (row.packets, line.number(&["sampling_interval"])),
            (1, Some(row.sampling_interval.into()))
        );
    }
    number(&["bgp_src_as"], row.source_as.into());
    number(&["bgp_dst_as"], row.destination_as.into());
    number(&["src_mask"], row.source_prefix_length.into());
    number(&["dst_mask"], row.destination_prefix_length.into());
    number(&["vlan_src"], row.vlan_id.into());
    number(&["src_tos"], row.class_of_service.into());
    for (told, ours) in [("flow_start_ms", row.flow_start_us), ("flow_end_ms", row.flow_end_us)] {
        number(&[told], (ours / 1000) as u64);
    }
    if let (Some(uptime), Some(first)) = (line.number(&["sys_uptime"]), line.number(&["first_switched"])) {
        let last = line.number(&["last_switched"]).unwrap();
        assert_eq!(row.flow_end_us - row.flow_start_us, (last - first) as i64 * 1000, "{name}");
        assert!(uptime >= last);
    }
    // The other collector reports IPv6 hop-by-hop options as the protocol; we report the protocol after them.
    let protocol = line.text("protocol").filter(|&protocol| protocol != "hopopt");
    text(protocol, Protocol(row.protocol).to_string().to_lowercase(), "protocol");
    text(line.text("tcp_flags"), TcpFlags(row.tcp_flags as u8).to_string(), "flags");
    let reasons = ["", "idle timeout", "active timeout", "end of flow", "forced end", "lack of resources"];
    text(line.text("flow_end_reason"), reasons[usize::from(row.flow_end_reason)].to_owned(), "reason");
    if row.flow_direction != 255 || row.format != Format::Sflow5 {
        let direction = if row.flow_direction == 1 { "egress" } else { "ingress" };
        text(line.text("direction"), direction.to_owned(), "direction");
    }
}

fn key(row: &Record) -> (Address, Address, u16, u16, u64, i64) {
    (
        row.source_address,
        row.destination_address,
        row.source_port,
        row.destination_port,
        row.octets,
        row.flow_start_us,
    )
}

fn check_counters(lines: &[Line], decoded: &Decoded, name: &str) {
    let lines: Vec<_> = lines.iter().filter(|line| line.text("speed").is_some()).collect();
    assert_eq!(lines.len(), decoded.counters.len(), "{name}");
    for (row, line) in lines.iter().enumerate() {
        let ours = decoded.counters.record(row);
        let all: [(&str, u64); 16] = [
            ("interface", ours.interface.into()),
            ("interface_type", ours.interface_type.into()),
            ("speed", ours.speed_bps),
            ("promiscuous", ours.promiscuous.into()),
            ("in_bytes", ours.in_octets),
            ("in_unicast_packets_total", ours.in_unicast_packets.into()),
            ("in_mcast_packets_total", ours.in_multicast_packets.into()),
            ("in_broadcast_packets_total", ours.in_broadcast_packets.into()),
            ("in_dropped_packets", ours.in_discards.into()),
            ("in_errors", ours.in_errors.into()),
            ("in_unknown_protocol", ours.in_unknown_protocols.into()),
            ("out_bytes", ours.out_octets),
            ("out_unicast_packets_total", ours.out_unicast_packets.into()),
            ("out_mcast_packets_total", ours.out_multicast_packets.into()),
            ("out_broadcast_packets_total", ours.out_broadcast_packets.into()),
            ("out_errors", ours.out_errors.into()),
        ];
        for (field, ours) in all {
            assert_eq!(line.number(&[field]), Some(ours), "{name}: {field}");
        }
    }
}

#[test]
fn every_record_equals_that_of_another_collector() {
    let Some(folder) = folder("netflow-expected") else { return };
    let mut checked = 0;
    for case in entries(&folder) {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let payloads: Vec<_> = entries(&case)
            .into_iter()
            .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
            .map(|path| std::fs::read(path).unwrap())
            .map(|payload| if name == UNDERSTATED { correct_length(payload) } else { payload })
            .collect();
        let mut decoder = Decoder::new(Limits::default());
        let decoded = decode(&mut decoder, &payloads);
        let text = std::fs::read_to_string(case.join("expected.out")).unwrap();
        let mut lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).map(Line::parse).collect();
        let options = lines.iter().filter(|line| line.measurement == "netflow_options").count() as u64;
        let counted: u64 = decoder.sources().iter().map(|source| source.counts.option_records).sum();
        // The other collector skips an options record without fields.
        assert!(counted >= options, "{name}: {counted} of {options} option records");
        check_counters(&lines, &decoded, &name);
        // The other collector gives one line for a biflow.
        let mut rows: Vec<_> = rows(&decoded).into_iter().filter(|row| row.biflow_direction != 2).collect();
        lines.retain(|line| line.text("src").is_some());
        assert_eq!(rows.len(), lines.len(), "{name}");
        rows.sort_by_key(key);
        lines.sort_by_key(|line| {
            let port = |name| line.number(&[name]).unwrap_or(0) as u16;
            let octets = line
                .number(&["in_bytes", "in_total_bytes", "ipv4_total_len"])
                .unwrap_or_else(|| line.number(&["ipv6_total_len"]).unwrap_or(0) + 40);
            let start = line.number(&["flow_start_ms"]).unwrap_or(0);
            let addresses = (line.address("src").unwrap(), line.address("dst").unwrap());
            (addresses.0, addresses.1, port("src_port"), port("dst_port"), octets, start)
        });
        for (line, row) in lines.iter().zip(&rows) {
            check(line, row, &name);
        }
        checked += rows.len() + decoded.counters.len();
    }
    assert!(checked > 50, "{checked} rows");
}
