"""The site of the consolidated GPU cluster on the sandbox: one Bitfusion cluster, three kinds of Kubernetes
that use it.
"""

from __future__ import annotations

import pytest
from documents import Changed, applied, edited, expected, named
from kinds.lifecycle import SPECS, apply, endings, made, plan, world

SITE = SPECS / "consolidated-gpu-cluster.yaml"


@pytest.fixture(scope="module")
def consolidated(tmp_path_factory):
    """Its world without waiting times, the site applied to it."""
    with applied(
        SITE, SPECS / "worlds/consolidated-gpu-cluster.yaml", tmp_path_factory.mktemp("consolidated")
    ) as running:
        yield running


def test_it_applies_whole_and_all_three_kubernetes_get_a_gpu(consolidated):
    assert made(consolidated.outcome), endings(consolidated.outcome)
    notes = {str(key): ended.note for key, ended in consolidated.outcome.endings.items()}
    for cluster, where in (
        ("guest", "default of hpc2-dev-cluster5"),
        ("supervisor", "hpc2 of hpc2"),
        ("tkgi", "default of tkgi-hpc"),
    ):
        assert "ocked 1 GPUs with partial memory 0.5" in notes[f"workload/pytorch-{cluster}"]
        assert notes[f"network_path/{cluster}"] == f"9 paths, all reached by a pod in namespace {where}"
    assert notes["registry/harbor"] == "https://172.16.32.3"


def test_a_second_apply_writes_nothing(consolidated):
    before = consolidated.tally()["written"]
    assert set(endings(apply(SITE, consolidated)).values()) == {"kept"}
    assert consolidated.tally()["written"] == before


CHANGED: Changed = [
    ("memory: 16GiB", "memory: 24GiB", "bitfusion_server/bf-03", {"memory"}),
    ("ml-large: {cpus: 8", "ml-large: {cpus: 16", "vm_class/ml-large", {"cpus"}),
    (
        "subscription: {} ",
        "subscription: {on_demand: false} ",
        "content_library/kubernetes-releases",
        {"subscription.on_demand"},
    ),
    (
        "content_libraries: [kubernetes-releases]",
        "content_libraries: []",
        "supervisor_namespace/hpc2",
        {"content_libraries"},
    ),
    ("tier: [gold]", "tier: [gold, silver]", "storage_policy/k8s-gold", {"tags.tier"}),
    ("HPC2: {size: small}", "HPC2: {size: medium}", "supervisor/HPC2", {"size"}),
    ("trust: {harbor: {registry: harbor}}", "trust: {}", "tanzu_cluster/hpc2-dev-cluster5", {"trust.harbor"}),
    (
        "training: {count: 2",
        "training: {count: 3",
        "tanzu_cluster/hpc2-dev-cluster5",
        {"workers.training.count"},
    ),
    ("version: v1.20\n", "version: v1.21\n", "tanzu_cluster/hpc2-dev-cluster5", {"version"}),
    (
        "supervisor: {cluster: hpc2, token: hpc, namespaces",
        "supervisor: {cluster: hpc2, form: single, token: hpc, namespaces",
        "token_secret/supervisor",
        {"form"},
    ),
    (
        "tkgi: {cluster: tkgi-hpc, token: hpc, probe: {}}",
        "tkgi: {cluster: tkgi-hpc, token: hpc, probe: {patience: 1m}}",
        "network_path/tkgi",
        {"probe.patience"},
    ),
]


def _named(field: str) -> str:
    """Of a manifest the object alone: what in it follows is the workload's affair."""
    return field.partition(".")[0] if "/" in field.partition(".")[0] else field


def test_fields_changed_in_the_file_are_what_the_plan_names_and_nothing_else(consolidated, tmp_path):
    found = named(SITE, tmp_path, CHANGED, consolidated)
    # it mounts the token's Secrets, whose names the form decides
    wanted = expected(CHANGED) | {"workload/pytorch-supervisor": {"Job/pytorch-bitfusion"}}
    assert {key: {_named(field) for field in fields} for key, fields in found.items()} == wanted


def test_a_second_server_alone_is_no_group(consolidated, tmp_path):
    text = SITE.read_text()
    third = text[text.index("  bf-03:") : text.index("bitfusion_token:")]
    path = edited(SITE, tmp_path, (third, "\n"))
    path.write_text(path.read_text().replace("[bf-01, bf-02, bf-03]", "[bf-01, bf-02]"))
    assert "bf-01 and bf-02 are a group of 2 servers" in str(plan(path, consolidated).problems)


def test_destroy_leaves_the_world_as_it_was_before_the_first_apply(consolidated):
    gone = apply(SITE, consolidated, destroy=True)
    assert made(gone), endings(gone)
    assert world(consolidated) == consolidated.before
