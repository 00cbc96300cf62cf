"""One running small world for the tests of REST; each begins with the world as at its start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asking import Rest

from bfinfra.sandbox import SMALL_WORLD, Running, start, stop


@pytest.fixture(scope="session")
def rest_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("rest")
    yield start(SMALL_WORLD, folder)
    stop(folder)


@pytest.fixture
def world(rest_process: Running) -> Running:
    rest_process.reset()
    return rest_process


@pytest.fixture
def rest(world: Running) -> Rest:
    return Rest(world)
