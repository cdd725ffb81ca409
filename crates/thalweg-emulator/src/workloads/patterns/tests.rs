use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::*;
use crate::workloads::arrivals::Spacing;
use crate::workloads::compose::{Limited, Merged};
use crate::workloads::sizes::{FlowSizes, SizeDistribution, Sizes};
use crate::workloads::{FlowStart, UNBOUNDED, Workload};

fn endpoints(numbers: std::ops::Range<u16>) -> Vec<EndpointId> {
    numbers.map(EndpointId).collect()
}

fn fixed(bytes: u64) -> FlowSizes {
    FlowSizes::of(Sizes::Fixed(bytes)).unwrap()
}

fn each(bytes: u64) -> Each {
    Each { sizes: fixed(bytes), at: Timestamp(5), apart: Nanos::ZERO, seed: 1, index: 0 }
}

fn rpc(load: f64, sizes: FlowSizes, fan_in: usize) -> RpcOptions {
    let (rate, spacing) = (BitRate(10_000_000_000), Spacing::Poisson);
    RpcOptions { load, rate, sizes, fan_in, spacing, from: Timestamp(0), seed: 1, index: 0 }
}

fn shuffled(at_once: usize) -> ShuffleOptions {
    ShuffleOptions { sizes: fixed(100), at_once, from: Timestamp(7), seed: 1, index: 0 }
}

fn rounds(rounds: u64) -> IncastOptions {
    let (from, pause) = (Timestamp(10), Nanos(1000));
    IncastOptions { sizes: fixed(100), rounds, from, pause, seed: 1, index: 0 }
}

fn take(workload: &mut dyn Workload, count: usize) -> Vec<FlowStart> {
    let mut flow = |_| {
        let expected = workload.next_start();
        let flow = workload.start();
        assert_eq!(flow.map(|flow| flow.at), expected, "what was announced");
        flow
    };
    (0..count).map_while(&mut flow).collect()
}

/// The source and destination of each flow.
fn pairs(flows: &[FlowStart]) -> Vec<(u16, u16)> {
    flows.iter().map(|flow| (flow.source.0, flow.destination.0)).collect()
}

#[test]
fn stride_n_sends_from_endpoint_i_to_i_plus_n() {
    let schedule = Schedule::stride(&endpoints(0..16), 8, &each(100)).unwrap();
    let expected: Vec<_> = (0..16).map(|endpoint| (endpoint, (endpoint + 8) % 16)).collect();
    assert_eq!(pairs(schedule.flows()), expected);
    assert!(schedule.flows().iter().all(|flow| (flow.at, flow.bytes) == (Timestamp(5), 100)));
    for stride in [0, 16, 32] {
        let error = Schedule::stride(&endpoints(0..16), stride, &each(1)).unwrap_err();
        assert_eq!(error, WorkloadError::Stride { stride, endpoints: 16 });
    }
    assert!(Schedule::stride(&endpoints(0..16), usize::MAX, &each(1)).is_ok());
}

proptest! {
    #[test]
    fn strides_and_bijections_are_permutations(count in 2u16..60, stride in 1usize..200, seed in any::<u64>()) {
        let all = endpoints(10..10 + count);
        let bijection = Schedule::random_bijection(&all, &Each { seed, ..each(1) }).unwrap();
        let mut schedules = vec![bijection];
        schedules.extend(Schedule::stride(&all, stride, &each(1)));
        for schedule in schedules {
            let pairs = pairs(schedule.flows());
            prop_assert!(pairs.iter().all(|(source, destination)| source != destination));
            let sources: BTreeSet<_> = pairs.iter().map(|pair| pair.0).collect();
            let destinations: BTreeSet<_> = pairs.iter().map(|pair| pair.1).collect();
            prop_assert_eq!(&sources, &destinations);
            prop_assert_eq!(sources.len(), usize::from(count));
        }
    }

    /// For any order of completions, each pair is sent exactly once, and no endpoint exceeds its concurrent flows.
    #[test]
    fn a_shuffle_covers_each_pair_once(count in 2u16..12, at_once in 1usize..14, order in any::<u64>()) {
        let all = endpoints(3..3 + count);
        let mut shuffle = Shuffle::new(&all, shuffled(at_once)).unwrap();
        let mut random = crate::workloads::random::Random::new(order, "order", 0);
        let (mut seen, mut under_way, mut now, mut last) = (BTreeSet::new(), Vec::new(), Timestamp(7), Timestamp(7));
        for number in 0.. {
            while let Some(flow) = shuffle.start() {
                prop_assert!(flow.at >= last && flow.at <= now && flow.source != flow.destination);
                last = flow.at;
                prop_assert!(seen.insert((flow.source, flow.destination)), "a pair twice");
                under_way.push((seen.len() as u32 - 1, flow.source));
                let of_source = under_way.iter().filter(|other| other.1 == flow.source).count();
                prop_assert!(of_source <= at_once);
            }
            if under_way.is_empty() {
                break;
            }
            let (done, _) = under_way.swap_remove(random.index(under_way.len()));
            now = Timestamp(8 + number);
            shuffle.completed(done, now);
        }
        prop_assert_eq!(seen.len(), usize::from(count) * usize::from(count - 1));
    }

    #[test]
    fn no_text_makes_the_flow_file_parser_panic(text in "([0-9a-z#., \\-\u{e9}]{0,24}\n){0,6}") {
        if let Ok(mut schedule) = Schedule::from_text(&text, 4) {
            let flows = take(&mut schedule, 10);
            prop_assert!(flows.is_sorted_by_key(|flow| flow.at));
            let sound = |flow: &FlowStart| flow.source != flow.destination && flow.bytes > 0 && flow.dscp < 64;
            prop_assert!(flows.iter().all(sound));
        }
    }
}

#[test]
fn a_shuffle_does_not_follow_the_order_of_endpoints() {
    let mut shuffle = Shuffle::new(&endpoints(0..16), shuffled(2)).unwrap();
    let first = take(&mut shuffle, 100);
    assert_eq!(first.len(), 32, "two flows of each, until one is done");
    let destinations: BTreeSet<_> = pairs(&first[..16]).iter().map(|pair| pair.1).collect();
    let steps: BTreeSet<_> = pairs(&first[..16]).iter().map(|pair| (pair.1 + 16 - pair.0) % 16).collect();
    assert!(destinations.len() > 4 && steps.len() > 4, "{destinations:?} {steps:?}");
    shuffle.completed(99, Timestamp(50));
    assert_eq!(shuffle.next_start(), None, "a flow that was not begun brings nothing");
    shuffle.completed(3, Timestamp(100));
    let next = take(&mut shuffle, 100);
    assert_eq!((next.len(), next[0].source, next[0].at), (1, EndpointId(3), Timestamp(100)));
}

#[test]
fn incast_waits_for_all_flows_of_a_round() {
    let mut incast = Incast::new(&endpoints(1..6), EndpointId(0), rounds(3)).unwrap();
    let mut done = 0;
    for (round, at) in [(0, 10), (1, 1104), (2, 2198)] {
        let flows = take(&mut incast, 100);
        assert_eq!(pairs(&flows), [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)], "round {round}");
        assert!(flows.iter().all(|flow| flow.at == Timestamp(at)), "{flows:?}");
        for flow in 0..5 {
            assert_eq!(incast.next_start(), None, "round {round}, {flow} done");
            incast.completed(done, Timestamp(at + 90 + flow));
            done += 1;
        }
    }
    assert_eq!(incast.start(), None, "three rounds are over");
}

#[test]
fn persistent_senders_are_unbounded() {
    let schedule = Schedule::persistent(&endpoints(1..4), EndpointId(0), Timestamp(5), Nanos(10)).unwrap();
    assert!(schedule.flows().iter().all(|flow| flow.bytes == UNBOUNDED));
    let times: Vec<_> = schedule.flows().iter().map(|flow| (flow.source.0, flow.at.0)).collect();
    assert_eq!(times, [(1, 5), (2, 15), (3, 25)]);
}

/// 400,000 flows of web search at load 0.6 to each of four clients. E[X^2] / E[X]^2 is 6.4, so the relative standard
/// deviation of the load is sqrt(6.4 / n) = 0.0040, or 0.0058 for eight at a time. Six of the latter have a false alarm
/// rate below 2e-9.
#[test]
fn requests_load_the_clients_as_configured() {
    let sizes = FlowSizes::of(Sizes::Drawn(SizeDistribution::published("web_search").unwrap())).unwrap();
    for fan_in in [1, 8] {
        let options = rpc(0.6, sizes.clone(), fan_in);
        let mut rpc = Rpc::new(&endpoints(0..4), &endpoints(4..36), options).unwrap();
        let flows = take(&mut rpc, 400_000);
        let bytes: f64 = flows.iter().map(|flow| flow.bytes as f64).sum();
        let seconds = flows[flows.len() - 1].at.0 as f64 / 1e9;
        let load = bytes * 8.0 / seconds / 4e10;
        assert!((load - 0.6).abs() < 0.6 * 6.0 * 0.0058, "{load}");
        assert!(flows.iter().all(|flow| flow.destination.0 < 4 && (4..36).contains(&flow.source.0)));
        assert!(flows.is_sorted_by_key(|flow| flow.at));
    }
}

#[test]
fn a_request_asks_fan_in_distinct_servers() {
    let mut rpc = Rpc::new(&endpoints(0..4), &endpoints(2..10), rpc(0.5, fixed(1000), 7)).unwrap();
    let mut clients = BTreeSet::new();
    for request in take(&mut rpc, 7 * 500).chunks(7) {
        let servers: BTreeSet<_> = request.iter().map(|flow| flow.source).collect();
        assert_eq!(servers.len(), 7);
        assert!(
            request.iter().all(|flow| (flow.at, flow.destination) == (request[0].at, request[0].destination))
        );
        assert!(!servers.contains(&request[0].destination), "nobody asks itself");
        clients.insert(request[0].destination);
    }
    assert_eq!(clients.len(), 4);
}

/// 90 pairs of 10 endpoints, 1000 flows each with a standard deviation of 31.4. Six of them, over 90 pairs, have a false
/// alarm rate below 2e-7.
#[test]
fn all_to_all_draws_pairs_uniformly() {
    let mut all = Rpc::all_to_all(&endpoints(0..10), rpc(0.5, fixed(1000), 1)).unwrap();
    let mut counts = BTreeMap::new();
    for pair in pairs(&take(&mut all, 90_000)) {
        *counts.entry(pair).or_insert(0usize) += 1;
    }
    assert_eq!(counts.len(), 90);
    assert!(counts.iter().all(|(pair, count)| pair.0 != pair.1 && count.abs_diff(1000) < 189), "{counts:?}");
}

/// 16 endpoints, 4 per pod, 2 per edge router, 8000 flows: half stay at the edge, 3 of 10 in the pod; off by more than six
/// standard deviations of 45 or 41 with probability below 4e-9.
#[test]
fn staggered_flows_stay_local_as_configured() {
    let staggered = Staggered { endpoints_per_edge: 2, endpoints_per_pod: 4, edge: 0.5, pod: 0.3 };
    let mut counts = [0usize; 3];
    for index in 0..500 {
        let schedule = Schedule::staggered(&endpoints(0..16), staggered, &Each { index, ..each(1) }).unwrap();
        for (source, destination) in pairs(schedule.flows()) {
            assert_ne!(source, destination);
            let place = if source / 2 == destination / 2 {
                0
            } else {
                1 + usize::from(source / 4 != destination / 4)
            };
            counts[place] += 1;
        }
    }
    assert!(counts[0].abs_diff(4000) < 6 * 45 && counts[1].abs_diff(2400) < 6 * 41, "{counts:?}");
}

/// 32,000 flows of 5 endpoints: each of 20 pairs 1600 times with a standard deviation of 39.
#[test]
fn random_pairs_are_uniform() {
    let mut counts = BTreeMap::new();
    for index in 0..6400 {
        let schedule = Schedule::random(&endpoints(0..5), &Each { index, ..each(1) }).unwrap();
        pairs(schedule.flows()).into_iter().for_each(|pair| *counts.entry(pair).or_insert(0usize) += 1);
    }
    assert_eq!(counts.len(), 20);
    assert!(
        counts.iter().all(|(pair, count)| pair.0 != pair.1 && count.abs_diff(1600) < 6 * 39),
        "{counts:?}"
    );
}

#[test]
fn merged_workloads_are_in_order_and_get_their_completions() {
    let incast = Incast::new(&endpoints(1..3), EndpointId(0), rounds(2)).unwrap();
    let file = Schedule::from_text("0.000000005,8,9,1\n10ns,8,9,2\n20ns,8,9,3\n5us,8,9,4", 10).unwrap();
    let mut merged = Merged::new(vec![Box::new(incast), Box::new(file)]);
    let flows = take(&mut merged, 5);
    assert_eq!(pairs(&flows), [(8, 9), (1, 0), (2, 0), (8, 9), (8, 9)]);
    assert_eq!((merged.part_of(1), merged.part_of(4), merged.part_of(5)), (Some(0), Some(1), None));
    for flow in [0, 1, 3, 4, 99] {
        merged.completed(flow, Timestamp(50));
        assert_eq!(merged.next_start(), Some(Timestamp(5000)), "incast waits for flow 2");
    }
    merged.completed(2, Timestamp(60));
    let flows = take(&mut merged, 100);
    assert_eq!(pairs(&flows), [(1, 0), (2, 0), (8, 9)]);
    assert_eq!(flows[0].at, Timestamp(1060));
}

#[test]
fn a_merged_workload_translates_flow_numbers() {
    let file = Schedule::from_text("0s,8,9,1\n0s,8,9,2\n0s,8,9,3", 10).unwrap();
    let shuffle = Shuffle::new(&endpoints(0..4), shuffled(1)).unwrap();
    let mut merged = Merged::new(vec![Box::new(file), Box::new(shuffle)]);
    let flows = take(&mut merged, 100);
    assert_eq!(flows.len(), 7);
    for flow in [5, 3, 6] {
        merged.completed(flow, Timestamp(100));
        let next = take(&mut merged, 100);
        assert_eq!(
            (next.len(), next[0].source),
            (1, flows[flow as usize].source),
            "the endpoint whose flow is done"
        );
    }
}

#[test]
fn a_limited_workload_ends_by_number_and_by_time() {
    let all = || Rpc::all_to_all(&endpoints(0..4), rpc(0.5, fixed(1000), 1)).unwrap();
    assert_eq!(take(&mut Limited::new(all(), 10, Timestamp(u64::MAX)), 100).len(), 10);
    let until = take(&mut all(), 50)[49].at;
    assert_eq!(take(&mut Limited::new(all(), u64::MAX, until), 100).len(), 49);
}

#[test]
fn the_same_seed_gives_the_same_flows_for_any_sizes() {
    let sizes = |name: &str| FlowSizes::of(Sizes::Drawn(SizeDistribution::published(name).unwrap())).unwrap();
    let flows = |seed, name: &str| {
        let options = RpcOptions { seed, ..rpc(0.5, sizes(name), 1) };
        take(&mut Rpc::all_to_all(&endpoints(0..8), options).unwrap(), 1000)
    };
    assert_eq!(flows(1, "hadoop"), flows(1, "hadoop"));
    assert_ne!(flows(1, "hadoop"), flows(2, "hadoop"));
    assert_eq!(pairs(&flows(1, "hadoop")), pairs(&flows(1, "storage")));
}

/// Both exceed their medians in a quarter of 10,000 requests, with a standard deviation of 50 (hypergeometric). Six of
/// them, twice, have a false alarm rate below 4e-9. Drawn from one stream they would be correlated.
#[test]
fn sizes_do_not_depend_on_times() {
    let sizes = FlowSizes::of(Sizes::Drawn(SizeDistribution::published("hadoop").unwrap())).unwrap();
    let flows = take(&mut Rpc::all_to_all(&endpoints(0..8), rpc(0.5, sizes, 1)).unwrap(), 10_002);
    let gaps: Vec<u64> = flows.windows(2).map(|pair| pair[1].at.0 - pair[0].at.0).collect();
    let above = |values: &[u64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let median = sorted[values.len() / 2];
        values.iter().map(|&value| value > median).collect::<Vec<_>>()
    };
    let long = above(&gaps);
    let large = above(&flows.iter().map(|flow| flow.bytes).collect::<Vec<_>>());
    for lag in 0..2 {
        let both = long.iter().zip(&large[lag..]).filter(|&(&long, &large)| long && large).count();
        assert!(both.abs_diff(2500) < 300, "{both}");
    }
}

#[test]
fn invalid_patterns_are_refused() {
    let rpc_of =
        |clients, servers, options| Rpc::new(&endpoints(clients), &endpoints(servers), options).unwrap_err();
    let refused = |error: WorkloadError, expected: &str| {
        assert!(error.to_string().starts_with(expected), "{error}: {expected}");
    };
    refused(rpc_of(0..4, 4..8, rpc(0.0, fixed(1), 1)), "invalid load 0");
    refused(rpc_of(0..4, 4..8, rpc(f64::INFINITY, fixed(1), 1)), "invalid load inf");
    refused(rpc_of(0..4, 4..8, rpc(0.5, fixed(1), 0)), "invalid fan-in 0: expected 1 to 4");
    refused(rpc_of(0..4, 4..8, rpc(0.5, fixed(1), 5)), "invalid fan-in 5: expected 1 to 4");
    refused(rpc_of(0..4, 3..7, rpc(0.5, fixed(1), 4)), "invalid fan-in 4: expected 1 to 3");
    refused(rpc_of(0..0, 4..8, rpc(0.5, fixed(1), 1)), "0 clients: expected at least 1");
    refused(rpc_of(0..1, 0..1, rpc(0.5, fixed(1), 1)), "invalid fan-in 1: expected 1 to 0");
    refused(rpc_of(0..4, 4..8, rpc(0.5, fixed(UNBOUNDED), 1)), "unbounded flows have no load");
    refused(
        rpc_of(0..4, 4..8, RpcOptions { rate: BitRate(0), ..rpc(0.5, fixed(1), 1) }),
        "invalid link rate 0",
    );
    refused(
        Rpc::all_to_all(&endpoints(0..1), rpc(0.5, fixed(1), 1)).unwrap_err(),
        "1 endpoints: expected at least 2",
    );
    let twice = [EndpointId(3), EndpointId(4), EndpointId(3)];
    refused(
        Rpc::all_to_all(&twice, rpc(0.5, fixed(1), 1)).unwrap_err(),
        "endpoint h3 is listed twice in the endpoints",
    );

    let incast = |senders, options| Incast::new(&endpoints(senders), EndpointId(0), options).unwrap_err();
    refused(incast(0..3, rounds(1)), "endpoint h0 would send to itself");
    refused(incast(0..0, rounds(1)), "0 senders");
    refused(
        incast(1..3, IncastOptions { sizes: fixed(UNBOUNDED), ..rounds(1) }),
        "unbounded flows have no load",
    );
    let persistent = Schedule::persistent(&endpoints(0..3), EndpointId(2), Timestamp(0), Nanos::ZERO);
    refused(persistent.unwrap_err(), "endpoint h2 would send to itself");

    let shuffle = |endpoints: &[EndpointId], options| Shuffle::new(endpoints, options).unwrap_err();
    refused(shuffle(&endpoints(0..1), shuffled(1)), "1 endpoints");
    refused(shuffle(&endpoints(0..9000), shuffled(1)), "9000 endpoints: expected at most 8192");
    refused(shuffle(&endpoints(0..9), shuffled(0)), "0 flows at a time");
    refused(
        shuffle(&endpoints(0..9), ShuffleOptions { sizes: fixed(UNBOUNDED), ..shuffled(1) }),
        "unbounded flows",
    );
    refused(Schedule::random(&endpoints(0..1), &each(1)).unwrap_err(), "1 endpoints");
    refused(Schedule::random_bijection(&endpoints(0..1), &each(1)).unwrap_err(), "1 endpoints");

    let good = Staggered { endpoints_per_edge: 2, endpoints_per_pod: 4, edge: 0.5, pod: 0.3 };
    let staggered = |staggered| Schedule::staggered(&endpoints(0..16), staggered, &each(1)).unwrap_err();
    refused(
        staggered(Staggered { edge: -0.1, ..good }),
        "invalid share of flows to the same edge router -0.1",
    );
    refused(
        staggered(Staggered { pod: 0.6, ..good }),
        "invalid sum of the shares of edge router and pod 1.1",
    );
    refused(staggered(Staggered { endpoints_per_edge: 1, ..good }), "1 endpoints of an edge router");
    refused(
        staggered(Staggered { endpoints_per_edge: 4, ..good }),
        "4 endpoints of a pod: expected at least 5",
    );
    refused(
        staggered(Staggered { endpoints_per_edge: 3, ..good }),
        "4 endpoints of a pod: expected at least 6",
    );
    refused(staggered(Staggered { endpoints_per_pod: 6, ..good }), "16 endpoints: expected at least 18");
    refused(
        staggered(Staggered { endpoints_per_pod: usize::MAX, ..good }),
        "16 endpoints: expected at least",
    );
}

#[test]
fn a_flow_file_is_read_in_order_of_time() {
    let text = "# two flows\nstart,source,destination,bytes,dscp\n0.5, h1, 2, 10MB, 46\r\n\n100us,0,1,forever # and on\n";
    let flows = Schedule::from_text(text, 3).unwrap().flows().to_vec();
    let flow = |at, source, destination, bytes, dscp| FlowStart {
        at: Timestamp(at),
        source: EndpointId(source),
        destination: EndpointId(destination),
        bytes,
        dscp,
    };
    assert_eq!(flows, [flow(100_000, 0, 1, UNBOUNDED, 0), flow(500_000_000, 1, 2, 10_000_000, 46)]);
    assert!(Schedule::from_text("", 3).unwrap().flows().is_empty());
}

#[test]
fn an_invalid_flow_file_names_line_and_expectation() {
    for (text, expected) in [
        ("0,1,2", "line 1: 3 fields: expected start,source,destination,bytes and optionally dscp"),
        ("\n0,1,2,3,4,5", "line 2: 6 fields"),
        ("0,1,2,3\nstart,source,destination,bytes", "line 2: source `source`: expected an endpoint below 9"),
        ("0,9,2,3", "line 1: source `9`: expected an endpoint below 9"),
        ("0,1,70000,3", "line 1: destination `70000`"),
        ("0,1,hh2,3", "line 1: destination `hh2`"),
        ("0,2,h2,3", "line 1: a flow from h2 to itself"),
        ("soon,1,2,3", "line 1: start `soon`: expected seconds, or a length of time as in 10ms"),
        ("-1,1,2,3", "line 1: start `-1`"),
        ("1e99,1,2,3", "line 1: start `1e99`"),
        (",1,2,3", "line 1: start ``"),
        ("0,1,2,0", "line 1: bytes `0`: expected an amount of at least 1"),
        ("0,1,2,lots", "line 1: bytes `lots`"),
        ("0,1,2,3,64", "line 1: dscp `64`: expected 0 to 63"),
    ] {
        let error = Schedule::from_text(text, 9).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}
