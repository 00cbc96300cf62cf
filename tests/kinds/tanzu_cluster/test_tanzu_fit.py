"""Whether clusters and machines fit: guaranteed classes and volumes against the namespace's limits and its
vSphere cluster.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bfinfra.backends.vcenter.capacity import Capacity
from bfinfra.backends.vcenter.namespaces import Supervisor
from bfinfra.backends.vcenter.vm_classes import VmClass
from bfinfra.kinds.class_gpus import GpuFacts
from bfinfra.kinds.supervisor.base import fit
from bfinfra.kinds.supervisor.base.fit import Environment, Space
from bfinfra.kinds.supervisor.service_vm.spec import Spec as Machine
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Spec
from bfinfra.kinds.supervisor.vks_cluster.spec import Spec as VksCluster
from bfinfra.model import resource
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key

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
        spaces,
        gpus=GpuFacts(CLASSES),
        capacities={"compute": capacity or Capacity(1_000_000, 1000 * GIB, 2000)},
    )


def check(mine: resource.Spec, around: Environment, **others: resource.Spec) -> None:
    """As a plan does, with the site's other resources by name."""
    kinds = {Spec: "tanzu_cluster", VksCluster: "vks_cluster", Machine: "service_vm"}
    wanted = {Key(kinds[type(each)], name): each for name, each in {"mine": mine, **others}.items()}
    fit.check(mine, PlanContext(Mark("s", f"{kinds[type(mine)]}/mine"), wanted=wanted), around)


@pytest.mark.parametrize(
    ("limits", "workers"),
    [({"memory": 16 * GIB}, 1), ({"cpu": 8000}, 1), ({}, 100), ({"memory": 24 * GIB, "cpu": 12000}, 2)],
)
def test_up_to_the_limit_it_fits(limits, workers):
    check(spec(workers), environment(**limits))


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"memory": 24 * GIB - 1}, "reserve 24GiB of memory; the namespace a may use"),
        ({"cpu": 11_999}, "reserve 12GHz of CPU; the namespace a may use 11999MHz"),
    ],
)
def test_more_than_the_namespace_may_use_is_refused_at_the_class(limits, says):
    with pytest.raises(Refusal, match=says) as refused:
        check(spec(2), environment(**limits))
    assert refused.value.field == "workers.pool.vm_class"
    assert "3 × guaranteed" in refused.value.problems[0].why


def test_a_class_that_no_host_can_run_is_refused_however_large_the_cluster_is():
    large = Capacity(1_000_000, 1000 * GIB, 2000, threads=2, host_memory=8 * GIB)
    check(spec(), environment(large))
    with pytest.raises(Refusal, match="takes 2 CPUs; no host of compute has more than 1 logical ones") as few:
        check(spec(), environment(replace(large, threads=1)))
    assert few.value.field == "control_plane.vm_class"
    with pytest.raises(Refusal, match="reserves 8GiB of memory; no host of compute has more than 7GiB"):
        check(spec(), environment(replace(large, host_memory=7 * GIB)))
    check(spec(1, "best-effort"), environment(replace(large, threads=4, host_memory=1)))
    named = Environment(
        {"a": Space("of-memory")}, gpus=GpuFacts(CLASSES), capacities={"of-memory": replace(large, threads=1)}
    )
    with pytest.raises(Refusal, match="takes 2 CPUs; no host of of-memory has"):
        check(spec(), named)
    check(spec(1, "mystery"), environment(replace(large, threads=1)), other=spec(1, "mystery"))


def test_a_reservation_in_part_counts_in_part():
    check(spec(1, "half"), environment(memory=8 * GIB, cpu=8000))
    with pytest.raises(Refusal, match="reserve 12GiB"):
        check(spec(2, "half"), environment(memory=8 * GIB))


def test_best_effort_never_counts_nor_does_a_class_that_is_not_known():
    check(spec(100, "best-effort"), environment(memory=GIB, cpu=1))
    check(spec(100, "mystery"), environment(memory=GIB, cpu=1))


def test_what_the_site_s_other_clusters_take_counts():
    with pytest.raises(Refusal, match="reserve 16GiB") as refused:
        check(spec(), environment(memory=24 * GIB), other=spec())
    assert "tanzu_cluster/other reserves 16GiB" in refused.value.problems[0].why
    check(spec(), environment(memory=24 * GIB), other=spec(namespace="b"))


def test_more_than_the_hosts_have_is_refused_over_all_namespaces_of_the_vsphere_cluster():
    small = environment(Capacity(1_000_000, 24 * GIB, 2000))
    check(spec(), small, far=spec(100, namespace="far"))
    with pytest.raises(Refusal, match="the hosts of compute have 24GiB"):
        check(spec(), small, other=spec(namespace="b"))
    with pytest.raises(Refusal, match="the hosts of compute have 7GHz"):
        check(spec(), environment(Capacity(7000, 1000 * GIB, 2000)))


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"storage": {"gold": 100 * GIB}}, "take 150GiB of gold; the namespace a may use 100GiB"),
        ({"total_storage": 149 * GIB}, "take 150GiB; the namespace a may use 149GiB"),
    ],
)
def test_volumes_beyond_the_namespace_s_storage_are_refused(limits, says):
    with pytest.raises(Refusal, match=says) as refused:
        check(spec(3, volume="50GiB"), environment(**limits))
    assert refused.value.field == "workers.pool.volumes"
    check(spec(2, volume="50GiB"), environment(**limits))


def test_volumes_of_the_site_s_other_clusters_count_by_their_policy():
    gold = environment(storage={"gold": 100 * GIB, "silver": None})
    check(spec(2, volume="50GiB"), gold, other=spec(2, volume="50GiB", storage="silver"))
    with pytest.raises(Refusal, match="may use 100GiB") as refused:
        check(spec(2, volume="50GiB"), gold, other=spec(1, volume="1GiB"))
    assert "the site's other clusters and machines there take 1GiB" in refused.value.problems[0].why


def vks(workers: int, volume: str = "1GiB", **fields: Any) -> VksCluster:
    nodes = {"vm_class": "guaranteed", "storage_class": "gold"}
    disks = {"data": {"mount_path": "/data", "capacity": volume}}
    return VksCluster.model_validate(
        {
            **nodes,
            "namespace": "a",
            "cluster_class": "builtin-generic-v3.7.0",
            "version": "v1.34",
            "control_plane": {"count": 1},
            "workers": {"pool": {"count": workers, "volumes": disks}},
            **fields,
        }
    )


def machine(power: str = "on", disk: str = "1GiB", **fields: Any) -> Machine:
    own = {"namespace": "a", "image": {"library": "l", "item": "i"}, "vm_class": "guaranteed"}
    disks = {"data": {"size": disk, "storage_class": "silver"}, "more": {"size": disk}}
    return Machine.model_validate({**own, "storage_class": "gold", "power": power, "disks": disks, **fields})


def test_clusters_of_both_kinds_and_machines_count_together() -> None:
    around = environment(memory=40 * GIB)
    check(spec(), around, other=vks(1), box=machine())
    for mine, other in ((spec(), vks(2)), (vks(2), spec())):
        with pytest.raises(Refusal, match=r"its nodes reserve \d+GiB of memory; the namespace a") as refused:
            check(mine, around, other=other, box=machine())
        kind = "vks" if other.pools()[1].count == 2 else "tanzu"
        assert f"{kind}_cluster/other reserves" in refused.value.problems[0].why
        assert "service_vm/box reserves 8GiB" in refused.value.problems[0].why
    with pytest.raises(Refusal, match="it reserves 8GiB of memory; the namespace a may use 40GiB") as refused:
        check(machine(), around, other=vks(2), old=spec())
    assert refused.value.field == "vm_class"
    check(machine("off"), around, other=vks(2), old=spec())
    check(spec(), around, other=vks(1), box=machine(), off=machine("off"))


def test_machines_count_on_the_hosts_of_their_namespace_s_vsphere_cluster() -> None:
    small = environment(Capacity(1_000_000, 24 * GIB, 2000))
    check(machine(), small, other=spec())
    with pytest.raises(Refusal, match="the hosts of compute have 24GiB") as refused:
        check(machine(namespace="b"), small, other=spec(), box=machine())
    assert refused.value.problems[0].next.startswith("choose a smaller or a best-effort class, or add hosts")


def test_disks_of_machines_count_with_the_volumes_of_clusters() -> None:
    gold = environment(storage={"gold": 100 * GIB, "silver": 60 * GIB})
    check(spec(1, volume="50GiB"), gold, box=machine(disk="50GiB"))
    with pytest.raises(Refusal, match="volumes of its nodes take 51GiB of gold") as refused:
        check(spec(1, volume="51GiB"), gold, box=machine(disk="50GiB"))
    assert "machines there take 50GiB" in refused.value.problems[0].why
    with pytest.raises(Refusal, match="its disks take 50GiB of gold; the namespace a may use") as refused:
        check(machine(disk="50GiB"), gold, other=vks(1, "51GiB"))
    assert refused.value.field == "disks.more"
    with pytest.raises(Refusal, match="its disks take 61GiB of silver") as refused:
        check(machine("off", disk="61GiB"), gold)
    assert refused.value.field == "disks.data"


def test_where_nothing_is_known_nothing_is_refused():
    check(spec(150), Environment())


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
