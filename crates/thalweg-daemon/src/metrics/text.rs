//! The Prometheus text format.

use std::fmt::{Display, Write};
use std::time::Duration;

use super::{Kind, Metric};
use crate::collectors::Latency;

/// Upper bounds of latency buckets in microseconds. The targets are 5 us and 50 us.
const BUCKETS_US: [u64; 17] =
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000];

/// Writes the samples of a metric.
#[derive(Debug)]
pub struct Samples<'a> {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    names: &'static [&'static str],
    page: &'a mut String,
    has_header: bool,
}

impl<'a> Samples<'a> {
    pub(super) fn new<S>(metric: &Metric<S>, page: &'a mut String) -> Samples<'a> {
        let Metric { name, kind, help, labels: names, .. } = *metric;
        Samples { name, kind, help, names, page, has_header: false }
    }

    /// Writes a sample with the values of the metric's labels.
    pub fn put(&mut self, labels: &[&str], value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Writes a latency histogram with the values of the metric's labels.
    pub(super) fn put_latency(&mut self, labels: &[&str], latency: &Latency) {
        let count = latency.count();
        for end in BUCKETS_US {
            let at_most = latency.at_most(Duration::from_micros(end));
            self.line("_bucket", labels, Some(&(end as f64 / 1e6).to_string()), at_most);
        }
        self.line("_bucket", labels, Some("+Inf"), count);
        self.line("_sum", labels, None, latency.sum_ns as f64 / 1e9);
        self.line("_count", labels, None, count);
    }

    fn line(&mut self, suffix: &str, labels: &[&str], le: Option<&str>, value: impl Display) {
        let Samples { name, kind, help, names, .. } = *self;
        if !std::mem::replace(&mut self.has_header, true) {
            let _ = writeln!(self.page, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        }
        debug_assert_eq!(labels.len(), names.len(), "labels of {name}");
        debug_assert_eq!(kind == Kind::Histogram, !suffix.is_empty(), "{name}");
        let _ = write!(self.page, "{name}{suffix}");
        let names = names.iter().copied().chain(["le"]);
        let mut separator = '{';
        for (label, value) in names.zip(labels.iter().copied().chain(le)) {
            let _ = write!(self.page, "{separator}{label}=\"");
            escape(value, self.page);
            self.page.push('"');
            separator = ',';
        }
        let _ = writeln!(self.page, "{} {value}", if separator == ',' { "}" } else { "" });
    }
}

fn escape(value: &str, page: &mut String) {
    for letter in value.chars() {
        match letter {
            '\\' => page.push_str("\\\\"),
            '"' => page.push_str("\\\""),
            '\n' => page.push_str("\\n"),
            letter => page.push(letter),
        }
    }
}
