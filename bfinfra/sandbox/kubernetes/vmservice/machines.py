"""The VM Service's machines and their services, from what is written to what runs. The conditions are those
of vm-operator's controllers, in their order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.guests import Guests
from bfinfra.sandbox.kubernetes.objects import (
    Object,
    condition,
    dig,
    name_of,
    namespace_of,
    owned_by,
    stamp,
    uid_of,
)
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.store import Change, Key
from bfinfra.sandbox.kubernetes.vmservice.admission import FINALIZER, GROUP, IMAGES, OFF, ON, SERVICES, VMS
from bfinfra.sandbox.kubernetes.vmservice.images import LISTENS

MANAGER = "vmware-system-vmop-controller-manager"
CLASSES: Key = (GROUP, "virtualmachineclasses")
CLAIMS: Key = ("", "persistentvolumeclaims")
SECRETS: Key = ("", "secrets")
AWAITED = (CLASSES, CLAIMS, SECRETS, IMAGES)
SYNCED = "VirtualMachineClassConfigurationSynced"
Reported = tuple[str, bool, str]
"""Type of a condition, whether it is true, and its message."""


class Machines:
    """Those of one supervisor."""

    kinds = (VMS,)

    def __init__(self, loop: Loop, outside: Outside) -> None:
        self._loop, self._cluster, self._outside = loop, loop.cluster, outside

    def look_again(self) -> None:
        """Try to power on what could not be."""
        self._loop.look_again(self)

    def touched(self, change: Change) -> Iterable[Item]:
        """The machines of a namespace whose parts came, changed or went."""
        if change.key in AWAITED:
            for each in self._cluster.store.all(VMS, namespace_of(change.after)):
                yield (VMS, namespace_of(each), name_of(each))

    def look(self, item: Item, thing: Object | None) -> None:
        """The next step of one machine."""
        if thing is None:
            self._outside.power_off(_holder(item))
            return
        if thing["metadata"].get("deletionTimestamp"):
            self._loop.once(("gone", uid_of(thing)), "delete", lambda: self._let_go(item))
            return
        listed = list(self._prerequisites(thing))
        status = dict(thing.get("status") or {})
        if not all(ok for _, ok, _ in listed) and not status.get("uniqueID"):
            self._write(thing, {**status, "conditions": self._conditions(thing, listed)})
        elif not status.get("uniqueID"):
            self._write(thing, {**status, "conditions": self._conditions(thing, listed)})
            self._loop.once(("made", uid_of(thing)), "worker", lambda: self._made(item))
        else:
            self._run(thing, listed, status)

    def _run(self, thing: Object, listed: list[Reported], status: Object) -> None:
        """A machine that is made: its class and power as written, its disks attached. A class is changed
        while it is off: before it is started, or when it stops.
        """
        spec = thing["spec"]
        offered = listed[0][1]
        if offered and (status.get("powerState") != ON or spec["powerState"] != ON):
            status["class"] = {"kind": "VirtualMachineClass", "name": spec["className"]}
        why = self._power(thing, dig(status, "class", "name", default=""))
        status["powerState"] = OFF if why else spec["powerState"]
        running, address = status["powerState"] == ON, _address(thing)
        if why:
            listed = [*listed, ("VirtualMachineConditionPlacementReady", False, why)]
        status["network"] = {"primaryIP4": address} if running else {}
        status["volumes"] = [
            {"name": each["name"], "attached": self._attached(thing, each), "type": "Managed"}
            for each in spec.get("volumes") or []
        ]
        synced = dig(status, "class", "name") == spec["className"]
        listed = [
            *listed,
            ("VirtualMachineCreated", True, ""),
            (SYNCED, synced, "" if synced else "the class is changed when the machine is powered off"),
            ("VirtualMachineTools", running, "" if running else "VMware Tools is not running"),
        ]
        port = dig(spec, "readinessProbe", "tcpSocket", "port")
        if port is not None:
            up = running and int(port) in self._listens(thing)
            listed.append(
                ("Ready", up, "" if up else f"dial tcp {address}:{port}: connect: connection refused")
            )
        self._write(thing, {**status, "conditions": self._conditions(thing, listed)})

    def _power(self, thing: Object, vm_class: str) -> str:
        """Switch a machine on or off. Returns why it can't be on, or ""."""
        holder = _holder((VMS, namespace_of(thing), name_of(thing)))
        if thing["spec"]["powerState"] == ON:
            return self._outside.power_on(holder, vm_class)
        self._outside.power_off(holder)
        return ""

    def _prerequisites(self, thing: Object) -> Iterator[Reported]:
        spec, space = thing["spec"], namespace_of(thing)
        offered = self._cluster.store.get(CLASSES, space, spec["className"]) is not None
        yield "VirtualMachineClassReady", offered, "" if offered else f"{spec['className']} not found"
        image = self._cluster.store.get(IMAGES, space, str(dig(spec, "image", "name", default="")))
        ready = image is not None and any(
            (each["type"], each["status"]) == ("Ready", "True")
            for each in dig(image, "status", "conditions", default=[])
        )
        yield "VirtualMachineImageReady", ready, "" if ready else "the image is not ready"
        yield "VirtualMachineStorageReady", True, ""
        lacking = next(self._lacking(thing), "")
        yield "VirtualMachineBootstrapReady", not lacking, lacking
        yield "VirtualMachineNetworkReady", True, ""

    def _lacking(self, thing: Object) -> Iterator[str]:
        """Secrets that its bootstrap names and that aren't there."""
        given = dig(thing, "spec", "bootstrap", default={})
        listed = dig(given, "vAppConfig", "properties", default=[])
        named = [dig(each, "value", "from") for each in listed]
        for each in (*named, dig(given, "cloudInit", "rawCloudConfig")):
            if not each:
                continue
            found = self._cluster.store.get(SECRETS, namespace_of(thing), each["name"])
            if found is None:
                yield f'Secret "{each["name"]}" not found'
            elif each["key"] not in (found.get("data") or {}):
                yield f'Secret "{each["name"]}" has no key "{each["key"]}"'

    def _attached(self, thing: Object, volume: Object) -> bool:
        name = str(dig(volume, "persistentVolumeClaim", "claimName", default=""))
        claim = self._cluster.store.get(CLAIMS, namespace_of(thing), name)
        return (
            claim is not None
            and dig(claim, "status", "phase") == "Bound"
            and not claim["metadata"].get("deletionTimestamp")
        )

    def _listens(self, thing: Object) -> list[int]:
        image = self._cluster.store.get(IMAGES, namespace_of(thing), dig(thing, "spec", "image", "name"))
        listed = dig(image, "metadata", "annotations", LISTENS, default="")
        return [int(each) for each in listed.split(",") if each]

    def _made(self, item: Item) -> None:
        thing = self._cluster.store.get(*item)
        if thing is None or thing["metadata"].get("deletionTimestamp"):
            return
        if all(ok for _, ok, _ in self._prerequisites(thing)):
            moid = f"vm-{int(hashlib.sha256('/'.join(item[1:]).encode()).hexdigest()[:4], 16)}"
            made = {
                "uniqueID": moid,
                "instanceUUID": thing["spec"]["instanceUUID"],
                "biosUUID": thing["spec"]["biosUUID"],
            }
            self._write(thing, {**(thing.get("status") or {}), **made})

    def _let_go(self, item: Item) -> None:
        thing = self._cluster.store.get(*item)
        if thing is None:
            return
        left = [each for each in thing["metadata"].get("finalizers") or [] if each != FINALIZER]
        self._cluster.change(thing, lambda live: live["metadata"].__setitem__("finalizers", left), MANAGER)

    def _conditions(self, thing: Object, listed: list[Reported]) -> list[Object]:
        before = {each["type"]: each for each in dig(thing, "status", "conditions", default=[])}
        when = stamp(self._cluster.clock.now())
        found = []
        for kind, ok, why in listed:
            made = condition(kind, status=ok, when=when, reason="True" if ok else "NotReady", message=why)
            was = before.get(kind)
            if was is not None and was["status"] == made["status"]:
                made["lastTransitionTime"] = was["lastTransitionTime"]
            found.append(made)
        return found

    def _write(self, thing: Object, status: Object) -> None:
        if thing.get("status") != status:
            self._cluster.set_status(thing, status, MANAGER)


class Exposed:
    """The services of machines: an address of the load balancer for each."""

    kinds = (SERVICES,)

    def __init__(self, loop: Loop, guests: Guests) -> None:
        self._loop, self._cluster, self._guests = loop, loop.cluster, guests

    def touched(self, change: Change) -> Iterable[Item]:
        """None."""
        return ()

    def look(self, item: Item, thing: Object | None) -> None:
        """Give it an address, or take it back."""
        where = (item[1], f"service {item[2]}")
        if thing is None or thing["metadata"].get("deletionTimestamp"):
            self._guests.addresses.pop(where, None)
            return
        if thing["spec"]["type"] != "LoadBalancer":
            return
        self._plain(thing)
        address = self._guests.address(where)
        status = {"loadBalancer": {"ingress": [{"ip": address}] if address else []}}
        if thing.get("status") != status:
            self._cluster.set_status(thing, status, MANAGER)

    def _plain(self, thing: Object) -> None:
        """The Service that it becomes."""
        names = ("name", "protocol", "port", "targetPort")
        ports = [{name: each[name] for name in names} for each in thing["spec"]["ports"]]
        made = self._cluster.ensure(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {
                    "name": name_of(thing),
                    "namespace": namespace_of(thing),
                    "ownerReferences": [owned_by(thing)],
                },
                "spec": {"type": "LoadBalancer", "ports": ports},
            },
            MANAGER,
        )
        if [{name: each.get(name) for name in names} for each in made["spec"]["ports"]] != ports:
            self._cluster.change(made, lambda live: live["spec"].__setitem__("ports", ports), MANAGER)


def _holder(item: Item) -> str:
    return "/".join(("vm", *item[1:]))


def _number(namespace: str, name: str) -> int:
    return int(hashlib.sha256(f"{namespace}/{name}".encode()).hexdigest()[:4], 16)


def _address(thing: Object) -> str:
    number = _number(namespace_of(thing), name_of(thing))
    return f"10.245.{number >> 8}.{number & 255}"
