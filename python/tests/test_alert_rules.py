"""The alert rules for Prometheus are valid YAML of the form that Prometheus expects, and PromQL."""

from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
promql = pytest.importorskip("promql_parser")

RULES = Path(__file__).resolve().parents[2] / "docs" / "prometheus" / "thalweg.rules.yml"
KEYS = {"alert", "expr", "for", "labels", "annotations"}


def test_every_rule_is_complete_and_its_expression_valid() -> None:
    document = yaml.safe_load(RULES.read_text())
    assert set(document) == {"groups"}
    names = []
    for group in document["groups"]:
        assert set(group) == {"name", "rules"}
        for rule in group["rules"]:
            assert set(rule) <= KEYS and rule["labels"]["severity"] in {"info", "warning", "critical"}, rule
            assert rule["annotations"]["summary"]
            promql.parse(rule["expr"])
            names.append(rule["alert"])
    assert len(names) == len(set(names)) > 10


def test_the_parser_refuses_what_prometheus_refuses() -> None:
    with pytest.raises(ValueError, match="matrix"):
        promql.parse("rate(thalweg_frames_total)")
