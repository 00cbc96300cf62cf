"""The nodes of a Tanzu cluster beside the vGPUs and device groups of the hosts, with what else the site runs
there.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from kinds.lifecycle import SPECS

from bfinfra.backends.vcenter.vgpus import HostOffer
from bfinfra.kinds.class_gpus import GpuFacts
from bfinfra.kinds.supervisor.base.fit import Environment
from bfinfra.kinds.supervisor.service_vm.spec import Spec as Machine
from bfinfra.kinds.supervisor.supervisor_namespace.spec import Spec as Namespace
from bfinfra.kinds.supervisor.tanzu_cluster import forms
from bfinfra.kinds.supervisor.tanzu_cluster.facts import TanzuClusterFacts
from bfinfra.kinds.supervisor.tanzu_cluster.forms import FORMS
from bfinfra.kinds.supervisor.tanzu_cluster.kind import TanzuCluster
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Spec
from bfinfra.kinds.supervisor.tanzu_cluster.state import State
from bfinfra.kinds.supervisor.vks_cluster.spec import Spec as VksCluster
from bfinfra.kinds.vcenter.vm_class.spec import Spec as VmClass
from bfinfra.model import resource
from bfinfra.model.conflict import Conflict
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.refs import Key

WHOLE, PAIR = "nvidia_h100-80c", "Nvidia:2@nvidia_h100-80c%NVLink"
CARD = 81559 << 20  # as a card of 80 GiB tells it
PLAIN: dict[str, Any] = {"cpus": 16, "memory": "128GiB", "memory_reservation": 100}
SITE = yaml.safe_load((SPECS / "vks-gpu.yaml").read_text())
MACHINE = yaml.safe_load((SPECS / "dlvm.yaml").read_text())["service_vm"]["dl-01"]
VKS: dict[str, Any] = {**SITE["vks_cluster"]["ml-01"], "workers": {}}


def cluster(workers: int, vm_class: str = "one", control_plane: str = "plain") -> Spec:
    nodes = {"vm_class": vm_class, "storage_class": "gold", "count": workers}
    first = {"vm_class": control_plane, "storage_class": "gold", "count": 1}
    fields = {"namespace": "ml", "version": "v1.20", "control_plane": first, "workers": {"gpu": nodes}}
    return Spec.model_validate(fields)


def found(cards: int, **clusters: resource.Spec) -> list[Conflict]:
    """Of one host with so many cards, and a site with these resources."""
    device = {"backing": {"_typeName": "VirtualPCIPassthroughVmiopBackingInfo", "vgpu": WHOLE}}
    host = HostOffer("esx", "gpu", (WHOLE,), {PAIR: [device, device]}, (CARD,) * cards)
    kinds = {Spec: "tanzu_cluster", VksCluster: "vks_cluster", Machine: "service_vm"}
    wanted: dict[Key, resource.Spec] = {
        Key("vm_class", "one"): VmClass.model_validate({**PLAIN, "vgpus": [WHOLE]}),
        Key("vm_class", "pair"): VmClass.model_validate({**PLAIN, "device_groups": [PAIR]}),
        Key("supervisor_namespace", "ml"): Namespace.model_validate({"cluster": "gpu"}),
        **{Key(kinds[type(spec)], name): spec for name, spec in clusters.items()},
    }
    facts = TanzuClusterFacts(environment=Environment(gpus=GpuFacts(offers=(host,))))
    return [*TanzuCluster.conflicts(wanted, {}, facts)]


def test_more_nodes_than_the_hosts_have_vgpus_are_refused() -> None:
    [conflict] = found(2, a=cluster(3))
    assert conflict.what == f"its nodes can take 3 vGPUs {WHOLE}; the hosts of gpu have 2"
    assert (conflict.at.field, conflict.stops) == ("workers.gpu.vm_class", True)
    assert found(4, a=cluster(3)) == found(2, a=cluster(9, "plain")) == []


def test_more_nodes_than_the_hosts_have_device_groups_are_refused() -> None:
    [conflict] = found(5, a=cluster(3, "pair"))
    assert conflict.what == f"its nodes can take 3 device groups {PAIR}; the hosts of gpu have 2"
    assert found(8, a=cluster(3, "pair")) == []


def test_nodes_of_the_control_plane_count() -> None:
    [conflict] = found(1, a=cluster(1, control_plane="one"))
    assert conflict.what == f"its nodes can take 2 vGPUs {WHOLE}; the hosts of gpu have 1"
    assert conflict.at.field == "control_plane.vm_class"


def test_nodes_and_machines_of_all_kinds_count_together() -> None:
    vks = VksCluster.model_validate({**VKS, "workers": {"gpu": {"vm_class": "one", "count": 1}}})
    machine = Machine.model_validate({**MACHINE, "vm_class": "pair"})
    [conflict] = found(5, a=cluster(1), b=cluster(2), c=vks, d=machine)
    assert conflict.what == f"its nodes can take 6 vGPUs {WHOLE}; the hosts of gpu have 5"
    assert conflict.why == f"a device group {PAIR} takes 2 of them"
    assert [str(other.key) for other in conflict.others] == [
        "tanzu_cluster/b",
        "vks_cluster/c",
        "service_vm/d",
    ]
    assert found(7, a=cluster(1), b=cluster(2), c=vks, d=machine) == []


def test_the_control_plane_of_a_vks_cluster_counts_if_its_class_has_vgpus() -> None:
    vks = VksCluster.model_validate({**VKS, "vm_class": "one", "control_plane": {"count": 3}})
    [conflict] = found(3, a=cluster(1), c=vks)
    assert conflict.what == f"its nodes can take 4 vGPUs {WHOLE}; the hosts of gpu have 3"


def test_without_a_spare_vgpu_a_warning_says_that_nodes_can_not_be_replaced() -> None:
    [warning] = found(2, a=cluster(2))
    assert warning.what == f"no vGPU {WHOLE} is spare while its nodes are replaced"
    assert warning.next == "before its nodes are replaced, write one node fewer, or add hosts to gpu"
    assert (warning.at.field, warning.stops) == ("workers.gpu", False)
    assert found(3, a=cluster(2)) == []


@pytest.mark.parametrize("api", FORMS)
def test_a_cluster_that_somebody_scaled_is_counted_before_it_is_scaled_back(api: str) -> None:
    spec = Spec.model_validate({**cluster(3).model_dump(), "api": api})
    body = forms.manifest("a", "ml", spec, {}, "v1.20.2")["spec"]
    home = Endpoint(server="172.24.206.1", namespace="ml")
    live = State(namespace="ml", phase="running", api=api, body=body, home=home)
    assert live.sized(spec)
    for change in (
        {"workers": 2},
        {"workers": 3, "vm_class": "plain"},
        {"workers": 3, "control_plane": "one"},
    ):
        other = cluster(**change)
        assert not live.sized(Spec.model_validate({**other.model_dump(), "api": api})), change
