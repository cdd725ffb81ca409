use std::collections::BTreeSet;

use super::*;
use crate::workloads::random::Random;

/// 32 endpoints, load 0.8, full-size packets of a slot each.
fn rack() -> Rack {
    Rack {
        first: EndpointId(0),
        endpoints: 32,
        network: 32,
        destinations: Destinations::Uniform,
        load: 0.8,
        slot_bytes: 1538,
        mix: PacketMix::of(PacketKind::of_length(1538)).unwrap(),
        seed: 1,
    }
}

fn run(senders: &mut dyn PacketWorkload, slots: u64) -> Vec<Request> {
    let mut requests = Vec::new();
    (0..slots).for_each(|slot| senders.slot(Slot(slot), &mut requests));
    requests
}

/// The number of requests in each slot.
fn counts(senders: &mut dyn PacketWorkload, slots: u64) -> Vec<f64> {
    let mut requests = Vec::new();
    let mut count = |slot| {
        requests.clear();
        senders.slot(Slot(slot), &mut requests);
        requests.len() as f64
    };
    (0..slots).map(&mut count).collect()
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64)
}

fn pairs(requests: &[Request]) -> Vec<(u16, u16)> {
    requests.iter().map(|request| (request.packet.source().0, request.packet.destination().0)).collect()
}

/// Compared with mean^k e^-mean / k!, by logarithms, and with mean and variance, which both equal `mean`.
#[test]
fn the_table_is_the_poisson_distribution() {
    for mean in [1e-9, 0.1, 1.0, 25.6, 700.0, 819.2, 1e6] {
        let table = PoissonTable::new(mean).unwrap();
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for (k, probability) in table.probabilities() {
            let k = k as f64;
            let expected = libm::exp(k * libm::log(mean) - mean - libm::lgamma(k + 1.0));
            // lgamma loses about as many digits as the mean has.
            assert!(
                (probability - expected).abs() < 1e-11 + 1e-15 * mean,
                "{mean} {k}: {probability} {expected}"
            );
            sum += probability;
            first += probability * k;
            second += probability * (k - mean) * (k - mean);
        }
        assert!((sum - 1.0).abs() < 1e-12, "{mean}");
        assert!((first / mean - 1.0).abs() < 1e-8, "{mean}: {first}");
        assert!((second / mean - 1.0).abs() < 1e-6, "{mean}: {second}");
    }
    for mean in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert!(PoissonTable::new(mean).is_err(), "{mean}");
    }
}

/// 25.6 packets per slot on average. Over 40,000 slots the mean is off by more than six standard errors of 0.0253, or
/// the variance by more than six of 0.182, with probability below 4e-9.
#[test]
fn poisson_senders_offer_their_load() {
    let counts = counts(&mut PoissonSenders::new(&rack()).unwrap(), 40_000);
    let (mean, variance) = mean_and_variance(&counts);
    assert!((mean - 25.6).abs() < 6.0 * 0.0253, "{mean}");
    assert!((variance - 25.6).abs() < 6.0 * 0.182, "{variance}");
}

/// 992 pairs, about 1032 packets each in 40,000 slots: chi-squared with 991 degrees of freedom has mean 991 and
/// standard deviation 44.5. Seven of them have a false alarm rate below 1e-9.
#[test]
fn each_pair_is_as_likely_as_another() {
    let requests = run(&mut PoissonSenders::new(&rack()).unwrap(), 40_000);
    let mut counts = vec![0.0; 32 * 32];
    for (source, destination) in pairs(&requests) {
        counts[usize::from(source) * 32 + usize::from(destination)] += 1.0;
    }
    assert!((0..32).all(|own| counts[own * 33] == 0.0), "nobody sends to itself");
    let expected = requests.len() as f64 / 992.0;
    let others = (0..32 * 32).filter(|pair| pair % 33 != 0);
    let chi_squared: f64 = others.map(|pair| (counts[pair] - expected).powi(2) / expected).sum();
    assert!((chi_squared - 991.0).abs() < 7.0 * 44.5, "{chi_squared}");
}

/// A rack of 4 in the middle of 12. A quarter of about 16,000 packets leaves; off by more than six standard deviations
/// of 55 with probability below 2e-9. Every possible pair occurs.
#[test]
fn the_given_share_leaves_the_rack() {
    let some = Rack { first: EndpointId(4), endpoints: 4, network: 12, ..rack() };
    let rack = Rack { destinations: Destinations::Leaving(0.25), ..some.clone() };
    let pairs = pairs(&run(&mut PoissonSenders::new(&rack).unwrap(), 5_000));
    let leaving = pairs.iter().filter(|(_, destination)| !(4..8).contains(destination)).count();
    assert!(leaving.abs_diff(pairs.len() / 4) < 6 * 55, "{leaving} of {}", pairs.len());
    let distinct: BTreeSet<_> = pairs.iter().copied().collect();
    assert_eq!(distinct.len(), 4 * 11);
    assert!(pairs.iter().all(|&(source, destination)| (4..8).contains(&source) && source != destination));

    // Uniform over the network: 8 of 11 leave.
    let pairs = self::pairs(&run(&mut PoissonSenders::new(&some).unwrap(), 5_000));
    let leaving = pairs.iter().filter(|(_, destination)| !(4..8).contains(destination)).count();
    assert!(leaving.abs_diff(pairs.len() * 8 / 11) < 6 * 57, "{leaving} of {}", pairs.len());
    for share in [0.0, 1.0] {
        let rack = Rack { destinations: Destinations::Leaving(share), ..some.clone() };
        let pairs = self::pairs(&run(&mut PoissonSenders::new(&rack).unwrap(), 500));
        assert!(pairs.iter().all(|(_, destination)| (4..8).contains(destination) == (share == 0.0)));
    }
}

#[test]
fn all_racks_use_the_same_permutation() {
    let mut to = [None; 12];
    for first in [0, 4, 8] {
        let rack = Rack { first: EndpointId(first), endpoints: 4, network: 12, ..rack() };
        let rack = Rack { destinations: Destinations::Permutation, ..rack };
        for (source, destination) in pairs(&run(&mut ConstantSenders::new(&rack).unwrap(), 100)) {
            assert!((first..first + 4).contains(&source) && source != destination);
            assert_eq!(*to[usize::from(source)].get_or_insert(destination), destination);
        }
    }
    let destinations: BTreeSet<_> = to.iter().flatten().collect();
    assert_eq!(destinations.len(), 12);
}

/// 0.8 of 32 packets per slot: each endpoint sends in 4 of 5 slots, so there are 25 or 26 packets in each.
#[test]
fn constant_senders_take_turns() {
    let mut senders = ConstantSenders::new(&rack()).unwrap();
    let counts = counts(&mut senders, 10);
    assert!(counts.iter().all(|&count| count == 25.0 || count == 26.0), "{counts:?}");
    let mut senders = ConstantSenders::new(&rack()).unwrap();
    let requests = run(&mut senders, 1000);
    assert!(requests.len().abs_diff(25_600) <= 1, "{}", requests.len());
    let in_turn = pairs(&requests).iter().zip((0..32).cycle()).all(|(pair, turn)| pair.0 == turn);
    assert!(in_turn);
}

/// 64-byte packets are 24 times as many as full-size ones. Lengths, classes and priorities have the given frequencies:
/// of at least 20,000 packets a quarter, off by more than six standard deviations with probability below 2e-9.
#[test]
fn kinds_are_drawn_by_weight_and_the_load_counts_bytes() {
    let small = PacketKind { length: 84, traffic_class: 46 << 2, remaining: 7 };
    let mix = PacketMix::mixed(&[(PacketKind::of_length(1538), 3.0), (small, 1.0)]).unwrap();
    assert_eq!(mix.mean_length(), (3.0 * 1538.0 + 84.0) / 4.0);
    let rack = Rack { mix, ..rack() };
    let requests = run(&mut PoissonSenders::new(&rack).unwrap(), 1000);
    let is_small = |request: &Request| {
        (request.packet.length(), request.packet.dscp(), request.remaining) == (84, 46, 7)
    };
    let (n, smalls) =
        (requests.len() as f64, requests.iter().filter(|request| is_small(request)).count() as f64);
    assert!((smalls - n / 4.0).abs() < 6.0 * (n * 3.0 / 16.0).sqrt(), "{smalls} of {n}");
    let bytes: f64 = requests.iter().map(|request| f64::from(request.packet.length())).sum();
    // Standard error of the load: 0.8 * sqrt(second moment) / (mean sqrt(n)), about 0.0051.
    assert!((bytes / (32_000.0 * 1538.0) - 0.8).abs() < 6.0 * 0.0051, "{bytes}");
}

fn bursts(hurst: f64) -> Bursts {
    Bursts { hurst, mean_slots: 20.0, rate: 0.25 }
}

/// Averaged over 200 seeds, windows of 50 slots at the start and later contain 0.8 of the packets. The measured
/// standard deviation of such an average is 0.005; six of them are allowed.
#[test]
fn bursts_offer_their_load_from_the_first_slot_on() {
    for hurst in [0.5, 0.8] {
        let mut windows = [0.0; 3];
        for seed in 0..200 {
            let mut senders = BurstSenders::new(&Rack { seed, ..rack() }, bursts(hurst)).unwrap();
            let counts = counts(&mut senders, 450);
            for (window, slots) in windows.iter_mut().zip([0..50, 200..250, 400..450]) {
                *window += counts[slots].iter().sum::<f64>() / (50.0 * 32.0 * 200.0);
            }
            assert_eq!(senders.refused(), 0);
        }
        assert!(windows.iter().all(|load| (load - 0.8).abs() < 0.03), "{hurst}: {windows:?}");
    }
}

/// Slope of log variance against log time, from 64 to 4096 slots, least squares; H = 1 + slope / 2.
fn hurst_of(counts: &[f64]) -> f64 {
    let point = |power: u32| {
        let width = 1usize << power;
        let means: Vec<f64> =
            counts.chunks_exact(width).map(|part| part.iter().sum::<f64>() / width as f64).collect();
        (f64::from(power), mean_and_variance(&means).1.log2())
    };
    let points: Vec<(f64, f64)> = (6..=12).map(point).collect();
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / n, sum.1 + point.1 / n));
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    1.0 + covariance / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>() / 2.0
}

/// 2^19 slots, averaged over seeds 1 to 4. Over 64 such averages of other seeds the estimates had a standard deviation
/// of 0.02, and were low by 0.02 at H = 0.8 and 0.044 at H = 0.9, since a finite time cannot show all of a long memory.
#[test]
fn the_variance_of_bursts_follows_the_hurst_parameter() {
    for hurst in [0.7, 0.8, 0.9] {
        let estimate = |seed| {
            let rack = Rack { seed, load: 0.1, ..rack() };
            let bursts = Bursts { hurst, mean_slots: 8.0, rate: 1.0 };
            hurst_of(&counts(&mut BurstSenders::new(&rack, bursts).unwrap(), 1 << 19))
        };
        let mean = (1..=4).map(estimate).sum::<f64>() / 4.0;
        assert!((mean - hurst).abs() < 0.1, "H = {hurst}: {mean}");
    }
    let poisson =
        hurst_of(&counts(&mut PoissonSenders::new(&Rack { load: 0.1, ..rack() }).unwrap(), 1 << 19));
    assert!((poisson - 0.5).abs() < 0.05, "{poisson}");
}

/// One burst at a time: packets of a pair are four slots apart, a quarter of the rate.
#[test]
fn a_burst_sends_at_a_constant_rate() {
    let rack = Rack { load: 0.001, ..rack() };
    let bursts = Bursts { hurst: 0.6, mean_slots: 200.0, rate: 0.25 };
    let mut senders = BurstSenders::new(&rack, bursts).unwrap();
    let (mut requests, mut last, mut gaps) = (Vec::new(), std::collections::BTreeMap::new(), Vec::new());
    for slot in 0..100_000 {
        requests.clear();
        senders.slot(Slot(slot), &mut requests);
        for pair in pairs(&requests) {
            gaps.extend(last.insert(pair, slot).map(|before| slot - before));
        }
    }
    let regular = gaps.iter().filter(|&&gap| gap == 4).count();
    assert!(gaps.len() > 500 && regular * 10 > gaps.len() * 9, "{regular} of {}", gaps.len());
}

/// With alpha = 2, half of the active bursts have less than the shortest duration left. Of 10,000 draws that is 5000
/// with a standard deviation of 50; six of them have a false alarm rate below 2e-9. Above, the rest is Pareto with
/// shape 1: half exceed twice the shortest duration.
#[test]
fn residual_bursts_are_longer_than_new_ones() {
    let bursts = Bursts { hurst: 0.5, mean_slots: 10.0, rate: 1.0 };
    assert_eq!((bursts.shape(), bursts.shortest()), (2.0, 5.0));
    let mut random = Random::new(1, "residuals", 0);
    let left: Vec<f64> = (0..10_000).map(|_| bursts.residual(&mut random)).collect();
    let below = |bound: f64| left.iter().filter(|&&left| left < bound).count();
    assert!(below(5.0).abs_diff(5000) < 300, "{}", below(5.0));
    assert!(below(2.5).abs_diff(2500) < 260, "{}", below(2.5));
    assert!(below(10.0).abs_diff(7500) < 260, "{}", below(10.0));
}

/// Little's law: 25.6 packets per slot, from bursts of a quarter of a packet per slot, are 102.4 bursts with a standard
/// deviation of 10.1. Six of them, over 20 seeds, have a false alarm rate below 4e-8.
#[test]
fn active_bursts_follow_littles_law() {
    for seed in 0..20 {
        let rack = Rack { seed, ..rack() };
        let begun =
            BurstSenders::new(&rack, Bursts { mean_slots: 1000.0, ..bursts(0.8) }).unwrap().under_way();
        assert!((begun as f64 - 102.4).abs() < 6.0 * 10.1, "{begun}");
    }
}

#[test]
fn the_same_seed_sends_the_same_packets_and_another_seed_others() {
    let all = |seed| {
        let rack = Rack { seed, ..rack() };
        let mut senders: [Box<dyn PacketWorkload>; 3] = [
            Box::new(PoissonSenders::new(&rack).unwrap()),
            Box::new(ConstantSenders::new(&rack).unwrap()),
            Box::new(BurstSenders::new(&rack, bursts(0.8)).unwrap()),
        ];
        senders.each_mut().map(|senders| run(&mut **senders, 100))
    };
    assert_eq!(all(1), all(1));
    for (one, other) in all(1).iter().zip(all(2)) {
        assert_ne!(*one, other);
    }
}

#[test]
fn each_pair_is_a_flow_and_each_packet_has_its_own_number() {
    let requests = run(&mut PoissonSenders::new(&rack()).unwrap(), 1000);
    let packets = || requests.iter().map(|request| request.packet);
    assert!(packets().zip(0..).all(|(packet, id)| packet.id() == id));
    assert!(
        packets()
            .all(|packet| packet.flow() == packet.source().0 as u32 * 32 + packet.destination().0 as u32)
    );
}

#[test]
fn invalid_racks_are_refused() {
    let refused = |rack: Rack| PoissonSenders::new(&rack).unwrap_err().to_string();
    assert!(refused(Rack { load: 0.0, ..rack() }).starts_with("invalid load 0"));
    assert!(refused(Rack { load: f64::NAN, ..rack() }).starts_with("invalid load NaN"));
    assert!(refused(Rack { slot_bytes: 0, ..rack() }).starts_with("invalid link rate 0"));
    assert!(refused(Rack { endpoints: 0, ..rack() }).starts_with("0 endpoints in a rack"));
    assert!(refused(Rack { endpoints: 1, network: 1, ..rack() }).starts_with("1 endpoints in all"));
    assert!(
        refused(Rack { first: EndpointId(1), ..rack() })
            .starts_with("32 endpoints in a rack: expected at most 31")
    );
    assert!(refused(Rack { network: 1 << 17, ..rack() }).starts_with("131072 endpoints in all"));
    let to = |destinations| refused(Rack { destinations, ..rack() });
    assert!(to(Destinations::Leaving(1.5)).starts_with("invalid share of leaving traffic 1.5"));
    assert!(to(Destinations::Leaving(0.5)).starts_with("0 endpoints of other racks"));
    let alone = Rack { endpoints: 1, destinations: Destinations::Leaving(0.5), ..rack() };
    assert!(refused(alone.clone()).starts_with("1 endpoints in a rack: expected at least 2"));
    assert!(PoissonSenders::new(&Rack { destinations: Destinations::Uniform, ..alone }).is_ok());
    assert!(matches!(PacketMix::of(PacketKind::of_length(0)), Err(WorkloadError::Empty(_))));
    assert!(matches!(PacketMix::mixed(&[]), Err(WorkloadError::Weight(_))));

    let refused = |bursts| BurstSenders::new(&rack(), bursts).unwrap_err();
    for hurst in [0.49, 1.0, f64::NAN] {
        assert!(matches!(refused(bursts(hurst)), WorkloadError::Hurst(_)));
    }
    for (mean_slots, rate) in
        [(0.0, 1.0), (1.0, 0.0), (f64::INFINITY, 1.0), (1.0, 1e-30), (3.9, 0.25), (1.0, 1e30), (1e13, 1.0)]
    {
        let bursts = Bursts { hurst: 0.8, mean_slots, rate };
        assert!(matches!(refused(bursts), WorkloadError::Bursts { .. }), "{bursts:?}");
    }
}
