"""Which tests run: all with --peers; without it none that needs real peers; with --backend=live alone those
that ask the peers of script/peers, and no others.

The summary says how many were left out, and how to run them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CONTRACT = HERE.with_name("contract")
COUNT = pytest.StashKey[int]()


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "peers: needs the real peers of script/peers; runs with --peers")
    config.addinivalue_line(
        "markers",
        (
            "packages: a peer that comes from Debian's packages (sshd, systemd, rpm, Chromium); runs with "
            "--peers"
        ),
    )


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    here = {path for path in {item.path for item in items} if HERE in path.parents}
    for item in items:
        if item.path in here:
            item.add_marker(pytest.mark.peers)
    if config.getoption("--peers"):
        return
    live = "live" in config.getoption("--backend")
    kept: list[Any] = []
    out: list[Any] = []
    for item in items:
        (out if (_others(item) if live else item.get_closest_marker("peers")) else kept).append(item)
    items[:] = kept
    config.stash[COUNT] = len(out)
    if out:
        config.hook.pytest_deselected(items=out)


def _others(item: Any) -> bool:
    """What asks neither vcsim nor the API server."""
    asks = CONTRACT in item.path.parents or "peers" in item.fixturenames
    return not asks or item.get_closest_marker("packages") is not None


def pytest_sessionfinish(session: Any) -> None:
    """A worker of xdist tells its controller, which collects nothing itself."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = session.config.stash.get(COUNT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker collects the same tests: the count is any one's."""
    count = getattr(node, "workeroutput", {}).get("left out", 0)
    node.config.stash[COUNT] = max(count, node.config.stash.get(COUNT, 0))


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    if count := config.stash.get(COUNT, 0):
        live = "live" in config.getoption("--backend")
        tests = (
            ("test" if count == 1 else "tests")
            + ("" if live else " with real peers")
            + (" was" if count == 1 else " were")
        )
        terminalreporter.write_line(
            f"{count} {tests} left out; to run them: script/peers up && script/test --peers"
        )
