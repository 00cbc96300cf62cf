"""Names that others choose, as labels of metrics: both parsers of prometheus_client find them again, and no other
sample.
"""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read

from bfinfra.app.metrics import WatchMetrics
from bfinfra.app.sight import Sight
from bfinfra.model.drift import Report
from bfinfra.model.redact import encodable
from bfinfra.model.site import Site
from bfinfra.operator.desired import Desired
from bfinfra.operator.figures import Figures
from bfinfra.operator.result import Outcome, Result

LISTED = (
    "a", 'a"} 1\nbfinfra_site_drifted{site="b', "a\nb 1", "\\", '\\"', "\\n", "# HELP a b", "\r", "\u2028", "\ud800", "\0", "", "é", '",x="',
)  # fmt: skip
NAMES = st.one_of(
    st.text(max_size=20), st.text(alphabet='"\\\n{}=, #a1\r', max_size=12), st.sampled_from(LISTED)
)


def samples(text: str, reads) -> list[tuple[str, dict[str, str]]]:
    return [(each.name, dict(each.labels)) for family in reads(text) for each in family.samples]


def both(registry) -> list[list[tuple[str, dict[str, str]]]]:
    return [
        samples(generate_latest(registry).decode(), read),
        samples(openmetrics(registry).decode(), read_openmetrics),
    ]


def named(found, old: str, new: str) -> list[list[tuple[str, dict[str, str]]]]:
    return [
        [
            (name, {label: new if value == old else value for label, value in labels.items()})
            for name, labels in each
        ]
        for each in found
    ]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(NAMES)
def test_the_site_of_a_watch(name: str):
    plain = both(WatchMetrics(Site("plain", None, {})).registry)
    assert both(WatchMetrics(Site(name, None, {})).registry) == named(plain, "plain", encodable(name))


def test_listed_names_in_a_file_that_node_exporter_reads(tmp_path: Path):
    for name in LISTED:
        metrics = WatchMetrics(Site(name, None, {}), file=str(tmp_path / "a.prom"))
        metrics.report(Sight(Report(name, (), 1)))
        found = samples((tmp_path / "a.prom").read_bytes().decode(), read)
        assert {labels["site"] for _, labels in found} == {encodable(name)}


@pytest.mark.thorough
@pytest.mark.enable_socket
def test_listed_names_over_http():
    for name in LISTED:
        metrics = WatchMetrics(Site(name, None, {}), ("127.0.0.1", 0))
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10) as answer:
            found = samples(answer.read().decode(), read)
        metrics.close()
        assert {labels["site"] for _, labels in found} == {encodable(name)}


def figures(name: str):
    made = Figures()
    result = Result(Outcome.AGREED, certificates={name: 1}, tokens={name: 2})
    desired = Desired.of(
        {"metadata": {"name": "s", "namespace": "n", "uid": "u", "generation": 1}, "spec": {"site": {}}}
    )
    made.show(lambda: [(desired, result, 1.0)], lambda: 0, lambda: True)
    return both(made.registry)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(NAMES)
def test_servers_and_tokens_of_the_operator(name: str):
    assert figures(name) == named(figures("plain"), "plain", encodable(name))
