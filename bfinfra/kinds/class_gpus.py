"""The GPUs of the machines of a VM class: vGPUs, whole cards and vendor device groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from bfinfra.model.mark import Mark
from bfinfra.model.order import Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.vgpus import HostOffer, Vgpus
    from bfinfra.backends.vcenter.vm_classes import VmClass

VGPU, GROUP = "vGPU", "device group"


class Gpu(NamedTuple):
    """What a machine takes: vGPUs of a profile, or a vendor device group. `kind`: VGPU or GROUP."""

    kind: str
    name: str


@dataclass(frozen=True)
class GpuFacts:
    """`classes`: vCenter's VM classes; `offers`: the vGPUs and device groups of hosts. Empty: not known."""

    classes: Mapping[str, VmClass] = field(default_factory=dict)
    offers: tuple[HostOffer, ...] = ()


def read(vgpus: Vgpus, classes: Mapping[str, VmClass], vm_classes: Collection[str]) -> GpuFacts:
    """Reads what hosts offer; their device groups only if one of `vm_classes`, by name, may have some.
    `classes`: vCenter's. Raises RemoteError.
    """
    return GpuFacts(
        classes, vgpus.offered(groups=any(_may_have_groups(classes.get(each)) for each in vm_classes))
    )


def _may_have_groups(vm_class: VmClass | None) -> bool:
    """Return whether a class has device groups, or a site may give it some: it is new, or a site's own."""
    return vm_class is None or bool(vm_class.groups) or Mark.address_in(vm_class.description) is not None


def taken(vm_class: str, wanted: Specs, facts: GpuFacts) -> Counter[Gpu]:
    """The device groups of a machine of a class, and its vGPUs, those of the groups too. The file's class
    counts, else vCenter's.
    """
    own, there = wanted.get(Key("vm_class", vm_class)), facts.classes.get(vm_class)
    groups: Sequence[str] = getattr(own, "device_groups", ()) if own else there.groups if there else ()
    found = Counter(Gpu(VGPU, name) for name in getattr(own or there, "vgpus", ()))
    for name in groups:
        found[Gpu(GROUP, name)] += 1
        found.update(Gpu(VGPU, profile) for profile in parts(Gpu(GROUP, name), facts.offers))
    return found


def parts(gpu: Gpu, offers: Sequence[HostOffer]) -> tuple[str, ...]:
    """The profile of each vGPU of a device group, as hosts tell; () if none offers it."""
    groups: Mapping[str, tuple[str, ...]] = {
        name: each for host in offers for name, each in host.profiles_of_groups.items()
    }
    return groups.get(gpu.name, ()) if gpu.kind == GROUP else ()


def told_by_file(vm_class: str, wanted: Specs) -> int | None:
    """The GPUs of a machine of a class; None if the file has no such class, or it has device groups, whose
    size only hosts tell.
    """
    found: int | None = getattr(wanted.get(Key("vm_class", vm_class)), "gpu_count", None)
    return found


def told_by_servers(vm_class: str, wanted: Specs, facts: GpuFacts) -> int | None:
    """The same where the file doesn't tell it; None if the servers don't tell it either."""
    own, there = wanted.get(Key("vm_class", vm_class)), facts.classes.get(vm_class)
    if told_by_file(vm_class, wanted) is not None or (own is None and there is None):
        return None
    found = taken(vm_class, wanted, facts)
    if not all(parts(gpu, facts.offers) for gpu in found if gpu.kind == GROUP):
        return None
    cards = len(getattr(own or there, "devices", ()))
    return cards + sum(count for gpu, count in found.items() if gpu.kind == VGPU)


def told(vm_class: str, wanted: Specs, facts: GpuFacts) -> int | None:
    """The same by the file or by the servers."""
    found = told_by_file(vm_class, wanted)
    return told_by_servers(vm_class, wanted, facts) if found is None else found
