"""The sites that are tried, each with the sandbox's world that it fits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kinds.lifecycle import EXAMPLES, SPECS

from bfinfra.sandbox import SMALL_WORLD, Running, start, stop

CHAIN = Path(__file__).parents[1] / "kinds/chain.yaml"


@dataclass(frozen=True)
class Place:
    """A site and its world."""

    name: str
    site: Path
    world: Path = SMALL_WORLD


SITES = tuple(
    Place(f"specs/{path.name}", path, SPECS / "worlds" / path.name) for path in sorted(SPECS.glob("*.yaml"))
)
DEMO = Place("specs/singapore-poc.yaml", SPECS / "singapore-poc.yaml", SPECS / "worlds/singapore-poc.yaml")
CHAIN_PLACE = Place("tests/kinds/chain.yaml", CHAIN)
PLACES = (*SITES, CHAIN_PLACE, *(Place(f"specs/kinds/{name}.yaml", path) for name, path in EXAMPLES.items()))


@contextlib.contextmanager
def sandbox_of(place: Place, folder: Path, pace: float = 0) -> Iterator[Running]:
    """A sandbox of the place's world, by default without waiting times."""
    state = folder / f"sandbox-{place.site.stem}-{pace:g}"
    yield start(place.world, state, pace=pace)
    stop(state)
