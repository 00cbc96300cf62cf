"""A chart's archive: its digest, what it asks of a cluster, and the types of its values."""

from __future__ import annotations

import pytest
from chart_archive import archive

from bfinfra.backends.helm import Capabilities, Release, asked_of, merged, read, template, typed
from bfinfra.backends.helm.chart import defaults_of
from bfinfra.kinds.cluster.base.rendered.charts import asked, values

TEMPLATE = """{{ if .Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor" }}
{{ if (.Capabilities.APIVersions.Has "policy/v1") }}"""
DEFAULTS = 'replicas: 1\nimage: {tag: "1.9"}\nlimits: {ratio: 0.5}\nargs: [a]\n'
FILES = {"demo/Chart.yaml": "name: demo\n", "demo/values.yaml": DEFAULTS, "demo/templates/a.yaml": TEMPLATE}


def test_what_its_templates_ask_of_a_cluster_is_found_by_name(tmp_path):
    archive(tmp_path / "demo.tgz", FILES)
    assert asked_of(read(tmp_path / "demo.tgz")) == ("monitoring.coreos.com/v1/ServiceMonitor", "policy/v1")


def test_another_archive_than_the_site_names_is_refused(tmp_path):
    archive(tmp_path / "demo.tgz", FILES)
    with pytest.raises(ValueError, match="the site names another one"):
        asked(tmp_path / "demo.tgz", f"sha256:{'0' * 64}")


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "demo.tgz").write_text("hello")
    with pytest.raises(ValueError, match=r"demo\.tgz is not the archive of a chart"):
        defaults_of(read(tmp_path / "demo.tgz"))


def test_scalars_of_a_site_take_the_types_of_the_charts_defaults(tmp_path):
    digest = archive(tmp_path / "demo.tgz", FILES)
    (tmp_path / "more.yaml").write_text("image: {pull: Always}\nreplicas: 3\n")
    above = {
        "replicas": "2",
        "image": {"tag": "1.10"},
        "limits": {"ratio": "1"},
        "new": {"on": "true", "v": "1.10"},
    }
    assert values(tmp_path / "demo.tgz", digest, [tmp_path / "more.yaml"], above) == {
        "replicas": 2,
        "image": {"tag": "1.10", "pull": "Always"},
        "limits": {"ratio": 1},
        "new": {"on": True, "v": "1.10"},
    }


@pytest.mark.parametrize(
    ("text", "default", "value"),
    [
        ("true", None, True),
        ("true", "false", "true"),
        ("007", None, "007"),
        ("0.5", 1.0, 0.5),
        ("0.5", None, "0.5"),
        ("12", None, 12),
    ],
)
def test_a_scalar_without_a_default_is_a_switch_a_whole_number_or_text(text, default, value):
    assert typed(text, default) == value
    assert type(typed(text, default)) is type(value)


def test_lists_of_values_are_replaced_whole():
    assert merged({"a": [1], "b": {"c": 1}}, {"a": [2], "b": {"d": 2}}) == {"a": [2], "b": {"c": 1, "d": 2}}


def test_helm_gets_no_chart_that_is_out_of_bounds(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/helm").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "bin/helm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    release = Release("demo", "default", {})
    archive(tmp_path / "demo.tgz", {**FILES, "demo/files/a": "\0" * (34 << 20)})
    with pytest.raises(
        ValueError, match=r"demo\.tgz is not the archive of a chart: .*swells|has 35,651,584 bytes"
    ):
        template(read(tmp_path / "demo.tgz"), release, Capabilities())
    assert not (tmp_path / "ran").exists()
    archive(tmp_path / "good.tgz", FILES)
    template(read(tmp_path / "good.tgz"), release, Capabilities())
    assert (tmp_path / "ran").exists()
