//! Flow filters, in nfdump's language.

use thalweg_measure::filter::{FlowFilter, METERED, RECORDS, SAMPLED};
use thalweg_measure::meter::record::{EndReason, FlowRecord, Traffic};
use thalweg_wire::{Bytes, FlowKey, Protocol, TcpFlags, Timestamp};

/// Checks that a text compiles to a filter whose canonical form parses to the same filter, or is refused with a position in the
/// text.
///
/// # Panics
/// If the check fails.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for view in [RECORDS, METERED, SAMPLED] {
        match FlowFilter::compile(text, &view) {
            Ok(filter) => {
                let printed = filter.to_string();
                let again =
                    FlowFilter::compile(&printed, &view).unwrap_or_else(|error| panic!("{printed}: {error}"));
                assert_eq!(again.to_string(), printed);
                for flow in flows() {
                    assert_eq!(filter.matches(&flow), again.matches(&flow), "{printed}");
                }
            }
            Err(error) => {
                let line =
                    text.split('\n').nth(error.line.unwrap_or(1) - 1).expect("the line is in the text");
                assert!((1..=line.chars().count() + 1).contains(&error.column), "{error}");
                assert!(!error.kind.to_string().contains(char::is_control), "{error:?}");
                assert!(error.excerpt(text).ends_with('^'));
            }
        }
    }
}

/// Returns a TCP flow over IPv4 and an ICMPv6 flow.
fn flows() -> [FlowRecord; 2] {
    let forward = Traffic { packets: 3, bytes: Bytes(180), tcp_flags: TcpFlags::SYN, cheetah: false };
    let reverse = Traffic {
        packets: u64::MAX / 2,
        bytes: Bytes(u64::MAX / 2),
        tcp_flags: TcpFlags::ACK,
        cheetah: true,
    };
    let (first, last) = (Timestamp(1), Timestamp(2_000_000));
    let tcp = FlowKey::v4(0x0A00_0001, 0xC000_0201, 40_000, 443, Protocol::TCP);
    let icmp6 = FlowKey::v6(1, 0x2001_0db8 << 96, 7, 7, Protocol::ICMPV6);
    [(tcp, last), (icmp6, first)].map(|(key, last)| FlowRecord {
        key,
        first,
        last,
        forward,
        reverse,
        end_reason: EndReason::Idle,
    })
}
