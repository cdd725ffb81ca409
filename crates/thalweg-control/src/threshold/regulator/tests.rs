use proptest::prelude::*;

use super::*;

const MBPS: u64 = 1_000_000;

/// Windows of a day: six polls of 10 s each.
const DAY: usize = 1_440;

/// Packets per poll at about 1 Gbit/s.
const PACKETS: u64 = 1_000_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Log-normal with mean 1 and the standard deviation `DISPERSION`.
    fn noise(&mut self) -> f64 {
        let variance = (1.0 + DISPERSION * DISPERSION).ln();
        let normal = (-2.0 * self.share().ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos();
        (variance.sqrt() * normal - variance / 2.0).exp()
    }

    /// A count with this mean, whose fraction is decided by chance.
    fn count(&mut self, mean: f64) -> u64 {
        mean.floor() as u64 + u64::from(self.share() < mean.fract())
    }
}

/// A primary queue: its loss grows tenfold for each `tenfold` of R (figure 4.5 of the dissertation: loss rises with the rate of
/// undetected flows), and is acceptable at `acceptable_at`.
#[derive(Clone, Copy)]
struct Port {
    acceptable_at: f64,
    tenfold: f64,
    packets: u64,
}

impl Port {
    fn loss(self, options: &RegulatorOptions, rate_threshold: BitRate) -> f64 {
        let above = (rate_threshold.0 as f64 - self.acceptable_at) / self.tenfold;
        (options.acceptable_loss * 10_f64.powf(above)).min(0.5)
    }

    /// One poll, `noise` is that of its window.
    fn poll(self, options: &RegulatorOptions, rate: BitRate, noise: f64, random: &mut Random) -> Measurement {
        let mean = (self.loss(options, rate) * noise).min(1.0) * self.packets as f64;
        Measurement::Loss { packets: self.packets, drops: random.count(mean) }
    }
}

fn options() -> RegulatorOptions {
    RegulatorOptions { step: BitRate(5 * MBPS), floor: BitRate(5 * MBPS), ..RegulatorOptions::default() }
}

fn port(acceptable_mbps: f64) -> Port {
    Port { acceptable_at: acceptable_mbps * MBPS as f64, tenfold: 20.0 * MBPS as f64, packets: PACKETS }
}

fn regulator(base_mbps: u64) -> Regulator {
    Regulator::new(options(), BitRate(base_mbps * MBPS)).unwrap()
}

/// Simulates windows. Returns the changes, with the window of each.
fn run(regulator: &mut Regulator, port: Port, windows: usize, random: &mut Random) -> Vec<(usize, Change)> {
    let options = *regulator.options();
    let mut changes = Vec::new();
    for window in 0..windows {
        let noise = random.noise();
        for _ in 0..options.intervals {
            let measurement = port.poll(&options, regulator.rate_threshold(), noise, random);
            let step = regulator.observe(measurement);
            if step.change != Change::Kept {
                changes.push((window, step.change));
            }
        }
    }
    changes
}

fn loss(packets: u64, drops: u64) -> Measurement {
    Measurement::Loss { packets, drops }
}

fn window(regulator: &mut Regulator, drops: u64) -> Step {
    let last = regulator.options().intervals;
    (0..last).map(|_| regulator.observe(loss(PACKETS, drops))).last().unwrap()
}

#[test]
fn the_threshold_decreases_once_per_window_to_the_floor() {
    let mut regulator = regulator(20);
    let mut rates = Vec::new();
    for poll in 0..36 {
        let step = regulator.observe(loss(PACKETS, 1_000));
        assert_eq!(step.change == Change::Lowered, poll % 6 == 5 && poll < 18, "{poll}: {step:?}");
        rates.push(step.rate_threshold.0 / MBPS);
    }
    assert_eq!([rates[5], rates[11], rates[17], rates[35]], [15, 10, 5, 5]);
    assert_eq!(window(&mut regulator, 1_000).reason, Reason::AtFloor);
}

#[test]
fn the_loss_is_that_of_all_packets_not_a_mean_of_ratios() {
    let mut regulator = regulator(20);
    // One interval with few packets loses half of them; all together lose 5 of 5,000,010.
    let mut steps: Vec<Step> = (0..5).map(|_| regulator.observe(loss(PACKETS, 0))).collect();
    steps.push(regulator.observe(loss(10, 5)));
    assert_eq!(steps[5].change, Change::Kept);
    assert_eq!(steps[5].loss, Some(5.0 / 5_000_010.0));
}

#[test]
fn a_single_window_above_is_not_enough_but_four_are() {
    let mut regulator = regulator(20);
    let reasons: Vec<Reason> = (0..4).map(|_| window(&mut regulator, 15).reason).collect();
    assert_eq!(reasons, [Reason::Unproven, Reason::Unproven, Reason::Unproven, Reason::Above]);
    // The rule of the dissertation.
    let options = RegulatorOptions { evidence: 0.0, ..options() };
    let mut direct = Regulator::new(options, BitRate(20 * MBPS)).unwrap();
    assert_eq!(window(&mut direct, 11).reason, Reason::Above);
}

#[test]
fn an_increase_needs_calm_windows_and_enough_packets() {
    let mut regulator = regulator(20);
    window(&mut regulator, 1_000);
    let reasons: Vec<Reason> = (0..6).map(|_| window(&mut regulator, 0).reason).collect();
    assert_eq!(reasons[4], Reason::Calming { windows: 5, of: 6 });
    assert_eq!((&reasons[5], regulator.rate_threshold()), (&Reason::Low, BitRate(20 * MBPS)));
    assert_eq!(window(&mut regulator, 0).reason, Reason::AtBase);
    // 3 / (0.5 * 1e-5) = 600,000 packets prove that the loss is low; fewer prove nothing.
    let mut few = self::regulator(20);
    window(&mut few, 1_000);
    let reasons: Vec<Reason> =
        (0..60).map(|_| few.observe(loss(2_000, 0)).reason).skip(5).step_by(6).collect();
    assert_eq!(reasons[9], Reason::TooClose);
}

#[test]
fn one_drop_among_few_packets_proves_nothing() {
    let mut regulator = regulator(20);
    let steps: Vec<Step> =
        (0..60).map(|poll| regulator.observe(loss(100, u64::from(poll % 20 == 0)))).collect();
    assert!(steps.iter().all(|step| step.change == Change::Kept));
}

#[test]
fn a_sum_of_queues_leaves_the_threshold_alone_and_says_so() {
    let mut regulator = regulator(20);
    window(&mut regulator, 1_000);
    for _ in 0..100 {
        let step = regulator.observe(Measurement::SumOfQueues);
        assert_eq!((step.rate_threshold, step.reason.name()), (BitRate(15 * MBPS), "sum_of_queues"));
        assert!(step.reason.to_string().contains("R is left alone"));
    }
}

/// The sum of a port as loss spirals: a lower R redirects more flows, which lose more in the scavenger queue.
#[test]
fn the_sum_of_a_port_would_redirect_everything() {
    let drops = |rate: BitRate| 2_000 - 20 * (rate.0 / MBPS);
    let (mut by_sum, mut safe) = (regulator(100), regulator(100));
    for _ in 0..1_000 {
        let rate = by_sum.rate_threshold();
        by_sum.observe(loss(PACKETS, drops(rate).max(30)));
        safe.observe(Measurement::SumOfQueues);
    }
    assert_eq!(by_sum.rate_threshold(), options().floor, "the spiral that the scope prevents");
    assert_eq!(safe.rate_threshold(), BitRate(100 * MBPS));
}

#[test]
fn unusable_intervals_and_idle_windows_change_nothing() {
    let mut regulator = regulator(20);
    for _ in 0..5 {
        regulator.observe(loss(PACKETS, 1_000));
    }
    let step = regulator.observe(Measurement::Unusable("restarted".to_owned()));
    assert_eq!(step.reason.to_string(), "the interval is unusable: restarted");
    assert_eq!(regulator.observe(loss(PACKETS, 1_000)).change, Change::Lowered);
    for _ in 0..600 {
        assert_eq!(regulator.observe(loss(0, 0)).change, Change::Kept, "an idle port proves no low loss");
    }
}

#[test]
fn a_new_base_keeps_the_reduction() {
    let mut regulator = regulator(50);
    window(&mut regulator, 1_000);
    assert_eq!(regulator.set_base(BitRate(80 * MBPS)), BitRate(75 * MBPS));
    assert_eq!(regulator.set_base(BitRate(3 * MBPS)), BitRate(5 * MBPS), "the floor");
    assert_eq!(regulator.reduction(), BitRate(0));
    let options = RegulatorOptions { ceiling: BitRate(60 * MBPS), ..options() };
    let mut limited = Regulator::new(options, BitRate(100 * MBPS)).unwrap();
    assert_eq!(limited.rate_threshold(), BitRate(60 * MBPS));
    window(&mut limited, 1_000);
    assert_eq!(limited.rate_threshold(), BitRate(55 * MBPS));
}

/// 40 seeds, three days each, at constant traffic: R is found on the first day, and changes rarely afterwards. A limit cycle
/// with the shortest period, 6 windows up and 1 down, would make 400 changes a day.
#[test]
fn constant_traffic_shows_no_oscillation() {
    let mut worst = (0, 0);
    for seed in 0..40 {
        let (mut regulator, mut random) = (regulator(100), Random(seed));
        let port = port(52.0);
        let first = run(&mut regulator, port, DAY, &mut random).len();
        let later = run(&mut regulator, port, 2 * DAY, &mut random).len();
        worst = (worst.0.max(first), worst.1.max(later));
        let rate = regulator.rate_threshold().0 / MBPS;
        assert!((15..=60).contains(&rate), "seed {seed}: {rate} Mbit/s");
    }
    // 10 steps down from 100 Mbit/s, and attempts that fail.
    assert!(worst.0 <= 40 && worst.1 <= 12, "changes on the first day and the next two: {worst:?}");
}

/// The mean loss under the R that was found is at most the acceptable one, over 40 seeds and a day each.
#[test]
fn the_mean_loss_becomes_acceptable() {
    for seed in 0..40 {
        let (mut regulator, mut random) = (regulator(100), Random(seed));
        let port = port(52.0);
        run(&mut regulator, port, DAY, &mut random);
        let mut sum = 0.0;
        for _ in 0..DAY {
            run(&mut regulator, port, 1, &mut random);
            sum += port.loss(&options(), regulator.rate_threshold());
        }
        let mean = sum / DAY as f64 / options().acceptable_loss;
        assert!(mean <= 1.2, "seed {seed}: {mean} times the acceptable loss");
    }
}

/// Traffic becomes heavier: R follows within an hour. It becomes lighter: R returns to the base within a day, as caution
/// after failed attempts allows.
#[test]
fn a_step_of_traffic_is_followed() {
    for seed in 0..40 {
        let (mut regulator, mut random) = (regulator(100), Random(seed));
        run(&mut regulator, port(130.0), DAY, &mut random);
        assert!(
            regulator.rate_threshold() >= BitRate(85 * MBPS),
            "seed {seed}: {}",
            regulator.rate_threshold()
        );
        run(&mut regulator, port(30.0), 60, &mut random);
        assert!(
            regulator.rate_threshold() <= BitRate(45 * MBPS),
            "seed {seed}: {}",
            regulator.rate_threshold()
        );
        run(&mut regulator, port(150.0), DAY, &mut random);
        assert!(
            regulator.rate_threshold() >= BitRate(85 * MBPS),
            "seed {seed}: {}",
            regulator.rate_threshold()
        );
    }
}

/// Day and night: the loss that belongs to an R changes every hour. Changes stay bounded.
#[test]
fn a_daily_cycle_is_followed_without_oscillation() {
    for seed in 0..20 {
        let (mut regulator, mut random) = (regulator(100), Random(seed));
        let mut changes = 0;
        for hour in 0..72 {
            let angle = std::f64::consts::TAU * f64::from(hour % 24) / 24.0;
            changes += run(&mut regulator, port(60.0 + 30.0 * angle.cos()), 60, &mut random).len();
        }
        // Following the base exactly takes 24 steps a day.
        assert!(changes <= 3 * 36, "seed {seed}: {changes} changes in three days");
    }
}

/// What the rule prevents: without evidence, margin and back-off, the same traffic makes R swing.
#[test]
fn a_simple_rule_oscillates() {
    let (port, mut random) = (port(52.0), Random(1));
    let (mut rate, mut changes) = (BitRate(100 * MBPS), 0);
    for _ in 0..DAY {
        let is_above = port.loss(&options(), rate) * random.noise() > options().acceptable_loss;
        let step = if is_above { -5 } else { 5 };
        let next =
            BitRate((rate.0 as i64 + step * MBPS as i64).clamp(5 * MBPS as i64, 100 * MBPS as i64) as u64);
        changes += u32::from(next != rate);
        rate = next;
    }
    assert!(changes > 500, "{changes}");
}

#[test]
fn invalid_options_are_refused() {
    let valid = options();
    for (options, name) in [
        (RegulatorOptions { acceptable_loss: 0.0, ..valid }, "acceptable loss"),
        (RegulatorOptions { acceptable_loss: f64::NAN, ..valid }, "acceptable loss"),
        (RegulatorOptions { step: BitRate(0), ..valid }, "step"),
        (RegulatorOptions { ceiling: BitRate(1), ..valid }, "floor"),
        (RegulatorOptions { intervals: 0, ..valid }, "number of intervals"),
        (RegulatorOptions { evidence: -1.0, ..valid }, "evidence"),
        (RegulatorOptions { margin: 1.0, ..valid }, "margin"),
        (RegulatorOptions { calm_windows: 0, ..valid }, "number of calm windows"),
    ] {
        let error = Regulator::new(options, BitRate(MBPS)).unwrap_err();
        assert_eq!(error.name, name, "{error}");
    }
}

#[test]
fn the_poisson_bound_is_close_to_the_exact_one() {
    for (count, exact) in [(0, 2.996), (1, 4.744), (5, 10.513), (50, 63.287)] {
        assert!((upper_count(count) - exact).abs() < 0.05, "{count}: {}", upper_count(count));
    }
}

proptest! {
    /// R stays within its limits, and changes by at most one step, and at most once per window.
    #[test]
    fn the_threshold_stays_within_its_limits(
        base in 0_u64..300,
        polls in proptest::collection::vec((0_u64..2_000_000, 0.0_f64..3e-5, 0_u8..20, 0_u64..300), 1..400),
    ) {
        let options = RegulatorOptions { ceiling: BitRate(200 * MBPS), ..options() };
        let mut regulator = Regulator::new(options, BitRate(base * MBPS)).unwrap();
        let mut since_change = options.intervals;
        for (packets, rate, kind, base) in polls {
            let before = regulator.rate_threshold();
            let step = match kind {
                0 => regulator.observe(Measurement::SumOfQueues),
                1 => regulator.observe(Measurement::Unusable("timeout".to_owned())),
                2 => {
                    regulator.set_base(BitRate(base * MBPS));
                    continue;
                }
                _ => regulator.observe(loss(packets, (packets as f64 * rate) as u64)),
            };
            since_change += 1;
            let now = step.rate_threshold;
            prop_assert!(now >= options.floor && now <= options.ceiling);
            prop_assert!(now.0.abs_diff(before.0) <= options.step.0);
            prop_assert_eq!(step.change == Change::Lowered, now < before);
            prop_assert_eq!(step.change == Change::Raised, now > before);
            if now != before {
                prop_assert!(since_change >= options.intervals);
                since_change = 0;
            }
        }
    }
}
