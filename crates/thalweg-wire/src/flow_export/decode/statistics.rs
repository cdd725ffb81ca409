//! Statistics per observation domain and session.

use std::net::SocketAddr;
use std::ops::AddAssign;

use crate::flow_export::{Address, Format};
use crate::time::Timestamp;

/// The transport of messages. RFC 7011 has different template rules if messages can be lost or reordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// One message per datagram (UDP).
    Datagram,
    /// A connection (TCP, TLS).
    Stream,
}

/// Statistics of an observation domain of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceStatistics {
    /// The sender.
    pub from: SocketAddr,
    /// The transport.
    pub transport: Transport,
    /// The export format.
    pub format: Format,
    /// IPFIX `observationDomainId`, NetFlow v9 source id, NetFlow v5 engine, sFlow sub-agent.
    pub observation_domain_id: u32,
    /// The exporter in the records.
    pub exporter: Address,
    /// The sampling interval for records without selector and interface; 0: unknown.
    pub sampling_interval: u32,
    /// The current number of templates.
    pub templates: u64,
    /// The bytes currently held for missing templates.
    pub held_bytes: u64,
    /// The time of the last message.
    pub last_received: Timestamp,
    /// The counters.
    pub counts: Counts,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters since the first message of a domain.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// Returns all counters with their names, in declaration order.
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
    /// Received messages, including invalid ones.
    messages,
    /// Decoded rows: flow records, two per biflow; sFlow flow samples.
    records,
    /// Options records, which give no rows.
    option_records,
    /// Decoded rows of interface counters (sFlow).
    counter_records,
    /// Losses by sequence numbers: flows of NetFlow v5, messages of v9, data records of IPFIX, datagrams of sFlow.
    lost,
    /// Lost sFlow samples, by their sequence numbers.
    lost_samples,
    /// Samples dropped by the sFlow agent, as it reports.
    dropped_by_agent,
    /// Reordered messages; they are not counted in `lost`.
    late_messages,
    /// Messages with an unexpected sequence number: duplicates, or the first after a restart.
    out_of_sequence,
    /// Restarts of the exporter, by its uptime or its sequence numbers.
    restarts,
    /// Changes of the exporter's clock offset by more than ten seconds between two messages.
    clock_jumps,
    /// Rows without a flow time, which have that of the message.
    untimed_records,
    /// New templates.
    templates_defined,
    /// Templates that replaced another with the same number.
    templates_replaced,
    /// Withdrawn templates.
    templates_withdrawn,
    /// Withdrawals over UDP, which are ignored (RFC 7011 section 8.4).
    withdrawals_ignored,
    /// Templates that were not refreshed in time.
    templates_expired,
    /// Evicted templates ([`Limits::templates`](super::Limits::templates)).
    templates_evicted,
    /// Rejected templates: too many fields, or records of length zero.
    templates_refused,
    /// Templates known from before the collector restarted ([`Decoder::restore`](super::Decoder::restore)).
    templates_restored,
    /// Restored templates discarded because the exporter has restarted too.
    templates_discarded,
    /// Refused names of interfaces, VRFs and exporters: more than [`Limits::names`](super::Limits::names), or than the
    /// process keeps ([`Name::of`](crate::flow_export::Name::of)).
    names_refused,
    /// Data sets held for their template.
    held_sets,
    /// Held sets that were decoded later.
    released_sets,
    /// Held sets dropped because their template did not arrive within [`Limits::held_for`](super::Limits::held_for), or
    /// before the session or the collector ended.
    dropped_template_late,
    /// Held sets dropped because of the memory limits.
    dropped_held_full,
    /// Dropped malformed messages.
    dropped_malformed,
    /// Dropped records whose template has neither addresses nor counters, so they describe no flow.
    dropped_no_flow,
    /// Dropped records of NAT and firewall events without octets and packets: they describe no traffic.
    dropped_nat_event,
    /// Dropped data sets that are shorter than one record.
    dropped_short_set,
    /// Dropped sets with a number that RFC 7011 does not assign.
    dropped_unknown_set,
    /// Dropped sFlow samples and counter blocks of unsupported kinds.
    dropped_unknown_sample,
    /// Dropped sFlow samples and IPFIX packet sections that are not IP.
    dropped_not_ip,
    /// Dropped sFlow samples and IPFIX packet sections with a malformed frame.
    dropped_bad_frame,
}

/// Statistics that belong to no current domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The current number of sessions.
    pub sessions: u64,
    /// Evicted sessions.
    pub sessions_evicted: u64,
    /// Sessions dropped after the idle timeout.
    pub sessions_expired: u64,
    /// Dropped messages of unknown versions, or too short for a header.
    pub dropped_unreadable: u64,
    /// Dropped messages of domains beyond [`Limits::domains`](super::Limits::domains).
    pub dropped_too_many_domains: u64,
    /// The bytes currently held for missing templates, in all sessions.
    pub held_bytes: u64,
    /// The counters of domains whose session has ended.
    pub gone: Counts,
}
