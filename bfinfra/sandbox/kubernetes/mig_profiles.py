"""The parts into which cards can be divided (MIG), after NVIDIA's MIG user guide and go-nvml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """One GPU instance profile. `number`: its id, as `nvidia-smi mig -lgip` prints it; `starts`, `size`: the
    memory slices at which one can begin, and how many it has; `memory`: in MiB.
    """

    name: str
    number: int
    starts: tuple[int, ...]
    size: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    jpeg: int
    ofa: int
    memory: int


SINGLE, PAIRS = tuple(range(7)), (0, 2, 4)
A100_40GB = (
    Profile("1g.5gb", 19, SINGLE, 1, 14, 1, 0, 0, 0, 4864),
    Profile("1g.5gb+me", 20, SINGLE, 1, 14, 1, 1, 1, 1, 4864),
    Profile("1g.10gb", 15, (*PAIRS, 6), 2, 14, 1, 1, 0, 0, 9856),
    Profile("2g.10gb", 14, PAIRS, 2, 28, 2, 1, 0, 0, 9856),
    Profile("3g.20gb", 9, (0, 4), 4, 42, 3, 2, 0, 0, 19968),
    Profile("4g.20gb", 5, (0,), 4, 56, 4, 2, 0, 0, 19968),
    Profile("7g.40gb", 0, (0,), 8, 98, 7, 5, 1, 1, 40192),
)
A100_80GB = (
    Profile("1g.10gb", 19, SINGLE, 1, 14, 1, 1, 0, 0, 9856),
    Profile("1g.10gb+me", 20, SINGLE, 1, 14, 1, 1, 1, 1, 9856),
    Profile("1g.20gb", 15, (*PAIRS, 6), 2, 14, 1, 1, 0, 0, 19968),
    Profile("2g.20gb", 14, PAIRS, 2, 28, 2, 1, 0, 0, 19968),
    Profile("3g.40gb", 9, (0, 4), 4, 42, 3, 2, 0, 0, 40192),
    Profile("4g.40gb", 5, (0,), 4, 56, 4, 2, 0, 0, 40192),
    Profile("7g.80gb", 0, (0,), 8, 98, 7, 5, 1, 1, 80384),
)
A30 = (
    Profile("1g.6gb", 14, (0, 1, 2, 3), 1, 14, 1, 0, 0, 0, 5836),
    Profile("1g.6gb+me", 21, (0, 1, 2, 3), 1, 14, 1, 1, 1, 1, 5836),
    Profile("2g.12gb", 5, (0, 2), 2, 28, 2, 2, 0, 0, 11672),
    Profile("2g.12gb+me", 6, (0, 2), 2, 28, 2, 2, 1, 1, 11672),
    Profile("4g.24gb", 0, (0,), 4, 56, 4, 4, 1, 1, 23344),
)
H100_80GB = (
    Profile("1g.10gb", 19, SINGLE, 1, 16, 1, 1, 0, 0, 10240),
    Profile("1g.10gb+me", 20, SINGLE, 1, 16, 1, 1, 1, 1, 10240),
    Profile("1g.20gb", 15, (*PAIRS, 6), 2, 16, 1, 1, 0, 0, 20480),
    Profile("2g.20gb", 14, PAIRS, 2, 32, 2, 1, 0, 0, 20480),
    Profile("3g.40gb", 9, (0, 4), 4, 48, 3, 2, 0, 0, 40960),
    Profile("4g.40gb", 5, (0,), 4, 64, 4, 2, 0, 0, 40960),
    Profile("7g.80gb", 0, (0,), 8, 112, 7, 5, 0, 0, 81920),
)


def placed(product: str, wanted: Mapping[str, int]) -> list[tuple[Profile, int]] | None:
    """The parts of one card, by the memory slices at which they begin; None if it can't have them. The
    largest are placed first, each as far back as it fits, as the driver does.
    """
    known = {each.name: each for each in _profiles(product)}
    if not wanted.keys() <= known.keys() or any("+me" in name and n > 1 for name, n in wanted.items()):
        return None
    parts = [known[name] for name, number in wanted.items() for _ in range(number)]
    free, found = set(range(8)), []
    for part in sorted(parts, key=lambda each: (-each.size, -each.multiprocessors)):
        fits = [start for start in part.starts if _slices(part, start) <= free]
        if not fits:
            return None
        free -= _slices(part, fits[-1])
        found.append((part, fits[-1]))
    return sorted(found, key=lambda each: each[1])


def _slices(part: Profile, start: int) -> set[int]:
    return set(range(start, start + part.size))


def _profiles(product: str) -> Sequence[Profile]:
    if "A100" in product:
        return A100_80GB if "80GB" in product else A100_40GB
    return A30 if "A30" in product else H100_80GB if "H100" in product else ()
