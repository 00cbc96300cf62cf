"""Finds the cards that a spec means."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from bfinfra.backends.vcenter.esxi import Holder, PciDevice
from bfinfra.kinds.vcenter.gpu_host.spec import Passthrough, Spec
from bfinfra.kinds.vcenter.gpu_host.state import State
from bfinfra.model import gpus
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.suggest import few, nearest


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card to pass through; `memory` in bytes, None if it isn't known."""

    address: str
    vendor: int
    device: int
    name: str
    memory: int | None


def chosen(spec: Spec, state: State, site: str | None, own: Container[str] = ()) -> tuple[Gpu, ...]:
    """The cards that a spec means, those with an address first. Raises Refusal if one doesn't exist or is in
    use. `own`: names of VMs that the site describes; until they are adopted, their cards don't count as in
    use by others. `site`: None before the host has a note.
    """
    held = unmanaged(state.detail.holders, site, own)
    taken: dict[str, Gpu] = {}
    for index, part in sorted(enumerate(spec.passthrough), key=lambda pair: pair[1].address is None):
        at = f"passthrough.{index}"
        found = (
            [_named(part.address, state, held, at)]
            if part.address
            else _matching(part, state, held, at, taken)
        )
        for card in found:
            if card.address in taken:
                raise Refusal(f"{card.address} is named twice", field=f"{at}.address")
            memory = part.memory or gpus.MEMORY.get((card.vendor, card.device))
            taken[card.address] = Gpu(card.address, card.vendor, card.device, card.name, memory)
    return tuple(taken[address] for address in sorted(taken))


def _named(address: str, state: State, held: Mapping[str, str], at: str) -> PciDevice:
    found = state.device(address)
    if found is None:
        cards = (d.address for d in state.detail.devices if d.display and d.capable)
        raise Refusal(
            f"the host has no PCI device {address}", field=f"{at}.address", next=nearest(address, cards)
        )
    if not found.capable:
        raise Refusal(
            f"{address} can't be passed through",
            field=f"{at}.address",
            why=f"{found.name or 'it'} does not support it",
            next="turn on Above-4G decoding and VT-d in the host's BIOS, or choose another device",
        )
    if owner := held.get(found.address):
        raise Refusal(
            f"{address} is in use",
            field=f"{at}.address",
            why=f"it belongs to the VM {owner}",
            next="take it out of that VM first, or choose another card",
        )
    return found


def _matching(
    part: Passthrough, state: State, held: Mapping[str, str], at: str, taken: Mapping[str, Gpu]
) -> list[PciDevice]:
    alike = [d for d in state.detail.devices if (d.vendor, d.device) == (part.vendor, part.device)]
    usable = [d for d in alike if d.capable and d.address not in taken and d.address not in held]
    if len(usable) < part.count:
        raise _too_few(part, state, at, alike, held, len(usable))
    ours = {address for holder in state.detail.holders for address in holder.addresses}
    return sorted(usable, key=lambda d: (d.address not in ours, not d.enabled, d.address))[: part.count]


def _too_few(  # noqa: PLR0913 - one sentence's parts
    part: Passthrough,
    state: State,
    at: str,
    alike: list[PciDevice],
    unmanaged: Mapping[str, str],
    usable: int,
) -> Refusal:
    make = f"{part.vendor:04x}:{part.device:04x}"
    if not alike:
        there = [
            f"{d.vendor:04x}:{d.device:04x} {d.name} at {d.address}"
            for d in state.detail.devices
            if d.display
        ]
        return Refusal(
            f"the host has no PCI device {make}",
            field=at,
            why=f"its graphics devices: {few(there) or 'none'}",
            next="correct vendor and device, or choose another host",
        )
    held = [f"the VM {unmanaged[d.address]} holds {d.address}" for d in alike if d.address in unmanaged]
    unfit = [d.address for d in alike if not d.capable]
    incapable = (
        [f"{few(unfit)} {'is' if len(unfit) == 1 else 'are'} not capable of passthrough"] if unfit else []
    )
    why = "; ".join([f"the host has {len(alike)}", *([few(held)] if held else []), *incapable])
    return Refusal(
        (
            f"{part.count} × {make} {'is' if part.count == 1 else 'are'} wanted, "
            f"and {usable or 'none'} can be had"
        ),
        field=at,
        why=why,
        next="lower count, or free a card",
    )


def unmanaged(holders: Iterable[Holder], site: str | None, own: Container[str] = ()) -> dict[str, str]:
    """Device address → name of the VM that holds it, for VMs of somebody else. `own`: names of unmarked VMs
    that the site describes, which don't count as somebody else's.
    """
    return {
        address: holder.name
        for holder in reversed([*holders])
        if not ours(holder, site) and (holder.mark or holder.name not in own)
        for address in holder.addresses
    }


def ours(holder: Holder, site: str | None) -> bool:
    """Return whether a VM is this site's. A copy of this site's VM is not."""
    found = Mark.site_in(holder.mark, holder.machine.instance_uuid if holder.machine else "")
    return found is not None and found == site
