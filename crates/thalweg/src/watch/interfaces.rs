//! The list of interfaces: `thalweg watch --list-interfaces`, and without a source.

use std::fmt::Write as _;
use std::io::{self, Write};

use anyhow::Context;
use serde::Serialize;
use thalweg_capture::live::{Capturable, CaptureInterface, InterfaceState, list_interfaces as list};

use crate::figures::grouped;

/// Columns: title, and whether values are at the right.
const COLUMNS: [(&str, bool); 8] = [
    ("interface", false),
    ("state", false),
    ("speed", true),
    ("mtu", true),
    ("received", true),
    ("sent", true),
    ("capture", false),
    ("addresses", false),
];

/// An interface as a line of JSON.
#[derive(Debug, Serialize)]
struct InterfaceLine<'a> {
    r#type: &'static str,
    name: &'a str,
    index: u32,
    kind: &'a str,
    state: &'static str,
    addresses: Vec<String>,
    mtu: Option<u32>,
    speed_bps: Option<u64>,
    received_packets: u64,
    sent_packets: u64,
    capture: &'static str,
}

impl<'a> From<&'a CaptureInterface> for InterfaceLine<'a> {
    fn from(interface: &'a CaptureInterface) -> InterfaceLine<'a> {
        InterfaceLine {
            r#type: "interface",
            name: &interface.name,
            index: interface.index,
            kind: &interface.kind,
            state: interface.state.name(),
            addresses: addresses(interface),
            mtu: interface.mtu,
            speed_bps: interface.speed.map(|speed| speed.0),
            received_packets: interface.received_packets,
            sent_packets: interface.sent_packets,
            capture: match interface.capture {
                Capturable::Yes => "yes",
                Capturable::NeedsPrivilege => "needs_privilege",
                Capturable::UnsupportedLink(_) => "unsupported_link",
            },
        }
    }
}

/// Writes the interfaces to standard output, as a table or as JSON lines.
///
/// # Errors
/// If they cannot be listed or written.
pub fn list_interfaces(json: bool) -> anyhow::Result<()> {
    let interfaces = list()?;
    let mut out = io::stdout().lock();
    let written = match json {
        true => json_lines(&mut out, &interfaces),
        false => out.write_all(table(&interfaces).as_bytes()),
    };
    written.and_then(|()| out.flush()).context("cannot write to standard output")
}

fn json_lines(out: &mut impl Write, interfaces: &[CaptureInterface]) -> io::Result<()> {
    for interface in interfaces {
        serde_json::to_writer(&mut *out, &InterfaceLine::from(interface))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Returns the message of a run without a source, with the interfaces and the command to type next.
pub fn no_source_text() -> String {
    let mut text = "no source: expected capture files, interfaces, or - for standard input".to_owned();
    match list() {
        Ok(interfaces) => {
            let _ = write!(text, "\n\n{}", table(&interfaces));
            text.truncate(text.trim_end().len());
        }
        Err(error) => {
            let _ = write!(text, "\n{error}");
        }
    }
    text
}

/// Returns the table, and the command that captures the busiest interface.
fn table(interfaces: &[CaptureInterface]) -> String {
    let rows: Vec<[String; 8]> = interfaces.iter().map(cells).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([COLUMNS[column].0.len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let mut text = String::new();
    let titles = COLUMNS.map(|(title, _)| title.to_owned());
    for row in std::iter::once(&titles).chain(&rows) {
        let mut line = String::new();
        for ((cell, width), (_, right)) in row.iter().zip(&widths).zip(COLUMNS) {
            let _ = if right { write!(line, "{cell:>width$}  ") } else { write!(line, "{cell:<width$}  ") };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if let Some(command) = next_command(interfaces) {
        let _ = writeln!(text, "\nFor example: {command}");
    }
    text
}

fn cells(interface: &CaptureInterface) -> [String; 8] {
    let unknown = || "-".to_owned();
    [
        interface.name.clone(),
        match interface.state {
            InterfaceState::NoCarrier => "no carrier".to_owned(),
            state => state.name().to_owned(),
        },
        interface.speed.map_or_else(unknown, |speed| speed.to_string()),
        interface.mtu.map_or_else(unknown, |mtu| mtu.to_string()),
        grouped(interface.received_packets),
        grouped(interface.sent_packets),
        match interface.capture {
            Capturable::Yes => "yes".to_owned(),
            Capturable::NeedsPrivilege => "with sudo".to_owned(),
            Capturable::UnsupportedLink(hardware_type) => format!("no: link type {hardware_type}"),
        },
        addresses(interface).join(" "),
    ]
}

fn addresses(interface: &CaptureInterface) -> Vec<String> {
    interface.addresses.iter().map(|(address, length)| format!("{address}/{length}")).collect()
}

/// Returns the command for the interface with the most packets among those that are up; the loopback interface only if there is no
/// other.
fn next_command(interfaces: &[CaptureInterface]) -> Option<String> {
    let candidates =
        interfaces.iter().filter(|interface| !matches!(interface.capture, Capturable::UnsupportedLink(_)));
    let best = candidates.max_by_key(|interface| {
        let packets = interface.received_packets.saturating_add(interface.sent_packets);
        (interface.state == InterfaceState::Up && !is_loopback(interface), packets)
    })?;
    let sudo = if best.capture == Capturable::NeedsPrivilege { "sudo " } else { "" };
    Some(format!("{sudo}thalweg watch {}", best.name))
}

fn is_loopback(interface: &CaptureInterface) -> bool {
    interface.addresses.iter().any(|(address, _)| address.is_loopback()) || interface.name == "lo"
}

#[cfg(test)]
mod tests {
    use thalweg_wire::BitRate;

    use super::*;

    fn interface(index: u32, name: &str, state: InterfaceState, capture: Capturable) -> CaptureInterface {
        CaptureInterface {
            index,
            name: name.to_owned(),
            kind: String::new(),
            state,
            addresses: Vec::new(),
            mtu: Some(1_500),
            speed: None,
            received_packets: 10,
            sent_packets: 1_234,
            capture,
        }
    }

    #[test]
    fn the_table_is_aligned_and_names_the_next_command() {
        let loopback = CaptureInterface {
            addresses: vec![("127.0.0.1".parse().unwrap(), 8), ("::1".parse().unwrap(), 128)],
            sent_packets: 99_999_999,
            mtu: Some(65_536),
            ..interface(1, "lo", InterfaceState::Up, Capturable::NeedsPrivilege)
        };
        let eth0 = CaptureInterface {
            speed: Some(BitRate(10_000_000_000)),
            addresses: vec![("192.0.2.7".parse().unwrap(), 24)],
            ..interface(2, "eth0", InterfaceState::Up, Capturable::NeedsPrivilege)
        };
        let interfaces = [
            loopback,
            eth0,
            interface(3, "eth1", InterfaceState::NoCarrier, Capturable::NeedsPrivilege),
            interface(4, "can0", InterfaceState::Down, Capturable::UnsupportedLink(280)),
        ];
        let expected = "\
interface  state             speed    mtu  received        sent  capture            addresses
lo         up                    -  65536        10  99,999,999  with sudo          127.0.0.1/8 ::1/128
eth0       up          10.0 Gbit/s   1500        10       1,234  with sudo          192.0.2.7/24
eth1       no carrier            -   1500        10       1,234  with sudo
can0       down                  -   1500        10       1,234  no: link type 280

For example: sudo thalweg watch eth0
";
        assert_eq!(table(&interfaces), expected);
        assert_eq!(next_command(&interfaces[..1]), Some("sudo thalweg watch lo".to_owned()));
        assert_eq!(next_command(&[]), None);
    }
}
