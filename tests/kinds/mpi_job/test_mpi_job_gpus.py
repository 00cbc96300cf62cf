"""Workers beside the GPUs of nodes whose VM class has device groups, or is not in the file."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from kinds.lifecycle import SPECS

from bfinfra.backends.vcenter.vgpus import HostOffer
from bfinfra.backends.vcenter.vm_classes import VmClass
from bfinfra.kinds.class_gpus import GpuFacts
from bfinfra.kinds.cluster.gpu_operator.spec import Spec as GpuOperator
from bfinfra.kinds.cluster.mpi_job.kind import MpiJob, State
from bfinfra.kinds.cluster.mpi_job.spec import Spec
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Spec as Tanzu
from bfinfra.kinds.supervisor.vks_cluster.spec import Spec as Vks
from bfinfra.kinds.vcenter.vm_class.spec import Spec as OwnClass
from bfinfra.model import resource
from bfinfra.model.conflict import Conflict
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key

PAIR, WHOLE = "Nvidia:2@nvidia_h100-80c%NVLink", "nvidia_h100-80c"
VKS = yaml.safe_load((SPECS / "vks-gpu.yaml").read_text())["vks_cluster"]["ml-01"]
PLAIN: dict[str, Any] = {"cpus": 16, "memory": "128GiB", "memory_reservation": 100}
DEVICE = {"backing": {"_typeName": "VirtualPCIPassthroughVmiopBackingInfo", "vgpu": WHOLE}}
HOST = HostOffer("esx", "gpu", (WHOLE,), {PAIR: [DEVICE, DEVICE]}, (81559 << 20,) * 4)
THERE = {"foreign": VmClass(16, 1 << 37, vgpus=(WHOLE,), groups=(PAIR,)), "cpu": VmClass(4, 1 << 34)}
TOLD = GpuFacts(THERE, (HOST,))
JOB = Key("mpi_job", "train")


def tanzu(vm_class: str, nodes: int = 2) -> Tanzu:
    kind = {"vm_class": vm_class, "storage_class": "gold"}
    pools = {"control_plane": {**kind, "count": 1}, "workers": {"gpu": {**kind, "count": nodes}}}
    return Tanzu.model_validate({"namespace": "ml", "version": "v1.20", **pools})


def vks(vm_class: str, nodes: int = 2) -> Vks:
    return Vks.model_validate({**VKS, "workers": {"gpu": {"vm_class": vm_class, "count": nodes}}})


def job(workers: int, gpus: int = 2) -> Spec:
    fields = {"cluster": "ml-01", "image": "i", "command": ["c"], "transport": "tcp"}
    return Spec.model_validate({**fields, "workers": workers, "gpus": gpus})


def found(
    spec: Spec, cluster: Tanzu | Vks, facts: GpuFacts | None = TOLD, **beside: resource.Spec
) -> list[Conflict]:
    home = Key("tanzu_cluster" if isinstance(cluster, Tanzu) else "vks_cluster", "ml-01")
    wanted: dict[Key, resource.Spec] = {
        home: cluster,
        JOB: spec,
        Key("vm_class", "pair"): OwnClass.model_validate({**PLAIN, "device_groups": [PAIR]}),
        Key("vm_class", "one"): OwnClass.model_validate({**PLAIN, "vgpus": [WHOLE]}),
        **{Key(kind, "own"): each for kind, each in beside.items()},
    }
    return [*MpiJob.conflicts(wanted, {}, facts)]


@pytest.mark.parametrize("cluster", [tanzu, vks])
def test_workers_are_compared_with_the_gpus_in_device_groups(cluster: Any) -> None:
    [conflict] = found(job(3), cluster("pair"))
    assert conflict.what == "3 workers with 2 GPUs each find space for 2"
    assert conflict.why.endswith("_cluster/ml-01 has 2 worker nodes with 4 GPUs")
    assert (conflict.at.field, conflict.stops) == ("workers", True)
    assert found(job(2), cluster("pair")) == found(job(4, 1), cluster("pair")) == []
    assert len(found(job(5, 1), cluster("pair"))) == len(found(job(1, 3), cluster("pair"))) == 1


@pytest.mark.parametrize("cluster", [tanzu, vks])
def test_workers_are_compared_with_classes_that_only_vcenter_knows(cluster: Any) -> None:
    [conflict] = found(job(3, 3), cluster("foreign"))
    assert conflict.what == "3 workers with 3 GPUs each find space for 2"
    assert found(job(2, 3), cluster("foreign")) == []
    [conflict] = found(job(1, 1), cluster("cpu"))
    assert conflict.why.endswith("has 2 worker nodes with 0 GPUs")


def test_what_the_file_tells_by_itself_is_not_reported_twice() -> None:
    assert found(job(3, 1), vks("one")) == []
    assert len([*Spec.conflicts({JOB: job(3, 1)}, {JOB: job(3, 1), **_known(vks("one"))})]) == 1


def _known(cluster: Vks) -> dict[Key, resource.Spec]:
    one = OwnClass.model_validate({**PLAIN, "vgpus": [WHOLE]})
    return {Key("vks_cluster", "ml-01"): cluster, Key("vm_class", "one"): one}


def test_groups_that_no_host_tells_and_classes_that_are_not_known_refuse_nothing() -> None:
    assert found(job(9), vks("pair"), GpuFacts(THERE)) == found(job(9), vks("foreign"), GpuFacts(THERE)) == []
    assert found(job(9), vks("mystery")) == found(job(9), vks("pair"), None) == []


def test_nodes_whose_gpus_are_divided_refuse_nothing() -> None:
    layout = {"layout": "all-1g.10gb", "nodes": ["a"]}
    for by in ({"mig": "single"}, {"mig_layouts": [layout]}):
        divided = GpuOperator.model_validate({"cluster": "ml-01", "files": ["x"], **by})
        assert found(job(9), vks("pair"), gpu_operator=divided) == []
    whole = GpuOperator.model_validate({"cluster": "ml-01", "files": ["x"]})
    assert len(found(job(9), vks("pair"), gpu_operator=whole)) == 1


def test_a_job_that_ran_already_is_not_refused_when_nodes_have_gone() -> None:
    mark = Mark("s", str(JOB)).committed(job(3).applied())
    home = Endpoint(server="10.0.0.1", namespace="ml")
    ran = State(
        mark=mark,
        name="train",
        cluster="ml-01",
        namespace="default",
        home=home,
        version="v1",
        digest="",
        spec={},
        phase="Succeeded",
    )
    wanted = {JOB: job(3), Key("vks_cluster", "ml-01"): vks("foreign")}
    assert [*MpiJob.conflicts(wanted, {JOB: ran}, TOLD)] == []
    assert len([*MpiJob.conflicts(wanted | {JOB: job(4, 3)}, {JOB: ran}, TOLD)]) == 1
