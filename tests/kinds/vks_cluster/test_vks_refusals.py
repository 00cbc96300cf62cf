"""What is refused before the first write, each at its place in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, plan

import bfinfra
from bfinfra.kinds.supervisor.base import variables
from bfinfra.model.errors import SiteError
from bfinfra.sandbox import Running

SITE = EXAMPLES["vks_cluster"].read_text()


def refused(sandbox: Running, folder: Path, *changes: tuple[str, str]) -> str:
    """The one problem of the plan, with the line that it names instead of its place."""
    text = SITE
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    path = folder / "site.yaml"
    path.write_text(text)
    written = sandbox.tally()["written"]
    try:
        (problem,) = plan(path, sandbox).problems
        found = str(problem)
    except SiteError as error:
        found = str(error)
    assert sandbox.tally()["written"] == written
    place, _, rest = found.partition(": ")
    name, line, column = place.rsplit(":", 2)
    assert name == str(path), found
    return f"{text.splitlines()[int(line) - 1][int(column) - 1 :]} | {rest}"


WORKERS = "cpu: {count: 1}"


@pytest.mark.parametrize(
    ("before", "after", "at", "says"),
    [
        (WORKERS, "cpu: {count: 1, autoscale: {min: 1, max: 2}}", "1", "the pool has autoscale, too"),
        (WORKERS, "cpu: {zone: a}", "cpu", "write how many nodes, or autoscale"),
        (WORKERS, "cpu: {autoscale: {min: 3, max: 2}}", "3", "3 is more than max, 2"),
        ("max_unavailable: 1", "max_unavailable: 0", "0", "or no node is ever replaced"),
        ("v1.34", "v1.31", "v1.31", "no release v1.31 that it can use; there are: v1.33.3, v1.34.1"),
        ("v3.6.0", "v3.9.0", "builtin-generic-v3.9.0", "vmware-system-vks-public has no cluster class"),
        (
            "version: v1.34",
            "version: v1.35\n    class_namespace: team-a",
            "builtin",
            "team-a has no cluster class",
        ),
        ("ubuntu-24.04", "ubuntu-20.04", "ubuntu-20.04", "there are: photon-5, ubuntu-22.04, ubuntu-24.04"),
        ("vm_class: best-effort-small", "vm_class: best-effort-big", "best-effort-big", "offers no VM class"),
        ("storage_class: gold", "storage_class: golf", "golf", "offers no storage class golf"),
        (
            "control_plane: {count: 1}",
            "control_plane: {count: 1}\n    network: {pods: [100.96.0.0/22]}",
            "100.96.0.0/22",
            "4 nodes and 1 more while they are replaced take 5 networks of /24, it has 4",
        ),
        (WORKERS, "cpu: {count: 1, worker_class: gpus}", "gpus", "no workers of the class gpus"),
        (WORKERS, 'cpu: {count: 1, taints: ["gpu"]}', '"gpu"', "taints"),
        ("control_plane: {count: 1}", "control_plane: {count: 2}", "2", "1, 3 or 5 nodes"),
    ],
)
def test_what_a_cluster_can_not_be(sandbox, tmp_path, before, after, at, says):
    found = refused(sandbox, tmp_path, (before, after))
    assert says in found
    assert found.startswith(at), found


def test_a_version_that_the_class_does_not_make_is_refused_with_those_that_do(sandbox, tmp_path):
    found = refused(sandbox, tmp_path, ("v3.6.0", "v3.5.0"), ("version: v1.34", "version: v1.35"))
    assert "builtin-generic-v3.5.0 makes no clusters of v1.35; it supports v1.32 to v1.34" in found
    assert "write cluster_class: builtin-generic-v3.6.0, or builtin-generic-v3.7.0" in found


@pytest.mark.parametrize(
    ("given", "at", "says"),
    [
        ("{kubernets: {}}", "kubernets", "has no variable kubernets; did you mean kubernetes?"),
        ("{vmClass: small}", "vmClass", "vmClass is a field of its own: write vm_class"),
        (
            "{kubernetes: {kubeletConfiguration: {maxPod: 200}}}",
            "200",
            "kubernetes.kubeletConfiguration.maxPod is unknown to the class",
        ),
        (
            "{kubernetes: {kubeletConfiguration: {maxPods: 10}}}",
            "10",
            "kubernetes.kubeletConfiguration.maxPods is less than 20",
        ),
        (
            "{kubernetes: {kubeletConfiguration: {maxPods: many}}}",
            "many",
            "kubernetes.kubeletConfiguration.maxPods is not a whole number",
        ),
        (
            "{kubernetes: {security: {podSecurityStandard: {enforce: open}}}}",
            "open",
            "one of: privileged, baseline, restricted",
        ),
        ("{osConfiguration: {ntp: {servers: a}}}", "a", "osConfiguration.ntp.servers is not a list"),
        ("{bootstrapAddons: {cniRef: {}}}", "cniRef", "bootstrapAddons.cniRef lacks name"),
    ],
)
def test_a_variable_outside_the_classs_own_schema_is_refused_at_its_line(sandbox, tmp_path, given, at, says):
    found = refused(sandbox, tmp_path, ("os: ubuntu-24.04", f"variables: {given}"))
    assert says in found
    assert at in found.partition(" | ")[0], found


def test_a_variable_of_a_pool_is_checked_as_well(sandbox, tmp_path):
    found = refused(sandbox, tmp_path, (WORKERS, "cpu: {count: 1, variables: {node: {labels: {team: [a]}}}}"))
    assert "node.labels.team is not text" in found


def test_a_name_with_dots_is_no_class_of_tanzu_clusters(tmp_path):
    site: dict[str, Any] = yaml.safe_load(EXAMPLES["tanzu_cluster"].read_text())
    site["tanzu_cluster"]["cluster-01"] |= {
        "api": "cluster.x-k8s.io/v1beta1",
        "cluster_class": "builtin-generic-v3.7.0",
    }
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    with pytest.raises(SiteError, match="vks_cluster"):
        bfinfra.load(tmp_path / "site.yaml")


@pytest.mark.parametrize(
    ("schema", "given", "made"),
    [
        ({"type": "integer"}, "5", 5),
        ({"type": "string"}, "5", "5"),
        ({"type": "boolean"}, "True", True),
        ({"type": "string"}, "true", "true"),
        ({"type": "number"}, "0.5", 0.5),
        ({"x-kubernetes-int-or-string": True}, "30Gi", "30Gi"),
        ({"type": "array", "items": {"type": "integer"}}, ["1"], [1]),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": "1"}, {"a": "1"}),
        (None, {"a": "1", "b": "yes", "c": ["false"]}, {"a": 1, "b": "yes", "c": [False]}),
    ],
)
def test_text_of_a_file_becomes_what_the_schema_wants(schema, given, made):
    assert variables.typed(given, schema) == made
    assert variables.text(made) == variables.text(given)
