"""The room of a card that is shared.

A card gives vGPUs until it is full. In the mode sameSize all vGPUs of a card have one size. In mixedSize each
takes the smallest half, quarter, … of the card that holds it. Parts by MIG are of one size, and not beside
vGPUs by time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

SIZE = re.compile(r"(?:-(\d+))?-(\d+)[a-z]+$")
"""The end of a profile's name: parts of a card by MIG, and GiB."""
GIB, SLACK = 2**30, 1.07  # cards report somewhat less memory than the GiB in their name
PARTS = 7  # of a card, by MIG


def fits(host: Managed, card: str, profile: str, others: Sequence[str]) -> bool:
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
