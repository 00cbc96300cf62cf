"""The small world for the tests of REST; each begins with the world as at its start."""

from __future__ import annotations

import pytest
from asking import Rest

from bfinfra.sandbox import Running


@pytest.fixture
def world(sandbox: Running) -> Running:
    return sandbox


@pytest.fixture
def rest(world: Running) -> Rest:
    return Rest(world)
