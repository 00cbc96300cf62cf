"""The cards of the hosts that a site expects."""

from __future__ import annotations

import copy
import re

from bfinfra.app.sandbox_world.draft import GPU, Draft, Entry, Hex
from bfinfra.model.gpus import GIB, vgpu_profile

GROUP = re.compile(r"[^:@]+:(?P<count>[2-9]|[1-9]\d)@(?P<profile>[^%]+)")
"""The name of a vendor device group that NVIDIA's driver offers."""


def add(draft: Draft) -> None:
    """The cards that the site passes through, names by their address, or wants for its servers."""
    wanted: dict[str, int] = {}
    for _, spec in draft.of("bitfusion_server"):
        wanted[spec.host] = wanted.get(spec.host, 0) + spec.gpus
    for key, spec in draft.of("gpu_host"):
        for each in spec.passthrough:
            if each.address:
                _put(draft, key.name, GPU, 1, each.address)
            else:
                number = max(each.count, wanted.pop(key.name, 0))
                _put(draft, key.name, _card(each.vendor, each.device), number)
    for host, number in wanted.items():
        _put(draft, host, GPU, number - len(draft.host(host).get("pci", ())))
    _other_cards(draft)


def _other_cards(draft: Draft) -> None:
    """Those that graphics settings name by their addresses, and one for each make that a VM class takes."""
    for _, spec in draft.of("host_graphics"):
        for host in spec.hosts:
            for address in spec.cards:
                _put(draft, host, {**GPU, "sriov": True}, 1, address)
    _cards_of_machines(draft)
    _shared_cards(draft)
    for _, spec in draft.of("vm_class"):
        for each in spec.devices:
            _put(draft, next(iter(draft.hosts), "esx1.sandbox.test"), _card(each.vendor, each.device), 1)


def _cards_of_machines(draft: Draft) -> None:
    """A shared card for each vGPU of a virtual machine, on its host."""
    for _, spec in draft.of("virtual_machine"):
        name = spec.host or "gpu1.sandbox.test"
        for profile in spec.vgpus:
            host = draft.host(name, spec.cluster)
            if not any(draft.of("host_graphics")):
                host["graphics"] = "sharedDirect"
            _put(draft, name, _shared_card(profile), 1)


def _shared_cards(draft: Draft) -> None:
    """Those for the vGPUs and the device groups of VM classes. Linked cards come first: a world links those
    that follow each other.
    """
    groups = dict.fromkeys(name for _, spec in draft.of("vm_class") for name in spec.device_groups)
    profiles = dict.fromkeys(profile for _, spec in draft.of("vm_class") for profile in spec.vgpus)
    for host in _sharing(draft) if groups or profiles else ():
        for name in groups:
            _link(draft, host, name)
        for profile in profiles:
            _put(draft, host, _shared_card(profile), 1)


def _sharing(draft: Draft) -> list[str]:
    """The hosts that share their cards by the site; without them one in each cluster with namespaces, which
    shares its cards already.
    """
    if hosts := [host for _, spec in draft.of("host_graphics") for host in spec.hosts]:
        return hosts
    clusters = dict.fromkeys(spec.cluster for _, spec in draft.of("supervisor_namespace"))
    found = {f"gpu{number}.sandbox.test": cluster for number, cluster in enumerate(clusters, 1)}
    for host, cluster in found.items():
        draft.host(host, cluster)["graphics"] = "sharedDirect"
    return list(found)


def _link(draft: Draft, host: str, name: str) -> None:
    """Cards for two machines with a device group, as its name tells: Nvidia:2@nvidia_h100-80c%NVLink."""
    found = GROUP.match(name)
    profile = vgpu_profile(found["profile"]) if found else None
    if found is None or profile is None:
        draft.left_out[f"device group {name}"] = "its name doesn't tell its vGPUs: write it into the world"
        return
    count = int(found["count"])
    card = {**GPU, "memory": f"{profile.memory // GIB}GiB", "profiles": [found["profile"]]}
    _put(draft, host, card, 2 * count)
    draft.host(host).setdefault("device_groups", {})[name] = [found["profile"]] * count


def _shared_card(profile: str) -> Entry:
    """A card with room for two machines of this vGPU profile."""
    found = vgpu_profile(profile)
    size = max(16, found.memory // GIB if found else 0)
    return {**GPU, "memory": f"{2 * size}GiB", "profiles": [profile]}


def _card(vendor: int, device: int) -> Entry:
    name = GPU["name"] if device == GPU["device"] else f"a card {device:04x}"
    return {**GPU, "vendor": Hex(vendor), "device": Hex(device), "name": name}


def _put(draft: Draft, host: str, card: Entry, number: int, address: str = "") -> None:
    cards = draft.host(host).setdefault("pci", [])
    for _ in range(number):
        at = address or f"0000:{0x3B + len(cards):02x}:00.0"
        if all(each["id"] != at for each in cards):
            cards.append({"id": at, "class": Hex(0x0302), **copy.deepcopy(card)})
