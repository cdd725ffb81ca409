//! Random loss and jitter of links.

use thalweg_network::topology::LossRate;

use super::*;

fn rates(rates: [f64; 2]) -> [LossRate; 2] {
    rates.map(|rate| LossRate::new(rate).unwrap())
}

/// A rack of 1 Gbit/s whose links have a delay of 1 ms, with loss from endpoints and to them.
fn lossy_rack(loss: [f64; 2], jitter: Nanos) -> Topology {
    let link = LinkSpec { rate: BitRate(GIGABIT), delay: Nanos::from_millis(1), loss: rates(loss), jitter };
    rack(2, link).unwrap()
}

/// What happened to the packets from endpoint 0 to endpoint 1.
#[derive(Debug, Default, PartialEq)]
struct Fates {
    /// Times of arrival in nanoseconds by id, in order of arrival.
    arrived: Vec<(f64, u32)>,
    lost_from: Vec<u32>,
    lost_to: Vec<u32>,
}

/// Sends `packets` packets of three lengths, about every second slot one.
fn fates(topology: &Topology, seed: u64, packets: u32) -> Fates {
    let blueprint = Blueprint { seed, ..Blueprint::new(topology, 1_500, seed) };
    let build = |routing, shape: RouterPorts<'_>| drop_tail(routing, shape, &DropTailConfig { buffer: 64 });
    let mut network = Emulation::new(&blueprint, build).unwrap();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let (mut outcomes, mut fates, mut id) = (Vec::new(), Fates::default(), 0);
    let slot = network.clock().seconds() * 1e9;
    while id < packets || network.in_flight() > 0 {
        let bits = random.next_u64();
        if id < packets && bits & 1 == 0 {
            network.inject(&[request(0, 1, id, [84, 590, 1_538][(bits >> 8) as usize % 3])]);
            id += 1;
        }
        network.advance(&mut outcomes);
        let now = network.now().0 as f64;
        for outcome in outcomes.drain(..) {
            let id = outcome.packet.id();
            match outcome.fate {
                Fate::Delivered => {
                    fates.arrived.push(((now - f64::from(outcome.packet.lag().0) / 128.0) * slot, id))
                }
                Fate::Dropped(Place::Endpoint(EndpointId(0)), Reason::LinkLoss) => fates.lost_from.push(id),
                Fate::Dropped(Place::Port(RouterId(0), PortIndex(1)), Reason::LinkLoss) => {
                    fates.lost_to.push(id)
                }
                fate => panic!("{fate:?}"),
            }
        }
    }
    let tallies = [network.interface_tally(EndpointId(0)), network.port_tally(RouterId(0), PortIndex(1))];
    let dropped = tallies.map(|tally| tally.verdicts.dropped[Reason::LinkLoss as usize]);
    assert_eq!(dropped, [fates.lost_from.len() as u64, fates.lost_to.len() as u64]);
    assert_eq!(tallies[0].sent.packets, u64::from(packets), "a lost packet was sent");
    assert_eq!(tallies[0].sent.packets, tallies[1].sent.packets + dropped[0]);
    fates
}

/// Each link loses its share of 20,000 packets, within 5 standard deviations. All others arrive when they would without
/// loss, but for the queue that lost packets are not in.
#[test]
fn a_link_loses_its_share_of_packets_in_each_direction() {
    let all = fates(&lossy_rack([0.0; 2], Nanos::ZERO), 1, 20_000);
    assert_eq!((all.arrived.len(), all.lost_from.len(), all.lost_to.len()), (20_000, 0, 0));
    let to = fates(&lossy_rack([0.0, 0.02], Nanos::ZERO), 1, 20_000);
    assert!(to.lost_from.is_empty());
    assert!((300..=500).contains(&to.lost_to.len()), "{} of 400", to.lost_to.len());
    let others: Vec<(f64, u32)> =
        all.arrived.iter().copied().filter(|(_, id)| !to.lost_to.contains(id)).collect();
    assert_eq!(to.arrived, others);
    let both = fates(&lossy_rack([0.1, 0.02], Nanos::ZERO), 1, 20_000);
    assert!((1_788..=2_212).contains(&both.lost_from.len()), "{} of 2,000", both.lost_from.len());
    assert!((267..=453).contains(&both.lost_to.len()), "{} of 360", both.lost_to.len());
    assert_eq!(both, fates(&lossy_rack([0.1, 0.02], Nanos::ZERO), 1, 20_000), "a seed gives the same losses");
    assert_ne!(both.lost_from, fates(&lossy_rack([0.1, 0.02], Nanos::ZERO), 2, 20_000).lost_from);
    assert!(fates(&lossy_rack([0.0, 1.0], Nanos::ZERO), 1, 100).arrived.is_empty());
}

/// Two links of 1 ms with a jitter of 400 us each, and links that are shorter than a slot.
#[test]
fn jitter_moves_arrivals_around_the_delay_and_keeps_their_order() {
    let jitter = Nanos::from_micros(400);
    let exact = fates(&lossy_rack([0.0; 2], Nanos::ZERO), 1, 20_000).arrived;
    let varied = fates(&lossy_rack([0.0; 2], jitter), 1, 20_000).arrived;
    assert!(varied.iter().map(|(_, id)| id).eq(exact.iter().map(|(_, id)| id)), "in order, and none is lost");
    let moved: Vec<f64> = varied.iter().zip(&exact).map(|(varied, exact)| varied.0 - exact.0).collect();
    // A slot is 12.3 us. Packets that come closer together wait for each other at the second link.
    let (least, most) =
        (moved.iter().copied().fold(0.0, f64::min), moved.iter().copied().fold(0.0, f64::max));
    assert!(
        (-800_100.0..-300_000.0).contains(&least) && (300_000.0..1_500_000.0).contains(&most),
        "{least} to {most}"
    );
    // 300 periods of 1.6 ms and their draws at both links: the mean of both is within 5 * 19 us.
    let mean = moved.iter().sum::<f64>() / moved.len() as f64;
    assert!((-95_000.0..150_000.0).contains(&mean), "{mean}");
    assert_eq!(varied, fates(&lossy_rack([0.0; 2], jitter), 1, 20_000).arrived);

    let short = LinkSpec {
        rate: BitRate(GIGABIT),
        delay: Nanos::from_micros(4),
        jitter: Nanos::from_micros(4),
        ..LinkSpec::default()
    };
    let short = fates(&rack(2, short).unwrap(), 1, 5_000).arrived;
    assert!(short.iter().map(|(_, id)| *id).eq(0..5_000));
}

/// A monitor port copies a packet before the link can lose it.
#[test]
fn lost_packets_are_mirrored() {
    let copies = |loss| {
        let topology = lossy_rack([0.0, loss], Nanos::ZERO);
        let (ports, rate) = (vec![PortIndex(1)], BitRate(10 * GIGABIT));
        let monitor = [Monitor { router: RouterId(0), ports, rate, buffer: Bytes(1 << 20) }];
        let blueprint = Blueprint { monitors: &monitor, ..Blueprint::new(&topology, 1_500, 1) };
        let build = |routing, shape: RouterPorts<'_>| drop_tail(routing, shape, &DropTailConfig::default());
        let mut network = Emulation::new(&blueprint, build).unwrap();
        let (mut outcomes, mut mirrored) = (Vec::new(), Vec::new());
        for id in 0..500 {
            network.inject(&[request(0, 1, id, 1_538)]);
            network.advance(&mut outcomes);
            network.take_mirrored(&mut mirrored);
        }
        let tally = network.port_tally(RouterId(0), PortIndex(1));
        (mirrored, tally.verdicts.dropped[Reason::LinkLoss as usize])
    };
    let ((lossless, none), (lossy, lost)) = (copies(0.0), copies(0.5));
    assert!(none == 0 && (140..280).contains(&lost), "{lost}");
    assert!(lossless.len() > 400 && lossless == lossy);
}

/// The emulated time of a slot follows the shortest time over a link, and the largest delay counts for the memory.
#[test]
fn the_limits_of_a_network_include_jitter() {
    let link = |jitter| LinkSpec {
        rate: BitRate(10 * GIGABIT),
        delay: Nanos::from_millis(900),
        jitter,
        ..LinkSpec::default()
    };
    let check = |jitter| Blueprint::new(&rack(2, link(jitter)).unwrap(), 1_500, 1).check();
    assert_eq!(check(Nanos::ZERO), Ok(()));
    let error = check(Nanos::from_millis(900)).unwrap_err();
    assert!(matches!(error, BlueprintError::Horizon { .. }), "{error}");
}
