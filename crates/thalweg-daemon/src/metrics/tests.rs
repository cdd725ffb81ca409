use std::collections::BTreeSet;

use super::*;

#[test]
fn names_are_unique_and_follow_prometheus_conventions() {
    let mut names = BTreeSet::new();
    for metric in metrics() {
        let name = metric.name;
        assert!(names.insert(name), "duplicate {name}");
        assert!(name.starts_with("thalweg_"), "{name}");
        let is_legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(name.bytes().all(is_legal), "{name}");
        assert_eq!(name.ends_with("_total"), metric.kind == Kind::Counter, "{name}");
        let unit = ["_milliseconds", "_us", "_ns", "_kb", "_bits", "_percent"];
        assert!(!unit.iter().any(|unit| name.ends_with(unit)), "{name}: not a base unit");
        assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{name}: {}", metric.help);
    }
}

#[test]
fn label_values_are_escaped() {
    const NAMED: Metric =
        Metric { name: "x", kind: Kind::Gauge, help: "X.", labels: &["name"], read: |_, _| {} };
    let mut page = String::new();
    Samples::new(&NAMED, &mut page).put(&["a\"b\\c\nd"], 1);
    assert_eq!(page, "# HELP x X.\n# TYPE x gauge\nx{name=\"a\\\"b\\\\c\\nd\"} 1\n");
}

#[test]
fn histogram_buckets_are_cumulative() {
    const TIMES: Metric =
        Metric { name: "t", kind: Kind::Histogram, help: "T.", labels: &["c"], read: |_, _| {} };
    let histogram = crate::collectors::LatencyHistogram::default();
    for nanos in [3_000, 40_000, 2_000_000_000] {
        histogram.record(Duration::from_nanos(nanos));
    }
    let mut page = String::new();
    Samples::new(&TIMES, &mut page).put_latency(&["a"], &histogram.read());
    let value =
        |start: &str| page.lines().find_map(|line| line.strip_prefix(start)).unwrap().trim().to_owned();
    assert_eq!(value("t_bucket{c=\"a\",le=\"0.000002\"}"), "0");
    assert_eq!(value("t_bucket{c=\"a\",le=\"0.000005\"}"), "1");
    assert_eq!(value("t_bucket{c=\"a\",le=\"0.00005\"}"), "2");
    assert_eq!(value("t_bucket{c=\"a\",le=\"1\"}"), "2");
    assert_eq!(value("t_bucket{c=\"a\",le=\"+Inf\"}"), "3");
    assert_eq!(value("t_count{c=\"a\"}"), "3");
    assert_eq!(value("t_sum{c=\"a\"}"), "2.000043");
}
