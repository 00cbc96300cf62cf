"""Whether clusters fit: guaranteed classes and volumes against the namespace's limits and its vSphere
cluster.
"""

from __future__ import annotations

from typing import Any

import pytest

from bfinfra.backends.vcenter.capacity import Capacity
from bfinfra.backends.vcenter.namespaces import Supervisor
from bfinfra.backends.vcenter.vm_classes import VmClass
from bfinfra.kinds.supervisor.base import fit
from bfinfra.kinds.supervisor.base.fit import Environment, Space
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Spec
from bfinfra.model.errors import Refusal

GIB = 2**30
CLASSES = {
    "best-effort": VmClass(4, 64 * GIB),
    "guaranteed": VmClass(2, 8 * GIB, 100, 100),
    "half": VmClass(4, 8 * GIB, 50, 50),
}


def spec(
    workers: int = 1,
    vm_class: str = "guaranteed",
    namespace: str = "a",
    volume: str = "",
    storage: str = "gold",
) -> Spec:
    nodes: dict[str, Any] = {"vm_class": vm_class, "storage_class": storage}
    pool = {
        **nodes,
        "count": workers,
        **({"volumes": {"data": {"mount_path": "/data", "capacity": volume}}} if volume else {}),
    }
    return Spec.model_validate(
        {
            "namespace": namespace,
            "version": "v1.20",
            "control_plane": {"count": 1, **nodes},
            "workers": {"pool": pool},
        }
    )


def environment(capacity: Capacity | None = None, **limits: Any) -> Environment:
    spaces = {"a": Space("compute", **limits), "b": Space("compute"), "far": Space("other")}
    return Environment(
        spaces, classes=CLASSES, capacities={"compute": capacity or Capacity(1_000_000, 1000 * GIB, 2000)}
    )


@pytest.mark.parametrize(
    ("limits", "workers"),
    [({"memory": 16 * GIB}, 1), ({"cpu": 8000}, 1), ({}, 100), ({"memory": 24 * GIB, "cpu": 12000}, 2)],
)
def test_up_to_the_limit_it_fits(limits, workers):
    fit.check(spec(workers), {}, environment(**limits))


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"memory": 24 * GIB - 1}, "reserve 24GiB of memory; the namespace a may use"),
        ({"cpu": 11_999}, "reserve 12GHz of CPU; the namespace a may use 11999MHz"),
    ],
)
def test_more_than_the_namespace_may_use_is_refused_at_the_class(limits, says):
    with pytest.raises(Refusal, match=says) as refused:
        fit.check(spec(2), {}, environment(**limits))
    assert refused.value.field == "workers.pool.vm_class"
    assert "3 × guaranteed" in refused.value.problems[0].why


def test_a_reservation_in_part_counts_in_part():
    fit.check(spec(1, "half"), {}, environment(memory=8 * GIB, cpu=8000))
    with pytest.raises(Refusal, match="reserve 12GiB"):
        fit.check(spec(2, "half"), {}, environment(memory=8 * GIB))


def test_best_effort_never_counts_nor_does_a_class_that_is_not_known():
    fit.check(spec(100, "best-effort"), {}, environment(memory=GIB, cpu=1))
    fit.check(spec(100, "mystery"), {}, environment(memory=GIB, cpu=1))


def test_what_the_site_s_other_clusters_take_counts():
    with pytest.raises(Refusal, match="reserve 16GiB") as refused:
        fit.check(spec(), {"other": spec()}, environment(memory=24 * GIB))
    assert "the cluster other takes 16GiB" in refused.value.problems[0].why
    fit.check(spec(), {"other": spec(namespace="b")}, environment(memory=24 * GIB))


def test_more_than_the_hosts_have_is_refused_over_all_namespaces_of_the_vsphere_cluster():
    small = environment(Capacity(1_000_000, 24 * GIB, 2000))
    fit.check(spec(), {"far": spec(100, namespace="far")}, small)
    with pytest.raises(Refusal, match="the hosts of compute have 24GiB"):
        fit.check(spec(), {"other": spec(namespace="b")}, small)
    with pytest.raises(Refusal, match="the hosts of compute have 7GHz"):
        fit.check(spec(), {}, environment(Capacity(7000, 1000 * GIB, 2000)))


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"storage": {"gold": 100 * GIB}}, "take 150GiB of gold; the namespace a may use 100GiB"),
        ({"total_storage": 149 * GIB}, "take 150GiB; the namespace a may use 149GiB"),
    ],
)
def test_volumes_beyond_the_namespace_s_storage_are_refused(limits, says):
    with pytest.raises(Refusal, match=says) as refused:
        fit.check(spec(3, volume="50GiB"), {}, environment(**limits))
    assert refused.value.field == "workers.pool.volumes"
    fit.check(spec(2, volume="50GiB"), {}, environment(**limits))


def test_volumes_of_the_site_s_other_clusters_count_by_their_policy():
    gold = environment(storage={"gold": 100 * GIB, "silver": None})
    fit.check(spec(2, volume="50GiB"), {"other": spec(2, volume="50GiB", storage="silver")}, gold)
    with pytest.raises(Refusal, match="may use 100GiB") as refused:
        fit.check(spec(2, volume="50GiB"), {"other": spec(1, volume="1GiB")}, gold)
    assert "the site's other clusters there take 1GiB" in refused.value.problems[0].why


def test_where_nothing_is_known_nothing_is_refused():
    fit.check(spec(150), {}, Environment())


@pytest.mark.parametrize(
    ("supervisor", "found"),
    [
        (Supervisor("domain-c1", "10.0.0.1", True), True),
        (Supervisor("domain-c1", "", True), False),
        (Supervisor("domain-c1", "10.0.0.1", False), False),
    ],
)
def test_only_a_running_supervisor_can_be_asked(supervisor, found):
    here = Environment({"a": Space("compute")}, supervisors={"compute": supervisor})
    assert (here.supervisor("a") is not None) is found
    assert here.supervisor("unknown") is None
