use std::collections::VecDeque;

use proptest::prelude::*;
use thalweg_network::EndpointId;

use super::*;
use crate::slot::Slot;

const PORTS: usize = 2;
const FLOWS: usize = 5;
const LIMIT: u32 = 12;

#[derive(Clone, Copy, Debug)]
enum Step {
    Push { length: u16 },
    Pop,
    List(Turns),
    Unlist(Turns),
}

fn steps() -> impl Strategy<Value = Vec<(usize, usize, Step)>> {
    let turns = || prop_oneof![Just(Turns::New), Just(Turns::Old)];
    let step = prop_oneof![
        3 => (64u16..9_000).prop_map(|length| Step::Push { length }),
        2 => Just(Step::Pop),
        1 => turns().prop_map(Step::List),
        1 => turns().prop_map(Step::Unlist),
    ];
    prop::collection::vec((0..PORTS, 0..FLOWS, step), 1..300)
}

/// A plain model of a port: a queue per flow, and two lists of flows.
#[derive(Clone, Default)]
struct Plain {
    queues: [VecDeque<Stamped>; FLOWS],
    turns: [VecDeque<usize>; 2],
}

impl Plain {
    fn waiting(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    fn bytes(&self, flow: usize) -> u64 {
        self.queues[flow].iter().map(Queued::length).sum()
    }
}

proptest! {
    #[test]
    fn flow_queues_match_a_reference_model(steps in steps()) {
        let mut store = FlowQueues::new(PORTS, FLOWS, LIMIT);
        let mut plain = vec![Plain::default(); PORTS];
        for (id, (number, flow, step)) in steps.into_iter().enumerate() {
            let (port, plain) = (PortIndex(number as u16), &mut plain[number]);
            match step {
                Step::Push { length } if plain.waiting() <= LIMIT as usize => {
                    let packet = Packet::new(EndpointId(0), EndpointId(0), 0, id as u32, length);
                    let stamped = Stamped { packet, at: Slot(id as u64) };
                    store.push(port, flow, stamped);
                    plain.queues[flow].push_back(stamped);
                }
                Step::Push { .. } => (),
                Step::Pop => {
                    let popped = plain.queues[flow].pop_front();
                    let left = plain.bytes(flow) as u32;
                    prop_assert_eq!(store.pop(port, flow), popped.map(|stamped| (stamped, left)));
                }
                Step::List(turns) if !plain.turns.iter().flatten().any(|&listed| listed == flow) => {
                    store.list(port, flow, turns);
                    plain.turns[turns as usize].push_back(flow);
                }
                Step::List(_) => (),
                Step::Unlist(turns) => {
                    store.unlist(port, turns);
                    plain.turns[turns as usize].pop_front();
                }
            }
            let packets = plain.waiting() as u32;
            let bytes = (0..FLOWS).map(|flow| plain.bytes(flow)).sum();
            prop_assert_eq!(store.backlog(port), Backlog { packets, bytes });
            prop_assert_eq!(store.backlogged().contains(port), packets > 0);
            prop_assert_eq!(store.packets(port, flow) as usize, plain.queues[flow].len());
            prop_assert_eq!(store.is_listed(port, flow), plain.turns.iter().flatten().any(|&listed| listed == flow));
            let longest = store.longest(port);
            prop_assert_eq!(plain.bytes(longest), (0..FLOWS).map(|flow| plain.bytes(flow)).max().unwrap());
            let turn = plain.turns[0].front().map(|&flow| (flow, Turns::New));
            let turn = turn.or(plain.turns[1].front().map(|&flow| (flow, Turns::Old)));
            prop_assert_eq!(store.turn(port), turn);
        }
    }
}
