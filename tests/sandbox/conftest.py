"""A small world in its own process, for tests through clients that know nothing of the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bfinfra.sandbox import Running, start, stop

SMALL = Path(__file__).resolve().parents[2] / "specs/worlds/small.yaml"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Running]:
    """The small world, running."""
    found = start(SMALL, tmp_path / "state")
    yield found
    stop(tmp_path / "state")
