"""The devices of a node that meet claims, as the scheduler's allocator finds them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bfinfra.sandbox.kubernetes.device_cel import NoSuchKey, compiled
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of

MOST = 32
"""How many devices a claim can have."""
Id = tuple[str, str, str]
"""Driver, pool and name of a device."""


class SelectorError(Exception):
    """A selector can't be evaluated for a device; in the scheduler's words."""


@dataclass(frozen=True)
class Device:
    """A device that a node offers."""

    id: Id
    thing: Object = field(hash=False, compare=False)


@dataclass(frozen=True)
class _Slot:
    """One device that a claim needs. `fixed`: which, for a claim of all."""

    claim: Object = field(hash=False, compare=False)
    number: int
    request: Object = field(hash=False, compare=False)
    fixed: Device | None = None

    @property
    def admin(self) -> bool:
        """Whether it may be in use."""
        return bool(dig(self.request, "exactly", "adminAccess"))


def taken(claims: Collection[Object]) -> set[Id]:
    """The devices that claims have for themselves."""
    return {
        (each["driver"], each["pool"], each["device"])
        for claim in claims
        for each in dig(claim, "status", "allocation", "devices", "results", default=[])
        if not each.get("adminAccess")
    }


def offered(slices: Sequence[Object], node: str) -> tuple[list[Device], list[str]]:
    """The devices of a node, and its pools that are being changed, whose devices don't count."""
    pools: dict[tuple[str, str], list[Object]] = {}
    for each in slices:
        if dig(each, "spec", "nodeName") == node:
            key = (each["spec"]["driver"], each["spec"]["pool"]["name"])
            pools.setdefault(key, []).append(each["spec"])
    devices: list[Device] = []
    changing: list[str] = []
    for (driver, pool), specs in pools.items():
        newest = max(spec["pool"]["generation"] for spec in specs)
        now = [spec for spec in specs if spec["pool"]["generation"] == newest]
        if len(now) != now[0]["pool"]["resourceSliceCount"]:
            changing.append(f"{driver}/{pool}")
            continue
        devices += [
            Device((driver, pool, each["name"]), each) for spec in now for each in spec.get("devices") or []
        ]
    return devices, changing


@dataclass
class Allocator:
    """For claims of one pod on one node. `classes` by name; `used`: the devices that others have."""

    classes: Mapping[str, Object]
    slices: Sequence[Object]
    used: Collection[Id]
    _matched: dict[tuple[int, int, Id], bool] = field(default_factory=dict)

    def allocated(self, claims: Sequence[Object], node: str) -> list[Object] | None:
        """The allocation of each claim; None if the node can't meet all. Raises SelectorError."""
        devices, changing = offered(self.slices, node)
        slots: list[_Slot] = []
        for claim in claims:
            own = list(self._slots(claim, devices, changing))
            if None in own or len(own) > MOST:
                return None
            slots += [each for each in own if each is not None]
        chosen = self._search(slots, devices, [])
        return None if chosen is None else [_result(claim, slots, chosen, node) for claim in claims]

    def _slots(
        self, claim: Object, devices: Sequence[Device], changing: Sequence[str]
    ) -> Iterator[_Slot | None]:
        """What a claim needs; None where it needs all devices and there is none."""
        for number, request in enumerate(dig(claim, "spec", "devices", "requests", default=[])):
            if request["exactly"]["allocationMode"] == "ExactCount":
                yield from [_Slot(claim, number, request)] * request["exactly"]["count"]
                continue
            if changing:
                raise SelectorError(
                    f"claim {_named(claim)}, request {request['name']}: asks for all devices, but resource "
                    f"pool {changing[0]} is currently being updated"
                )
            every = [each for each in devices if self._matches(claim, number, request, each)]
            yield from (_Slot(claim, number, request, each) for each in every)
            if not every:
                yield None

    def _search(
        self, slots: Sequence[_Slot], devices: Sequence[Device], chosen: list[Device]
    ) -> list[Device] | None:
        """A device for each slot, by trying. Of one request's, the first slot has the first device."""
        if len(chosen) == len(slots):
            return chosen
        slot = slots[len(chosen)]
        again = chosen and slot.fixed is None and slots[len(chosen) - 1] is slot
        first = devices.index(chosen[-1]) + 1 if again else 0
        for device in [slot.fixed] if slot.fixed else devices[first:]:
            if self._busy(slot, device, slots, chosen):
                continue
            if not self._matches(slot.claim, slot.number, slot.request, device):
                continue
            found = self._search(slots, devices, [*chosen, device])
            if found is not None:
                return found
        return None

    def _busy(self, slot: _Slot, device: Device, slots: Sequence[_Slot], chosen: Sequence[Device]) -> bool:
        """Whether a slot can't have a device: with admin access it may be in use by other claims."""
        if slot.admin:
            return any(d is device and of.claim is slot.claim for d, of in zip(chosen, slots, strict=False))
        return device.id in self.used or device in chosen

    def _matches(self, claim: Object, number: int, request: Object, device: Device) -> bool:
        key = (id(claim), number, device.id)
        if key not in self._matched:
            self._matched[key] = all(self._selected(claim, request, device))
        return self._matched[key]

    def _selected(self, claim: Object, request: Object, device: Device) -> Iterator[bool]:
        """What each selector says: those of the class, then those of the request."""
        of_class = self.classes[request["exactly"]["deviceClassName"]]
        for place, selectors in (
            (f"class {name_of(of_class)}", dig(of_class, "spec", "selectors", default=[])),
            (f"claim {_named(claim)}", request["exactly"].get("selectors") or []),
        ):
            for number, each in enumerate(selectors):
                try:
                    yield compiled(each["cel"]["expression"])(device.id[0], device.thing)
                except NoSuchKey as error:
                    why = f"{place}: selector #{number}: CEL runtime error: {error}"
                    raise SelectorError(why) from error


def _result(claim: Object, slots: Sequence[_Slot], chosen: Sequence[Device], node: str) -> Object:
    results = [
        {
            "request": slot.request["name"],
            "driver": device.id[0],
            "pool": device.id[1],
            "device": device.id[2],
            **({"adminAccess": True} if slot.admin else {}),
        }
        for slot, device in zip(slots, chosen, strict=True)
        if slot.claim is claim
    ]
    if not results:
        return {"devices": {}}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}


def _named(claim: Object) -> str:
    return f"{namespace_of(claim)}/{name_of(claim)}"
