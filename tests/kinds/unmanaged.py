"""How a stranger of each kind comes to stand in a world: what another client makes under a name, unmarked;
and what somebody puts into ours.

A new kind that makes objects needs an entry: a function `(world, folder, name)` that makes one unmarked
object called `name`, as the kind would call it, with a client that shares nothing with bfinfra
(`rights.given` has pyVmomi and plain HTTP for clusters, `sandbox.asking` has REST), and answers how to look
at it.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kinds.lifecycle import EXAMPLES
from pyVim.task import WaitForTask
from pyVmomi import SoapStubAdapter, pbm, vim
from rights.given import Kube, administrator, by_kubeadm, guest, other, supervisor
from sandbox.asking import Rest, until

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


STRANGERS: dict[str, Entry] = {}


def stranger(
    kind: str, at: str, inside: tuple[Callable[[Running], object], str] | str
) -> Callable[[Plant], Plant]:
    """Register how a stranger of the kind is made."""

    def register(plant: Plant) -> Plant:
        STRANGERS[kind] = Entry(at, plant, inside)
        return plant

    return register


def entry(kind: str) -> Entry:
    """The kind's; an AssertionError says what to write."""
    assert kind in STRANGERS, (
        f"nobody says how a stranger of {kind} is made: write in tests/kinds/unmanaged.py\n\n"
        f'@stranger("{kind}", at="<the object\'s name in specs/kinds/{kind}.yaml>", inside="<why '
        'nothing of others can be in it>")\n'
        f"def {kind}(sandbox: Running, folder: Path, name: str) -> Look:\n"
        "    <make an unmarked one called name with a client of its own; return a function that looks "
        "at all of it>\n\n"
        "inside=(make, what) where deleting it takes along what others put there: make(sandbox) puts it "
        "there, the plan must name `what`."
    )
    return STRANGERS[kind]


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


@stranger(
    "bitfusion_server", at="bf-01", inside="a VM holds its own disks; what else has the name is no part of it"
)
def bitfusion_server(sandbox: Running, folder: Path, name: str) -> Look:
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


@stranger(
    "client_image", at="context", inside="what else is in its folder stays there (test_client_image.py)"
)
def client_image(sandbox: Running, folder: Path, name: str) -> Look:
    file = sandbox.files / (folder / name).relative_to("/") / "Dockerfile"
    file.parent.mkdir(parents=True)
    file.write_text("FROM scratch\n")
    return lambda: (file.read_text(), file.stat().st_ino, sorted(file.parent.iterdir()))


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


@stranger(
    "distributed_switch",
    at="roce",
    inside=(lambda sandbox: port_group_on(sandbox, "theirs", "roce"), "port group theirs"),
)
def distributed_switch(sandbox: Running, folder: Path, name: str) -> Look:
    switch(sandbox, name)
    return network(sandbox, name)


def pool(sandbox: Running, name: str, within: str = "") -> Look:
    path = f"/dc/host/farm/Resources{within}"
    with administrator(sandbox) as si:
        share = vim.ResourceAllocationInfo(
            reservation=0, limit=-1, expandableReservation=True, shares=vim.SharesInfo(level="low", shares=0)
        )
        spec = vim.ResourceConfigSpec(cpuAllocation=share, memoryAllocation=share)
        si.content.searchIndex.FindByInventoryPath(path).CreateResourcePool(name, spec)

    def look() -> object:
        with administrator(sandbox) as si:
            found = si.content.searchIndex.FindByInventoryPath(f"{path}/{name}")
            return found.config.changeVersion, str(found.config.cpuAllocation)

    return look


@stranger(
    "resource_pool",
    at="gpu",
    inside="what others put into it goes to its parent, once that is allowed (test_resource_pool.py)",
)
def resource_pool(sandbox: Running, folder: Path, name: str) -> Look:
    return pool(sandbox, name)


@stranger("port_group", at="high-speed", inside="a VM or adapter on it stands in its way (test_networks.py)")
def port_group(sandbox: Running, folder: Path, name: str) -> Look:
    if not there(sandbox, "theirs-too"):
        switch(sandbox, "theirs-too")
    port_group_on(sandbox, name, "theirs-too")
    return network(sandbox, name)


def there(sandbox: Running, name: str) -> bool:
    with administrator(sandbox) as si:
        return si.content.searchIndex.FindByInventoryPath(f"/dc/network/{name}") is not None


@stranger("mpi_job", at="tensorflow-benchmarks", inside="what a job makes is its own")
def mpi_job(sandbox: Running, folder: Path, name: str) -> Look:
    return mpi(other(sandbox), name)


@stranger(
    "mpi_operator",
    at="mpi-operator",
    inside=(lambda sandbox: mpi(other(sandbox), "theirs"), "MPIJob default/theirs"),
)
def mpi_operator(sandbox: Running, folder: Path, name: str) -> Look:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    return kube_object(other(sandbox), "/api/v1/namespaces/default/serviceaccounts", body)


@stranger(
    "nvidia_device_plugin", at="nvidia-device-plugin-daemonset", inside="a DaemonSet's pods are its own"
)
def nvidia_device_plugin(sandbox: Running, folder: Path, name: str) -> Look:
    pod = {
        "metadata": {"labels": {"name": name}},
        "spec": {"containers": [{"name": "c", "image": "busybox"}]},
    }
    body = {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"name": name}}, "template": pod},
    }
    return kube_object(other(sandbox), "/apis/apps/v1/namespaces/kube-system/daemonsets", body)


@stranger(
    "namespace",
    at="training",
    inside=(lambda sandbox: config_map(other(sandbox), "training"), "ConfigMap training/theirs"),
)
def namespace(sandbox: Running, folder: Path, name: str) -> Look:
    return kube_object(other(sandbox), "/api/v1/namespaces", {"metadata": {"name": name}})


@stranger("registry_credential", at="pull", inside="a Secret holds nothing")
def registry_credential(sandbox: Running, folder: Path, name: str) -> Look:
    return kube_object(other(sandbox), SECRETS, {"metadata": {"name": name}, "data": {"a": "eA=="}})


@stranger(
    "storage_policy",
    at="bf-k8s",
    inside="a policy holds nothing; one that a namespace uses vCenter keeps (test_storage_policy.py)",
)
def storage_policy(sandbox: Running, folder: Path, name: str) -> Look:
    with policies(sandbox) as manager:
        made = manager.Create(asking(name, "tier", "slow"))

    def look() -> object:
        with policies(sandbox) as manager:
            (found,) = manager.RetrieveContent([made])
            return found.name, found.description, str(found.constraints)

    return look


def asking(name: str, category: str, tag: str) -> Any:
    """What somebody gives to the manager to have a policy made that asks for this tag."""
    values = pbm.capability.types.DiscreteSet(values=[tag])
    rule = pbm.capability.CapabilityInstance(
        id=pbm.capability.CapabilityMetadata.UniqueId(
            namespace="http://www.vmware.com/storage/tag", id=category
        ),
        constraint=[
            pbm.capability.ConstraintInstance(
                propertyInstance=[
                    pbm.capability.PropertyInstance(
                        id=f"com.vmware.storage.tag.{category}.property", value=values
                    )
                ]
            )
        ],
    )
    sub = pbm.profile.SubProfileCapabilityConstraints
    return pbm.profile.CapabilityBasedProfileCreateSpec(
        name=name,
        description="theirs",
        category="REQUIREMENT",
        resourceType=pbm.profile.ResourceType(resourceType="STORAGE"),
        constraints=sub(subProfiles=[sub.SubProfile(name="x", capability=[rule])]),
    )


@contextmanager
def policies(sandbox: Running) -> Iterator[Any]:
    """The manager of policies, by pyVmomi as shipped."""
    with administrator(sandbox) as si:
        main = si._stub
        host, _, port = main.host.rpartition(":")
        stub = SoapStubAdapter(
            host=host,
            port=int(port),
            version="pbm.version.v8_0_3_0",
            path="/pbm/sdk",
            poolSize=0,
            sslContext=ssl.create_default_context(cafile=str(sandbox.ca_file)),
        )
        stub.requestContext = {"vcSessionCookie": main.cookie.split('"')[1]}
        yield pbm.ServiceInstance("ServiceInstance", stub).RetrieveContent().profileManager


@stranger(
    "supervisor_namespace",
    at="team-a",
    inside=(lambda sandbox: config_map(supervisor(sandbox), "team-a"), "ConfigMap team-a/theirs"),
)
def supervisor_namespace(sandbox: Running, folder: Path, name: str) -> Look:
    rest, path = Rest(sandbox), "/api/vcenter/namespaces/instances"
    cluster = rest.get("/api/vcenter/namespace-management/clusters")[0]["cluster"]
    assert (
        rest.call("POST", path, {"cluster": cluster, "namespace": name, "description": "theirs"}).status
        == 204
    )
    until(lambda: rest.get(f"{path}/{name}")["config_status"] == "RUNNING")
    return lambda: {field: value for field, value in rest.get(f"{path}/{name}").items() if field != "stats"}


@stranger(
    "tanzu_cluster",
    at="cluster-01",
    inside=(
        lambda sandbox: config_map(guest(sandbox, "team-a", "cluster-01"), "default"),
        "ConfigMap default/theirs",
    ),
)
def tanzu_cluster(sandbox: Running, folder: Path, name: str) -> Look:
    part = {"count": 1, "class": "best-effort-small", "storageClass": "gold"}
    spec = {"distribution": {"version": "v1.20.2"}, "topology": {"controlPlane": part, "workers": part}}
    kube, body = (
        supervisor(sandbox),
        {
            "apiVersion": "run.tanzu.vmware.com/v1alpha1",
            "kind": "TanzuKubernetesCluster",
            "metadata": {"name": name},
            "spec": spec,
        },
    )
    look = kube_object(kube, TANZU, body)
    until(lambda: kube.call("GET", f"{TANZU}/{name}").get("status", {}).get("phase") == "running")
    return look


@stranger("token_secret", at="bitfusion-client-secret-ca.crt", inside="a Secret holds nothing")
def token_secret(sandbox: Running, folder: Path, name: str) -> Look:
    return registry_credential(sandbox, folder, name)


@stranger("virtual_machine", at="sckubw01", inside="a VM holds its own disks")
def virtual_machine(sandbox: Running, folder: Path, name: str) -> Look:
    return bitfusion_server(sandbox, folder, name)


@stranger("workload", at="hello", inside="what a Job makes is its own")
def workload(sandbox: Running, folder: Path, name: str) -> Look:
    job = yaml.safe_load((EXAMPLES["workload"].parent / "../manifests/hello.yaml").read_text())
    return kube_object(
        other(sandbox), "/apis/batch/v1/namespaces/default/jobs", {**job, "metadata": {"name": name}}
    )


@stranger(
    "vm_class", at="gpu-small", inside="a class holds nothing; one that a namespace offers vCenter keeps"
)
def vm_class(sandbox: Running, folder: Path, name: str) -> Look:
    rest, path = Rest(sandbox), "/api/vcenter/namespace-management/virtual-machine-classes"
    assert rest.call("POST", path, {"id": name, "cpu_count": 1, "memory_MB": 1024}).status == 204
    return lambda: rest.get(f"{path}/{name}")


@stranger(
    "bitfusion_device_plugin",
    at="bwki-webhook-deployment",
    inside="its objects hold nothing; its namespaces are resources of their own",
)
def bitfusion_device_plugin(sandbox: Running, folder: Path, name: str) -> Look:
    return kube_object(
        other(sandbox),
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {"metadata": {"name": name}, "rules": []},
    )


@stranger(
    "content_library",
    at="releases",
    inside="what is subscribed can be had again; items of a local one are named (test_content_library.py)",
)
def content_library(sandbox: Running, folder: Path, name: str) -> Look:
    rest = Rest(sandbox)
    store = next(each["datastore"] for each in rest.get("/api/vcenter/datastore") if each["name"] == "shared")
    made = rest.call(
        "POST",
        "/api/content/local-library",
        {"name": name, "type": "LOCAL", "storage_backings": [{"type": "DATASTORE", "datastore_id": store}]},
    )
    return lambda: rest.get(f"/api/content/library/{made.data}")


def on_machine(sandbox: Running, machine: str, path: str, text: str) -> Look:
    """A file that somebody wrote there."""
    sandbox.change({"machine": machine, "path": path, "text": text})
    return lambda: sandbox.world()["linux"][machine]["files"][path]


@stranger("flexdirect_host", at="flexdirect", inside="what else is on a machine is no part of it")
def flexdirect_host(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "gpu-01", f"/usr/bin/{name}", "theirs\n")


@stranger("flexdirect_pool", at="T4", inside="a list holds lines only")
def flexdirect_pool(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "cpu-01", f"/etc/bitfusionio/{name}_servers.conf", "10.5.0.9\n")


@stranger(
    "nvidia_container_toolkit",
    at="nvidia-container-runtime",
    inside="what else is on a machine is no part of it",
)
def nvidia_container_toolkit(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "gpu-01", f"/usr/bin/{name}", "theirs\n")


@stranger(
    "kubeadm_cluster",
    at="kubelet.conf",
    inside=(lambda sandbox: config_map(by_kubeadm(sandbox, "cpu-01"), "default"), "ConfigMap default/theirs"),
)
def kubeadm_cluster(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "gpu-01", f"/etc/kubernetes/{name}", "kind: Config\n")


@stranger("vgpu_license", at="gridd.conf", inside="a file holds lines only")
def vgpu_license(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "gpu-01", f"/etc/nvidia/{name}", "ServerAddress=10.9.9.9\n")


@stranger("loaded_image", at="team/bitfusion-webhook:0.4-1", inside="an image is whole")
def loaded_image(sandbox: Running, folder: Path, name: str) -> Look:
    """What docker has stands in one file: the look is at this image alone."""
    store = on_machine(
        sandbox,
        "gpu-01",
        "/var/lib/docker/images.json",
        json.dumps({f"docker.io/{name}": f"sha256:{'7' * 64}"}) + "\n",
    )
    return lambda: str(json.loads(store()).get(f"docker.io/{name}"))


@stranger("bitfusion_client", at="bitfusion", inside="what else is on a machine is no part of it")
def bitfusion_client(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "cpu-01", f"/usr/bin/{name}", "theirs\n")
