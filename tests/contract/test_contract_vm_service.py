"""Machines of a supervisor's VM Service, which only vSphere with Tanzu has."""

from __future__ import annotations

from typing import Any

from contract.calls import applied, call, lacks
from contract.sides import VCenterSide
from contract.test_contract_login import NO_LOGIN, enter

from bfinfra.backends.kubernetes import ClusterClient
from bfinfra.backends.kubernetes.marks import marked
from bfinfra.backends.vcenter.content import ContentLibraries, Library, Subscription
from bfinfra.backends.vcenter.namespaces import Namespaces
from bfinfra.backends.vcenter.namespaces import Settings as NamespaceSettings
from bfinfra.model.mark import Mark

GROUP = "vmoperator.vmware.com"
API, REGISTRY = f"{GROUP}/v1alpha6", "imageregistry.vmware.com/v1alpha1"
SPACE = "machines"
PUBLISHER = "https://packages.example.com/dlvm/lib.json"
MARK = Mark("mine", "service_vm/dl-01")


def thing(api: str, kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": SPACE, **metadata},
        "spec": spec,
    }


@call(
    "cluster.versions",
    "cluster.create",
    "cluster.get",
    "cluster.list",
    "cluster.apply",
    "cluster.patch",
    "cluster.delete",
    "cluster.unmanaged",
    case="the life of a machine of the VM Service, with its disk and its service",
)
@lacks(NO_LOGIN)
def test_the_life_of_a_machine_of_the_vm_service(vcenter: VCenterSide) -> None:
    spaces, library = Namespaces(vcenter.open()), _library(vcenter)
    settings = NamespaceSettings(
        storage={"gold": None}, vm_classes=("best-effort-small",), libraries=("deep-learning",)
    )
    spaces.create(SPACE, vcenter.supervisor, settings)
    vcenter.until(lambda: spaces.details([SPACE], spaces.catalog())[SPACE].status == "RUNNING")
    cluster, _ = enter(vcenter, namespace=SPACE)
    assert "v1alpha6" in cluster.versions(GROUP)
    image = _image(cluster)
    spec = {
        "image": {"kind": "VirtualMachineImage", "name": image},
        "className": "best-effort-small",
        "storageClass": "gold",
        "powerState": "PoweredOff",
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "dl-01-data"}}],
    }
    machine = thing(API, "VirtualMachine", "dl-01", spec, labels={"of": "dl-01"})
    uid = cluster.create(marked(machine, MARK))["metadata"]["uid"]
    _parts(cluster, uid)
    on = {**machine, "spec": {**spec, "powerState": "PoweredOn"}}
    vcenter.until(lambda: applied(cluster, marked(on, MARK)))
    vcenter.until(lambda: _runs(cluster))
    vcenter.until(lambda: _ingress(cluster))
    assert set(cluster.unmanaged("theirs", SPACE)) >= {f"VirtualMachine {SPACE}/dl-01"}
    cluster.delete(API, "VirtualMachineService", "dl-01", SPACE)
    cluster.delete(API, "VirtualMachine", "dl-01", SPACE)
    vcenter.until(lambda: cluster.get(API, "VirtualMachine", "dl-01", SPACE) is None)
    vcenter.until(lambda: not cluster.list("v1", "PersistentVolumeClaim", SPACE))
    spaces.delete(SPACE)
    vcenter.until(lambda: SPACE not in spaces.details([SPACE], spaces.catalog()))
    ContentLibraries(vcenter.open().rest).delete(library, subscribed=True)


def _library(vcenter: VCenterSide) -> str:
    """One that follows a publisher."""
    libraries = ContentLibraries(vcenter.open().rest)
    libraries.create(Library("deep-learning", "LocalDS_0", "", Subscription(PUBLISHER)))
    return next(each.id for each in libraries.list() if each.name == "deep-learning")


def _image(cluster: ClusterClient) -> str:
    """The image of the library's item, found as bfinfra finds it."""
    (library,) = cluster.list(REGISTRY, "ContentLibrary", SPACE)
    assert library["status"]["name"] == "deep-learning"
    (item,) = cluster.list(REGISTRY, "ContentLibraryItem", SPACE)
    assert item["status"]["contentLibraryRef"]["name"] == library["metadata"]["name"]
    (image,) = cluster.list(API, "VirtualMachineImage", SPACE)
    assert image["spec"]["providerRef"]["name"] == item["metadata"]["name"]
    assert image["status"]["name"] == "common-container-nv"
    assert cluster.list(API, "ClusterVirtualMachineImage") == []
    return str(image["metadata"]["name"])


def _parts(cluster: ClusterClient, uid: str) -> None:
    """Its disk, which goes with it, and its service."""
    body = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "gold",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    claim = thing("v1", "PersistentVolumeClaim", "dl-01-data", body)
    cluster.apply(marked(claim, MARK), force=True)
    owner = {"apiVersion": API, "kind": "VirtualMachine", "name": "dl-01", "uid": uid}
    owners = {"metadata": {"ownerReferences": [owner]}}
    cluster.patch("v1", "PersistentVolumeClaim", "dl-01-data", owners, SPACE)
    ports = [{"name": "tcp-22", "protocol": "TCP", "port": 22, "targetPort": 22}]
    service = {"type": "LoadBalancer", "selector": {"of": "dl-01"}, "ports": ports}
    cluster.apply(marked(thing(API, "VirtualMachineService", "dl-01", service), MARK), force=True)
    (found,) = cluster.list(API, "VirtualMachineService", SPACE)
    assert found["spec"]["ports"] == ports


def _runs(cluster: ClusterClient) -> bool:
    status = (cluster.get(API, "VirtualMachine", "dl-01", SPACE) or {}).get("status") or {}
    attached = [each["attached"] for each in status.get("volumes") or ()]
    return status.get("powerState") == "PoweredOn" and attached == [True]


def _ingress(cluster: ClusterClient) -> bool:
    found = cluster.get(API, "VirtualMachineService", "dl-01", SPACE) or {}
    return bool(((found.get("status") or {}).get("loadBalancer") or {}).get("ingress"))
