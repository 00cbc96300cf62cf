"""Compares the network adapters and PCI devices of a VM with those that its site wants: the differences, and
the part of a reconfiguration that removes them. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from bfinfra.backends.vcenter.places import Inventory
from bfinfra.backends.vcenter.vm import Attach, Attached, Nic
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """An adapter that the site wants. `at`: its field; `network`: the id, Unknown if this site has still to
    make the port group; `name`: what the site calls that; `mac`: "" for any; `rdma`: the protocol of a
    paravirtual RDMA adapter.
    """

    at: str
    network: str | Unknown
    name: str
    mac: str = ""
    rdma: str = ""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """`changes` for people, `hardware` the fields of the reconfiguration; `off`: the VM must be off for it;
    `later`: the object that this site has still to make first.
    """

    changes: tuple[Change, ...] = ()
    hardware: Mapping[str, Any] = field(default_factory=dict)
    off: bool = False
    later: Unknown | None = None


def added(adapters: Sequence[Adapter]) -> dict[str, Any]:
    """The fields of the hardware for adapters to add."""
    plain, rdma = ([each for each in adapters if bool(each.rdma) is which] for which in (False, True))
    return {
        "add_nics": tuple(each.network for each in plain),
        "add_rdma": {each.network: each.rdma for each in rdma},
        "add_macs": tuple(each.mac for each in (*plain, *rdma)),
    }


def adapters(
    nics: Sequence[Nic], wanted: Sequence[Adapter], inventory: Inventory, *, numbered: bool = False
) -> Difference:
    """The differences in adapters. Of those that are there, one with the wanted MAC address is taken first,
    then one on the right network; of the others, one of the same type is moved before one is added.
    `numbered`: the guest counts its adapters, so they are taken in their order, whatever network they are on.
    """
    kept = _kept(nics, wanted, numbered=numbered)
    left = [nic for nic in nics if nic not in kept.values()]
    new = [each for index, each in enumerate(wanted) if index not in kept]
    pairs = [(nic, wanted[index]) for index, nic in sorted(kept.items())]
    moved = [(nic, each) for nic, each in pairs if nic.network != each.network]
    macs = [(nic, each) for nic, each in pairs if each.mac and each.mac != nic.mac.lower()]
    whole = wanted[0].at.partition(".")[0] if wanted else "adapters"

    def now(nic: Nic) -> str:
        found = inventory.by_moid.get(nic.network)
        return found.name if found else nic.network

    return Difference(
        changes=(
            *(Change(f"{each.at}.network", now(nic), each.name) for nic, each in moved),
            *(Change(f"{each.at}.mac", nic.mac, each.mac) for nic, each in macs),
            *(Change(each.at, None, _text(each.name, each.rdma)) for each in new),
            *(Change(f"{whole}.{nic.label or nic.key}", _text(now(nic), nic.rdma), None) for nic in left),
        ),
        hardware={
            "nics": {nic.key: each.network for nic, each in moved},
            "macs": {nic.key: each.mac for nic, each in macs},
            "drop": tuple(nic.key for nic in left),
            **added(new),
        },
        off=bool(new or left or macs) or any(nic.rdma for nic, _ in moved),
        later=next(
            (each.network for each in (*new, *(to for _, to in moved)) if isinstance(each.network, Unknown)),
            None,
        ),
    )


def _kept(nics: Sequence[Nic], wanted: Sequence[Adapter], *, numbered: bool) -> dict[int, Nic]:
    """The adapter of the VM for each of the site's that has one. If the guest counts them, and the file gives
    all of them their MAC addresses, only their order tells which is which.
    """
    found, left = dict[int, Nic](), list(nics)
    fits: tuple[Callable[[Nic, Adapter], bool], ...] = (
        lambda nic, each: bool(each.mac) and nic.mac.lower() == each.mac,
        lambda nic, each: nic.network == each.network,
        lambda *_: True,
    )
    if numbered:
        in_order = len(nics) == len(wanted) and all(each.mac for each in wanted)
        fits = fits[2:] if in_order or not any(each.mac for each in wanted) else (fits[0], fits[2])
    for fit in fits:
        for index, each in enumerate(wanted):
            fitting = (nic for nic in left if nic.rdma == each.rdma and fit(nic, each))
            if index not in found and (nic := next(fitting, None)) is not None:
                found[index] = nic
                left.remove(nic)
    return found


def _text(network: str, rdma: str) -> str:
    return f"{network} ({rdma})" if rdma else network


def attached(at: str, now: Sequence[Attached], wanted: Sequence[Attach]) -> Difference:
    """The differences in PCI devices. `at`: the field that asks for them."""
    missing, drop, attach = Counter(map(_signature, wanted)), list[int](), list[Attach]()
    for device in now:
        if missing[_signature(device)] > 0:
            missing[_signature(device)] -= 1
        else:
            drop.append(device.key)
    for each in wanted:
        if missing[_signature(each)] > 0:
            missing[_signature(each)] -= 1
            attach.append(each)
    if not (attach or drop):
        return Difference()
    change = Change(at, sorted(map(_said, now)), sorted(map(_said, wanted)))
    return Difference(changes=(change,), hardware={"attach": tuple(attach), "drop": tuple(drop)}, off=True)


def _signature(device: Attached | Attach) -> Any:
    if isinstance(device, Attached):
        return device.profile or (device.address if device.way == "static" else device.allowed)
    return device.profile or device.address or ((device.vendor, device.device),)


def _said(device: Attached | Attach) -> str:
    """A device in words: its profile, its address, or the models that it may be."""
    if isinstance(device, Attach):
        return device.profile or device.address or f"any {device.vendor:04x}:{device.device:04x}"
    if device.profile or device.way == "static":
        return device.profile or device.address
    return "any " + ", ".join(f"{vendor:04x}:{model:04x}" for vendor, model in device.allowed)
