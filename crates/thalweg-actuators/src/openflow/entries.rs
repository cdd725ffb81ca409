//! The flow entries of a network: one per route, and one of higher priority per rerouted pair.
//!
//! | entry | priority | matches | actions |
//! |---|---:|---|---|
//! | route | 16384 | `eth_dst` | copies to the monitor port; at the last switch, writes the base address back; sends |
//! | reroute | 20480 | `in_port`, `eth_src`, `eth_dst` | writes the shadow address; copies; sends |
//!
//! A second output action makes the copies (Rasley et al., "Planck", SIGCOMM 2014, section 4.1). Copies carry the
//! address that identifies the path. So the last switch copies before it writes the base address back, and the first
//! switch copies after it writes the shadow address.
//!
//! The module `ports` has the OpenFlow numbers of ports.
//!
//! All entries are in table 0, with cookies that begin with `0x7477`. Entries with other cookies belong to other
//! controllers and are neither read nor changed. With a higher priority they take precedence.
//!
//! The switch reports the removal of each entry (`SEND_FLOW_REMOVED`). Changes and replacements are not reported; only
//! a read-back shows them.

use thalweg_network::{MacAddress, PortIndex};
use thalweg_wire::openflow::multipart::{FlowFilter, FlowStats};
use thalweg_wire::openflow::{
    Action, Body, FlowFlags, FlowMod, FlowModCommand, FlowRemoved, Instruction, Masked, Match, MatchField,
    TableId,
};

use super::ReadBack;
use super::ports::SwitchPorts;
use thalweg_control::routes::{Change, Rule};

/// Thalweg's cookies: `tw` in the first two bytes.
pub const COOKIES: ReadBack = ReadBack { cookie: 0x7477 << 48, mask: 0xffff << 48 };

/// Cookie of routes.
pub const ROUTE: u64 = COOKIES.cookie | 1;

/// Cookie of reroute entries.
pub const REROUTE: u64 = COOKIES.cookie | 2;

/// Priority of routes, with room for other controllers' entries on both sides.
pub const ROUTE_PRIORITY: u16 = 0x4000;

/// Priority of reroute entries: above routes.
pub const REROUTE_PRIORITY: u16 = 0x5000;

/// The packets that an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryKey {
    /// All packets to this address.
    Route(MacAddress),
    /// Packets that the host at this port sends to another host's base address.
    Reroute { port: PortIndex, source: MacAddress, destination: MacAddress },
}

/// An entry to write or to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: EntryKey,
    /// For a route, as in [`Rule`]; for a reroute, `write_back` is the shadow address. `None` deletes the entry.
    pub(super) rule: Option<Rule>,
}

/// An entry read from a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReadEntry {
    /// An entry that Thalweg would write.
    Ours(EntryKey, Rule),
    /// An entry with the match and the priority of one of Thalweg's, but other contents. Writing the entry again
    /// replaces it without a gap.
    Changed(EntryKey),
    /// An entry with Thalweg's cookie but other contents; this flow-mod deletes it.
    Stray(Box<FlowMod>),
}

impl From<Change> for Entry {
    fn from(change: Change) -> Entry {
        Entry { key: EntryKey::Route(change.address), rule: change.rule }
    }
}

impl EntryKey {
    fn cookie(self) -> u64 {
        match self {
            EntryKey::Route(_) => ROUTE,
            EntryKey::Reroute { .. } => REROUTE,
        }
    }

    fn priority(self) -> u16 {
        match self {
            EntryKey::Route(_) => ROUTE_PRIORITY,
            EntryKey::Reroute { .. } => REROUTE_PRIORITY,
        }
    }

    /// Returns the match; `None` if the port is missing.
    fn matching(self, ports: &SwitchPorts) -> Option<Match> {
        Some(match self {
            EntryKey::Route(address) => Match::any().with(MatchField::EthDst(address.into())),
            EntryKey::Reroute { port, source, destination } => Match::any()
                .with(MatchField::InPort(ports.number(port)?))
                .with(MatchField::EthDst(destination.into()))
                .with(MatchField::EthSrc(source.into())),
        })
    }

    /// Returns the key of an entry from its match.
    fn of(matching: &Match, ports: &SwitchPorts) -> Option<EntryKey> {
        use MatchField::{EthDst, EthSrc, InPort};
        let whole = |field: Masked<MacAddress>| field.mask.is_none().then_some(field.value);
        match matching.clone().sorted().0.as_slice() {
            [EthDst(address)] => Some(EntryKey::Route(whole(*address)?)),
            [InPort(port), EthDst(to), EthSrc(from)] => {
                let port = ports.index(*port)?;
                Some(EntryKey::Reroute { port, source: whole(*from)?, destination: whole(*to)? })
            }
            _ => None,
        }
    }
}

impl Entry {
    /// Returns the flow-mod that writes or deletes the entry, whether the switch has one or not; `None` if a port is missing.
    pub(super) fn flow_mod(&self, ports: &SwitchPorts) -> Option<Body> {
        let Entry { key, rule } = *self;
        let entry = FlowMod {
            cookie: key.cookie(),
            priority: key.priority(),
            matching: key.matching(ports)?,
            flags: FlowFlags::SEND_FLOW_REMOVED,
            ..FlowMod::default()
        };
        Some(Body::FlowMod(match rule {
            Some(rule) => FlowMod { instructions: instructions(key, rule, ports)?, ..entry },
            None => FlowMod { command: FlowModCommand::DELETE_STRICT, cookie_mask: COOKIES.mask, ..entry },
        }))
    }
}

/// Returns what an entry does; `None` if its port is missing.
fn instructions(key: EntryKey, rule: Rule, ports: &SwitchPorts) -> Option<Vec<Instruction>> {
    let copy = ports.monitor().map(Action::output);
    let write = rule.write_back.map(|address| Action::SetField(MatchField::EthDst(address.into())));
    let send = Some(Action::output(ports.number(rule.port)?));
    let actions = match key {
        EntryKey::Route(_) => [copy, write, send],
        EntryKey::Reroute { .. } => [write, copy, send],
    };
    Some(vec![Instruction::ApplyActions(actions.into_iter().flatten().collect())])
}

/// Classifies an entry of a switch with these ports.
pub(super) fn read(flow: &FlowStats, ports: &SwitchPorts) -> ReadEntry {
    let key = EntryKey::of(&flow.matching, ports)
        .filter(|key| (flow.table_id, flow.priority) == (TableId(0), key.priority()));
    let rule = |key| {
        let [Instruction::ApplyActions(actions)] = flow.instructions.as_slice() else { return None };
        let Some(Action::Output(output)) = actions.last() else { return None };
        let written = actions.iter().find_map(|action| match action {
            Action::SetField(MatchField::EthDst(address)) => Some(address.value),
            _ => None,
        });
        let rule = Rule { port: ports.index(output.port)?, write_back: written };
        // Only entries exactly as written count.
        let is_as_written = instructions(key, rule, ports).as_ref() == Some(&flow.instructions)
            && flow.cookie == key.cookie()
            && (flow.idle_timeout, flow.hard_timeout) == (0, 0)
            && flow.flags.contains(FlowFlags::SEND_FLOW_REMOVED);
        is_as_written.then_some(rule)
    };
    match key {
        Some(key) => rule(key).map_or(ReadEntry::Changed(key), |rule| ReadEntry::Ours(key, rule)),
        None => ReadEntry::Stray(Box::new(deletion(flow))),
    }
}

/// Returns the flow-mod that deletes exactly this entry, if it still has a cookie of Thalweg.
fn deletion(flow: &FlowStats) -> FlowMod {
    FlowMod {
        cookie: COOKIES.cookie,
        cookie_mask: COOKIES.mask,
        table_id: flow.table_id,
        command: FlowModCommand::DELETE_STRICT,
        priority: flow.priority,
        matching: flow.matching.clone(),
        ..FlowMod::default()
    }
}

/// Returns the key of a removed entry, if it was one of Thalweg's.
pub(super) fn removed(flow: &FlowRemoved, ports: &SwitchPorts) -> Option<EntryKey> {
    let is_ours = flow.cookie & COOKIES.mask == COOKIES.cookie && flow.table_id == TableId(0);
    EntryKey::of(&flow.matching, ports).filter(|key| is_ours && flow.priority == key.priority())
}

/// Selects all entries with Thalweg's cookies.
pub(super) fn all() -> FlowFilter {
    FlowFilter::by_cookie(COOKIES.cookie, COOKIES.mask)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use thalweg_network::topology::shapes::rack;
    use thalweg_network::{LinkSpec, RouterId, Topology};
    use thalweg_wire::openflow::PortNumber;

    use super::*;

    fn ports(monitor: Option<PortNumber>) -> SwitchPorts {
        static TOPOLOGY: LazyLock<Topology> = LazyLock::new(|| rack(64, LinkSpec::default()).unwrap());
        SwitchPorts::new(&TOPOLOGY, RouterId(0), monitor.map(Into::into))
    }

    fn stats(body: Body) -> FlowStats {
        let Body::FlowMod(flow) = body else { panic!("{body:?}") };
        FlowStats {
            table_id: flow.table_id,
            duration_sec: 3,
            duration_nsec: 0,
            priority: flow.priority,
            idle_timeout: 0,
            hard_timeout: 0,
            flags: flow.flags,
            cookie: flow.cookie,
            packet_count: 5,
            byte_count: 0,
            // Switches report fields in their own order.
            matching: flow.matching.into_reversed(),
            instructions: flow.instructions,
        }
    }

    trait Reversed {
        fn into_reversed(self) -> Self;
    }

    impl Reversed for Match {
        fn into_reversed(self) -> Match {
            self.0.into_iter().rev().collect()
        }
    }

    fn any_mac() -> impl Strategy<Value = MacAddress> {
        any::<u8>().prop_map(|last| MacAddress([2, 0, 0, 0, 0, last]))
    }

    fn any_place() -> impl Strategy<Value = EntryKey> {
        let reroutes = (0_u16..64, any_mac(), any_mac()).prop_map(|(port, source, destination)| {
            EntryKey::Reroute { port: PortIndex(port), source, destination }
        });
        prop_oneof![any_mac().prop_map(EntryKey::Route), reroutes]
    }

    proptest! {
        #[test]
        fn written_entries_are_read_back(
            key in any_place(),
            port in 0_u16..64,
            write_back in prop::option::of(any_mac()),
            monitor in prop::option::of((70_u32..80).prop_map(PortNumber)),
        ) {
            let rule = Rule { port: PortIndex(port), write_back };
            let flow = stats(Entry { key, rule: Some(rule) }.flow_mod(&ports(monitor)).unwrap());
            prop_assert_eq!(read(&flow, &ports(monitor)), ReadEntry::Ours(key, rule));
            let elsewhere = Some(PortNumber(99));
            prop_assert_eq!(read(&flow, &ports(elsewhere)), ReadEntry::Changed(key), "copies go to another port");
        }
    }

    #[test]
    fn foreign_entries_are_deleted_and_changed_ones_are_replaced() {
        let key = EntryKey::Route(MacAddress([2, 0, 0, 0, 0, 1]));
        let rule = Rule { port: PortIndex(0), write_back: None };
        let good = stats(Entry { key, rule: Some(rule) }.flow_mod(&ports(None)).unwrap());
        type Corrupt = fn(&mut FlowStats);
        let changes: [Corrupt; 4] = [
            |flow| flow.cookie = REROUTE,
            |flow| flow.hard_timeout = 60,
            |flow| flow.flags = FlowFlags::default(),
            |flow| flow.instructions.push(Instruction::GotoTable(TableId(1))),
        ];
        for change in changes {
            let mut flow = good.clone();
            change(&mut flow);
            assert_eq!(read(&flow, &ports(None)), ReadEntry::Changed(key), "{flow:?}");
        }
        let cases: [Corrupt; 3] = [
            |flow| flow.priority = 7,
            |flow| flow.table_id = TableId(3),
            |flow| flow.matching = Match::any(),
        ];
        for corrupt in cases {
            let mut flow = good.clone();
            corrupt(&mut flow);
            let ReadEntry::Stray(delete) = read(&flow, &ports(None)) else { panic!("{flow:?}") };
            assert_eq!((delete.command, delete.priority), (FlowModCommand::DELETE_STRICT, flow.priority));
            assert_eq!(delete.matching, flow.matching);
        }
    }

    #[test]
    fn mirrored_packets_carry_the_shadow_address() {
        let (base, shadow) = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 1, 0, 1]));
        let rule = |write_back| Rule { port: PortIndex(4), write_back: Some(write_back) };
        let actions =
            |key, rule| match instructions(key, rule, &ports(Some(PortNumber(9)))).unwrap().as_slice() {
                [Instruction::ApplyActions(actions)] => actions.clone(),
                other => panic!("{other:?}"),
            };
        let (copy, send) = (Action::output(PortNumber(9)), Action::output(PortNumber(5)));
        let write = |address: MacAddress| Action::SetField(MatchField::EthDst(address.into()));
        assert_eq!(
            actions(EntryKey::Route(shadow), rule(base)),
            [copy.clone(), write(base), send.clone()],
            "before the last switch writes it back"
        );
        let reroutes = EntryKey::Reroute { port: PortIndex(0), source: base, destination: base };
        assert_eq!(
            actions(reroutes, rule(shadow)),
            [write(shadow), copy, send],
            "after the first has written it"
        );
    }
}
