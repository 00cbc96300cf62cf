"""pytest fixtures that run the embedded sandbox, so that users test their own sites offline.

    # conftest.py
    pytest_plugins = ["bfinfra.testing"]

    def test_my_site(sandbox):
        site = bfinfra.load("site.yaml", sandbox=sandbox)
        outcome = bfinfra.apply(site, around=bfinfra.RunContext(sandbox=sandbox))
        assert outcome.ending == "done"

The world is `specs/worlds/small.yaml` of bfinfra, or what a `sandbox_world` fixture of your own answers.
docs/how-to/test-your-site.md has more examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bfinfra import sandbox as _sandbox


def faults(*rules: Mapping[str, object]) -> pytest.MarkDecorator:
    """Decorates a test: these fault rules apply while it runs. See `bfinfra.sandbox.faults`."""
    return pytest.mark.sandbox_faults(*rules)


def world(file: Path) -> pytest.MarkDecorator:
    """Decorates a test: its sandbox is a process of its own with this world file."""
    return pytest.mark.sandbox_world(file)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marks that the decorators set."""
    config.addinivalue_line(
        "markers", "sandbox_faults(*rules): what goes wrong in the sandbox during the test"
    )
    config.addinivalue_line("markers", "sandbox_world(file): the world file of the test's own sandbox")


@pytest.fixture(scope="session")
def sandbox_world() -> Path:
    """The world file of the sandbox; override it to use your own."""
    return _sandbox.SMALL_WORLD


@pytest.fixture(scope="session")
def sandbox_process(
    tmp_path_factory: pytest.TempPathFactory, sandbox_world: Path
) -> Iterator[_sandbox.Running]:
    """One sandbox process for each test run (and worker), without waiting times."""
    state = tmp_path_factory.mktemp("sandbox")
    running = _sandbox.start(sandbox_world, state, pace=0)
    yield running
    _sandbox.stop(state)


@pytest.fixture
def sandbox(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[_sandbox.Running]:
    """The sandbox in its first state, without objects, faults or counts. Journal and locks are in the test's
    own folder.
    """
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    own = request.node.get_closest_marker("sandbox_world")
    state = tmp_path / "sandbox"
    running: _sandbox.Running = (
        _sandbox.start(own.args[0], state, pace=0) if own else request.getfixturevalue("sandbox_process")
    )
    running.reset()
    for mark in request.node.iter_markers("sandbox_faults"):
        running.faults(*mark.args)
    yield running
    if own:
        _sandbox.stop(state)
