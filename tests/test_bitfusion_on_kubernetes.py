"""The site of the document on the sandbox: applied from empty, again without a write, one field changed,
destroyed.
"""

from __future__ import annotations

import pytest
from documents import Changed, applied, expected, named
from kinds.lifecycle import SPECS, apply, endings, made, world

SITE = SPECS / "bitfusion-on-kubernetes.yaml"
PLUGIN = "bitfusion_device_plugin/k8s"


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """The document's world without waiting times, the site applied to it."""
    with applied(
        SITE, SPECS / "worlds/bitfusion-on-kubernetes.yaml", tmp_path_factory.mktemp("on-kubernetes")
    ) as running:
        yield running


def test_it_applies_whole(there):
    assert made(there.outcome), endings(there.outcome)
    notes = {str(key): ended.note for key, ended in there.outcome.endings.items()}
    assert notes[PLUGIN] == "4 nodes advertise bitfusion.io/gpu, 1000 each"


def test_a_second_apply_writes_nothing(there):
    before = there.tally()["written"]
    assert set(endings(apply(SITE, there)).values()) == {"kept"}
    assert there.tally()["written"] == before


CHANGED: Changed = [
    ("shares: 1000", "shares: 2000", PLUGIN, {"shares"}),
    ("gpus: 1}", "gpus: 2.5}", PLUGIN, {"quotas"}),
    (
        "repository: docker.io/bitfusiondeviceplugin",
        "repository: mirror.example.com/bitfusion",
        PLUGIN,
        {"images.repository"},
    ),
    ("    token_secret: k8s\n", "    token_secret: k8s\n    replicas: 2\n", PLUGIN, {"replicas"}),
    (
        "    token_secret: k8s\n",
        "    token_secret: k8s\n    failure_policy: Fail\n",
        PLUGIN,
        {"failure_policy"},
    ),
    (
        "    token_secret: k8s\n",
        "    token_secret: k8s\n    namespaces: [tensorflow-benchmark]\n",
        PLUGIN,
        {"namespaces"},
    ),
    ("enforce: baseline", "enforce: privileged", "namespace/bwki", {"pod_security.enforce"}),
    (
        "namespaces: [kube-system]",
        "namespaces: [kube-system, tensorflow-benchmark]",
        "token_secret/k8s",
        {"namespaces"},
    ),
]


def test_fields_changed_in_the_file_are_what_the_plan_names_and_nothing_else(there, tmp_path):
    assert named(SITE, tmp_path, CHANGED, there) == expected(CHANGED)


def test_destroy_leaves_the_world_as_it_was_before_the_first_apply(there):
    gone = apply(SITE, there, destroy=True)
    assert made(gone), endings(gone)
    assert world(there) == there.before
