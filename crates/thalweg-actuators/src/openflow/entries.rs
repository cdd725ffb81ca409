//! The flow entries that a network needs: one for each route, and one before them for each pair that is steered.
//!
//! | entry | priority | matches | does |
//! |---|---:|---|---|
//! | route | 16384 | `eth_dst` | copies to the monitor port; at the last switch, writes the base address back; sends |
//! | steering | 20480 | `in_port`, `eth_src`, `eth_dst` | writes the shadow address; copies; sends |
//!
//! Copies are made by a second output action (Rasley et al., "Planck", SIGCOMM 2014, section 4.1). They show the address
//! that says which way a packet goes: at the last switch before it is written back, at the first after it is written.
//!
//! **Port `p` of the topology is OpenFlow's port `p + 1`**, for OpenFlow counts from 1.
//!
//! All entries are in table 0 and have cookies that begin with `0x7477`. What has other cookies is somebody else's, and
//! is neither read nor touched; of higher priority, it goes before ours.

use thalweg_network::{MacAddress, PortIndex};
use thalweg_wire::openflow::multipart::{FlowFilter, FlowStats};
use thalweg_wire::openflow::{
    Action, Body, FlowMod, FlowModCommand, Instruction, Masked, Match, MatchField, PortNumber, TableId,
};

use super::config::ReadBack;
use thalweg_control::routes::{Change, Rule};

/// Our cookies: `tw` in the first two bytes.
pub const COOKIES: ReadBack = ReadBack { cookie: 0x7477 << 48, mask: 0xffff << 48 };

/// Cookie of routes.
pub const ROUTE: u64 = COOKIES.cookie | 1;

/// Cookie of entries that steer.
pub const STEERING: u64 = COOKIES.cookie | 2;

/// Priority of routes: room for others' entries on both sides.
pub const ROUTE_PRIORITY: u16 = 0x4000;

/// Priority of entries that steer: before routes.
pub const STEERING_PRIORITY: u16 = 0x5000;

/// Number of a port of the topology.
pub fn port_number(port: PortIndex) -> PortNumber {
    PortNumber(u32::from(port.0) + 1)
}

/// The port of the topology that has this number, if it can be one.
pub fn port_index(number: PortNumber) -> Option<PortIndex> {
    u16::try_from(number.0.checked_sub(1)?).ok().map(PortIndex)
}

/// Whom an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// All that goes to this address.
    Route(MacAddress),
    /// What a host at this port sends from its address to another's base address.
    Steering { port: PortIndex, source: MacAddress, destination: MacAddress },
}

/// What is to be, or not to be, at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: Place,
    /// For a route, as [`Rule`] says; else the address that is written is the shadow address.
    pub(super) rule: Option<Rule>,
}

/// An entry that a switch has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// One that we would write.
    Ours(Place, Rule),
    /// One with a cookie of ours that we would not write so; deleted by this.
    Stray(Box<FlowMod>),
}

impl From<Change> for Entry {
    fn from(change: Change) -> Entry {
        Entry { place: Place::Route(change.address), rule: change.rule }
    }
}

impl Place {
    fn cookie(self) -> u64 {
        match self {
            Place::Route(_) => ROUTE,
            Place::Steering { .. } => STEERING,
        }
    }

    fn priority(self) -> u16 {
        match self {
            Place::Route(_) => ROUTE_PRIORITY,
            Place::Steering { .. } => STEERING_PRIORITY,
        }
    }

    fn matching(self) -> Match {
        match self {
            Place::Route(address) => Match::any().with(MatchField::EthDst(address.into())),
            Place::Steering { port, source, destination } => Match::any()
                .with(MatchField::InPort(port_number(port)))
                .with(MatchField::EthDst(destination.into()))
                .with(MatchField::EthSrc(source.into())),
        }
    }

    /// The place of an entry, by what it matches.
    fn of(matching: &Match) -> Option<Place> {
        use MatchField::{EthDst, EthSrc, InPort};
        let whole = |field: Masked<MacAddress>| field.mask.is_none().then_some(field.value);
        match matching.clone().sorted().0.as_slice() {
            [EthDst(address)] => Some(Place::Route(whole(*address)?)),
            [InPort(port), EthDst(to), EthSrc(from)] => {
                let port = port_index(*port)?;
                Some(Place::Steering { port, source: whole(*from)?, destination: whole(*to)? })
            }
            _ => None,
        }
    }
}

impl Entry {
    /// The flow-mod that makes it so, whatever is there.
    pub(super) fn flow_mod(&self, monitor: Option<PortNumber>) -> Body {
        let Entry { place, rule } = *self;
        let entry = FlowMod {
            cookie: place.cookie(),
            priority: place.priority(),
            matching: place.matching(),
            ..FlowMod::default()
        };
        Body::FlowMod(match rule {
            Some(rule) => FlowMod { instructions: instructions(place, rule, monitor), ..entry },
            None => FlowMod { command: FlowModCommand::DELETE_STRICT, cookie_mask: COOKIES.mask, ..entry },
        })
    }
}

fn instructions(place: Place, rule: Rule, monitor: Option<PortNumber>) -> Vec<Instruction> {
    let copy = monitor.map(Action::output);
    let write = rule.write_back.map(|address| Action::SetField(MatchField::EthDst(address.into())));
    let send = Some(Action::output(port_number(rule.port)));
    let actions = match place {
        Place::Route(_) => [copy, write, send],
        Place::Steering { .. } => [write, copy, send],
    };
    vec![Instruction::ApplyActions(actions.into_iter().flatten().collect())]
}

/// What an entry of a switch is to us, whose monitor port is `monitor`.
pub(super) fn read(flow: &FlowStats, monitor: Option<PortNumber>) -> Read {
    let ours = || {
        let place = Place::of(&flow.matching)?;
        let [Instruction::ApplyActions(actions)] = flow.instructions.as_slice() else { return None };
        let Some(Action::Output(output)) = actions.last() else { return None };
        let written = actions.iter().find_map(|action| match action {
            Action::SetField(MatchField::EthDst(address)) => Some(address.value),
            _ => None,
        });
        let rule = Rule { port: port_index(output.port)?, write_back: written };
        // Whatever else there is to it: only what we would write is ours.
        let is_as_written = instructions(place, rule, monitor) == flow.instructions
            && (flow.cookie, flow.priority) == (place.cookie(), place.priority())
            && (flow.table_id, flow.idle_timeout, flow.hard_timeout) == (TableId(0), 0, 0);
        is_as_written.then_some(Read::Ours(place, rule))
    };
    ours().unwrap_or_else(|| {
        Read::Stray(Box::new(FlowMod {
            cookie: COOKIES.cookie,
            cookie_mask: COOKIES.mask,
            table_id: flow.table_id,
            command: FlowModCommand::DELETE_STRICT,
            priority: flow.priority,
            matching: flow.matching.clone(),
            ..FlowMod::default()
        }))
    })
}

/// All entries with a cookie of ours.
pub(super) fn all() -> FlowFilter {
    FlowFilter::by_cookie(COOKIES.cookie, COOKIES.mask)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thalweg_wire::openflow::FlowFlags;

    use super::*;

    fn stats(body: Body) -> FlowStats {
        let Body::FlowMod(flow) = body else { panic!("{body:?}") };
        FlowStats {
            table_id: flow.table_id,
            duration_sec: 3,
            duration_nsec: 0,
            priority: flow.priority,
            idle_timeout: 0,
            hard_timeout: 0,
            flags: FlowFlags::default(),
            cookie: flow.cookie,
            packet_count: 5,
            byte_count: 0,
            // As switches do: in an order of their own.
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

    fn any_place() -> impl Strategy<Value = Place> {
        let steering = (0_u16..64, any_mac(), any_mac()).prop_map(|(port, source, destination)| {
            Place::Steering { port: PortIndex(port), source, destination }
        });
        prop_oneof![any_mac().prop_map(Place::Route), steering]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            place in any_place(),
            port in 0_u16..64,
            write_back in prop::option::of(any_mac()),
            monitor in prop::option::of((70_u32..80).prop_map(PortNumber)),
        ) {
            let rule = Rule { port: PortIndex(port), write_back };
            let flow = stats(Entry { place, rule: Some(rule) }.flow_mod(monitor));
            prop_assert_eq!(read(&flow, monitor), Read::Ours(place, rule));
            let elsewhere = Some(PortNumber(99));
            prop_assert!(matches!(read(&flow, elsewhere), Read::Stray(_)), "copies go to another port");
        }
    }

    #[test]
    fn what_we_would_not_write_so_is_deleted_strictly() {
        let place = Place::Route(MacAddress([2, 0, 0, 0, 0, 1]));
        let rule = Rule { port: PortIndex(0), write_back: None };
        let good = stats(Entry { place, rule: Some(rule) }.flow_mod(None));
        type Spoil = fn(&mut FlowStats);
        let cases: [Spoil; 5] = [
            |flow| flow.priority = 7,
            |flow| flow.cookie = STEERING,
            |flow| flow.hard_timeout = 60,
            |flow| flow.matching = Match::any(),
            |flow| flow.instructions.push(Instruction::GotoTable(TableId(1))),
        ];
        for spoil in cases {
            let mut flow = good.clone();
            spoil(&mut flow);
            let Read::Stray(delete) = read(&flow, None) else { panic!("{flow:?}") };
            assert_eq!((delete.command, delete.priority), (FlowModCommand::DELETE_STRICT, flow.priority));
            assert_eq!(delete.matching, flow.matching);
        }
    }

    #[test]
    fn copies_have_the_address_that_says_which_way_a_packet_goes() {
        let (base, shadow) = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 1, 0, 1]));
        let rule = |write_back| Rule { port: PortIndex(4), write_back: Some(write_back) };
        let actions = |place, rule| match instructions(place, rule, Some(PortNumber(9))).as_slice() {
            [Instruction::ApplyActions(actions)] => actions.clone(),
            other => panic!("{other:?}"),
        };
        let (copy, send) = (Action::output(PortNumber(9)), Action::output(PortNumber(5)));
        let write = |address: MacAddress| Action::SetField(MatchField::EthDst(address.into()));
        assert_eq!(
            actions(Place::Route(shadow), rule(base)),
            [copy.clone(), write(base), send.clone()],
            "before the last switch writes it back"
        );
        let steering = Place::Steering { port: PortIndex(0), source: base, destination: base };
        assert_eq!(
            actions(steering, rule(shadow)),
            [write(shadow), copy, send],
            "after the first has written it"
        );
    }
}
