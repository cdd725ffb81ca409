//! Consecutive export messages, each preceded by its length in 16 bits.

use std::net::{Ipv4Addr, SocketAddr};

use thalweg_wire::flow_export::decode::Counts;
use thalweg_wire::flow_export::encode::{Messages, Misfits, ipfix};
use thalweg_wire::flow_export::{
    Address, DecodeError, Decoded, Decoder, Format, Limits, Name, Record, RecordBatch,
};
use thalweg_wire::{Nanos, Timestamp};

/// The maximum number of rows whose re-export is checked, to limit the duration.
const SENT_ON: usize = 200;

/// Small limits, so that each is reached.
const LIMITS: Limits = Limits {
    names: 100,
    sessions: 2,
    domains: 3,
    templates: 4,
    template_fields: 64,
    held_bytes: 2_000,
    total_held_bytes: 3_000,
    held_for: Nanos(5_000_000_000),
    template_lifetime: Nanos(20_000_000_000),
    session_lifetime: Nanos(30_000_000_000),
    default_sampling: 7,
};

/// Checks datagrams of NetFlow v5 and v9.
///
/// # Panics
/// When a property does not hold: see [`Run::take`].
pub fn check_netflow(data: &[u8]) {
    check(data, Decoder::datagram);
}

/// Checks messages of IPFIX, as datagrams and over a connection.
///
/// # Panics
/// When a property does not hold: see [`Run::take`].
pub fn check_ipfix(data: &[u8]) {
    check(data, Decoder::datagram);
    check(data, Decoder::message);
}

/// Checks datagrams of sFlow.
///
/// # Panics
/// When a property does not hold: see [`Run::take`].
pub fn check_sflow(data: &[u8]) {
    check(data, Decoder::datagram);
}

type Decode = fn(&mut Decoder, SocketAddr, Timestamp, &[u8], &mut Decoded) -> Result<(), DecodeError>;

/// Checks that two decoders give the same result for the same input.
fn check(data: &[u8], decode: Decode) {
    let mut runs = [Run::new(decode), Run::new(decode)];
    let mut left = data;
    while let [high, low, rest @ ..] = left {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        runs.iter_mut().for_each(|run| run.take(&rest[..length]));
        left = &rest[length..];
    }
    let [first, second] = runs;
    assert_eq!(first.decoded, second.decoded);
    assert_eq!(first.decoder.sources(), second.decoder.sources());
    check_sent_on(&first.decoded.flows);
    first.finish();
}

/// Checks that decoded rows round-trip through IPFIX.
fn check_sent_on(rows: &RecordBatch) {
    let mut sent = RecordBatch::default();
    for row in 0..rows.len().min(SENT_ON) {
        // An interval of 0 cannot be exported after another one, and 0 is not a time. NTP times wrap in 2036.
        let row = rows.record(row);
        sent.push(&Record {
            sampling_interval: row.sampling_interval.max(1),
            flow_start_us: row.flow_start_us.clamp(1, 2_000_000_000_000_000),
            flow_end_us: row.flow_end_us.clamp(1, 2_000_000_000_000_000),
            ..row
        });
    }
    let now = Timestamp::new(1_700_000_000, 0);
    let (mut encoder, mut messages) =
        (ipfix::Encoder::new(ipfix::Options::default()).unwrap(), Messages::new());
    encoder.encode(&sent, now, &mut messages);
    let (mut decoder, mut back) = (Decoder::new(Limits::default()), Decoded::default());
    for message in messages.iter() {
        decoder.datagram((Ipv4Addr::LOCALHOST, 4739).into(), now, message, &mut back).unwrap();
    }
    match encoder.misfits() {
        Misfits { rows: 0, values: 0 } => assert_eq!(told(&back.flows), told(&sent)),
        _ => assert_eq!(back.flows.len(), sent.len()),
    }
}

/// Returns the rows in a defined order, since a message groups rows by template.
fn told(rows: &RecordBatch) -> Vec<Record> {
    let without_origin = |row| Record {
        received_us: 0,
        exporter: Address::NONE,
        observation_domain_id: 0,
        format: Format::Ipfix,
        exporter_name: Name::NONE,
        ingress_interface_name: Name::NONE,
        egress_interface_name: Name::NONE,
        ingress_vrf_name: Name::NONE,
        egress_vrf_name: Name::NONE,
        ..rows.record(row)
    };
    let mut told: Vec<Record> = (0..rows.len()).map(without_origin).collect();
    told.sort_by_cached_key(|row| format!("{row:?}"));
    told
}

struct Run {
    decode: Decode,
    decoder: Decoder,
    decoded: Decoded,
    messages: u64,
    refused: u64,
}

impl Run {
    fn new(decode: Decode) -> Run {
        let (decoder, decoded) = (Decoder::new(LIMITS), Decoded::default());
        Run { decode, decoder, decoded, messages: 0, refused: 0 }
    }

    /// Decodes a message; checks that it adds complete rows or, with an error, none, and that all limits hold.
    fn take(&mut self, message: &[u8]) {
        self.messages += 1;
        // Three exporters with a limit of two; a second between messages.
        let from = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), (self.messages % 5 / 2) as u16);
        let received = Timestamp::new(1_700_000_000 + self.messages, 0);
        let before = (self.decoded.flows.len(), self.decoded.counters.len());
        let held = self.decoder.totals().held_bytes as usize;
        let result = (self.decode)(&mut self.decoder, from, received, message, &mut self.decoded);
        self.decoded.flows.check_invariants();
        self.decoded.counters.check_invariants();
        if let Err(error) = result {
            self.refused += 1;
            assert_eq!(error.from, from);
            assert_eq!((self.decoded.flows.len(), self.decoded.counters.len()), before);
        }
        // The documented limit of the decoder.
        let rows = self.decoded.flows.len() + self.decoded.counters.len() - before.0 - before.1;
        assert!(rows <= 2 * (message.len() + held), "{rows} rows of {} bytes", message.len());
        if self.messages.is_multiple_of(4) {
            self.decoder.expire(received);
        }
        let totals = self.decoder.totals();
        assert!(totals.sessions <= LIMITS.sessions as u64);
        assert!(totals.held_bytes <= LIMITS.total_held_bytes as u64);
        let sources = self.decoder.sources();
        assert!(sources.is_sorted_by_key(|source| (source.from, source.transport, source.format)));
        assert!(sources.len() <= LIMITS.sessions * LIMITS.domains);
        let templates: u64 = sources.iter().map(|source| source.templates).sum();
        assert!(templates <= (LIMITS.sessions * LIMITS.templates) as u64);
        let held: u64 = sources.iter().map(|source| source.held_bytes).sum();
        assert_eq!(held, totals.held_bytes);
    }

    /// Checks that all messages, rows and held sets are accounted for.
    fn finish(mut self) {
        self.decoder.expire(Timestamp::new(1_800_000_000, 0));
        let totals = self.decoder.totals();
        assert_eq!((totals.sessions, totals.held_bytes), (0, 0));
        let Counts { messages, records, counter_records, dropped_malformed, .. } = totals.gone;
        assert_eq!(records, self.decoded.flows.len() as u64);
        assert_eq!(counter_records, self.decoded.counters.len() as u64);
        let refused_early = totals.dropped_unreadable + totals.dropped_too_many_domains;
        assert_eq!(messages + refused_early, self.messages);
        // Held sets that turn out malformed are counted as malformed messages.
        assert!(dropped_malformed + refused_early >= self.refused);
        let Counts { held_sets, released_sets, dropped_template_late, dropped_held_full, .. } = totals.gone;
        assert_eq!(held_sets, released_sets + dropped_template_late + dropped_held_full);
    }
}
