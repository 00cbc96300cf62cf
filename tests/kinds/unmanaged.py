"""How a stranger of each kind comes to stand in a world: what another client makes under a name, unmarked;
and what somebody puts into ours.

The test file of a kind that makes objects has `UNMANAGED`, an entry: its `plant(world, folder, name)` makes one
unmarked object called `name`, as the kind would call it, with a client that shares nothing with bfinfra
(`rights.given` has pyVmomi and plain HTTP for clusters, `sandbox.asking` has REST), and answers how to look
at it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinds.lifecycle import of_test
from pyVim.task import WaitForTask
from pyVmomi import vim
from rights.given import Kube, administrator, other

from bfinfra.sandbox import Running

Look = Callable[[], object]
"""All of a stranger that could be changed; raises where it is gone."""
Plant = Callable[[Running, Path, str], Look]
SECRETS = "/api/v1/namespaces/default/secrets"
TANZU = "/apis/run.tanzu.vmware.com/v1alpha1/namespaces/team-a/tanzukubernetesclusters"


@dataclass(frozen=True)
class Entry:
    """`at`: the object's name in the kind's example. `inside`: puts something unmarked into ours, and what
    the plan must call it; or why nothing can be in it.
    """

    at: str
    plant: Plant
    inside: tuple[Callable[[Running], object], str] | str

    @property
    def near(self) -> tuple[str, ...]:
        """Names that a careless comparison takes for it."""
        return f"{self.at}-2", f"a{self.at}", self.at[:-1].rstrip("-")


def entry(kind: str) -> Entry:
    """The kind's own; an AssertionError says what to write."""
    found = of_test(kind, "UNMANAGED")
    assert isinstance(found, Entry), (
        f"nobody says how an unmanaged {kind} is made: write in tests/kinds/{kind}/test_{kind}.py\n\n"
        "def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:\n"
        "    <make an unmarked one called name with a client of its own; return a function that looks "
        "at all of it>\n\n"
        f"UNMANAGED = Entry(at=<the object's name in specs/kinds/{kind}.yaml>, plant=unmanaged, "
        "inside=<why nothing of others can be in it>)\n\n"
        "inside=(make, what) where deleting it takes along what others put there: make(sandbox) puts it "
        "there, the plan must name `what`."
    )
    return found


def kube_object(kube: Kube, path: str, body: Mapping[str, Any]) -> Look:
    """Made by POST."""
    kube.call("POST", path, body)
    return lambda: _kept(kube.call("GET", f"{path}/{body['metadata']['name']}"))


def _kept(obj: Mapping[str, Any]) -> list[Any]:
    """Not what controllers say of it."""
    metadata = obj["metadata"]
    return [
        obj.get("spec"),
        obj.get("data"),
        *(metadata.get(field) for field in ("uid", "labels", "annotations", "deletionTimestamp")),
    ]


def config_map(kube: Kube, namespace: str) -> object:
    """Somebody's, in a namespace."""
    return kube.call(
        "POST",
        f"/api/v1/namespaces/{namespace}/configmaps",
        {"metadata": {"name": "theirs"}, "data": {"a": "b"}},
    )


def mpi(kube: Kube, name: str) -> Look:
    """An MPI job that no operator starts."""
    pod = {"template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}
    spec = {"runPolicy": {"suspend": True}, "mpiReplicaSpecs": {"Launcher": pod, "Worker": pod}}
    body = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": spec}
    return kube_object(kube, "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs", body)


def switch(sandbox: Running, name: str) -> None:
    with administrator(sandbox) as si:
        spec = vim.DistributedVirtualSwitch.CreateSpec(
            configSpec=vim.DistributedVirtualSwitch.ConfigSpec(name=name, description="theirs")
        )
        WaitForTask(si.content.searchIndex.FindByInventoryPath("/dc/network").CreateDVS_Task(spec))


def port_group_on(sandbox: Running, name: str, on: str) -> None:
    with administrator(sandbox) as si:
        found = si.content.searchIndex.FindByInventoryPath(f"/dc/network/{on}")
        WaitForTask(
            found.AddDVPortgroup_Task(
                [
                    vim.dvs.DistributedVirtualPortgroup.ConfigSpec(
                        name=name, type="earlyBinding", description="theirs"
                    )
                ]
            )
        )


def network(sandbox: Running, name: str) -> Look:
    def look() -> object:
        with administrator(sandbox) as si:
            found = si.content.searchIndex.FindByInventoryPath(f"/dc/network/{name}")
            return found.config.description, found.config.configVersion

    return look


def on_machine(sandbox: Running, machine: str, path: str, text: str) -> Look:
    """A file that somebody wrote there."""
    sandbox.change({"machine": machine, "path": path, "text": text})
    return lambda: sandbox.world()["linux"][machine]["files"][path]


def secret(sandbox: Running, name: str) -> Look:
    return kube_object(other(sandbox), SECRETS, {"metadata": {"name": name}, "data": {"a": "eA=="}})


def somebodys_machine(sandbox: Running, name: str) -> Look:
    spec = vim.vm.ConfigSpec(
        name=name,
        guestId="other3xLinux64Guest",
        files=vim.vm.FileInfo(vmPathName="[local]"),
        numCPUs=1,
        memoryMB=1024,
    )
    with administrator(sandbox) as si:
        find = si.content.searchIndex.FindByInventoryPath
        WaitForTask(find("/dc/vm").CreateVM_Task(spec, find("/dc/host/farm/Resources")))

    def look() -> object:
        with administrator(sandbox) as again:
            vm = again.content.searchIndex.FindByInventoryPath(f"/dc/vm/{name}")
            return (
                vm.config.instanceUuid,
                vm.config.changeVersion,
                vm.runtime.powerState,
                [o.key for o in vm.config.extraConfig],
            )

    return look
