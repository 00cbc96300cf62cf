"""The VM Service's webhooks: the defaults they set, and what they refuse. Source: vm-operator,
webhooks/virtualmachine and webhooks/virtualmachineservice.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.errors import Refused
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of
from bfinfra.sandbox.kubernetes.store import Key
from bfinfra.sandbox.kubernetes.target import Options, Target

GROUP = "vmoperator.vmware.com"
VMS: Key = (GROUP, "virtualmachines")
SERVICES: Key = (GROUP, "virtualmachineservices")
IMAGES: Key = (GROUP, "virtualmachineimages")
KINDS = ("VirtualMachineImage", "ClusterVirtualMachineImage")
FINALIZER = f"{GROUP}/virtualmachine"
ON, OFF, SUSPENDED = "PoweredOn", "PoweredOff", "Suspended"
FIXED = ("image", "imageName", "storageClass", "biosUUID", "instanceUUID")
PROVIDERS = ("cloudInit", "linuxPrep", "sysprep")
LARGEST_PORT = 65535


class VmAdmission:
    """The webhooks of one supervisor. `storage_classes`: those of a namespace."""

    def __init__(self, cluster: Cluster, storage_classes: Callable[[str], list[str]]) -> None:
        self._cluster, self._storage_classes = cluster, storage_classes
        cluster.admissions.append(self._admit)

    def _admit(self, target: Target, before: Object | None, after: Object, _: Options) -> Object:
        if target.subresource or after["metadata"].get("deletionTimestamp") or "spec" not in after:
            return after
        try:
            if target.resource.key == VMS:
                if before is None:
                    self._fill_in(after)
                self._refuse("virtualmachine", self._wrong(before, after))
            elif target.resource.key == SERVICES:
                self._refuse("virtualmachineservice", _wrong_service(before, after))
        except (KeyError, TypeError, AttributeError):
            return after  # the schema refuses it
        return after

    def _fill_in(self, vm: Object) -> None:
        spec = vm["spec"]
        spec.setdefault("powerState", ON)
        network = spec.setdefault("network", {})
        if not network.get("disabled") and not network.get("interfaces"):
            network["interfaces"] = [{"name": "eth0", "network": {"kind": "Network", "name": "primary"}}]
        for field in ("instanceUUID", "biosUUID"):
            spec.setdefault(field, str(uuid.uuid4()))
        if spec.get("imageName") and "image" not in spec:
            spec["image"] = {"kind": KINDS[0], "name": self._resolved(vm)}
        vm["metadata"]["finalizers"] = [*vm["metadata"].get("finalizers", []), FINALIZER]

    def _resolved(self, vm: Object) -> str:
        wanted = vm["spec"]["imageName"]
        found = [
            name_of(each)
            for each in self._cluster.all(*IMAGES, namespace_of(vm))
            if wanted in (name_of(each), dig(each, "status", "name"))
        ]
        if len(found) == 1:
            return found[0]
        why = "multiple VM images exist" if found else "no VM image exists"
        raise _denied("virtualmachine", f'{why} for "{wanted}" in namespace and cluster scope', "mutating")

    def _refuse(self, what: str, wrong: Iterator[str]) -> None:
        if found := list(wrong):
            raise _denied(what, ", ".join(found))

    def _wrong(self, before: Object | None, after: Object) -> Iterator[str]:
        spec, old = after["spec"], (before or {}).get("spec")
        yield from _changed(old, spec) if old else _lacks(spec)
        storage = spec.get("storageClass")
        if storage and storage not in self._storage_classes(namespace_of(after)):
            yield (
                f'spec.storageClass: Invalid value: "{storage}": Storage policy is not associated with the '
                f"namespace {namespace_of(after)} by object {storage}"
            )
        yield from _bootstrap(spec.get("bootstrap") or {})
        for number, volume in enumerate(spec.get("volumes") or []):
            claim = volume.get("persistentVolumeClaim")
            if claim is not None and not claim.get("claimName"):
                yield f"spec.volumes[{number}].persistentVolumeClaim.claimName: Required value"
            if (claim or {}).get("readOnly"):
                yield f"spec.volumes[{number}].persistentVolumeClaim.readOnly: Unsupported value: true"
        actions = {"tcpSocket", "guestHeartbeat", "guestInfo"} & set(spec.get("readinessProbe") or {})
        if len(actions) > 1:
            yield "spec.readinessProbe: Forbidden: only one action can be specified"


def _lacks(spec: Object) -> Iterator[str]:
    """Yield what a new machine must have and this one lacks."""
    image = spec.get("image")
    if image is None:
        yield "spec.image: Required value"
    elif image.get("kind") not in KINDS:
        yield f'spec.image.kind: Invalid value: "{image.get("kind")}": supported: {"; ".join(KINDS)}'
    if not spec.get("className"):
        yield "spec.className: Required value"
    if spec["powerState"] == SUSPENDED:
        why = f"cannot set a new VM's power state to {SUSPENDED}"
        yield f'spec.powerState: Invalid value: "{SUSPENDED}": {why}'


def _changed(old: Object, new: Object) -> Iterator[str]:
    """Check that an update leaves unchangeable fields alone."""
    for field in FIXED:
        if old.get(field) and new.get(field) != old[field]:
            yield f"spec.{field}: Invalid value: field is immutable"
    if not new.get("className"):
        yield "spec.className: Required value"
    if not new.get("powerState"):
        yield 'spec.powerState: Invalid value: "": cannot set power state to empty string'
    if (old.get("powerState"), new.get("powerState")) == (OFF, SUSPENDED):
        yield f'spec.powerState: Invalid value: "{SUSPENDED}": cannot suspend a VM that is powered off'
    before: Object = old.get("bootstrap") or {}
    after: Object = new.get("bootstrap") or {}
    if before and not after:
        yield "spec.bootstrap: Forbidden: bootstrap provider type cannot be changed"
    elif gone := [name for name in PROVIDERS if name in before and name not in after]:
        yield f"spec.bootstrap.{gone[0]}: Forbidden: bootstrap provider type cannot be changed"
    yield from _changed_network(old, new)


def _changed_network(old: Object, new: Object) -> Iterator[str]:
    cards = [dig(each, "network", "interfaces", default=[]) for each in (old, new)]
    if len(cards[0]) != len(cards[1]):
        yield "spec.network.interfaces: Forbidden: network interfaces cannot be added or removed"
    elif [(each["name"], each.get("network")) for each in cards[0]] != [
        (each["name"], each.get("network")) for each in cards[1]
    ]:
        yield "spec.network.interfaces: Forbidden: field is immutable"


def _bootstrap(given: Object) -> Iterator[str]:
    if "cloudInit" in given and len(given) > 1:
        yield (
            "spec.bootstrap.cloudInit: Forbidden: CloudInit may not be used with any other bootstrap provider"
        )
    if {"cloudConfig", "rawCloudConfig"} <= set(given.get("cloudInit") or {}):
        yield "spec.bootstrap.cloudInit: Invalid value: cloudConfig and rawCloudConfig are mutually exclusive"
    config = given.get("vAppConfig") or {}
    if config.get("properties") and config.get("rawProperties"):
        yield "spec.bootstrap.vAppConfig: properties and rawProperties are mutually exclusive"
    for each in config.get("properties") or []:
        if {"from", "value"} <= set(each.get("value") or {}):
            yield "spec.bootstrap.vAppConfig.properties.value: from and value are mutually exclusive"


def _wrong_service(before: Object | None, after: Object) -> Iterator[str]:
    spec = after["spec"]
    ports = spec.get("ports") or []
    if spec["type"] not in ("ClusterIP", "LoadBalancer", "ExternalName"):
        yield f'spec.type: Unsupported value: "{spec["type"]}"'
    if not ports and spec["type"] != "ExternalName":
        yield "spec.ports: Required value"
    yield from _wrong_ports(ports)
    for field in ("type", "clusterIp") if before else ():
        if (before or {})["spec"].get(field) != spec.get(field):
            yield f"spec.{field}: Forbidden: field is immutable"


def _wrong_ports(ports: list[Object]) -> Iterator[str]:
    for number, each in enumerate(ports):
        for field in ("port", "targetPort"):
            if not 1 <= each[field] <= LARGEST_PORT:
                yield f"spec.ports[{number}].{field}: Invalid value: must be between 1 and 65535, inclusive"
        if each["protocol"] not in ("TCP", "UDP", "SCTP"):
            yield f'spec.ports[{number}].protocol: Unsupported value: "{each["protocol"]}"'
    if len({each["name"] for each in ports}) < len(ports):
        yield "spec.ports: Duplicate value: names must be unique"
    if len({(each["protocol"], each["port"]) for each in ports}) < len(ports):
        yield "spec.ports: Duplicate value"


def _denied(what: str, why: str, how: str = "validating") -> Refused:
    return Refused(
        403,
        "Forbidden",
        f'admission webhook "default.{how}.{what}.v1alpha6.{GROUP}" denied the request: {why}',
    )
