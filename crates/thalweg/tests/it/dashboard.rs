//! The Grafana dashboard and the alert rules use existing metrics, and the dashboard shows all losses.

use std::path::Path;

use serde_json::Value;
use thalweg_daemon::metrics::{Kind, metrics};

fn dashboard() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/thalweg.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Collects all expressions.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("expr" | "definition", Value::String(text)) => found.push(text.clone()),
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

/// Splits `thalweg_flows{collector="x"}` into `thalweg_flows` and the rest.
fn metrics_in(expression: &str) -> impl Iterator<Item = (&str, &str)> {
    expression.match_indices("thalweg_").map(|(start, _)| {
        let rest = &expression[start..];
        let end =
            rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
        rest.split_at(end)
    })
}

/// Returns the expressions of the alert rules. Each is on one line.
fn rules() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prometheus/thalweg.rules.yml");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).map(str::to_owned).collect()
}

/// Checks that the daemon has all metrics of expressions, with their labels.
fn check_metrics<'a>(found: impl IntoIterator<Item = &'a String>) {
    for (name, rest) in found.into_iter().flat_map(|expression| metrics_in(expression)) {
        let is_of = |metric: &&thalweg_daemon::metrics::Metric| match metric.kind {
            Kind::Histogram => name == format!("{}_bucket", metric.name),
            _ => name == metric.name,
        };
        let metric = metrics().find(is_of).unwrap_or_else(|| panic!("there is no metric {name}"));
        let selector = rest.strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or_default();
        for label in selector.split(',').filter_map(|matcher| matcher.split(['=', '!']).next()) {
            assert!(label.is_empty() || metric.labels.contains(&label), "{name} has no label {label}");
        }
    }
}

#[test]
fn every_metric_of_the_dashboard_exists_with_its_labels() {
    let mut found = Vec::new();
    expressions(&dashboard(), &mut found);
    assert!(found.len() > 20, "{found:?}");
    check_metrics(&found);
}

#[test]
fn every_metric_of_the_alert_rules_exists_with_its_labels() {
    let (of_collect, of_serve): (Vec<_>, Vec<_>) =
        rules().into_iter().partition(|rule| rule.contains("thalweg_collect_"));
    assert!(of_serve.len() > 10, "{of_serve:?}");
    check_metrics(&of_serve);
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/collect-metrics.md");
    let reference = std::fs::read_to_string(reference).unwrap();
    for (name, _) in of_collect.iter().flat_map(|expression| metrics_in(expression)) {
        assert!(reference.contains(name), "there is no metric {name}");
    }
}

#[test]
fn every_loss_metric_is_on_the_dashboard() {
    let mut found = Vec::new();
    expressions(&dashboard(), &mut found);
    let shown: Vec<_> =
        found.iter().flat_map(|expression| metrics_in(expression)).map(|(name, _)| name).collect();
    for metric in metrics() {
        let words = [
            "drops",
            "lost",
            "refused",
            "rejected",
            "timed_out",
            "failed",
            "suppressed",
            "unparsed",
            "untracked",
            "undecided",
            "ambiguous",
            "unattributed",
        ];
        let is_loss = words.iter().any(|word| metric.name.contains(word));
        assert!(!is_loss || shown.contains(&metric.name), "{} is not on the dashboard", metric.name);
    }
}
