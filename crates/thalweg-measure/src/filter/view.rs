//! The terms of each view and their meaning. `docs/reference/flow-filter.md` lists them in one table.

use super::term::Term;

/// The terms that apply to the flows of one view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    terms: &'static [(Term, &'static str)],
}

impl View {
    /// Returns the terms of the view, in the order of [`Term::ALL`].
    pub fn terms(&self) -> impl Iterator<Item = Term> {
        self.terms.iter().map(|(term, _)| *term)
    }

    /// Returns the meaning of a term in this view; `None` if the view does not have it.
    pub fn meaning(&self, term: Term) -> Option<&'static str> {
        self.terms.iter().find(|(known, _)| *known == term).map(|(_, meaning)| *meaning)
    }
}

/// Flow records in Parquet files: `thalweg flows`, which evaluates filters in SQL.
pub const RECORDS: View = View {
    terms: &[
        (Term::Any, "every record"),
        (Term::Ipv4, "by the source address"),
        (Term::Ipv6, "by the source address"),
        (Term::Host, "source, destination"),
        (Term::Net, "source, destination"),
        (Term::Port, "source, destination; 0 for ICMP"),
        (Term::Proto, "IP protocol"),
        (Term::Flags, "of the record's direction; TCP only"),
        (Term::Bytes, "scaled by the sampling interval"),
        (Term::Packets, "scaled by the sampling interval"),
        (Term::InBytes, "as `bytes`"),
        (Term::InPackets, "as `packets`"),
        (Term::Flows, "1 per record; records or flows that a row combines"),
        (Term::Duration, "first to last packet, ms"),
        (Term::Bps, "mean over the duration"),
        (Term::Pps, "mean over the duration"),
        (Term::Bpp, "`bytes` / `packets`"),
        (Term::IcmpType, "ICMP and ICMPv6 only"),
        (Term::IcmpCode, "ICMP and ICMPv6 only"),
        (Term::Tos, "type of service"),
        (Term::As, "source, destination; as exported"),
        (Term::Mask, "source, destination"),
        (Term::If, "ingress, egress"),
        (Term::Vlan, "`src`: of incoming packets, `dst`: of outgoing ones"),
        (Term::CustomerVlan, "inner of two tags"),
        (Term::Mac, "`in`: of incoming packets, `out`: of outgoing ones; source, destination"),
        (Term::Ttl, "smallest, largest"),
        (Term::MinTtl, "smallest TTL or hop limit"),
        (Term::MaxTtl, "largest TTL or hop limit"),
        (Term::FwdStat, "number, or `forwarded`, `dropped`, `consumed`, `unknown`"),
        (Term::MplsLabel, "label 1 (top) to 10; 0 if missing"),
        (Term::MplsExp, "experimental bits of label 1 to 10"),
        (Term::MplsEos, "label at the bottom of the stack"),
        (Term::MplsAny, "label at any position of the stack"),
        (Term::Vrf, "`ingress`, `egress`"),
        (Term::VrfName, "`ingress`, `egress`"),
        (Term::IfName, "`in`, `out`; as known when the record arrived"),
        (Term::NextIp, "next hop"),
        (Term::BgpNextIp, "next hop in BGP"),
        (Term::NextAs, "next AS towards the destination"),
        (Term::PrevAs, "previous AS, towards the source"),
        (Term::Geo, "source, destination; two letters, from a database"),
        (Term::RouterIp, "exporter"),
        (Term::RouterName, "name of the exporter"),
        (Term::FlowDir, "0 ingress, 1 egress"),
        (Term::ObservationDomainId, "observation domain"),
        (Term::ObservationPointId, "observation point"),
    ],
};

/// Bidirectional flows of `thalweg watch`: live view, summary, JSON lines `flow`.
pub const METERED: View = View {
    terms: &[
        (Term::Any, "every flow"),
        (Term::Ipv4, "IP version"),
        (Term::Ipv6, "IP version"),
        (Term::Host, "`src` is the initiator"),
        (Term::Net, "`src` is the initiator"),
        (Term::Port, "`src` is the initiator's; of ICMP echo, the identifier"),
        (Term::Proto, "IP protocol"),
        (Term::Flags, "of both directions together; TCP only"),
        (Term::Bytes, "both directions together"),
        (Term::Packets, "both directions together"),
        (Term::InBytes, "from the initiator"),
        (Term::InPackets, "from the initiator"),
        (Term::OutBytes, "to the initiator"),
        (Term::OutPackets, "to the initiator"),
        (Term::Flows, "1"),
        (Term::Duration, "first to last packet, ms"),
        (Term::Bps, "both directions together: in the live view now, else the mean"),
        (Term::Pps, "both directions together: in the live view now, else the mean"),
        (Term::Bpp, "`bytes` / `packets`"),
        (Term::Cheetah, "either direction is or was a cheetah flow (detector `sliding-window`)"),
    ],
};

/// Cheetah flows of `thalweg watch`: their lists in the live view and the summary, JSON lines `cheetah` and
/// `cheetah_end`. Their filters are compiled for [`METERED`]; terms that are missing here exclude no cheetah flow.
pub const CHEETAHS: View = View {
    terms: &[
        (Term::Any, "every cheetah flow"),
        (Term::Ipv4, "IP version"),
        (Term::Ipv6, "IP version"),
        (Term::Host, "`src` sends the cheetah flow"),
        (Term::Net, "`src` sends the cheetah flow"),
        (Term::Port, "`src` sends the cheetah flow"),
        (Term::Proto, "IP protocol"),
        (Term::Bytes, "of the flight that was detected; at the end, in total"),
        (Term::Flows, "1"),
        (Term::Duration, "first packet to detection; at the end, to the last packet"),
        (Term::Bps, "flight rate; at the end of JSON lines, the mean"),
        (Term::Cheetah, "every cheetah flow"),
    ],
};

/// Directions of flows that collectors sample: the HTTP API, `thalweg top`.
pub const SAMPLED: View = View {
    terms: &[
        (Term::Any, "every flow"),
        (Term::Ipv4, "IP version"),
        (Term::Ipv6, "IP version"),
        (Term::Host, "source, destination"),
        (Term::Net, "source, destination"),
        (Term::Port, "source, destination; of ICMP echo, the identifier"),
        (Term::Proto, "IP protocol"),
        (Term::Bytes, "of the samples (`sampled_bytes`)"),
        (Term::Packets, "the samples (`samples`)"),
        (Term::InBytes, "as `bytes`"),
        (Term::InPackets, "as `packets`"),
        (Term::Flows, "1"),
        (Term::Duration, "first to last sample of either direction, ms"),
        (Term::Bps, "estimated rate (`rate_bps`); 0 before the first estimate"),
        (Term::Bpp, "`bytes` / `packets`"),
        (Term::Cheetah, "is a cheetah flow now"),
    ],
};
