//! What a decoder counts, for each observation domain of each session.

use std::net::SocketAddr;
use std::ops::AddAssign;

use crate::flow_export::{Address, Format};
use crate::time::Timestamp;

/// How messages come: RFC 7011 has other rules for templates where messages can be lost or overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// One message a datagram (UDP).
    Datagram,
    /// A connection (TCP, TLS).
    Stream,
}

/// One observation domain of one session: who it is, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceStatistics {
    /// Who sends.
    pub from: SocketAddr,
    /// How.
    pub transport: Transport,
    /// In which format.
    pub format: Format,
    /// IPFIX `observationDomainId`, NetFlow v9 source id, NetFlow v5 engine, sFlow sub-agent.
    pub observation_domain_id: u32,
    /// As the records have it.
    pub exporter: Address,
    /// One packet in so many, for records that name no selector or interface of their own; 0: not told.
    pub sampling_interval: u32,
    /// Templates known now.
    pub templates: u64,
    /// Bytes now held for templates that have not come yet.
    pub held_bytes: u64,
    /// When the last message arrived.
    pub last_received: Timestamp,
    /// What was counted.
    pub counts: Counts,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What was counted since the domain was first heard of.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// Every count with its name, in the order of declaration.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }

        impl AddAssign for Counts {
            fn add_assign(&mut self, other: Counts) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counts! {
    /// Messages that were read, those with faults among them.
    messages,
    /// Rows given: flow records, two for a biflow; flow samples of sFlow.
    records,
    /// Records of options templates; they give no rows.
    option_records,
    /// Rows of interface counters given (sFlow).
    counter_records,
    /// Lost on the way, by sequence numbers: flows of NetFlow v5, messages of v9, data records of IPFIX, datagrams of
    /// sFlow.
    lost,
    /// Samples of sFlow that did not come, by their own sequence numbers.
    lost_samples,
    /// Samples that an sFlow agent says it could not take.
    dropped_by_agent,
    /// Messages that came after later ones; what they filled is not in `lost`.
    late_messages,
    /// Messages whose sequence number fits nowhere: duplicates, or the first after a restart.
    out_of_sequence,
    /// Times that the exporter began anew, by its up-time or its sequence numbers.
    restarts,
    /// Times that the exporter's clock moved against the collector's by more than ten seconds between two messages.
    clock_jumps,
    /// Rows whose exporter gave no time of the flow: they have that of the message.
    untimed_records,
    /// Templates that were new.
    templates_defined,
    /// Templates that took the place of another of the same number.
    templates_replaced,
    /// Templates withdrawn.
    templates_withdrawn,
    /// Withdrawals that came over UDP, where RFC 7011 section 8.4 has them ignored.
    withdrawals_ignored,
    /// Templates that had not been repeated in time.
    templates_expired,
    /// Templates that made room for others ([`Limits::templates`](super::Limits::templates)).
    templates_evicted,
    /// Templates that cannot be used: too many fields, or records of no length.
    templates_refused,
    /// Sets of data that had to wait for their template.
    held_sets,
    /// Sets that waited and were then decoded.
    released_sets,
    /// Sets dropped: their template did not come within [`Limits::held_for`](super::Limits::held_for).
    dropped_template_late,
    /// Sets dropped: others were waiting already, up to the bound.
    dropped_held_full,
    /// Messages dropped for a fault in their format.
    dropped_malformed,
    /// Records dropped: their template has neither addresses nor counters, so they are no flows.
    dropped_no_flow,
    /// Sets of data that are shorter than one record of their template.
    dropped_short_set,
    /// Sets of a number that RFC 7011 leaves free, dropped.
    dropped_unknown_set,
    /// sFlow samples and counter blocks of a kind that gives no row, dropped.
    dropped_unknown_sample,
    /// sFlow samples of frames that carry no IP, dropped.
    dropped_not_ip,
    /// sFlow samples whose frame breaks its format, dropped.
    dropped_bad_frame,
}

/// What concerns no domain, or domains that are forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sessions known now.
    pub sessions: u64,
    /// Sessions forgotten to make room for others.
    pub sessions_evicted: u64,
    /// Sessions forgotten after a long silence.
    pub sessions_expired: u64,
    /// Datagrams that told no domain: another version, or too short.
    pub dropped_unreadable: u64,
    /// Messages of domains beyond [`Limits::domains`](super::Limits::domains).
    pub dropped_too_many_domains: u64,
    /// Bytes now held for templates, of all sessions.
    pub held_bytes: u64,
    /// Counts of domains whose session is forgotten or ended.
    pub gone: Counts,
}
