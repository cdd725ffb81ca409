//! The flow entry that redirects one flow.
//!
//! | part | contents |
//! |---|---|
//! | match | the 5-tuple of a TCP, UDP or SCTP flow over IPv4 or IPv6 |
//! | actions | writes the DSCP, selects the queue, and forwards as before |
//! | idle timeout | removes the entry if the daemon no longer does |
//! | cookie | begins with `0x7469`; the last 32 bits number the entries of a run |

use std::net::IpAddr;

use thalweg_wire::openflow::multipart::{FlowFilter, FlowStats};
use thalweg_wire::openflow::{
    Action, Body, FlowFlags, FlowMod, FlowModCommand, Instruction, Masked, Match, MatchField, PortNumber,
    QueueId, TableId,
};
use thalweg_wire::{FlowKey, Protocol};

use crate::openflow::ReadBack;

/// Cookies of these entries: `ti` in the first two bytes. Those of [routes](crate::openflow::entries::COOKIES) are others.
pub const COOKIES: ReadBack = ReadBack { cookie: 0x7469 << 48, mask: 0xffff << 48 };

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// The form of all entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePlan {
    /// The table.
    pub table: TableId,
    /// Above the priority of entries that forward. No other entry of the table should have it.
    pub priority: u16,
    /// Seconds without a packet after which the switch removes an entry.
    pub idle_timeout: u16,
    /// The DSCP to write, if any.
    pub dscp: Option<u8>,
    /// The queue to select, if any.
    pub queue: Option<QueueId>,
    /// How packets leave.
    pub forward: Forward,
}

/// How the packets of a redirected flow are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// As the switch does without OpenFlow.
    Normal,
    /// By the entries of a later table.
    Table(TableId),
    /// By the output port.
    Output,
}

/// Returns the cookie of the entry with this number.
pub(super) fn cookie(number: u32) -> u64 {
    COOKIES.cookie | u64::from(number)
}

/// Selects all entries with these cookies.
pub(super) fn all() -> FlowFilter {
    FlowFilter::by_cookie(COOKIES.cookie, COOKIES.mask)
}

/// Returns the match of a flow; `None` if its protocol has no ports that can be matched.
pub(super) fn matching(key: &FlowKey) -> Option<Match> {
    let [src_port, dst_port] = match key.protocol {
        Protocol::TCP => [MatchField::TcpSrc(key.src_port), MatchField::TcpDst(key.dst_port)],
        Protocol::UDP => [MatchField::UdpSrc(key.src_port), MatchField::UdpDst(key.dst_port)],
        Protocol::SCTP => [MatchField::SctpSrc(key.src_port), MatchField::SctpDst(key.dst_port)],
        _ => return None,
    };
    let [ether_type, src, dst] = match (key.src(), key.dst()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            [MatchField::EthType(IPV4), MatchField::Ipv4Src(src.into()), MatchField::Ipv4Dst(dst.into())]
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            [MatchField::EthType(IPV6), MatchField::Ipv6Src(src.into()), MatchField::Ipv6Dst(dst.into())]
        }
        _ => return None,
    };
    Some(Match(vec![ether_type, MatchField::IpProto(key.protocol), src, dst, src_port, dst_port]))
}

/// Returns the flow that an entry matches; `None` if it is not the match of exactly one.
pub(super) fn key_of(entry: &Match) -> Option<FlowKey> {
    let (mut protocol, mut ports) = (None, [None; 2]);
    let mut addresses: [Option<IpAddr>; 2] = [None; 2];
    fn whole<T>(field: Masked<T>) -> Option<T> {
        field.mask.is_none().then_some(field.value)
    }
    for field in &entry.0 {
        match field {
            MatchField::EthType(_) => {}
            MatchField::IpProto(number) => protocol = Some(*number),
            MatchField::Ipv4Src(src) => addresses[0] = Some(whole(*src)?.into()),
            MatchField::Ipv4Dst(dst) => addresses[1] = Some(whole(*dst)?.into()),
            MatchField::Ipv6Src(src) => addresses[0] = Some(whole(*src)?.into()),
            MatchField::Ipv6Dst(dst) => addresses[1] = Some(whole(*dst)?.into()),
            MatchField::TcpSrc(port) | MatchField::UdpSrc(port) | MatchField::SctpSrc(port) => {
                ports[0] = Some(*port);
            }
            MatchField::TcpDst(port) | MatchField::UdpDst(port) | MatchField::SctpDst(port) => {
                ports[1] = Some(*port);
            }
            _ => return None,
        }
    }
    let ([src, dst], [src_port, dst_port], protocol) = (addresses, ports, protocol?);
    let key = match (src?, dst?) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            FlowKey::v4(src.into(), dst.into(), src_port?, dst_port?, protocol)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            FlowKey::v6(src.into(), dst.into(), src_port?, dst_port?, protocol)
        }
        _ => return None,
    };
    (matching(&key)?.sorted() == entry.clone().sorted()).then_some(key)
}

/// Returns the flow-mod that deletes an entry with one of these cookies, whatever it does.
pub(super) fn delete(table: TableId, priority: u16, matching: Match) -> Body {
    Body::FlowMod(FlowMod {
        cookie: COOKIES.cookie,
        cookie_mask: COOKIES.mask,
        table_id: table,
        command: FlowModCommand::DELETE_STRICT,
        priority,
        matching,
        ..FlowMod::default()
    })
}

impl RulePlan {
    /// Returns the flow-mod that redirects a flow, whether the switch has its entry or not. `port` is the output port.
    pub(super) fn add(&self, matching: Match, number: u32, port: PortNumber) -> Body {
        Body::FlowMod(FlowMod {
            cookie: cookie(number),
            table_id: self.table,
            idle_timeout: self.idle_timeout,
            priority: self.priority,
            flags: FlowFlags::SEND_FLOW_REMOVED,
            matching,
            instructions: self.instructions(port),
            ..FlowMod::default()
        })
    }

    /// Returns whether an entry is in the table and has the priority of these, so that adding one replaces it.
    pub(super) fn replaces(&self, flow: &FlowStats) -> bool {
        (flow.table_id, flow.priority) == (self.table, self.priority)
    }

    /// Returns whether an entry does what these do.
    pub(super) fn is_same_as(&self, flow: &FlowStats, port: PortNumber) -> bool {
        let times = (flow.idle_timeout, flow.hard_timeout) == (self.idle_timeout, 0);
        let flags = flow.flags.contains(FlowFlags::SEND_FLOW_REMOVED);
        times && flags && flow.instructions == self.instructions(port)
    }

    fn instructions(&self, port: PortNumber) -> Vec<Instruction> {
        let dscp = self.dscp.map(|dscp| Action::SetField(MatchField::IpDscp(dscp)));
        let queue = self.queue.map(Action::SetQueue);
        let output = match self.forward {
            Forward::Normal => Some(Action::output(PortNumber::NORMAL)),
            Forward::Output => Some(Action::output(port)),
            Forward::Table(_) => None,
        };
        let actions = [dscp, queue, output].into_iter().flatten().collect();
        let next = match self.forward {
            Forward::Table(table) => Some(Instruction::GotoTable(table)),
            Forward::Normal | Forward::Output => None,
        };
        std::iter::once(Instruction::ApplyActions(actions)).chain(next).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_match_of_a_flow_is_read_back_in_any_order() {
        for text in [
            "tcp 192.0.2.1:5001 > 198.51.100.2:443",
            "udp [2001:db8::1]:5001 > [2001:db8::2]:443",
            "sctp 192.0.2.1:1 > 198.51.100.2:2",
        ] {
            let key: FlowKey = text.parse().unwrap();
            let mut entry = matching(&key).unwrap();
            entry.0.reverse();
            assert_eq!(key_of(&entry), Some(key), "{text}");
            assert_eq!(key_of(&entry.clone().with(MatchField::InPort(PortNumber(1)))), None);
            entry.0.pop();
            assert_eq!(key_of(&entry), None, "without the Ethernet type");
        }
        assert_eq!(matching(&FlowKey::v4(1, 2, 0, 0, Protocol(47))), None, "GRE has no ports");
        assert_eq!(key_of(&Match::any()), None);
    }

    #[test]
    fn an_entry_marks_selects_the_queue_and_then_forwards() {
        let plan = |dscp, queue, forward| RulePlan {
            table: TableId(0),
            priority: 24_576,
            idle_timeout: 10,
            dscp,
            queue,
            forward,
        };
        let (dscp, queue) = (Action::SetField(MatchField::IpDscp(1)), Action::SetQueue(QueueId(1)));
        let normal = plan(Some(1), Some(QueueId(1)), Forward::Normal);
        let actions = vec![dscp.clone(), queue.clone(), Action::output(PortNumber::NORMAL)];
        assert_eq!(normal.instructions(PortNumber(7)), [Instruction::ApplyActions(actions)]);
        let table = plan(Some(1), None, Forward::Table(TableId(2)));
        let expected = [Instruction::ApplyActions(vec![dscp]), Instruction::GotoTable(TableId(2))];
        assert_eq!(table.instructions(PortNumber(7)), expected);
        let output = plan(None, Some(QueueId(1)), Forward::Output);
        let actions = vec![queue, Action::output(PortNumber(7))];
        assert_eq!(output.instructions(PortNumber(7)), [Instruction::ApplyActions(actions)]);
        let Body::FlowMod(flow) = normal.add(Match::any(), 5, PortNumber(7)) else { panic!("a flow-mod") };
        assert_eq!((flow.cookie, flow.idle_timeout), (0x7469_0000_0000_0005, 10), "kill -9 leaves nothing");
    }
}
