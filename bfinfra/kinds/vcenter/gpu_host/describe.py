"""Describes a host as a site writes it: its cluster, and its cards that are passed through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from bfinfra.backends.vcenter.esxi import PciDevice
from bfinfra.kinds.vcenter.gpu_host.cards import unmanaged
from bfinfra.kinds.vcenter.gpu_host.state import State
from bfinfra.model import gpus
from bfinfra.model.description import Description


def description(state: State, site: str, appliances: frozenset[str], *, serves: bool) -> Description | None:
    """None for a host without GPUs, vGPU profiles and Bitfusion servers. `appliances`: names of the Bitfusion
    servers, which the site describes, too; `serves`: whether one of them is on the host.
    """
    detail = state.detail
    cards = [each for each in detail.devices if _gpu(each)]
    if not (cards or detail.vgpu_profiles or serves):
        return None
    others = unmanaged(detail.holders, site, appliances)
    on = [each for each in cards if each.enabled and each.capable and each.address not in others]
    fields: dict[str, object] = {"cluster": state.cluster} if state.cluster else {}
    if on:
        fields["passthrough"] = list(_by_model(on))
    return Description(detail.name, fields, state)


def _gpu(device: PciDevice) -> bool:
    return device.display and (device.capable or (device.vendor, device.device) in gpus.MEMORY)


def _by_model(cards: list[PciDevice]) -> Iterator[Mapping[str, object]]:
    """One entry for all cards of a model, with their count."""
    for (vendor, device), count in sorted(Counter((each.vendor, each.device) for each in cards).items()):
        yield {"vendor": vendor, "device": device} | ({"count": count} if count > 1 else {})
