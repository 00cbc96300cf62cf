"""Definitions that come and go: a cluster names them before it serves them, and for a moment after."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from kube_api import HeldClock
from waiting import until

from bfinfra.backends.kubernetes import ClusterClient
from bfinfra.backends.kubernetes.errors import NotServed, NotYetServed
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.errors import Busy

DEFINITIONS = "apiextensions.k8s.io/v1", "CustomResourceDefinition"


def definition(group: str) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    return {
        "apiVersion": DEFINITIONS[0],
        "kind": DEFINITIONS[1],
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Thing", "plural": "things", "listKind": "ThingList", "singular": "thing"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


@pytest.mark.parametrize("api", ["sandbox"], indirect=True)
def test_what_a_cluster_names_before_it_serves_it_is_asked_for_again(
    cluster: ClusterClient, clock: HeldClock
) -> None:
    clock.held = True
    cluster.create(definition("x.test"))
    until(lambda: cluster.versions("x.test") == ("v1",))
    assert not cluster.serves("x.test/v1", "Thing")
    with pytest.raises(NotYetServed, match="does not serve it at this moment"):
        cluster.list("x.test/v1", "Thing")

    def served(_: float) -> None:
        clock.let_go()
        until(lambda: cluster.serves("x.test/v1", "Thing"))

    retry = RetryPolicy(sleep=served)
    assert retry.read(lambda: cluster.list("x.test/v1", "Thing")) == []


@pytest.mark.parametrize("api", ["sandbox"], indirect=True)
def test_what_a_cluster_names_after_it_has_gone_is_asked_for_again_until_nobody_names_it(
    cluster: ClusterClient, clock: HeldClock
) -> None:
    cluster.create(definition("x.test"))
    until(lambda: cluster.serves("x.test/v1", "Thing"))
    assert cluster.list("x.test/v1", "Thing") == []
    clock.held = True
    cluster.delete(*DEFINITIONS, "things.x.test")
    until(lambda: not cluster.serves("x.test/v1", "Thing"))
    with pytest.raises(NotYetServed):
        cluster.list("x.test/v1", "Thing")
    clock.let_go()
    until(lambda: cluster.versions("x.test") == ())
    with pytest.raises(NotServed):
        cluster.list("x.test/v1", "Thing")


@pytest.mark.parametrize("api", ["sandbox"], indirect=True)
def test_a_kind_that_a_served_version_lacks_is_not_waited_for(cluster: ClusterClient) -> None:
    assert cluster.versions("batch") == ("v1",)
    with pytest.raises(NotServed):
        cluster.list("batch/v1", "CronJob")  # since Kubernetes 1.21


def test_between_a_definitions_coming_and_its_going_the_cluster_asks_to_come_back(
    cluster: ClusterClient,
) -> None:
    group = f"t{uuid.uuid4().hex[:8]}.test"
    for _ in range(3):
        cluster.create(definition(group))
        until(lambda: cluster.versions(group) == ("v1",))
        until(lambda: _listed(cluster, group) == [])
        cluster.delete(*DEFINITIONS, f"things.{group}")
        until(lambda: cluster.get(*DEFINITIONS, f"things.{group}") is None)
        until(lambda: cluster.versions(group) == ())  # not named for the one that went


def _listed(cluster: ClusterClient, group: str) -> list[Any] | None:
    try:
        return cluster.list(f"{group}/v1", "Thing")
    except Busy:
        return None
