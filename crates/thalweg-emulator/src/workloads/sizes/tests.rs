use proptest::prelude::*;

use super::*;

fn uniform(points: &[(u64, f64)]) -> Result<SizeDistribution, PointsError> {
    SizeDistribution::new(points.iter().map(|&(bytes, probability)| Point { bytes, probability }).collect())
}

/// Means computed by hand from the published points: the sum of (p - p') (x + x') / 2. Homa's file gives 185.0 for the
/// cache.
#[test]
fn published_means_match_the_cdf_points() {
    for (name, mean, tolerance) in [
        ("web_search", 1_665_830.8, 0.01),
        ("web_search_hpcc", 1_711_250.0, 0.01),
        ("data_mining", 7_470_236.0, 0.01),
        ("data_mining_fine", 5_036_535.175, 0.01),
        ("hadoop", 120_420.75, 0.01),
        ("storage", 40_869.8, 0.01),
        ("cache", 185.0, 0.5),
    ] {
        let published = SizeDistribution::published(name).unwrap().mean();
        assert!((published - mean).abs() < tolerance, "{name}: {published}");
    }
    assert_eq!(PUBLISHED.len(), 7, "each published distribution has its mean here");
}

#[test]
fn summaries_include_mean_and_maximum() {
    for published in PUBLISHED {
        let distribution = published.distribution();
        let amount = |bytes: f64| thalweg_wire::Bytes(bytes.round() as u64).to_string();
        let (mean, max) = (amount(distribution.mean()), amount(distribution.max() as f64));
        let summary = published.named.summary;
        let short = |text: &str| text.replace(".00", "").replace(".0 ", " ");
        assert!(summary.contains(&format!("mean {}", short(&mean))), "{summary}: {mean}");
        assert!(summary.ends_with(&format!("at most {}", short(&max))), "{summary}: {max}");
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let error = SizeDistribution::published("websearch").unwrap_err().to_string();
    assert!(
        error.contains("`websearch`") && error.contains("web_search, ") && error.contains("cache"),
        "{error}"
    );
}

#[test]
fn quantiles_meet_every_point_exactly() {
    for published in PUBLISHED {
        let distribution = published.distribution();
        for pair in distribution.points().windows(2) {
            // The lower end of a gap is the size at its probability. A step has its size over its whole height.
            if pair[0].probability < pair[1].probability {
                assert_eq!(distribution.quantile(pair[1].probability), pair[1].bytes as f64);
                let middle = (pair[0].probability + pair[1].probability) / 2.0;
                let halfway = (pair[0].bytes + pair[1].bytes) as f64 / 2.0;
                assert!((distribution.quantile(middle) / halfway - 1.0).abs() < 1e-6);
            }
        }
        assert_eq!(distribution.quantile(1.0), distribution.max() as f64);
        assert_eq!(distribution.quantile(2.0), distribution.max() as f64);
    }
}

#[test]
fn cdf_steps_are_sampled_with_their_probability() {
    let distribution = uniform(&[(10, 0.25), (20, 0.25), (20, 0.75), (30, 1.0)]).unwrap();
    for (u, size) in [(0.0, 10), (0.25, 10), (0.26, 20), (0.5, 20), (0.75, 20), (0.875, 25), (0.9999, 30)] {
        assert_eq!(distribution.sample(u), size, "{u}");
    }
    assert_eq!(distribution.mean(), 0.25 * 10.0 + 0.5 * 20.0 + 0.25 * 25.0);
    for (bytes, probability) in
        [(9.0, 0.0), (10.0, 0.25), (15.0, 0.25), (20.0, 0.75), (25.0, 0.875), (31.0, 1.0)]
    {
        assert_eq!(distribution.cumulative(bytes), probability, "{bytes}");
    }
}

#[test]
fn no_flow_is_empty() {
    assert_eq!(uniform(&[(0, 0.0), (100, 1.0)]).unwrap().sample(0.0), 1);
    assert_eq!(uniform(&[(0, 1.0)]).unwrap().sample(0.5), 1);
}

/// Kolmogorov and Smirnov: for n = 20,000 draws (seed 1) the empirical function is off by more than 2.2 / sqrt(n) with
/// probability 2 exp(-2 * 2.2^2) = 1.3e-4 per distribution, 9e-4 for all seven; less with steps.
#[test]
fn draws_follow_their_distribution() {
    for (index, published) in PUBLISHED.iter().enumerate() {
        let distribution = published.distribution();
        let mut random = Random::new(1, "sizes", index as u64);
        let mut draws: Vec<f64> = (0..20_000).map(|_| distribution.sample(random.unit()) as f64).collect();
        draws.sort_unstable_by(f64::total_cmp);
        for (rank, draw) in draws.iter().enumerate() {
            let (below, upto) = (rank as f64 / 20_000.0, (rank + 1) as f64 / 20_000.0);
            // Rounding to whole bytes changes a size by up to half a byte.
            let off =
                (distribution.cumulative(draw - 0.5) - upto).max(below - distribution.cumulative(draw + 0.5));
            assert!(off < 2.2 / 20_000f64.sqrt(), "{}: {draw} {off}", published.named.name);
        }
    }
}

/// Flexplane, section 5.2: 80 % of 1.5 KB and 20 % of 10 MB. Of 10,000 draws 8000 are small, with a standard deviation
/// of 40. Six of them have a false alarm rate below 2e-9.
#[test]
fn classes_come_in_their_proportions_with_their_code_points() {
    let class = |bytes, dscp, weight| SizeClass { sizes: Sizes::Fixed(bytes), dscp, weight };
    let sizes = FlowSizes::mixed(vec![class(1500, 46, 80.0), class(10_000_000, 0, 20.0)]).unwrap();
    assert!((sizes.mean() - (0.8 * 1500.0 + 0.2 * 10_000_000.0)).abs() < 1e-6);
    let mut random = Random::new(1, "classes", 0);
    let draws: Vec<_> = (0..10_000).map(|_| sizes.draw(&mut random)).collect();
    let small = draws.iter().filter(|&&draw| draw == (1500, 46)).count();
    let large = draws.iter().filter(|&&draw| draw == (10_000_000, 0)).count();
    assert_eq!(small + large, 10_000);
    assert!(small.abs_diff(8000) < 240, "{small}");
}

#[test]
fn invalid_classes_are_refused() {
    let class = |bytes, dscp, weight| SizeClass { sizes: Sizes::Fixed(bytes), dscp, weight };
    assert!(matches!(FlowSizes::mixed(vec![]), Err(WorkloadError::Weight(_))));
    assert!(matches!(FlowSizes::mixed(vec![class(1, 0, 0.0)]), Err(WorkloadError::Weight(_))));
    assert!(matches!(FlowSizes::mixed(vec![class(1, 64, 1.0)]), Err(WorkloadError::Dscp(64))));
    assert!(matches!(FlowSizes::of(Sizes::Fixed(0)), Err(WorkloadError::Empty(_))));
    assert_eq!(FlowSizes::of(Sizes::Fixed(UNBOUNDED)).unwrap().mean(), f64::INFINITY);
    assert_eq!(FlowSizes::mixed(vec![class(9, 0, 1.0), class(UNBOUNDED, 0, 0.0)]).unwrap().mean(), 9.0);
}

#[test]
fn an_invalid_file_names_line_and_expectation() {
    for (text, expected) in [
        ("", "line 1: expected at least one size"),
        ("# nothing\n\n", "line 1: expected at least one size"),
        (
            "bytes,probability\n1 0.5\n",
            "line 2: `1 0.5`: expected a size in bytes and a cumulative probability",
        ),
        ("1,1\nbytes,probability\n", "line 2: `bytes,probability`: expected a size"),
        ("1,0.5,7\n", "line 1: `1,0.5,7`"),
        ("-1,0.5\n", "line 1: `-1,0.5`"),
        ("1e6,1\n", "line 1: `1e6,1`"),
        ("1,0\n\n2,1.5\n", "line 3: a probability of 1.5: expected 0 to 1"),
        ("1,NaN\n", "line 1: a probability of NaN"),
        (
            "1,0\n2,0.5\n1,1\n",
            "line 3: 1 bytes with probability 1: expected the size or the probability to rise",
        ),
        ("1,0.5\n2,0.4\n3,1\n", "line 2: 2 bytes with probability 0.4"),
        ("1,0.5\n1,0.5\n3,1\n", "line 2: 1 bytes with probability 0.5"),
        ("1,0\n2,0.99 # nearly\n# end\n", "line 2: the last probability is 0.99: expected 1"),
        ("1000000000000001,1\n", "line 1: a size of 1000000000000001 bytes: expected at most"),
        (" 1 , 0.0\r\n 2 , 1 # all\r\n", "ok"),
    ] {
        match SizeDistribution::from_text(text) {
            Ok(_) => assert_eq!("ok", expected, "{text:?}"),
            Err(error) => assert!(error.to_string().starts_with(expected), "{text:?}: {error}"),
        }
    }
    let many = "1,1\n".repeat(distribution::MAX_POINTS + 1);
    assert!(SizeDistribution::from_text(&many).unwrap_err().to_string().contains("at most 65536 points"));
}

proptest! {
    #[test]
    fn no_text_makes_the_size_parser_panic(text in "([0-9#., \\-eN]{0,12}\n){0,8}") {
        if let Ok(distribution) = SizeDistribution::from_text(&text) {
            prop_assert!((0..100).all(|u| distribution.sample(f64::from(u) / 100.0) >= 1));
        }
    }

    #[test]
    fn quantile_and_cumulative_are_inverse(
        steps in prop::collection::vec((1u64..1_000_000, 1u32..1000), 1..50),
        u in 0.0..1.0f64,
    ) {
        let total: u32 = steps.iter().map(|step| step.1).sum();
        let (mut bytes, mut weight) = (0, 0);
        let mut points = vec![(0, 0.0)];
        for (size, part) in steps {
            (bytes, weight) = (bytes + size, weight + part);
            points.push((bytes, f64::from(weight) / f64::from(total)));
        }
        let distribution = uniform(&points).unwrap();
        prop_assert!((distribution.cumulative(distribution.quantile(u)) - u).abs() < 1e-9);
        let mean = (0..10_000).map(|i| distribution.quantile((f64::from(i) + 0.5) / 10_000.0)).sum::<f64>() / 10_000.0;
        prop_assert!((mean / distribution.mean() - 1.0).abs() < 0.01);
    }
}
