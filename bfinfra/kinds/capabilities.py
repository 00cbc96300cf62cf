"""The capabilities that kinds provide to each other and require of each other. All are here, so that two
kinds that mean the same one use the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bfinfra.kinds.cluster_locator import cluster_key
from bfinfra.model.device_plugin import ALLOCATED, GROUP
from bfinfra.model.order import Capability, Specs
from bfinfra.model.refs import Key

NVIDIA = "nvidia.com/gpu"
PARTS = ("nvidia.com/gpu.", "nvidia.com/mig-")
SERVERS = Capability("Bitfusion servers")
"""Any Bitfusion server of the site, for a resource that doesn't name one."""

LICENSE, TOOLKIT, FLEXDIRECT, LISTS = (
    "vGPU license",
    "GPUs in containers",
    "FlexDirect",
    "lists of FlexDirect servers",
)
"""Capabilities of Linux machines."""
SETTINGS, GRAPHICS, PVRDMA = "settings of the host", "graphics of type sharedDirect", "settings for PVRDMA"
"""Capabilities of ESXi hosts. They are needed before a host restarts or a VM starts there."""


def allocatable(resource: str, cluster: str, site: Specs) -> Capability:
    """A resource that a cluster's nodes offer to pods. All of Bitfusion's resource names count as one; parts
    of NVIDIA's GPUs count as GPUs.
    """
    offered = (
        ALLOCATED if resource.startswith(f"{GROUP}/") else NVIDIA if resource.startswith(PARTS) else resource
    )
    return Capability(offered, whole(cluster, site))


def gpus(resource: str, cluster: str, site: Specs) -> Iterator[Capability]:
    """GPUs for pods, and everything that NVIDIA's GPUs need on the nodes first."""
    offered = allocatable(resource, cluster, site)
    yield offered
    if offered.name == NVIDIA:
        yield from on_nodes(LICENSE, cluster, site)
        yield from on_nodes(TOOLKIT, cluster, site)


def namespace(name: str, cluster: str, site: Specs) -> Capability:
    """A namespace, by its name in the cluster."""
    return Capability(f"namespace {name}", whole(cluster, site))


def spaces_named(needs: Iterable[Capability], where: str) -> Iterator[str]:
    """The namespaces among what is required in one cluster."""
    for each in needs:
        word, _, name = each.name.partition(" ")
        if word == "namespace" and each.where == where:
            yield name


def secret(name: str, space: str, cluster: str, site: Specs) -> Capability:
    """A Secret."""
    return Capability(f"Secret {space}/{name}", whole(cluster, site))


def token(form: str, space: str, cluster: str, site: Specs) -> Capability:
    """A Bitfusion token, in the form that a release of the device plug-in reads."""
    return Capability(f"a Bitfusion token of form {form} in {space}", whole(cluster, site))


def claim(name: str, space: str, cluster: str, site: Specs) -> Capability:
    """A claim for a volume."""
    return Capability(f"PersistentVolumeClaim {space}/{name}", whole(cluster, site))


def path(space: str, cluster: str, site: Specs) -> Capability:
    """A path from the pods of a namespace to the Bitfusion servers."""
    return Capability(f"a way to the Bitfusion servers from namespace {space}", whole(cluster, site))


def mpi(cluster: str, site: Specs) -> Capability:
    """An operator that runs MPI jobs."""
    return Capability("an MPI operator", whole(cluster, site))


def image(name: str) -> Capability:
    """A container image, by any of its names."""
    short = name.removeprefix("docker.io/").removeprefix("library/")
    tagged = "@" in short or ":" in short.rpartition("/")[2]
    return Capability(f"image {short if tagged else f'{short}:latest'}")


def server(address: str) -> Capability:
    """A Bitfusion server."""
    return Capability("a Bitfusion server", address)


def host(name: str) -> Capability:
    """An ESXi host that needs no more restarts."""
    return Capability("a settled host", name)


def hosts(cluster: str) -> Capability:
    """All hosts of a vSphere cluster."""
    return Capability("settled hosts", cluster)


def driver() -> Capability:
    """The drivers of GPUs on ESXi hosts, without which they share none."""
    return Capability("drivers of the hosts")


def machine(name: str) -> Capability:
    """A virtual machine whose options are set, which switches it off and on."""
    return Capability("options of the machine", f"virtual_machine/{name}")


def template(name: str) -> Capability:
    """A virtual machine to clone from."""
    return Capability(f"machine {name}")


def library(name: str) -> Capability:
    """A content library."""
    return Capability(f"content library {name}")


def vm_class(name: str) -> Capability:
    """A class of the supervisors' virtual machines."""
    return Capability(f"VM class {name}")


def storage(storage_class: str) -> Capability:
    """A storage class of the supervisors."""
    return Capability(f"storage class {storage_class}")


def tag(category: str, name: str) -> Capability:
    """A tag of datastores."""
    return Capability(f"tag {category}/{name}")


def anywhere(what: str, places: Iterable[str]) -> Iterator[Capability]:
    """A capability in some places: in each one, and "anywhere" for resources that don't specify where they
    need it.
    """
    yield Capability(what)
    yield from (Capability(what, place) for place in places)


def on_machines(what: str, machines: Iterable[str]) -> Iterator[Capability]:
    """The same for Linux machines."""
    return anywhere(what, (f"linux_host/{each}" for each in machines))


def on_nodes(what: str, cluster: str, site: Specs) -> Iterator[Capability]:
    """Yield the needs of a cluster's nodes: on each machine if the site makes the cluster of machines, else
    anywhere.
    """
    key = cluster_key(cluster, site)
    if key is not None and key.kind == "kubeadm_cluster":
        yield from (Capability(what, f"linux_host/{each}") for each in site[key].hosts)
    elif key is None or key.kind == "kubernetes_cluster":
        yield Capability(what)


def whole(cluster: str, site: Specs) -> str:
    """A cluster, by the name that specs use for it."""
    return str(cluster_key(cluster, site) or cluster)


def space(written: str | None, cluster: str, site: Specs) -> str:
    """A namespace's name in the cluster, from what a spec writes for it."""
    key = cluster_key(cluster, site)
    if key is not None and key.kind == "supervisor_namespace":
        return key.name
    if written is None:
        return "default"
    own = site.get(Key("namespace", written))
    return str(own.namespace) if own is not None and own.cluster == cluster and own.namespace else written
