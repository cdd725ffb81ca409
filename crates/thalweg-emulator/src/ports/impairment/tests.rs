use proptest::prelude::*;
use thalweg_network::topology::shapes::{Tiers, dumbbell};
use thalweg_network::topology::{LinkSpec, LossRate, Topology};
use thalweg_wire::BitRate;

use super::*;

const CLOCK: SlotClock = SlotClock { slot_bytes: 1_538, rate: BitRate(1_000_000_000) };

/// Two hosts with one link between their routers, link 2.
fn topology(loss: [LossRate; 2], jitter: Nanos) -> Topology {
    let uplink = LinkSpec { delay: Nanos::from_millis(50), loss, jitter, ..LinkSpec::default() };
    dumbbell(1, Tiers { access: LinkSpec::default(), uplink }).unwrap()
}

fn impairments(loss: [f64; 2], jitter: Nanos, seed: u64) -> [Impairment; 2] {
    let topology = topology(loss.map(|rate| LossRate::new(rate).unwrap()), jitter);
    [0, 1].map(|from| Impairment::new(&topology.links()[2], LinkId(2), from, CLOCK, seed))
}

#[test]
fn links_without_loss_and_jitter_are_not_impaired() {
    assert!(impairments([0.0; 2], Nanos::ZERO, 1).iter().all(Impairment::is_none));
    let [forth, back] = impairments([0.0, 0.1], Nanos::ZERO, 1);
    assert!(forth.is_none() && !back.is_none());
    let jitter = impairments([0.0; 2], Nanos::from_millis(2), 1);
    assert!(jitter.iter().all(|impairment| !impairment.is_none() && impairment.loss.threshold == 0));
}

/// Times as in an emulation: packets of one slot, one after the other; a packet now and then; packets of 84 bytes.
const SPACINGS: [u64; 3] = [1 << 24, 997 << 24, 916_291];

/// Losses among 200,000 packets, losses of two packets in a row, and losses in both directions at the same time are as
/// many as those of independent events, within 5 standard deviations. A false alarm for 72 numbers: 4e-5; times and seeds are fixed.
#[test]
fn losses_are_independent_and_as_many_as_the_rate_says() {
    const PACKETS: u64 = 200_000;
    for seed in [1, 2] {
        for rate in [1e-3, 0.01, 0.2, 0.5] {
            let [forth, back] = impairments([rate; 2], Nanos::ZERO, seed);
            for spacing in SPACINGS {
                let lost = |loss: &Loss, packet: u64| loss.loses(Ticks(packet * spacing + 12_345));
                let count =
                    |is_lost: &dyn Fn(u64) -> bool| (0..PACKETS).filter(|&at| is_lost(at)).count() as f64;
                let one = count(&|at| lost(&forth.loss, at));
                let two = count(&|at| lost(&forth.loss, at) && lost(&forth.loss, at + 1));
                let both = count(&|at| lost(&forth.loss, at) && lost(&back.loss, at));
                for (found, rate) in [(one, rate), (two, rate * rate), (both, rate * rate)] {
                    let expected = PACKETS as f64 * rate;
                    // Pairs of packets overlap, which adds to their deviation.
                    let deviation = (expected * (1.0 + 2.0 * rate.sqrt())).sqrt();
                    assert!(
                        (found - expected).abs() <= 5.0 * deviation + 1.0,
                        "{rate} {spacing}: {found} of {expected}"
                    );
                }
            }
        }
    }
    let [all, none] = impairments([1.0, 0.0], Nanos::ZERO, 1);
    assert!((0..1_000).all(|at| all.loss.loses(Ticks(at)) && !none.loss.loses(Ticks(at))));
}

/// Over 10,000 draws the mean is within 5 of its standard deviations, and so is the variance; seeds are fixed.
#[test]
fn the_delay_varies_around_its_mean_within_the_jitter() {
    for (seed, jitter) in
        [(1, Nanos::from_millis(2)), (2, Nanos::from_micros(10)), (3, Nanos::from_millis(50))]
    {
        let [jitter, back] = impairments([0.0; 2], jitter, seed).map(|impairment| impairment.jitter);
        let (range, period) = (f64::from(jitter.range), 2 * u64::from(jitter.range));
        let step = (period / 16).max(1);
        let samples: Vec<f64> = (0..160_000).map(|at| f64::from(jitter.extra(at * step)) / range).collect();
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let variance = samples.iter().map(|at| (at - mean).powi(2)).sum::<f64>() / samples.len() as f64;
        // Uniform from 0 to 1, and 2/3 of its variance by the lines between draws.
        assert!((mean - 0.5).abs() < 5.0 * (1.0f64 / 12.0 / 10_000.0).sqrt(), "{mean}");
        assert!((variance / (1.0 / 18.0) - 1.0).abs() < 0.05, "{variance}");
        let (least, most) =
            (samples.iter().copied().fold(1.0, f64::min), samples.iter().copied().fold(0.0, f64::max));
        assert!((0.0..0.05).contains(&least) && (0.95..=1.0).contains(&most), "{least} to {most}");
        let alike = (0..10_000).filter(|&at| jitter.extra(at * period) == back.extra(at * period)).count();
        assert!(
            alike as f64 <= 20.0 + 2.0 * 10_000.0 / range,
            "both directions vary by themselves: {alike} alike"
        );
    }
}

/// The plain version: a line between two draws, in floating-point numbers.
fn oracle(jitter: &Jitter, finish: u64) -> f64 {
    let period = 2.0 * f64::from(jitter.range);
    let draw = (finish as f64 / period).floor();
    let drawn = |number: f64| jitter.drawn(number as u64) as f64;
    let part = finish as f64 / period - draw;
    drawn(draw) + (drawn(draw + 1.0) - drawn(draw)) * part
}

proptest! {
    #[test]
    fn a_packet_never_overtakes_the_one_before(key: u64, range in 0..1u32 << 27, at in 0..1u64 << 46, gaps in prop::collection::vec(0..200u64, 1..100)) {
        let jitter = Jitter { key, range };
        let (mut finish, mut earlier) = (at, None);
        for gap in gaps {
            finish += gap;
            let extra = jitter.extra(finish);
            prop_assert!(extra <= range);
            let arrival = finish + u64::from(extra);
            if let Some(earlier) = earlier {
                // At most at twice the rate, but for rounding.
                prop_assert!(arrival >= earlier && arrival - earlier + 1 >= gap / 2, "{gap}: {earlier} {arrival}");
            }
            earlier = Some(arrival);
        }
    }

    #[test]
    fn the_delay_is_that_of_the_plain_version(key: u64, range in 1..1u32 << 27, finish in 0..1u64 << 46) {
        let jitter = Jitter { key, range };
        let (found, expected) = (f64::from(jitter.extra(finish)), oracle(&jitter, finish));
        prop_assert!((found - expected).abs() < 1.1, "{found}, not {expected}");
    }
}
