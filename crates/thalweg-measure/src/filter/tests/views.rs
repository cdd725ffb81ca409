//! Tests that each view has its listed terms and refuses all others.

use thalweg_wire::{BitRate, Bytes, FlowKey, Protocol, TcpFlags, Timestamp};

use super::super::*;
use crate::collector::FlowReport;
use crate::detect::{Cheetah, CheetahEnd};
use crate::meter::record::{EndReason, FlowRecord, Traffic};

const KEY: FlowKey = FlowKey::v4(0x0A00_0001, 0x0A00_0002, 40_000, 443, Protocol::TCP);

/// Returns an example of a term.
fn example(term: Term) -> String {
    let value = match term {
        Term::Any | Term::Ipv4 | Term::Ipv6 | Term::Cheetah => "",
        Term::Host | Term::NextIp | Term::BgpNextIp | Term::RouterIp => " 10.0.0.1",
        Term::Mac => " 02:00:00:00:00:01",
        Term::Geo => " DE",
        Term::Net => " 10.0.0.0/8",
        Term::Flags => " S",
        Term::Proto => " tcp",
        _ => " 1",
    };
    format!("{}{value}", term.name())
}

fn record() -> FlowRecord {
    let tcp_flags = TcpFlags::SYN;
    FlowRecord {
        key: KEY,
        first: Timestamp(0),
        last: Timestamp(2_000_000_000),
        forward: Traffic { packets: 3, bytes: Bytes(200), tcp_flags, cheetah: false },
        reverse: Traffic { packets: 7, bytes: Bytes(9_800), tcp_flags: TcpFlags::ACK, cheetah: true },
        end_reason: EndReason::Fin,
    }
}

fn report() -> FlowReport {
    FlowReport {
        key: KEY,
        rate: None,
        input: None,
        output: None,
        first: Timestamp(0),
        last: Timestamp(3_000_000),
        samples: 4,
        sampled: Bytes(4_000),
        repeated: Bytes(0),
        reordered: 0,
        is_cheetah: false,
    }
}

fn cheetah() -> Cheetah {
    let (first, detected) = (Timestamp(0), Timestamp(5_000_000));
    Cheetah { key: KEY, first, detected, rate: BitRate(60_000_000), bytes: Bytes(700_000) }
}

fn cheetah_end() -> CheetahEnd {
    CheetahEnd {
        key: KEY,
        first: Timestamp(0),
        last: Timestamp(1_000_000_000),
        packets: 900,
        bytes: Bytes(1_000_000),
    }
}

/// Whether the value of a term is known for a flow.
fn is_known(term: Term, flow: &impl FlowFields) -> bool {
    let text = example(term);
    let filter = [METERED, RECORDS].iter().find_map(|view| FlowFilter::compile(&text, view).ok()).unwrap();
    filter.expression.unwrap().evaluate(flow).is_some()
}

#[test]
fn views_list_the_terms_in_order() {
    for view in [RECORDS, METERED, CHEETAHS, SAMPLED] {
        let terms: Vec<Term> = view.terms().collect();
        assert!(terms.is_sorted(), "{terms:?}");
        assert_eq!(terms[0], Term::Any);
    }
    let names: Vec<&str> = Term::ALL.iter().map(|term| term.name()).collect();
    assert!(Term::ALL.is_sorted() && names.len() == Term::ALL.len());
}

#[test]
fn views_refuse_the_terms_of_other_views() {
    for view in [RECORDS, METERED, SAMPLED] {
        for term in Term::ALL {
            match FlowFilter::compile(&format!("any and {}", example(*term)), &view) {
                Ok(_) => assert!(view.meaning(*term).is_some(), "{term:?}"),
                Err(error) => {
                    assert!(view.meaning(*term).is_none(), "{term:?}: {error}");
                    let message = error.to_string();
                    let expected =
                        format!("filter, column 9: '{}' is not known here; known: any, ipv4,", term.name());
                    assert!(message.starts_with(&expected), "{message}");
                }
            }
        }
    }
}

#[test]
fn flows_have_exactly_the_fields_of_their_view() {
    for term in Term::ALL {
        assert_eq!(is_known(*term, &record()), METERED.meaning(*term).is_some(), "{term:?} of a flow record");
        assert_eq!(is_known(*term, &cheetah()), CHEETAHS.meaning(*term).is_some(), "{term:?} of a cheetah");
        assert_eq!(is_known(*term, &cheetah_end()), CHEETAHS.meaning(*term).is_some(), "{term:?} of its end");
        assert_eq!(is_known(*term, &report()), SAMPLED.meaning(*term).is_some(), "{term:?} of a report");
    }
}

#[test]
fn metered_flows_sum_both_directions() {
    for (text, expected) in [
        ("bytes = 10000 and packets = 10 and bpp 1k", true),
        ("in bytes 200 and out bytes 9800 and in packets 3 and out packets 7", true),
        ("bps = 40k and pps 5 and duration 2k", true),
        ("flags SA", true),
        ("flags S and not flags A", false),
        ("cheetah", true),
        ("src ip 10.0.0.1 and dst port 443 and flows 1", true),
        ("dst ip 10.0.0.1", false),
    ] {
        assert_eq!(FlowFilter::compile(text, &METERED).unwrap().matches(&record()), expected, "{text}");
    }
}

#[test]
fn a_flow_without_an_estimate_has_the_rate_zero() {
    let filter = |text| FlowFilter::compile(text, &SAMPLED).unwrap();
    assert!(filter("bps 0 and bytes 4k and packets 4 and bpp 1k and duration 3").matches(&report()));
    assert!(!filter("bps > 1k").matches(&report()));
}

#[test]
fn a_field_that_flows_lack_excludes_no_flow() {
    let filter = |text| FlowFilter::compile(text, &METERED).unwrap();
    for (text, expected) in [
        ("flags S", true),
        ("not flags S", true),
        ("flags S and port 443", true),
        ("flags S and port 80", false),
        ("not (packets > 5 or port 443)", false),
        ("packets > 5 or port 80", true),
        ("bytes > 1m or bps > 1g", false),
        ("bps 60m and cheetah and duration 5", true),
    ] {
        assert_eq!(filter(text).matches(&cheetah()), expected, "{text}");
    }
    assert!(filter("bytes 1m and bps 8m").matches(&cheetah_end()));
}

#[test]
fn suggestions_are_terms_of_the_view() {
    let message = |text, view| FlowFilter::compile(text, view).unwrap_err().to_string();
    let refused = message("src ad 5", &METERED);
    assert_eq!(refused, "filter, column 5: expected one of ip, host, net, port, found 'ad'");
    let refused = message("cheeta", &METERED);
    assert!(refused.ends_with("found 'cheeta'; did you mean 'cheetah'?"), "{refused}");
    let refused = message("flosw > 5", &SAMPLED);
    assert!(refused.ends_with("found 'flosw'; did you mean 'flows'?"), "{refused}");
    let refused = message("as 5", &SAMPLED);
    assert!(
        refused.ends_with(
            "known: any, ipv4, ipv6, host, net, port, proto, bytes, packets, in bytes, in packets, flows, \
                               duration, bps, bpp, cheetah"
        ),
        "{refused}"
    );
}
