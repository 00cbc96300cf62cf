"""The metrics of a watch, as Prometheus and node_exporter read them."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from bfinfra.app.metrics import WatchMetrics
from bfinfra.app.sight import Sight
from bfinfra.cli.main import main
from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.errors import BfinfraError
from bfinfra.model.refs import Key
from bfinfra.model.site import Site

SERVER = Key("bitfusion_server", "bf")
SITE = Site("poc", None, {})
NOTHING = Report("poc", (), 1)
ALERTS = Path(__file__).parents[2] / "deploy/watch/alerts.yaml"


def drifted(seconds: float) -> Report:
    """A drift that the server dates so many seconds ago."""
    found = Drifted(key=SERVER, cause=Cause.DRIFT, field="power", at=time.time() - seconds)
    return replace(NOTHING, found=(found,), new=frozenset({found.identity}))


def values(text: str) -> dict[str, float]:
    found = [each for family in text_string_to_metric_families(text) for each in family.samples]
    assert {each.labels["site"] for each in found} == {"poc"}
    return {each.name: each.value for each in found if "le" not in each.labels}


@pytest.fixture
def read(tmp_path: Path) -> tuple[WatchMetrics, Callable[[], dict[str, float]]]:
    file = tmp_path / "bfinfra.prom"
    return WatchMetrics(SITE, file=str(file)), lambda: values(file.read_text())


def test_a_report_says_what_drifted_and_how_long_ago(read):
    metrics, figures = read
    metrics.report(Sight(NOTHING))
    assert (figures()["bfinfra_site_drifted"], figures()["bfinfra_watch_following"]) == (0, 1)
    time.sleep(0.01)
    metrics.report(Sight(drifted(0.001)))
    found = figures()
    assert (found["bfinfra_site_drifted"], found["bfinfra_drift_seconds_count"]) == (1, 1)
    assert 0 < found["bfinfra_drift_seconds_sum"] < 5
    metrics.report(Sight(replace(drifted(0.001), new=frozenset())))
    assert figures()["bfinfra_drift_seconds_count"] == 1


def test_what_drifted_before_the_watch_started_is_not_late(read):
    metrics, figures = read
    metrics.report(Sight(drifted(86400)))
    assert (figures()["bfinfra_site_drifted"], figures()["bfinfra_drift_seconds_count"]) == (1, 0)


def test_blind_seconds_grow_while_nothing_is_followed(read):
    metrics, figures = read
    metrics.report(Sight(NOTHING))
    metrics.interrupted("vCenter ended the session", 0)
    assert figures()["bfinfra_watch_following"] == 0
    time.sleep(0.01)
    metrics.turned(0)
    metrics.report(Sight(NOTHING, 0.01, "vCenter ended the session"))
    blind = figures()["bfinfra_watch_blind_seconds_total"]
    assert 0.01 <= blind < 5
    metrics.turned(0)
    metrics.report(Sight(NOTHING))
    assert figures()["bfinfra_watch_blind_seconds_total"] == blind


def test_changes_are_counted_and_the_end_is_seen(read):
    metrics, figures = read
    metrics.turned(3)
    metrics.turned(2)
    metrics.report(Sight(replace(NOTHING, unreadable={"esx": "it is off"})))
    found = figures()
    assert (found["bfinfra_watch_changes_total"], found["bfinfra_site_unreadable"]) == (5, 1)
    assert abs(found["bfinfra_watch_last_turn_timestamp_seconds"] - time.time()) < 60
    metrics.close()
    assert figures()["bfinfra_watch_following"] == 0


@pytest.mark.enable_socket
def test_prometheus_is_served():
    metrics = WatchMetrics(SITE, ("127.0.0.1", 0))
    metrics.report(Sight(NOTHING))
    with pytest.raises(BfinfraError, match="give another --metrics"):
        WatchMetrics(SITE, ("127.0.0.1", metrics.port))
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10) as answer:
        assert values(answer.read().decode())["bfinfra_watch_following"] == 1
    metrics.close()


def test_a_file_that_cant_be_written_stops_nothing(tmp_path: Path) -> None:
    messages: list[str] = []
    metrics = WatchMetrics(SITE, file=str(tmp_path / "gone/bfinfra.prom"), failed=messages.append)
    metrics.report(Sight(NOTHING))
    assert "can't be written" in messages[0]


def test_the_command_refuses_what_node_exporter_would_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.yaml").write_text("site: poc\n")
    assert main(["watch", "--metrics-file", "metrics.txt"]) == 1
    assert "name it metrics.txt.prom" in capsys.readouterr().err
    assert main(["watch", "--metrics", "9464"]) == 1
    assert "is not ADDRESS:PORT" in capsys.readouterr().err


RULES = [each for group in yaml.safe_load(ALERTS.read_text())["groups"] for each in group["rules"]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_is_promql_on_metrics_that_there_are(rule, read):
    metrics, figures = read
    metrics.report(Sight(NOTHING))
    promql_parser.parse(rule["expr"])
    assert any(name in rule["expr"] for name in figures())
    assert "$labels.site" in rule["annotations"]["summary"]


def test_a_short_gap_counts_and_a_cluster_that_is_away_is_not_followed(read):
    metrics, figures = read
    metrics.report(Sight(NOTHING, 3, "410"))
    assert figures()["bfinfra_watch_blind_seconds_total"] == 3
    metrics.interrupted("no answer", 20)
    metrics.report(Sight(NOTHING, lost=("10.3.0.1:6443",)))
    assert figures()["bfinfra_watch_following"] == 0
    assert 23 <= figures()["bfinfra_watch_blind_seconds_total"] < 30
    metrics.report(Sight(NOTHING, 20, "no answer"))
    assert figures()["bfinfra_watch_following"] == 1
    assert 23 <= figures()["bfinfra_watch_blind_seconds_total"] < 30
