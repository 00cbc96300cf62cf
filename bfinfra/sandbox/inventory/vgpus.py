"""The GPUs of hosts and who holds them: machines, nodes of workload clusters, machines of the VM Service.

A card gives vGPUs where its host shares its cards, until it is full. What is passed through gives no vGPU.

A vendor device group is vGPUs on cards that are linked, each of which it fills. NVLink bridges and partitions
of an NVSwitch link cards in halves of halves: a group of two is the first and second card, or the third and
fourth, in the order of the world; a group of four is the first four or the next four. A network card of a
group is passed through, and shares a PCIe switch with its GPUs: the first one with the first GPUs, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bfinfra.sandbox.inventory.card_room import SIZE, fits
from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.world_hosts import MODEL

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

HELD = "held_gpus"
"""In a host's hidden data: [address of the card, profile or "" for the whole card, holder] each."""
FULL = (
    "The amount of graphics resource available in the parent resource pool is insufficient for the operation."
)
Ids = frozenset[tuple[int, int]]
"""Vendor and device of the cards that a device may be."""


@dataclass(frozen=True)
class Group:
    """A vendor device group: its name, and its parts: a vGPU's profile, or a network card's model such as
    15b3:1021.
    """

    name: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Wanted:
    """The GPUs of a machine: profiles of vGPUs, for each whole card the cards that it may be, and vendor
    device groups.
    """

    vgpus: tuple[str, ...] = ()
    cards: tuple[Ids, ...] = ()
    groups: tuple[Group, ...] = ()

    @property
    def count(self) -> int:
        """How many GPUs it is."""
        return (
            len(self.vgpus)
            + len(self.cards)
            + sum(not MODEL.fullmatch(part) for each in self.groups for part in each.parts)
        )


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


def groups(host: Managed) -> dict[str, tuple[str, ...]]:
    """The vendor device groups that the host offers, taken or not: name → the parts of each."""
    known: dict[str, list[str]] = host.hidden.get("device_groups", {})
    return {name: tuple(parts) for name, parts in known.items() if any(_linked(host, parts))}


def room(host: Managed, wanted: Wanted, busy: Collection[str] = ()) -> list[tuple[str, str]] | None:
    """The card and the profile of each vGPU, "" for a network card; those of groups first, the largest before
    smaller ones, as they take whole cards. None where they don't all fit. `busy`: whole cards that machines
    use.
    """
    held = [(card, profile) for card, profile, _ in _held(host)]
    before = len(held)
    for group in sorted(wanted.groups, key=lambda each: -len(each.parts)):
        cards = _group(host, group, {*busy, *(card for card, _ in held)})
        if cards is None:
            return None
        held += (
            (card, "" if MODEL.fullmatch(part) else part)
            for card, part in zip(cards, group.parts, strict=True)
        )
    for profile in wanted.vgpus:
        card = _card(host, profile, held)
        if card is None:
            return None
        held.append((card, profile))
    return held[before:]


def _group(host: Managed, group: Group, taken: Collection[str]) -> list[str] | None:
    """The first linked cards of which none is taken; None if the host doesn't offer this group."""
    if groups(host).get(group.name) != group.parts:
        return None
    return next((cards for cards in _linked(host, group.parts) if set(cards).isdisjoint(taken)), None)


def _linked(host: Managed, parts: Sequence[str]) -> Iterator[list[str]]:
    """The cards that can be a group of these parts, each group once. Each vGPU fills its card."""
    profiles = [each for each in parts if not MODEL.fullmatch(each)]
    models = {each: parts.count(each) for each in parts if MODEL.fullmatch(each)}
    known, size = host.hidden.get("card_profiles", {}), len(profiles)
    cards = [card for card, offered in known.items() if not set(profiles).isdisjoint(offered)]
    nics = {each: [*_cards(host, model(each))] for each in models}
    able = {card for each in models for card in passed(host, frozenset((model(each),)))}
    for number, start in enumerate(range(0, len(cards) - size + 1, size)):
        found = cards[start : start + size]
        beside = {each: nics[each][number * count :][:count] for each, count in models.items()}
        fills = all(
            offers(host, each) and _fills(host, card, each)
            for card, each in zip(found, profiles, strict=True)
        )
        if fills and all(len(able.intersection(beside[each])) == count for each, count in models.items()):
            yield [beside.get(each, found).pop(0) for each in parts]


def _cards(host: Managed, wanted: tuple[int, int]) -> Iterator[str]:
    """The addresses of all cards of a model."""
    for each in host["hardware"].pciDevice:
        if (each.vendorId & 0xFFFF, each.deviceId & 0xFFFF) == wanted:
            yield each.id


def model(nic: str) -> tuple[int, int]:
    """`15b3:1021` → vendor and device."""
    vendor, _, device = nic.partition(":")
    return int(vendor, 16), int(device, 16)


def nic_of(allowed: Ids) -> str:
    """The reverse; "" for several models, or none."""
    return "{:04x}:{:04x}".format(*next(iter(allowed))) if len(allowed) == 1 else ""


def _fills(host: Managed, card: str, profile: str) -> bool:
    """Return whether an empty card has room for one vGPU and no second one."""
    one = card in _shared(host, profile) and fits(host, card, profile, ())
    return one and not fits(host, card, profile, (profile,))


def _card(host: Managed, profile: str, held: Sequence[tuple[str, str]]) -> str | None:
    """A card for one more vGPU, by the host's policy: the fullest first for consolidation, else the
    emptiest.
    """
    if not offers(host, profile):
        return None
    fitting = [
        card
        for card in _shared(host, profile)
        if fits(host, card, profile, [name for at, name in held if at == card])
    ]
    packed = host["config"].graphicsConfig.sharedPassthruAssignmentPolicy == "consolidation"
    counts = {card: sum(at == card for at, _ in held) for card in fitting}
    return (max if packed else min)(fitting, key=lambda card: counts[card], default=None)


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
    if not wanted.count:
        return ""
    with inventory.lock:
        if any(each[2] == holder for host in hosts for each in _held(host)):
            return ""
        for host in sorted(hosts, key=lambda each: len(_held(each))):
            used = busy(host)
            vgpus = room(host, wanted, used)
            cards = whole(host, [*used, *(card for card, _ in vgpus or ())], wanted.cards)
            if vgpus is not None and cards is not None:
                hold(inventory, host, holder, [*vgpus, *((card, "") for card in cards)])
                return ""
        return why_not(hosts, wanted)


def why_not(hosts: Sequence[Managed], wanted: Wanted) -> str:
    """Why no host gives a machine its GPUs."""
    for profile in wanted.vgpus:
        if not any(offers(host, profile) for host in hosts):
            return _unavailable("vGPU", profile)
    for group in wanted.groups:
        if not any(groups(host).get(group.name) == group.parts for host in hosts):
            return _unavailable("device group", group.name)
    return FULL


def _unavailable(what: str, name: str) -> str:
    return (
        f"Could not initialize plugin 'libnvidia-vgx.so' for {what} '{name}'. "
        f"No graphics device is available for {what} '{name}'."
    )


def of(inventory: Inventory, holder: str) -> Held:
    """What a machine holds."""
    with inventory.lock:
        for host in inventory.hosts():
            if own := [
                (card, profile) for card, profile, by in _held(host) if by == holder and _is_gpu(host, card)
            ]:
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


def driver_name(host: Managed, profile: str) -> str:
    """The name of the first card that gives vGPUs of a profile, as its driver has it."""
    return next((_name(host, card, "") for card in _shared(host, profile)), "")


def guests(host: Managed) -> list[str]:
    """Who holds GPUs of a host."""
    return list(dict.fromkeys(holder for _, _, holder in _held(host)))


def _is_gpu(host: Managed, card: str) -> bool:
    return any(each.pciId == card for each in host["config"].graphicsInfo or ())


def _held(host: Managed) -> list[list[str]]:
    found: list[list[str]] = host.hidden.get(HELD, [])
    return found


def _shared(host: Managed, profile: str) -> list[str]:
    """The cards that give vGPUs of a profile: not those that are passed through."""
    passed_through = {each.id for each in host["config"].pciPassthruInfo if each.passthruActive}
    known = host.hidden.get("card_profiles", {})
    return [card for card, profiles in known.items() if profile in profiles and card not in passed_through]


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
