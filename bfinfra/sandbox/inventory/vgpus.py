"""The GPUs of hosts and who holds them: machines, nodes of workload clusters, machines of the VM Service.

A card gives vGPUs where its host shares its cards, until it is full. In the mode sameSize all vGPUs of a
card have one size. In mixedSize each takes the smallest half, quarter, … of the card that holds it. Parts by
MIG are of one size, and not beside vGPUs by time. What is passed through gives no vGPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bfinfra.sandbox.inventory.vmtypes import vim

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

HELD = "held_gpus"
"""In a host's hidden data: [address of the card, profile or "" for the whole card, holder] each."""
SIZE = re.compile(r"(?:-(\d+))?-(\d+)[a-z]+$")
"""The end of a profile's name: parts of a card by MIG, and GiB."""
GIB, SLACK = 2**30, 1.07  # cards report somewhat less memory than the GiB in their name
PARTS = 7  # of a card, by MIG
FULL = (
    "The amount of graphics resource available in the parent resource pool is insufficient for the operation."
)
Ids = frozenset[tuple[int, int]]
"""Vendor and device of the cards that a device may be."""


@dataclass(frozen=True)
class Wanted:
    """The GPUs of a machine: profiles of vGPUs, and for each whole card the cards that it may be."""

    vgpus: tuple[str, ...] = ()
    cards: tuple[Ids, ...] = ()


NONE = Wanted()


@dataclass(frozen=True)
class Held:
    """What a machine holds. `names`: of its GPUs, as the guest's driver has them; `memory`: MiB of each;
    `host_driver`: version of the host's vGPU driver.
    """

    names: tuple[str, ...] = ()
    memory: tuple[int, ...] = ()
    vgpu: bool = False
    host_driver: str = ""


def offers(host: Managed, profile: str) -> bool:
    """Return whether the host has a card that gives vGPUs of a profile, full or not."""
    return profile in (host["config"].sharedPassthruGpuTypes or ())


def room(host: Managed, profiles: Sequence[str]) -> list[str] | None:
    """The card for each vGPU, by the host's policy: the fullest first for consolidation, else the emptiest.
    None where they don't fit.
    """
    held = [(card, profile) for card, profile, _ in _held(host)]
    found = []
    for profile in profiles:
        if not offers(host, profile):
            return None
        fitting = [
            card
            for card in _shared(host, profile)
            if _fits(host, card, profile, [name for at, name in held if at == card])
        ]
        if not fitting:
            return None
        packed = host["config"].graphicsConfig.sharedPassthruAssignmentPolicy == "consolidation"
        counts = {card: sum(at == card for at, _ in held) for card in fitting}
        found.append((max if packed else min)(fitting, key=lambda card: counts[card]))
        held.append((found[-1], profile))
    return found


def whole(host: Managed, busy: Sequence[str], cards: Sequence[Ids]) -> list[str] | None:
    """A passed-through card for each; `busy`: those that machines use. None where one is missing."""
    taken = {*busy, *(card for card, profile, _ in _held(host) if not profile)}
    found: list[str] = []
    for allowed in cards:
        card = next((each for each in passed(host, allowed) if each not in taken), None)
        if card is None:
            return None
        taken.add(card)
        found.append(card)
    return found


def passed(host: Managed, allowed: Ids) -> Iterator[str]:
    """The addresses of the host's cards of a model that are passed through."""
    active = {each.id for each in host["config"].pciPassthruInfo if each.passthruActive}
    for each in host["hardware"].pciDevice:
        if each.id in active and (each.vendorId & 0xFFFF, each.deviceId & 0xFFFF) in allowed:
            yield each.id


def hold(inventory: Inventory, host: Managed, holder: str, cards: Sequence[tuple[str, str]]) -> None:
    """Note what a machine holds: (card, profile) each."""
    host.hidden[HELD] = [*_held(host), *([card, profile, holder] for card, profile in cards)]
    _list(inventory, host)
    inventory.touch(host)


def let_go(inventory: Inventory, holder: str) -> None:
    """Free what a machine holds, or all machines of `holder/`."""
    freed = False
    with inventory.lock:
        for host in inventory.hosts():
            left = [
                each for each in _held(host) if each[2] != holder and not each[2].startswith(f"{holder}/")
            ]
            if len(left) != len(_held(host)):
                host.hidden[HELD], freed = left, True
                _list(inventory, host)
                inventory.touch(host)
    if freed:
        inventory.room_changed()


def place(
    inventory: Inventory, hosts: Sequence[Managed], busy: Callable[[Managed], Sequence[str]], holder: str,
    wanted: Wanted,
) -> str:  # fmt: skip
    """Give a machine of another part of the world its GPUs, on the host that holds least. Returns why none
    has them, "" if it has them. Holds nothing twice.
    """
    if not (wanted.vgpus or wanted.cards):
        return ""
    with inventory.lock:
        if any(each[2] == holder for host in hosts for each in _held(host)):
            return ""
        for host in sorted(hosts, key=lambda each: len(_held(each))):
            vgpus, cards = room(host, wanted.vgpus), whole(host, busy(host), wanted.cards)
            if vgpus is not None and cards is not None:
                held = [*zip(vgpus, wanted.vgpus, strict=True), *((card, "") for card in cards)]
                hold(inventory, host, holder, held)
                return ""
        return why_not(hosts, wanted.vgpus)


def why_not(hosts: Sequence[Managed], profiles: Sequence[str]) -> str:
    """Why no host gives a machine its GPUs."""
    for profile in profiles:
        if not any(offers(host, profile) for host in hosts):
            return (
                f"Could not initialize plugin 'libnvidia-vgx.so' for vGPU '{profile}'. "
                f"No graphics device is available for vGPU '{profile}'."
            )
    return FULL


def of(inventory: Inventory, holder: str) -> Held:
    """What a machine holds."""
    with inventory.lock:
        for host in inventory.hosts():
            if own := [(card, profile) for card, profile, by in _held(host) if by == holder]:
                return Held(
                    tuple(_name(host, card, profile) for card, profile in own),
                    tuple(_mebibytes(host, card, profile) for card, profile in own),
                    any(profile for _, profile in own),
                    _driver(inventory, host),
                )
    return Held()


def holders(host: Managed, card: str) -> list[str]:
    """Who holds a whole card, or a vGPU of it."""
    return [holder for at, _, holder in _held(host) if at == card]


def guests(host: Managed) -> list[str]:
    """Who holds GPUs of a host."""
    return list(dict.fromkeys(holder for _, _, holder in _held(host)))


def _held(host: Managed) -> list[list[str]]:
    found: list[list[str]] = host.hidden.get(HELD, [])
    return found


def _shared(host: Managed, profile: str) -> list[str]:
    """The cards that give vGPUs of a profile: not those that are passed through."""
    passed_through = {each.id for each in host["config"].pciPassthruInfo if each.passthruActive}
    known = host.hidden.get("card_profiles", {})
    return [card for card, profiles in known.items() if profile in profiles and card not in passed_through]


def _fits(host: Managed, card: str, profile: str, others: Sequence[str]) -> bool:
    """Return whether a card has room for one more vGPU."""
    sizes = [_size(each) for each in (*others, profile)]
    if None in sizes or "" in others or len({by_parts for by_parts, _ in filter(None, sizes)}) > 1:
        return False
    each = [size for _, size in filter(None, sizes)]
    if any(by_parts for by_parts, _ in filter(None, sizes)):
        return len(set(each)) == 1 and each[0] * len(each) <= PARTS
    memory = int(host.hidden["pci_memory"].get(card, 0) * SLACK / GIB)
    if _mode(host, card) == "mixedSize":
        return _aligned(memory, each)
    return len(set(each)) == 1 and each[0] * len(each) <= memory


def _aligned(memory: int, sizes: Sequence[int]) -> bool:
    """Return whether vGPUs of several sizes fit, each in a half, quarter, … of the card."""
    if any(size > memory for size in sizes):
        return False
    slots = []
    for size in sizes:
        divided = 1
        while memory // (divided * 2) >= size:
            divided *= 2
        slots.append(1 / divided)
    return sum(slots) <= 1


def _size(profile: str) -> tuple[bool, int] | None:
    """Whether it is by MIG, and its parts or GiB; None for a name that tells no size."""
    found = SIZE.search(profile)
    if found is None:
        return None
    return (True, int(found[1])) if found[1] else (False, int(found[2]))


def _mode(host: Managed, card: str) -> str:
    listed = host["config"].graphicsConfig.deviceType or ()
    return next((str(each.vgpuMode) for each in listed if each.deviceId == card), "sameSize")


def _name(host: Managed, card: str, profile: str) -> str:
    """`nvidia_h100-40c` → NVIDIA H100-40C; of a whole card, the model in the brackets of its name."""
    if profile:
        vendor, _, rest = profile.partition("_")
        return f"{vendor.upper()} {rest.upper()}"
    device = next(each for each in host["hardware"].pciDevice if each.id == card)
    return f"NVIDIA {device.deviceName.partition('[')[2].partition(']')[0] or device.deviceName}"


def _mebibytes(host: Managed, card: str, profile: str) -> int:
    found = SIZE.search(profile)
    return int(found[2]) * 1024 if found else host.hidden["pci_memory"].get(card, 0) // 2**20


def _driver(inventory: Inventory, host: Managed) -> str:
    vibs = inventory.get(host["configManager"].imageConfigManager).hidden["vibs"]
    return str(vibs.get(host.hidden.get("vgpu_driver", ""), ""))


def _list(inventory: Inventory, host: Managed) -> None:
    """Show at each card the virtual machines that use it."""
    for info in host["config"].graphicsInfo or ():
        known = [inventory.objects.get(holder) for holder in holders(host, info.pciId)]
        info.vm = [each.ref for each in known if each is not None and each.is_a(vim.VirtualMachine)]
