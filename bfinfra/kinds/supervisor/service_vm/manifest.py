"""The objects of a machine: itself, the Secret of its bootstrap, the claims of its disks, its service. And
the way back, from objects to the words of a site.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.kinds.supervisor.base.quantities import quantity, size
from bfinfra.kinds.supervisor.base.words import Fields, Object, at, written
from bfinfra.kinds.supervisor.service_vm.spec import USER_DATA, Disk, Spec
from bfinfra.model.secret import Secret

GROUP = "vmoperator.vmware.com"
VERSIONS = ("v1alpha6", "v1alpha5", "v1alpha4", "v1alpha3", "v1alpha2")
"""Those whose machines bfinfra writes, the newest first."""
BY_NAME = f"{GROUP}/v1alpha2"
"""The one that names an image by its object alone."""
VM, SERVICE, CLAIM = "VirtualMachine", "VirtualMachineService", "PersistentVolumeClaim"
OF_VM = "bfinfra.io/service-vm"
"""The label on a machine and on what belongs to it."""
ON, OFF = "PoweredOn", "PoweredOff"
POWER = {"on": ON, "off": OFF}
STORED_IN = "in Secret "
"""The prefix of a value that is in a Secret."""
Image = tuple[str, str]
"""Kind and name of an image's object."""


def secret_name(name: str) -> str:
    """The Secret of a machine's bootstrap."""
    return f"{name}-bootstrap"


def claim_name(name: str, disk: str) -> str:
    """The claim of a disk."""
    return f"{name}-{disk}"


def machine(name: str, spec: Spec, api: str, image: Image, power: str) -> Object:
    """The machine, as `api` writes it."""
    kind, called = image
    body = {
        **({"imageName": called} if api == BY_NAME else {"image": {"kind": kind, "name": called}}),
        "className": spec.vm_class,
        "storageClass": spec.storage_class,
        "powerState": power,
        "bootstrap": _bootstrap(name, spec),
        "volumes": [
            {"name": disk, "persistentVolumeClaim": {"claimName": claim_name(name, disk)}}
            for disk in sorted(spec.disks)
        ],
        "readinessProbe": {"tcpSocket": {"port": spec.ready.tcp}} if spec.ready else {},
    }
    return _object(api, (VM, name), name, spec, {"spec": written(body)})


def secret(name: str, spec: Spec) -> Object:
    """The Secret of its bootstrap, without its content."""
    return _object("v1", ("Secret", secret_name(name)), name, spec, {"type": "Opaque"})


def claim(name: str, spec: Spec, disk: str) -> Object:
    """The claim of a disk."""
    given = spec.disks[disk]
    body = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": given.storage_class or spec.storage_class,
        "resources": {"requests": {"storage": quantity(given.size)}},
    }
    return _object("v1", (CLAIM, claim_name(name, disk)), name, spec, {"spec": body})


def service(name: str, spec: Spec, api: str) -> Object:
    """Its service, behind a load balancer."""
    ports = [
        {"name": f"tcp-{port}", "protocol": "TCP", "port": port, "targetPort": port}
        for port in sorted(spec.expose)
    ]
    body = {"type": "LoadBalancer", "selector": {OF_VM: name}, "ports": ports}
    return _object(api, (SERVICE, name), name, spec, {"spec": body})


def owned(manifest: Fields, api: str, name: str, uid: str) -> Object:
    """The manifest of an object that is deleted with its machine."""
    owner = {"apiVersion": api, "kind": VM, "name": name, "uid": uid}
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}}


def view(body: Fields) -> Object:
    """A machine's own fields, from its object."""
    config = at(body, "bootstrap", "vAppConfig").get("properties")
    cloud = at(body, "bootstrap").get("cloudInit")
    found = {
        "vm_class": body.get("className"),
        "storage_class": body.get("storageClass"),
        "power": next((word for word, state in POWER.items() if state == body.get("powerState")), None)
        or body.get("powerState"),
        "properties": {
            str(each.get("key")): _value(at(each, "value")) for each in config or () if isinstance(each, dict)
        },
        "cloud_init": _cloud_init(cloud) if isinstance(cloud, Mapping) else None,
        "ready": written({"tcp": at(body, "readinessProbe", "tcpSocket").get("port")}),
    }
    return written(found)


def wanted(name: str, spec: Spec) -> Object:
    """The same of a spec."""
    return view(machine(name, spec, "", ("", ""), POWER[spec.power])["spec"])


def disk_view(body: Fields) -> Object:
    """A disk's fields, from its claim."""
    return {
        "size": size(at(body, "resources", "requests").get("storage")),
        "storage_class": body.get("storageClassName"),
    }


def disk_wanted(disk: Disk, spec: Spec) -> Object:
    """The same of a spec."""
    return {
        "size": size(quantity(disk.size)),
        "storage_class": disk.storage_class or spec.storage_class,
        "keep": disk.keep,
        "attached": True,
    }


def ports(body: Fields) -> list[Any]:
    """The ports of a service."""
    return sorted(each.get("port") for each in body.get("ports") or () if isinstance(each, dict))


def volumes(body: Fields) -> dict[str, str]:
    """Volume of a machine → its claim."""
    return {
        str(each.get("name")): str(at(each, "persistentVolumeClaim").get("claimName"))
        for each in body.get("volumes") or ()
        if isinstance(each, dict)
    }


def image_of(body: Fields) -> Image:
    """The image of a machine."""
    image = at(body, "image")
    return str(image.get("kind") or ""), str(image.get("name") or body.get("imageName") or "")


def mixed(name: str, spec: Spec, body: Fields) -> tuple[list[str], tuple[Object, ...]]:
    """The properties that are written as a value and are to come from the Secret, or the other way round, and
    the others as they are: an apply would leave both in, which the VM Service refuses.
    """
    listed = at(body, "bootstrap", "vAppConfig").get("properties") or ()
    sorts = {
        each["key"]: set(each["value"])
        for each in at(_bootstrap(name, spec), "vAppConfig").get("properties") or ()
    }
    wrong = [
        str(each.get("key"))
        for each in listed
        if each.get("key") in sorts and set(written(at(each, "value"))) - sorts[each["key"]]
    ]
    return wrong, tuple(each for each in listed if each.get("key") not in wrong)


def _bootstrap(name: str, spec: Spec) -> Object:
    if spec.cloud_init is not None:
        user_data = {"name": secret_name(name), "key": USER_DATA} if spec.cloud_init.user_data else None
        given = {"rawCloudConfig": user_data, "sshAuthorizedKeys": list(spec.cloud_init.ssh_authorized_keys)}
        return {"cloudInit": written(given)}
    listed = [
        {
            "key": key,
            "value": {"from": {"name": secret_name(name), "key": key}}
            if isinstance(value, Secret)
            else {"value": value},
        }
        for key, value in sorted(spec.properties.items())
    ]
    return {"vAppConfig": {"properties": listed}} if listed else {}


def _object(api: str, address: tuple[str, str], name: str, spec: Spec, body: Fields) -> Object:
    """`address`: kind and name of the object; `name`: of its machine."""
    kind, called = address
    metadata = {"name": called, "namespace": spec.namespace, "labels": {OF_VM: name}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **body}


def _value(value: Fields) -> Any:
    source = value.get("from")
    return f"{STORED_IN}{at(value, 'from').get('name')}" if source else value.get("value")


def _cloud_init(given: Fields) -> Object:
    source = at(given, "rawCloudConfig").get("name")
    found = {
        "user_data": f"{STORED_IN}{source}" if source else None,
        "ssh_authorized_keys": list(given.get("sshAuthorizedKeys") or ()),
    }
    return written(found) or {"user_data": "none"}
