"""Pools beside the vGPUs of the hosts."""

from __future__ import annotations

from typing import Any

import yaml
from kinds.lifecycle import SPECS

from bfinfra.backends.vcenter.vgpus import HostOffer
from bfinfra.kinds.class_gpus import GpuFacts
from bfinfra.kinds.supervisor.base.fit import Environment
from bfinfra.kinds.supervisor.base.gpus import conflicts
from bfinfra.kinds.supervisor.supervisor_namespace.spec import Spec as Namespace
from bfinfra.kinds.supervisor.vks_cluster.catalog import VksClusterFacts
from bfinfra.kinds.supervisor.vks_cluster.kind import VksCluster
from bfinfra.kinds.supervisor.vks_cluster.spec import Spec
from bfinfra.kinds.vcenter.gpu_host.spec import Spec as GpuHost
from bfinfra.kinds.vcenter.host_graphics import Spec as Graphics
from bfinfra.kinds.vcenter.vm_class.spec import Spec as VmClass
from bfinfra.model import resource
from bfinfra.model.conflict import Conflict
from bfinfra.model.refs import Key

SITE = yaml.safe_load((SPECS / "vks-gpu.yaml").read_text())
PROFILE = "nvidia_h100-40c"
CARD = 81559 << 20  # as a card of 80 GiB tells it


def found(
    hosts: int, graphics: str = "", cards: tuple[int, ...] = (), reserved: int = 0, **gpu: Any
) -> list[Conflict]:
    """Of hosts with one card each. `graphics`: one more host with `cards`, which offers nothing yet and gets
    this type; `reserved`: VMs that the namespace keeps free.
    """
    space = {**SITE["supervisor_namespace"]["ml"], "reserved": {"h100-40c": reserved} if reserved else {}}
    given = SITE["vks_cluster"]["ml-01"]
    pool = {"vm_class": "h100-40c", **gpu}
    wanted: dict[Key, resource.Spec] = {
        Key("vm_class", "h100-40c"): VmClass.model_validate(SITE["vm_class"]["h100-40c"]),
        Key("supervisor_namespace", "ml"): Namespace.model_validate(space),
        Key("vks_cluster", "ml-01"): Spec.model_validate({**given, "workers": {"gpu": pool}}),
    }
    offers = [HostOffer(f"esx{n}", "gpu", (PROFILE,), {}, (CARD,)) for n in range(hosts)]
    if graphics:
        wanted[Key("host_graphics", "vgpu")] = Graphics(hosts=("esx-new",), type=graphics)
        offers.append(HostOffer("esx-new", "gpu", cards=cards))
    return [*conflicts("vks_cluster", wanted, {}, Environment(gpus=GpuFacts(offers=tuple(offers))))]


def test_more_nodes_than_the_hosts_have_vgpus_are_refused() -> None:
    [conflict] = found(1, autoscale={"min": 0, "max": 3})
    assert conflict.what == f"its nodes can take 3 vGPUs {PROFILE}; the hosts of gpu have 2"
    assert conflict.at.field == "workers.gpu.vm_class"


def test_a_surge_without_a_spare_gpu_is_refused() -> None:
    [conflict] = found(1, count=2)
    assert conflict.what == f"no vGPU {PROFILE} is spare while its nodes are replaced"
    assert conflict.next == "write rollout: {max_surge: 0, max_unavailable: 1}"
    assert found(1, count=2, rollout={"max_surge": 0, "max_unavailable": 1}) == []
    assert found(2, count=2) == []


def test_a_host_that_the_site_is_about_to_share_counts_by_the_memory_of_its_cards() -> None:
    assert found(1, graphics="sharedDirect", cards=(CARD,), count=3) == []
    [conflict] = found(1, graphics="sharedDirect", cards=(CARD,), count=5)
    assert conflict.what == f"its nodes can take 5 vGPUs {PROFILE}; the hosts of gpu have 4"


def test_what_a_namespace_keeps_free_counts() -> None:
    [conflict] = found(2, count=1, reserved=5)
    assert conflict.what == (
        f"its nodes can take 1 vGPUs {PROFILE}, namespaces reserve 4 more; the hosts of gpu have 4"
    )
    assert found(2, count=4, reserved=4, rollout={"max_surge": 0, "max_unavailable": 1}) == []


def test_a_host_without_known_cards_that_the_site_is_about_to_share_leaves_the_sum_open() -> None:
    assert found(1, graphics="sharedDirect", count=3) == []
    assert len(found(1, graphics="shared", count=3)) == 1


def test_hosts_without_known_profiles_refuse_nothing() -> None:
    assert found(0, count=9) == []


PAIR, WHOLE = "Nvidia:2@nvidia_h100-80c%NVLink", "nvidia_h100-80c"


def grouped(
    *cards: int, beside: int = 0, reserved: int = 0, groups: bool = True, **gpu: Any
) -> list[Conflict]:
    """A pool whose machines have a group of two, on hosts with so many cards each; `beside`: nodes of another
    pool with one vGPU of a whole card; not `groups`: no host offers the group.
    """
    site: dict[str, dict[str, Any]] = yaml.safe_load((SPECS / "vks-gpu.yaml").read_text())
    base = site["vm_class"]["h100-40c"]
    vm_classes = {
        "pair": {**base, "vgpus": [], "device_groups": [PAIR]},
        "single": {**base, "vgpus": [WHOLE]},
    }
    pools = {"gpu": {"vm_class": "pair", **gpu}, "one": {"vm_class": "single", "count": beside}}
    space = {**site["supervisor_namespace"]["ml"], "vm_classes": ["guaranteed-large", *vm_classes]}
    space["reserved"] = {"pair": reserved} if reserved else {}
    device = {"_typeName": "VirtualPCIPassthrough", "key": 0}
    device["backing"] = {"_typeName": "VirtualPCIPassthroughVmiopBackingInfo", "vgpu": WHOLE}
    offered = {PAIR: [device, device]} if groups else {}
    wanted: dict[Key, resource.Spec] = {
        Key("supervisor_namespace", "ml"): Namespace.model_validate(space),
        Key("vks_cluster", "ml-01"): Spec.model_validate({**site["vks_cluster"]["ml-01"], "workers": pools}),
        **{Key("vm_class", name): VmClass.model_validate(each) for name, each in vm_classes.items()},
    }
    offers = tuple(
        HostOffer(f"esx{n}", "gpu", (WHOLE,), offered, (CARD,) * count) for n, count in enumerate(cards)
    )
    facts = VksClusterFacts({}, {}, {}, Environment(gpus=GpuFacts(offers=offers)))
    return [*VksCluster.conflicts(wanted, {}, facts)]


SLOW = {"max_surge": 0, "max_unavailable": 1}


def test_more_nodes_than_the_hosts_have_device_groups_are_refused() -> None:
    [conflict] = grouped(3, 3, count=3, rollout=SLOW)
    assert conflict.what == f"its nodes can take 3 device groups {PAIR}; the hosts of gpu have 2"
    assert conflict.at.field == "workers.gpu.vm_class"
    assert (conflict.why, conflict.next) == (
        "each takes 2 linked cards of one host",
        "write fewer, or add hosts to gpu",
    )
    assert grouped(4, 3, count=3, rollout=SLOW) == []


def test_vgpus_beside_device_groups_take_the_same_cards() -> None:
    [conflict] = grouped(4, count=1, beside=3, rollout=SLOW)
    assert conflict.what == f"its nodes can take 5 vGPUs {WHOLE}; the hosts of gpu have 4"
    assert conflict.why == f"a device group {PAIR} takes 2 of them"
    assert grouped(5, count=1, beside=2, rollout=SLOW) == []


def test_a_surge_without_a_spare_device_group_is_refused() -> None:
    [conflict] = grouped(2, count=1)
    assert conflict.what == f"no device group {PAIR} is spare while its nodes are replaced"
    assert grouped(4, count=1) == []


def test_device_groups_that_a_namespace_keeps_free_count() -> None:
    [conflict] = grouped(4, count=1, reserved=3, rollout=SLOW)
    assert conflict.what == (
        f"its nodes can take 1 device groups {PAIR}, namespaces reserve 2 more; the hosts of gpu have 2"
    )


def test_device_groups_that_no_host_offers_yet_refuse_nothing_here() -> None:
    assert grouped(2, count=9, groups=False) == []


def test_an_autoscaler_is_told_of_the_gpus_of_a_device_group() -> None:
    few, many = {"min": 0, "max": 2}, {"min": 0, "max": 2, "gpus": 2}
    assert grouped(4, autoscale=many, rollout=SLOW) == []
    [warning] = grouped(4, autoscale=few, rollout=SLOW)
    assert (warning.stops, warning.next) == (False, "write gpus: 2")
    [conflict] = grouped(4, autoscale={**many, "gpus": 1}, rollout=SLOW)
    assert (conflict.what, conflict.next) == ("each node has 2 GPUs, not 1", "write 2")
    assert grouped(4, autoscale={**many, "gpus": 1}, rollout=SLOW, groups=False) == []


def told(**autoscale: int) -> list[Conflict]:
    """What the site's file says of what the autoscaler is told."""
    pool = {"vm_class": "h100-40c", "autoscale": {"max": 2, **autoscale}}
    key = Key("vks_cluster", "ml-01")
    mine = {key: Spec.model_validate({**SITE["vks_cluster"]["ml-01"], "workers": {"gpu": pool}})}
    own = Key("vm_class", "h100-40c")
    return [*Spec.conflicts(mine, {**mine, own: VmClass.model_validate(SITE["vm_class"]["h100-40c"])})]


def test_an_autoscaler_that_is_not_told_of_gpus_is_a_warning_for_an_empty_pool() -> None:
    [warning] = told(min=0)
    assert warning.what == "the autoscaler starts no node of the empty pool for pods that ask for GPUs"
    assert (warning.stops, warning.next) == (False, "write gpus: 1")
    assert told(min=1) == told(min=0, gpus=1) == []


def test_an_autoscaler_that_is_told_of_other_gpus_is_refused() -> None:
    [conflict] = told(min=1, gpus=2)
    assert (conflict.at.field, conflict.stops) == ("workers.gpu.autoscale.gpus", True)


NICS, CX7, CX6 = "Nvidia:1@nvidia_h100-80c%NIC", (0x15B3, 0x1021), (0x15B3, 0x101D)


def vgpu() -> dict[str, Any]:
    return {"backing": {"_typeName": "VirtualPCIPassthroughVmiopBackingInfo", "vgpu": WHOLE}}


def card(*models: tuple[int, int]) -> dict[str, Any]:
    """A card of one of these models, that vSphere picks."""
    allowed = [{"vendorId": vendor, "deviceId": device} for vendor, device in models]
    return {"backing": {"_typeName": "VirtualPCIPassthroughDynamicBackingInfo", "allowedDevice": allowed}}


PART = {"_typeName": "VirtualSriovEthernetCard"}
"""A virtual function of a network card."""


def with_nics(
    devices: list[dict[str, Any]],
    *hosts: dict[tuple[int, int], tuple[int, int]],
    moving: bool = False,
    **gpu: Any,
) -> list[Conflict]:
    """A pool whose machines have a group of these devices, on hosts of four GPUs with these network cards:
    passed through, and in all; `moving`: the site says what the hosts pass through.
    """
    given = yaml.safe_load((SPECS / "vks-gpu.yaml").read_text())
    vm_class = {**given["vm_class"]["h100-40c"], "vgpus": [], "device_groups": [NICS]}
    pools = {"gpu": {"vm_class": "nics", "rollout": SLOW, **gpu}}
    wanted: dict[Key, resource.Spec] = {
        Key("vm_class", "nics"): VmClass.model_validate(vm_class),
        Key("supervisor_namespace", "ml"): Namespace.model_validate({"cluster": "gpu"}),
        Key("vks_cluster", "ml-01"): Spec.model_validate({**given["vks_cluster"]["ml-01"], "workers": pools}),
    }
    if moving:
        wanted[Key("gpu_host", "esx0")] = GpuHost.model_validate({"passthrough": []})
    offers = tuple(
        HostOffer(f"esx{n}", "gpu", (WHOLE,), {NICS: devices}, (CARD,) * 4, nics)
        for n, nics in enumerate(hosts)
    )
    facts = VksClusterFacts({}, {}, {}, Environment(gpus=GpuFacts(offers=offers)))
    return [*VksCluster.conflicts(wanted, {}, facts)]


def test_network_cards_of_device_groups_count_as_far_as_hosts_pass_them_through() -> None:
    pair = [vgpu(), card(CX7)]
    [conflict] = with_nics(pair, {CX7: (2, 4)}, {CX7: (1, 4)}, count=4)
    assert conflict.what == f"its nodes can take 4 device groups {NICS}; the hosts of gpu have 3"
    assert conflict.why == "each takes 1 linked card and 1 network card of one host"
    assert with_nics(pair, {CX7: (2, 4)}, {CX7: (1, 4)}, count=3) == []
    [conflict] = with_nics(pair, {CX7: (9, 9)}, count=5)
    assert conflict.what.endswith("the hosts of gpu have 4"), "the GPUs are fewer"


def test_network_cards_count_by_the_number_and_the_models_that_a_group_takes() -> None:
    [conflict] = with_nics([vgpu(), card(CX7), card(CX7)], {CX7: (5, 5)}, count=3)
    assert conflict.what.endswith("the hosts of gpu have 2")
    assert conflict.why == "each takes 1 linked card and 2 network cards of one host"
    either = [vgpu(), card(CX7, CX6)]
    assert with_nics(either, {CX7: (1, 1), CX6: (2, 2)}, count=3) == []
    assert len(with_nics(either, {CX7: (1, 1), CX6: (1, 1)}, count=3)) == 1


def test_where_the_site_says_what_is_passed_through_all_network_cards_count() -> None:
    pair = [vgpu(), card(CX7)]
    assert with_nics(pair, {CX7: (1, 3)}, count=3, moving=True) == []
    assert len(with_nics(pair, {CX7: (1, 3)}, count=4, moving=True)) == 1


def test_parts_of_network_cards_are_not_counted_and_a_warning_says_so() -> None:
    [warning] = with_nics([vgpu(), PART], {}, count=4)
    assert warning.what == (f"whether the hosts have network cards for all device groups {NICS} is not known")
    assert (warning.stops, warning.at.field) == (False, "workers.gpu.vm_class")
    [conflict] = with_nics([vgpu(), PART], {}, count=5)
    assert conflict.stops, "the GPUs are counted"


def test_a_group_of_whole_gpus_is_not_counted() -> None:
    assert with_nics([card((0x10DE, 0x2331)), card(CX7)], {CX7: (1, 1)}, count=9) == []


def test_the_autoscaler_is_told_of_the_gpus_of_a_group_and_not_of_its_network_cards() -> None:
    scale = {"min": 1, "max": 2}
    pair = [vgpu(), card(CX7)]
    assert with_nics(pair, {CX7: (4, 4)}, autoscale={**scale, "gpus": 1}) == []
    [conflict] = with_nics(pair, {CX7: (4, 4)}, autoscale={**scale, "gpus": 2})
    assert conflict.what == "each node has 1 GPUs, not 2"
