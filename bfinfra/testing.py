"""pytest fixtures that run the embedded sandbox, so that users test their own sites offline.

    # conftest.py
    pytest_plugins = ["bfinfra.testing"]

    def test_my_site(sandbox):
        site = bfinfra.load("site.yaml", sandbox=sandbox)
        outcome = bfinfra.apply(site, around=bfinfra.Setting(sandbox=sandbox))
        assert outcome.ending == "done"

The world is `specs/worlds/small.yaml` of bfinfra, or what a `sandbox_world` fixture of your own answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bfinfra import sandbox as _sandbox


@pytest.fixture(scope="session")
def sandbox_world() -> Path:
    """The world file that the sandbox starts with; override it to bring your own."""
    return _sandbox.SMALL_WORLD


@pytest.fixture(scope="session")
def sandbox_process(tmp_path_factory: pytest.TempPathFactory, sandbox_world: Path) -> Iterator[_sandbox.Running]:
    """One sandbox process a test run (and worker), without waiting times."""
    state = tmp_path_factory.mktemp("sandbox")
    running = _sandbox.start(sandbox_world, state, pace=0)
    yield running
    _sandbox.stop(state)


@pytest.fixture
def sandbox(sandbox_process: _sandbox.Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _sandbox.Running:
    """The sandbox as at its start: nothing made, no faults, nothing counted; journal and locks in the test's own folder."""
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    sandbox_process.reset()
    return sandbox_process
