"""The small world, for tests through clients that know nothing of the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bfinfra.sandbox import SMALL_WORLD, Running, start, stop


@pytest.fixture
def small(sandbox: Running) -> Running:
    """The small world as at its start; for whoever leaves it running."""
    return sandbox


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Running]:
    """A small world of the test's own, which may be stopped and started."""
    found = start(SMALL_WORLD, tmp_path / "state")
    yield found
    stop(tmp_path / "state")
